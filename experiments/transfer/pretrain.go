package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/autodiff/nn"
	"github.com/specmatch/specmatch/autodiff/optim"
	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/experiments/internal/checkpoint"
	"github.com/specmatch/specmatch/experiments/internal/cli"
	"github.com/specmatch/specmatch/experiments/internal/pretrain"
	"github.com/specmatch/specmatch/experiments/internal/rundir"
	"github.com/specmatch/specmatch/experiments/internal/units"
	"github.com/specmatch/specmatch/gnn/augment"
	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/gnn/random"
	"github.com/specmatch/specmatch/specmatch"
	"github.com/specmatch/specmatch/specmatch/pretext"
)

// pretrained is what pre-training leaves in the journal, beside its weights.
type pretrained struct {
	Seconds         float64
	GraphsPerSecond rundir.Float
	Epochs          []pretrain.Epoch
}

// weights is where the pre-trained encoder of a method lies, and checkpoint where
// its training stands.
func (x *experiment) weights(method string) string {
	run := x.source.Pretrained
	if run == "" {
		run = x.dir.Path
	}
	return filepath.Join(run, "weights", method+".safetensors")
}

func (x *experiment) checkpoint(method string) string {
	return x.dir.Join("weights", method+".checkpoint.safetensors")
}

// checkPretrained returns an error unless the run of -pretrained, if there is one,
// pre-trained all methods with the settings of this one.
func (x *experiment) checkPretrained(flags *cli.FlagSet) error {
	if x.source.Pretrained == "" {
		return nil
	}
	var weights []string
	for _, method := range x.source.Methods {
		if method != methodNone {
			weights = append(weights, x.weights(method))
		}
	}
	mayDiffer := []string{"finetune-batch", "dropout"}
	if x.source.Domain == domainChem { // otherwise the corpus lies there
		mayDiffer = append(mayDiffer, "data")
	}
	return rundir.CheckPretrained(x.source.Pretrained, "transfer", flags, mayDiffer, weights)
}

// pretrainAll is the first half of the experiment; what it returns is empty with
// -pretrained.
func (x *experiment) pretrainAll(ctx context.Context, stderr io.Writer) (map[string]pretrained, error) {
	if x.source.Pretrained != "" {
		return nil, nil
	}
	if err := os.MkdirAll(x.dir.Join("weights"), 0o777); err != nil {
		return nil, err
	}
	var list []units.Unit[pretrained]
	var of []string
	for _, method := range x.source.Methods {
		if method == methodNone {
			continue
		}
		of = append(of, method)
		list = append(list, units.Unit[pretrained]{Name: "pretrain/" + method, Run: func(ctx context.Context, say units.Say) (pretrained, error) {
			return x.pretrain(ctx, method, say)
		}})
	}
	results, err := units.Run(ctx, x.dir, stderr, list)
	if err != nil {
		return nil, err
	}
	trained := map[string]pretrained{}
	for i, r := range results {
		trained[of[i]] = r
	}
	return trained, nil
}

// stepper trains an encoder on batches.
type stepper struct {
	encoder encoder
	all     nn.Module // the encoder and what it is trained with
	adam    *optim.Adam
	views   []augment.Augmentation
	trainer *specmatch.Trainer // of a contrastive method
	empty   pretrain.Epoch     // before its first step
	// step trains on the k-th batch of an epoch. It and last return the stats of a
	// step that has ended, see [specmatch.Stepper]; none has where there is nothing
	// to learn from.
	step  func(b *graph.Batch, epoch, k int) (s specmatch.Stats, ok bool, err error)
	last  func() (s specmatch.Stats, ok bool, err error)
	close func() error
}

// stepper returns how a method trains.
func (x *experiment) stepper(be backend.Backend, method string) *stepper {
	rng := random.Stream(0, purposeInit, 0, 0)
	s := &stepper{encoder: x.domain.encoder(be, x.model, false, rng)}
	o, contrastive := x.objective(method)
	if contrastive {
		m := specmatch.NewModel(be, s.encoder, rng)
		s.trainer = specmatch.NewTrainer(be, m, o, x.recipe.LR)
		s.all, s.adam, s.views = m, s.trainer.Optimizer, []augment.Augmentation{x.domain.view, x.domain.view}
		steps := specmatch.NewStepper(s.trainer)
		s.step = func(b *graph.Batch, _, k int) (specmatch.Stats, bool, error) {
			if k == 1 { // looked at more closely
				stats, err := s.trainer.Step(b, true)
				return stats, err == nil, err
			}
			return steps.Step(b)
		}
		s.last, s.close = steps.Last, steps.Close
		return s
	}
	task := x.task(be, method, s.encoder, rng)
	s.all, s.adam, s.views = task, optim.NewAdam(be, task.Parameters(), x.recipe.LR), []augment.Augmentation{augment.Identity{}}
	tape := autodiff.NewTape(be)
	s.empty = pretrain.WithoutProbe()
	s.step = func(b *graph.Batch, epoch, k int) (specmatch.Stats, bool, error) {
		loss, ok, err := specmatch.Minimize(tape, task, s.adam, func() *autodiff.Var {
			return task.Loss(b, tape, random.Stream(0, purposeTask, epoch, k))
		})
		return specmatch.Stats{Loss: loss}, ok, err
	}
	s.last = func() (s specmatch.Stats, ok bool, err error) { return s, false, nil }
	s.close = func() error { return nil }
	return s
}

