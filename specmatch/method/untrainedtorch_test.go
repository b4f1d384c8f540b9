package method

import (
	"math"
	"slices"
	"testing"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/backend/cpu"
	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/tensor"
)

// TestUntrainedTorch: weights and biases of in → out lie within ±1/√in, nearly reach it, and have its
// variance 1/(3·in); the other parameters are those of the untrained encoder.
func TestUntrainedTorch(t *testing.T) {
	be := cpu.New(tensor.Float64)
	defer be.Close()
	set := dataset.Default()
	s := Setup{
		Backend: be,
		Graphs:  set.Graphs,
		Encoder: gnn.Architecture{Kind: gnn.KindGIN, In: set.FeatureWidth, Hidden: 64, Layers: 2},
	}
	values := func(p *autodiff.Param) []float64 {
		v := make([]float64, p.Value.Len())
		be.Download(v, p.Value)
		return v
	}
	l, err := New(UntrainedTorch, s)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, conv := range l.Model.Encoder.(*gnn.GIN).Convs {
		for _, linear := range conv.MLP.Layers {
			bound := 1 / math.Sqrt(float64(linear.W.Value.Rows))
			for _, p := range linear.Parameters() {
				v := values(p)
				squares := 0.0
				for _, x := range v {
					squares += x * x
				}
				ratio := squares / float64(len(v)) / (bound * bound / 3)
				low, high := slices.Min(v), slices.Max(v)
				if low < -bound || high > bound || low > -0.8*bound || high < 0.8*bound || ratio < 0.7 || ratio > 1.4 {
					t.Errorf("%s: from %g to %g, bound %g, %.2f times its variance", p.Name, low, high, bound, ratio)
				}
			}
		}
	}
	s.Encoder = gnn.Architecture{Kind: gnn.KindResGCN, In: set.FeatureWidth, Hidden: 8, Layers: 1}
	if _, err := New(UntrainedTorch, s); err == nil {
		t.Error("an encoder without the layers that are drawn")
	}
}
