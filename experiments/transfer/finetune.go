package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/autodiff/nn"
	"github.com/specmatch/specmatch/autodiff/optim"
	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/experiments/internal/checkpoint"
	"github.com/specmatch/specmatch/experiments/internal/rundir"
	"github.com/specmatch/specmatch/experiments/internal/units"
	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/gnn/augment"
	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/gnn/random"
	"github.com/specmatch/specmatch/specmatch"
	"github.com/specmatch/specmatch/specmatch/eval"
)

// tuning is a method on a set with a seed.
type tuning struct {
	set    *taskSet
	method string
	seed   int
	result tuned
}

func (t *tuning) name() string {
	return fmt.Sprintf("%s/%s/seed=%d", t.set.name, t.method, t.seed)
}

// tuned is what fine-tuning leaves in the journal: by epoch the mean loss and the
// ROC-AUC in per cent, averaged over the tasks that have both classes; null if
// none has.
type tuned struct {
	Seconds     float64
	Loss        []rundir.Float
	Valid, Test []rundir.Float
	Skipped     int // tasks of the test set without both classes
}

// finetuneAll is the second half of the experiment.
func (x *experiment) finetuneAll(ctx context.Context, stderr io.Writer) ([]*tuning, error) {
	var list []units.Unit[tuned]
	var all []*tuning
	for _, set := range x.domain.sets {
		for _, method := range x.source.Methods {
			for s := range x.recipe.Seeds {
				t := &tuning{set: set, method: method, seed: x.recipe.FirstSeed + s}
				all = append(all, t)
				list = append(list, units.Unit[tuned]{Name: t.name(), Run: func(ctx context.Context, say units.Say) (tuned, error) {
					return x.finetune(ctx, t, say)
				}})
			}
		}
	}
	results, err := units.Run(ctx, x.dir, stderr, list)
	if err != nil {
		return nil, err
	}
	for i, r := range results {
		all[i].result = r
	}
	return all, nil
}

// predictor is an encoder with a linear layer that has one output for each task.
type predictor struct {
	gnn.Encoder
	output *nn.Linear
	tape   *autodiff.Tape
	be     backend.Backend
}

// Parameters returns the encoder's and the output's.
func (p *predictor) Parameters() []*autodiff.Param {
	return append(p.Encoder.Parameters(), p.output.Parameters()...)
}

// loss returns the mean binary cross-entropy over the labels that are there, and
// nil if none is: ln(1+e^s) - y·s for logit s and y of 0 and 1.
func (p *predictor) loss(b *graph.Batch, set *taskSet, samples []int) *autodiff.Var {
	present, yes := make([]float64, len(samples)*set.tasks), make([]float64, len(samples)*set.tasks)
	count := 0
	for k, i := range samples {
		for t, l := range set.labels[i*set.tasks : (i+1)*set.tasks] {
			if l != 0 {
				present[k*set.tasks+t] = 1
				count++
			}
			if l > 0 {
				yes[k*set.tasks+t] = 1
			}
		}
	}
	if count == 0 {
		return nil
	}
	s := p.output.Forward(p.Forward(gnn.NewBatch(p.tape, b), nn.Train))
	constant := func(v []float64) *autodiff.Var { return p.tape.Matrix(len(samples), set.tasks, v) }
	return s.Softplus().Dot(constant(present)).Sub(s.Dot(constant(yes))).Scale(1 / float64(count))
}

// auc returns the ROC-AUC of samples in per cent, averaged over tasks, and the
// number of tasks that have one class only; NaN if all have.
func (p *predictor) auc(ctx context.Context, set *taskSet, samples []int) (float64, int, error) {
	graphs, labels := make([]*graph.Graph, len(samples)), make([]float64, 0, len(samples)*set.tasks)
	for k, i := range samples {
		graphs[k] = set.graphs[i]
		for _, l := range set.labels[i*set.tasks : (i+1)*set.tasks] {
			switch l {
			case 0:
				labels = append(labels, math.NaN())
			default:
				labels = append(labels, float64(l+1)/2)
			}
		}
	}
	h, err := gnn.Embed(ctx, p.be, p.Encoder, graphs, nil)
	if err != nil {
		return 0, 0, err
	}
	t := autodiff.NewInference(p.be)
	defer t.Reset()
	scores := p.output.Forward(t.Matrix(len(samples), p.Width(), h)).Data()
	mean, skipped, err := eval.MeanROCAUC(scores, labels, set.tasks)
	if errors.Is(err, eval.ErrOneClass) {
		return math.NaN(), set.tasks, nil
	}
	return 100 * mean, skipped, err
}

// loader returns the batches to fine-tune on.
func (x *experiment) loader(j *tuning) *augment.Loader {
	return &augment.Loader{
		Graphs: j.set.graphs, Samples: j.set.split.Train, Batch: x.fine.Batch,
		Collator: augment.Collator{Views: []augment.Augmentation{augment.Identity{}}, Seed: uint64(j.seed)},
	}
}

