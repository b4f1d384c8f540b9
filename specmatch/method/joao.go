package method

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/autodiff/nn"
	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/gnn/augment"
	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/gnn/molecule/feature"
	"github.com/specmatch/specmatch/gnn/random"
	"github.com/specmatch/specmatch/specmatch"
	"github.com/specmatch/specmatch/specmatch/setting"
	"github.com/specmatch/specmatch/specmatch/train"
	"github.com/specmatch/specmatch/tensor"
)

// joao is JOAO (You et al., Graph contrastive learning automated, ICML 2021): GraphCL with augmentations
// drawn from a distribution P that learns as well. One of K arms is drawn for every graph. In the
// unsupervised regime, the first view is the raw graph, and an arm is one of dropN, permE, subgraph,
// maskN and none for the second view. In the other regimes an arm is one of the 25 pairs of these.
// After every epoch, with ℓ_n the loss of arm n alone on the first batches,
//
//	P ← the projection on the simplex of P + ℓ - γ·(P - 1/K):
//
// this ascends the loss, so that the hardest arm gains. With γ = 1 the former P cancels; in the first
// epoch, where P is 1/K, γ has no effect. In both cases an arm whose loss leads by 1 or more takes the
// whole distribution.
//
// Differences of the code: the passes over the arms update the running statistics of batch norm, which
// the evaluation then reads (joao-probe-moves). Its arms are GraphCL's faulty augmentations. Its raw
// graphs have a self-loop on every node, from GraphCL's loader; here there are none. It draws the order
// of the unsupervised batches once, so that it measures the arms on the graphs of the first training
// batches. Its semi-supervised loader draws the same views in every epoch. γ is one of 0.01, 0.1 and 1,
// by no stated rule.
var joao = &Method{
	Name:     "joao",
	Title:    "JOAO",
	Regimes:  []Regime{Unsupervised, SemiSupervised, Transfer},
	Settings: joaoSettings,
	check:    checkJOAO,
	Recipe:   map[Regime]Recipe{Transfer: {Epochs: 100}},
	new: func(s Setup) (*Learner, error) {
		m, _, err := s.newModel()
		if err != nil {
			return nil, err
		}
		j, err := newJoint(s, m.Encoder, []*nn.MLP{m.Head})
		return &Learner{Learner: j, Model: m}, err
	},
}

// joaov2 is JOAOv2 of the same paper: a projection head for each of the five augmentations. A view goes
// through the head of its augmentation.
//
// Difference of the code: an arm drawn once per epoch selects the heads for all graphs, whatever their
// own arms are. In the unsupervised regime, the raw view then has dropN's head, and both views have it
// while the arms are measured (joao-heads-by-epoch).
var joaov2 = &Method{
	Name:     "joaov2",
	Title:    "JOAOv2",
	Regimes:  joao.Regimes,
	Settings: joaoSettings,
	check:    checkJOAO,
	Recipe: map[Regime]Recipe{
		Unsupervised:   {Rate: 0.001, Epochs: 40},
		SemiSupervised: {Epochs: 200},
		Transfer:       {Epochs: 100},
	},
	new: func(s Setup) (*Learner, error) {
		e, rng, err := s.NewEncoder()
		if err != nil {
			return nil, err
		}
		var heads []*nn.MLP
		for k := range joaoOps {
			w := e.Width()
			heads = append(heads, nn.NewMLP(
				s.Backend, fmt.Sprintf("proj_head.%d", k), []int{w, w, w}, nn.XavierUniform, rng,
			))
		}
		j, err := newJoint(s, e, heads)
		return &Learner{Learner: j, Model: &specmatch.Model{Encoder: e}}, err
	},
}

var (
	joaoGamma = setting.New(
		"joao-gamma",
		"strength `γ` of the pull of JOAO's distribution over augmentations to the uniform one",
		setting.Float(0, 1),
		0.1,
	)
	joaoHeadsByEpoch = setting.Flag("joao-heads-by-epoch",
		"draw JOAOv2's projection heads once per epoch for all graphs, as in its code;\n"+
			"false: use the heads of each graph's augmentations")
	joaoProbeMoves = setting.Flag("joao-probe-moves",
		"let the measurement of JOAO's augmentations update the running statistics, as in its code")
)

