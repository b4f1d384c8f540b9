// Package memory checks whether what the flags ask for fits into memory, before
// anything is allocated: a Go program cannot recover from a failed allocation.
package memory

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/specmatch/specmatch/experiments/internal/cli"
	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/tensor"
)

// unknown is taken for the memory, in bytes, of systems that do not report it.
const unknown = 1 << 40

// Available returns the memory in bytes that this process can have at most: that of
// the machine, or of the control group that it runs in.
func Available() float64 { return available("/") }

// available is Available with the files of the system below root.
func available(root string) float64 {
	have := float64(unknown)
	if kb, ok := memTotal(filepath.Join(root, "proc/meminfo")); ok {
		have = kb * 1024
	}
	limits := []string{"memory.max", "memory/memory.limit_in_bytes"} // of version 2, of version 1
	for _, group := range groups(filepath.Join(root, "proc/self/cgroup")) {
		limits = append(limits, filepath.Join(group, "memory.max"), filepath.Join("memory", group, "memory.limit_in_bytes"))
	}
	for _, name := range limits {
		text, err := os.ReadFile(filepath.Join(root, "sys/fs/cgroup", name))
		if err != nil {
			continue
		}
		if limit, err := strconv.ParseFloat(strings.TrimSpace(string(text)), 64); err == nil { // an error is "max": no limit
			have = min(have, limit)
		}
	}
	return have
}

// memTotal returns the entry MemTotal of /proc/meminfo, in KiB.
func memTotal(path string) (kb float64, ok bool) {
	text, _ := os.ReadFile(path)
	for line := range strings.Lines(string(text)) {
		if n, _ := fmt.Sscanf(line, "MemTotal: %g kB", &kb); n == 1 {
			return kb, true
		}
	}
	return 0, false
}

// groups returns the paths of the control groups of the process and of their parents.
func groups(path string) []string {
	text, _ := os.ReadFile(path)
	var paths []string
	for line := range strings.Lines(string(text)) {
		if _, rest, ok := strings.Cut(line, ":"); ok {
			_, group, _ := strings.Cut(strings.TrimSpace(rest), ":")
			for ; len(group) > 1; group = filepath.Dir(group) {
				paths = append(paths, group)
			}
		}
	}
	return paths
}

// Fits returns a usage error unless need bytes fit. The message names the flags that
// ask for them, with their values, and the purpose.
func Fits(flags, purpose string, need float64) error {
	if have := Available(); need > have {
		return cli.Usagef("%s: %s needs about %s of memory, and this machine has %s", flags, purpose, size(need), size(have))
	}
	return nil
}

// TrainingFits returns a usage error unless an encoder can be built and trained on
// mini-batches of graphs in two views. On an engine with memory of its own only the
// architecture is checked.
func TrainingFits(flags string, e cli.Engine, a gnn.Architecture, graphs []*graph.Graph, batch int) error {
	if err := a.Check(); err != nil {
		return cli.Usagef("%s: %w", flags, err)
	}
	if e.Backend != "cpu" {
		return nil
	}
	return Fits(flags, "training", training(e.Precision, a, graphs, batch))
}

// training estimates the least number of bytes that training takes: four copies of
// the weights (with gradients and Adam's two moments), two of the similarities of all
// pairs of embeddings, and for every node and layer four of the outputs of its linear
// maps. That is about two thirds of what was measured, for all encoders.
func training(p tensor.Precision, a gnn.Architecture, graphs []*graph.Graph, batch int) float64 {
	nodes := 0.0
	for _, g := range graphs {
		nodes += float64(g.Nodes())
	}
	n := float64(min(batch, len(graphs)))
	perBatch := 2 * n * nodes / math.Max(1, float64(len(graphs)))
	linear := map[string]float64{gnn.KindGIN: 2, gnn.KindResGCN: 1, gnn.KindChemGIN: 3, gnn.KindBioGIN: 3}[a.Kind] // widths of a layer's maps
	activations := 4 * perBatch * float64(a.Layers) * float64(a.Hidden) * linear
	_, weights := a.Size()
	bytes := 4.0
	if p == tensor.Float64 {
		bytes = 8
	}
	return bytes * (4*float64(weights) + activations + 2*n*n)
}

// size formats a number of bytes with three digits.
func size(bytes float64) string {
	units := []string{"bytes", "kB", "MB", "GB", "TB", "PB"}
	u := 0
	for ; bytes >= 999.5 && u < len(units)-1; u++ {
		bytes /= 1000
	}
	return fmt.Sprintf("%.3g %s", bytes, units[u])
}