// tuningStand is where fine-tuning stands between two steps: the epochs before, and
// of the present one the batches and the sum of their losses.
type tuningStand struct {
	Tuned   tuned
	Batches int
	Steps   int // batches among them that have a label
	Sum     rundir.Float
}

// tuner is a predictor with all that fine-tuning moves.
type tuner struct {
	*predictor
	dropouts []*nn.Buffer
	adam     *optim.Adam
}

// Buffers returns the predictor's, and the counters of its dropout.
func (t *tuner) Buffers() []*nn.Buffer { return slices.Concat(t.predictor.Buffers(), t.dropouts) }

func (t *tuner) checkpoint() optim.Checkpoint { return optim.Checkpoint{Module: t, Optimizer: t.adam} }

// tuner returns a predictor as fine-tuning begins with it.
func (x *experiment) tuner(be backend.Backend, j *tuning) (*tuner, error) {
	rng := random.Stream(uint64(j.seed), purposeHead, 0, 0)
	e := x.domain.encoder(be, x.model, true, rng)
	if j.method != methodNone {
		if err := nn.LoadFile(x.weights(j.method), e); err != nil {
			return nil, err
		}
	}
	p := &predictor{Encoder: e, be: be, tape: autodiff.NewTape(be)}
	p.output = nn.NewLinear(be, "predictor", e.Width(), j.set.tasks, nn.KaimingUniform, rng)
	p.output.ResetBias(be, rng)
	return &tuner{predictor: p, dropouts: e.DropoutState(), adam: optim.NewAdam(be, p.Parameters(), x.fine.LR)}, nil
}

// finetune trains all layers on the training part of a set, and looks at the
// other parts after every epoch. It goes on from a checkpoint if there is one.
func (x *experiment) finetune(ctx context.Context, j *tuning, say units.Say) (out tuned, err error) {
	be, err := x.engine.Open()
	if err != nil {
		return out, err
	}
	defer be.Close()
	t, err := x.tuner(be, j)
	if err != nil {
		return out, err
	}
	p := t.predictor
	path, err := x.dir.Checkpoint(j.name())
	if err != nil {
		return out, err
	}
	var at tuningStand
	if err := checkpoint.Load(path, t.checkpoint(), &at); err != nil {
		return out, err
	}
	out = at.Tuned
	before, start, saved := out.Seconds, time.Now(), time.Now()
	save := func() error {
		out.Seconds = before + time.Since(start).Seconds()
		at.Tuned, saved = out, time.Now()
		return checkpoint.Save(path, t.checkpoint(), at)
	}
	loader := x.loader(j)
	for epoch := len(out.Loss); epoch < x.fine.Epochs; epoch++ {
		k := 0
		for samples, batch := range loader.Epoch(ctx, epoch) {
			if k++; k <= at.Batches {
				continue // trained on before the interruption
			}
			loss, ok, err := specmatch.Minimize(p.tape, p, t.adam, func() *autodiff.Var { return p.loss(batch, j.set, samples) })
			if err != nil {
				return out, fmt.Errorf("epoch %d: %w", epoch+1, err)
			}
			at.Batches, at.Sum = k, at.Sum+rundir.Float(loss)
			if ok {
				at.Steps++
			}
			if time.Since(saved) > x.source.Checkpoint {
				if err := save(); err != nil {
					return out, err
				}
			}
			if x.afterStep != nil {
				x.afterStep()
			}
		}
		if ctx.Err() != nil {
			return out, errors.Join(ctx.Err(), save())
		}
		out.Loss = append(out.Loss, at.Sum/rundir.Float(at.Steps))
		at.Batches, at.Steps, at.Sum = 0, 0, 0
		valid, _, err := p.auc(ctx, j.set, j.set.split.Valid)
		if err != nil {
			return out, err
		}
		test, skipped, err := p.auc(ctx, j.set, j.set.split.Test)
		if err != nil {
			return out, err
		}
		out.Valid, out.Test, out.Skipped = append(out.Valid, rundir.Float(valid)), append(out.Test, rundir.Float(test)), skipped
		say("epoch %d of %d, validation %.1f, test %.1f", epoch+1, x.fine.Epochs, valid, test)
	}
	out.Seconds = before + time.Since(start).Seconds()
	return out, nil
}

// choose returns the test ROC-AUC under a protocol, and its epoch from 1.
func (t *tuned) choose(protocol string) (auc float64, epoch int) {
	at := len(t.Test) - 1
	if protocol == protocolBest {
		at = 0
		for e, v := range t.Valid {
			if v > t.Valid[at] || math.IsNaN(float64(t.Valid[at])) {
				at = e
			}
		}
	}
	return float64(t.Test[at]), at + 1
}
