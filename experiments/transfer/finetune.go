package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/autodiff/nn"
	"github.com/specmatch/specmatch/autodiff/optim"
	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/experiments/internal/rundir"
	"github.com/specmatch/specmatch/experiments/internal/units"
	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/gnn/augment"
	"github.com/specmatch/specmatch/gnn/graph"
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
	specmatch.Encoder
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
func (p *predictor) auc(set *taskSet, samples []int) (float64, int, error) {
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
	h := (&specmatch.Model{Encoder: p.Encoder}).Embed(p.be, graphs, nil)
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

// finetune trains all layers on the training part of a set, and looks at the
// other parts after every epoch.
func (x *experiment) finetune(ctx context.Context, j *tuning, say units.Say) (out tuned, err error) {
	be, err := x.engine.Open()
	if err != nil {
		return out, err
	}
	defer be.Close()
	start := time.Now()
	rng := augment.Stream(uint64(j.seed), purposeHead, 0, 0)
	e := x.domain.encoder(be, x.model, true, rng)
	if j.method != methodNone {
		if err := nn.LoadFile(x.weights(j.method), e); err != nil {
			return out, err
		}
	}
	p := &predictor{Encoder: e, be: be, tape: autodiff.NewTape(be)}
	p.output = nn.NewLinear(be, "predictor", e.Width(), j.set.tasks, nn.KaimingUniform, rng)
	p.output.ResetBias(be, rng)
	adam := optim.NewAdam(be, p.Parameters(), x.fine.LR)
	loader := x.loader(j)
	for epoch := range x.fine.Epochs {
		sum := 0.0
		for samples, batch := range loader.Epoch(ctx, epoch) {
			loss, err := specmatch.Minimize(p.tape, p, adam, func() *autodiff.Var { return p.loss(batch, j.set, samples) })
			if err != nil {
				return out, fmt.Errorf("epoch %d: %w", epoch+1, err)
			}
			sum += loss
		}
		if ctx.Err() != nil {
			return out, ctx.Err()
		}
		out.Loss = append(out.Loss, rundir.Float(sum/float64(loader.Batches())))
		valid, _, err := p.auc(j.set, j.set.split.Valid)
		if err != nil {
			return out, err
		}
		test, skipped, err := p.auc(j.set, j.set.split.Test)
		if err != nil {
			return out, err
		}
		out.Valid, out.Test, out.Skipped = append(out.Valid, rundir.Float(valid)), append(out.Test, rundir.Float(test)), skipped
		say("epoch %d of %d, validation %.1f, test %.1f", epoch+1, x.fine.Epochs, valid, test)
	}
	out.Seconds = time.Since(start).Seconds()
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

// formatLosses and parseLosses are a list of numbers as text.
func formatLosses(losses []rundir.Float) string {
	var s []string
	for _, l := range losses {
		s = append(s, strconv.FormatFloat(float64(l), 'g', -1, 64))
	}
	return strings.Join(s, " ")
}

func parseLosses(s string) ([]rundir.Float, error) {
	var losses []rundir.Float
	for _, f := range strings.Fields(s) {
		v, err := strconv.ParseFloat(f, 64)
		if err != nil {
			return nil, err
		}
		losses = append(losses, rundir.Float(v))
	}
	return losses, nil
}
