package backend_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/specmatch/specmatch/backend"
	_ "github.com/specmatch/specmatch/backend/ref"
	"github.com/specmatch/specmatch/tensor"
)

func TestOpen(t *testing.T) {
	var asked []tensor.Precision
	backend.Register("test", func(p tensor.Precision) (backend.Backend, error) {
		asked = append(asked, p)
		return nil, errors.New("out of order")
	})
	names := backend.Names()
	if !slices.IsSorted(names) || !slices.Contains(names, "ref") || !slices.Contains(names, "test") {
		t.Errorf("Names() = %v, want a sorted list with ref and test", names)
	}

	// Open hands the precision on, and the engine's error back.
	for _, p := range []tensor.Precision{tensor.Float32, tensor.Float64} {
		if b, err := backend.Open("test", p); b != nil || err == nil || err.Error() != "out of order" {
			t.Errorf("Open(test, %v) = %v, %v, want the engine's error", p, b, err)
		}
	}
	if d := cmp.Diff([]tensor.Precision{tensor.Float32, tensor.Float64}, asked); d != "" {
		t.Errorf("the engine was asked for (-want +got):\n%s", d)
	}

	// What is not there is named, together with what is; cuda with its cure.
	list := strings.Join(names, ", ")
	for _, c := range []struct{ name, want string }{
		{"gpu", fmt.Sprintf("backend %q is unknown (have: %s)", "gpu", list)},
		{"", fmt.Sprintf("backend %q is unknown (have: %s)", "", list)},
		{"CPU", fmt.Sprintf("backend %q is unknown (have: %s)", "CPU", list)},
		{"cuda", fmt.Sprintf("backend %q is not in this build; rebuild with -tags cuda (have: %s)", "cuda", list)},
	} {
		if c.name == "cuda" && slices.Contains(names, "cuda") {
			continue
		}
		if b, err := backend.Open(c.name, tensor.Float64); b != nil || err == nil || err.Error() != c.want {
			t.Errorf("Open(%q) = %v, %v, want the error\n%s", c.name, b, err, c.want)
		}
	}

	defer func() {
		if r := recover(); r == nil || !strings.Contains(fmt.Sprint(r), "test") {
			t.Errorf("a second Register of test panicked with %v, want a panic that names it", r)
		}
	}()
	backend.Register("test", nil)
}

func TestNamesOfOps(t *testing.T) {
	names := func(list any) string { return fmt.Sprint(list) }
	for _, c := range []struct{ got, want string }{
		{names(backend.UnaryOps()), "[Exp Log Sqrt Sigmoid Softplus Tanh ReLU Abs Sign Reciprocal InvSqrt]"},
		{names(backend.BinaryOps()), "[Add Sub Mul Div Max Greater Gate]"},
		{names(backend.RowOps()), "[RowSum RowMax RowLogSumExp]"},
		{names([]any{backend.Exp, backend.InvSqrt, backend.Add, backend.Gate, backend.RowSum, backend.RowLogSumExp}), "[Exp InvSqrt Add Gate RowSum RowLogSumExp]"},
	} {
		if c.got != c.want {
			t.Errorf("the operations are %s, want %s", c.got, c.want)
		}
	}
}

func TestError(t *testing.T) {
	cause := errors.New("out of memory")
	var err error = &backend.Error{Backend: "cuda", Op: "Alloc [5×7]", Err: cause}
	if got, want := err.Error(), "backend cuda: Alloc [5×7]: out of memory"; got != want {
		t.Errorf("the message is %q, want %q", got, want)
	}
	if !errors.Is(err, cause) {
		t.Error("the error does not wrap its cause")
	}
}

// shape returns a tensor that has a shape and nothing else: the checks look at
// no more.
func shape(rows, cols int) *tensor.Tensor { return &tensor.Tensor{Rows: rows, Cols: cols} }

func indices(v ...int32) *backend.Indices { return &backend.Indices{Host: v} }

