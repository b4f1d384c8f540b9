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

// Learner learns from mini-batches, epoch by epoch. All random choices depend on its seed and on the
// numbers of epoch and batch, so that interruptions do not change the results.
type Learner interface {
	// Begin prepares an epoch. It is called before the epoch's first batch, but not again if training
	// is resumed within the epoch.
	Begin(ctx context.Context, epoch int) error
	// Epoch returns the mini-batches of an epoch, the same at every call: the indices of the samples,
	// and their graphs.
	Epoch(ctx context.Context, epoch int) iter.Seq2[[]int, *graph.Batch]
	// Batches returns the number of mini-batches of an epoch.
	Batches() int
	// Step learns from a batch. It returns the metrics of a finished step: this one or, on an
	// asynchronous engine such as a GPU, the previous one. They are nil if no step has finished, or if
	// the batch had nothing to learn from.
	Step(b Batch) (Metrics, error)
	// Last waits for the last step and returns its metrics, unless Step already did.
	Last() (Metrics, error)
	// End closes an epoch after its last batch. It may evaluate the model and change what the next epoch
	// depends on. Its metrics are added to the epoch's. The error [ErrStop] ends training with this
	// epoch. After any other error, and after an error of Begin, the state must be as before the call.
	End(ctx context.Context, epoch int) (Metrics, error)
	// State returns everything that Begin, Step and End change, for checkpoints: tensors, and a pointer
	// to other values, which are stored as JSON, or nil.
	State() (tensors nn.Module, values any)
	// Close ends training and frees what only training needs on the engine, such as recorded steps. The
	// tensors remain.
	Close() error
}

// ErrStop is the error with which [Learner.End] ends training before the last epoch.
var ErrStop = errors.New("train: stop")

// Defaults implements the methods of a [Learner] that most learners share; embed it. The mini-batches
// come from a loader, which shuffles a data set, splits it into batches, and creates the views of their
// graphs.
type Defaults struct{ Loader *augment.Loader }

// Begin does nothing.
func (Defaults) Begin(context.Context, int) error { return nil }

// Epoch returns the loader's mini-batches.
func (d Defaults) Epoch(ctx context.Context, epoch int) iter.Seq2[[]int, *graph.Batch] {
	return d.Loader.Epoch(ctx, epoch)
}

// Batches returns the loader's number of mini-batches.
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

// means accumulates metrics for their averages over the steps that report them. It skips numbers that
// are not finite, since checkpoints are JSON. (A loss that is not finite ends training.)
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
