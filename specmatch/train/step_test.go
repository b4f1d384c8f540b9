package train_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/autodiff/nn"
	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/backend/ref"
	"github.com/specmatch/specmatch/specmatch/train"
	"github.com/specmatch/specmatch/tensor"
)

// TestMinimize: a step goes down the loss and nothing else, and whatever is no step
// leaves the parameter and no memory.
func TestMinimize(t *testing.T) {
	be := &failing{Backend: ref.New()}
	l := nn.NewLinearNoBias(be, "w", 1, 1, func(*rand.Rand, int, int) []float64 { return []float64{1} }, nil)
	m := train.NewMinimizer(be, l, 0.1)
	tape := m.Tape
	weight := func() float64 {
		var v [1]float64
		be.Download(v[:], l.W.Value)
		return v[0]
	}
	inUse := be.InUse()
	step := func(f func() *autodiff.Var) (float64, error) {
		// What earlier passes left behind does not count.
		tape.Backward(tape.Param(l.W).Scale(-10))
		tape.Reset()
		before := weight()
		metrics, err := m.Minimize(f)
		loss, ok := metrics["loss"]
		if moved := weight() != before; moved != ok || ok && err != nil {
			t.Errorf("loss %v, %v, error %v: the weight went from %v to %v", loss, ok, err, before, weight())
		}
		l.W.ZeroGrad()
		if n := be.InUse(); n != inUse {
			t.Errorf("loss %v, error %v: %d bytes in use, were %d", loss, err, n, inUse)
		}
		return loss, err
	}
	scaled := func(c float64) func() *autodiff.Var {
		return func() *autodiff.Var { return tape.Param(l.W).Scale(c) }
	}
	if loss, err := step(func() *autodiff.Var { tape.Param(l.W).Scale(2); return nil }); loss != 0 || err != nil {
		t.Errorf("no loss: %v, %v", loss, err)
	}
	for _, c := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		if _, err := step(scaled(c)); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("step 0: the loss is %v; the first operator", c)) {
			t.Errorf("a loss of %v: error %v", c, err)
		}
	}
	if _, err := step(func() *autodiff.Var { be.after = 1; return scaled(1)() }); !errors.Is(err, errMemory) {
		t.Errorf("out of memory: %v", err)
	}
	// Adam's first step is as long as its rate.
	if loss, err := step(scaled(3)); loss != 3 || err != nil || !(math.Abs(weight()-0.9) <= 1e-8) {
		t.Errorf("loss %v, %v, and the weight 1 became %v; want 3 and 0.9", loss, err, weight())
	}
}

var errMemory = errors.New("no memory")

// failing is an engine whose memory is used up after some allocations, once.
type failing struct {
	backend.Backend
	after int
}

func (f *failing) Alloc(rows, cols int) *tensor.Tensor {
	if f.after > 0 {
		if f.after--; f.after == 0 {
			panic(&backend.Error{Backend: "failing", Op: "Alloc", Err: errMemory})
		}
	}
	return f.Backend.Alloc(rows, cols)
}

// TestBucket: padding is enough, grows, and costs little more than a fifth.
func TestBucket(t *testing.T) {
	last := 0
	for n := range 100000 {
		size := train.Bucket(n)
		if size < n || size < last || size%64 != 0 || size > n+max(64, n/5) {
			t.Fatalf("%d is padded to %d, %d to %d", n, size, n-1, last)
		}
		last = size
	}
}
