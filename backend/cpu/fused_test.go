package cpu_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/backend/cpu"
	"github.com/specmatch/specmatch/tensor"
)

// These tests compare the fused forms in float64 with their definitions in plain loops, and
// their gradients with central differences of the definitions. Every case has several blocks
// of rows, and graphs, views and rows that are empty or padding.

// host is a row-major matrix on the host.
type host struct {
	rows, cols int
	v          []float64
}

func newHost(rows, cols int) *host { return &host{rows, cols, make([]float64, rows*cols)} }

func randomHost(rng *rand.Rand, rows, cols int) *host {
	m := newHost(rows, cols)
	for i := range m.v {
		m.v[i] = rng.NormFloat64()
	}
	return m
}

func (m *host) row(i int) []float64 { return m.v[i*m.cols : (i+1)*m.cols] }

func (m *host) times(b *host) *host {
	c := newHost(m.rows, b.cols)
	for i := range m.rows {
		row := c.row(i)
		for k, x := range m.row(i) {
			for j, y := range b.row(k) {
				row[j] += x * y
			}
		}
	}
	return c
}

// addReLU sets every element to max(x + bias, 0).
func (m *host) addReLU(bias *host) {
	for i := range m.v {
		m.v[i] = max(m.v[i]+bias.v[i%m.cols], 0)
	}
}

func (m *host) dot(b *host) (sum float64) {
	for i, x := range m.v {
		sum += x * b.v[i]
	}
	return sum
}

// segmentSums returns the sums of the rows of each segment.
func (m *host) segmentSums(ptr []int32) *host {
	sums := newHost(len(ptr)-1, m.cols)
	for g := range sums.rows {
		for i := int(ptr[g]); i < int(ptr[g+1]); i++ {
			for j, x := range m.row(i) {
				sums.row(g)[j] += x
			}
		}
	}
	return sums
}

// norm is the affine map of batch norm over the rows of the groups; rows after them give 0.
// Row i counts weight_i times. With mean and variance set, these stand for the statistics of
// every group.
type norm struct {
	groups         []int32
	gamma, beta    *host
	weight         []float64
	mean, variance []float64
}

const normEps = 1e-5

// statistics returns the mean and the biased variance of column j over the rows lo..hi-1.
func (n *norm) statistics(x *host, j, lo, hi int) (mean, variance float64) {
	if n.mean != nil {
		return n.mean[j], n.variance[j]
	}
	count := 0.0
	for i := lo; i < hi; i++ {
		mean += n.weight[i] * x.row(i)[j]
		count += n.weight[i]
	}
	mean /= max(count, 1)
	for i := lo; i < hi; i++ {
		d := x.row(i)[j] - mean
		variance += n.weight[i] * d * d
	}
	return mean, variance / max(count, 1)
}

func (n *norm) apply(x *host) *host {
	y := newHost(x.rows, x.cols)
	for g := range len(n.groups) - 1 {
		lo, hi := int(n.groups[g]), int(n.groups[g+1])
		for j := range x.cols {
			mean, variance := n.statistics(x, j, lo, hi)
			for i := lo; i < hi; i++ {
				y.row(i)[j] = n.gamma.v[j]*(x.row(i)[j]-mean)/math.Sqrt(variance+normEps) + n.beta.v[j]
			}
		}
	}
	return y
}

// fusedBatch is graphs of up to 24 nodes in three views, the second of which is empty, with
// directed edges inside the graphs, and three rows of padding.
type fusedBatch struct {
	nodes, rows         int
	graphs, views       []int32
	ptr, col, ptrT, row []int32
	val, valT           []float64
}

