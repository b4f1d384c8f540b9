package backend

import (
	"errors"
	"testing"

	"github.com/specmatch/specmatch/tensor"
)

// memory is the buffer of the test arenas.
type memory struct{ data []float32 }

func newArena(debug bool) (a *Arena, made, poisoned *int) {
	made, poisoned = new(int), new(int)
	return &Arena{
		Engine: "test", ElementBytes: 4,
		Make: func(n int) (tensor.Buffer, error) {
			*made++
			return &memory{make([]float32, n)}, nil
		},
		Poison: func(b tensor.Buffer) { *poisoned++ },
		debug:  debug, ready: true,
	}, made, poisoned
}

func TestArenaSizeClasses(t *testing.T) {
	previous := 0
	for c := range 2 * 25 {
		size := classSize(c)
		if size <= previous {
			t.Fatalf("class %d has %d elements, class %d has %d", c-1, previous, c, size)
		}
		for _, n := range []int{previous + 1, size} {
			if got := sizeClass(n); got != c {
				t.Errorf("sizeClass(%d) = %d, want %d", n, got, c)
			}
		}
		if c > 0 && 3*(size-previous-1) > size {
			t.Errorf("class %d of %d elements wastes up to %d", c, size, size-previous-1)
		}
		previous = size
	}
	if sizeClass(0) != 0 {
		t.Errorf("sizeClass(0) = %d, want 0", sizeClass(0))
	}
	for n := range 10_000 {
		if classSize(sizeClass(n)) < n {
			t.Fatalf("class %d of %d elements cannot hold %d", sizeClass(n), classSize(sizeClass(n)), n)
		}
	}
}

func TestArenaRecycles(t *testing.T) {
	a, made, poisoned := newArena(false)
	x := a.Alloc(100, 30)
	buf := x.Buf
	a.Free(x)
	if x.Buf != nil {
		t.Error("a freed tensor keeps its buffer")
	}
	y := a.Alloc(60, 51) // another shape of the same class
	if y != x || y.Buf != buf || !y.Is(60, 51) {
		t.Errorf("Alloc after Free gave %v with another handle or buffer", y)
	}
	a.Alloc(100, 30)
	if *made != 2 {
		t.Errorf("%d buffers were made for two live tensors", *made)
	}
	if *poisoned != 0 {
		t.Error("Poison was called outside debug mode")
	}
	a.Free(nil)
}

func TestArenaAllocationFree(t *testing.T) {
	a, _, _ := newArena(false)
	shapes := [][2]int{{3, 5}, {1000, 32}, {0, 4}, {512, 512}}
	var held [4]*tensor.Tensor
	step := func() {
		for i, s := range shapes {
			held[i] = a.Alloc(s[0], s[1])
		}
		for _, x := range held {
			a.Free(x)
		}
	}
	if n := testing.AllocsPerRun(100, step); n != 0 {
		t.Errorf("a step allocates %v times, want 0", n)
	}
}

func TestArenaInUse(t *testing.T) {
	a, _, _ := newArena(false)
	x, y := a.Alloc(10, 10), a.Alloc(3, 0)
	if n := a.InUse(); n != 400 {
		t.Errorf("InUse = %d, want 400", n)
	}
	a.Free(y)
	a.Free(x)
	if n := a.InUse(); n != 0 {
		t.Errorf("InUse = %d after Free, want 0", n)
	}
}

func TestArenaDoubleFree(t *testing.T) {
	for _, debug := range []bool{false, true} {
		a, _, poisoned := newArena(debug)
		x := a.Alloc(4, 4)
		a.Free(x)
		if debug {
			// The buffer is in use again, but not by x's handle.
			if y := a.Alloc(4, 4); y == x || *poisoned != 3 {
				t.Errorf("debug mode recycled a handle, or poisoned %d times instead of 3", *poisoned)
			}
		}
		func() {
			defer func() {
				err, _ := recover().(error)
				var be *Error
				if !errors.As(err, &be) || !errors.Is(err, ErrFreed) {
					t.Errorf("debug %v: a second Free panicked with %v, want ErrFreed", debug, err)
				}
			}()
			a.Free(x)
		}()
	}
}