// TestChecks calls every check with shapes at the edge: what it must accept, and
// next to it what it must not. The suite in backendtest holds engines to more.
func TestChecks(t *testing.T) {
	csr := func(rows, cols, nnz int, val *tensor.Tensor) *backend.CSR {
		ptr := make([]int32, rows+1)
		ptr[rows] = int32(nnz)
		return &backend.CSR{Rows: rows, Cols: cols, Ptr: indices(ptr...), Col: indices(make([]int32, nnz)...), Val: val}
	}
	one := shape(1, 1)
	messages := func(y, counts *tensor.Tensor, tables ...*tensor.Tensor) {
		backend.CheckMessages(y, csr(2, 2, 5, nil), shape(2, 4), 1, counts, tables)
	}
	for _, c := range []struct {
		name string
		ok   bool
		call func()
	}{
		{"Alloc: nothing", true, func() { backend.CheckAlloc(0, 0) }},
		{"Alloc: negative", false, func() { backend.CheckAlloc(0, -1) }},
		{"Host", true, func() { backend.CheckHost("op", shape(2, 3), 6) }},
		{"Host: empty", true, func() { backend.CheckHost("op", shape(0, 3), 0) }},
		{"Host: short", false, func() { backend.CheckHost("op", shape(2, 3), 5) }},
		{"Same: one", true, func() { backend.CheckSame("op", shape(2, 3)) }},
		{"Same: three", true, func() { backend.CheckSame("op", shape(2, 3), shape(2, 3), shape(2, 3)) }},
		{"Same: the last differs", false, func() { backend.CheckSame("op", shape(2, 3), shape(2, 3), shape(2, 4)) }},
		{"Same: transposed", false, func() { backend.CheckSame("op", shape(2, 3), shape(3, 2)) }},
		{"Row", true, func() { backend.CheckRow("op", shape(2, 3), shape(2, 3), shape(1, 3)) }},
		{"Row: column", false, func() { backend.CheckRow("op", shape(2, 3), shape(2, 3), shape(3, 1)) }},
		{"Row: dst", false, func() { backend.CheckRow("op", shape(1, 3), shape(2, 3), shape(1, 3)) }},
		{"Col", true, func() { backend.CheckCol("op", shape(2, 3), shape(2, 3), shape(2, 1)) }},
		{"Col: row", false, func() { backend.CheckCol("op", shape(2, 3), shape(2, 3), shape(1, 2)) }},
		{"Col: dst", false, func() { backend.CheckCol("op", shape(2, 1), shape(2, 3), shape(2, 1)) }},
		{"Scalar", true, func() { backend.CheckScalar("op", shape(2, 3), shape(2, 3), one) }},
		{"Scalar: row", false, func() { backend.CheckScalar("op", shape(2, 3), shape(2, 3), shape(1, 3)) }},
		{"Scalar: dst", false, func() { backend.CheckScalar("op", one, shape(2, 3), one) }},
		{"Block: all", true, func() { backend.CheckBlock(shape(2, 3), 0, 0, shape(2, 3), 0, 0, 2, 3) }},
		{"Block: none, at the end", true, func() { backend.CheckBlock(shape(2, 3), 2, 3, shape(2, 3), 2, 3, 0, 0) }},
		{"Block: none, behind the end", false, func() { backend.CheckBlock(shape(2, 3), 3, 0, shape(2, 3), 0, 0, 0, 0) }},
		{"Block: dst row", false, func() { backend.CheckBlock(shape(2, 3), 1, 0, shape(2, 3), 0, 0, 2, 3) }},
		{"Block: dst column", false, func() { backend.CheckBlock(shape(2, 3), 0, 1, shape(2, 3), 0, 0, 2, 3) }},
		{"Block: src row", false, func() { backend.CheckBlock(shape(2, 3), 0, 0, shape(2, 3), 1, 0, 2, 3) }},
		{"Block: src column", false, func() { backend.CheckBlock(shape(2, 3), 0, 0, shape(2, 3), 0, 1, 2, 3) }},
		{"Block: negative", false, func() { backend.CheckBlock(shape(2, 3), 0, 0, shape(2, 3), 0, -1, 1, 1) }},
		{"Transpose", true, func() { backend.CheckTranspose(shape(2, 3), shape(3, 2)) }},
		{"Transpose: same", false, func() { backend.CheckTranspose(shape(2, 3), shape(2, 3)) }},
		{"Gather", true, func() { backend.CheckGather(shape(2, 3), shape(9, 3), indices(8, 8)) }},
		{"Gather: none", true, func() { backend.CheckGather(shape(0, 3), shape(9, 3), indices()) }},
		{"Gather: count", false, func() { backend.CheckGather(shape(3, 3), shape(9, 3), indices(8, 8)) }},
		{"Gather: width", false, func() { backend.CheckGather(shape(2, 3), shape(9, 4), indices(8, 8)) }},
		{"UpdateIndices", true, func() {
			backend.CheckUpdateIndices([]*backend.Indices{indices(1), indices(2, 3)}, [][]int32{{4}, {5, 6}})
		}},
		{"UpdateIndices: count", false, func() { backend.CheckUpdateIndices([]*backend.Indices{indices(1)}, [][]int32{{4}, {5, 6}}) }},
		{"UpdateIndices: short", false, func() { backend.CheckUpdateIndices([]*backend.Indices{indices(2, 3)}, [][]int32{{5}}) }},
		{"UpdateIndices: long", false, func() { backend.CheckUpdateIndices([]*backend.Indices{indices(2, 3)}, [][]int32{{5, 6, 7}}) }},
		{"Fetch", true, func() { backend.CheckFetch(shape(4, 8)) }},
		{"Fetch: 33", false, func() { backend.CheckFetch(shape(3, 11)) }},
		{"Square", true, func() { backend.CheckSquare("op", shape(3, 3)) }},
		{"Square: not", false, func() { backend.CheckSquare("op", shape(3, 2)) }},
		{"ReduceRows", true, func() { backend.CheckReduceRows("op", shape(2, 1), shape(2, 0)) }},
		{"ReduceRows: row", false, func() { backend.CheckReduceRows("op", shape(1, 2), shape(2, 3)) }},
		{"ColSums", true, func() { backend.CheckColSums(shape(1, 3), shape(0, 3)) }},
		{"ColSums: column", false, func() { backend.CheckColSums(shape(3, 1), shape(2, 3)) }},
		{"Dot", true, func() { backend.CheckDot(one, shape(2, 3), shape(2, 3)) }},
		{"Dot: one", true, func() { backend.CheckDot(one, shape(2, 3), nil) }},
		{"Dot: b", false, func() { backend.CheckDot(one, shape(2, 3), shape(3, 2)) }},
		{"Dot: dst", false, func() { backend.CheckDot(shape(1, 2), shape(2, 3), nil) }},
		{"Segments", true, func() { backend.CheckSegments("op", shape(2, 3), indices(0, 4, 5), shape(5, 3)) }},
		{"Segments: none", true, func() { backend.CheckSegments("op", shape(0, 3), indices(0), shape(0, 3)) }},
		{"Segments: no pointer", false, func() { backend.CheckSegments("op", shape(0, 3), indices(), shape(0, 3)) }},
		{"Segments: count", false, func() { backend.CheckSegments("op", shape(3, 3), indices(0, 4, 5), shape(5, 3)) }},
		{"Segments: end", false, func() { backend.CheckSegments("op", shape(2, 3), indices(0, 4, 5), shape(4, 3)) }},
		{"Segments: padding", true, func() { backend.CheckSegments("op", shape(2, 3), indices(0, 4, 5), shape(6, 3)) }},
		{"Segments: width", false, func() { backend.CheckSegments("op", shape(2, 3), indices(0, 4, 5), shape(5, 4)) }},
		{"SpMM", true, func() { backend.CheckSpMM(shape(2, 4), csr(2, 3, 5, nil), shape(3, 4), 0) }},
		{"SpMM: values", true, func() { backend.CheckSpMM(shape(2, 4), csr(2, 3, 5, shape(5, 1)), shape(3, 4), 0) }},
		{"SpMM: self", true, func() { backend.CheckSpMM(shape(2, 4), csr(2, 2, 5, nil), shape(2, 4), 1.5) }},
		{"SpMM: self of a rectangle", false, func() { backend.CheckSpMM(shape(2, 4), csr(2, 3, 5, nil), shape(3, 4), 1.5) }},
		{"SpMM: dst", false, func() { backend.CheckSpMM(shape(3, 4), csr(2, 3, 5, nil), shape(3, 4), 0) }},
		{"SpMM: x", false, func() { backend.CheckSpMM(shape(2, 4), csr(2, 3, 5, nil), shape(2, 4), 0) }},
		{"SpMM: width", false, func() { backend.CheckSpMM(shape(2, 5), csr(2, 3, 5, nil), shape(3, 4), 0) }},
		{"SpMM: too few values", false, func() { backend.CheckSpMM(shape(2, 4), csr(2, 3, 5, shape(4, 1)), shape(3, 4), 0) }},
		{"SpMM: a row of values", false, func() { backend.CheckSpMM(shape(2, 4), csr(2, 3, 5, shape(1, 5)), shape(3, 4), 0) }},
		{"SpMM: pointers", false, func() {
			a := csr(2, 3, 5, nil)
			a.Ptr = indices(0, 5)
			backend.CheckSpMM(shape(2, 4), a, shape(3, 4), 0)
		}},
		{"SpMM: columns", false, func() {
			a := csr(2, 3, 5, nil)
			a.Col = indices(0, 1, 2, 0)
			backend.CheckSpMM(shape(2, 4), a, shape(3, 4), 0)
		}},
		{"Messages", true, func() { messages(shape(2, 4), shape(2, 3), shape(2, 4), shape(1, 4)) }},
		{"Messages: none", true, func() { messages(shape(2, 4), shape(2, 0)) }},
		{"Messages: y", false, func() { messages(shape(3, 4), shape(2, 3), shape(2, 4), shape(1, 4)) }},
		{"Messages: counts", false, func() { messages(shape(2, 4), shape(3, 3), shape(2, 4), shape(1, 4)) }},
		{"Messages: kinds", false, func() { messages(shape(2, 4), shape(2, 4), shape(2, 4), shape(1, 4)) }},
		{"Messages: width", false, func() { messages(shape(2, 4), shape(2, 3), shape(2, 4), shape(1, 5)) }},
		{"Percentile", true, func() { backend.CheckPercentile(one, shape(3, 3), shape(3, 3), 1) }},
		{"Percentile: without weights", true, func() { backend.CheckPercentile(one, nil, shape(3, 3), 0) }},
		{"Percentile: s", false, func() { backend.CheckPercentile(one, nil, shape(3, 2), 0) }},
		{"Percentile: theta", false, func() { backend.CheckPercentile(shape(1, 2), nil, shape(3, 3), 0) }},
		{"Percentile: weights", false, func() { backend.CheckPercentile(one, shape(2, 2), shape(3, 3), 0) }},
		{"Dropout", true, func() { backend.CheckDropout(shape(2, 3), 1, one) }},
		{"Dropout: step", false, func() { backend.CheckDropout(shape(2, 3), 1, shape(2, 3)) }},
		{"Adam", true, func() { backend.CheckAdam(shape(2, 3), shape(2, 3), shape(2, 3), shape(2, 3), one, one) }},
		{"Adam: g", false, func() { backend.CheckAdam(shape(2, 3), shape(3, 2), shape(2, 3), shape(2, 3), one, one) }},
		{"Adam: m", false, func() { backend.CheckAdam(shape(2, 3), shape(2, 3), shape(3, 2), shape(2, 3), one, one) }},
		{"Adam: v", false, func() { backend.CheckAdam(shape(2, 3), shape(2, 3), shape(2, 3), shape(3, 2), one, one) }},
		{"Adam: rate", false, func() { backend.CheckAdam(one, one, one, one, shape(2, 1), one) }},
		{"Adam: step", false, func() { backend.CheckAdam(one, one, one, one, one, shape(2, 1)) }},
	} {
		t.Run(c.name, func(t *testing.T) { panicsWithShape(t, c.ok, c.call) })
	}
	for name, call := range map[string]func(){
		"p below 0":   func() { backend.CheckPercentile(one, nil, one, math.Nextafter(0, -1)) },
		"p above 100": func() { backend.CheckPercentile(one, nil, one, math.Nextafter(100, 200)) },
		"p is NaN":    func() { backend.CheckPercentile(one, nil, one, math.NaN()) },
		"keep is 0":   func() { backend.CheckDropout(one, 0, one) },
		"keep is 1.1": func() { backend.CheckDropout(one, 1.1, one) },
		"keep is NaN": func() { backend.CheckDropout(one, math.NaN(), one) },
	} {
		if recovered(call) == nil {
			t.Errorf("%s: no panic", name)
		}
	}
}

