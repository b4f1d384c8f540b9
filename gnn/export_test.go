package gnn

import "github.com/specmatch/specmatch/gnn/graph"

// GINLayer and GCNLayer are the operators behind the fused forms.
var (
	GINLayer = ginLayer
	GCNLayer = gcnLayer
)

// ColorRows returns how many rows the layers have that run on colors.
func (b *Batch) ColorRows(sight graph.Sight, rounds int) (rows []int) {
	layers, _ := b.colorLayers(sight, rounds)
	for _, l := range layers {
		rows = append(rows, len(l.Node))
	}
	return rows
}
