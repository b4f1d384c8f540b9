package method

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/autodiff/nn"
	"github.com/specmatch/specmatch/autodiff/optim"
	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/gnn/augment"
	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/gnn/random"
	"github.com/specmatch/specmatch/specmatch"
	"github.com/specmatch/specmatch/specmatch/setting"
	"github.com/specmatch/specmatch/specmatch/train"
	"github.com/specmatch/specmatch/tensor"
)

// cuCo is CuCo (Chu et al., CuCo: Graph representation with curriculum contrastive
// learning, IJCAI 2021). At the start of every epoch the encoder embeds all N graphs,
// without the projection: the memory. For the projections q_j of a graph and q'_j of
// a view of it, the memory is sorted by its similarity to q_j, the least similar
// first, and 16 ranks, the same for all j, are drawn from 1 to √(e/20)·N in epoch e:
// the negatives n_jk. Of cosines,
//
//	L = mean_j -ln( e^(q_j·q'_j/τ) / (e^(q_j·q'_j/τ) + Σ_k e^(q_j·n_jk/τ)) ).
//
// When the loss of an epoch exceeds that of the previous one, the number of negatives is halved. With
// two negatives left, at the third rise, training ends.
//
// Differences of the code: the passes that fill the memory update the running statistics of batch norm.
// The highest rank of epoch 20, N, is out of range; here it is N-1. Its raw graphs have a self-loop on
// every node, from GraphCL's loader; here there are none. Its augmentations are inverted: its default
// dropN keeps only a tenth of the nodes (cuco-inverted). Here the view follows the policy of the other
// methods.
var cuCo = &Method{
	Name:     "cuco",
	Title:    "CuCo",
	Regimes:  []Regime{Unsupervised},
	Settings: []setting.Setting{Policy, Ratio, Tau, cucoInverted},
	ignores: func(s Setup) []setting.Setting {
		if cucoInverted.Of(s.Options) {
			return []setting.Setting{Policy, Ratio}
		}
		return nil
	},
	Recipe: map[Regime]Recipe{Unsupervised: {Layers: 5}},
	new: func(s Setup) (*Learner, error) {
		view, err := s.View()
		if err != nil {
			return nil, err
		}
		if cucoInverted.Of(s.Options) {
			view = augment.NodeDropping{Ratio: 0.9}
		}
		if len(s.Graphs) < 2 {
			return nil, errors.New("method: cuco needs at least two graphs")
		}
		m, _, err := s.newModel()
		if err != nil {
			return nil, err
		}
		return &Learner{Learner: newCurriculum(s, m, s.loader(augment.Identity{}, view)), Model: m}, nil
	},
}

var cucoInverted = setting.Flag("cuco-inverted",
	"keep only a tenth of the nodes in CuCo's view, as in its code")

// The curriculum of CuCo's code.
const (
	cucoNegatives = 16
	cucoPace      = 20 // epochs until all ranks may be drawn
)

// curriculum learns from negatives that become harder from epoch to epoch.
type curriculum struct {
	train.Defaults
	*train.Minimizer
	model  *specmatch.Model
	tau    float64
	memory *tensor.Tensor // [N×width], unit rows
	all    *augment.Loader
	be     backend.Backend
	seed   uint64
	state  curriculumState
}

type curriculumState struct {
	Negatives int
	Epochs    int     // finished epochs
	Last      float64 // sum of the losses in the last finished epoch
	Sum       float64 // sum of the losses in the present epoch
}

func newCurriculum(s Setup, m *specmatch.Model, loader *augment.Loader) *curriculum {
	c := &curriculum{
		Defaults:  train.Defaults{Loader: loader},
		Minimizer: train.NewMinimizer(s.Backend, m, s.Rate),
		model:     m,
		tau:       Tau.Of(s.Options),
		memory:    s.Backend.Alloc(len(s.Graphs), m.Encoder.Width()),
		all:       s.loader(augment.Identity{}),
		be:        s.Backend,
		seed:      s.Seed,
		state:     curriculumState{Negatives: cucoNegatives},
	}
	c.all.Order = augment.Sequential
	s.Backend.Fill(c.memory, 0)
	return c
}

// Begin implements [train.Learner]. It fills the memory, using the statistics of the batches and
// without updating the running ones.
func (c *curriculum) Begin(ctx context.Context, epoch int) (err error) {
	defer backend.Recover(&err)
	buffers := train.Keep(c.model)
	defer buffers.Free()
	defer buffers.Restore()
	t := autodiff.NewInference(c.be)
	defer t.Reset()
	row := 0
	for samples, b := range c.all.Epoch(ctx, epoch) {
		h := c.model.Encoder.Forward(gnn.NewBatch(t, b), nn.Train).L2Normalize()
		c.be.CopyBlock(c.memory, row, 0, h.Value(), 0, 0, h.Rows(), h.Cols())
		row += len(samples)
		t.Reset()
	}
	return ctx.Err()
}

