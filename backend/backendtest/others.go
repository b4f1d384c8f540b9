package backendtest

import (
	"fmt"

	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/tensor"
)

// Others returns the engines among those given that this machine has, and prints
// what the others lack, so that tests can run on engines that a build tag adds. Each
// is opened once for each precision and stays open: on a GPU an engine takes some
// hundred megabytes and a good part of a second.
func Others(names ...string) (open []func(p tensor.Precision) backend.Backend) {
	for _, name := range names {
		be, err := backend.Open(name, tensor.Float32)
		if err != nil {
			fmt.Println("without", name+":", err)
			continue
		}
		opened := map[tensor.Precision]backend.Backend{tensor.Float32: be}
		open = append(open, func(p tensor.Precision) backend.Backend {
			if opened[p] == nil {
				be, err := backend.Open(name, p)
				if err != nil {
					panic(err)
				}
				opened[p] = be
			}
			return opened[p]
		})
	}
	return open
}
