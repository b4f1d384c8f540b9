package backend

import (
	"errors"
	"fmt"
	"math/bits"
	"os"

	"github.com/specmatch/specmatch/tensor"
)

// Debug reports whether SPECMATCH_DEBUG=1 is set. Engines then trade speed for
// early failure: see [Arena].
func Debug() bool {
	return os.Getenv("SPECMATCH_DEBUG") == "1"
}

// ErrFreed is the cause of the *[Error] for a tensor that has been freed or belongs to
// another engine.
var ErrFreed = errors.New("tensor was freed, or belongs to another engine")

// Arena recycles the tensors of one engine, so that a training step allocates
// neither memory nor handles once its shapes have been seen.
//
// Buffers come in size classes of 2ⁿ and 1.5·2ⁿ elements: at most a third of a
// buffer is unused, and batches of slightly different sizes share buffers. Free
// lists are stacks, so the buffer freed last, likely still in cache, is used
// first. Memory is returned to the system only when sizes vary so much that idle buffers become
// larger than tensors ever were; see Collect.
//
// A freed tensor has no buffer. So engines detect its use, and Free detects a second
// Free, unless the handle has been recycled. In debug mode (SPECMATCH_DEBUG=1) handles
// are never recycled, so both are always detected. Buffers are then filled with NaN when
// they are allocated and when they are freed, so a read of undefined memory shows.
//
// An Arena is used from one goroutine, as its engine is.
type Arena struct {
	// Engine is the engine's name, for errors.
	Engine string
	// ElementBytes is the size of one element.
	ElementBytes int
	// Make returns a new buffer for the given number of elements, at least 1.
	Make func(elements int) (tensor.Buffer, error)
	// Poison fills a whole buffer with NaN. It may be nil; it is called in
	// debug mode only.
	Poison func(b tensor.Buffer)
	// Collect, if set, is called when the arena has forgotten all its idle buffers, which Go
	// collects. It forgets them before it makes one while they are larger than all tensors
	// together ever were, and than 2 GiB: batches of a dense graph differ by that much.
	Collect func()

	free  [64]stack
	inUse int64
	held  int64 // bytes of the buffers of tensors
	most  int64 // of held so far
	idle  int64 // bytes of free buffers
	debug bool
	ready bool
}

// mostIdle is what an arena may keep idle in any case.
const mostIdle = 2 << 30

// stack holds the free tensors of one size class.
type stack []freed

// freed is a free buffer, with a handle to recycle, or nil in debug mode.
type freed struct {
	handle *tensor.Tensor
	buffer tensor.Buffer
}

// Alloc returns a tensor with undefined contents. It panics with *[Error] when
// Make fails and with *[tensor.ShapeError] for a negative dimension.
func (a *Arena) Alloc(rows, cols int) *tensor.Tensor {
	CheckAlloc(rows, cols)
	if !a.ready {
		a.debug = Debug()
		a.ready = true
	}
	class := sizeClass(rows * cols)
	if class >= len(a.free) {
		panic(&Error{
			Backend: a.Engine,
			Op:      fmt.Sprintf("Alloc [%d×%d]", rows, cols),
			Err:     errors.New("more elements than any memory has"),
		})
	}
	size := int64(classSize(class)) * int64(a.ElementBytes)
	var e freed
	if s := a.free[class]; len(s) > 0 {
		a.idle -= size
		top := &s[len(s)-1]
		e = *top
		*top = freed{}
		a.free[class] = s[:len(s)-1]
	} else {
		if a.Collect != nil && a.idle > max(a.most, mostIdle) {
			a.Drain(func(tensor.Buffer) {})
			a.Collect()
		}
		b, err := a.Make(classSize(class))
		if err != nil {
			panic(&Error{
				Backend: a.Engine,
				Op:      fmt.Sprintf("Alloc [%d×%d]", rows, cols),
				Err:     err,
			})
		}
		e.buffer = b
	}
	if a.debug && a.Poison != nil {
		a.Poison(e.buffer)
	}
	t := e.handle
	if t == nil {
		t = new(tensor.Tensor)
	}
	*t = tensor.Tensor{Rows: rows, Cols: cols, Buf: e.buffer}
	a.inUse += int64(t.Len()) * int64(a.ElementBytes)
	a.held += size
	a.most = max(a.most, a.held)
	return t
}

// Free takes t back. It panics with *[Error] if t has been freed already. Free
// of nil does nothing.
func (a *Arena) Free(t *tensor.Tensor) {
	if t == nil {
		return
	}
	e := freed{t, t.Buf}
	if e.buffer == nil {
		panic(&Error{
			Backend: a.Engine,
			Op:      "Free " + t.String(),
			Err:     ErrFreed,
		})
	}
	a.inUse -= int64(t.Len()) * int64(a.ElementBytes)
	t.Buf = nil
	class := sizeClass(t.Len())
	size := int64(classSize(class)) * int64(a.ElementBytes)
	a.held -= size
	a.idle += size
	if a.debug {
		e.handle = nil
		if a.Poison != nil {
			a.Poison(e.buffer)
		}
	}
	a.free[class] = append(a.free[class], e)
}

// InUse returns the bytes of all tensors that are allocated and not freed.
func (a *Arena) InUse() int64 {
	return a.inUse
}

// Drain empties the free lists and hands every buffer on them to release.
// Engines whose memory is not Go's call it to close.
func (a *Arena) Drain(release func(b tensor.Buffer)) {
	for class, s := range a.free {
		for _, e := range s {
			release(e.buffer)
		}
		a.free[class] = nil
	}
	a.idle = 0
}

// minClassBits gives the smallest class 16 elements: one cache line of float32.
const minClassBits = 4

// sizeClass returns the class of the smallest size that holds n elements: even
// classes have 2ᵏ, odd ones 1.5·2ᵏ.
func sizeClass(n int) int {
	if n <= 1<<minClassBits {
		return 0
	}
	k := bits.Len(uint(n - 1)) // 2^(k-1) < n ≤ 2^k
	class := 2 * (k - minClassBits)
	if n <= 3<<(k-2) {
		class--
	}
	return class
}

// classSize returns the number of elements of a class's buffers.
func classSize(class int) int {
	n := 1 << (minClassBits + class/2)
	return n + class%2*n/2
}
