package main

import (
	"fmt"
	"strings"

	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/gnn/molecule"
	"github.com/specmatch/specmatch/gnn/random"
)

// The parts of which the toy molecules are put together: a scaffold with places
// for substituents, and substituents.
var (
	toyScaffolds = []string{
		"c1cc(%s)cc(%s)c1", "c1cc(%s)nc(%s)c1", "C1CC(%s)CC(%s)C1", "C1CN(%s)CCC1%s", "c1c(%s)sc(%s)c1", "c1c(%s)oc(%s)c1",
		"c1cc2c(cc1%s)cccc2%s", "c1cc2[nH]cc(%s)c2cc1%s", "C1CC(%s)OC1%s", "c1ccc(cc1%s)-c1ccc(%s)cc1", "O=C1NC(%s)CC1%s", "c1cnc(%s)nc1%s",
	}
	toySubstituents = []string{
		"C", "CC", "C(C)C", "O", "OC", "N", "N(C)C", "Cl", "F", "Br", "C(F)(F)F", "C(=O)O", "C(=O)N", "C(=O)C", "C#N", "S(=O)(=O)C", "CO", "CCN",
	}
)

// toyNoise is the share of labels that are wrong.
const toyNoise = 0.05

// toy returns a set of n molecules put together at random, with two tasks: does it
// have a carbonyl group in a substituent, and does it have a halogen at an
// aromatic ring? Scaffolds are split as those of real sets are.
func toy(n int) (*taskSet, error) {
	s := &taskSet{name: "toy", tasks: 2}
	rng := random.Stream(0, purposeCorpus, 2, 0)
	var parser molecule.Parser
	var scaffolds []string
	for range n {
		parts := [2]string{toySubstituents[rng.IntN(len(toySubstituents))], toySubstituents[rng.IntN(len(toySubstituents))]}
		frame := toyScaffolds[rng.IntN(len(toyScaffolds))]
		smiles := fmt.Sprintf(frame, parts[0], parts[1])
		m, err := parser.Parse(smiles)
		if err != nil {
			return nil, fmt.Errorf("transfer: toy molecule %s: %w", smiles, err)
		}
		g, err := m.Graph()
		if err != nil {
			return nil, fmt.Errorf("transfer: toy molecule %s: %w", smiles, err)
		}
		g.Class = 0
		s.graphs = append(s.graphs, g)
		aromatic := strings.HasPrefix(frame, "c")
		carbonyl, halogen := false, false
		for _, p := range parts {
			carbonyl = carbonyl || strings.HasPrefix(p, "C(=O)")
			halogen = halogen || aromatic && (p == "Cl" || p == "F" || p == "Br")
		}
		for _, yes := range []bool{carbonyl, halogen} {
			if rng.Float64() < toyNoise {
				yes = !yes
			}
			label := int8(-1)
			if yes {
				label = 1
			}
			s.labels = append(s.labels, label)
		}
		scaffolds = append(scaffolds, parser.Scaffold(m))
	}
	var err error
	s.split, err = dataset.ScaffoldSplit(scaffolds, 0.8, 0.1)
	return s, err
}
