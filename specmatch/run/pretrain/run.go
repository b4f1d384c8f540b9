package pretrain

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
	"github.com/specmatch/specmatch/gnn/augment"
	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/specmatch"
	"github.com/specmatch/specmatch/specmatch/cli"
	"github.com/specmatch/specmatch/specmatch/method"
	"github.com/specmatch/specmatch/specmatch/model"
	"github.com/specmatch/specmatch/specmatch/run"
	"github.com/specmatch/specmatch/specmatch/train"
)

// Run is one training without labels: a method on a data set with a seed. It uses
// the numbers in Loss and Recipe, but not their lists of methods and seeds.
type Run struct {
	Dataset  *dataset.Dataset
	Regime   method.Regime
	Encoder  gnn.Architecture
	Method   string
	Seed     int
	Loss     cli.Loss
	Recipe   cli.Recipe
	Settings Settings
	Setting  string // names the run where a method has several settings; "" is the method
	File     string // of the model in a run directory; "" is named after data set, method and seed
}

// GIN is the encoder of the unsupervised regime for a data set: 3 layers of 32.
func GIN(ds *dataset.Dataset) gnn.Architecture {
	return gnn.Architecture{Kind: gnn.KindGIN, In: ds.FeatureWidth, Hidden: 32, Layers: 3}
}

// Seeds lists the runs of a method on a data set in the unsupervised regime, one for
// each seed of the recipe.
func Seeds(ds *dataset.Dataset, name string, loss cli.Loss, recipe cli.Recipe, settings Settings) (runs []*Run) {
	for s := range recipe.Seeds {
		runs = append(runs, &Run{
			Dataset: ds, Regime: method.Unsupervised, Encoder: GIN(ds), Method: name, Seed: recipe.FirstSeed + s,
			Loss: loss, Recipe: recipe, Settings: settings,
		})
	}
	return runs
}

// Name names the run in the journal.
func (r *Run) Name() string {
	return fmt.Sprintf("%s/%s/seed=%d", r.Dataset.Name, cmp.Or(r.Setting, r.Method), r.Seed)
}

// Policy returns the augmentations by name, with "auto" resolved.
func (r *Run) Policy() string {
	if r.Settings.Policy != autoPolicy {
		return r.Settings.Policy
	}
	policy, _ := augment.PolicyFor(r.Dataset.Name)
	return policy
}

// Objective returns the loss of the contrastive methods.
func (r *Run) Objective() specmatch.Objective {
	o := r.Settings.Objective
	o.Contrast.Temperature = r.Loss.Tau
	o.Match.Kappa, o.Match.Percentile = r.Loss.Kappa, r.Loss.Percentile
	o.Beta.Beta, o.Beta.Ratio = r.Loss.Beta.Weight, r.Loss.Beta.Ratio
	return o
}

func (r *Run) setup(be backend.Backend) method.Setup {
	options := r.Settings.Options
	options.Objective = r.Objective()
	return method.Setup{
		Backend: be, Regime: r.Regime, Encoder: r.Architecture(), Graphs: r.Dataset.Graphs, SMILES: r.Dataset.SMILES, Standard: r.Dataset.Standard,
		Policy: r.Policy(), Ratio: r.Settings.Ratio, Batch: r.Recipe.Batch, Rate: r.Rate(), Seed: uint64(r.Seed),
		Options: options,
	}
}

// own is the method's own recipe, where it has one that is wanted.
func (r *Run) own() method.Recipe {
	m, err := method.Get(r.Method)
	if err != nil || !r.Settings.OwnRecipes {
		return method.Recipe{}
	}
	return m.Recipe[r.Regime]
}

// Architecture returns the encoder, of as many layers as the method wants.
func (r *Run) Architecture() gnn.Architecture {
	a := r.Encoder
	a.Layers = cmp.Or(r.own().Layers, a.Layers)
	if r.Settings.SelfLoops {
		a.Eps = 1
	}
	return a
}

// Rate returns the learning rate.
func (r *Run) Rate() float64 { return cmp.Or(r.own().Rate, r.Recipe.LR) }

