package molecule

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/gnn/molecule/feature"
)

func graphOf(t *testing.T, smiles string, c *feature.Set) *graph.Graph {
	t.Helper()
	m, err := Parse(smiles)
	if err != nil {
		t.Fatal(err)
	}
	g, err := m.GraphOf(c)
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Validate(); err != nil {
		t.Fatal(err)
	}
	return g
}

// digits are the categories of each column that a number stands for.
func digits(number int32, columns []feature.Column) []int {
	all := make([]int, len(columns))
	for k := len(columns) - 1; k >= 0; k-- {
		size := int32(columns[k].Size)
		all[k], number = int(number%size), number/size
	}
	return all
}

// TestRich: what the rich categories of a molecule are, column by column.
func TestRich(t *testing.T) {
	g := graphOf(t, "[NH3+][C@H]([13CH3])C(=O)/C=C/c1ccccc1", feature.Rich)
	for i, want := range [][]int{
		{6, 1, 4, 3, 0, 0, 4, 0, 0}, {5, 3, 3, 1, 0, 0, 4, 2, 0}, {5, 1, 3, 3, 0, 0, 4, 0, 1}, {5, 3, 3, 0, 0, 0, 3, 0, 0},
		{7, 1, 3, 0, 0, 0, 3, 0, 0}, {5, 2, 3, 1, 0, 0, 3, 0, 0}, {5, 2, 3, 1, 0, 0, 3, 0, 0}, {5, 3, 3, 0, 1, 1, 3, 0, 0},
	} {
		if d := cmp.Diff(want, digits(g.X.Category[i], feature.Rich.Atoms)); d != "" {
			t.Errorf("atom %d: %s", i, d)
		}
	}
	edge := func(i, j int32) []int {
		k, _ := slices.BinarySearch(g.Neighbors(int(i)), j)
		return digits(g.EdgeLabel[int(g.Ptr[i])+k], feature.Rich.Bonds)
	}
	for pair, want := range map[[2]int32][]int{{0, 1}: {0, 0, 0, 0}, {3, 4}: {1, 1, 0, 0}, {3, 5}: {0, 1, 0, 0}, {5, 6}: {1, 1, 0, 1}, {7, 8}: {3, 1, 1, 0}} {
		if a, b := edge(pair[0], pair[1]), edge(pair[1], pair[0]); !slices.Equal(a, want) || !slices.Equal(b, want) {
			t.Errorf("bond %v: %v and %v, want %v", pair, a, b, want)
		}
	}
	if c := feature.Rich.Masked(); feature.Rich.Element(c) != feature.AtomTypes-1 || feature.Rich.Element(g.X.Category[0]) != 6 {
		t.Errorf("elements %d of a hidden atom, %d of nitrogen", feature.Rich.Element(c), feature.Rich.Element(g.X.Category[0]))
	}
}

// TestRichTells: rich categories tell apart what those of Hu et al. do not.
func TestRichTells(t *testing.T) {
	for _, pair := range [][2]string{
		{"CC(=O)O", "CC(=O)[O-]"}, {"[CH3]", "C"}, {"[13CH4]", "C"}, {"[2H]O[2H]", "[H]O[H]"}, {"C[NH3+]", "CN"}, {"[Fe+2]", "[Fe+3]"}, {"C1CC1", "C=CC"},
	} {
		a, b := graphOf(t, pair[0], feature.Rich), graphOf(t, pair[1], feature.Rich)
		if cmp.Equal(a, b) {
			t.Errorf("%s is %s", pair[0], pair[1])
		}
	}
	if !cmp.Equal(graphOf(t, "CC(=O)O", feature.Hu), graphOf(t, "CC(=O)[O-]", feature.Hu)) {
		t.Error("hu tells an acid from its ion")
	}
	// Another way to write a molecule is the same molecule.
	if !cmp.Equal(graphOf(t, "CC(=O)[O-]", feature.Rich), graphOf(t, "[CH3]-[C](=[O])-[O-]", feature.Rich)) {
		t.Error("the way of writing matters")
	}
}

// TestEveryCategory: there is a molecule for each category of each column, but for a hidden
// atom and bond and a self-loop, which are no molecule's.
func TestEveryCategory(t *testing.T) {
	molecules := []string{
		"*", "C[C@H](N)O", "C[C@@H](N)O", "F[Pt@SP1](Cl)(Br)I", "CC=O", "C#N", "c1ccccc1", "C->[Pt]", "[U]$[U]", "F/C=C/F", "F/C=C\\F", "FC=CF",
		"[13CH4]", "[CH2]", "[CH3]", "[NH4+]", "[N-3]", "[O-2]", "[OH-]", "[Fe+2]", "[Fe+3]", "[Zr+4]", "C1CC1", "CC(C)(C)C", "FP(F)(F)(F)F",
		"FS(F)(F)(F)(F)F", "F[Re](F)(F)(F)(F)(F)F", "[PH5]", "[SiH4]", "[H][H]", "Cl[Pt@OH1](Br)(F)(I)(N)O", "[NH2-]", "BrC(F)(Cl)I", "C=C=C",
	}
	for z := 1; z <= maxZ; z++ {
		molecules = append(molecules, "["+elements[z].symbol+"]")
	}
	for _, name := range feature.Names() {
		c, err := feature.ByName(name)
		if err != nil {
			t.Fatal(err)
		}
		seen := map[string]bool{}
		note := func(numbers []int32, columns []feature.Column) {
			for _, v := range numbers {
				for k, d := range digits(v, columns) {
					seen[fmt.Sprint(columns[k].Name, " ", d)] = true
				}
			}
		}
		for _, smiles := range molecules {
			m, err := Parse(smiles)
			if err != nil {
				t.Fatal(err)
			}
			g, err := m.GraphOf(c)
			if _, none := err.(*CategoryError); none && c == feature.Hu {
				continue
			} else if err != nil {
				t.Fatal(err)
			}
			note(g.X.Category, c.Atoms)
			note(g.EdgeLabel, c.Bonds)
		}
		none := []string{"element 119", "order 4", "order 5", "type 6"}
		for _, column := range slices.Concat(c.Atoms, c.Bonds) {
			for d := range column.Size {
				if what := fmt.Sprint(column.Name, " ", d); seen[what] == slices.Contains(none, what) {
					t.Errorf("%s: %s is seen: %v", name, what, seen[what])
				}
			}
		}
	}
}
