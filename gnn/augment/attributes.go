package augment

import (
	"math/rand/v2"

	"github.com/specmatch/specmatch/gnn/graph"
)

// AttributeMasking replaces the features of ⌊r·n⌋ of the n nodes by noise; all
// sets of that size are equally likely. Every number of such a row is drawn
// from the normal distribution with mean 0.5 and standard deviation 0.5, as
// GraphCL does, whatever the features are: attributes, a one-hot category or
// the constant 1. The batch becomes dense unless ⌊r·n⌋ = 0.
type AttributeMasking struct {
	// Ratio is r, in [0, 1].
	Ratio float64
}

// Name implements [Augmentation].
func (AttributeMasking) Name() string { return string(MaskN) }

// Append implements [Augmentation].
func (a AttributeMasking) Append(dst *graph.Batch, g *graph.Graph, rng *rand.Rand, ws *Workspace) {
	base := dst.Nodes()
	dst.Append(g)
	if mark, k := ws.chooseNodes(a.Ratio, g.Nodes(), rng); k > 0 {
		for i, m := range mark {
			if m {
				noise(dst, base+i, rng)
			}
		}
	}
}

// chooseNodes marks ⌊ratio·n⌋ of the nodes 0..n-1 and returns that number.
func (ws *Workspace) chooseNodes(ratio float64, n int, rng *rand.Rand) (mark []bool, k int) {
	k = Share(ratio, n)
	mark = resize(&ws.node, n)
	choose(mark, k, rng)
	return mark, k
}

func noise(dst *graph.Batch, i int, rng *rand.Rand) {
	dst.Densify(dst.Nodes())
	w := dst.X.Width
	for k := i * w; k < (i+1)*w; k++ {
		dst.X.Dense[k] = float32(0.5 + 0.5*rng.NormFloat64())
	}
}