var joaoSettings = []setting.Setting{Ratio, Tau, joaoGamma, joaoHeadsByEpoch, joaoProbeMoves}

func checkJOAO(s Setup) error {
	if rawStatistics.Of(s.Options) && joaoProbeMoves.Of(s.Options) {
		return errors.New("-raw-statistics keeps augmented graphs from updating the running statistics, which " +
			"-joao-probe-moves requires: want one of them")
	}
	return nil
}

// joaoOps lists the augmentations in the order of the code.
var joaoOps = [...]augment.Op{augment.DropN, augment.PermE, augment.Sub, augment.MaskN, augment.None}

// joaoView returns the augmentation op for the graphs of a setup.
func (s Setup) joaoView(op augment.Op) (augment.Augmentation, error) {
	if categories := s.Encoder.In == 0; categories && op == augment.MaskN {
		mask := int32(proteinMask)
		if s.Encoder.Kind == gnn.KindChemGIN {
			c, err := feature.ByName(s.Encoder.Atoms)
			if err != nil {
				return nil, err
			}
			mask = c.Masked()
		}
		return categoryMasking{Ratio.Of(s.Options), mask}, nil
	}
	return augment.ParsePolicy(string(op), augment.ImplIntended, Ratio.Of(s.Options))
}

// proteinMask is the category of a hidden protein; visible proteins have the other one.
const proteinMask = 0

// categoryMasking is maskN for encoders of categories: ⌊r·n⌋ of the n nodes get the category of hidden
// nodes.
type categoryMasking struct {
	ratio float64 // r
	mask  int32
}

// Name implements [augment.Augmentation].
func (categoryMasking) Name() string { return string(augment.MaskN) }

func (m categoryMasking) Append(dst *graph.Batch, g *graph.Graph, rng *rand.Rand, _ *augment.Workspace) {
	dst.Append(g)
	n := g.Nodes()
	categories := dst.X.Category[len(dst.X.Category)-n:]
	for _, i := range sample(rng, n, augment.Share(m.ratio, n)) {
		categories[i] = m.mask
	}
}

// arm is an outcome of P: an index into joaoOps for each view.
type arm [2]int

// joint trains an encoder on views by arms drawn from a distribution, and learns the distribution.
type joint struct {
	train.Defaults
	*train.Minimizer
	encoder                  gnn.Encoder
	heads                    []*nn.MLP // one, or one for each of joaoOps
	loss                     specmatch.InfoNCE
	gamma                    float64 // γ
	headsByEpoch, probeMoves bool
	rawView                  bool // the first view is the raw graph
	arms                     []arm
	views                    []augment.Augmentation // of joaoOps
	be                       backend.Backend
	seed                     uint64
	state                    joaoState

	drawn []arm                              // of every graph, in the present epoch
	head  func(view, sample int) (index int) // with several heads
}

type joaoState struct{ P []float64 }

func newJoint(s Setup, e gnn.Encoder, heads []*nn.MLP) (*joint, error) {
	j := &joint{
		encoder:      e,
		heads:        heads,
		loss:         s.crossView(),
		gamma:        joaoGamma.Of(s.Options),
		headsByEpoch: joaoHeadsByEpoch.Of(s.Options),
		probeMoves:   joaoProbeMoves.Of(s.Options),
		rawView:      s.Regime == Unsupervised,
		be:           s.Backend,
		seed:         s.Seed,
		drawn:        make([]arm, len(s.Graphs)),
	}
	for k, op := range joaoOps {
		view, err := s.joaoView(op)
		if err != nil {
			return nil, err
		}
		j.views = append(j.views, view)
		for l := range joaoOps {
			if a := (arm{k, l}); !j.rawView || op == augment.None {
				j.arms = append(j.arms, a)
			}
		}
	}
	for range j.arms {
		j.state.P = append(j.state.P, 1/float64(len(j.arms)))
	}
	j.Loader = s.loader(augment.Identity{}, augment.Identity{})
	j.Loader.Collator.Choose = func(view, sample int) augment.Augmentation {
		return j.views[j.drawn[sample][view]]
	}
	j.Minimizer = train.NewMinimizer(s.Backend, j, s.Rate)
	return j, nil
}

