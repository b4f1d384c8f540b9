//go:build emulate || cuda

package specmatch_test

import (
	"fmt"

	"github.com/specmatch/specmatch/backend"
	_ "github.com/specmatch/specmatch/backend/cuda"
	"github.com/specmatch/specmatch/tensor"
)

// init adds the engines of package cuda that there are on this machine.
func init() {
	for _, name := range []string{"cuda-emulator", "cuda"} {
		if _, err := backend.Open(name, tensor.Float32); err != nil {
			fmt.Println("without", name+":", err)
			continue
		}
		fusing = append(fusing, func(p tensor.Precision) backend.Backend {
			be, err := backend.Open(name, p)
			if err != nil {
				panic(err)
			}
			return be
		})
	}
}
