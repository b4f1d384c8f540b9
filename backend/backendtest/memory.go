package backendtest

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/tensor"
)

// edges are the sizes at which blocked and vectorised loops go wrong.
var edges = []int{0, 1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129}

// shapes are small matrices with an edge in either dimension, empty ones
// included.
var shapes = func() (list [][2]int) {
	for _, n := range edges {
		list = append(list, [2]int{3, n}, [2]int{n, 5})
	}
	return append(list, [2]int{0, 0}, [2]int{1, 1}, [2]int{1, 257}, [2]int{255, 1}, [2]int{33, 65})
}()

// largeShapes are cut into parts by a parallel engine. None of their dimensions
// is a multiple of a block.
var largeShapes = [][2]int{{5003, 33}, {3, 50021}, {100003, 1}}

// checkAlloc holds many tensors of many sizes at once, so that an allocator that
// hands out overlapping memory is caught, and checks the accounting of bytes.
func checkAlloc(s *suite) {
	bytes := int64(s.b.Precision().Bytes())
	before := s.b.InUse()
	var held []*tensor.Tensor
	fill := func() {
		for i := range 2 * len(shapes) { // two of each
			shape := shapes[i/2]
			in := s.b.InUse()
			t := s.alloc(shape[0], shape[1])
			if !t.Is(shape[0], shape[1]) {
				s.errorf("Alloc(%d, %d) gave a tensor %v", shape[0], shape[1], t)
			}
			if n := s.b.InUse() - in; n < bytes*int64(t.Len()) {
				s.errorf("InUse grew by %d bytes with a tensor %v, want at least %d", n, t, bytes*int64(t.Len()))
			}
			held = append(held, t)
		}
		for i, t := range held {
			s.b.Fill(t, float64(i))
		}
		for i, t := range held {
			s.wantSame(fmt.Sprintf("tensor %v, one of %d", t, len(held)), download(s.b, t), constant(t.Rows, t.Cols, float64(i)))
		}
	}
	fill()
	for i, t := range held { // leave holes, and fill them with other sizes
		if i%2 == 0 {
			s.free(t)
		}
	}
	for i := len(held) - 1; i >= 0; i-- {
		if i%2 == 0 {
			held = slices.Delete(held, i, i+1)
		}
	}
	fill()
	for _, t := range held {
		s.free(t)
	}
	if n := s.b.InUse(); n != before {
		s.errorf("InUse is %d bytes with all tensors freed, want %d as before", n, before)
	}
	for range 100 {
		s.free(s.alloc(300, 100))
	}
	if n := s.b.InUse(); n != before {
		s.errorf("InUse is %d bytes after a hundred pairs of Alloc and Free, want %d", n, before)
	}
}

// special are the numbers at the ends of the format, for both precisions.
func (s *suite) special() []float64 {
	v := []float64{
		0, 1, 0.5, 2, 3, 1e-3, 1 + s.eps, 1 - s.eps/2, 10, 1e5,
		s.smallest, 3 * s.smallest, s.normal / 2, s.normal, 3 * s.normal, s.largest, s.largest / 3,
		math.Inf(1), 12345678, 1e-10, 1e10, 1e30,
		16, 20, 50, 80, 88, 89, 100, 104, 700, 709, 710, 746, 1000, // around the overflow of e^x
	}
	for _, x := range slices.Clone(v) {
		v = append(v, -x) // -0 too
	}
	return append(v, math.NaN())
}

// checkUpload checks round trips of host memory and the rounding on the way.
func checkUpload(s *suite) {
	for _, shape := range append(slices.Clone(shapes), largeShapes...) {
		m := s.random(shape[0], shape[1])
		for i, v := range s.special() {
			if i < len(m.v) {
				m.v[i] = v
			}
		}
		t := s.upload(m)
		s.wantSame(fmt.Sprintf("Upload, Download %v", t), download(s.b, t), m.mapped(s.round))

		host := make([]float32, len(m.v))
		for i, v := range m.v {
			host[len(host)-1-i] = float32(v)
		}
		s.b.Upload32(t, host)
		want := m.mapped(func(v float64) float64 { return float64(float32(v)) })
		slices.Reverse(want.v)
		s.wantSame(fmt.Sprintf("Upload32, Download %v", t), download(s.b, t), want)

		clear(host) // the engine must not keep the host slice
		clear(m.v)
		s.wantSame(fmt.Sprintf("Upload32, host slice cleared, Download %v", t), download(s.b, t), want)
		s.free(t)
	}
	// Ties go to even, and what is too large becomes infinite.
	if s.b.Precision() == tensor.Float32 {
		m := row(1+0x1p-24, 1+0x3p-24, -1-0x1p-24, 1+0x1p-24+0x1p-50, 1e300, -1e300, 1e-300, 0x1p-150, 0x1.8p-149)
		want := row(1, 1+0x2p-23, -1, 1+0x1p-23, math.Inf(1), math.Inf(-1), 0, 0, 0x1p-148)
		s.wantSame("Upload rounds to nearest even: Download", download(s.b, s.upload(m)), want)
	}
}