func (j *joint) Parameters() []*autodiff.Param {
	params := j.encoder.Parameters()
	for _, h := range j.heads {
		params = append(params, h.Parameters()...)
	}
	return params
}

func (j *joint) Buffers() []*nn.Buffer { return j.encoder.Buffers() }

// name returns the arm's name in metrics.
func (j *joint) name(a arm) string {
	if j.rawView {
		return "p_" + string(joaoOps[a[1]])
	}
	return "p_" + string(joaoOps[a[0]]) + "_" + string(joaoOps[a[1]])
}

// Epoch implements [train.Learner]. It draws an arm for every graph.
func (j *joint) Epoch(ctx context.Context, epoch int) iter.Seq2[[]int, *graph.Batch] {
	rng := random.Stream(j.seed, purposeTask, epoch, 0)
	for i := range j.drawn {
		j.drawn[i] = j.arms[draw(j.state.P, rng)]
	}
	j.head = func(view, sample int) int { return j.drawn[sample][view] }
	if j.headsByEpoch {
		heads := j.arms[draw(j.state.P, rng)]
		if j.rawView {
			heads[0] = 0
		}
		j.head = func(view, _ int) int { return heads[view] }
	}
	return j.Loader.Epoch(ctx, epoch)
}

// draw returns i with probability p_i.
func draw(p []float64, rng *rand.Rand) int {
	u := rng.Float64()
	index := 0
	for i, v := range p {
		if v > 0 {
			index = i
			u -= v
			if u < 0 {
				return i
			}
		}
	}
	return index // where the sum is rounded below 1
}

// Step implements [train.Learner]. A batch of one graph has no negatives.
func (j *joint) Step(b train.Batch) (train.Metrics, error) {
	if len(b.Samples) < 2 {
		return nil, nil
	}
	return j.Minimize(func() *autodiff.Var {
		return j.contrast(j.Tape, b.Graphs, b.Samples)
	})
}

// contrast returns the loss [1×1] of a batch of two views of the samples.
func (j *joint) contrast(t *autodiff.Tape, b *graph.Batch, samples []int) *autodiff.Var {
	n := len(samples)
	z := j.project(j.encoder.Forward(gnn.NewBatch(t, b), nn.Train), samples)
	return j.loss.Loss(z.SliceRows(0, n), z.SliceRows(n, 2*n))
}

// project returns the projections [2n×D] of the embeddings h of two views of n samples. Each row goes
// through its own head.
func (j *joint) project(h *autodiff.Var, samples []int) *autodiff.Var {
	if len(j.heads) == 1 {
		return j.heads[0].Forward(h)
	}
	n := len(samples)
	rows := make([][]int32, len(j.heads)) // of each head
	for r := range 2 * n {
		k := j.head(r/n, samples[r%n])
		rows[k] = append(rows[k], int32(r))
	}
	var parts []*autodiff.Var
	place := make([]int32, 2*n) // of every row among the parts
	next := int32(0)
	for k, indices := range rows {
		if len(indices) == 0 {
			continue
		}
		parts = append(parts, j.heads[k].Forward(h.GatherRows(indices)))
		for _, r := range indices {
			place[r] = next
			next++
		}
	}
	return autodiff.ConcatRows(parts...).GatherRows(place)
}

// probes is added to the number of an epoch for the batches on which its arms are measured. No epoch
// trains on them.
const probes = 1 << 40

// End implements [train.Learner]: it measures the arms and updates P.
func (j *joint) End(ctx context.Context, epoch int) (metrics train.Metrics, err error) {
	defer backend.Recover(&err)
	buffers := train.Keep(j)
	defer buffers.Free()
	losses, err := j.measure(ctx, probes+epoch)
	if err != nil || !j.probeMoves {
		buffers.Restore()
	}
	if err != nil {
		return nil, err
	}
	j.state.P = ascend(j.state.P, losses, j.gamma)
	metrics = train.Metrics{}
	for i, a := range j.arms {
		metrics[j.name(a)] = j.state.P[i]
	}
	return metrics, nil
}

