package pretrain

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/experiments/internal/cli"
	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/gnn/augment"
	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/gnn/random"
	"github.com/specmatch/specmatch/specmatch"
	"github.com/specmatch/specmatch/specmatch/eval"
)

// purposeInit is the random stream of the initial weights.
const purposeInit random.Purpose = 1 << 32

// Run is one training run: a method on a data set with a seed. Of Loss and
// Recipe it takes the numbers; the lists of methods and seeds are for those who
// list runs.
type Run struct {
	Dataset  *dataset.Dataset
	Method   string // a method of package cli
	Seed     int
	Loss     cli.Loss
	Recipe   cli.Recipe
	Settings Settings
	// Encoder is nil for the GIN of the unsupervised regime.
	Encoder func(be backend.Backend, width int, rng *rand.Rand) gnn.Encoder
	// Semi takes GraphCL's code for the semi-supervised regime in place of that
	// for the unsupervised one: its augmentations, both views augmented, batches
	// reshuffled.
	Semi bool
	// Checkpoint is a file that Train goes on from, if it exists, and writes to in
	// between; "" is none.
	Checkpoint string
}

// asGraphCLCode says whether the run follows GraphCL's code bug for bug.
func (r *Run) asGraphCLCode() bool { return r.Method == cli.GraphCL && r.Settings.GraphCLCode }

// Objective returns the loss.
func (r *Run) Objective() specmatch.Objective {
	o := specmatch.Objective{
		Contrast: specmatch.InfoNCE{Temperature: r.Loss.Tau, Sum: r.Settings.Sum},
		Match: specmatch.LaplacianMatch{
			Adjacency: r.Settings.Adjacency, Kappa: r.Loss.Kappa, Percentile: r.Loss.P,
			RandomWalk: r.Settings.RandomWalk, ThresholdGradient: r.Settings.ThetaGradient,
		},
		OnH: r.Settings.OnH, Center: r.Settings.Center,
	}
	switch r.Method {
	case cli.GraphCL:
		o.Contrast.Variant = specmatch.CrossView
	case cli.SpecMatch:
		b := r.Loss.Beta
		o.Beta = specmatch.BetaSchedule{Beta: b.Weight, Ratio: b.Ratio, WarmupSteps: r.Settings.Warmup}
	}
	return o
}

// View returns the augmentation that the policy asks for, in the intended form.
// An unknown policy is a [cli.UsageError].
func (r *Run) View() (augment.Augmentation, error) {
	return r.view(augment.ImplIntended, r.Settings.Ratio)
}

func (r *Run) view(impl augment.Impl, ratio float64) (augment.Augmentation, error) {
	policy := r.Settings.Policy
	if policy == "auto" {
		policy, _ = augment.PolicyFor(r.Dataset.Name)
	}
	view, err := augment.ParsePolicy(policy, impl, ratio)
	if err != nil {
		return nil, cli.Usagef("-policy: %w", err)
	}
	return view, nil
}

// Loader returns the mini-batches of augmented views. All methods of a seed see
// the same graphs in the same batches; GraphCL by its code keeps one order for
// all epochs and takes the raw graph as its first view, unless Semi is set.
func (r *Run) Loader() (*augment.Loader, error) {
	l := &augment.Loader{Graphs: r.Dataset.Graphs, Batch: r.Recipe.Batch, Collator: augment.Collator{Seed: uint64(r.Seed)}}
	impl, ratio := augment.ImplIntended, r.Settings.Ratio
	switch {
	case r.asGraphCLCode() && r.Semi:
		impl = augment.ImplSemi
	case r.asGraphCLCode():
		impl, ratio = augment.ImplUnsupervised, 0 // the ratios of its code
		l.Order = augment.ShuffleOnce
	}
	view, err := r.view(impl, ratio)
	if err != nil {
		return nil, err
	}
	first := view
	switch {
	case r.Semi:
	case r.asGraphCLCode():
		first = augment.Identity{SelfLoops: true}
	case r.Method == cli.GraphCL:
		first = augment.Identity{}
	}
	l.Collator.Views = []augment.Augmentation{first, view}
	return l, nil
}

// Model returns the model with its initial weights.
func (r *Run) Model(be backend.Backend) *specmatch.Model {
	rng := random.Stream(uint64(r.Seed), purposeInit, 0, 0)
	if r.Encoder == nil {
		return specmatch.NewGINModel(be, r.Dataset.FeatureWidth, rng)
	}
	return specmatch.NewModel(be, r.Encoder(be, r.Dataset.FeatureWidth, rng), rng)
}

