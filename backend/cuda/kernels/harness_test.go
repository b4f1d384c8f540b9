//go:build emulate

package kernels_test

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"regexp"
	"syscall"
	"testing"
	"unsafe"

	"github.com/specmatch/specmatch/backend/cuda/internal/ptx"
	"github.com/specmatch/specmatch/backend/cuda/kernels"
	"github.com/specmatch/specmatch/tensor"
)

// kind is the type of an array's elements.
type kind int

const (
	reals   kind = iota // of the precision
	doubles             // float64 always
	ints                // int32
	words               // uint64
)

// array is a parameter that is a pointer.
type array struct {
	kind kind
	v    []float64
	bits []uint64  // of words
	want []float64 // nil for an input, which must not change
	ulps float64   // allowed, of the largest wanted or 1

	unwritten bool // until the kernel has
}

func input(v []float64) *array { return &array{v: v} }
func out(want []float64) *array {
	return &array{v: poison(len(want)), want: want, ulps: 16, unwritten: true}
}
func inOut(before, want []float64) *array { return &array{v: before, want: want, ulps: 16} }
func (a *array) as(k kind) *array         { a.kind = k; return a }
func (a *array) exact() *array            { a.ulps = 0; return a }

func indices(v []int32) *array {
	a := &array{kind: ints}
	for _, x := range v {
		a.v = append(a.v, float64(x))
	}
	return a
}

// null is a pointer to nothing.
var null *array

func poison(n int) []float64 { return repeat(n, math.NaN()) }

func repeat(n int, v float64) []float64 {
	x := make([]float64, n)
	for i := range x {
		x[i] = v
	}
	return x
}

// region is memory between two pages that fault.
type region struct {
	all  []byte
	data []byte
}

// place maps an array so that its last element, or its first, lies at a page that
// faults.
func place(t *testing.T, bytes int, atEnd bool) region {
	page := syscall.Getpagesize()
	room := (bytes + page - 1) / page * page
	all, err := syscall.Mmap(-1, 0, room+2*page, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	for _, guard := range [][]byte{all[:page], all[page+room:]} {
		if err := syscall.Mprotect(guard, syscall.PROT_NONE); err != nil {
			t.Fatal(err)
		}
	}
	first := page
	if atEnd {
		first += room - bytes
	}
	return region{all, all[first : first+bytes : first+bytes]}
}

func view[T any](b []byte) []T {
	var x T
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/int(unsafe.Sizeof(x)))
}

// bench runs kernels for elements of one precision: kernels.cu as a C++ compiler
// has it or, with module, the embedded PTX.
type bench struct {
	*testing.T
	p        tensor.Precision
	module   *ptx.Module
	eps      float64
	rng      *rand.Rand
	failures int
	more     []region // that a table points to
}

func precisions(t *testing.T, f func(b *bench)) {
	for _, p := range []tensor.Precision{tensor.Float32, tensor.Float64} {
		module, err := ptx.Parse(kernels.PTX(p))
		if err != nil {
			t.Fatal(err)
		}
		for name, module := range map[string]*ptx.Module{"emulated": nil, "interpreted": module} {
			t.Run(p.String()+"/"+name, func(t *testing.T) {
				b := &bench{T: t, p: p, module: module, eps: 0x1p-23, rng: rand.New(rand.NewPCG(1, 2))}
				if p == tensor.Float64 {
					b.eps = 0x1p-46 // the plain loops are no better than the kernels
				}
				f(b)
			})
		}
	}
}

// fail reports a failure and, after a few, ends the test: a broken kernel breaks
// hundreds of launches in the same way.
func (b *bench) fail(format string, args ...any) {
	b.Helper()
	b.Errorf(format, args...)
	if b.failures++; b.failures >= 5 {
		b.FailNow()
	}
}

// random returns standard normal numbers, rounded to the precision.
func (b *bench) random(n int) []float64 {
	x := make([]float64, n)
	for i := range x {
		x[i] = b.round(b.rng.NormFloat64())
	}
	return x
}