func (c *curriculum) Step(b train.Batch) (train.Metrics, error) {
	ranks := make([]int, c.state.Negatives)
	rng := random.Stream(c.seed, purposeTask, b.Epoch, b.Index+1)
	for k := range ranks {
		ranks[k] = rank(rng, b.Epoch, c.memory.Rows)
	}
	m, err := c.Minimize(func() *autodiff.Var {
		return c.contrast(c.Tape, b.Graphs, ranks)
	})
	c.state.Sum += m["loss"]
	return m, err
}

// rank draws a rank among n in an epoch; epochs count from 0.
func rank(rng *rand.Rand, epoch, n int) int {
	pace := math.Sqrt(min(1, float64(epoch+1)/cucoPace))
	return min(1+int(pace*float64(n)*rng.Float64()), n-1)
}

// contrast returns the loss [1×1] of a batch of two views with the negatives at these ranks.
func (c *curriculum) contrast(t *autodiff.Tape, b *graph.Batch, ranks []int) *autodiff.Var {
	n := int(b.ViewPtr[1])
	_, z := c.model.Forward(gnn.NewBatch(t, b), nn.Train)
	u := z.L2Normalize()
	return curriculumLoss(u.SliceRows(0, n), u.SliceRows(n, 2*n), t.Const(c.memory), ranks, c.tau)
}

// curriculumLoss returns the loss [1×1] of unit rows q and view [B×D], with the negatives at these ranks
// among the unit rows of memory [N×D].
func curriculumLoss(q, view, memory *autodiff.Var, ranks []int, tau float64) *autodiff.Var {
	size := memory.Rows()
	similarity := q.Detach().MatMulT(memory).Data()
	chosen := make([][]int32, len(ranks)) // by rank, then by anchor
	order := make([]int32, size)
	ascending := slices.Sorted(slices.Values(ranks))
	for j := range q.Rows() {
		for i := range order {
			order[i] = int32(i)
		}
		sortRanks(order, 0, ascending, similarity[j*size:(j+1)*size])
		for k, r := range ranks {
			chosen[k] = append(chosen[k], order[r])
		}
	}
	logits := []*autodiff.Var{rowDots(q, view)}
	for _, idx := range chosen {
		logits = append(logits, rowDots(q, memory.GatherRows(idx)))
	}
	return autodiff.ConcatCols(logits...).Scale(1 / tau).LogSumExp().Sub(logits[0].Scale(1 / tau)).Mean()
}

// sortRanks partially sorts indices by their values, and equal ones by size, so that the indices at the
// given ascending ranks are in place. It is a quicksort that skips parts without a rank. The first index
// of order has the rank base.
func sortRanks(order []int32, base int, ranks []int, values []float64) {
	before := func(a, b int32) bool {
		return values[a] < values[b] || values[a] == values[b] && a < b
	}
	for len(ranks) > 0 && len(order) > 1 {
		mid := len(order) / 2
		order[0], order[mid] = order[mid], order[0]
		pivot := order[0]
		p := 0
		for i := 1; i < len(order); i++ {
			if before(order[i], pivot) {
				p++
				order[p], order[i] = order[i], order[p]
			}
		}
		order[0], order[p] = order[p], order[0]
		lo, _ := slices.BinarySearch(ranks, base+p)
		hi, _ := slices.BinarySearch(ranks, base+p+1)
		sortRanks(order[:p], base, ranks[:lo], values)
		order = order[p+1:]
		base = base + p + 1
		ranks = ranks[hi:]
	}
}

func (c *curriculum) End(context.Context, int) (train.Metrics, error) {
	s := &c.state
	metrics := train.Metrics{"negatives": float64(s.Negatives)}
	if s.Epochs > 0 && s.Sum > s.Last {
		s.Negatives /= 2
	}
	s.Epochs++
	s.Last = s.Sum
	s.Sum = 0
	if s.Negatives <= 2 {
		return metrics, train.ErrStop
	}
	return metrics, nil
}

func (c *curriculum) Parameters() []*autodiff.Param { return c.model.Parameters() }

func (c *curriculum) Buffers() []*nn.Buffer {
	return append(c.model.Buffers(), nn.BufferOf(c.be, "cuco.memory", c.memory))
}

func (c *curriculum) State() (nn.Module, any) {
	return optim.Checkpoint{Module: c, Optimizer: c.Adam}, &c.state
}

func (c *curriculum) Close() error {
	c.be.Free(c.memory)
	return nil
}
