package simd

import (
	"os"
	"syscall"
	"unsafe"
)

// HugePages asks Linux for pages of 2 MB below v, where it has such. It is for large
// matrices whose rows are read in an order that nothing foresees: with small pages every
// row costs a search of the page table. It comes before the first use of v.
func HugePages(v []float32) {
	page := uintptr(os.Getpagesize())
	p := uintptr(unsafe.Pointer(unsafe.SliceData(v)))
	skip := (-p & (page - 1)) / 4
	if n := uintptr(len(v)); n > skip {
		v = v[skip:]
		// advice
		_ = syscall.Madvise(
			unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), 4*len(v)), syscall.MADV_HUGEPAGE,
		)
	}
}
