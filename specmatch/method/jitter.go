package method

import (
	"context"

	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/gnn/random"
)

// jitter is InfoNCE from weights that are off by a hundred-thousandth: before the
// first epoch every weight w becomes
//
//	w·(1 + 1e-5·ε),  ε ~ N(0, 1).
//
// It is the same method, and so the control of every comparison: what two rows that
// share a seed differ by when nothing differs. Training at the usual rate is chaotic,
// and the difference is nearly that of two seeds.
var jitter = &Method{
	Name:      Jitter,
	Title:     "InfoNCE, weights off by 1e-5",
	Regimes:   []Regime{Unsupervised},
	OnRequest: true,
	Settings:  contrastSettings,
	new:       func(s Setup) (*Learner, error) { return newJittered(s, 1e-5) },
}

// jittered is a learner that starts from other weights.
type jittered struct {
	*Learner
	seed  uint64
	scale float64
}

func newJittered(s Setup, scale float64) (*Learner, error) {
	l, err := infoNCE.new(s)
	if err != nil {
		return nil, err
	}
	inner := *l
	l.Learner = &jittered{&inner, s.Seed, scale}
	return l, nil
}

func (j *jittered) Begin(ctx context.Context, epoch int) (err error) {
	defer backend.Recover(&err)
	if epoch == 0 {
		rng := random.Stream(j.seed, purposeTask, 0, 0)
		for _, p := range j.Model.Parameters() {
			v := make([]float64, p.Value.Len())
			p.Backend().Download(v, p.Value)
			for i := range v {
				v[i] *= 1 + j.scale*rng.NormFloat64()
			}
			p.Backend().Upload(p.Value, v)
		}
	}
	return j.Learner.Begin(ctx, epoch)
}
