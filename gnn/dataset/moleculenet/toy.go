package moleculenet

import (
	"fmt"
	"strings"

	"github.com/specmatch/specmatch/gnn/molecule"
	"github.com/specmatch/specmatch/gnn/random"
)

// The parts of the toy molecules: scaffolds with places for substituents, and
// substituents.
var (
	toyScaffolds = []string{
		"c1cc(%s)cc(%s)c1", "c1cc(%s)nc(%s)c1", "C1CC(%s)CC(%s)C1", "C1CN(%s)CCC1%s",
		"c1c(%s)sc(%s)c1", "c1c(%s)oc(%s)c1", "c1cc2c(cc1%s)cccc2%s", "c1cc2[nH]cc(%s)c2cc1%s",
		"C1CC(%s)OC1%s", "c1ccc(cc1%s)-c1ccc(%s)cc1", "O=C1NC(%s)CC1%s", "c1cnc(%s)nc1%s",
	}
	toySubstituents = []string{
		"C", "CC", "C(C)C", "O", "OC", "N", "N(C)C", "Cl", "F", "Br", "C(F)(F)F", "C(=O)O",
		"C(=O)N", "C(=O)C", "C#N", "S(=O)(=O)C", "CO", "CCN",
	}
)

// toyNoise is the fraction of wrong labels.
const toyNoise = 0.05

// purposeToy is the purpose of the toy molecules' random stream.
const purposeToy random.Purpose = 1<<32 + 1

// Toy returns a set of n molecules composed at random, which needs no file. Its two tasks
// are whether a molecule has a carbonyl group in a substituent, and whether it has a
// halogen at an aromatic ring. Scaffolds are those of real sets. Every call returns the
// same set.
func Toy(n int) (*Data, error) {
	s := &Data{Tasks: []string{"carbonyl", "halogen"}}
	rng := random.Stream(0, purposeToy, 2, 0)
	var parser molecule.Parser
	for range n {
		parts := [2]string{
			toySubstituents[rng.IntN(len(toySubstituents))],
			toySubstituents[rng.IntN(len(toySubstituents))],
		}
		frame := toyScaffolds[rng.IntN(len(toyScaffolds))]
		smiles := fmt.Sprintf(frame, parts[0], parts[1])
		m, err := parser.Parse(smiles)
		if err != nil {
			return nil, fmt.Errorf("dataset: toy molecule %s: %w", smiles, err)
		}
		g, err := m.Graph()
		if err != nil {
			return nil, fmt.Errorf("dataset: toy molecule %s: %w", smiles, err)
		}
		g.Class = 0
		s.Graphs = append(s.Graphs, g)
		s.SMILES = append(s.SMILES, smiles)
		aromatic := strings.HasPrefix(frame, "c")
		var carbonyl, halogen bool
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
			s.Labels = append(s.Labels, label)
		}
		s.Scaffolds = append(s.Scaffolds, parser.Scaffold(m))
	}
	return s, nil
}
