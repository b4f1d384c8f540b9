package specmatch

import (
	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/specmatch/train"
)

// Recorded trains like a [Trainer], but records its steps and replays them.
type Recorded struct{ *train.Recorded }

// NewRecorded returns a Recorded for a trainer. It returns an error if β is steered.
func NewRecorded(tr *Trainer) (*Recorded, error) {
	r, err := train.NewRecorded(tr.Minimizer, tr.Model.Encoder.Reads(),
		func(b *gnn.Batch, match bool) train.Losses {
			l, _, _ := tr.losses(b, match, false)
			return l
		})
	return &Recorded{r}, err
}

// Step calls [train.Recorded.Step] on a batch of two views, see [Trainer.Step].
func (r *Recorded) Step(b *graph.Batch) (*train.Stats, error) {
	if err := checkViews(b); err != nil {
		return nil, err
	}
	return r.Recorded.Step(b)
}
