package finetune

import (
	"cmp"
	"context"
	"math/bits"
	"slices"

	"github.com/specmatch/specmatch/gnn/molecule"
	"github.com/specmatch/specmatch/gnn/molecule/fingerprint"
)

const (
	clusterBits       = 2048 // of a fingerprint
	clusterRadius     = 2
	clusterSimilarity = 0.4 // Tanimoto's, of two molecules of a cluster to its centre
)

// fingerprintBits are the Morgan bits of a molecule.
type fingerprintBits [clusterBits / 64]uint64

// findClusters divides the molecules into clusters by Butina's method (J. Chem. Inf. Comput. Sci. 39 (1999) 747):
// the molecule with the most neighbours of a similarity of 0.4 is the centre of the first cluster, which takes
// them; then that of the others with the most, and so on. Equal counts go by the order of the file.
func (x *Examples) findClusters(ctx context.Context) error {
	prints := make([]fingerprintBits, len(x.Records))
	parser := molecule.Parser{Standard: x.Set.Standard}
	morgan := fingerprint.Morgan{Radius: clusterRadius}
	folded := make([]float32, clusterBits)
	for i, r := range x.Records {
		m, err := parser.Parse(r.SMILES)
		if err != nil { // a wildcard or the like, which is its own cluster
			continue
		}
		morgan.Fold(folded, m, true)
		for k, v := range folded {
			if v > 0 {
				prints[i][k/64] |= 1 << (k % 64)
			}
		}
		clear(folded)
	}
	var err error
	x.clusters, err = clusterOf(ctx, prints)
	return err
}

// clusterOf returns the number of the cluster of each fingerprint.
func clusterOf(ctx context.Context, prints []fingerprintBits) ([]int, error) {
	counts := make([]int, len(prints))
	for i := range prints {
		for _, word := range prints[i] {
			counts[i] += bits.OnesCount64(word)
		}
	}
	neighbours := make([][]int32, len(prints))
	for i := range prints {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		for j := range i {
			common := 0
			for w := range prints[i] {
				common += bits.OnesCount64(prints[i][w] & prints[j][w])
			}
			if union := counts[i] + counts[j] - common; float64(common) >= clusterSimilarity*float64(max(union, 1)) {
				neighbours[i] = append(neighbours[i], int32(j))
				neighbours[j] = append(neighbours[j], int32(i))
			}
		}
	}
	order := make([]int, len(prints))
	clusters := make([]int, len(prints))
	for i := range order {
		order[i] = i
		clusters[i] = -1
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(len(neighbours[b]), len(neighbours[a])) })
	next := 0
	for _, centre := range order {
		if clusters[centre] >= 0 {
			continue
		}
		clusters[centre] = next
		for _, j := range neighbours[centre] {
			if clusters[j] < 0 {
				clusters[j] = next
			}
		}
		next++
	}
	return clusters, nil
}