func (b *bench) round(v float64) float64 {
	if b.p == tensor.Float32 {
		return float64(float32(v))
	}
	return v
}

func (b *bench) size(k kind) int {
	switch k {
	case reals:
		return b.p.Bytes()
	case ints:
		return 4
	}
	return 8
}

func (b *bench) load(a *array, mem []byte) {
	for i, v := range a.v {
		switch {
		case a.kind == ints:
			view[int32](mem)[i] = int32(v)
		case a.kind == reals && b.p == tensor.Float32:
			view[float32](mem)[i] = float32(v)
		default:
			view[float64](mem)[i] = v
		}
	}
	copy(view[uint64](mem), a.bits)
}

func (b *bench) read(a *array, mem []byte) []float64 {
	v := make([]float64, len(a.v))
	for i := range v {
		switch {
		case a.kind == ints:
			v[i] = float64(view[int32](mem)[i])
		case a.kind == reals && b.p == tensor.Float32:
			v[i] = float64(view[float32](mem)[i])
		default:
			v[i] = view[float64](mem)[i]
		}
	}
	return v
}

// orders are those in which every launch runs; the results must be the same bits.
var orders = []uint32{0, 1, 12345}

// layout is how a launch runs: the order of its threads, and whether its arrays end or
// begin at a page that faults.
type layout struct {
	order uint32
	atEnd bool
}

func (b *bench) layouts() []layout {
	switch {
	case b.module != nil && testing.Short():
		return []layout{{0, true}} // the emulator has the other place
	case b.module != nil:
		return []layout{{0, true}, {0, false}} // the interpreter sees races by itself
	}
	all := []layout{{0, false}}
	for _, order := range orders {
		all = append(all, layout{order, true})
	}
	return all
}

// run launches a kernel on fresh memory, in every order, with arrays that end and
// with arrays that begin at a page that faults, and compares what it wrote.
// Arguments are *array, int, float64 and uint64.
func (b *bench) run(kernel string, grid, block [3]uint32, args ...any) {
	b.Helper()
	what := fmt.Sprintf("%s, grid %v", kernel, grid)
	for _, a := range args {
		switch a := a.(type) {
		case *array:
			if a != nil {
				what += fmt.Sprintf(" [%d]", len(a.v)+len(a.bits))
			} else {
				what += " null"
			}
		default:
			what += fmt.Sprint(" ", a)
		}
	}
	defer kernels.SetOrder(0)
	var first [][]float64
	for _, l := range b.layouts() {
		kernels.SetOrder(l.order)
		got := b.launch(what, kernel, grid, block, args, l.atEnd)
		if got == nil {
			return
		}
		if first == nil {
			first = got
			b.compare(what, args, got)
		}
		for i := range got {
			for j := range got[i] {
				if math.Float64bits(got[i][j]) != math.Float64bits(first[i][j]) && !(math.IsNaN(got[i][j]) && math.IsNaN(first[i][j])) {
					b.fail("%s: element %d of parameter %d is %v in one order of threads or place in memory and %v in another", what, j, i, first[i][j], got[i][j])
					return
				}
			}
		}
	}
}

func (b *bench) launch(what, kernel string, grid, block [3]uint32, args []any, atEnd bool) [][]float64 {
	b.Helper()
	params := make([]uint64, len(args))
	mem := make([]region, len(args))
	for i, x := range args {
		switch x := x.(type) {
		case *array:
			if x != nil {
				mem[i] = place(b.T, len(x.v)*b.size(x.kind)+8*len(x.bits), atEnd)
				defer syscall.Munmap(mem[i].all)
				b.load(x, mem[i].data)
				params[i] = uint64(uintptr(unsafe.Pointer(unsafe.SliceData(mem[i].data))))
				if len(mem[i].data) == 0 {
					params[i] = 8 // not null, but nothing
				}
			}
		case int:
			params[i] = uint64(uint32(x))
		case float64:
			params[i] = math.Float64bits(x)
		case uint64:
			params[i] = x
		default:
			b.Fatalf("%s: parameter %d is a %T", what, i, x)
		}
	}
	if err := b.execute(kernel, grid, block, params, args, mem); err != nil {
		b.fail("%s: %v", what, err)
		return nil
	}
	got := make([][]float64, len(args))
	for i, x := range args {
		if a, ok := x.(*array); ok && a != nil {
			got[i] = b.read(a, mem[i].data)
		}
	}
	return got
}

