package backendtest

import (
	"fmt"

	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/tensor"
)

// Others returns those of the named engines that this machine has, and prints why it
// lacks the rest, so that tests can run on engines that a build tag adds. Each is opened
// once for each precision and stays open: on a GPU an engine takes some hundred
// megabytes and most of a second to open.
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
