package gnn

import "github.com/specmatch/specmatch/gnn/graph"

// GINLayer and GCNLayer are the operators behind the fused forms.
var (
	GINLayer = ginLayer
	GCNLayer = gcnLayer
)

// ColorRows returns how many rows the layers have that run on colors.
func (b *Batch) ColorRows(sight graph.Sight, rounds int) (rows []int) {
	for r := b.rowsOf(sight, rounds); r != nil && r.node != nil; r = r.next {
		rows = append(rows, len(r.node))
	}
	return rows
}
