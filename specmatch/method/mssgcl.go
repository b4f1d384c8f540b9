package method

import (
	"fmt"
	"math/rand/v2"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/autodiff/nn"
	"github.com/specmatch/specmatch/autodiff/optim"
	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/gnn/augment"
	"github.com/specmatch/specmatch/gnn/random"
	"github.com/specmatch/specmatch/specmatch"
	"github.com/specmatch/specmatch/specmatch/setting"
	"github.com/specmatch/specmatch/specmatch/train"
)

// mssgcl is MSSGCL (Liu et al., Multi-scale subgraph contrastive learning, IJCAI
// 2023). Every graph has four views, connected subgraphs: two global ones g₁, g₂ of
// most of its nodes and two local ones l₁, l₂ of a few. With NCE GraphCL's loss,
// its anchors the first argument, and a critic D of pairs of projections,
//
//	L = NCE(g₁, g₂) + 0.8·¼·Σ_ab NCE(g_a, l_b) + 0.4·mean D(l₁ ‖ l₂).
//
// Before each step of the encoder, the critic takes a step of its own that raises
// mean D(l₁ ‖ l₂) - mean D(l₁ ‖ l₂ of a random graph): the critic learns which local views come from
// the same graph, and the encoder learns to hide it. The running statistics come from raw graphs (the
// setting raw-statistics does that for any method).
//
// The fractions of nodes are 0.8 and 0.2 for molecules, 0.9 and 0.1 for social networks, that is for
// their policies random3 and random4.
//
// Differences of the code: the critic's value is a sigmoid without the logarithm of the paper's game,
// as here. It puts a linear layer without bias in front of the encoder, and draws the encoder's weights
// from Xavier's normal distribution, the critic's from PyTorch's default; here there is no such layer,
// and all weights are Xavier-uniform. Its loader adds a self-loop to every node of a raw graph, as
// GraphCL's does; here there are none. Its subgraphs stop at the end of a graph's component. It prints
// the best of twenty test accuracies; tables here show the last epoch's. There is no code for the
// semi-supervised regime.
var mssgcl = &Method{
	Name:     "mssgcl",
	Title:    "MSSGCL",
	Regimes:  []Regime{Unsupervised, SemiSupervised},
	Settings: []setting.Setting{Policy, Tau, mssgclGlobal, mssgclLocal},
	check: func(s Setup) error {
		global := mssgclGlobal.Of(s.Options)
		local := mssgclLocal.Of(s.Options)
		if (global == 0) != (local == 0) {
			return fmt.Errorf("-mssgcl-global %v -mssgcl-local %v: want both above 0, or both 0",
				global, local)
		}
		return nil
	},
	Recipe: map[Regime]Recipe{Unsupervised: {Rate: 0.005, Epochs: 80, Layers: 5}},
	new: func(s Setup) (*Learner, error) {
		m, rng, err := s.newModel()
		if err != nil {
			return nil, err
		}
		globalShare, localShare := s.mssgclShares()
		global := augment.Subgraph{Ratio: 1 - globalShare}
		local := augment.Subgraph{Ratio: 1 - localShare}
		x := newMultiScale(s, m, rng)
		x.Loader = s.loader(global, global, local, local)
		return s.rawStatistics(&Learner{Learner: x, Model: m}), nil
	},
}

var (
	mssgclGlobal = setting.New(
		"mssgcl-global",
		"`fraction` of the nodes in MSSGCL's global views; if this and -mssgcl-local are 0, -policy\n"+
			"determines both",
		setting.Float(0, 1),
		0,
	)
	mssgclLocal = setting.New(
		"mssgcl-local", "`fraction` of the nodes in MSSGCL's local views", setting.Float(0, 1), 0,
	)
)

// mssgclShares returns the shares of the nodes in global and local views.
func (s Setup) mssgclShares() (global, local float64) {
	global = mssgclGlobal.Of(s.Options)
	local = mssgclLocal.Of(s.Options)
	if global > 0 {
		return global, local
	}
	if policy := Policy.Of(s.Options); policy == augment.Random3 || policy == augment.Random4 {
		return 0.9, 0.1
	}
	return 0.8, 0.2
}

// The weights of MSSGCL's loss.
const (
	localWeight  = 0.8
	criticWeight = 0.4
)

// multiScale learns from subgraphs of two sizes.
type multiScale struct {
	train.Defaults
	*train.Minimizer
	model       *specmatch.Model
	critic      *critic
	criticsAdam *optim.Adam
	loss        specmatch.InfoNCE
	seed        uint64
}

func newMultiScale(s Setup, m *specmatch.Model, rng *rand.Rand) *multiScale {
	d := newCritic(s.Backend, m.Encoder.Width(), rng)
	x := &multiScale{
		Minimizer:   train.NewMinimizer(s.Backend, m, s.Rate),
		model:       m,
		critic:      d,
		loss:        s.crossView(),
		seed:        s.Seed,
		criticsAdam: optim.NewAdam(s.Backend, d.Parameters(), s.Rate),
	}
	x.criticsAdam.Name = "critic.adam"
	return x
}