func TestArenaOutOfMemory(t *testing.T) {
	full := errors.New("full")
	a := &Arena{Engine: "test", ElementBytes: 4, Make: func(int) (tensor.Buffer, error) { return nil, full }}
	defer func() {
		if err, _ := recover().(error); !errors.Is(err, full) || a.InUse() != 0 {
			t.Errorf("Alloc panicked with %v and left %d bytes in use, want %v and 0", err, a.InUse(), full)
		}
	}()
	a.Alloc(1, 1)
}

func TestArenaDrain(t *testing.T) {
	a, made, _ := newArena(false)
	x, y := a.Alloc(4, 4), a.Alloc(400, 4)
	want := map[tensor.Buffer]bool{x.Buf: true, y.Buf: true}
	a.Free(x)
	a.Free(y)
	a.Drain(func(b tensor.Buffer) {
		if !want[b] {
			t.Error("Drain released an unknown buffer, or one twice")
		}
		delete(want, b)
	})
	if len(want) > 0 {
		t.Errorf("Drain forgot %d buffers", len(want))
	}
	a.Drain(func(tensor.Buffer) { t.Error("a second Drain releases a buffer again") })
	if y := a.Alloc(4, 4); *made != 3 {
		t.Errorf("Alloc after Drain gave the old buffer of %v", y)
	}
}

func TestDebug(t *testing.T) {
	for value, want := range map[string]bool{"": false, "0": false, "1": true} {
		t.Setenv("SPECMATCH_DEBUG", value)
		if Debug() != want {
			t.Errorf("Debug with SPECMATCH_DEBUG=%q is %v", value, !want)
		}
	}
}

// TestArenaForgets: idle buffers of other sizes do not pile up, and buffers in use are never forgotten. The buffers
// are of no memory, whatever their size.
func TestArenaForgets(t *testing.T) {
	const gigabyte = 1 << 28 // elements
	a, made, _ := newArena(false)
	a.Make = func(int) (tensor.Buffer, error) {
		*made++
		return new(memory), nil
	}
	collected := 0
	a.Collect = func() { collected++ }
	one := func(n int) {
		kept := a.Alloc(gigabyte, 1)
		x := a.Alloc(n, 1)
		a.Free(x)
		a.Free(kept)
	}
	for range 3 { // as large as 2 GiB, which may stay idle
		one(gigabyte)
	}
	if *made != 2 || collected > 0 {
		t.Fatalf("%d buffers made for 2, %d times forgotten", *made, collected)
	}
	one(2 * gigabyte) // 3 GiB in use, 4 GiB made
	if *made != 3 || collected > 0 {
		t.Fatalf("%d buffers made for 3, %d times forgotten", *made, collected)
	}
	kept := a.Alloc(gigabyte/2, 1) // 4 GiB idle, and the most in use was 3
	if collected != 1 || a.idle != 0 {
		t.Errorf("%d times forgotten, %d bytes stay idle", collected, a.idle)
	}
	one(gigabyte)
	if *made != 6 || collected != 1 || kept.Buf == nil {
		t.Errorf("%d buffers made for 6, %d times forgotten", *made, collected)
	}
}

// TestArenaLargest: a size that no class holds is an error with its shape.
func TestArenaLargest(t *testing.T) {
	a := Arena{Engine: "test", ElementBytes: 4, Make: func(int) (tensor.Buffer, error) { return nil, nil }}
	defer func() {
		failure, ok := recover().(*Error)
		if !ok || failure.Op != "Alloc [300000×300000]" {
			t.Errorf("%v", failure)
		}
	}()
	a.Alloc(300000, 300000)
}