func newFusedBatch(rng *rand.Rand, graphs int) *fusedBatch {
	b := &fusedBatch{graphs: []int32{0}, ptr: []int32{0}, ptrT: []int32{0}}
	type entry struct {
		node  int
		value float64
	}
	var transposed [][]entry
	for g := range graphs {
		lo := len(b.ptr) - 1
		size := rng.IntN(25)
		if g == graphs/3 {
			size = 0
		}
		transposed = append(transposed, make([][]entry, size)...)
		for i := lo; i < lo+size; i++ {
			for range rng.IntN(4) {
				j := lo + rng.IntN(size)
				value := rng.NormFloat64()
				b.col = append(b.col, int32(j))
				b.val = append(b.val, value)
				transposed[j] = append(transposed[j], entry{i, value})
			}
			b.ptr = append(b.ptr, int32(len(b.col)))
		}
		b.graphs = append(b.graphs, int32(lo+size))
	}
	for _, entries := range transposed {
		for _, e := range entries {
			b.row = append(b.row, int32(e.node))
			b.valT = append(b.valT, e.value)
		}
		b.ptrT = append(b.ptrT, int32(len(b.row)))
	}
	b.nodes = len(transposed)
	b.rows = b.nodes + 3
	for range 3 {
		b.ptr = append(b.ptr, int32(len(b.col)))
		b.ptrT = append(b.ptrT, int32(len(b.row)))
	}
	half := b.graphs[graphs/2]
	b.views = []int32{0, half, half, int32(b.nodes)}
	return b
}

// propagate returns self·x + A·x, with ones for the values of A unless weighted.
func (b *fusedBatch) propagate(x *host, self float64, weighted bool) *host {
	y := newHost(x.rows, x.cols)
	for i := range b.nodes {
		for j, v := range x.row(i) {
			y.row(i)[j] = self * v
		}
		for k := b.ptr[i]; k < b.ptr[i+1]; k++ {
			weight := 1.0
			if weighted {
				weight = b.val[k]
			}
			for j, v := range x.row(int(b.col[k])) {
				y.row(i)[j] += weight * v
			}
		}
	}
	return y
}

func (b *fusedBatch) weights() []float64 { return slices.Repeat([]float64{1}, b.rows) }

// fusedTest uploads operands and compares results.
type fusedTest struct {
	*testing.T
	be  backend.Backend
	rng *rand.Rand
}

func newFusedTest(t *testing.T) *fusedTest {
	return &fusedTest{t, cpu.New(tensor.Float64, cpu.Workers(3)), rand.New(rand.NewPCG(21, 22))}
}

func (t *fusedTest) upload(m *host) *tensor.Tensor {
	x := t.be.Alloc(m.rows, m.cols)
	t.be.Upload(x, m.v)
	return x
}

// like returns a tensor of m's shape that holds NaN.
func (t *fusedTest) like(m *host) *tensor.Tensor {
	x := t.be.Alloc(m.rows, m.cols)
	t.be.Fill(x, math.NaN())
	return x
}

func (t *fusedTest) adjacency(b *fusedBatch, weighted bool) (a, transposed *backend.CSR) {
	matrix := func(ptr, col []int32, val []float64) *backend.CSR {
		m := &backend.CSR{Rows: b.rows, Cols: b.rows, Ptr: t.be.Indices(ptr), Col: t.be.Indices(col)}
		if weighted {
			m.Val = t.upload(&host{len(val), 1, val})
		}
		return m
	}
	return matrix(b.ptr, b.col, b.val), matrix(b.ptrT, b.row, b.valT)
}

func (t *fusedTest) download(x *tensor.Tensor) *host {
	m := newHost(x.Rows, x.Cols)
	t.be.Download(m.v, x)
	return m
}

// near checks values against those of the definition, within some units of float64's
// rounding of the largest.
func (t *fusedTest) near(what string, got *tensor.Tensor, want *host) {
	t.Helper()
	have := t.download(got)
	tolerance := 1e-11 * max(math.Abs(slices.Max(want.v)), math.Abs(slices.Min(want.v)), 1)
	for i, w := range want.v {
		if !(math.Abs(have.v[i]-w) <= tolerance) {
			t.Errorf("%s: element (%d, %d) is %v, want %v", what, i/want.cols, i%want.cols, have.v[i], w)
			return
		}
	}
}

