package method

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"sort"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/specmatch/train"
)

func TestCurriculumLossGolden(t *testing.T) {
	tape := autodiff.NewTape(newFloat64())
	defer tape.Reset()
	memory := tape.Matrix(4, 2, []float64{1, 0, 0, 1, -1, 0, .6, .8})
	loss := curriculumLoss(tape.Matrix(1, 2, []float64{1, 0}), tape.Matrix(1, 2, []float64{.8, .6}), memory, []int{1, 2}, 0.2)
	nearly(t, "loss", loss.Float(), 0.32656264, 5e-9)
}

// largest draws the highest number below 1.
type largest struct{}

func (largest) Uint64() uint64 { return math.MaxUint64 }

func TestRankGolden(t *testing.T) {
	for epoch, want := range map[int]int{1: 43, 5: 94, 10: 133, 15: 163, 19: 184, 20: 187, 30: 187} { // N itself would be 188 in epoch 20
		if got := rank(rand.New(largest{}), epoch-1, 188); got != want {
			t.Errorf("epoch %d: the highest rank is %d, want %d", epoch, got, want)
		}
	}
	rng, seen := rand.New(rand.NewPCG(1, 2)), map[int]bool{}
	for range 2000 {
		seen[rank(rng, 0, 100)] = true
	}
	for r := range 100 {
		if want := r >= 1 && r <= 22+1; seen[r] != want && r != 23 {
			t.Errorf("epoch 1: rank %d of 100 is drawn: %v", r, seen[r])
		}
	}
}

func newTableCurriculum() *curriculum {
	be := newFloat64()
	s := goldenSetup(be)
	s.Graphs = motifGraphs(5)
	c := newCurriculum(s, goldenModel(be), s.loader())
	tape := autodiff.NewTape(be)
	defer tape.Reset()
	v := make([]float64, c.memory.Len())
	for i := range v {
		v[i] = math.Sin(2.9*float64(i) + 0.3)
	}
	unit := tape.Matrix(c.memory.Rows, c.memory.Cols, v).L2Normalize()
	be.CopyBlock(c.memory, 0, 0, unit.Value(), 0, 0, c.memory.Rows, c.memory.Cols)
	return c
}

// TestSortRanks compares with sorting, with ties and at every rank.
func TestSortRanks(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 5))
	for n := 1; n < 60; n++ {
		values, all := make([]float64, n), make([]int32, n)
		for i := range values {
			values[i], all[i] = float64(rng.IntN(n/2+1)), int32(i)
		}
		order := slices.Clone(all)
		sort.SliceStable(all, func(i, j int) bool { return values[all[i]] < values[all[j]] })
		for range 10 {
			ranks := []int{rng.IntN(n), rng.IntN(n), rng.IntN(n)}
			ranks = append(ranks, ranks[0])
			slices.Sort(ranks)
			sortRanks(order, 0, ranks, values)
			for _, r := range ranks {
				if order[r] != all[r] {
					t.Fatalf("%d values: %d has rank %d, want %d", n, order[r], r, all[r])
				}
			}
		}
	}
}

func TestCuCoGolden(t *testing.T) {
	c := newTableCurriculum()
	checkGolden(t, "cuco", c.Minimizer, c.model, func(int) *autodiff.Var {
		return c.contrast(c.Tape, tableGraphs(rawPaths, someParts), []int{1, 3, 3})
	})
}

func TestCuCoGradients(t *testing.T) {
	c := newTableCurriculum()
	checkGradients(t, c.be, c.model.Parameters(), "", func(tape *autodiff.Tape) *autodiff.Var {
		return c.contrast(tape, tableGraphs(rawPaths, someParts), []int{1, 3, 3})
	})
}

// TestCuCoPermutation: neither the order of the graphs nor that of the ranks matters,
// and higher ranks have a higher loss.
func TestCuCoPermutation(t *testing.T) {
	c := newTableCurriculum()
	defer c.Tape.Reset()
	loss := func(ranks []int, order ...int) float64 {
		var raw, parts [][]int32
		for _, i := range order {
			raw, parts = append(raw, rawPaths[i]), append(parts, someParts[i])
		}
		return c.contrast(c.Tape, tableGraphs(raw, parts), ranks).Float()
	}
	nearly(t, "loss", loss([]int{3, 1, 2}, 2, 0, 1), loss([]int{1, 2, 3}, 0, 1, 2), 1e-13)
	if easy, hard := loss([]int{1, 2}, 0, 1, 2), loss([]int{3, 4}, 0, 1, 2); !(easy < hard) {
		t.Errorf("the loss of easy negatives is %v, of hard ones %v", easy, hard)
	}
}

// TestCuCoStops: the negatives are halved at every rise of the loss, and the third
// ends training.
func TestCuCoStops(t *testing.T) {
	c := newTableCurriculum()
	sums := []float64{5, 4, 6, 6, 7, 3, 3.5}
	negatives := []float64{16, 16, 16, 8, 8, 4, 4}
	for epoch, sum := range sums {
		c.state.Sum = sum
		m, err := c.End(t.Context(), epoch)
		if last := epoch == len(sums)-1; m["negatives"] != negatives[epoch] || errors.Is(err, train.ErrStop) != last || !last && err != nil {
			t.Errorf("epoch %d: %v, %v; want %v negatives", epoch+1, m, err, negatives[epoch])
		}
	}
}

// TestCuCoMemory: the memory is all graphs' embeddings as unit rows, and filling it
// moves nothing else.
func TestCuCoMemory(t *testing.T) {
	c := newLearner(t, "cuco", motifs(t, Unsupervised)).Learner.(*curriculum)
	read := func() (all [][]float64) {
		for _, b := range c.model.Buffers() {
			v := make([]float64, b.Value.Len())
			c.be.Download(v, b.Value)
			all = append(all, v)
		}
		return all
	}
	before, inUse := read(), c.be.InUse()
	if err := c.Begin(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if !cmp.Equal(before, read()) || c.be.InUse() != inUse {
		t.Error("filling the memory moves the running statistics or takes room")
	}
	v, w := make([]float64, c.memory.Len()), c.memory.Cols
	c.be.Download(v, c.memory)
	for i := range c.memory.Rows {
		norm := 0.0
		for _, x := range v[i*w : (i+1)*w] {
			norm += x * x
		}
		nearly(t, "norm", norm, 1, 1e-5)
	}
}
