package cpu

import (
	"cmp"
	"errors"
	"math"
	"runtime"
	"unsafe"

	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/backend/cpu/simd"
	"github.com/specmatch/specmatch/tensor"
)

func init() {
	backend.Register("cpu", opener(simd.LevelError()))
	backend.Register("cpu-bf16", opener(
		cmp.Or(simd.LevelError(), simd.BF16Error()), BF16(),
	))
}

// opener returns the function that [backend.Open] calls. err says why the instruction
// set that SPECMATCH_CPU or the engine asks for is missing. Opening the engine is then
// an error, because another instruction set would give other bits.
func opener(err error, opts ...Option) backend.OpenFunc {
	return func(p tensor.Precision) (backend.Backend, error) {
		if err != nil {
			return nil, err
		}
		if p == tensor.Float64 && newOptions(opts).bf16 {
			return nil, errors.New(
				"cpu-bf16: bfloat16 products need the precision float32",
			)
		}
		return New(p, opts...), nil
	}
}

// Open is [New] with an error where New panics, or where the instruction set that SPECMATCH_CPU asks
// for is missing.
func Open(p tensor.Precision, opts ...Option) (backend.Backend, error) {
	err := simd.LevelError()
	if newOptions(opts).bf16 {
		err = cmp.Or(err, simd.BF16Error())
	}
	return opener(err, opts...)(p)
}

// An Option changes a default of [New].
type Option func(*options)

type options struct {
	workers int
	bf16    bool
}

// Workers sets the number of goroutines that compute, including the caller.
// With 1 everything runs in the calling goroutine. Results do not depend on it.
func Workers(n int) Option {
	return func(o *options) {
		o.workers = max(n, 1)
	}
}

// BF16 rounds the inputs of float32 matrix products to bfloat16, forward and backward.
// Everything else stays float32, including the products in a fused loss.
// [simd.GemmBF16] defines the results. New panics if [simd.BF16Error] is not nil.
func BF16() Option {
	return func(o *options) {
		o.bf16 = true
	}
}

func newOptions(opts []Option) options {
	o := options{workers: runtime.GOMAXPROCS(0)}
	for _, opt := range opts {
		opt(&o)
	}
	return o
}

// New opens an engine of precision p.
func New(p tensor.Precision, opts ...Option) backend.Backend {
	o := newOptions(opts)
	if p == tensor.Float64 {
		return open(p, kernels64(), o)
	}
	k := kernels32()
	if o.bf16 {
		if err := simd.BF16Error(); err != nil {
			panic(err)
		}
		k.gemm = simd.GemmBF16
	}
	return open(p, k, o)
}

// float is the type of an engine's elements.
type float interface{ float32 | float64 }

type engine[T float] struct {
	name      string
	precision tensor.Precision
	k         kernels[T]
	pool      *pool
	arena     backend.Arena
	task      args[T]

	partial  []T // partial sums of the reductions
	repeated []T // a row of equal numbers for withScalar
	gin      ginState[T]
	rows     rowsTask[T]
	gcn      gcnState[T]
	contrast contrastState[T]
	norm     normState[T]

	indexFree  []*backend.Indices
	indexBytes int64
	debug      bool // handles are not recycled
}

// args are the arguments of the primitive in progress. They are kept in the engine so
// that handing them to the workers allocates nothing. A primitive fills the fields that
// it needs and runs a task: a type with this underlying type.
type args[T float] struct {
	k           *kernels[T]
	dst         []T
	a, b, c, d  []T
	ptr, col    []int32
	rows, cols  int
	inner, n    int
	block       int // rows of a block in a product that is cut in two directions
	alpha, beta T
	transA      bool
	transB      bool
	seed, limit uint64
	unary       func(dst, a []T)
	binary      func(dst, a, b []T)
	reduce      func(a []T) T
	adam        simd.AdamStep
}

// hugeElements is the size from which a matrix lies in large pages. Rows of such a
// matrix are read in no order: for example the cache of atom environments.
const hugeElements = 8 << 20

func open[T float](p tensor.Precision, k kernels[T], o options) *engine[T] {
	e := &engine[T]{
		name:      "cpu",
		precision: p,
		k:         k,
		pool:      newPool(o.workers),
		debug:     backend.Debug(),
	}
	if o.bf16 {
		e.name = "cpu-bf16"
	}
	e.task.k = &e.k
	e.rows.scratch = new(freeList[[2][]T])
	e.repeated = alignedSlice[T](1 << 11)
	e.arena = backend.Arena{
		Engine:       "cpu",
		ElementBytes: p.Bytes(),
		Make: func(n int) (tensor.Buffer, error) {
			data := alignedSlice[T](n)
			if large, ok := any(data).([]float32); ok && n >= hugeElements {
				simd.HugePages(large)
			}
			return &buffer[T]{data}, nil
		},
		Poison: func(b tensor.Buffer) {
			fill(b.(*buffer[T]).data, T(math.NaN()))
		},
		Collect: runtime.GC,
	}
	runtime.AddCleanup(e, func(p *pool) { p.close() }, e.pool)
	return e
}

