package molecule_test

import (
	"fmt"

	"github.com/specmatch/specmatch/gnn/molecule"
	"github.com/specmatch/specmatch/gnn/molecule/feature"
)

// Two ways to write toluene, and what is the same about them.
func ExampleParser() {
	var p molecule.Parser
	scaffolds := map[string]int{}
	for _, smiles := range []string{"Cc1ccccc1", "C1=CC=CC(C)=C1", "CC1CCCCC1", "CCO"} {
		m, err := p.Parse(smiles)
		if err != nil {
			fmt.Println(err)
			return
		}
		aromatic := 0
		for _, b := range m.Bonds {
			if b.Type == molecule.Aromatic {
				aromatic++
			}
		}
		key := p.Scaffold(m)
		if _, ok := scaffolds[key]; !ok {
			scaffolds[key] = len(scaffolds)
		}
		fmt.Printf("%d atoms, %d of %d bonds aromatic, scaffold %d\n", len(m.Atoms), aromatic, len(m.Bonds), scaffolds[key])
	}
	// Output:
	// 7 atoms, 6 of 7 bonds aromatic, scaffold 0
	// 7 atoms, 6 of 7 bonds aromatic, scaffold 0
	// 7 atoms, 0 of 7 bonds aromatic, scaffold 1
	// 3 atoms, 0 of 2 bonds aromatic, scaffold 2
}

// Errors say where in the string, and why.
func ExampleError() {
	for _, smiles := range []string{"CC(C", "CC(C)(C)(C)C", "c1cccc1"} {
		_, err := molecule.Parse(smiles)
		fmt.Println(err)
	}
	// Output:
	// molecule: "CC(C": column 3: the branch is not closed
	// molecule: "CC(C)(C)(C)C": column 2: C has the valence 5, and at most 4 is allowed
	// molecule: "c1cccc1": column 1: the aromatic ring system of this atom has no Kekulé structure: its double bonds cannot be placed
}

func ExampleMolecule_Graph() {
	m, err := molecule.Parse("F/C=C/F")
	if err != nil {
		fmt.Println(err)
		return
	}
	g, err := m.Graph()
	if err != nil {
		fmt.Println(err)
		return
	}
	for i := range g.Nodes() {
		fmt.Printf("Z = %d:", g.X.Category[i]/feature.ChiralityTags+1)
		for k := g.Ptr[i]; k < g.Ptr[i+1]; k++ {
			l := g.EdgeLabel[k]
			fmt.Printf(" atom %d by type %d, direction %d;", g.Adj[k], l/feature.BondDirections, l%feature.BondDirections)
		}
		fmt.Println()
	}
	// Output:
	// Z = 9: atom 1 by type 0, direction 1;
	// Z = 6: atom 0 by type 0, direction 1; atom 2 by type 1, direction 0;
	// Z = 6: atom 1 by type 1, direction 0; atom 3 by type 0, direction 1;
	// Z = 9: atom 2 by type 0, direction 1;
}