// TestFusedChecks is [TestChecks] for the fused operators: the right shapes, and
// each of them wrong.
func TestFusedChecks(t *testing.T) {
	const n, g, v, in, hid, out = 9, 4, 2, 3, 5, 6
	csr := func(val *tensor.Tensor) *backend.CSR { return &backend.CSR{Rows: n, Cols: n, Val: val} }
	graphs, views := indices(0, 2, 2, 5, 9), indices(0, 2, 9)
	gin := func(change func(l *backend.GINLayer)) func() {
		return func() {
			l := &backend.GINLayer{
				Adj: csr(nil), AdjT: csr(nil), Graphs: graphs, Views: views, X: shape(n, in), Agg: shape(n, in),
				W1: shape(in, hid), B1: shape(1, hid), W2: shape(hid, out), B2: shape(1, out), Gamma: shape(1, out), Beta: shape(1, out),
				Mean: shape(v, out), Var: shape(v, out), H1: shape(n, hid), H2: shape(n, out),
				Sums: shape(g, out), Pooled: shape(g, out), Y: shape(n, out),
			}
			change(l)
			if i, h, o := backend.CheckGIN(l); i != in || h != hid || o != out {
				t.Errorf("CheckGIN gives widths %d, %d and %d", i, h, o)
			}
		}
	}
	gcn := func(change func(l *backend.GCNLayer)) func() {
		return func() {
			r := shape(n, out)
			l := &backend.GCNLayer{
				Adj: csr(shape(7, 1)), AdjT: csr(shape(7, 1)), Graphs: graphs, Views: views, X: shape(n, in),
				Gamma: shape(1, in), Beta: shape(1, in), W: shape(in, out), B: shape(1, out), Mean: shape(v, in), Var: shape(v, in), R: r, Y: r,
			}
			change(l)
			if i, o := backend.CheckGCN(l); i != l.W.Rows || o != out {
				t.Errorf("CheckGCN gives widths %d and %d", i, o)
			}
		}
	}
	residual := func(l *backend.GCNLayer) {
		l.Residual = true
		l.X, l.Gamma, l.Beta, l.W, l.Mean, l.Var = shape(n, out), shape(1, out), shape(1, out), shape(out, out), shape(v, out), shape(v, out)
		l.Y = shape(n, out)
	}
	const kinds, next = 2, 7
	rows := func(change func(l *backend.RowsLayer)) func() {
		return func() {
			l := &backend.RowsLayer{
				A: csr(nil), X: shape(11, in), C: shape(n, kinds), E: shape(kinds, in), W1: shape(in, hid), B1: shape(1, hid), W2: shape(hid, out),
				B2: shape(1, out), Scale: shape(1, out), Shift: shape(1, out), W: shape(out, next), Y: shape(20, next), To: make([]int32, n),
			}
			change(l)
			backend.CheckRowsLayer(l)
		}
	}
	sums := func(l *backend.RowsLayer) {
		*l = backend.RowsLayer{A: l.A, X: shape(11, hid), C: l.C, E: shape(kinds, hid), B1: l.B1, Y: shape(g, hid), Graphs: graphs}
	}
	norm := func(change func(x *backend.Norm)) func() {
		return func() {
			x := &backend.Norm{Groups: indices(0, 4, 9), X: shape(n, out), Y: shape(n, out), Gamma: shape(1, out), Beta: shape(1, out), Mean: shape(v, out), Var: shape(v, out)}
			change(x)
			backend.CheckNorm(x)
		}
	}
	contrast := func(change func(c *backend.Contrast)) func() {
		return func() {
			c := &backend.Contrast{
				U: shape(2*n, out), E: shape(2*n, 2*n), InvZ: shape(2*n, 1), LossC: shape(1, 1), Match: true,
				A1: shape(n, n), A2: shape(n, n), R: shape(2*n, 1), W: shape(2*n, 1), LossG: shape(1, 1),
			}
			change(c)
			if rows, d := backend.CheckContrast(c); rows != n || d != out {
				t.Errorf("CheckContrast gives %d rows of width %d", rows, d)
			}
		}
	}
	for _, c := range []struct {
		name string
		ok   bool
		call func()
	}{
		{"GIN", true, gin(func(*backend.GINLayer) {})},
		{"GIN: without y", true, gin(func(l *backend.GINLayer) { l.Y = nil })},
		{"GIN: categories", true, gin(func(l *backend.GINLayer) { l.X, l.Agg, l.Category = nil, nil, indices(make([]int32, n)...) })},
		{"GIN: too few categories", false, gin(func(l *backend.GINLayer) { l.X, l.Agg, l.Category = nil, nil, indices(make([]int32, n-1)...) })},
		{"GIN: running statistics", true, gin(func(l *backend.GINLayer) { l.Running, l.Mean, l.Var = true, shape(1, out), shape(1, out) })},
		{"GIN: running statistics of views", false, gin(func(l *backend.GINLayer) { l.Running = true })},
		{"GIN: x", false, gin(func(l *backend.GINLayer) { l.X = shape(n, out) })},
		{"GIN: agg", false, gin(func(l *backend.GINLayer) { l.Agg = shape(n, hid) })},
		{"GIN: W2", false, gin(func(l *backend.GINLayer) { l.W2 = shape(in, out) })},
		{"GIN: b1", false, gin(func(l *backend.GINLayer) { l.B1 = shape(1, out) })},
		{"GIN: b2", false, gin(func(l *backend.GINLayer) { l.B2 = shape(1, hid) })},
		{"GIN: γ", false, gin(func(l *backend.GINLayer) { l.Gamma = shape(out, 1) })},
		{"GIN: β", false, gin(func(l *backend.GINLayer) { l.Beta = shape(v, out) })},
		{"GIN: μ", false, gin(func(l *backend.GINLayer) { l.Mean = shape(1, out) })},
		{"GIN: σ²", false, gin(func(l *backend.GINLayer) { l.Var = shape(1, out) })},
		{"GIN: h1", false, gin(func(l *backend.GINLayer) { l.H1 = shape(n, out) })},
		{"GIN: h2", false, gin(func(l *backend.GINLayer) { l.H2 = shape(n-1, out) })},
		{"GIN: sums", false, gin(func(l *backend.GINLayer) { l.Sums = shape(v, out) })},
		{"GIN: pooled", false, gin(func(l *backend.GINLayer) { l.Pooled = shape(v, out) })},
		{"GIN: y", false, gin(func(l *backend.GINLayer) { l.Y = shape(n, hid) })},
		{"GIN: adjacency", false, gin(func(l *backend.GINLayer) { l.Adj.Rows-- })},
		{"GIN: transpose", false, gin(func(l *backend.GINLayer) { l.AdjT.Rows-- })},
		{"GIN: values", false, gin(func(l *backend.GINLayer) { l.Adj.Val = shape(7, 1) })},
		{"GIN: values of the transpose", false, gin(func(l *backend.GINLayer) { l.AdjT.Val = shape(7, 1) })},

		{"GCN", true, gcn(func(*backend.GCNLayer) {})},
		{"GCN: running statistics", true, gcn(func(l *backend.GCNLayer) { l.Running, l.Mean, l.Var = true, shape(1, in), shape(1, in) })},
		{"GCN: running statistics of views", false, gcn(func(l *backend.GCNLayer) { l.Running = true })},
		{"GCN: residual", true, gcn(residual)},
		{"GCN: residual of another width", false, gcn(func(l *backend.GCNLayer) { l.Residual, l.Y = true, shape(n, out) })},
		{"GCN: residual with one output", false, gcn(func(l *backend.GCNLayer) { residual(l); l.Y = l.R })},
		{"GCN: two outputs without residual", false, gcn(func(l *backend.GCNLayer) { l.Y = shape(n, out) })},
		{"GCN: x", false, gcn(func(l *backend.GCNLayer) { l.X = shape(n, out) })},
		{"GCN: γ", false, gcn(func(l *backend.GCNLayer) { l.Gamma = shape(1, out) })},
		{"GCN: β", false, gcn(func(l *backend.GCNLayer) { l.Beta = shape(1, out) })},
		{"GCN: b", false, gcn(func(l *backend.GCNLayer) { l.B = shape(1, in) })},
		{"GCN: μ", false, gcn(func(l *backend.GCNLayer) { l.Mean = shape(1, in) })},
		{"GCN: σ²", false, gcn(func(l *backend.GCNLayer) { l.Var = shape(1, in) })},
		{"GCN: r", false, gcn(func(l *backend.GCNLayer) { l.R = shape(n, in); l.Y = l.R })},
		{"GCN: adjacency", false, gcn(func(l *backend.GCNLayer) { l.Adj.Rows-- })},
		{"GCN: transpose", false, gcn(func(l *backend.GCNLayer) { l.AdjT.Rows-- })},
		{"GCN: no values", false, gcn(func(l *backend.GCNLayer) { l.Adj.Val = nil })},
		{"GCN: no values of the transpose", false, gcn(func(l *backend.GCNLayer) { l.AdjT.Val = nil })},

		{"rows", true, rows(func(*backend.RowsLayer) {})},
		{"rows: without W", true, rows(func(l *backend.RowsLayer) { l.W, l.Y = nil, shape(20, out) })},
		{"rows: x", false, rows(func(l *backend.RowsLayer) { l.X = shape(11, hid) })},
		{"rows: counts", false, rows(func(l *backend.RowsLayer) { l.C = shape(n-1, kinds) })},
		{"rows: tables", false, rows(func(l *backend.RowsLayer) { l.E = shape(kinds, hid) })},
		{"rows: W1", false, rows(func(l *backend.RowsLayer) { l.W1 = shape(in, out) })},
		{"rows: b1", false, rows(func(l *backend.RowsLayer) { l.B1 = shape(hid, 1) })},
		{"rows: W2", false, rows(func(l *backend.RowsLayer) { l.W2 = shape(in, out) })},
		{"rows: b2", false, rows(func(l *backend.RowsLayer) { l.B2 = shape(1, hid) })},
		{"rows: scale", false, rows(func(l *backend.RowsLayer) { l.Scale = shape(1, hid) })},
		{"rows: shift", false, rows(func(l *backend.RowsLayer) { l.Shift = shape(out, 1) })},
		{"rows: W", false, rows(func(l *backend.RowsLayer) { l.W = shape(hid, next) })},
		{"rows: y", false, rows(func(l *backend.RowsLayer) { l.Y = shape(20, out) })},
		{"rows: places", false, rows(func(l *backend.RowsLayer) { l.To = l.To[1:] })},
		{"rows: sums", true, rows(sums)},
		{"rows: sums, b1", false, rows(func(l *backend.RowsLayer) { sums(l); l.B1 = shape(1, in) })},
		{"rows: sums, y", false, rows(func(l *backend.RowsLayer) { sums(l); l.Y = shape(n, hid) })},

		{"Norm", true, norm(func(*backend.Norm) {})},
		{"Norm: padding", true, norm(func(x *backend.Norm) { x.Groups = indices(0, 4, 7) })},
		{"Norm: bias", true, norm(func(x *backend.Norm) { x.Bias, x.BiasedMean = shape(1, out), shape(v, out) })},
		{"Norm: bias of another width", false, norm(func(x *backend.Norm) { x.Bias, x.BiasedMean = shape(1, in), shape(v, out) })},
		{"Norm: means of another number", false, norm(func(x *backend.Norm) { x.Bias, x.BiasedMean = shape(1, out), shape(1, out) })},
		{"Norm: rows", false, norm(func(x *backend.Norm) { x.Groups = indices(0, 4, 10) })},
		{"Norm: y", false, norm(func(x *backend.Norm) { x.Y = shape(n, in) })},
		{"Norm: γ", false, norm(func(x *backend.Norm) { x.Gamma = shape(out, 1) })},
		{"Norm: β", false, norm(func(x *backend.Norm) { x.Beta = shape(1, in) })},
		{"Norm: μ", false, norm(func(x *backend.Norm) { x.Mean = shape(1, out) })},
		{"Norm: σ²", false, norm(func(x *backend.Norm) { x.Var = shape(v, in) })},

		{"Contrast", true, contrast(func(*backend.Contrast) {})},
		{"Contrast: NT-Xent alone", true, contrast(func(c *backend.Contrast) {
			c.Match = false
			c.A1, c.A2, c.R, c.W, c.LossG = nil, nil, nil, nil, nil
		})},
		{"Contrast: tiles", true, contrast(func(c *backend.Contrast) { c.E, c.A1, c.A2, c.CrossView = nil, nil, nil, true })},
		{"Contrast: tiles, L_G alone", true, contrast(func(c *backend.Contrast) { c.E, c.A1, c.A2, c.InvZ, c.LossC = nil, nil, nil, nil, nil })},
		{"Contrast: tiles, 1/Z", false, contrast(func(c *backend.Contrast) { c.E, c.InvZ = nil, shape(n, 1) })},
		{"Contrast: across views with E", false, contrast(func(c *backend.Contrast) { c.CrossView = true })},
		{"Contrast: none", false, contrast(func(c *backend.Contrast) { c.U, c.E, c.InvZ, c.Match = shape(0, out), shape(0, 0), shape(0, 1), false })},
		{"Contrast: odd", false, contrast(func(c *backend.Contrast) { c.U, c.E, c.InvZ, c.Match = shape(7, out), shape(7, 7), shape(7, 1), false })},
		{"Contrast: E", false, contrast(func(c *backend.Contrast) { c.E = shape(n, n) })},
		{"Contrast: 1/Z", false, contrast(func(c *backend.Contrast) { c.InvZ = shape(n, 1) })},
		{"Contrast: L_C", false, contrast(func(c *backend.Contrast) { c.LossC = shape(1, 2) })},
		{"Contrast: A_1", false, contrast(func(c *backend.Contrast) { c.A1 = shape(2*n, n) })},
		{"Contrast: A_2", false, contrast(func(c *backend.Contrast) { c.A2 = shape(n, 2*n) })},
		{"Contrast: r", false, contrast(func(c *backend.Contrast) { c.R = shape(n, 1) })},
		{"Contrast: w", false, contrast(func(c *backend.Contrast) { c.W = shape(n, 1) })},
		{"Contrast: L_G", false, contrast(func(c *backend.Contrast) { c.LossG = shape(2, 1) })},

		{"Track", true, func() { backend.CheckTrack(shape(1, out), shape(1, out), shape(v, out), shape(v, out), views) }},
		{"Track: running mean", false, func() { backend.CheckTrack(shape(1, in), shape(1, out), shape(v, out), shape(v, out), views) }},
		{"Track: running variance", false, func() { backend.CheckTrack(shape(1, out), shape(v, out), shape(v, out), shape(v, out), views) }},
		{"Track: mean", false, func() { backend.CheckTrack(shape(1, out), shape(1, out), shape(1, out), shape(v, out), views) }},
		{"Track: variance", false, func() { backend.CheckTrack(shape(1, out), shape(1, out), shape(v, out), shape(1, out), views) }},
	} {
		t.Run(c.name, func(t *testing.T) { panicsWithShape(t, c.ok, c.call) })
	}
}

