package method

import (
	"errors"

	"github.com/specmatch/specmatch/autodiff/nn"
	"github.com/specmatch/specmatch/gnn/augment"
	"github.com/specmatch/specmatch/specmatch"
	"github.com/specmatch/specmatch/specmatch/train"
)

// untrained is the encoder with its initial weights: the row that every other must beat.
var untrained = &Method{
	Name:    Untrained,
	Title:   "untrained encoder",
	Regimes: []Regime{Unsupervised},
	Frozen:  true,
	new: func(s Setup) (*Learner, error) {
		e, _, err := s.NewEncoder()
		if err != nil {
			return nil, err
		}
		m := &specmatch.Model{Encoder: e}
		return &Learner{
			Learner: idle{train.Defaults{Loader: s.loader(augment.Identity{})}, m},
			Model:   m,
		}, nil
	},
}

// idle is a learner that learns nothing.
type idle struct {
	train.Defaults
	model *specmatch.Model
}

// Step is an error.
func (idle) Step(train.Batch) (train.Metrics, error) {
	return nil, errors.New("method: the untrained encoder is not trained; want 0 epochs")
}

func (i idle) State() (nn.Module, any) { return i.model.Encoder, nil }