// measure returns the mean loss of every arm alone on the first batches of an epoch: one more than a
// fifth of all batches in the unsupervised regime, one more than a tenth of the full batches in the
// others. The projections of a view do not depend on the augmentation of the other view, so the five
// pairs of equal augmentations give the projections of all 25 pairs.
func (j *joint) measure(ctx context.Context, epoch int) ([]float64, error) {
	count := len(j.Loader.Graphs)/j.Loader.Batch/10 + 1
	if j.rawView {
		count = j.Loader.Batches()/5 + 1
	}
	t := autodiff.NewInference(j.be)
	// projections [n×D] of the batches, by view and augmentation
	var views [2][len(joaoOps)][]*tensor.Tensor
	defer func() {
		t.Reset()
		for v := range views {
			for _, z := range slices.Concat(views[v][:]...) {
				j.be.Free(z)
			}
		}
	}()
	for _, a := range j.arms {
		if pair := !j.rawView && a[0] != a[1]; pair && !j.probeMoves {
			continue
		}
		for i := range j.drawn {
			j.drawn[i] = a
		}
		j.head = func(view, _ int) int { return a[view] }
		if j.headsByEpoch && j.rawView {
			j.head = func(int, int) int { return 0 }
		}
		batches := 0
		for samples, b := range j.Loader.Epoch(ctx, epoch) {
			if n := len(samples); n > 1 {
				z := j.project(j.encoder.Forward(gnn.NewBatch(t, b), nn.Train), samples).Value()
				for v := range views {
					if projections := &views[v][a[v]]; len(*projections) == batches {
						*projections = append(*projections, j.be.Alloc(n, z.Cols))
						j.be.CopyBlock((*projections)[batches], 0, 0, z, v*n, 0, n, z.Cols)
					}
				}
				t.Reset()
			}
			batches++
			if batches == count {
				break
			}
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
	losses := make([]float64, len(j.arms))
	for k, a := range j.arms {
		losses[k] = j.meanLoss(t, views[0][a[0]], views[1][a[1]])
		if !finite(losses[k]) {
			return nil, fmt.Errorf("method: the loss of %s is %v", j.name(a)[len("p_"):], losses[k])
		}
	}
	return losses, nil
}

// meanLoss returns the mean loss over the graphs of batches, from the projections [n×D] of both views.
func (j *joint) meanLoss(t *autodiff.Tape, first, second []*tensor.Tensor) float64 {
	sum := 0.0
	graphs := 0
	for i, z := range first {
		sum += float64(z.Rows) * j.loss.Loss(t.Const(z), t.Const(second[i])).Float()
		graphs += z.Rows
		t.Reset()
	}
	return sum / float64(max(graphs, 1))
}

// ascend returns the distribution after p, given the losses of the arms.
func ascend(p, losses []float64, gamma float64) []float64 {
	b := make([]float64, len(p))
	for i := range b {
		b[i] = p[i] + losses[i] - gamma*(p[i]-1/float64(len(p)))
	}
	return simplex(b)
}

// simplex returns roughly the distribution nearest to b: max(b_i-μ, 0) divided by its sum, with μ found
// by bisection until the sum is 1 within 0.01, as in JOAO's code.
func simplex(b []float64) []float64 {
	// μ is relative to the largest entry, so that bisection works for b of any size.
	p := make([]float64, len(b))
	top := slices.Max(b)
	lo := slices.Min(b) - top - 1/float64(len(b))
	hi := -1 / float64(len(b))
	for {
		mu := (lo + hi) / 2
		sum := 0.0
		for i, v := range b {
			p[i] = max(v-top-mu, 0)
			sum += p[i]
		}
		if math.Abs(sum-1) <= 0.01 {
			for i := range p {
				p[i] /= sum
			}
			return p
		}
		if sum > 1 {
			lo = mu
		} else {
			hi = mu
		}
	}
}

func (j *joint) State() (nn.Module, any) {
	tensors, _ := j.Minimizer.State()
	return tensors, &j.state
}
