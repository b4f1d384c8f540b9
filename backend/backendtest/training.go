package backendtest

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/tensor"
)

// similarities is a kind of matrix that percentiles are taken of.
type similarities struct {
	name string
	data func(n int) matrix
}

// similarityKinds returns matrices with ties, with few values and at the limits of the
// format.
func (s *suite) similarityKinds() []similarities {
	negate := func(v float64) float64 { return -v }
	zeros := []float64{0, math.Copysign(0, -1), 0, math.Copysign(0, -1), -1, 1}
	return []similarities{
		{"random", func(n int) matrix { return s.random(n, n) }},
		{"negative", func(n int) matrix {
			return s.random(n, n).mapped(math.Abs).mapped(negate)
		}},
		{"many ties", func(n int) matrix { return s.integers(n, n) }},
		{"two values", func(n int) matrix {
			return s.integers(n, n).mapped(func(v float64) float64 {
				return math.Copysign(0.75, v)
			})
		}},
		{"constant", func(n int) matrix { return constant(n, n, -0.7) }},
		{"zeros of both signs", func(n int) matrix {
			return s.integers(n, n).mapped(func(v float64) float64 {
				return zeros[(int(v)+6)%6]
			})
		}},
		{"denormal", func(n int) matrix {
			return s.integers(n, n).mapped(func(v float64) float64 {
				return s.smallest * v * float64(1+s.rng.IntN(50))
			})
		}},
		{"of all magnitudes", func(n int) matrix {
			return s.random(n, n).mapped(func(v float64) float64 {
				return v * math.Exp2(float64(s.rng.IntN(200)-100))
			})
		}},
		{"close to 1", func(n int) matrix {
			return s.integers(n, n).mapped(func(v float64) float64 {
				return 1 + s.eps*v
			})
		}},
		{"ascending", func(n int) matrix {
			return constant(n, n, 0).mapped(counter(1))
		}},
		{"descending", func(n int) matrix {
			return constant(n, n, 0).mapped(counter(-1))
		}},
	}
}

func checkUpperPercentile(s *suite) {
	kinds := s.similarityKinds()
	sizes := []int{0, 1, 2, 3, 4, 5, 8, 9, 16, 17, 31, 33, 64, 65, 129, 517}
	for i, n := range sizes {
		for j, kind := range kinds {
			for k, p := range []float64{0, 100, 50, 80, 25, 100.0 / 3, 99.9} {
				large := n > 500
				if !large && n > 9 && (i+j+k)%3 != 0 { // every pair of the three, not every triple
					continue
				}
				if large &&
					(s.short || p != 80 || kind.name != "random" && kind.name != "many ties") {
					continue
				}
				s.percentile(kind, n, p, large)
			}
		}
	}
}

// percentile tries one percentile of an n×n matrix, with weights and without.
func (s *suite) percentile(kind similarities, n int, p float64, large bool) {
	s.Helper()
	x := kind.data(n)
	// Entries on and below the diagonal must not matter.
	ignored := []float64{1e30, -1e30, math.NaN(), 0}
	for i := range n {
		for j := range i + 1 {
			x.v[i*n+j] = ignored[(i+j)%4]
		}
	}
	x = x.mapped(s.round)
	t := trial{
		op:    "UpperPercentile with weights",
		note:  fmt.Sprintf("%s, p=%v", kind.name, p),
		large: large,
		in:    []matrix{x},
		out:   []output{{before: poison(1, 1)}, {before: poison(n, n)}},
		call: func(o operands) {
			o.UpperPercentile(o.out[0], o.out[1], o.in[0], p)
		},
	}
	// The percentile interpolates the weighted entries, and the weights are zero
	// exactly where ref's are.
	weights := s.define(t)[1]
	scale := constant(1, 1, 0)
	for i, w := range weights.v {
		if w != 0 {
			scale.v[0] += w * math.Abs(x.v[i])
		}
	}
	ones := weights.mapped(math.Ceil)
	t.out[0].tol = tolerance{ulps: 2, scale: &scale}
	t.out[1].tol = tolerance{ulps: 2, scale: &ones}
	s.try(t)
	s.percentileWeights(t)

	t.op = "UpperPercentile"
	t.out = t.out[:1]
	t.call = func(o operands) {
		o.UpperPercentile(o.out[0], nil, o.in[0], p)
	}
	s.try(t)
}