// panicsWithShape fails unless call passes, or panics with a shape error.
func panicsWithShape(t *testing.T, ok bool, call func()) {
	t.Helper()
	r := recovered(call)
	if ok && r != nil {
		t.Fatalf("panicked with %v", r)
	}
	if _, isShape := r.(*tensor.ShapeError); !ok && !isShape {
		t.Errorf("panicked with %v, want a *tensor.ShapeError", r)
	}
}

func recovered(f func()) (r any) {
	defer func() { r = recover() }()
	f()
	return nil
}

func TestCheckGemm(t *testing.T) {
	type dims struct{ M, N, K int }
	for _, c := range []struct {
		transA, transB bool
		a, b           *tensor.Tensor
	}{
		{false, false, shape(2, 3), shape(3, 4)},
		{true, false, shape(3, 2), shape(3, 4)},
		{false, true, shape(2, 3), shape(4, 3)},
		{true, true, shape(3, 2), shape(4, 3)},
	} {
		m, n, k := backend.CheckGemm(shape(2, 4), c.transA, c.transB, c.a, c.b)
		if d := cmp.Diff(dims{2, 4, 3}, dims{m, n, k}); d != "" {
			t.Errorf("CheckGemm(%v, %v) (-want +got):\n%s", c.transA, c.transB, d)
		}
		for _, dst := range []*tensor.Tensor{shape(4, 2), shape(2, 3), shape(3, 4)} {
			if recovered(func() { backend.CheckGemm(dst, c.transA, c.transB, c.a, c.b) }) == nil {
				t.Errorf("CheckGemm(%v, %v) accepts the destination %v", c.transA, c.transB, dst)
			}
		}
		if recovered(func() { backend.CheckGemm(shape(2, 4), !c.transA, c.transB, c.a, c.b) }) == nil {
			t.Errorf("CheckGemm(%v, %v) accepts matrices for the other transpose", !c.transA, c.transB)
		}
	}
}

