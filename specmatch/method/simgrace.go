package method

import (
	"math"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/autodiff/nn"
	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/gnn/augment"
	"github.com/specmatch/specmatch/gnn/random"
	"github.com/specmatch/specmatch/specmatch"
	"github.com/specmatch/specmatch/specmatch/setting"
	"github.com/specmatch/specmatch/specmatch/train"
)

// simGRACE is SimGRACE (Xia et al., A simple framework for graph contrastive
// learning without data augmentation, WWW 2022): the second view is not another
// graph but another encoder. At every step
//
//	θ' = θ + η·ε,  ε ~ N(0, s²),
//
// for every tensor θ of the encoder, where s is its unbiased standard deviation. Both encoders see the
// same raw graphs and share the projection head. With projections z and z', the loss is GraphCL's with
// anchors z and candidates z'. The second encoder passes no gradient back. Tensors with equal entries,
// such as biases and norms at the start, have s = 0 and get no noise.
//
// Differences of the code: in the unsupervised regime the anchors are the perturbed projections, so
// that the negatives of z'_i are all z_j, and the head learns from the clean branch only;
// simgrace-perturbed-rows follows it. Its graphs have a self-loop on every node, from GraphCL's loader;
// here there are none. In the semi-supervised regime the anchors are as here. A tensor of one entry,
// whose deviation is 0/0 there, is not changed here. The strength η is one of 0.1, 1, 10 and 100 for
// TU sets, by no stated rule, and 0.1 for molecules, whose code is not published.
var simGRACE = &Method{
	Name:     "simgrace",
	Title:    "SimGRACE",
	Regimes:  []Regime{Unsupervised, SemiSupervised, Transfer},
	Settings: []setting.Setting{Tau, simGRACEEta, simGRACEPerturbedRows},
	Recipe:   map[Regime]Recipe{Unsupervised: {Layers: 5}},
	new: func(s Setup) (*Learner, error) {
		m, _, err := s.newModel()
		if err != nil {
			return nil, err
		}
		twin, _, err := s.NewEncoder()
		if err != nil {
			return nil, err
		}
		return &Learner{Learner: newPerturbed(m, twin, s), Model: m}, nil
	},
}

var (
	simGRACEEta = setting.New(
		"simgrace-eta",
		"strength `η` of SimGRACE's noise, in standard deviations of each weight matrix",
		setting.Positive,
		1,
	).
		In(string(Transfer), 0.1)
	simGRACEPerturbedRows = setting.Flag("simgrace-perturbed-rows",
		"take SimGRACE's anchors from the perturbed encoder, as in its unsupervised code;\n"+
			"false: from the clean encoder")
)

// perturbed learns by comparing an encoder with a copy that has noisy weights.
type perturbed struct {
	train.Defaults
	*train.Minimizer
	model         *specmatch.Model
	twin          gnn.Encoder // the noisy copy; its weights change at every step
	loss          specmatch.InfoNCE
	eta           float64 // η
	perturbedRows bool    // the perturbed projections are the anchors
	seed          uint64
}

func newPerturbed(m *specmatch.Model, twin gnn.Encoder, s Setup) *perturbed {
	for _, p := range twin.Parameters() {
		p.Frozen = true
	}
	return &perturbed{
		Defaults:      train.Defaults{Loader: s.loader(augment.Identity{})},
		Minimizer:     train.NewMinimizer(s.Backend, m, s.Rate),
		model:         m,
		twin:          twin,
		loss:          s.crossView(),
		eta:           simGRACEEta.Of(s.Options),
		perturbedRows: simGRACEPerturbedRows.Of(s.Options),
		seed:          s.Seed,
	}
}

// Step implements [train.Learner]. A batch of one graph has no negatives.
func (g *perturbed) Step(b train.Batch) (train.Metrics, error) {
	if len(b.Samples) < 2 {
		return nil, nil
	}
	return g.Minimize(func() *autodiff.Var {
		batch := gnn.NewBatch(g.Tape, b.Graphs)
		return g.compare(batch, g.noisy(batch, random.Stream(g.seed, purposeTask, b.Epoch, b.Index+1).NormFloat64))
	})
}

// noisy returns the projections [B×D] of a batch by the noisy encoder. draw returns random numbers of
// mean 0 and variance 1.
func (g *perturbed) noisy(b *gnn.Batch, draw func() float64) *autodiff.Var {
	noisy := g.twin.Parameters()
	for i, p := range g.model.Encoder.Parameters() {
		v := make([]float64, p.Value.Len())
		p.Backend().Download(v, p.Value)
		perturb(v, g.eta, draw)
		p.Backend().Upload(noisy[i].Value, v)
	}
	return g.model.Head.Forward(g.twin.Forward(b, nn.Train)).Detach()
}

// compare returns the loss [1×1] of a batch with its noisy projections.
func (g *perturbed) compare(b *gnn.Batch, noisy *autodiff.Var) *autodiff.Var {
	_, z := g.model.Forward(b, nn.Train)
	if g.perturbedRows {
		return g.loss.Loss(noisy, z)
	}
	return g.loss.Loss(z, noisy)
}

// perturb adds noise of eta times the standard deviation of x to x. It does not change fewer than two
// entries, or entries that are all equal.
func perturb(x []float64, eta float64, draw func() float64) {
	if len(x) < 2 {
		return
	}
	// Differences from the first entry keep equal entries exactly equal.
	n := float64(len(x))
	mean := 0.0
	sum := 0.0
	for _, v := range x {
		mean += (v - x[0]) / n
	}
	for _, v := range x {
		sum += (v - x[0] - mean) * (v - x[0] - mean)
	}
	scale := eta * math.Sqrt(sum/(n-1))
	for i := range x {
		x[i] += scale * draw()
	}
}
