package optim_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/autodiff/nn"
	"github.com/specmatch/specmatch/autodiff/optim"
	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/backend/cpu"
	"github.com/specmatch/specmatch/backend/ref"
	"github.com/specmatch/specmatch/tensor"
)

var engines = []struct {
	name string
	open func() backend.Backend
	tol  float64
}{
	{"ref", ref.New, 1e-13},
	{"cpu float64", func() backend.Backend { return cpu.New(tensor.Float64) }, 1e-13},
	{"cpu float32", func() backend.Backend { return cpu.New(tensor.Float32) }, 1e-6},
}

func onEngines(t *testing.T, f func(t *testing.T, be backend.Backend, tol float64)) {
	for _, e := range engines {
		t.Run(e.name, func(t *testing.T) { f(t, e.open(), e.tol) })
	}
}

func values(p *autodiff.Param) []float64 {
	v := make([]float64, p.Value.Len())
	p.Backend().Download(v, p.Value)
	return v
}

// giveGrad makes g the gradient of p, by way of a tape.
func giveGrad(p *autodiff.Param, g []float64) {
	tape := autodiff.NewTape(p.Backend())
	defer tape.Reset()
	tape.Backward(tape.Param(p).Dot(tape.Matrix(p.Value.Rows, p.Value.Cols, g)))
}

func checkClose(t *testing.T, what string, got, want []float64, tol float64) {
	t.Helper()
	for i := range want {
		if !(math.Abs(got[i]-want[i]) <= tol*max(1, math.Abs(want[i]))) {
			t.Errorf("%s: entry %d is %.17g, want %.17g", what, i, got[i], want[i])
		}
	}
}

// TestAdamGolden compares with PyTorch 1.13 in float64:
//
//	for wd in (0, 0.1):
//	    p = torch.tensor([1., -2., 0.5], requires_grad=True)
//	    opt = torch.optim.Adam([p], lr=0.1, weight_decay=wd)
//	    for k in range(4):
//	        p.grad = torch.tensor([0.5*(k+1), -1e-3*(k-1), 1e-9])
//	        opt.step()
//
// The third gradient is of the size of ε, the second changes its sign.
func TestAdamGolden(t *testing.T) {
	for wd, want := range map[float64][4][]float64{
		0: {
			{0.900000002, -2.09999900001, 0.4909090909090909},
			{0.8034818006385094, -2.167003877594482, 0.4818181818181818},
			{0.7076816791153657, -2.1584172113144606, 0.4727272727272727},
			{0.6116406528925717, -2.106894651735864, 0.4636363636363636},
		},
		0.1: {
			{0.9000000016666666, -1.9000000050251253, 0.4000000199999956},
			{0.8025029703202308, -1.8001473457713557, 0.30118746097757715},
			{0.7056952879647671, -1.7005503646575408, 0.20487131278866183},
			{0.6087642900249185, -1.6013252506826514, 0.11291547843639668},
		},
	} {
		t.Run(fmt.Sprint("weight decay ", wd), func(t *testing.T) {
			onEngines(t, func(t *testing.T, be backend.Backend, tol float64) {
				p := autodiff.NewParam(be, "p", 1, 3, []float64{1, -2, 0.5})
				opt := optim.NewAdam(be, []*autodiff.Param{p}, 0.1)
				opt.Config.WeightDecay = wd
				for k, w := range want {
					giveGrad(p, []float64{0.5 * float64(k+1), -1e-3 * float64(k-1), 1e-9})
					opt.Step()
					checkClose(t, fmt.Sprint("step ", k+1), values(p), w, tol)
				}
			})
		})
	}
}

// TestAdamIsItsFormula compares many steps with the formula for one number
// (Kingma and Ba 2015, algorithm 1, with ε outside the corrected root).
func TestAdamIsItsFormula(t *testing.T) {
	const rows, cols, steps = 5, 7, 60
	onEngines(t, func(t *testing.T, be backend.Backend, tol float64) {
		rng := rand.New(rand.NewPCG(1, 2))
		start := make([]float64, rows*cols)
		for i := range start {
			start[i] = float64(float32(rng.NormFloat64()))
		}
		p := autodiff.NewParam(be, "p", rows, cols, start)
		opt := optim.NewAdam(be, []*autodiff.Param{p}, 0)
		opt.Config = backend.AdamConfig{Beta1: 0.8, Beta2: 0.95, Eps: 1e-3, WeightDecay: 0.01}
		x, m, v := slices.Clone(start), make([]float64, rows*cols), make([]float64, rows*cols)
		for step := 1; step <= steps; step++ {
			rate := 0.1 / float64(step)
			opt.SetRate(rate)
			grad := make([]float64, rows*cols)
			for i := range grad {
				grad[i] = float64(float32(rng.NormFloat64()))
				g := grad[i] + 0.01*x[i]
				m[i] = 0.8*m[i] + (1-0.8)*g
				v[i] = 0.95*v[i] + (1-0.95)*g*g
				mHat, vHat := m[i]/(1-math.Pow(0.8, float64(step))), v[i]/(1-math.Pow(0.95, float64(step)))
				x[i] -= rate * mHat / (math.Sqrt(vHat) + 1e-3)
			}
			giveGrad(p, grad)
			opt.Step()
		}
		checkClose(t, "after 60 steps", values(p), x, 10*tol)
	})
}