func TestPercentilePosition(t *testing.T) {
	for _, c := range []struct {
		m int
		p float64
		k int
		w float64
	}{
		{1, 0, 0, 0}, {1, 50, 0, 0}, {1, 100, 0, 0},
		{2, 0, 0, 0}, {2, 50, 0, 0.5}, {2, 75, 0, 0.75}, {2, 100, 1, 0},
		{3, 50, 1, 0}, {6, 50, 2, 0.5}, {5, 25, 1, 0}, {5, 100, 4, 0},
		{101, 25, 25, 0}, {1 << 40, 50, 1<<39 - 1, 0.5},
	} {
		if k, w := backend.PercentilePosition(c.m, c.p); k != c.k || w != c.w {
			t.Errorf("PercentilePosition(%d, %v) = %d, %v, want %d, %v", c.m, c.p, k, w, c.k, c.w)
		}
	}
	// The position is in range, k + w is p/100·(m-1) but for its rounding, and it
	// never decreases with p.
	for m := 1; m < 200; m++ {
		last := -1.0
		for i := range 1001 {
			p := float64(i) / 10
			k, w := backend.PercentilePosition(m, p)
			pos := float64(k) + w
			if k < 0 || k >= m || w < 0 || w >= 1 || k == m-1 && w != 0 {
				t.Fatalf("PercentilePosition(%d, %v) = %d, %v is out of range", m, p, k, w)
			}
			if math.Abs(pos-p/100*float64(m-1)) > 1e-12 || pos < last {
				t.Fatalf("PercentilePosition(%d, %v) = %d, %v, want position %v; before it was %v", m, p, k, w, p/100*float64(m-1), last)
			}
			last = pos
		}
	}
}

