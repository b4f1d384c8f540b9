package method

import (
	"fmt"

	"github.com/specmatch/specmatch/autodiff/nn"
	"github.com/specmatch/specmatch/gnn"
)

// untrainedTorch is the untrained encoder with the weights that PyTorch's Linear starts from, where the
// reference draws Xavier's: what a table owes to the choice of initial weights.
var untrainedTorch = &Method{
	Name:      UntrainedTorch,
	Title:     "untrained encoder, PyTorch's default weights",
	Regimes:   []Regime{Unsupervised},
	OnRequest: true,
	Frozen:    true,
	new: func(s Setup) (*Learner, error) {
		l, err := untrained.new(s)
		if err != nil {
			return nil, err
		}
		gin, ok := l.Model.Encoder.(*gnn.GIN)
		if !ok {
			return nil, fmt.Errorf("method: untrained-torch is for an encoder of kind %s", gnn.KindGIN)
		}
		_, rng, err := s.NewEncoder()
		if err != nil {
			return nil, err
		}
		for _, conv := range gin.Convs {
			for _, linear := range conv.MLP.Layers {
				weights := linear.W.Value
				s.Backend.Upload(weights, nn.KaimingUniform(rng, weights.Rows, weights.Cols))
				linear.ResetBias(s.Backend, rng)
			}
		}
		return l, nil
	},
}
