package simd

import (
	"os"
	"syscall"
	"unsafe"
)

// HugePages asks Linux for pages of 2 MB under v, if it has them. It is for large
// matrices whose rows are read in an unpredictable order: with small pages every row
// costs a search of the page table. Call it before the first use of v.
func HugePages(v []float32) {
	page := uintptr(os.Getpagesize())
	p := uintptr(unsafe.Pointer(unsafe.SliceData(v)))
	skip := (-p & (page - 1)) / 4
	if skip >= uintptr(len(v)) {
		return
	}
	v = v[skip:]
	memory := unsafe.Slice(
		(*byte)(unsafe.Pointer(unsafe.SliceData(v))), 4*len(v),
	)
	_ = syscall.Madvise(memory, syscall.MADV_HUGEPAGE) // only advice: without it v is slower
}
