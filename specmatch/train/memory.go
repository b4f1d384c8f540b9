package train

import (
	"fmt"
	"math"

	"github.com/KimMachineGun/automemlimit/memlimit"

	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/tensor"
)

// Memory returns the memory limit of this process in bytes: the memory of the machine or of its control
// group. It is +Inf if the system does not report it.
func Memory() float64 {
	smallest := math.Inf(1)
	for _, limit := range []memlimit.Provider{memlimit.FromSystem, memlimit.FromCgroup} {
		if bytes, err := limit(); err == nil && bytes > 0 { // an error is: no limit
			smallest = min(smallest, float64(bytes))
		}
	}
	return smallest
}

// MemoryFits returns an error unless need bytes fit into memory. A Go program cannot recover from a
// failed allocation, so it should check sizes that a user sets. The message names the purpose.
func MemoryFits(purpose string, need float64) error {
	if available := Memory(); need > available {
		return fmt.Errorf("%s needs about %s of memory, but this machine has %s",
			purpose, size(need), size(available))
	}
	return nil
}

// Fits returns an error unless the named engine can train an encoder on mini-batches of graphs in two
// views. For engines with their own memory it checks only the architecture.
func Fits(engine string, p tensor.Precision, a gnn.Architecture, graphs []*graph.Graph, batch int) error {
	if err := a.Check(); err != nil {
		return err
	}
	if engine != "cpu" {
		return nil
	}
	return MemoryFits("training", training(p, a, graphs, batch))
}

// KeptGraphs is the largest batch whose similarities are stored for the backward pass. Those of a larger batch are
// computed twice, in tiles, so that memory is linear in the batch.
const KeptGraphs = 1024

// training estimates a lower bound on the bytes of training in two views: four copies of the weights (with
// gradients and Adam's two moments), two copies of the similarities of all pairs of embeddings that are kept,
// and for every node and layer four copies of the outputs of its linear maps. That is about two thirds of the
// measured memory, for all encoders.
func training(p tensor.Precision, a gnn.Architecture, graphs []*graph.Graph, batch int) float64 {
	nodes := 0.0
	for _, g := range graphs {
		nodes += float64(g.Nodes())
	}
	n := float64(min(batch, len(graphs)))
	pairs := math.Pow(min(n, KeptGraphs), 2)
	perBatch := 2 * n * nodes / math.Max(1, float64(len(graphs)))
	linear := map[string]float64{
		gnn.KindGIN:     2,
		gnn.KindResGCN:  1,
		gnn.KindChemGIN: 3,
		gnn.KindBioGIN:  3,
	}[a.Kind] // widths of a layer's maps
	activations := 4 * perBatch * float64(a.Layers) * float64(a.Hidden) * linear
	_, weights := a.Size()
	bytes := 4.0
	if p == tensor.Float64 {
		bytes = 8
	}
	return bytes * (4*float64(weights) + activations + 2*pairs)
}

func size(bytes float64) string {
	units := []string{"bytes", "kB", "MB", "GB", "TB", "PB"}
	u := 0
	for ; bytes >= 999.5 && u < len(units)-1; u++ {
		bytes /= 1000
	}
	return fmt.Sprintf("%.3g %s", bytes, units[u])
}