// Step implements [train.Learner]. A batch of one graph has no negatives.
func (m *multiScale) Step(b train.Batch) (train.Metrics, error) {
	if len(b.Samples) < 2 {
		return nil, nil
	}
	var advantage float64
	metrics, err := m.Minimize(func() *autodiff.Var {
		z := m.views(gnn.NewBatch(m.Tape, b.Graphs))
		partner := random.Stream(m.seed, purposeTask, b.Epoch, b.Index+1).Perm(len(b.Samples))
		advantage = m.train(z[2].Detach(), z[3].Detach(), partner)
		return m.objective(z)
	})
	if err == nil {
		metrics["critic"] = advantage
	}
	return metrics, err
}

// views returns the projections of the four views of a batch.
func (m *multiScale) views(b *gnn.Batch) (z [4]*autodiff.Var) {
	_, projections := m.model.Forward(b, nn.Train)
	for v := range z {
		z[v] = projections.SliceRows(int(b.Host.ViewPtr[v]), int(b.Host.ViewPtr[v+1]))
	}
	return z
}

// train takes a step of the critic on local views. Equal rows belong to the same graph; row i and row
// partner[i] belong to different graphs, except by chance. It returns the difference of the critic's
// means on the two kinds of pairs.
func (m *multiScale) train(l1, l2 *autodiff.Var, partner []int) float64 {
	nn.ZeroGrad(m.critic)
	loss := m.critic.loss(l1, l2, partner)
	m.Tape.Backward(loss)
	m.criticsAdam.Step()
	return -loss.Float()
}

// objective returns the encoder's loss [1×1]; the critic is a constant.
func (m *multiScale) objective(z [4]*autodiff.Var) *autodiff.Var {
	loss := m.loss.Loss(z[0], z[1])
	for _, g := range z[:2] {
		for _, l := range z[2:] {
			loss = loss.Add(m.loss.Loss(g, l).Scale(localWeight / 4))
		}
	}
	m.critic.freeze(true)
	defer m.critic.freeze(false)
	return loss.Add(m.critic.Forward(z[2], z[3]).Mean().Scale(criticWeight))
}

func (m *multiScale) Parameters() []*autodiff.Param {
	return parameters(m.model, m.critic)
}

func (m *multiScale) Buffers() []*nn.Buffer { return buffers(m.model, m.critic) }

func (m *multiScale) State() (nn.Module, any) {
	return optim.Checkpoint{
		Module:    optim.Checkpoint{Module: m, Optimizer: m.Adam},
		Optimizer: m.criticsAdam,
	}, &m.Values
}

// critic estimates whether two vectors of width d belong together: five times Linear → ReLU →
// BatchNorm to width 4·d, then Linear → ReLU → Linear and a sigmoid.
type critic struct {
	layers []*nn.Linear
	norms  []*nn.BatchNorm
	last   *nn.MLP
}

func newCritic(be backend.Backend, d int, rng *rand.Rand) *critic {
	c := &critic{last: nn.NewMLP(be, "critic.last", []int{4 * d, 4 * d, 1}, nn.XavierUniform, rng)}
	width := 2 * d
	for k := range 5 {
		c.layers = append(c.layers, nn.NewLinear(
			be, fmt.Sprintf("critic.layers.%d", k), width, 4*d, nn.XavierUniform, rng,
		))
		c.norms = append(c.norms, nn.NewBatchNorm(be, fmt.Sprintf("critic.norms.%d", k), 4*d))
		width = 4 * d
	}
	return c
}

// Forward returns the column [n×1] of values for the rows of a and b [n×d].
func (c *critic) Forward(a, b *autodiff.Var) *autodiff.Var {
	x := autodiff.ConcatCols(a, b)
	rows := x.Tape().Indices([]int32{0, int32(x.Rows())})
	for k, l := range c.layers {
		x = c.norms[k].Forward(l.ForwardReLU(x), rows, nn.Train)
	}
	x = c.last.Forward(x)
	y := x.Sigmoid()
	t := x.Tape()
	near := x.Abs().Scale(-1).Greater(t.Matrix(1, 1, []float64{-saturated}))
	return y.Mul(near).Add(y.Detach().Mul(near.Scale(-1).Shift(1)))
}

// saturated is the size of a logit from which the sigmoid's slope, below 1e-17, counts as 0. On social
// networks the critic soon reaches it, and then its gradients become subnormal numbers, which make
// matrix products twenty times slower.
const saturated = 40

// loss returns the critic's loss [1×1].
func (c *critic) loss(l1, l2 *autodiff.Var, partner []int) *autodiff.Var {
	idx := make([]int32, len(partner))
	for i, p := range partner {
		idx[i] = int32(p)
	}
	together := c.Forward(l1, l2).Mean()
	return c.Forward(l1, l2.GatherRows(idx)).Mean().Sub(together)
}

// freeze makes the critic a constant, or trainable again.
func (c *critic) freeze(frozen bool) {
	for _, p := range c.Parameters() {
		p.Frozen = frozen
	}
}

// Parameters returns the parameters, layer by layer.
func (c *critic) Parameters() (params []*autodiff.Param) {
	for k := range c.layers {
		params = append(params, parameters(c.layers[k], c.norms[k])...)
	}
	return append(params, c.last.Parameters()...)
}

func (c *critic) Buffers() (buffers []*nn.Buffer) {
	for _, n := range c.norms {
		buffers = append(buffers, n.Buffers()...)
	}
	return buffers
}
