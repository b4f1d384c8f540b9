package method

import (
	"math/rand/v2"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/autodiff/nn"
	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/gnn/augment"
	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/gnn/random"
	"github.com/specmatch/specmatch/specmatch"
	"github.com/specmatch/specmatch/specmatch/train"
)

// Task is a pretext task: a question about a graph whose answer is known without
// labels, for example what was hidden from the encoder, or whether something belongs
// to the graph. It owns the encoder and whatever it adds to it. The tasks are those
// of Hu et al. (Strategies for pre-training graph neural networks, ICLR 2020) as
// their code runs them, but for two corners: edge prediction takes a pair of nodes once in
// whatever order, and a batch in which one context is left is passed over.
type Task interface {
	// Parameters and Buffers are those of the encoder and of what the task adds.
	nn.Module
	// Loss returns the loss [1×1] of a batch of graphs in one view, or nil if the
	// batch has nothing to learn from. Random choices are drawn from rng. Loss may
	// change the batch; the caller must not change it before the tape's Reset.
	Loss(b *graph.Batch, t *autodiff.Tape, rng *rand.Rand) *autodiff.Var
}

// parameters returns those of modules, one after another.
func parameters(modules ...nn.Module) (params []*autodiff.Param) {
	for _, m := range modules {
		params = append(params, m.Parameters()...)
	}
	return params
}

// buffers returns those of modules, one after another.
func buffers(modules ...nn.Module) (list []*nn.Buffer) {
	for _, m := range modules {
		list = append(list, m.Buffers()...)
	}
	return list
}

// newPretext returns the learner of a task on graphs as they are. The task draws
// the weights that it adds after those of the encoder.
func newPretext(s Setup, newTask func(s Setup, e gnn.Encoder, rng *rand.Rand) (Task, error)) (*Learner, error) {
	e, rng, err := s.NewEncoder()
	if err != nil {
		return nil, err
	}
	task, err := newTask(s, e, rng)
	if err != nil {
		return nil, err
	}
	p := &pretext{
		Defaults:  train.Defaults{Loader: s.loader(augment.Identity{})},
		Minimizer: train.NewMinimizer(s.Backend, task, s.Rate),
		task:      task,
		seed:      s.Seed,
	}
	return &Learner{Learner: p, Model: &specmatch.Model{Encoder: e}}, nil
}

type pretext struct {
	train.Defaults
	*train.Minimizer
	task Task
	seed uint64
}

func (p *pretext) Step(b train.Batch) (train.Metrics, error) {
	return p.Minimize(func() *autodiff.Var {
		return p.task.Loss(b.Graphs, p.Tape, random.Stream(p.seed, purposeTask, b.Epoch, b.Index+1))
	})
}

// isTrue and isFalse return the means [1×1] of -ln σ(s) and of -ln(1-σ(s)) over
// logits s of any shape.
func isTrue(s *autodiff.Var) *autodiff.Var  { return s.Scale(-1).Softplus().Mean() }
func isFalse(s *autodiff.Var) *autodiff.Var { return s.Softplus().Mean() }

// rowDots returns the dot products [N×1] of corresponding rows of a and b [N×F].
func rowDots(a, b *autodiff.Var) *autodiff.Var { return a.Mul(b).RowSums() }

// shifted returns 1, 2, …, n-1, 0: each graph's partner as a negative.
func shifted(n int) []int32 {
	idx := make([]int32, n)
	for i := range idx {
		idx[i] = int32((i + 1) % n)
	}
	return idx
}

// sample returns k different numbers below n, in random order.
func sample(rng *rand.Rand, n, k int) []int {
	p := make([]int, n)
	for i := range p {
		p[i] = i
	}
	for i := range k {
		j := i + rng.IntN(n-i)
		p[i], p[j] = p[j], p[i]
	}
	return p[:k]
}

// maskedShare is the share of nodes or edges that the masking tasks hide.
const maskedShare = 0.15

// masked returns how many of n are hidden: one more than the share, rounded down.
func masked(n int) int { return min(n, int(maskedShare*float64(n))+1) }
