package backendtest

import (
	"fmt"
	"math"
	"slices"

	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/tensor"
)

// edges are the sizes at which blocked and vectorised loops tend to fail.
var edges = []int{
	0, 1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129,
}

// shapes are those of small matrices with an edge in either dimension, also empty ones.
var shapes = func() (list [][2]int) {
	for _, n := range edges {
		list = append(list, [2]int{3, n}, [2]int{n, 5})
	}
	return append(
		list, [2]int{0, 0}, [2]int{1, 1},
		[2]int{1, 257}, [2]int{255, 1}, [2]int{33, 65},
	)
}()

// largeShapes are those that a parallel engine cuts into parts. No dimension is a
// multiple of a block.
var largeShapes = [][2]int{{5003, 33}, {3, 50021}, {100003, 1}}

// checkAlloc holds many tensors of many sizes at once, to catch an allocator that
// hands out overlapping memory, and checks the accounting of bytes.
func checkAlloc(s *suite) {
	bytes := int64(s.b.Precision().Bytes())
	before := s.b.InUse()
	var held []*tensor.Tensor
	fill := func() {
		for i := range 2 * len(shapes) { // two of each
			rows, cols := shapes[i/2][0], shapes[i/2][1]
			used := s.b.InUse()
			t := s.alloc(rows, cols)
			if !t.Is(rows, cols) {
				s.errorf("Alloc(%d, %d) gave a tensor %v", rows, cols, t)
			}
			size := bytes * int64(t.Len())
			if n := s.b.InUse() - used; n < size {
				s.errorf(
					"InUse grew by %d bytes with a tensor %v, want at least %d",
					n, t, size,
				)
			}
			held = append(held, t)
		}
		for i, t := range held {
			s.b.Fill(t, float64(i))
		}
		for i, t := range held {
			filled := constant(t.Rows, t.Cols, float64(i))
			s.wantSame(
				fmt.Sprintf("tensor %v, one of %d", t, len(held)),
				download(s.b, t),
				filled,
			)
		}
	}
	fill()
	// Leave holes, and fill them with other sizes.
	var odd []*tensor.Tensor
	for i, t := range held {
		if i%2 == 0 {
			s.free(t)
		} else {
			odd = append(odd, t)
		}
	}
	held = odd
	fill()
	for _, t := range held {
		s.free(t)
	}
	s.wantInUse(before, "with all tensors freed")
	for range 100 {
		s.free(s.alloc(300, 100))
	}
	s.wantInUse(before, "after a hundred pairs of Alloc and Free")
}

// wantInUse checks that the engine holds as many bytes as before.
func (s *suite) wantInUse(before int64, when string) {
	s.Helper()
	if n := s.b.InUse(); n != before {
		s.errorf("InUse is %d bytes %s, want %d as before", n, when, before)
	}
}

// special returns numbers at the limits of the format, for both precisions.
func (s *suite) special() []float64 {
	v := []float64{
		0, 1, 0.5, 2, 3, 1e-3, 1 + s.eps, 1 - s.eps/2, 10, 1e5,
		s.smallest,
		3 * s.smallest,
		s.normal / 2,
		s.normal,
		3 * s.normal,
		s.largest,
		s.largest / 3,
		math.Inf(1), 12345678, 1e-10, 1e10, 1e30,
		16, 20, 50, 80, 88, 89, 100, 104, 700, 709, 710, 746, 1000, // around the overflow of e^x
	}
	for _, x := range slices.Clone(v) {
		v = append(v, -x) // also -0
	}
	return append(v, math.NaN())
}

// checkUpload checks that values survive an upload and a download, rounded to the
// precision, and that the engine does not keep the host slice.
func checkUpload(s *suite) {
	for _, shape := range append(slices.Clone(shapes), largeShapes...) {
		m := s.random(shape[0], shape[1])
		for i, v := range s.special() {
			if i < len(m.v) {
				m.v[i] = v
			}
		}
		t := s.upload(m)
		s.wantSame(
			fmt.Sprintf("Upload, Download %v", t),
			download(s.b, t),
			m.mapped(s.round),
		)

		host := make([]float32, len(m.v))
		for i, v := range m.v {
			host[len(host)-1-i] = float32(v)
		}
		s.b.Upload32(t, host)
		reversed := m.mapped(func(v float64) float64 {
			return float64(float32(v))
		})
		slices.Reverse(reversed.v)
		s.wantSame(
			fmt.Sprintf("Upload32, Download %v", t), download(s.b, t), reversed,
		)

		clear(host)
		clear(m.v)
		s.wantSame(
			fmt.Sprintf("Upload32, host slice cleared, Download %v", t),
			download(s.b, t),
			reversed,
		)
		narrow := backend.CapabilitiesOf(s.b).Narrow
		if narrow != nil && s.b.Precision() == tensor.Float32 {
			narrow.Download32(host, t)
			got := reversed.mapped(func(float64) float64 { return 0 })
			for i, v := range host {
				got.v[i] = float64(v)
			}
			s.wantSame(fmt.Sprintf("Download32 %v", t), got, reversed)
		}
		s.free(t)
	}
	// Ties go to even, and what is too large becomes infinite.
	if s.b.Precision() == tensor.Float32 {
		m := row(
			1+0x1p-24, 1+0x3p-24, -1-0x1p-24, 1+0x1p-24+0x1p-50,
			1e300, -1e300, 1e-300, 0x1p-150, 0x1.8p-149,
		)
		rounded := row(
			1, 1+0x2p-23, -1, 1+0x1p-23, math.Inf(1),
			math.Inf(-1), 0, 0, 0x1p-148,
		)
		s.wantSame(
			"Upload rounds to nearest even: Download",
			download(s.b, s.upload(m)),
			rounded,
		)
	}
}