// counter returns a function whose n-th call returns n·step.
func counter(step float64) func(float64) float64 {
	n := 0.0
	return func(float64) float64 {
		n += step
		return n
	}
}

// percentileWeights checks the properties of the weights of any percentile: one or two
// are not zero, they sum to 1, and they belong to the strict upper triangle.
func (s *suite) percentileWeights(t trial) {
	w := s.perform(t)[1]
	sum := 0.0
	nonzero := 0
	for i, v := range w.v {
		if v != 0 {
			sum += v
			nonzero++
			if i/w.cols >= i%w.cols {
				s.errorf(
					"%v: the weight at %s, not in the strict upper triangle, is %v",
					t, w.at(i), v,
				)
			}
		}
	}
	switch {
	case w.rows < 2 && nonzero > 0:
		s.errorf("%v: %d weights are not zero, but there is no entry",
			t, nonzero)
	case w.rows >= 2 &&
		(nonzero < 1 || nonzero > 2 || math.Abs(sum-1) > 2*s.eps):
		s.errorf(
			"%v: %d weights are not zero, want 1 or 2; their sum is %v, want 1",
			t, nonzero, sum,
		)
	}
}

func checkDropoutMask(s *suite) {
	mask := func(
		rows, cols int, keep float64, seed uint64, step float64, large bool,
	) trial {
		return trial{
			op:    "DropoutMask",
			note:  fmt.Sprintf("keep=%v seed=%#x step=%v", keep, seed, step),
			large: large,
			in:    []matrix{row(step)},
			out:   []output{within(rows, cols, 1)}, // 1/keep has a rounding, 0 has none
			call: func(o operands) {
				o.DropoutMask(o.out[0], keep, seed, o.in[0])
			},
		}
	}
	seeds := []uint64{0, 1, 12345, 1 << 32, 1<<53 + 1, math.MaxUint64}
	steps := []float64{0, 1, 2, 1000, 1<<24 - 1}
	keeps := []float64{1, 0.9, 0.5, 0.1, 1e-3}
	for i, seed := range seeds {
		for j, step := range steps {
			s.try(mask(9, 13, keeps[(i+j)%len(keeps)], seed, step, false))
		}
	}
	smallShapes(func(rows, cols int, large bool) {
		for i, keep := range keeps {
			s.try(mask(rows, cols, keep, 7, float64(i+1), large))
		}
	})
	for i, keep := range keeps {
		aLargeShape(i, func(rows, cols int, large bool) {
			s.try(mask(rows, cols, keep, 7, 3, large))
		})
	}
	for _, keep := range keeps {
		s.checkKept(keep, s.perform(mask(200, 200, keep, 99, 3, false))[0])
	}
}

// checkKept checks that DropoutKeep has the elements of the mask m for seed 99 and step 3, and
// that there are about as many as keep says.
func (s *suite) checkKept(keep float64, m matrix) {
	s.Helper()
	ones := 0
	for i, v := range m.v {
		keeps := backend.DropoutKeep(keep, 99, 3, uint64(i))
		if (v != 0) != keeps {
			s.errorf(
				"DropoutMask, keep=%v: element %s is %v, but DropoutKeep says %v",
				keep,
				m.at(i),
				v,
				keeps,
			)
			break
		}
		if v != 0 {
			ones++
		}
	}
	n := float64(len(m.v))
	sd := math.Sqrt(n * keep * (1 - keep))
	if math.Abs(float64(ones)-n*keep) > 4*sd {
		s.errorf(
			"DropoutMask, keep=%v: %d of %v elements are kept, want %.0f ± %.0f",
			keep,
			ones,
			n,
			n*keep,
			sd,
		)
	}
}