// buffer is the memory of a tensor; its length is that of a size class.
type buffer[T float] struct{ data []T }

// alignedSlice returns n elements that start on a cache line, so that even the
// widest vectors do not straddle two.
func alignedSlice[T float](n int) []T {
	const line = 64
	var x T
	pad := line / int(unsafe.Sizeof(x))
	s := make([]T, n+pad)
	off := 0
	if r := uintptr(unsafe.Pointer(&s[0])) % line; r != 0 {
		off = int((line - r) / unsafe.Sizeof(x))
	}
	return s[off : off+n : off+n]
}

// data returns the elements of t. It panics with *[backend.Error] if t has been
// freed or is another engine's.
func (e *engine[T]) data(t *tensor.Tensor) []T {
	b, ok := t.Buf.(*buffer[T])
	if !ok {
		panic(&backend.Error{
			Backend: "cpu",
			Op:      "use of " + t.String(),
			Err:     backend.ErrFreed,
		})
	}
	return b.data[:t.Rows*t.Cols]
}

// optional is data, or nil for a nil tensor.
func (e *engine[T]) optional(t *tensor.Tensor) []T {
	if t == nil {
		return nil
	}
	return e.data(t)
}

func (e *engine[T]) Name() string                { return e.name }
func (e *engine[T]) Precision() tensor.Precision { return e.precision }

func (e *engine[T]) Alloc(rows, cols int) *tensor.Tensor {
	return e.arena.Alloc(rows, cols)
}

func (e *engine[T]) Free(t *tensor.Tensor) {
	e.arena.Free(t)
}

func (e *engine[T]) InUse() int64 {
	return e.arena.InUse() + e.indexBytes
}

func (e *engine[T]) Upload(dst *tensor.Tensor, src []float64) {
	backend.CheckHost("backend: Upload", dst, len(src))
	d := e.data(dst)
	for i, v := range src {
		d[i] = T(v)
	}
}

func (e *engine[T]) Upload32(dst *tensor.Tensor, src []float32) {
	backend.CheckHost("backend: Upload32", dst, len(src))
	d := e.data(dst)
	if single, ok := any(d).([]float32); ok {
		copy(single, src)
		return
	}
	for i, v := range src {
		d[i] = T(v)
	}
}

// Download32 implements [backend.NarrowDownloader]. It panics unless the engine is of float32.
func (e *engine[T]) Download32(dst []float32, src *tensor.Tensor) {
	backend.CheckHost("backend: Download32", src, len(dst))
	copy(dst, any(e.data(src)).([]float32))
}

func (e *engine[T]) Download(dst []float64, src *tensor.Tensor) {
	backend.CheckHost("backend: Download", src, len(dst))
	for i, v := range e.data(src) {
		dst[i] = float64(v)
	}
}

func (e *engine[T]) Fetch(src *tensor.Tensor) backend.Pending {
	backend.CheckFetch(src)
	v := make(pending, src.Len())
	e.Download(v, src)
	return v
}

type pending []float64

func (p pending) Values(dst []float64) {
	copy(dst, p)
}

// Indices keeps the host slice itself: there is nowhere else to put it.
func (e *engine[T]) Indices(host []int32) *backend.Indices {
	var x *backend.Indices
	if n := len(e.indexFree); n > 0 {
		x = e.indexFree[n-1]
		e.indexFree = e.indexFree[:n-1]
	} else {
		x = new(backend.Indices)
	}
	x.Host = host
	x.Buf = e.pool // any value marks x as in use
	e.indexBytes += 4 * int64(len(host))
	return x
}

func (e *engine[T]) IndexBlock(hosts [][]int32) []*backend.Indices {
	xs := make([]*backend.Indices, len(hosts))
	for k, h := range hosts {
		xs[k] = e.Indices(h)
	}
	return xs
}

func (e *engine[T]) UpdateIndices(xs []*backend.Indices, hosts [][]int32) {
	backend.CheckUpdateIndices(xs, hosts)
	for k, x := range xs {
		x.Host = hosts[k]
	}
}

func (e *engine[T]) FreeIndices(x *backend.Indices) {
	if x.Buf == nil {
		panic(&backend.Error{
			Backend: "cpu",
			Op:      "FreeIndices",
			Err:     backend.ErrFreed,
		})
	}
	e.indexBytes -= 4 * int64(len(x.Host))
	x.Host = nil
	x.Buf = nil
	if !e.debug {
		e.indexFree = append(e.indexFree, x)
	}
}

// Capture runs f; a replay runs it again.
func (e *engine[T]) Capture(f func()) (backend.Step, error) {
	f()
	return step(f), nil
}

type step func()

func (s step) Replay() error {
	s()
	return nil
}

func (s step) Close() error {
	return nil
}

func (e *engine[T]) Close() error {
	e.pool.close()
	return nil
}

// grow returns a slice of n elements: a part of s if that is long enough.
func grow[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n, n+n/2)
	}
	return s[:n]
}