// checkIndices checks index vectors of many lengths, held at the same time.
func checkIndices(s *suite) {
	before := s.b.InUse()
	src := s.upload(matrix{97, 1, s.random(97, 1).v})
	values := download(s.b, src)
	var held []*backend.Indices
	for _, n := range append(slices.Clone(edges), 20011) {
		host := make([]int32, n)
		for i := range host {
			host[i] = int32(s.rng.IntN(97))
		}
		x := s.index(host)
		if x.Len() != n || !slices.Equal(x.Host, host) {
			s.errorf("Indices of %d values has length %d, or another Host", n, x.Len())
		}
		held = append(held, x)
	}
	for _, x := range held {
		dst := s.alloc(x.Len(), 1)
		s.b.GatherRows(dst, src, x)
		want := constant(x.Len(), 1, 0)
		for k, i := range x.Host {
			want.v[k] = values.v[i]
		}
		s.wantSame(fmt.Sprintf("GatherRows by %d indices, one of %d vectors", x.Len(), len(held)), download(s.b, dst), want)
		s.free(dst)
	}
	for _, x := range held {
		s.freeIndex(x)
	}
	s.free(src)
	if n := s.b.InUse(); n != before {
		s.errorf("InUse is %d bytes with all index vectors freed, want %d as before", n, before)
	}
}

// checkIndexBlock refills index vectors, some of them at once, and checks that
// what is queued before sees the old contents, and a recorded step the new ones.
func checkIndexBlock(s *suite) {
	src := s.upload(matrix{97, 1, s.random(97, 1).v})
	values := download(s.b, src)
	fresh := func(n int) []int32 {
		host := make([]int32, n)
		for i := range host {
			host[i] = int32(s.rng.IntN(97))
		}
		return host
	}
	lengths := []int{5, 0, 300, 1, 33, 0, 70001}
	var hosts [][]int32
	for _, n := range lengths {
		hosts = append(hosts, fresh(n))
	}
	before := s.b.InUse()
	xs := s.b.IndexBlock(hosts)
	for _, x := range xs {
		s.indices[x] = true
	}
	if n := s.b.InUse() - before; n < 4*70340 {
		s.errorf("InUse grew by %d bytes with 70340 indices", n)
	}
	dst := make([]*tensor.Tensor, len(xs))
	for k, n := range lengths {
		dst[k] = s.alloc(n, 1)
	}
	gather := func() {
		for k, x := range xs {
			s.b.GatherRows(dst[k], src, x)
		}
	}
	verify := func(what string, hosts [][]int32) {
		s.Helper()
		for k, host := range hosts {
			want := constant(len(host), 1, 0)
			for j, i := range host {
				want.v[j] = values.v[i]
			}
			s.wantSame(fmt.Sprintf("GatherRows by vector %d of a block, %s", k, what), download(s.b, dst[k]), want)
		}
	}
	gather()
	verify("as made", hosts)
	step, err := s.b.Capture(gather)
	if err != nil {
		s.errorf("Capture: %v", err)
		return
	}
	// All, a run of them, one, and some out of order.
	for _, which := range [][]int{{0, 1, 2, 3, 4, 5, 6}, {2, 3, 4}, {6}, {4, 0, 2, 1}} {
		old := slices.Clone(hosts)
		gather()
		var some []*backend.Indices
		var news [][]int32
		for _, k := range which {
			hosts[k] = fresh(lengths[k])
			some, news = append(some, xs[k]), append(news, hosts[k])
		}
		s.b.UpdateIndices(some, news)
		verify(fmt.Sprintf("queued before %v were refilled", which), old)
		gather()
		verify(fmt.Sprintf("after %v were refilled", which), hosts)
		for _, d := range dst {
			s.b.Fill(d, math.NaN())
		}
		if err := step.Replay(); err != nil {
			s.errorf("Replay: %v", err)
		}
		verify(fmt.Sprintf("replayed after %v were refilled", which), hosts)
		for k, x := range xs {
			if !slices.Equal(x.Host, hosts[k]) {
				s.errorf("Host of vector %d is not what it was refilled with", k)
			}
		}
	}
	if err := step.Close(); err != nil {
		s.errorf("Close: %v", err)
	}
}

