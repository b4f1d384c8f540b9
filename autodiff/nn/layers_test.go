package nn_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/autodiff/gradcheck"
	"github.com/specmatch/specmatch/autodiff/nn"
	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/backend/ref"
)

// TestLayerGradients checks every layer with respect to its parameters and its
// input.
func TestLayerGradients(t *testing.T) {
	type layer struct {
		nn.Module
		forward func(tape *autodiff.Tape, x *autodiff.Var) *autodiff.Var
	}
	const rows, width = 7, 3
	// norm is a BatchNorm with parameters and running statistics that are not
	// the initial ones.
	norm := func(be backend.Backend, mode nn.Mode, groups []int32) layer {
		l := nn.NewBatchNorm(be, "norm", width)
		be.Upload(l.Gamma.Value, []float64{1.5, -0.5, 0.7})
		be.Upload(l.Bias.Value, []float64{0.1, 2, -1})
		be.Upload(l.RunningMean.Value, []float64{-0.3, 0.2, 1})
		be.Upload(l.RunningVar.Value, []float64{2, 0.5, 1.1})
		return layer{l, func(tape *autodiff.Tape, x *autodiff.Var) *autodiff.Var {
			var ptr *backend.Indices
			if groups != nil {
				ptr = tape.Indices(groups)
			}
			return l.Forward(x, ptr, mode)
		}}
	}
	plain := func(m interface {
		nn.Module
		Forward(x *autodiff.Var) *autodiff.Var
	}) layer {
		return layer{m, func(_ *autodiff.Tape, x *autodiff.Var) *autodiff.Var { return m.Forward(x) }}
	}
	for name, build := range map[string]func(be backend.Backend) layer{
		"Linear": func(be backend.Backend) layer {
			l := nn.NewLinear(be, "lin", width, 4, nn.XavierUniform, newRand(1))
			l.ResetBias(be, newRand(2))
			return plain(l)
		},
		"Linear without bias": func(be backend.Backend) layer {
			return plain(nn.NewLinearNoBias(be, "lin", width, 4, nn.KaimingUniform, newRand(1)))
		},
		"MLP": func(be backend.Backend) layer {
			m := nn.NewMLP(be, "mlp", []int{width, 6, 5, 2}, nn.XavierUniform, newRand(3))
			for i, l := range m.Layers {
				l.ResetBias(be, newRand(uint64(i)))
			}
			return plain(m)
		},
		"Embedding": func(be backend.Backend) layer {
			e := nn.NewEmbedding(be, "emb", 4, width, newRand(1))
			return layer{e, func(tape *autodiff.Tape, x *autodiff.Var) *autodiff.Var {
				return e.Forward(tape, []int32{3, 0, 3, 1, 3, 2, 0}).Mul(x)
			}}
		},
		"Dropout": func(be backend.Backend) layer {
			return layer{bag{}, func(_ *autodiff.Tape, x *autodiff.Var) *autodiff.Var {
				return nn.NewDropout(be, 0.4, 5).Forward(x, nn.Train) // a new layer, so the same mask
			}}
		},
		"BatchNorm, one group":      func(be backend.Backend) layer { return norm(be, nn.Train, []int32{0, rows}) },
		"BatchNorm, two groups":     func(be backend.Backend) layer { return norm(be, nn.Train, []int32{0, 3, rows}) },
		"BatchNorm, one-row group":  func(be backend.Backend) layer { return norm(be, nn.Train, []int32{0, 1, rows}) },
		"BatchNorm, empty group":    func(be backend.Backend) layer { return norm(be, nn.Train, []int32{0, 3, 3, rows}) },
		"BatchNorm, eval":           func(be backend.Backend) layer { return norm(be, nn.Eval, nil) },
		"BatchNorm, eval of groups": func(be backend.Backend) layer { return norm(be, nn.Eval, []int32{0, 3, rows}) },
	} {
		t.Run(name, func(t *testing.T) {
			onExactEngines(t, func(t *testing.T, be backend.Backend, opts []autodiff.Option) {
				l := build(be)
				x := autodiff.NewParam(be, "x", rows, width, normal(newRand(9), rows*width))
				f := func(tape *autodiff.Tape) *autodiff.Var { return l.forward(tape, tape.Param(x)) }
				if err := gradcheck.Params(be, f, append(l.Parameters(), x), gradcheck.Options{Tape: opts}); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// TestLinear: the layer is x·W + b with W [in×out].
func TestLinear(t *testing.T) {
	onEngines(t, func(t *testing.T, be backend.Backend, tol float64) {
		l := nn.NewLinear(be, "lin", 2, 3, nn.XavierUniform, newRand(1))
		be.Upload(l.W.Value, []float64{1, 2, 3, 4, 5, 6})
		be.Upload(l.B.Value, []float64{10, 20, 30})
		tape := autodiff.NewInference(be)
		y := l.Forward(tape.Matrix(2, 2, []float64{1, 0, 2, -1}))
		checkClose(t, "y", y.Data(), []float64{11, 22, 33, 8, 19, 30}, tol)
	})
}

// TestForwardReLU is Forward and then ReLU, for every layer that has it, and moves
// running statistics as Forward does.
func TestForwardReLU(t *testing.T) {
	const rows, width = 7, 3
	type forms struct {
		module         nn.Module
		forward, fused func(tape *autodiff.Tape, x *autodiff.Var) *autodiff.Var
	}
	linear := func(l *nn.Linear) forms {
		return forms{l, func(_ *autodiff.Tape, x *autodiff.Var) *autodiff.Var { return l.Forward(x).ReLU() },
			func(_ *autodiff.Tape, x *autodiff.Var) *autodiff.Var { return l.ForwardReLU(x) }}
	}
	norm := func(be backend.Backend, mode nn.Mode) forms {
		one, two := nn.NewBatchNorm(be, "norm", width), nn.NewBatchNorm(be, "norm", width)
		for _, l := range []*nn.BatchNorm{one, two} {
			be.Upload(l.Bias.Value, []float64{0.1, 0, -0.3})
			be.Upload(l.RunningMean.Value, []float64{-0.3, 0.2, 1})
		}
		return forms{bag{buffers: append(one.Buffers(), two.Buffers()...)},
			func(tape *autodiff.Tape, x *autodiff.Var) *autodiff.Var {
				return one.Forward(x, tape.Indices([]int32{0, 3, rows}), mode).ReLU()
			},
			func(tape *autodiff.Tape, x *autodiff.Var) *autodiff.Var {
				groups := tape.Indices([]int32{0, 3, rows})
				return two.ForwardNorm(x, autodiff.Norm{Groups: groups, ReLU: true}, groups, mode)
			}}
	}
	for name, build := range map[string]func(be backend.Backend) forms{
		"Linear": func(be backend.Backend) forms {
			return linear(nn.NewLinear(be, "lin", width, 4, nn.XavierUniform, newRand(1)))
		},
		"Linear without bias": func(be backend.Backend) forms {
			return linear(nn.NewLinearNoBias(be, "lin", width, 4, nn.XavierUniform, newRand(1)))
		},
		"BatchNorm":       func(be backend.Backend) forms { return norm(be, nn.Train) },
		"BatchNorm, eval": func(be backend.Backend) forms { return norm(be, nn.Eval) },
	} {
		t.Run(name, func(t *testing.T) {
			onEngines(t, func(t *testing.T, be backend.Backend, tol float64) {
				f, tape := build(be), autodiff.NewInference(be)
				defer tape.Reset()
				x := tape.Matrix(rows, width, normal(newRand(9), rows*width))
				want := f.forward(tape, x).Data()
				if slices.Max(want) == 0 || slices.Min(want) != 0 {
					t.Fatal("the test wants numbers on both sides of 0")
				}
				checkClose(t, "y", f.fused(tape, x).Data(), want, tol)
				bs := f.module.Buffers()
				for i := range len(bs) / 2 {
					checkClose(t, bs[i].Name, bufferValues(be, bs[len(bs)/2+i]), bufferValues(be, bs[i]), tol)
				}
			})
		})
	}
}

// TestForwardNorm is Linear.Forward and then a norm's, with and without bias, ReLU and
// training, and moves running statistics alike.
func TestForwardNorm(t *testing.T) {
	const rows, width = 7, 3
	onEngines(t, func(t *testing.T, be backend.Backend, tol float64) {
		for k := range 8 {
			mode, relu := nn.Mode(k%2 == 0), k&2 == 0
			l := nn.NewLinearNoBias(be, "lin", width, width, nn.XavierUniform, newRand(1))
			if k&4 == 0 {
				l = nn.NewLinear(be, "lin", width, width, nn.XavierUniform, newRand(1))
				be.Upload(l.B.Value, []float64{1, -2, 0.5})
			}
			one, two := nn.NewBatchNorm(be, "norm", width), nn.NewBatchNorm(be, "norm", width)
			tape := autodiff.NewInference(be)
			x, groups := tape.Matrix(rows, width, normal(newRand(9), rows*width)), tape.Indices([]int32{0, 3, rows})
			want := one.Forward(l.Forward(x), groups, mode)
			if relu {
				want = want.ReLU()
			}
			what := fmt.Sprintf("train %v, ReLU %v, bias %v: ", mode, relu, l.B != nil)
			n := autodiff.Norm{Groups: groups, ReLU: relu}
			if l.B != nil {
				n.Bias = tape.Param(l.B)
			}
			checkClose(t, what+"y", two.ForwardNorm(x.MatMul(tape.Param(l.W)), n, groups, mode).Data(), want.Data(), 2*tol)
			for i, b := range two.Buffers() {
				checkClose(t, what+b.Name, bufferValues(be, b), bufferValues(be, one.Buffers()[i]), tol)
			}
			tape.Reset()
		}
	})
}

// TestMLP: ReLU stands between the layers and not behind the last.
func TestMLP(t *testing.T) {
	be := ref.New()
	m := nn.NewMLP(be, "mlp", []int{1, 2, 1}, nn.XavierUniform, newRand(1))
	be.Upload(m.Layers[0].W.Value, []float64{1, -1})
	be.Upload(m.Layers[1].W.Value, []float64{-1, -2})
	tape := autodiff.NewInference(be)
	y := m.Forward(tape.Matrix(3, 1, []float64{3, 0, -4})) // -relu(x) - 2·relu(-x)
	checkClose(t, "y", y.Data(), []float64{-3, 0, -8}, 0)

	names := func(m nn.Module) (ns []string) {
		for _, p := range m.Parameters() {
			ns = append(ns, p.Name)
		}
		return ns
	}
	if got, want := names(m), []string{"mlp.0.weight", "mlp.0.bias", "mlp.2.weight", "mlp.2.bias"}; !slices.Equal(got, want) {
		t.Errorf("names %v, want a Sequential's: %v", got, want)
	}
	if n := nn.NumParameters(m); n != 2+2+2+1 {
		t.Errorf("%d parameters", n)
	}
	if len(m.Buffers()) != 0 {
		t.Error("an MLP has buffers")
	}
	defer func() {
		if recover() == nil {
			t.Error("an MLP of one width is accepted")
		}
	}()
	nn.NewMLP(be, "mlp", []int{3}, nn.XavierUniform, newRand(1))
}

// TestBatchNormGolden compares with PyTorch 1.13 in float64:
//
//	x = torch.tensor([[1., 2.], [-1., 0.5], [3., -2.], [0.25, 4.], [5., 1.5]], requires_grad=True)
//	w = torch.tensor([[1., -2.], [0.5, 3.], [-1., 1.], [2., 0.], [1., -1.]])
//	bn = torch.nn.BatchNorm1d(2)
//	bn.weight.data = torch.tensor([1.5, -0.5]); bn.bias.data = torch.tensor([0.25, 1.])
//	y = torch.cat([bn(x[:3]), bn(x[3:])])
//	(y * w).sum().backward()
//	bn.eval(); x.grad = None; bn.zero_grad(); y = bn(x); (y * w).sum().backward()
//
// Running variances are unbiased: a biased one would be off by a third and by a
// half.
func TestBatchNormGolden(t *testing.T) {
	onEngines(t, func(t *testing.T, be backend.Backend, tol float64) {
		for form, opts := range forms {
			t.Run(form, func(t *testing.T) {
				l := nn.NewBatchNorm(be, "bn", 2)
				be.Upload(l.Gamma.Value, []float64{1.5, -0.5})
				be.Upload(l.Bias.Value, []float64{0.25, 1})
				tape := autodiff.NewTape(be, opts...)
				defer tape.Reset()
				x := tape.Leaf(5, 2, []float64{1, 2, -1, 0.5, 3, -2, 0.25, 4, 5, 1.5})
				w := tape.Matrix(5, 2, []float64{1, -2, 0.5, 3, -1, 1, 2, 0, 1, -1})
				grad := func(p *autodiff.Param) []float64 {
					g := make([]float64, 2)
					be.Download(g, p.Grad)
					return g
				}

				y := l.Forward(x, tape.Indices([]int32{0, 3, 5}), nn.Train)
				tape.Backward(y.Dot(w))
				checkClose(t, "y", y.Data(), []float64{
					0.25, 0.44441712095369623, -1.5871138625021208, 0.8989849310824902, 2.087113862502121, 1.6565979479638135,
					-1.2499986703618788, 0.5000015999923202, 1.749998670361879, 1.49999840000768}, tol)
				dx := []float64{
					0.7654641093758836, 0.47930740223852775, -0.38272947125626067, -0.7668896913501232, -0.38273463811962294, 0.2875822891115952,
					5.598468855239904e-07, -1.2799877121466635e-06, -5.598468855239904e-07, 1.2799877121466635e-06}
				checkClose(t, "dx", x.Grad(), dx, tol)
				if tol < 1e-10 {
					// In a group of two the terms cancel to 1e-8 of their size.
					checkClose(t, "dx of the second group", x.Grad()[6:], dx[6:], 1e-6)
				}
				checkClose(t, "dgamma", grad(l.Gamma), []float64{-2.837112976076707, -1.9294401985924237}, tol)
				checkClose(t, "dbias", grad(l.Bias), []float64{3.5, 1}, tol)
				checkClose(t, "running mean", bufferValues(be, l.RunningMean), []float64{0.3525, 0.29}, tol)
				checkClose(t, "running variance", bufferValues(be, l.RunningVar), []float64{2.298125, 1.49}, tol)

				nn.ZeroGrad(l)
				y = l.Forward(x, nil, nn.Eval)
				tape.Backward(y.Dot(w))
				checkClose(t, "y in eval mode", y.Data(), []float64{
					0.8906830926743159, 0.2995590584252351, -1.0882608229220267, 0.9139809369995904, 2.8696270082706583, 1.9380174012901823,
					0.1485791243256874, -0.5196701130072385, 4.848570923867001, 0.5043663512833535}, tol)
				checkClose(t, "dx in eval mode", x.Grad(), []float64{
					0.9894719577981713, 0.8192291714324736, 0.49473597889908566, -1.2288437571487105, -0.9894719577981713, -0.4096145857162368,
					1.9789439155963426, 0, 0.9894719577981713, 0.4096145857162368}, tol)
				checkClose(t, "dgamma in eval mode", grad(l.Gamma), []float64{1.1651032303073467, -5.15295148831026}, tol)
				checkClose(t, "dbias in eval mode", grad(l.Bias), []float64{3.5, 1}, tol)
				checkClose(t, "running mean after eval", bufferValues(be, l.RunningMean), []float64{0.3525, 0.29}, tol)
			})
		}
	})
}

// TestBatchNormGroups: a batch of groups is what separate forward passes, in
// order, would be; a group of one row gives the bias, and an empty group moves
// nothing.
func TestBatchNormGroups(t *testing.T) {
	onEngines(t, func(t *testing.T, be backend.Backend, tol float64) {
		for form, opts := range forms {
			t.Run(form, func(t *testing.T) {
				x := normal(newRand(4), 9*2)
				groups := []int32{0, 4, 4, 5, 9}
				whole, parts := nn.NewBatchNorm(be, "bn", 2), nn.NewBatchNorm(be, "bn", 2)
				for _, l := range []*nn.BatchNorm{whole, parts} {
					be.Upload(l.Bias.Value, []float64{0.5, -2})
				}
				tape := autodiff.NewInference(be, opts...)
				defer tape.Reset()
				y := whole.Forward(tape.Matrix(9, 2, x), tape.Indices(groups), nn.Train).Data()
				var want []float64
				for g := range len(groups) - 1 {
					lo, hi := groups[g], groups[g+1]
					n := hi - lo
					if n == 0 {
						continue
					}
					want = append(want, parts.Forward(tape.Matrix(int(n), 2, x[2*lo:2*hi]), tape.Indices([]int32{0, n}), nn.Train).Data()...)
				}
				checkClose(t, "y", y, want, tol)
				checkClose(t, "y of the one row", y[8:10], []float64{0.5, -2}, tol)
				for i, b := range whole.Buffers() {
					checkClose(t, b.Name, bufferValues(be, b), bufferValues(be, parts.Buffers()[i]), tol)
				}

				// The one row moves the variance towards 0, not NaN.
				l := nn.NewBatchNorm(be, "bn", 2)
				l.Forward(tape.Matrix(1, 2, x[:2]), tape.Indices([]int32{0, 1}), nn.Train)
				checkClose(t, "running variance after one row", bufferValues(be, l.RunningVar), []float64{0.9, 0.9}, tol)
				l = nn.NewBatchNorm(be, "bn", 2)
				l.Forward(tape.Matrix(0, 2, nil), tape.Indices([]int32{0, 0}), nn.Train)
				checkClose(t, "running variance after no row", bufferValues(be, l.RunningVar), []float64{1, 1}, 0)
			})
		}
	})
}

// TestInitialisers: weights are uniform on (-a, a) with the a of the formula,
// and the same for equal seeds and for both precisions.
func TestInitialisers(t *testing.T) {
	const in, out = 200, 100
	for name, c := range map[string]struct {
		draw nn.Init
		a    float64
	}{
		"XavierUniform":  {nn.XavierUniform, math.Sqrt(6.0 / (in + out))},
		"KaimingUniform": {nn.KaimingUniform, 1 / math.Sqrt(in)},
	} {
		w := c.draw(newRand(1), in, out)
		if len(w) != in*out {
			t.Fatalf("%s: %d values", name, len(w))
		}
		n := float64(len(w))
		mean, square := 0.0, 0.0
		for _, v := range w {
			mean += v / n
			square += v * v / n
		}
		lo, hi := slices.Min(w), slices.Max(w)
		// Of n uniform draws the extremes miss ±a by some 2a/n; the mean has
		// the deviation a/√(3n), the mean square a²·√(4/45n). Five of each.
		if lo < -c.a || hi > c.a || hi-lo < 2*c.a*(1-10/n) {
			t.Errorf("%s: values from %v to %v, want almost ±%v", name, lo, hi, c.a)
		}
		if math.Abs(mean) > 5*c.a/math.Sqrt(3*n) {
			t.Errorf("%s: mean %v", name, mean)
		}
		if want := c.a * c.a / 3; math.Abs(square-want) > 5*c.a*c.a*math.Sqrt(4/(45*n)) {
			t.Errorf("%s: mean square %v, want %v", name, square, want)
		}
		if !slices.Equal(w, c.draw(newRand(1), in, out)) {
			t.Errorf("%s: equal seeds give different weights", name)
		}
		if slices.Equal(w, c.draw(newRand(2), in, out)) {
			t.Errorf("%s: different seeds give equal weights", name)
		}
	}
	want := nn.XavierUniform(newRand(3), 4, 5)
	onEngines(t, func(t *testing.T, be backend.Backend, tol float64) {
		l := nn.NewLinear(be, "lin", 4, 5, nn.XavierUniform, newRand(3))
		for i, v := range values(l.W) {
			if be.Precision().Bytes() == 4 && v != float64(float32(want[i])) || be.Precision().Bytes() == 8 && v != want[i] {
				t.Errorf("weight %d is %v, drawn was %v", i, v, want[i])
			}
		}
		checkClose(t, "bias", values(l.B), make([]float64, 5), 0)
		wide := nn.NewLinear(be, "lin", 4, 1000, nn.XavierUniform, newRand(3))
		wide.ResetBias(be, newRand(4))
		if lo, hi := slices.Min(values(wide.B)), slices.Max(values(wide.B)); lo < -0.5 || lo > -0.49 || hi > 0.5 || hi < 0.49 {
			t.Errorf("biases reset to between %v and %v, want almost ±1/√4", lo, hi)
		}
		e := nn.NewEmbedding(be, "emb", 4, 5, newRand(3))
		checkClose(t, "embedding", values(e.Table), want, tol)
		n := nn.NewBatchNorm(be, "bn", 2)
		checkClose(t, "gamma", values(n.Gamma), []float64{1, 1}, 0)
		checkClose(t, "bias", values(n.Bias), []float64{0, 0}, 0)
		checkClose(t, "running mean", bufferValues(be, n.RunningMean), []float64{0, 0}, 0)
		checkClose(t, "running variance", bufferValues(be, n.RunningVar), []float64{1, 1}, 0)
	})
}

func TestDropout(t *testing.T) {
	const rows, cols, p = 200, 50, 0.3
	onEngines(t, func(t *testing.T, be backend.Backend, tol float64) {
		tape := autodiff.NewInference(be)
		defer tape.Reset()
		ones := slices.Repeat([]float64{1}, rows*cols)
		x := tape.Matrix(rows, cols, ones)
		d := nn.NewDropout(be, p, 7)
		first, second := d.Forward(x, nn.Train).Data(), d.Forward(x, nn.Train).Data()
		again, other := nn.NewDropout(be, p, 7).Forward(x, nn.Train).Data(), nn.NewDropout(be, p, 8).Forward(x, nn.Train).Data()
		if !slices.Equal(first, again) {
			t.Error("equal seeds give different masks")
		}
		late := nn.NewDropout(be, p, 7)
		be.Upload(late.State("late").Value, []float64{1})
		if !slices.Equal(second, late.Forward(x, nn.Train).Data()) || bufferValues(be, d.State("d"))[0] != 2 {
			t.Error("the state is not the number of masks drawn")
		}
		// Independent masks agree in p² + (1-p)² of the entries.
		for what, mask := range map[string][]float64{"the next call": second, "another seed": other} {
			same := 0.0
			for i := range mask {
				if mask[i] == first[i] {
					same += 1.0 / (rows * cols)
				}
			}
			if want := p*p + (1-p)*(1-p); math.Abs(same-want) > 5*math.Sqrt(want*(1-want)/(rows*cols)) {
				t.Errorf("the mask of %s agrees in %v of the entries, want %v", what, same, want)
			}
		}
		// The mean is 1, with deviation √(p/(1-p)n); and so is that of any row
		// and column, so that no pattern hides in the mean of all.
		check := func(what string, mean, n float64) {
			if math.Abs(mean-1) > 5*math.Sqrt(p/((1-p)*n)) {
				t.Errorf("mean %v over %s", mean, what)
			}
		}
		total, row, col := 0.0, make([]float64, rows), make([]float64, cols)
		for i, v := range first {
			if v != 0 && math.Abs(v-1/(1-p)) > 10*tol {
				t.Fatalf("an entry of 1 became %v, want 0 or %v", v, 1/(1-p))
			}
			total += v / (rows * cols)
			row[i/cols] += v / cols
			col[i%cols] += v / rows
		}
		check("all", total, rows*cols)
		for i, m := range row {
			check(fmt.Sprint("row ", i), m, cols)
		}
		for j, m := range col {
			check(fmt.Sprint("column ", j), m, rows)
		}
		if d.Forward(x, nn.Eval) != x {
			t.Error("in eval mode dropout is not the identity")
		}
		if nn.NewDropout(be, 0, 1).Forward(x, nn.Train) != x {
			t.Error("P = 0 is not the identity")
		}
	})
	for _, p := range []float64{-0.1, 1, 1.5, math.NaN()} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("P = %v is accepted", p)
				}
			}()
			nn.NewDropout(ref.New(), p, 1)
		}()
	}
}

func TestZeroGrad(t *testing.T) {
	be := ref.New()
	m := nn.NewMLP(be, "mlp", []int{2, 3, 1}, nn.XavierUniform, newRand(1))
	tape := autodiff.NewTape(be)
	tape.Backward(m.Forward(tape.Matrix(1, 2, []float64{1, 2})).Sum())
	for _, want := range []bool{true, false} {
		for _, p := range m.Parameters() {
			if p.HasGrad() != want {
				t.Errorf("%s: HasGrad is %v", p.Name, p.HasGrad())
			}
		}
		nn.ZeroGrad(m)
	}
}