// slope checks the derivative of the loss in a random direction of the operand x.
func (t *fusedTest) slope(what string, gradient *tensor.Tensor, x *host, loss func() float64) {
	t.Helper()
	const step = 1e-7 // few enough elements cross the kink of a ReLU
	g := t.download(gradient)
	direction := newHost(x.rows, x.cols)
	for i := range direction.v {
		direction.v[i] = float64(2*t.rng.IntN(2) - 1)
	}
	start := slices.Clone(x.v)
	shifted := func(h float64) float64 {
		for i := range x.v {
			x.v[i] = start[i] + h*direction.v[i]
		}
		return loss()
	}
	want := (shifted(step) - shifted(-step)) / (2 * step)
	copy(x.v, start)
	size := math.Sqrt(g.dot(g))
	if got := g.dot(direction); !(math.Abs(got-want) <= 1e-5*max(size, 1)) {
		t.Errorf("%s: the derivative is %v, want %v; the gradient's norm is %v", what, got, want, size)
	}
}

// TestGINLayer covers one-hot and dense inputs, both kinds of statistics and missing outputs.
func TestGINLayer(t *testing.T) {
	for _, c := range []struct {
		oneHot, running bool
		self            float64
		without         string // the output without a gradient
	}{
		{},
		{self: 1.5},
		{oneHot: true, self: 1},
		{oneHot: true, self: 1.5, without: "y"},
		{running: true, self: 1, without: "pooled"},
	} {
		t.Run(fmt.Sprintf("%+v", c), func(t *testing.T) {
			ginLayer(newFusedTest(t), c.oneHot, c.running, c.self, c.without)
		})
	}
}

func ginLayer(t *fusedTest, oneHot, running bool, self float64, without string) {
	const in, hid, out = 5, 100, 6
	b := newFusedBatch(t.rng, 36)
	x := randomHost(t.rng, b.rows, in)
	category := make([]int32, b.rows)
	if oneHot {
		clear(x.v)
		for i := range category {
			category[i] = int32(t.rng.IntN(in))
			x.row(i)[category[i]] = 1
		}
	}
	w1, b1 := randomHost(t.rng, in, hid), randomHost(t.rng, 1, hid)
	w2, b2 := randomHost(t.rng, hid, out), randomHost(t.rng, 1, out)
	n := &norm{groups: b.views, gamma: randomHost(t.rng, 1, out), beta: randomHost(t.rng, 1, out), weight: b.weights()}
	statistics := newHost(3, out)
	if running {
		statistics = newHost(1, out)
		n.mean, n.variance = randomHost(t.rng, 1, out).v, slices.Repeat([]float64{0.7}, out)
	}
	forward := func() (y, pooled *host) {
		h := b.propagate(x, self, false).times(w1)
		h.addReLU(b1)
		h = h.times(w2)
		h.addReLU(b2)
		y = n.apply(h)
		return y, y.segmentSums(b.graphs)
	}
	wantY, wantPooled := forward()

	l := &backend.GINLayer{
		Graphs: t.be.Indices(b.graphs), Views: t.be.Indices(b.views), Self: self, Eps: normEps, Running: running,
		W1: t.upload(w1), B1: t.upload(b1), W2: t.upload(w2), B2: t.upload(b2), Gamma: t.upload(n.gamma), Beta: t.upload(n.beta),
		Mean: t.like(statistics), Var: t.like(statistics),
		H1: t.like(newHost(b.rows, hid)), H2: t.like(wantY), Sums: t.like(wantPooled),
		Y: t.like(wantY), Pooled: t.like(wantPooled),
	}
	l.Adj, l.AdjT = t.adjacency(b, false)
	if oneHot {
		l.Category = t.be.Indices(category)
	} else {
		l.X, l.Agg = t.upload(x), t.like(x)
	}
	if running {
		t.be.Upload(l.Mean, n.mean)
		t.be.Upload(l.Var, n.variance)
	}
	fuser := backend.CapabilitiesOf(t.be).GIN
	fuser.GINForward(l)
	t.near("y", l.Y, wantY)
	t.near("pooled", l.Pooled, wantPooled)

	dy, dpooled := randomHost(t.rng, b.rows, out), randomHost(t.rng, wantPooled.rows, out)
	g := &backend.GINGradients{
		W1: t.like(w1), B1: t.like(b1), W2: t.like(w2), B2: t.like(b2), Gamma: t.like(n.gamma), Beta: t.like(n.beta),
	}
	if without == "y" {
		clear(dy.v)
	} else {
		g.DY = t.upload(dy)
	}
	if without == "pooled" {
		clear(dpooled.v)
	} else {
		g.DPooled = t.upload(dpooled)
	}
	if !oneHot {
		g.DX = t.like(x)
	}
	fuser.GINBackward(l, g)
	loss := func() float64 {
		y, pooled := forward()
		return y.dot(dy) + pooled.dot(dpooled)
	}
	t.slope("w1", g.W1, w1, loss)
	t.slope("b1", g.B1, b1, loss)
	t.slope("w2", g.W2, w2, loss)
	t.slope("b2", g.B2, b2, loss)
	t.slope("gamma", g.Gamma, n.gamma, loss)
	t.slope("beta", g.Beta, n.beta, loss)
	if g.DX != nil {
		t.slope("x", g.DX, x, loss)
	}
}