// checkFetch reads numbers late: each as it was when it was asked for.
func checkFetch(s *suite) {
	x := s.alloc(2, 3)
	var late []backend.Pending
	const n = 40
	for k := range n {
		s.b.Fill(x, float64(k))
		late = append(late, s.b.Fetch(x))
	}
	s.b.Fill(x, -1)
	for k, i := range s.rng.Perm(n) {
		if k == n/2 { // while half of them are on their way
			late = append(late, s.b.Fetch(x))
		}
		m := constant(2, 3, 12345.5)
		late[i].Values(m.v)
		s.wantSame(fmt.Sprintf("Fetch of value %d", i), m, constant(2, 3, float64(i)))
	}
	m := constant(2, 3, 12345.5)
	late[n].Values(m.v)
	s.wantSame("Fetch of the last value", m, constant(2, 3, -1))
	empty := s.alloc(0, 3)
	s.b.Fetch(empty).Values(nil)
}

// checkShapes makes every documented shape error.
func checkShapes(s *suite) {
	b := s.b
	t := func(rows, cols int) *tensor.Tensor { return s.upload(constant(rows, cols, 1)) }
	idx := func(v ...int32) *backend.Indices { return s.index(v) }
	square := func() *backend.CSR { return &backend.CSR{Rows: 2, Cols: 2, Ptr: idx(0, 1, 2), Col: idx(1, 0)} }
	wide := &backend.CSR{Rows: 2, Cols: 3, Ptr: idx(0, 1, 2), Col: idx(2, 0)}
	with := func(f func(a *backend.CSR)) *backend.CSR { a := square(); f(a); return a }
	adam := backend.AdamConfig{Beta1: 0.9, Beta2: 0.999, Eps: 1e-8}
	type bad struct {
		name string
		call func()
	}
	cases := []bad{
		{"Alloc(-1, 2)", func() { b.Alloc(-1, 2) }},
		{"Alloc(2, -1)", func() { b.Alloc(2, -1) }},
		{"Upload: short", func() { b.Upload(t(2, 3), make([]float64, 5)) }},
		{"Upload: long", func() { b.Upload(t(2, 3), make([]float64, 7)) }},
		{"Upload32: short", func() { b.Upload32(t(2, 3), make([]float32, 5)) }},
		{"Upload32: long", func() { b.Upload32(t(2, 3), make([]float32, 7)) }},
		{"Download: short", func() { b.Download(make([]float64, 5), t(2, 3)) }},
		{"Download: long", func() { b.Download(make([]float64, 7), t(2, 3)) }},

		{"CopyBlock: dst rows", func() { b.CopyBlock(t(3, 3), 2, 0, t(3, 3), 0, 0, 2, 1) }},
		{"CopyBlock: dst cols", func() { b.CopyBlock(t(3, 3), 0, 2, t(3, 3), 0, 0, 1, 2) }},
		{"CopyBlock: src rows", func() { b.CopyBlock(t(3, 3), 0, 0, t(3, 3), 2, 0, 2, 1) }},
		{"CopyBlock: src cols", func() { b.CopyBlock(t(3, 3), 0, 0, t(3, 3), 0, 2, 1, 2) }},
		{"CopyBlock: negative place", func() { b.CopyBlock(t(3, 3), -1, 0, t(3, 3), 0, 0, 1, 1) }},
		{"CopyBlock: negative size", func() { b.CopyBlock(t(3, 3), 0, 0, t(3, 3), 0, 0, 1, -1) }},
		{"Transpose", func() { b.Transpose(t(2, 3), t(2, 3)) }},
		{"GatherRows: count", func() { b.GatherRows(t(2, 3), t(4, 3), idx(0, 1, 2)) }},
		{"GatherRows: width", func() { b.GatherRows(t(3, 2), t(4, 3), idx(0, 1, 2)) }},
		{"FillDiagonal", func() { b.FillDiagonal(t(2, 3), 1) }},

		{"Unary", func() { b.Unary(t(2, 3), backend.Exp, t(3, 2)) }},
		{"Binary: a", func() { b.Binary(t(2, 3), backend.Add, t(3, 2), t(2, 3)) }},
		{"Binary: b", func() { b.Binary(t(2, 3), backend.Add, t(2, 3), t(1, 3)) }},
		{"BinaryRow: dst", func() { b.BinaryRow(t(3, 3), backend.Add, t(2, 3), t(1, 3)) }},
		{"BinaryRow: row", func() { b.BinaryRow(t(2, 3), backend.Add, t(2, 3), t(1, 2)) }},
		{"BinaryRow: column", func() { b.BinaryRow(t(3, 3), backend.Add, t(3, 3), t(3, 1)) }},
		{"BinaryCol: dst", func() { b.BinaryCol(t(2, 2), backend.Add, t(2, 3), t(2, 1)) }},
		{"BinaryCol: col", func() { b.BinaryCol(t(2, 3), backend.Add, t(2, 3), t(3, 1)) }},
		{"BinaryCol: row", func() { b.BinaryCol(t(3, 3), backend.Add, t(3, 3), t(1, 3)) }},
		{"BinaryScalar: dst", func() { b.BinaryScalar(t(2, 2), backend.Add, t(2, 3), t(1, 1)) }},
		{"BinaryScalar: s", func() { b.BinaryScalar(t(2, 3), backend.Add, t(2, 3), t(2, 3)) }},
		{"Affine", func() { b.Affine(t(2, 3), 1, t(6, 1), 0) }},
		{"Axpby: a", func() { b.Axpby(t(2, 3), 1, t(6, 1), 1, t(2, 3)) }},
		{"Axpby: b", func() { b.Axpby(t(2, 3), 1, t(2, 3), 1, t(2, 1)) }},

		{"ReduceRows: rows", func() { b.ReduceRows(t(3, 1), backend.RowSum, t(2, 3)) }},
		{"ReduceRows: a row", func() { b.ReduceRows(t(1, 2), backend.RowSum, t(2, 3)) }},
		{"ColSums: a column", func() { b.ColSums(t(3, 1), t(2, 3)) }},
		{"ColSums: width", func() { b.ColSums(t(1, 2), t(2, 3)) }},
		{"Dot: dst", func() { b.Dot(t(1, 2), t(2, 3), t(2, 3)) }},
		{"Dot: b", func() { b.Dot(t(1, 1), t(2, 3), t(3, 2)) }},
		{"Dot: dst without b", func() { b.Dot(t(2, 1), t(2, 3), nil) }},
		{"SegmentSum: pointers", func() { b.SegmentSum(t(2, 3), idx(0, 2), t(2, 3)) }},
		{"SegmentSum: width", func() { b.SegmentSum(t(2, 2), idx(0, 1, 4), t(4, 3)) }},
		{"SegmentSum: end", func() { b.SegmentSum(t(2, 3), idx(0, 1, 5), t(4, 3)) }},
		{"SegmentExpand: pointers", func() { b.SegmentExpand(t(2, 3), idx(0, 2), t(2, 3)) }},
		{"SegmentExpand: width", func() { b.SegmentExpand(t(4, 3), idx(0, 1, 4), t(2, 2)) }},
		{"SegmentExpand: end", func() { b.SegmentExpand(t(4, 3), idx(0, 1, 5), t(2, 3)) }},

		{"SpMM: dst rows", func() { b.SpMM(t(3, 4), square(), t(2, 4), 0) }},
		{"SpMM: dst width", func() { b.SpMM(t(2, 3), square(), t(2, 4), 0) }},
		{"SpMM: x rows", func() { b.SpMM(t(2, 4), wide, t(2, 4), 0) }},
		{"SpMM: self of a rectangle", func() { b.SpMM(t(2, 4), wide, t(3, 4), 1) }},
		{"SpMM: pointers", func() { b.SpMM(t(2, 4), with(func(a *backend.CSR) { a.Ptr = idx(0, 2) }), t(2, 4), 0) }},
		{"SpMM: end", func() { b.SpMM(t(2, 4), with(func(a *backend.CSR) { a.Ptr = idx(0, 1, 3) }), t(2, 4), 0) }},
		{"SpMM: values", func() { b.SpMM(t(2, 4), with(func(a *backend.CSR) { a.Val = t(3, 1) }), t(2, 4), 0) }},
		{"SpMM: a row of values", func() { b.SpMM(t(2, 4), with(func(a *backend.CSR) { a.Val = t(1, 2) }), t(2, 4), 0) }},

		{"Fetch", func() { b.Fetch(t(3, 11)) }},
		{"UpdateIndices: count", func() { b.UpdateIndices([]*backend.Indices{idx(1)}, nil) }},
		{"UpdateIndices: length", func() { b.UpdateIndices([]*backend.Indices{idx(1), idx(1, 2)}, [][]int32{{1}, {2}}) }},

		{"UpperPercentile: s", func() { b.UpperPercentile(t(1, 1), nil, t(2, 3), 50) }},
		{"UpperPercentile: theta", func() { b.UpperPercentile(t(1, 2), nil, t(3, 3), 50) }},
		{"UpperPercentile: weights", func() { b.UpperPercentile(t(1, 1), t(2, 2), t(3, 3), 50) }},
		{"DropoutMask", func() { b.DropoutMask(t(2, 3), 0.5, 1, t(1, 2)) }},
		{"Adam: g", func() { b.Adam(t(2, 3), t(3, 2), t(2, 3), t(2, 3), t(1, 1), t(1, 1), adam) }},
		{"Adam: m", func() { b.Adam(t(2, 3), t(2, 3), t(1, 3), t(2, 3), t(1, 1), t(1, 1), adam) }},
		{"Adam: v", func() { b.Adam(t(2, 3), t(2, 3), t(2, 3), t(2, 1), t(1, 1), t(1, 1), adam) }},
		{"Adam: rate", func() { b.Adam(t(2, 3), t(2, 3), t(2, 3), t(2, 3), t(2, 3), t(1, 1), adam) }},
		{"Adam: step", func() { b.Adam(t(2, 3), t(2, 3), t(2, 3), t(2, 3), t(1, 1), t(0, 0), adam) }},
	}
	for _, trans := range [][2]bool{{false, false}, {true, false}, {false, true}, {true, true}} {
		a, x, dst := [2]int{2, 3}, [2]int{3, 4}, [2]int{2, 4}
		gemm := func(wrong string, dst, a, x [2]int) {
			if trans[0] {
				a[0], a[1] = a[1], a[0]
			}
			if trans[1] {
				x[0], x[1] = x[1], x[0]
			}
			cases = append(cases, bad{fmt.Sprintf("Gemm %v: %s", trans, wrong), func() {
				b.Gemm(t(dst[0], dst[1]), trans[0], trans[1], 1, t(a[0], a[1]), t(x[0], x[1]), 0)
			}})
		}
		gemm("inner", dst, [2]int{2, 5}, x)
		gemm("rows", [2]int{3, 4}, a, x)
		gemm("cols", [2]int{2, 3}, a, x)
		gemm("transposed dst", [2]int{4, 2}, a, x)
	}
	for _, c := range cases {
		s.trying = c.name
		err, _ := panicOf(c.call).(error)
		var shape *tensor.ShapeError
		if !errors.As(err, &shape) {
			s.errorf("%s: panicked with %v, want a *tensor.ShapeError", c.name, err)
		} else if shape.Op == "" || shape.Have == "" || shape.Want == "" {
			s.errorf("%s: the error %q misses the operator, what there is or what is wanted", c.name, shape)
		}
	}
	for _, c := range []bad{
		{"UpperPercentile(p = -10)", func() { b.UpperPercentile(t(1, 1), nil, t(2, 2), -10) }},
		{"UpperPercentile(p = 110)", func() { b.UpperPercentile(t(1, 1), nil, t(2, 2), 110) }},
		{"UpperPercentile(p = NaN)", func() { b.UpperPercentile(t(1, 1), nil, t(2, 2), math.NaN()) }},
		{"DropoutMask(keep = 0)", func() { b.DropoutMask(t(2, 2), 0, 1, t(1, 1)) }},
		{"DropoutMask(keep = 1.5)", func() { b.DropoutMask(t(2, 2), 1.5, 1, t(1, 1)) }},
	} {
		if panicOf(c.call) == nil {
			s.errorf("%s did not panic", c.name)
		}
	}
}

// panicOf returns the value that f panics with, or nil.
func panicOf(f func()) (value any) {
	defer func() { value = recover() }()
	f()
	return nil
}
