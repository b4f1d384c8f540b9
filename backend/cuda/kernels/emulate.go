//go:build emulate

// The emulation also runs under the compiler's sanitizers:
//
//	CGO_CXXFLAGS=-fsanitize=undefined CGO_LDFLAGS=-fsanitize=undefined go test -asan -tags emulate ./backend/cuda/kernels

package kernels

// #cgo CXXFLAGS: -std=gnu++17 -O2 -Wall -Wno-unknown-pragmas
// #include <stddef.h>
// #include <stdint.h>
//
// int emu_launch(int bytes, const char *name, const unsigned *grid, const unsigned *block, unsigned shared,
//	const uint64_t *words, size_t count, unsigned order, char *message, size_t size);
import "C"

import (
	"errors"
	"sync/atomic"
	"unsafe"

	"github.com/specmatch/specmatch/tensor"
)

var order atomic.Uint32

// SetOrder sets the order in which [Emulate] runs blocks and the threads of a
// block: 0 is forward, 1 is reverse, and others are seeds of a shuffle. A result that
// depends on it shows a race between threads.
func SetOrder(o uint32) {
	order.Store(o)
}

// Emulate runs a kernel for elements of precision p on the calling thread. Every
// parameter is a word of params, as a driver's launch would read it. Addresses are
// the process's own, outside Go's heap. It returns an error for faults on any
// device; emulate.h lists them.
func Emulate(
	p tensor.Precision,
	name string,
	grid, block [3]uint32,
	shared uint32,
	params []uint64,
) error {
	message := make([]byte, 512)
	kernel := append([]byte(name), 0)
	status := C.emu_launch(
		C.int(p.Bytes()), (*C.char)(unsafe.Pointer(&kernel[0])),
		(*C.uint)(unsafe.Pointer(&grid)), (*C.uint)(unsafe.Pointer(&block)),
		C.uint(shared), (*C.uint64_t)(unsafe.SliceData(params)),
		C.size_t(len(params)), C.uint(order.Load()),
		(*C.char)(unsafe.Pointer(&message[0])), C.size_t(len(message)),
	)
	if status != 0 {
		return errors.New(C.GoString((*C.char)(unsafe.Pointer(&message[0]))))
	}
	return nil
}