// adamConfigs are the usual constants, with and without weight decay, and some
// for which no term is negligible.
var adamConfigs = []backend.AdamConfig{
	{Beta1: 0.9, Beta2: 0.999, Eps: 1e-8},
	{Beta1: 0.9, Beta2: 0.999, Eps: 1e-8, WeightDecay: 0.01},
	{Beta1: 0.5, Beta2: 0.7, Eps: 0.1, WeightDecay: 0.5},
	{Beta1: 0, Beta2: 0.9, Eps: 1e-3},
}

func checkAdam(s *suite) {
	everyShape(func(rows, cols int, large bool) {
		for i, c := range adamConfigs {
			if !large || i == 1 {
				s.adamOnce(rows, cols, c, float64(1+i*i), large)
			}
		}
	})
	for i, c := range adamConfigs {
		s.adamSteps(7, 5, c, []float64{1e-3, 0.01, 1, 0.1}[i])
		s.adamSteps(1, 1, c, 1)
	}
	s.try(trial{
		op:   "Adam",
		note: "step NaN",
		in:   []matrix{s.random(3, 5), row(0.01), row(math.NaN())},
		out: []output{
			{before: s.random(3, 5)},
			{before: s.random(3, 5)},
			{before: s.random(3, 5)},
		},
		call: func(o operands) {
			o.Adam(
				o.out[0], o.in[0], o.out[1], o.out[2],
				o.in[1], o.in[2], adamConfigs[1],
			)
		},
	})
}

// adamOnce makes one update from random moments, as earlier updates may leave them.
func (s *suite) adamOnce(
	rows, cols int, c backend.AdamConfig, step float64, large bool,
) {
	s.Helper()
	const rate = 0.01
	p := s.random(rows, cols)
	m := s.random(rows, cols)
	v := s.random(rows, cols).mapped(func(v float64) float64 {
		return 0.1 + v*v
	})
	t := trial{
		op:    "Adam",
		note:  fmt.Sprintf("%+v, step %v", c, step),
		large: large,
		in:    []matrix{s.random(rows, cols), row(rate), row(step)},
		out:   []output{{before: p}, {before: m}, {before: v}},
		call: func(o operands) {
			o.Adam(o.out[0], o.in[0], o.out[1], o.out[2], o.in[1], o.in[2], c)
		},
	}
	if !large || !s.short {
		for k, result := range s.define(t) { // terms of about 1 may cancel
			scale := result.mapped(func(v float64) float64 {
				return 1 + math.Abs(v)
			})
			t.out[k].tol = tolerance{ulps: 4, scale: &scale}
		}
	}
	if c.WeightDecay == 0 { // squares do not cancel
		t.out[2].tol.scale = nil
	}
	s.try(t)
}