// indexedRows is the number of rows that the tests of index vectors gather from.
const indexedRows = 97

// randomIndices returns n random rows of indexedRows.
func (s *suite) randomIndices(n int) []int32 {
	host := make([]int32, n)
	for i := range host {
		host[i] = int32(s.rng.IntN(indexedRows))
	}
	return host
}

// checkIndices checks index vectors of many lengths, held at the same time.
func checkIndices(s *suite) {
	before := s.b.InUse()
	src := s.upload(s.random(indexedRows, 1))
	values := download(s.b, src)
	var held []*backend.Indices
	for _, n := range append(slices.Clone(edges), 20011) {
		host := s.randomIndices(n)
		x := s.index(host)
		if x.Len() != n || !slices.Equal(x.Host, host) {
			s.errorf("Indices of %d values has length %d, or another Host",
				n, x.Len())
		}
		held = append(held, x)
	}
	for _, x := range held {
		dst := s.alloc(x.Len(), 1)
		s.b.GatherRows(dst, src, x)
		label := fmt.Sprintf("GatherRows by %d indices, one of %d vectors",
			x.Len(), len(held))
		s.wantSame(label, download(s.b, dst), values.gathered(x.Host))
		s.free(dst)
	}
	for _, x := range held {
		s.freeIndex(x)
	}
	s.free(src)
	s.wantInUse(before, "with all index vectors freed")
}

// gathered returns the elements of a column at the given rows.
func (m matrix) gathered(rows []int32) matrix {
	out := constant(len(rows), 1, 0)
	for k, i := range rows {
		out.v[k] = m.v[i]
	}
	return out
}

// checkIndexBlock refills some index vectors of a block at once. Primitives queued before
// must see the old contents, and a recorded step the new ones.
func checkIndexBlock(s *suite) {
	const total = 70340
	src := s.upload(s.random(indexedRows, 1))
	values := download(s.b, src)
	lengths := []int{5, 0, 300, 1, 33, 0, 70001}
	var hosts [][]int32
	for _, n := range lengths {
		hosts = append(hosts, s.randomIndices(n))
	}
	before := s.b.InUse()
	xs := s.b.IndexBlock(hosts)
	for _, x := range xs {
		s.indices[x] = true
	}
	if n := s.b.InUse() - before; n < 4*total {
		s.errorf("InUse grew by %d bytes with %d indices", n, total)
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
	verify := func(circumstance string, hosts [][]int32) {
		s.Helper()
		for k, host := range hosts {
			label := fmt.Sprintf("GatherRows by vector %d of a block, %s", k, circumstance)
			s.wantSame(label, download(s.b, dst[k]), values.gathered(host))
		}
	}
	gather()
	verify("as made", hosts)
	step, err := s.b.Capture(gather)
	if err != nil {
		s.errorf("Capture: %v", err)
		return
	}
	// Refill all, several neighbours, one, and some out of order.
	refills := [][]int{{0, 1, 2, 3, 4, 5, 6}, {2, 3, 4}, {6}, {4, 0, 2, 1}}
	for _, which := range refills {
		old := slices.Clone(hosts)
		gather()
		s.refill(xs, hosts, which)
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
	}
	if err := step.Close(); err != nil {
		s.errorf("Close: %v", err)
	}
}

// refill gives some vectors of a block new contents at once, and checks that each says so.
func (s *suite) refill(xs []*backend.Indices, hosts [][]int32, which []int) {
	s.Helper()
	var vectors []*backend.Indices
	var contents [][]int32
	for _, k := range which {
		hosts[k] = s.randomIndices(len(hosts[k]))
		vectors = append(vectors, xs[k])
		contents = append(contents, hosts[k])
	}
	s.b.UpdateIndices(vectors, contents)
	for k, x := range xs {
		if !slices.Equal(x.Host, hosts[k]) {
			s.errorf(
				"Host of vector %d is not the slice that it was refilled with",
				k,
			)
		}
	}
}

// checkFetch reads fetched values late and out of order: each must be the value at the
// time of its Fetch.
func checkFetch(s *suite) {
	x := s.alloc(2, 3)
	var pending []backend.Pending
	const n = 40
	for k := range n {
		s.b.Fill(x, float64(k))
		pending = append(pending, s.b.Fetch(x))
	}
	s.b.Fill(x, -1)
	for k, i := range s.rng.Perm(n) {
		if k == n/2 { // half of them are still pending
			pending = append(pending, s.b.Fetch(x))
		}
		m := constant(2, 3, 12345.5)
		pending[i].Values(m.v)
		s.wantSame(
			fmt.Sprintf("Fetch of value %d", i), m, constant(2, 3, float64(i)),
		)
	}
	m := constant(2, 3, 12345.5)
	pending[n].Values(m.v)
	s.wantSame("Fetch of the last value", m, constant(2, 3, -1))
	empty := s.alloc(0, 3)
	s.b.Fetch(empty).Values(nil)
}