// Train is the training loop. After every epoch, counted from 1, it calls each,
// from a checkpoint also for the epochs before it; an error of each ends it. It
// returns the time of all epochs. The untrained method returns at once.
func (r *Run) Train(ctx context.Context, be backend.Backend, model *specmatch.Model, each func(epoch int, e Epoch) error) (seconds float64, err error) {
	if r.Method == cli.Untrained {
		return 0, nil
	}
	loader, err := r.Loader()
	if err != nil {
		return 0, err
	}
	trainer := specmatch.NewTrainer(be, model, r.Objective(), r.Recipe.LR)
	at, err := r.resume(trainer)
	if err != nil {
		return 0, err
	}
	for k, e := range at.Epochs {
		if err := each(k+1, e); err != nil {
			return at.Seconds, err
		}
	}
	steps := specmatch.NewStepper(trainer)
	defer steps.Close()

	saved := time.Now()
	for epoch := len(at.Epochs); epoch < r.Recipe.Epochs; epoch++ {
		start := time.Now()
		var sum Epoch
		batches := 0
		take := func(s specmatch.Stats, ok bool, err error) error {
			if err != nil {
				return fmt.Errorf("epoch %d, batch %d: %w", epoch+1, batches+1, err)
			}
			if ok {
				sum.Add(s)
			}
			return nil
		}
		for _, batch := range loader.Epoch(ctx, epoch) {
			if batches == 0 { // looked at more closely
				s, err := trainer.Step(batch, true)
				if err := take(s, true, err); err != nil {
					return at.Seconds, err
				}
			} else if err := take(steps.Step(batch)); err != nil {
				return at.Seconds, err
			}
			batches++
		}
		if err := take(steps.Last()); err != nil {
			return at.Seconds, err
		}
		if ctx.Err() != nil {
			return at.Seconds, ctx.Err()
		}
		at.Seconds += time.Since(start).Seconds()
		at.Epochs = append(at.Epochs, sum.Mean(batches))
		if err := each(epoch+1, at.Epochs[epoch]); err != nil {
			return at.Seconds, err
		}
		if r.Checkpoint != "" && (epoch+1 == r.Recipe.Epochs || time.Since(saved) > checkpointEvery) {
			if err := r.save(trainer, at); err != nil {
				return at.Seconds, err
			}
			saved = time.Now()
		}
	}
	return at.Seconds, nil
}

// Check returns an error if a run could not be trained or, at the end of it, not be
// evaluated.
func Check(runs []*Run, how cli.Protocol) error {
	checked := map[*dataset.Dataset]bool{}
	for _, r := range runs {
		if _, err := r.Loader(); err != nil {
			return err
		}
		if checked[r.Dataset] { // the sizes of folds do not depend on the seed
			continue
		}
		checked[r.Dataset] = true
		folds, err := r.folds(how)
		if err == nil {
			err = eval.Check(r.Dataset.Labels(), folds, eval.Options{})
		}
		if err != nil {
			return fmt.Errorf("%s in %d folds: %w", r.Dataset.Name, how.Folds, err)
		}
	}
	return nil
}

// folds returns the outer folds of the evaluation.
func (r *Run) folds(how cli.Protocol) ([]dataset.Fold, error) {
	return dataset.StratifiedKFold(r.Dataset.Labels(), how.Folds, true, uint32(r.Seed))
}

// Evaluate returns the accuracy of a support vector machine on the embeddings of
// all graphs, in per cent, by protocol.
func (r *Run) Evaluate(ctx context.Context, be backend.Backend, model *specmatch.Model, how cli.Protocol) (map[string]float64, error) {
	folds, err := r.folds(how)
	if err != nil {
		return nil, err
	}
	h, err := gnn.Embed(ctx, be, model.Encoder, r.Dataset.Graphs, r.evalForm())
	if err != nil {
		return nil, err
	}
	data := eval.Data{X: h, Dim: model.Encoder.Width(), Y: r.Dataset.Labels()}
	accuracy := map[string]float64{}
	for _, name := range how.Protocols {
		p, err := eval.ParseProtocol(name)
		if err != nil {
			return nil, err
		}
		result, err := eval.Evaluate(ctx, p, data, folds, eval.Options{Slots: cores})
		if err != nil {
			return nil, err
		}
		accuracy[name] = 100 * result.Mean
	}
	return accuracy, nil
}

// evalForm appends graphs as GraphCL's code does where the run asks for it: with
// the self-loops that its raw view has.
func (r *Run) evalForm() func(b *graph.Batch, g *graph.Graph) {
	if !r.asGraphCLCode() {
		return nil
	}
	raw, ws := augment.Identity{SelfLoops: true}, new(augment.Workspace)
	return func(b *graph.Batch, g *graph.Graph) { raw.Append(b, g, nil, ws) }
}