// TestDropoutKeepValues pins the generator: a checkpoint must give the same
// masks with a later version. The bits are those of a transcription to Python.
func TestDropoutKeepValues(t *testing.T) {
	const want = "1101111001111001011001101111110001000011100111011010000110110100"
	bits := ""
	for i := range uint64(64) {
		bits += map[bool]string{true: "1", false: "0"}[backend.DropoutKeep(0.5, 12345, 3, i)]
	}
	if bits != want {
		t.Errorf("the mask for keep 0.5, seed 12345, step 3 begins with\n%s, want\n%s", bits, want)
	}
}

// TestDropoutKeep asks what a generator of masks must give: the fraction kept,
// no dependence between neighbouring elements, steps and seeds, and nested masks
// for nested fractions. The bounds are five standard deviations.
func TestDropoutKeep(t *testing.T) {
	const n = 200_000
	within := func(what string, got, p float64) {
		t.Helper()
		if sd := math.Sqrt(p * (1 - p) / n); math.Abs(got-p) > 5*sd+1e-15 {
			t.Errorf("%s: a fraction of %.5f, want %.5f ± %.5f", what, got, p, sd)
		}
	}
	fraction := func(f func(i uint64) bool) float64 {
		count := 0
		for i := range uint64(n) {
			if f(i) {
				count++
			}
		}
		return float64(count) / n
	}
	for _, keep := range []float64{1, 0.9, 0.5, 0.1, 0.001} {
		for _, seed := range []uint64{0, 1, math.MaxUint64} {
			within(fmt.Sprintf("kept, keep=%v seed=%d", keep, seed), fraction(func(i uint64) bool {
				return backend.DropoutKeep(keep, seed, 1, i)
			}), keep)
			within(fmt.Sprintf("kept over steps, keep=%v seed=%d", keep, seed), fraction(func(i uint64) bool {
				return backend.DropoutKeep(keep, seed, i, 5)
			}), keep)
			within(fmt.Sprintf("kept over seeds, keep=%v seed=%d", keep, seed), fraction(func(i uint64) bool {
				return backend.DropoutKeep(keep, seed+i, 1, 5)
			}), keep)
		}
	}
	// Two masks with one argument changed agree in half of the elements.
	base := func(i uint64) bool { return backend.DropoutKeep(0.5, 7, 1, i) }
	for name, other := range map[string]func(i uint64) bool{
		"next element":    func(i uint64) bool { return backend.DropoutKeep(0.5, 7, 1, i+1) },
		"64 elements on":  func(i uint64) bool { return backend.DropoutKeep(0.5, 7, 1, i+64) },
		"next step":       func(i uint64) bool { return backend.DropoutKeep(0.5, 7, 2, i) },
		"next seed":       func(i uint64) bool { return backend.DropoutKeep(0.5, 8, 1, i) },
		"high seed":       func(i uint64) bool { return backend.DropoutKeep(0.5, 7|1<<63, 1, i) },
		"step for seed":   func(i uint64) bool { return backend.DropoutKeep(0.5, 1, 7, i) },
		"element as step": func(i uint64) bool { return backend.DropoutKeep(0.5, 7, i, 1) },
	} {
		within("agreement with "+name, fraction(func(i uint64) bool { return base(i) == other(i) }), 0.5)
	}
	for i := range uint64(n) {
		if !backend.DropoutKeep(1, 3, 3, i) || backend.DropoutKeep(0, 3, 3, i) {
			t.Fatalf("element %d: keep 1 does not keep it, or keep 0 does", i)
		}
		if backend.DropoutKeep(0.3, 3, 3, i) && !backend.DropoutKeep(0.6, 3, 3, i) {
			t.Fatalf("element %d is kept with 0.3 but not with 0.6", i)
		}
	}
}

