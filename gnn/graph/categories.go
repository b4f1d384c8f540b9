package graph

// The categories of molecules of Hu et al. (2020), which package molecule makes and
// the encoder gnn.ChemGIN takes: a node has the category
// atom·ChiralityTags + tag with atom the atomic number less 1, an edge the label
// type·BondDirections + direction with types single, double, triple and aromatic.
const (
	AtomTypes      = 120 // 0 to 117; 118 is a wildcard, 119 a masked atom
	ChiralityTags  = 3   // none, clockwise, counter-clockwise
	BondTypes      = 6   // 0 to 3; 4 is a self-loop, 5 a masked bond
	BondDirections = 3   // none, up, down
)
