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
func Debug() bool { return os.Getenv("SPECMATCH_DEBUG") == "1" }

// ErrFreed is the cause of the *[Error] for a tensor that was freed already, or
// that another engine made.
var ErrFreed = errors.New("tensor was freed, or belongs to another engine")

// Arena recycles the tensors of one engine, so that a training step allocates
// neither memory nor handles once its shapes have been seen.
//
// Buffers come in size classes of 2ⁿ and 1.5·2ⁿ elements: at most a third of a
// buffer is unused, and batches of slightly different sizes share buffers. Free
// lists are stacks, so the buffer freed last, likely still in cache, is used
// first. Memory is never returned to the system.
//
// A freed tensor has no buffer, so engines detect its use, and Free detects a
// second Free, unless the handle has been recycled. In debug mode
// (SPECMATCH_DEBUG=1) handles are never recycled, which makes that detection
// certain, and buffers are poisoned when allocated and when freed, so that a
// read of undefined memory shows as NaN.
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

	free  [64]stack
	inUse int64
	debug bool
	ready bool
}

// A stack holds free tensors of one size class and their buffers.
type stack []struct {
	t *tensor.Tensor
	b tensor.Buffer
}

// Alloc returns a tensor with undefined contents. It panics with *[Error] when
// Make fails and with *[tensor.ShapeError] for a negative dimension.
func (a *Arena) Alloc(rows, cols int) *tensor.Tensor {
	CheckAlloc(rows, cols)
	if !a.ready {
		a.debug, a.ready = Debug(), true
	}
	c := sizeClass(rows * cols)
	var t *tensor.Tensor
	var b tensor.Buffer
	if s := a.free[c]; len(s) > 0 {
		e := &s[len(s)-1]
		t, b = e.t, e.b
		e.t, e.b = nil, nil
		a.free[c] = s[:len(s)-1]
	} else {
		var err error
		if b, err = a.Make(classSize(c)); err != nil {
			panic(&Error{Backend: a.Engine, Op: fmt.Sprintf("Alloc [%d×%d]", rows, cols), Err: err})
		}
	}
	if t == nil {
		t = new(tensor.Tensor)
	}
	if a.debug && a.Poison != nil {
		a.Poison(b)
	}
	t.Rows, t.Cols, t.Buf = rows, cols, b
	a.inUse += int64(t.Len()) * int64(a.ElementBytes)
	return t
}

// Free takes t back. It panics with *[Error] if t has been freed already. Free
// of nil does nothing.
func (a *Arena) Free(t *tensor.Tensor) {
	if t == nil {
		return
	}
	b := t.Buf
	if b == nil {
		panic(&Error{Backend: a.Engine, Op: "Free " + t.String(), Err: ErrFreed})
	}
	a.inUse -= int64(t.Len()) * int64(a.ElementBytes)
	t.Buf = nil
	c := sizeClass(t.Len())
	if a.debug {
		t = nil // the caller's handle is never used again
		if a.Poison != nil {
			a.Poison(b)
		}
	}
	a.free[c] = append(a.free[c], struct {
		t *tensor.Tensor
		b tensor.Buffer
	}{t, b})
}

// InUse returns the bytes of all tensors that are allocated and not freed.
func (a *Arena) InUse() int64 { return a.inUse }

// Drain empties the free lists and hands every buffer on them to release.
// Engines whose memory is not Go's call it to close, or when memory runs out.
func (a *Arena) Drain(release func(b tensor.Buffer)) {
	for c := range a.free {
		for _, e := range a.free[c] {
			release(e.b)
		}
		a.free[c] = nil
	}
}

// The smallest class has 16 elements: one cache line of float32.
const minClassBits = 4

// sizeClass returns the class of the smallest size that holds n elements: even
// classes have 2ᵏ, odd ones 1.5·2ᵏ.
func sizeClass(n int) int {
	if n <= 1<<minClassBits {
		return 0
	}
	k := bits.Len(uint(n - 1)) // 2^(k-1) < n ≤ 2^k
	c := 2 * (k - minClassBits)
	if n <= 3<<(k-2) {
		c--
	}
	return c
}

func classSize(c int) int {
	n := 1 << (minClassBits + c/2)
	return n + c%2*n/2
}