// Learner returns the method with initial weights. The caller closes it.
func (r *Run) Learner(be backend.Backend) (*method.Learner, error) {
	return method.New(r.Method, r.setup(be))
}

// NewEncoder returns the encoder that the run starts from.
func (r *Run) NewEncoder(be backend.Backend) (gnn.Encoder, error) {
	e, _, err := r.setup(be).NewEncoder()
	return e, err
}

// Weights is the model file of the run's encoder in a run directory.
func (r *Run) Weights(dir string) string {
	name := fmt.Sprintf("weights/%s-%s-%d.safetensors", r.Dataset.Name, cmp.Or(r.Setting, r.Method), r.Seed)
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
func (r *Run) Load(dir string, e gnn.Encoder) error { return model.LoadEncoder(r.Weights(dir), e) }

// Fits returns a usage error unless the machine has the memory for every run.
func Fits(runs []*Run, e cli.Engine) error {
	alike := func(a, b *Run) bool { return a.Dataset == b.Dataset && a.Architecture() == b.Architecture() }
	for _, r := range slices.CompactFunc(slices.Clone(runs), alike) { // the need does not depend on the seed
		flags := fmt.Sprintf("-dataset %s -batch %d", r.Dataset.Name, r.Recipe.Batch)
		if err := train.Fits(e.Backend, e.Precision, r.Architecture(), r.Dataset.Graphs, r.Recipe.Batch); err != nil {
			return cli.Usagef("%s: %w", flags, err)
		}
	}
	return nil
}

// Epochs returns the number of epochs to train.
func (r *Run) Epochs() int {
	if r.Method == method.Untrained {
		return 0
	}
	return cmp.Or(r.own().Epochs, r.Recipe.Epochs)
}

// Trained is the result of training in the journal.
type Trained struct {
	TrainSeconds    float64
	GraphsPerSecond run.Float // null for the untrained encoder
	Epochs          []train.Metrics
}

// Unit is the training of the run under a name; it leaves its model file in dir.
func (r *Run) Unit(name string, e cli.Engine, dir *run.Dir) run.Unit[Trained] {
	compute := func(ctx context.Context, be backend.Backend, status run.Status) (out Trained, err error) {
		l, err := r.Learner(be)
		if err != nil {
			return out, err
		}
		defer l.Close()
		if out, err = r.Train(ctx, l, dir, name, status); err != nil {
			return out, err
		}
		return out, r.Save(dir.Path, l, len(out.Epochs))
	}
	return run.Unit[Trained]{Name: name, Files: []string{r.Weights("")}, Run: run.OnEngine(e, compute)}
}

// Train trains a learner of the run, with a row of metrics.csv per epoch under the
// name of the unit. A run that was interrupted continues from its checkpoint.
func (r *Run) Train(ctx context.Context, l train.Learner, dir *run.Dir, unit string, status run.Status) (out Trained, err error) {
	options, err := dir.Training(unit, r.Epochs())
	if err != nil {
		return out, err
	}
	p, err := train.Run(ctx, l, options, func(p train.Progress) error {
		if !p.Ended {
			status("epoch %d, batch %d of %d, loss %.3f, %.0f graphs/s", p.Epoch, p.Batch, p.Batches, p.Metrics["loss"], float64(p.Graphs)/p.Seconds)
			return nil
		}
		out.Epochs = append(out.Epochs, p.Metrics)
		columns := []slog.Attr{slog.String("dataset", r.Dataset.Name), slog.String("method", r.Method), slog.Int("seed", r.Seed)}
		for _, name := range slices.Sorted(maps.Keys(p.Metrics)) {
			columns = append(columns, slog.Float64(name, p.Metrics[name]))
		}
		return dir.Metrics(unit, p.Epoch, columns...)
	})
	out.TrainSeconds, out.GraphsPerSecond = p.Seconds, run.Float(math.NaN())
	if p.Graphs > 0 {
		out.GraphsPerSecond = run.Float(float64(p.Graphs) / p.Seconds)
	}
	return out, err
}