// objective returns the loss of a contrastive method.
func (x *experiment) objective(method string) (specmatch.Objective, bool) {
	o := specmatch.Objective{
		Contrast: specmatch.InfoNCE{Temperature: x.loss.Tau},
		Match:    specmatch.LaplacianMatch{Kappa: x.loss.Kappa, Percentile: x.loss.P},
	}
	switch method {
	case cli.GraphCL:
		o.Contrast.Variant = specmatch.CrossView
	case cli.SpecMatch:
		o.Beta = specmatch.BetaSchedule{Beta: x.loss.Beta.Weight, Ratio: x.loss.Beta.Ratio}
	case cli.InfoNCE:
	default:
		return o, false
	}
	return o, true
}

// task returns the pretext task of a method.
func (x *experiment) task(be backend.Backend, method string, e encoder, rng *rand.Rand) pretext.Task {
	width := x.model.Hidden
	switch method {
	case methodEdges:
		return pretext.NewEdgePrediction(e)
	case methodMasking:
		return x.domain.masking(be, e, width, rng)
	case methodInfomax:
		return pretext.NewInfomax(be, e, width, rng)
	case methodContext:
		contexts := x.model
		contexts.Layers = pretext.ContextLayers
		return x.domain.context(e, x.domain.encoder(be, contexts, false, rng), x.model.Layers)
	}
	panic("transfer: no method " + method) // -method admits no other
}

// standing is where pre-training stands between two steps.
type standing struct {
	Epochs  []pretrain.Epoch // that are finished
	Batches int              // of the present one
	Steps   int              // that ended among them
	Sum     pretrain.Epoch   // over these
	Trainer specmatch.TrainerState
	Seconds float64 // of training, in all starts
	Graphs  int     // trained on in them
}

// pretrain trains an encoder, from its checkpoint if there is one.
func (x *experiment) pretrain(ctx context.Context, method string, say units.Say) (out pretrained, err error) {
	be, err := x.engine.Open()
	if err != nil {
		return out, err
	}
	defer be.Close()
	s := x.stepper(be, method)
	defer s.close()
	at := standing{Sum: s.empty}
	if err := checkpoint.Load(x.checkpoint(method), s.state(), &at); err != nil {
		return out, err
	}
	if s.trainer != nil {
		s.trainer.SetState(at.Trainer)
	}
	loader := &augment.Loader{Graphs: x.domain.corpus, Batch: x.recipe.Batch, Collator: augment.Collator{Views: s.views}}
	before, start, saved := at.Seconds, time.Now(), time.Now()
	save := func() error {
		saved = time.Now()
		at.Seconds = before + saved.Sub(start).Seconds()
		if s.trainer != nil {
			at.Trainer = s.trainer.State()
		}
		return checkpoint.Save(x.checkpoint(method), s.state(), at)
	}
	for epoch := len(at.Epochs); epoch < x.recipe.Epochs; epoch++ {
		k := 0
		take := func(stats specmatch.Stats, ok bool, err error) error {
			if err != nil {
				return fmt.Errorf("epoch %d, batch %d: %w", epoch+1, k, err)
			}
			if ok {
				at.Sum.Add(stats)
				at.Steps++
			}
			return nil
		}
		for samples, batch := range loader.Epoch(ctx, epoch) {
			if k++; k <= at.Batches {
				continue // trained on before the interruption
			}
			if len(s.views) == 2 && len(samples) < 2 {
				continue // one graph has no negatives
			}
			if x.beforeStep != nil {
				x.beforeStep()
			}
			if err := take(s.step(batch, epoch, k)); err != nil {
				return out, err
			}
			at.Batches = k
			at.Graphs += len(samples)
			if k%16 == 0 {
				say("epoch %d, batch %d of %d, loss %.3f, %.0f graphs/s", epoch+1, k, loader.Batches(), float64(at.Sum.Mean(max(at.Steps, 1)).Loss), float64(at.Graphs)/(before+time.Since(start).Seconds()))
			}
			if time.Since(saved) > x.source.Checkpoint {
				if err := take(s.last()); err != nil {
					return out, err
				}
				if err := save(); err != nil {
					return out, err
				}
			}
		}
		if err := take(s.last()); err != nil {
			return out, err
		}
		if ctx.Err() != nil {
			return out, errors.Join(ctx.Err(), save())
		}
		if at.Steps == 0 {
			return out, fmt.Errorf("epoch %d: no batch of the corpus has anything that %s could learn from", epoch+1, method)
		}
		mean := at.Sum.Mean(at.Steps)
		at = standing{Epochs: append(at.Epochs, mean), Sum: s.empty, Graphs: at.Graphs} // save adds the rest
		err := x.dir.Metrics("pretrain/"+method, epoch+1, append([]slog.Attr{slog.String("method", method)}, mean.Columns()...)...)
		if err != nil {
			return out, err
		}
		if err := save(); err != nil {
			return out, err
		}
	}
	out.Seconds, out.Epochs = at.Seconds, at.Epochs
	out.GraphsPerSecond = rundir.Float(float64(at.Graphs) / out.Seconds)
	return out, nn.SaveFile(x.weights(method), s.encoder, map[string]string{"method": method, "epochs": strconv.Itoa(len(at.Epochs))})
}

// state is what a checkpoint keeps of the training.
func (s *stepper) state() optim.Checkpoint { return optim.Checkpoint{Module: s.all, Optimizer: s.adam} }