// execute runs a kernel whose arrays lie in mem.
func (b *bench) execute(kernel string, grid, block [3]uint32, params []uint64, args []any, mem []region) error {
	if b.module == nil {
		return kernels.Emulate(b.p, kernel, grid, block, 0, params)
	}
	m := new(ptx.Memory)
	for i, r := range append(mem, b.more...) {
		if len(r.data) == 0 {
			continue
		}
		known := i >= len(args) || !args[i].(*array).unwritten
		m.Add(address(r), r.data)
		if err := m.Mark(address(r), len(r.data), known); err != nil {
			return err
		}
	}
	machine := &ptx.Machine{Memory: m}
	_, err := machine.Run(b.module, kernel, grid, block, params)
	return err
}

func (b *bench) compare(what string, args []any, got [][]float64) {
	b.Helper()
	for i, x := range args {
		a, ok := x.(*array)
		if !ok || a == nil {
			continue
		}
		want, allowed := a.want, 0.0
		if want == nil {
			want = a.v
		}
		if a.ulps > 0 {
			largest := 1.0
			for _, w := range want {
				if !math.IsInf(w, 0) && !math.IsNaN(w) {
					largest = math.Max(largest, math.Abs(w))
				}
			}
			allowed = a.ulps * b.eps * largest
		}
		for j, w := range want {
			g := got[i][j]
			if a.kind == reals && a.ulps == 0 {
				w = b.round(w)
			}
			if g == w || math.IsNaN(g) && math.IsNaN(w) || math.Abs(g-w) <= allowed {
				continue
			}
			b.fail("%s: element %d of %d of parameter %d is %v, want %v (allowed %.2g)", what, j, len(want), i, g, w, allowed)
			return
		}
	}
}

// The grids: see kernels.cu.
var (
	threads = [3]uint32{256, 1, 1}
	lanes   = [3]uint32{32, 8, 1}
)

func ceil(a, b int) uint32 { return uint32((a + b - 1) / b) }

func blocks(n int) [3]uint32          { return [3]uint32{uint32(n), 1, 1} }
func tiles(items, cols int) [3]uint32 { return [3]uint32{uint32(items), ceil(cols, 32), 1} }

// flat runs a kernel that strides over n elements on several grids.
func (b *bench) flat(kernel string, n int, args ...any) {
	b.Helper()
	for _, g := range []uint32{1, ceil(n, 256), ceil(n, 1000) + 3} {
		b.run(kernel, [3]uint32{g, 1, 1}, threads, args...)
	}
}

// TestEveryKernelIsTested reads the names of the kernels and looks for them here.
func TestEveryKernelIsTested(t *testing.T) {
	source, err := os.ReadFile("kernels.cu")
	if err != nil {
		t.Fatal(err)
	}
	tests, err := os.ReadFile("kernels_test.go")
	if err != nil {
		t.Fatal(err)
	}
	names := regexp.MustCompile(`(?m)^KERNEL(?:_\w+)?\((\w+),`).FindAllSubmatch(source, -1)
	for _, n := range names {
		if !bytes.Contains(tests, fmt.Appendf(nil, "%q", n[1])) {
			t.Errorf("no test runs %s", n[1])
		}
	}
	if len(names) < 30 {
		t.Errorf("found %d kernels; the pattern is not that of kernels.cu any more", len(names))
	}
}

// edges are the sizes at the edges of vectors, warps and blocks.
var edges = []int{1, 3, 4, 31, 32, 33, 127, 255, 256, 257, 1025, 5003}
