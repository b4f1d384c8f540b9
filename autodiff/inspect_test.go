package autodiff_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/autodiff/gradcheck"
	"github.com/specmatch/specmatch/backend/ref"
)

// TestInspect: walking the entries from the last to the first, and adding up what each
// VJP gives its inputs, is Backward; and it leaves what Backward has left.
func TestInspect(t *testing.T) {
	be := ref.New()
	rng := rand.New(rand.NewPCG(1, 2))
	in := gradcheck.Random(rng, 4, 3)
	p := autodiff.NewParam(be, "w", 3, 3, gradcheck.Random(rng, 3, 3).Values)
	tape := autodiff.NewTape(be, autodiff.Inspect())
	x, w := tape.Leaf(4, 3, in.Values), tape.Param(p)
	y := x.MatMul(w).Add(x).Add(tape.Matrix(4, 3, in.Values))
	z := y.Mul(y).SliceRows(1, 3)
	loss := z.Sum().Add(y.Square().Sum()).Add(w.Sum())
	tape.Backward(loss)
	wantX, wantW := x.Grad(), make([]float64, 9)
	be.Download(wantW, p.Grad)

	entries := tape.Entries()
	if len(entries) != tape.Len() || entries[0] != x || entries[len(entries)-1] != loss {
		t.Fatalf("%d entries of %d, from the leaf to the loss", len(entries), tape.Len())
	}
	grads := map[*autodiff.Var][]float64{loss: {1}}
	loans := 0
	for _, v := range slices.Backward(entries) {
		if grads[v] == nil {
			t.Fatalf("no gradient for %s", v.Op())
		}
		given, lent := v.VJP(grads[v])
		for i, in := range v.Inputs() {
			if given[i] == nil {
				if in.NeedsGrad() && slices.Index(v.Inputs(), in) == i {
					t.Errorf("%s gives its input %d nothing", v.Op(), i)
				}
				continue
			}
			if lent[i] {
				loans++
				if !slices.Equal(given[i], grads[v]) {
					t.Errorf("%s lends its input %d something else than dy", v.Op(), i)
				}
			}
			sum := slices.Clone(given[i])
			for k, g := range grads[in] {
				sum[k] += g
			}
			grads[in] = sum
		}
	}
	// The four Adds lend dy to all inputs that are neither leaf nor constant.
	if loans != 6 {
		t.Errorf("%d gradients were lent, want 6", loans)
	}
	near := func(a, b float64) bool { return math.Abs(a-b) < 1e-12 }
	if !slices.EqualFunc(grads[x], wantX, near) || !slices.EqualFunc(grads[w], wantW, near) {
		t.Errorf("by hand %v and %v, by Backward %v and %v", grads[x], grads[w], wantX, wantW)
	}
	after := make([]float64, 9)
	if be.Download(after, p.Grad); !slices.Equal(x.Grad(), wantX) || !slices.Equal(after, wantW) {
		t.Error("VJP changes the gradients on the tape")
	}
	if g, _ := x.VJP(in.Values); g != nil || x.Inputs() != nil {
		t.Error("a leaf has a VJP or inputs")
	}
	before := be.InUse()
	entries[len(entries)-1].VJP([]float64{1})
	if be.InUse() != before {
		t.Error("VJP leaks")
	}
	plain := autodiff.NewTape(be)
	if y := plain.Leaf(1, 1, []float64{2}).Square(); y.Inputs() != nil {
		t.Error("a tape keeps inputs that nobody asked for")
	}
}
