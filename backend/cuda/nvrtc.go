//go:build cuda && linux && amd64 && cgo

package cuda

// #include <stdlib.h>
// #include "nvrtc.h"
import "C"

import (
	"fmt"
	"unsafe"

	"github.com/specmatch/specmatch/backend/cuda/kernels"
	"github.com/specmatch/specmatch/tensor"
)

// compileKernels compiles the kernels for an architecture such as compute_90, with the
// options of kernels/ptx.py. For compute_80 and the compiler that kernels/toolkit.txt
// pins, the result is the embedded PTX.
func compileKernels(p tensor.Precision, arch string) (ptx string, err error) {
	real := "float"
	if p == tensor.Float64 {
		real = "double"
	}
	// The options as C strings, in memory of C.
	strs := []string{
		"--gpu-architecture=" + arch,
		"--std=c++17",
		"--device-as-default-execution-space",
		"--define-macro=REAL=" + real,
	}
	options := C.malloc(
		C.size_t(len(strs)) * C.size_t(unsafe.Sizeof((*C.char)(nil))),
	)
	defer C.free(options)
	for k, s := range strs {
		c := C.CString(s)
		defer C.free(unsafe.Pointer(c))
		unsafe.Slice((**C.char)(options), len(strs))[k] = c
	}
	source := C.CString(kernels.Source())
	defer C.free(unsafe.Pointer(source))
	var out *C.char
	code := C.nvrtc_compile(source, (**C.char)(options), C.int(len(strs)), &out)
	defer C.free(unsafe.Pointer(out))
	text := C.GoString(out)
	switch {
	case code == C.nvrtc_absent:
		const format = "SPECMATCH_NVRTC=%s asks for NVIDIA's compiler, and it was not found (%s): " +
			"install CUDA's libnvrtc 12 or 13, from NVIDIA or as the Python package " +
			"nvidia-cuda-nvrtc-cu12, " +
			"and name its file in SPECMATCH_LIBNVRTC if the loader does not find it; or unset SPECMATCH_NVRTC"
		return "", fmt.Errorf(format, arch, text)
	case code != 0:
		const format = "SPECMATCH_NVRTC=%s: the kernels do not compile (status %d of NVRTC): " +
			"want an architecture that it knows, such as compute_90, or unset it\n%s"
		return "", fmt.Errorf(format, arch, code, text)
	}
	return text, nil
}