// TestGCNLayer covers both kinds of statistics, with and without a residual.
func TestGCNLayer(t *testing.T) {
	for _, residual := range []bool{false, true} {
		for _, running := range []bool{false, true} {
			t.Run(fmt.Sprintf("residual=%v running=%v", residual, running), func(t *testing.T) {
				gcnLayer(newFusedTest(t), residual, running)
			})
		}
	}
}

func gcnLayer(t *fusedTest, residual, running bool) {
	const in = 512 // blocks of 128 rows
	out := 6
	if residual {
		out = in
	}
	b := newFusedBatch(t.rng, 24)
	x, w, bias := randomHost(t.rng, b.rows, in), randomHost(t.rng, in, out), randomHost(t.rng, 1, out)
	for i := range w.v {
		w.v[i] /= 16
	}
	n := &norm{groups: b.views, gamma: randomHost(t.rng, 1, in), beta: randomHost(t.rng, 1, in), weight: b.weights()}
	statistics := newHost(3, in)
	if running {
		statistics = newHost(1, in)
		n.mean, n.variance = randomHost(t.rng, 1, in).v, slices.Repeat([]float64{0.7}, in)
	}
	forward := func() *host {
		y := b.propagate(n.apply(x).times(w), 0, true)
		y.addReLU(bias)
		clear(y.v[b.nodes*out:])
		if residual {
			for i := range y.v[:b.nodes*out] {
				y.v[i] += x.v[i]
			}
		}
		return y
	}
	want := forward()

	l := &backend.GCNLayer{
		Graphs: t.be.Indices(b.graphs), Views: t.be.Indices(b.views), Residual: residual, Eps: normEps, Running: running,
		X: t.upload(x), Gamma: t.upload(n.gamma), Beta: t.upload(n.beta), W: t.upload(w), B: t.upload(bias),
		Mean: t.like(statistics), Var: t.like(statistics), R: t.like(want),
	}
	l.Adj, l.AdjT = t.adjacency(b, true)
	l.Y = l.R
	if residual {
		l.Y = t.like(want)
	}
	if running {
		t.be.Upload(l.Mean, n.mean)
		t.be.Upload(l.Var, n.variance)
	}
	fuser := backend.CapabilitiesOf(t.be).GCN
	fuser.GCNForward(l)
	t.near("y", l.Y, want)

	dy := randomHost(t.rng, b.rows, out)
	g := &backend.GCNGradients{
		DY: t.upload(dy), DX: t.like(x), Gamma: t.like(n.gamma), Beta: t.like(n.beta), W: t.like(w), B: t.like(bias),
	}
	fuser.GCNBackward(l, g)
	loss := func() float64 { return forward().dot(dy) }
	t.slope("x", g.DX, x, loss)
	t.slope("gamma", g.Gamma, n.gamma, loss)
	t.slope("beta", g.Beta, n.beta, loss)
	t.slope("w", g.W, w, loss)
	t.slope("bias", g.B, bias, loss)
}

// TestNormLayer covers batch norm with and without ReLU and weights, in blocks of 128 rows.
func TestNormLayer(t *testing.T) {
	for _, relu := range []bool{false, true} {
		for _, weighted := range []bool{false, true} {
			t.Run(fmt.Sprintf("relu=%v weighted=%v", relu, weighted), func(t *testing.T) {
				normLayer(newFusedTest(t), relu, weighted)
			})
		}
	}
}

