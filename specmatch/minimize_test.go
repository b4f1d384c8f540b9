package specmatch_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/autodiff/nn"
	"github.com/specmatch/specmatch/autodiff/optim"
	"github.com/specmatch/specmatch/backend/ref"
	"github.com/specmatch/specmatch/specmatch"
)

// TestMinimize: a step goes down the loss and nothing else, and whatever is no step
// leaves the parameter and no memory.
func TestMinimize(t *testing.T) {
	be := &failing{Backend: ref.New()}
	l := nn.NewLinearNoBias(be, "w", 1, 1, func(*rand.Rand, int, int) []float64 { return []float64{1} }, nil)
	adam, tape := optim.NewAdam(be, l.Parameters(), 0.1), autodiff.NewTape(be)
	weight := func() float64 { return weights(l)[0] }
	inUse := be.InUse()
	step := func(f func() *autodiff.Var) (float64, error) {
		// What earlier passes left behind does not count.
		tape.Backward(tape.Param(l.W).Scale(-10))
		tape.Reset()
		before := weight()
		loss, ok, err := specmatch.Minimize(tape, l, adam, f)
		if moved := weight() != before; moved != ok || ok != (err == nil && loss != 0) {
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
		if loss, err := step(scaled(c)); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("the loss is %v; the first operator", loss)) {
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