// adamSteps makes twenty updates and compares them with the pseudo-code of
// torch.optim.Adam, which does not use ref.
func (s *suite) adamSteps(rows, cols int, c backend.AdamConfig, rate float64) {
	s.Helper()
	n := rows * cols
	rng := rand.New(rand.NewPCG(3, 4))
	torch := newTorchAdam(n)
	allowed := make([]float64, n) // error of p, which accumulates
	zero := constant(rows, cols, 0)
	tp := s.upload(zero)
	tm := s.upload(zero)
	tv := s.upload(zero)
	tg := s.alloc(rows, cols)
	tRate := s.upload(row(rate))
	tStep := s.upload(row(0))
	rate = s.round(rate)
	for t := 1; t <= 20; t++ {
		// The engine's update, with gradients of several magnitudes.
		g := constant(rows, cols, 0)
		for i := range g.v {
			g.v[i] = s.round(rng.NormFloat64() * math.Exp2(float64(i%9-6)))
		}
		g.v[0] = s.round(0.1) // always of the same sign
		s.b.Upload(tg, g.v)
		s.b.Affine(tStep, 1, tStep, 1)
		s.b.Adam(tp, tg, tm, tv, tRate, tStep, c)

		torch.update(g.v, rate, c, float64(t))
		results := []matrix{
			download(s.b, tp), download(s.b, tm), download(s.b, tv),
		}
		for i := range n {
			p := torch.p[i]
			v := torch.v[i]
			allowed[i] += 4 * s.eps * (math.Abs(p) + 8*rate)
			roundings := s.eps * float64(t+4)
			slack := []float64{
				allowed[i],
				roundings,
				2*roundings*v + 2*c.WeightDecay*allowed[i],
			}
			for k, want := range []float64{p, torch.m[i], v} {
				got := results[k].v[i]
				if off := math.Abs(got - want); !(off <= slack[k]) {
					s.errorf(
						"Adam [%d×%d], %+v, rate=%v: after step %d, element %s of %c is %v, want %v "+
							"(off by %.3g, allowed %.3g)",
						rows, cols, c, rate, t, zero.at(i),
						"pmv"[k], got, want, off, slack[k],
					)
					return
				}
			}
		}
	}
	for _, t := range []*tensor.Tensor{tp, tm, tv, tg, tRate, tStep} {
		s.free(t)
	}
}

// torchAdam is torch.optim.Adam in float64: the weights and the moments.
type torchAdam struct {
	p, m, v []float64
}

func newTorchAdam(n int) *torchAdam {
	return &torchAdam{
		p: make([]float64, n),
		m: make([]float64, n),
		v: make([]float64, n),
	}
}

// update makes step t, counted from 1, with the gradient g.
func (a *torchAdam) update(
	g []float64, rate float64, c backend.AdamConfig, t float64,
) {
	stepSize := rate / (1 - math.Pow(c.Beta1, t))
	correction2 := math.Sqrt(1 - math.Pow(c.Beta2, t))
	for i, g := range g {
		if c.WeightDecay != 0 {
			g += c.WeightDecay * a.p[i]
		}
		a.m[i] += (g - a.m[i]) * (1 - c.Beta1)
		a.v[i] = a.v[i]*c.Beta2 + (1-c.Beta2)*g*g
		a.p[i] -= stepSize * a.m[i] / (math.Sqrt(a.v[i])/correction2 + c.Eps)
	}
}

// miniature is a small training step: dropout, a layer, a loss with its
// gradient, Adam.
type miniature struct {
	b                                            backend.Backend
	x, w, h, mask, dh, g, m, v, rate, step, loss *tensor.Tensor
}

// newMiniature returns a miniature with the weights w and moments of zero.
func newMiniature(
	b backend.Backend, alloc func(rows, cols int) *tensor.Tensor, w matrix,
) *miniature {
	t := &miniature{
		b:    b,
		x:    alloc(19, 7),
		w:    alloc(7, 5),
		h:    alloc(19, 5),
		mask: alloc(19, 7),
		dh:   alloc(19, 5),
		g:    alloc(7, 5),
		m:    alloc(7, 5),
		v:    alloc(7, 5),
		rate: alloc(1, 1),
		step: alloc(1, 1),
		loss: alloc(1, 1),
	}
	b.Upload(t.w, w.v)
	for _, z := range []*tensor.Tensor{t.m, t.v, t.step} {
		b.Fill(z, 0)
	}
	b.Fill(t.rate, 0.125)
	return t
}

