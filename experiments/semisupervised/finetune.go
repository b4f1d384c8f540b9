package main

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/autodiff/nn"
	"github.com/specmatch/specmatch/autodiff/optim"
	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/gnn/augment"
	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/gnn/random"
	"github.com/specmatch/specmatch/specmatch"
)

// curve is what fine-tuning left behind, epoch by epoch: mean losses, and
// accuracies in per cent.
type curve struct {
	Loss           []float64 // on the labelled graphs, while training
	ValidationLoss []float64 // none without a validation set
	Validation     []float64
	Test           []float64
}

// classifier is an encoder with a linear layer that tells classes apart.
type classifier struct {
	encoder gnn.Encoder
	output  *nn.Linear

	be   backend.Backend
	tape *autodiff.Tape
}

func newClassifier(be backend.Backend, e gnn.Encoder, classes int, rng *rand.Rand) *classifier {
	c := &classifier{encoder: e, output: nn.NewLinear(be, "classifier", e.Width(), classes, nn.KaimingUniform, rng), be: be, tape: autodiff.NewTape(be)}
	c.output.ResetBias(be, rng)
	return c
}

// Parameters returns the encoder's and the output layer's.
func (c *classifier) Parameters() []*autodiff.Param {
	return append(c.encoder.Parameters(), c.output.Parameters()...)
}

// Buffers returns the encoder's.
func (c *classifier) Buffers() []*nn.Buffer { return c.encoder.Buffers() }

// logits returns the logits [B×C] of the classes.
func (c *classifier) logits(t *autodiff.Tape, b *graph.Batch, mode nn.Mode) *autodiff.Var {
	return c.output.Forward(c.encoder.Forward(gnn.NewBatch(t, b), mode))
}

// step trains on a batch and returns its loss.
func (c *classifier) step(adam *optim.Adam, b *graph.Batch, classes []int) (float64, error) {
	loss, _, err := specmatch.Minimize(c.tape, c, adam, func() *autodiff.Var {
		return nn.CrossEntropy(c.logits(c.tape, b, nn.Train), classes)
	})
	return loss, err
}

// evaluate returns the mean loss on the given graphs and the accuracy in per
// cent.
func (c *classifier) evaluate(parts []*part) (loss, accuracy float64) {
	t := autodiff.NewInference(c.be)
	graphs, right := 0, 0
	for _, p := range parts {
		logp := c.logits(t, p.batch, nn.Eval).LogSoftmax()
		values, classes := logp.Data(), logp.Cols()
		for i, want := range p.classes {
			row := values[i*classes : (i+1)*classes]
			best := 0
			for k, v := range row {
				if v > row[best] {
					best = k
				}
			}
			if best == want {
				right++
			}
			loss -= row[want]
			graphs++
		}
		t.Reset()
	}
	return loss / float64(graphs), 100 * float64(right) / float64(graphs)
}

// part is a batch of graphs to evaluate, collated once for all epochs.
type part struct {
	batch   *graph.Batch
	classes []int
}

// partNodes bounds the nodes of a part, so that its activations stay in cache.
const partNodes = 4096

func parts(graphs []*graph.Graph, samples []int) []*part {
	var all []*part
	var p *part
	for _, i := range samples {
		if p == nil || p.batch.Nodes() > 0 && p.batch.Nodes()+graphs[i].Nodes() > partNodes {
			p = &part{batch: new(graph.Batch)}
			all = append(all, p)
		}
		p.batch.Append(graphs[i])
		p.classes = append(p.classes, graphs[i].Class)
	}
	for _, p := range all {
		p.batch.EndView()
	}
	return all
}

// loader returns the batches to fine-tune on.
func (j *job) loader(s split) (*augment.Loader, error) {
	view := augment.Augmentation(augment.Identity{})
	if j.method == methodAugmentation {
		var err error
		if view, err = j.pretraining().View(); err != nil {
			return nil, err
		}
	}
	return &augment.Loader{
		Graphs: j.set.data.Graphs, Samples: s.Labelled, Batch: j.x.recipe.Batch,
		Collator: augment.Collator{Views: []augment.Augmentation{view}, Seed: fineSeed(j.seed)},
	}, nil
}

// finetune trains all layers on the labelled graphs of a split, and looks at the
// others after every epoch: the second half of this experiment.
func (j *job) finetune(ctx context.Context, be backend.Backend, encoder gnn.Encoder, s split, fold int) (curve, error) {
	x, ds := j.x, j.set.data
	c := newClassifier(be, encoder, ds.Classes, random.Stream(uint64(j.seed), purposeClassifier, 0, fold))
	adam := optim.NewAdam(be, c.Parameters(), x.fine.LR)
	loader, err := j.loader(s)
	if err != nil {
		return curve{}, err
	}
	validation, test := parts(ds.Graphs, s.Validation), parts(ds.Graphs, s.Test)
	var out curve
	for epoch := range x.fine.Epochs {
		sum := 0.0
		for samples, batch := range loader.Epoch(ctx, epoch) {
			classes := make([]int, len(samples))
			for k, i := range samples {
				classes[k] = ds.Graphs[i].Class
			}
			loss, err := c.step(adam, batch, classes)
			if err != nil {
				return out, fmt.Errorf("fine-tuning, epoch %d: %w", epoch+1, err)
			}
			sum += loss * float64(len(samples))
		}
		if ctx.Err() != nil {
			return out, ctx.Err()
		}
		out.Loss = append(out.Loss, sum/float64(len(s.Labelled)))
		if len(validation) > 0 {
			loss, accuracy := c.evaluate(validation)
			out.ValidationLoss, out.Validation = append(out.ValidationLoss, loss), append(out.Validation, accuracy)
		}
		_, accuracy := c.evaluate(test)
		out.Test = append(out.Test, accuracy)
	}
	return out, nil
}

// The random streams beside those of package pretrain.
const purposeClassifier random.Purpose = 1<<33 + iota

// fineSeed is the seed of the batches of fine-tuning: another than that of
// pre-training, so that the two do not draw the same views.
func fineSeed(seed int) uint64 { return uint64(seed) | 1<<63 }

// choose returns the test accuracy of the folds' curves under a protocol, as a
// mean over the folds, and the epochs taken, counted from 1.
func choose(protocol string, folds []curve) (accuracy float64, epochs []int) {
	if protocol == protocolTestMax {
		best := -1.0
		var at int
		for e := range folds[0].Test {
			sum := 0.0
			for _, f := range folds {
				sum += f.Test[e]
			}
			if mean := sum / float64(len(folds)); mean > best {
				best, at = mean, e
			}
		}
		for range folds {
			epochs = append(epochs, at+1)
		}
		return best, epochs
	}
	for _, f := range folds {
		at := 0
		for e, loss := range f.ValidationLoss {
			if loss < f.ValidationLoss[at] {
				at = e
			}
		}
		accuracy += f.Test[at] / float64(len(folds))
		epochs = append(epochs, at+1)
	}
	return accuracy, epochs
}
