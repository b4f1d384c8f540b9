//go:build !(cuda && linux && amd64 && cgo)

package cuda

import "errors"

// Diagnose reports which of the engine's requirements are met.
func Diagnose() []Finding {
	return []Finding{{
		What: "build",
		Err: errors.New(
			"without CUDA: rebuild with -tags cuda, on linux/amd64, with cgo and cuda.h " +
				"(backend/cuda/kernels/toolkit.sh fetches it)",
		),
	}}
}
