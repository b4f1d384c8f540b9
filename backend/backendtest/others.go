package backendtest

import (
	"fmt"

	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/tensor"
)

// Others returns how to open those of the engines that this machine has, and
// prints what the others lack: for tests to run on engines that a build tag adds.
func Others(names ...string) (open []func(p tensor.Precision) backend.Backend) {
	for _, name := range names {
		if _, err := backend.Open(name, tensor.Float32); err != nil {
			fmt.Println("without", name+":", err)
			continue
		}
		open = append(open, func(p tensor.Precision) backend.Backend {
			be, err := backend.Open(name, p)
			if err != nil {
				panic(err)
			}
			return be
		})
	}
	return open
}