func normLayer(t *fusedTest, relu, weighted bool) {
	const rows, cols = 600, 128
	x := randomHost(t.rng, rows, cols)
	n := &norm{
		groups: []int32{0, 301, 301, 597},
		gamma:  randomHost(t.rng, 1, cols), beta: randomHost(t.rng, 1, cols),
		weight: slices.Repeat([]float64{1}, rows),
	}
	if weighted {
		for i := range n.weight {
			n.weight[i] = 1 + float64(t.rng.IntN(3))
		}
	}
	forward := func() *host {
		y := n.apply(x)
		if relu {
			y.addReLU(newHost(1, cols))
		}
		return y
	}
	want := forward()
	l := &backend.Norm{
		Groups: t.be.Indices(n.groups), Eps: normEps, ReLU: relu,
		X: t.upload(x), Gamma: t.upload(n.gamma), Beta: t.upload(n.beta),
		Y: t.like(want), Mean: t.like(newHost(3, cols)), Var: t.like(newHost(3, cols)),
	}
	if weighted {
		l.Weights = t.upload(&host{rows, 1, n.weight})
	}
	fuser := backend.CapabilitiesOf(t.be).Norm
	fuser.NormForward(l)
	t.near("y", l.Y, want)

	dy := randomHost(t.rng, rows, cols)
	g := &backend.NormGradients{DY: t.upload(dy), DX: t.like(x), Gamma: t.like(n.gamma), Beta: t.like(n.beta)}
	fuser.NormBackward(l, g)
	loss := func() float64 { return forward().dot(dy) }
	t.slope("gamma", g.Gamma, n.gamma, loss)
	t.slope("beta", g.Beta, n.beta, loss)
	t.slope("x", g.DX, x, loss)
}

// contrastCase is a setting of both losses, kept or in tiles.
type contrastCase struct {
	graphs                         int
	tiles, noXent, match, crossing bool
}

// TestContrast covers both losses, alone and together, kept and in one to three tiles.
func TestContrast(t *testing.T) {
	for _, c := range []contrastCase{
		{graphs: 150},
		{graphs: 150, match: true},
		{graphs: 60, tiles: true, match: true},
		{graphs: 150, tiles: true},
		{graphs: 150, tiles: true, noXent: true, match: true},
		{graphs: 300, tiles: true, match: true},
		{graphs: 300, tiles: true, crossing: true},
		{graphs: 150, tiles: true, crossing: true, match: true},
	} {
		t.Run(fmt.Sprintf("%+v", c), func(t *testing.T) { c.check(newFusedTest(t)) })
	}
}

const (
	contrastTau        = 0.5
	contrastKappa      = 3
	contrastPercentile = 61.8
)

func (c *contrastCase) check(t *fusedTest) {
	const dims = 4
	m := 2 * c.graphs
	u := randomHost(t.rng, m, dims)
	for i := range m {
		row := u.row(i)
		length := math.Sqrt((&host{1, dims, row}).dot(&host{1, dims, row}))
		for j := range row {
			row[j] /= length
		}
	}
	clear(u.row(3))
	scale := 1 / float64(m)
	theta := c.thresholds(u)

	one, column := newHost(1, 1), newHost(m, 1)
	x := &backend.Contrast{
		U: t.upload(u), Temperature: contrastTau, Scale: scale, CrossView: c.crossing,
		Match: c.match, Kappa: contrastKappa, Percentile: contrastPercentile,
	}
	if !c.noXent {
		x.LossC, x.InvZ = t.like(one), t.like(column)
	}
	if c.match {
		x.LossG, x.R, x.W = t.like(one), t.like(column), t.like(column)
	}
	if !c.tiles {
		x.E = t.like(newHost(m, m))
	}
	if c.match && !c.tiles {
		square := newHost(c.graphs, c.graphs)
		x.A1, x.A2 = t.like(square), t.like(square)
	}
	fuser := backend.CapabilitiesOf(t.be).Contrast
	fuser.ContrastForward(x)

	// The gradients of both losses have different factors.
	du := t.like(u)
	dc, dg := 1.3, 0.7
	var dLossC, dLossG *tensor.Tensor
	if c.noXent {
		dc = 0
	} else {
		t.near("L_C", x.LossC, &host{1, 1, []float64{c.xent(u, scale)}})
		dLossC = t.upload(&host{1, 1, []float64{dc}})
	}
	if c.match {
		t.near("L_G", x.LossG, &host{1, 1, []float64{c.laplacian(u, theta)}})
		dLossG = t.upload(&host{1, 1, []float64{dg}})
	} else {
		dg = 0
	}
	fuser.ContrastBackward(x, dLossC, dLossG, du)
	t.slope("u", du, u, func() float64 {
		sum := 0.0
		if dc != 0 {
			sum += dc * c.xent(u, scale)
		}
		if dg != 0 {
			sum += dg * c.laplacian(u, theta)
		}
		return sum
	})
}