func ExampleOpen() {
	b, err := backend.Open("ref", tensor.Float64)
	if err != nil {
		fmt.Println(err)
		return
	}
	a, dst := b.Alloc(2, 3), b.Alloc(2, 2)
	b.Upload(a, []float64{1, 2, 3, 4, 5, 6})
	b.Gemm(dst, false, true, 1, a, a, 0) // dst = a·aᵀ

	host := make([]float64, dst.Len())
	b.Download(host, dst)
	fmt.Println(dst, host)
	// Output:
	// [2×2] [14 32 32 77]
}

// TestMembers: the transpose of one-hot rows, in memory that is used again.
func TestMembers(t *testing.T) {
	var ptr, rows []int32
	for _, c := range []struct {
		category  []int32
		n         int
		ptr, rows []int32
	}{
		{[]int32{2, 0, 2, 2, 0}, 4, []int32{0, 2, 2, 5, 5}, []int32{1, 4, 0, 2, 3}},
		{nil, 2, []int32{0, 0, 0}, nil},
		{[]int32{0, 0}, 1, []int32{0, 2}, []int32{0, 1}},
		{[]int32{4, 3, 2, 1, 0}, 5, []int32{0, 1, 2, 3, 4, 5}, []int32{4, 3, 2, 1, 0}},
	} {
		ptr, rows = backend.Members(ptr, rows, c.category, c.n)
		if !slices.Equal(ptr, c.ptr) || !slices.Equal(rows, c.rows) {
			t.Errorf("Members(%v, %d) = %v, %v, want %v, %v", c.category, c.n, ptr, rows, c.ptr, c.rows)
		}
	}
}