// run makes one step.
func (t *miniature) run() {
	b := t.b
	b.Affine(t.step, 1, t.step, 1)
	b.DropoutMask(t.mask, 0.75, 42, t.step)
	b.Binary(t.mask, backend.Mul, t.mask, t.x)
	b.Gemm(t.h, false, false, 1, t.mask, t.w, 0)
	b.Unary(t.dh, backend.Softplus, t.h)
	b.Dot(t.loss, t.dh, nil)
	b.Unary(t.dh, backend.Sigmoid, t.h)
	b.Gemm(t.g, true, false, 1, t.mask, t.dh, 0)
	b.Adam(
		t.w, t.g, t.m, t.v, t.rate, t.step,
		backend.AdamConfig{Beta1: 0.9, Beta2: 0.999, Eps: 1e-8},
	)
}

// state is what a miniature has computed.
type state struct{ w, loss matrix }

// runMiniature calls step for each of the inputs, and checks that it counts the calls.
func (s *suite) runMiniature(
	t *miniature, inputs []matrix, step func(i int),
) (states []state) {
	for i, x := range inputs {
		t.b.Upload(t.x, x.v)
		step(i)
		if got := download(t.b, t.step).v[0]; got != float64(i+1) {
			s.errorf("Capture: after %d runs of the step, it has counted %v",
				i+1, got)
		}
		states = append(states, state{
			download(t.b, t.w), download(t.b, t.loss),
		})
	}
	return states
}

// checkCapture records a training step that updates state in place and replays
// it on new inputs: every run must take effect exactly once.
func checkCapture(s *suite) {
	const steps = 6
	w := s.random(7, 5).mapped(s.round)
	inputs := make([]matrix, steps)
	for i := range inputs {
		inputs[i] = s.random(19, 7).mapped(s.round)
	}
	direct := newMiniature(s.b, s.alloc, w)
	want := s.runMiniature(direct, inputs, func(int) { direct.run() })

	recorded := newMiniature(s.b, s.alloc, w)
	var step backend.Step
	got := s.runMiniature(recorded, inputs, func(i int) {
		var err error
		if i == 0 {
			step, err = s.b.Capture(recorded.run)
		} else {
			err = step.Replay()
		}
		if err != nil {
			s.errorf("Capture, run %d: %v", i+1, err)
			panic(stop{})
		}
	})
	for i := range want {
		s.wantSame(
			fmt.Sprintf("Capture: weights after run %d", i+1),
			got[i].w,
			want[i].w,
		)
		s.wantSame(
			fmt.Sprintf("Capture: loss of run %d", i+1),
			got[i].loss,
			want[i].loss,
		)
	}
	twice := s.recordAgain(step, w, inputs)
	s.wantSame(
		"Capture: weights after two runs of a second recording",
		twice,
		want[1].w,
	)
	// The same step on ref, within the drift of six updates.
	oracle := newMiniature(s.ref, s.ref.Alloc, w)
	runOracle := func(int) { oracle.run() }
	for i, r := range s.runMiniature(oracle, inputs, runOracle) {
		for j, v := range r.w.v {
			if !(math.Abs(got[i].w.v[j]-v) <= 1000*s.eps) {
				s.errorf("Capture: weight %s after run %d is %v, want %v",
					r.w.at(j), i+1, got[i].w.v[j], v)
				break
			}
		}
	}
}

// recordAgain records a second step, closes the first one and replays the second, which must
// not depend on it. It returns the weights after both inputs.
func (s *suite) recordAgain(
	first backend.Step, w matrix, inputs []matrix,
) matrix {
	model := newMiniature(s.b, s.alloc, w)
	s.b.Upload(model.x, inputs[0].v)
	second, err := s.b.Capture(model.run)
	if err != nil {
		s.errorf("Capture of a second step: %v", err)
		panic(stop{})
	}
	if err := first.Close(); err != nil {
		s.errorf("Close: %v", err)
	}
	s.b.Upload(model.x, inputs[1].v)
	if err := second.Replay(); err != nil {
		s.errorf("Replay of a second step: %v", err)
	}
	weights := download(s.b, model.w)
	if err := second.Close(); err != nil {
		s.errorf("Close of a second step: %v", err)
	}
	return weights
}