// similarity returns the product of rows i and j of u.
func similarity(u *host, i, j int) (s float64) {
	for k, x := range u.row(i) {
		s += x * u.row(j)[k]
	}
	return s
}

// xent is NT-Xent: every row against all others, or those of view 1 against the negatives of
// view 2.
func (c *contrastCase) xent(u *host, scale float64) float64 {
	anchors, first := u.rows, 0
	if c.crossing {
		anchors, first = c.graphs, c.graphs
	}
	total := 0.0
	for i := range anchors {
		positive := (i + c.graphs) % u.rows
		z := 0.0
		for j := first; j < u.rows; j++ {
			if j != i && !(c.crossing && j == positive) {
				z += math.Exp(similarity(u, i, j) / contrastTau)
			}
		}
		total += math.Log(z) - similarity(u, i, positive)/contrastTau
	}
	return scale * total
}

// thresholds returns the percentile of the similarities within each view.
func (c *contrastCase) thresholds(u *host) (theta [2]float64) {
	for v := range theta {
		var upper []float64
		for i := range c.graphs {
			for j := range i {
				upper = append(upper, similarity(u, v*c.graphs+i, v*c.graphs+j))
			}
		}
		slices.Sort(upper)
		k, second := backend.PercentilePosition(len(upper), contrastPercentile)
		theta[v] = upper[k]
		if second != 0 {
			theta[v] = (1-second)*upper[k] + second*upper[k+1]
		}
	}
	return theta
}

// laplacian is ‖M_1 - M_2‖² of the normalised similarity graphs.
func (c *contrastCase) laplacian(u *host, theta [2]float64) float64 {
	n := c.graphs
	var m [2]*host
	for v := range m {
		a := newHost(n, n)
		degree := make([]float64, n)
		for i := range n {
			for j := range n {
				if i != j {
					s := similarity(u, v*n+i, v*n+j)
					a.row(i)[j] = 1 / (1 + math.Exp(-contrastKappa*(s-theta[v])))
					degree[i] += a.row(i)[j]
				}
			}
		}
		for i := range n {
			for j := range n {
				a.row(i)[j] /= math.Sqrt(degree[i] * degree[j])
			}
		}
		m[v] = a
	}
	total := 0.0
	for i, x := range m[0].v {
		d := x - m[1].v[i]
		total += d * d
	}
	return total
}

// TestBiasReLU compares bias with ReLU, and its gradients, in several blocks of rows.
func TestBiasReLU(test *testing.T) {
	t := newFusedTest(test)
	const rows, cols = 300, 130
	x, bias, dy := randomHost(t.rng, rows, cols), randomHost(t.rng, 1, cols), randomHost(t.rng, rows, cols)
	want := newHost(rows, cols)
	copy(want.v, x.v)
	want.addReLU(bias)
	dx := newHost(rows, cols)
	for i, y := range want.v {
		if y > 0 {
			dx.v[i] = dy.v[i]
		}
	}
	fuser := backend.CapabilitiesOf(t.be).Bias
	y, gotDX, db := t.like(want), t.like(want), t.like(bias)
	fuser.BiasReLU(y, t.upload(x), t.upload(bias))
	fuser.BiasReLUBackward(gotDX, db, t.upload(dy), y)
	t.near("y", y, want)
	t.near("dx", gotDX, dx)
	t.near("db", db, dx.segmentSums([]int32{0, rows}))
}

