package train

import (
	"context"
	"errors"
	"iter"
	"math"

	"github.com/specmatch/specmatch/autodiff/nn"
	"github.com/specmatch/specmatch/gnn/augment"
	"github.com/specmatch/specmatch/gnn/graph"
)

// Batch is a mini-batch of graphs, in one or several views.
type Batch struct {
	Epoch, Index int   // of the batch in its epoch; both count from 0
	Samples      []int // indices into the data set
	Graphs       *graph.Batch
}

// Learner is something that learns from mini-batches, epoch by epoch. All random
// choices come from its own seed and from the numbers of epoch and batch, so that
// what it does depends on its state alone, not on when it was interrupted.
type Learner interface {
	// Begin prepares an epoch. It is called before the epoch's first batch, and
	// not again if training is resumed within the epoch.
	Begin(ctx context.Context, epoch int) error
	// Epoch returns the mini-batches of an epoch, the same ones at every call: the
	// indices of the samples, and their graphs.
	Epoch(ctx context.Context, epoch int) iter.Seq2[[]int, *graph.Batch]
	// Batches returns their number.
	Batches() int
	// Step learns from a batch. It returns the metrics of a step that has ended: this
	// one or, on an asynchronous engine such as a GPU, the one before. They are nil
	// if no step has ended, or if the batch had nothing to learn from.
	Step(b Batch) (Metrics, error)
	// Last waits for the last step and returns its metrics, unless Step already did.
	Last() (Metrics, error)
	// End closes an epoch, after its last batch: the place to evaluate, and to
	// change what the next epoch depends on. Its metrics are added to the epoch's.
	// The error [ErrStop] ends training with this epoch. After any other error, and
	// after one of Begin, the state must be as it was before the call.
	End(ctx context.Context, epoch int) (Metrics, error)
	// State returns all that Begin, Step and End change, for checkpoints: tensors,
	// and a pointer to whatever else there is, which is stored as JSON, or nil.
	State() (tensors nn.Module, values any)
	// Close ends training: it frees what only training needs on the engine, such as recorded
	// steps. The tensors stay.
	Close() error
}

// ErrStop is the error by which [Learner.End] ends training before the last epoch.
var ErrStop = errors.New("train: stop")

// Defaults are the methods of a [Learner] that most learners need not write: embed
// it. The mini-batches are those of a loader, which shuffles a data set, cuts it
// into batches, and makes the views of their graphs.
type Defaults struct{ Loader *augment.Loader }

// Begin does nothing.
func (Defaults) Begin(context.Context, int) error { return nil }

// Epoch returns the loader's mini-batches.
func (d Defaults) Epoch(ctx context.Context, epoch int) iter.Seq2[[]int, *graph.Batch] {
	return d.Loader.Epoch(ctx, epoch)
}

// Batches returns the loader's number of them.
func (d Defaults) Batches() int { return d.Loader.Batches() }

// Last returns nil: Step has returned the metrics of every step.
func (Defaults) Last() (Metrics, error) { return nil, nil }

// End does nothing.
func (Defaults) End(context.Context, int) (Metrics, error) { return nil, nil }

// Close does nothing.
func (Defaults) Close() error { return nil }

// Metrics are named numbers, such as "loss".
type Metrics map[string]float64

// Get returns the metric of a name, NaN if there is none.
func (m Metrics) Get(name string) float64 {
	if v, ok := m[name]; ok {
		return v
	}
	return math.NaN()
}

// means accumulates metrics for their averages over the steps that reported them.
// Numbers that are not finite are left out, because checkpoints are JSON, which has
// none. (A loss that is not finite has ended training already.)
type means map[string]mean

type mean struct {
	Sum   float64
	Steps int
}

func (s means) add(m Metrics) {
	for name, v := range m {
		if !math.IsNaN(v) && !math.IsInf(v, 0) {
			s[name] = mean{s[name].Sum + v, s[name].Steps + 1}
		}
	}
}

func (s means) metrics() Metrics {
	m := Metrics{}
	for name, x := range s {
		m[name] = x.Sum / float64(x.Steps)
	}
	return m
}
