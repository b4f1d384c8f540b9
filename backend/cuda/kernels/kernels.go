// Package kernels holds the code that runs on the GPU: kernels.cu, and the output of a
// pinned compiler for each precision. The output is in NVIDIA's portable assembly
// language (PTX), which the driver translates for the device.
//
//	go generate ./backend/cuda/kernels    # after a change of kernels.cu
//
// With the build tag emulate, [Emulate] runs the same kernels on the processor.
package kernels

import (
	_ "embed"

	"github.com/specmatch/specmatch/tensor"
)

//go:generate python3 ptx.py

var (
	//go:embed kernels.cu
	source string
	//go:embed kernels_f32.ptx
	ptx32 string
	//go:embed kernels_f64.ptx
	ptx64 string
)

// Source returns kernels.cu, for a compiler that defines REAL as float or double.
func Source() string { return source }

// PTX returns the kernels for elements of precision p.
func PTX(p tensor.Precision) string {
	if p == tensor.Float64 {
		return ptx64
	}
	return ptx32
}
