package gnn

// GINLayer and GCNLayer are the operators behind the fused forms.
var (
	GINLayer = ginLayer
	GCNLayer = gcnLayer
)