// TestTrackStatistics updates running statistics by groups of many rows, of one and of none.
func TestTrackStatistics(test *testing.T) {
	t := newFusedTest(test)
	const cols, momentum = 7, 0.1
	groups := []int32{0, 5, 5, 6, 40}
	mean, variance := randomHost(t.rng, 4, cols), randomHost(t.rng, 4, cols)
	runningMean, runningVar := randomHost(t.rng, 1, cols), randomHost(t.rng, 1, cols)
	gotMean, gotVar := t.upload(runningMean), t.upload(runningVar)
	tracker := backend.CapabilitiesOf(t.be).Statistics
	tracker.TrackStatistics(gotMean, gotVar, t.upload(mean), t.upload(variance), t.be.Indices(groups), momentum)
	for g, bessel := range []float64{5. / 4, 0, 1, 34. / 33} {
		if bessel == 0 {
			continue // no rows
		}
		for j := range cols {
			runningMean.v[j] += momentum * (mean.row(g)[j] - runningMean.v[j])
			runningVar.v[j] += momentum * (bessel*variance.row(g)[j] - runningVar.v[j])
		}
	}
	t.near("mean", gotMean, runningMean)
	t.near("variance", gotVar, runningVar)
}

// TestLayerRows covers a layer with its products, with and without the next layer's, in
// several blocks of rows, and the last layer, which sums the rows of graphs.
func TestLayerRows(test *testing.T) {
	t := newFusedTest(test)
	const in, hid, out, next, kinds = 5, 9, 6, 4, 3
	b := newFusedBatch(t.rng, 160)
	x, counts, embedding := randomHost(t.rng, b.rows, in), randomHost(t.rng, b.rows, kinds), randomHost(t.rng, kinds, in)
	w1, b1, w2 := randomHost(t.rng, in, hid), randomHost(t.rng, 1, hid), randomHost(t.rng, hid, out)
	b2, scale, shift := randomHost(t.rng, 1, out), randomHost(t.rng, 1, out), randomHost(t.rng, 1, out)
	w := randomHost(t.rng, out, next)
	inputs := b.propagate(x, 0, false)
	for i, v := range counts.times(embedding).v {
		inputs.v[i] += v
	}
	adjacency, _ := t.adjacency(b, false)
	operands := backend.RowsLayer{A: adjacency, X: t.upload(x), C: t.upload(counts), E: t.upload(embedding)}
	keeper := backend.CapabilitiesOf(t.be).Rows
	target := make([]int32, b.rows)
	for i, j := range t.rng.Perm(b.rows) {
		target[i] = int32(j)
	}
	for _, relu := range []bool{false, true} {
		for _, product := range []bool{false, true} {
			h := inputs.times(w1)
			h.addReLU(b1)
			h = h.times(w2)
			for i := range h.v {
				j := i % out
				h.v[i] = (h.v[i]+b2.v[j])*scale.v[j] + shift.v[j]
				if relu {
					h.v[i] = max(h.v[i], 0)
				}
			}
			l := operands
			l.W1, l.B1, l.W2, l.B2 = t.upload(w1), t.upload(b1), t.upload(w2), t.upload(b2)
			l.Scale, l.Shift, l.ReLU, l.To = t.upload(scale), t.upload(shift), relu, target
			if product {
				l.W = t.upload(w)
				h = h.times(w)
			}
			want := newHost(h.rows, h.cols)
			for i, j := range target {
				copy(want.row(int(j)), h.row(i))
			}
			l.Y = t.like(want)
			keeper.LayerRows(&l)
			t.near(fmt.Sprintf("ReLU %v, product %v", relu, product), l.Y, want)
		}
	}

	bias := randomHost(t.rng, 1, in)
	inputs.addReLU(bias)
	want := inputs.segmentSums(b.graphs)
	l := operands
	l.B1, l.Graphs, l.Y = t.upload(bias), t.be.Indices(b.graphs), t.like(want)
	keeper.LayerRows(&l)
	t.near("sums of graphs", l.Y, want)
}
