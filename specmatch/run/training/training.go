// Package training makes a training without labels a unit of a run: it sets a method of package
// method up from flags and keeps progress, metrics, checkpoints and the model file in the run
// directory.
//
// The mental model: a [Run] describes one training. [Run.Learner] sets the method up, [Run.Train]
// trains it, and [Run.Unit] does both and saves the model. [Settings] are the flags of methods.
// Runs that share a data set and a seed share the initial weights, the batches and the
// augmentations, unless a method's own recipe, order of batches or views differs.
package training

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"

	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/gnn/dataset/tasks"
	"github.com/specmatch/specmatch/specmatch/cli"
	"github.com/specmatch/specmatch/specmatch/method"
	"github.com/specmatch/specmatch/specmatch/model"
	"github.com/specmatch/specmatch/specmatch/run"
	"github.com/specmatch/specmatch/specmatch/train"
)

// Run is one training without labels: a method on a data set with a seed. It does not read the
// seeds of the recipe.
type Run struct {
	Dataset  *dataset.Dataset
	Regime   method.Regime
	Encoder  gnn.Architecture
	Method   string
	Seed     int
	Recipe   cli.Recipe
	Settings Settings
	Labels   []*tasks.Labels // of the graphs, for methods that need them
	Setting  string          // names the run where a method has several settings; "" is the method
	File     string          // of the model in a run directory; "" is named after data set, method and seed
}

// Name names the run in the journal.
func (r *Run) Name() string {
	return fmt.Sprintf("%s/%s/seed=%d", r.Dataset.Name, cmp.Or(r.Setting, r.Method), r.Seed)
}

// Setup returns what the method learns from, and how.
func (r *Run) Setup(be backend.Backend) method.Setup {
	return method.Setup{
		Backend:  be,
		Regime:   r.Regime,
		Encoder:  r.Architecture(),
		Graphs:   r.Dataset.Graphs,
		Dataset:  r.Dataset.Name,
		SMILES:   r.Dataset.SMILES,
		Standard: r.Dataset.Standard,
		Labels:   r.Labels,
		Batch:    r.Recipe.Batch,
		Rate:     r.Rate(),
		Seed:     uint64(r.Seed),
		Options:  r.Settings.Options,
	}
}

// ownRecipe returns the method's own recipe, if it has one that is wanted.
func (r *Run) ownRecipe() method.Recipe {
	m, err := method.Get(r.Method)
	if err != nil || !r.Settings.OwnRecipes {
		return method.Recipe{}
	}
	return m.Recipe[r.Regime]
}

// Architecture returns the encoder, with as many layers as the method wants.
func (r *Run) Architecture() gnn.Architecture {
	a := r.Encoder
	a.Layers = cmp.Or(r.ownRecipe().Layers, a.Layers)
	return a
}

// Rate returns the learning rate.
func (r *Run) Rate() float64 { return cmp.Or(r.ownRecipe().Rate, r.Recipe.LR) }

// Epochs returns the number of epochs to train.
func (r *Run) Epochs() int {
	if method.Frozen(r.Method) {
		return 0
	}
	return cmp.Or(r.ownRecipe().Epochs, r.Recipe.Epochs)
}

// Learner returns the method with initial weights. The caller closes it.
func (r *Run) Learner(be backend.Backend) (*method.Learner, error) {
	return method.New(r.Method, r.Setup(be))
}

// NewEncoder returns the encoder that the run starts from.
func (r *Run) NewEncoder(be backend.Backend) (gnn.Encoder, error) {
	e, _, err := r.Setup(be).NewEncoder()
	return e, err
}

// Weights returns the path of the run's model file in a run directory.
func (r *Run) Weights(dir string) string {
	name := fmt.Sprintf("weights/%s-%s-%d.safetensors",
		r.Dataset.Name, cmp.Or(r.Setting, r.Method), r.Seed)
	return filepath.Join(dir, filepath.FromSlash(cmp.Or(r.File, name)))
}

// Save writes the encoder of a learner to its file in a run directory.
func (r *Run) Save(dir string, l *method.Learner, epochs int) error {
	path := r.Weights(dir)
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
	m, err := l.Trained(r.Dataset, epochs)
	if err != nil {
		return err
	}
	return m.Save(path)
}

// Load reads the encoder that [Run.Save] wrote into e.
func (r *Run) Load(dir string, e gnn.Encoder) error {
	return model.LoadEncoder(r.Weights(dir), e)
}

// Fits returns a usage error unless the machine has the memory for every run.
func Fits(runs []*Run, e cli.Engine) error {
	alike := func(a, b *Run) bool {
		return a.Dataset == b.Dataset && a.Architecture() == b.Architecture()
	}
	// the need does not depend on the seed
	for _, r := range slices.CompactFunc(slices.Clone(runs), alike) {
		err := train.Fits(e.Backend, e.Precision, r.Architecture(), r.Dataset.Graphs, r.Recipe.Batch)
		if err != nil {
			return cli.Usagef("-dataset %s -batch %d: %w", r.Dataset.Name, r.Recipe.Batch, err)
		}
	}
	return nil
}

// Trained is the result of training in the journal.
type Trained struct {
	TrainSeconds    float64
	GraphsPerSecond run.Float // null for the untrained encoder
	Epochs          []train.Metrics
}

// Unit returns the training of the run under a name; it leaves its model file in dir.
func (r *Run) Unit(name string, e cli.Engine, dir *run.Dir) run.Unit[Trained] {
	compute := func(ctx context.Context, be backend.Backend, status run.Status) (out Trained, err error) {
		l, err := r.Learner(be)
		if err != nil {
			return out, err
		}
		defer l.Close()
		out, err = r.Train(ctx, l, dir, name, status)
		if err != nil {
			return out, err
		}
		return out, r.Save(dir.Path, l, len(out.Epochs))
	}
	return run.Unit[Trained]{
		Name:   name,
		Files:  []string{r.Weights("")},
		Engine: &e,
		Run:    compute,
	}
}

// Train trains a learner of the run, with a row of metrics.csv per epoch under the name of the
// unit. A run that was interrupted continues from its checkpoint.
func (r *Run) Train(
	ctx context.Context, l train.Learner, dir *run.Dir, unit string, status run.Status,
) (out Trained, err error) {
	options, err := dir.Training(unit, r.Epochs())
	if err != nil {
		return out, err
	}
	p, err := train.Run(ctx, l, options, func(p train.Progress) error {
		if !p.Ended {
			status("epoch %d, batch %d of %d, loss %.3f, %.0f graphs/s",
				p.Epoch, p.Batch, p.Batches, p.Metrics["loss"], float64(p.Graphs)/p.Seconds)
			return nil
		}
		out.Epochs = append(out.Epochs, p.Metrics)
		return dir.Metrics(unit, p.Epoch, r.columns(p.Metrics)...)
	})
	out.TrainSeconds = p.Seconds
	out.GraphsPerSecond = run.Float(math.NaN())
	if p.Graphs > 0 {
		out.GraphsPerSecond = run.Float(float64(p.Graphs) / p.Seconds)
	}
	return out, err
}

// columns returns a row of metrics.csv: what was trained, and the metrics.
func (r *Run) columns(m train.Metrics) []slog.Attr {
	columns := []slog.Attr{
		slog.String("dataset", r.Dataset.Name),
		slog.String("method", r.Method),
		slog.Int("seed", r.Seed),
	}
	for _, name := range slices.Sorted(maps.Keys(m)) {
		columns = append(columns, slog.Float64(name, m[name]))
	}
	return columns
}