// TestAdamWithoutGradient compares with PyTorch 2.15 in float64: a parameter without gradient is
// left alone, and a step does not count for it.
//
//	for wd in (0, 0.5):
//	    p, q = (torch.tensor([1.], requires_grad=True) for _ in range(2))
//	    opt = torch.optim.Adam([p, q], lr=0.1, weight_decay=wd)
//	    for k in range(6):
//	        p.grad = torch.tensor([2.-k]) if k != 3 else None
//	        q.grad = torch.tensor([0.5*k]) if k in (2, 3, 5) else None
//	        opt.step()
//
// On the way the optimizer goes through a checkpoint, before and after a parameter has missed steps.
func TestAdamWithoutGradient(t *testing.T) {
	for wd, want := range map[float64][6][2]float64{
		0: {
			{0.9000000005, 1}, {0.8067820372085104, 1}, {0.7347242815120456, 0.900000001},
			{0.7347242815120456, 0.8009192753235141}, {0.729528829451932, 0.8009192753235141}, {0.765022219049693, 0.7043152087932995},
		},
		0.5: {
			{0.9000000003999999, 1}, {0.8046965062953229, 1}, {0.7229155345698678, 0.9000000006666666},
			{0.7229155345698678, 0.8001656325900263}, {0.6930067056815706, 0.8001656325900263}, {0.7071332073898126, 0.7015344734060834},
		},
	} {
		onEngines(t, func(t *testing.T, be backend.Backend, tol float64) {
			var m pair
			start := func() *optim.Adam {
				m = pair{autodiff.NewParam(be, "p", 1, 1, []float64{1}), autodiff.NewParam(be, "q", 1, 1, []float64{1})}
				opt := optim.NewAdam(be, m, 0.1)
				opt.Config.WeightDecay = wd
				return opt
			}
			opt := start()
			for k, w := range want {
				if k != 3 {
					giveGrad(m[0], []float64{2 - float64(k)})
				}
				if k == 2 || k == 3 || k == 5 {
					giveGrad(m[1], []float64{0.5 * float64(k)})
				}
				opt.Step()
				checkClose(t, fmt.Sprintf("weight decay %v, step %d", wd, k+1), slices.Concat(values(m[0]), values(m[1])), w[:], tol)
				path := filepath.Join(t.TempDir(), "checkpoint")
				if err := nn.SaveFile(path, optim.Checkpoint{Module: m, Optimizer: opt}, nil); err != nil {
					t.Fatal(err)
				}
				opt = start()
				if err := nn.LoadFile(path, optim.Checkpoint{Module: m, Optimizer: opt}); err != nil {
					t.Fatal(err)
				}
			}
			moved := values(m[0])
			opt.Step() // the gradient of the last step is forgotten
			if got := values(m[0]); got[0] != moved[0] {
				t.Errorf("a gradient was used twice: %v, then %v", moved, got)
			}
		})
	}
}

// pair is a module of parameters alone.
type pair []*autodiff.Param

func (p pair) Parameters() []*autodiff.Param { return p }
func (p pair) Buffers() []*nn.Buffer         { return nil }

// TestGuard: behind a number that is not finite no step moves a parameter; any
// other number changes nothing.
func TestGuard(t *testing.T) {
	onEngines(t, func(t *testing.T, be backend.Backend, _ float64) {
		for _, x := range []float64{0, 1e30, math.NaN(), math.Inf(1), math.Inf(-1)} {
			p, q := autodiff.NewParam(be, "p", 1, 1, []float64{1}), autodiff.NewParam(be, "q", 1, 1, []float64{1})
			guarded, free := optim.NewAdam(be, []*autodiff.Param{p}, 0.1), optim.NewAdam(be, []*autodiff.Param{q}, 0.1)
			guard := be.Alloc(1, 1)
			be.Fill(guard, x)
			guarded.Guard(guard)
			be.Free(guard)
			for range 2 {
				giveGrad(p, []float64{2})
				giveGrad(q, []float64{2})
				guarded.Step()
				free.Step()
			}
			want := values(q)
			if math.IsNaN(x) || math.IsInf(x, 0) {
				want = []float64{1}
			}
			checkClose(t, fmt.Sprint("guarded by ", x), values(p), want, 0)
		}
	})
}

// TestAdamMemory: a step takes no memory and forgets the gradients, and Close
// gives back all but the parameters.
func TestAdamMemory(t *testing.T) {
	onEngines(t, func(t *testing.T, be backend.Backend, _ float64) {
		p := autodiff.NewParam(be, "p", 3, 4, make([]float64, 12))
		before := be.InUse()
		opt := optim.NewAdam(be, []*autodiff.Param{p}, 0.1)
		created := be.InUse()
		if created <= before {
			t.Error("an optimizer without memory")
		}
		giveGrad(p, make([]float64, 12))
		if !p.HasGrad() {
			t.Fatal("no gradient to forget")
		}
		opt.Step()
		if p.HasGrad() {
			t.Error("Step keeps the gradient")
		}
		if n := be.InUse(); n != created {
			t.Errorf("a step grew the memory in use from %d to %d bytes", created, n)
		}
		opt.Close()
		if n := be.InUse(); n != before {
			t.Errorf("%d bytes in use after Close, %d before the optimizer", n, before)
		}
	})
}

// TestAdamIsScaleFree: with constant gradients of any size the first
// steps have the length of the learning rate, the property that makes Adam
// scale-free.
func TestAdamIsScaleFree(t *testing.T) {
	onEngines(t, func(t *testing.T, be backend.Backend, tol float64) {
		p := autodiff.NewParam(be, "p", 1, 3, []float64{0, 0, 0})
		opt := optim.NewAdam(be, []*autodiff.Param{p}, 0.01)
		for step := 1; step <= 5; step++ {
			giveGrad(p, []float64{1e-2, -5, 1e4})
			opt.Step()
			d := 0.01 * float64(step)
			checkClose(t, fmt.Sprint("step ", step), values(p), []float64{-d, d, -d}, max(tol, 1e-7))
		}
	})
}
