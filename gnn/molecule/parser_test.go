package molecule

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/specmatch/specmatch/gnn/molecule/feature"
)

// shuffled returns the molecule with its atoms and bonds in another order, some
// bonds begun at the other end, and the tags and directions that say the same.
func shuffled(m *Molecule, rng *rand.Rand) *Molecule {
	var n adjacency
	n.reset(m)
	to := rng.Perm(len(m.Atoms))
	order := rng.Perm(len(m.Bonds))
	place := make([]int, len(m.Bonds)) // of every bond
	out := &Molecule{Atoms: make([]Atom, len(m.Atoms))}
	for k, old := range order {
		place[old] = k
		b := m.Bonds[old]
		b.Begin, b.End = int32(to[b.Begin]), int32(to[b.End])
		if rng.IntN(2) == 0 {
			b.Begin, b.End, b.Direction = b.End, b.Begin, b.Direction.reversed()
		}
		out.Bonds = append(out.Bonds, b)
	}
	for i, a := range m.Atoms {
		links := n.of(int32(i))
		for k, l := range links {
			for _, o := range links[:k] {
				if place[o.bond] > place[l.bond] {
					a.invert()
				}
			}
		}
		out.Atoms[to[i]] = a
	}
	return out
}

// TestScaffoldOrder: the scaffold does not depend on the order of the atoms.
func TestScaffoldOrder(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	var p Parser
	for _, g := range loadGolden(t) {
		m, err := p.Parse(g.SMILES)
		if err != nil {
			continue
		}
		m = m.Clone()
		want := p.Scaffold(m)
		for range 5 {
			if got := p.Scaffold(shuffled(m, rng)); got != want {
				t.Errorf("%s: another order of the atoms has another scaffold", g.SMILES)
				break
			}
		}
	}
}

// TestScaffoldIdempotent: the scaffold of a scaffold is itself.
func TestScaffoldIdempotent(t *testing.T) {
	var p Parser
	for _, g := range loadGolden(t) {
		if g.Scaffold == nil || *g.Scaffold == "" {
			continue
		}
		m, err := p.Parse(*g.Scaffold)
		if err != nil {
			continue // what is left of a molecule need not be one
		}
		scaffold := p.Scaffold(m)
		if m, err = p.Parse(g.SMILES); err != nil {
			continue
		}
		if p.Scaffold(m) != scaffold {
			t.Errorf("%s: the scaffold %s has another scaffold", g.SMILES, *g.Scaffold)
		}
	}
}

// TestSymmetric bounds the search for a canonical form where everything is
// symmetric.
func TestSymmetric(t *testing.T) {
	var p Parser
	for _, smiles := range []string{
		strings.Repeat("[Si](c1ccccc1)(c1ccccc1)O", 20) + "C1CC1",
		strings.Repeat("C1CC1.", 100) + "C1CC1",
		"c12c3c4c5c1c1c6c7c2c2c8c3c3c9c4c4c%10c5c5c1c1c6c6c%11c7c2c2c7c8c3c3c8c9c4c4c9c%10c5c5c1c1c6c6c%11c2c2c7c3c3c8c4c4c9c5c1c1c6c2c3c41",
	} {
		m, err := p.Parse(smiles)
		if err != nil {
			t.Fatalf("%.40s: %v", smiles, err)
		}
		p.Scaffold(m)
		if p.perceiver.canon.tries >= mostLabelings || p.perceiver.canon.effort >= mostEffort {
			t.Errorf("%.40s: %d labelings", smiles, p.perceiver.canon.tries)
		}
	}
}

// TestEffort: the search for a canonical form of symmetric polymers ends soon, and the form is one in each order.
func TestEffort(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	var p Parser
	for _, smiles := range []string{"C1" + strings.Repeat("C", 398) + "C1", strings.Repeat("CC(C)(C)", 300), "CC.C1" + strings.Repeat("C", 398) + "C1"} {
		m, err := p.Parse(smiles)
		if err != nil {
			t.Fatal(err)
		}
		m = m.Clone()
		form := p.Canonical(m)
		if effort := p.perceiver.canon.effort; effort > 2*mostEffort {
			t.Errorf("%.40s: %d atoms are looked at", smiles, effort)
		}
		if p.Canonical(shuffled(m, rng)) != form {
			t.Errorf("%.40s: the form depends on the order of the atoms", smiles)
		}
	}
}

// TestScaffoldOften: a parser finds the last scaffold of a long list as it finds
// the first. The bound on the search for a canonical form is one for each.
func TestScaffoldOften(t *testing.T) {
	var p Parser
	m, err := p.Parse("C1CC1")
	if err != nil {
		t.Fatal(err)
	}
	want := p.Scaffold(m)
	for k := range mostLabelings {
		if got := p.Scaffold(m); got != want {
			t.Fatalf("scaffold %d of the same molecule is %q, want %q", k+2, got, want)
		}
	}
}

// TestParserAllocates nothing once its memory has grown, but for centres that are centres only relative to
// others in their ring: these need the canonical form.
func TestParserAllocates(t *testing.T) {
	var p Parser
	var smiles []string
	for _, g := range loadGolden(t) {
		m, err := p.Parse(g.SMILES)
		if err == nil && !slices.ContainsFunc(m.Atoms, func(a Atom) bool {
			return a.Chirality != Unspecified && a.code == noCode
		}) {
			smiles = append(smiles, g.SMILES)
		}
	}
	if n := testing.AllocsPerRun(10, func() {
		for _, s := range smiles {
			p.Parse(s)
		}
	}); n > 1 {
		t.Errorf("%v allocations for %d molecules", n, len(smiles))
	}
}

// TestLargeRingSystems: strings made to be expensive are refused or read in
// moments.
func TestLargeRingSystems(t *testing.T) {
	acene := func(rings int) string {
		s, back := "c1ccc2", ""
		for k := 3; k <= rings; k++ {
			s += fmt.Sprintf("cc%%(%d)", k)
			back = fmt.Sprintf("c%%(%d)c", k) + back
		}
		return s + "cccc" + back + "c2c1"
	}
	var p Parser
	for _, smiles := range []string{
		strings.Repeat("C", MaxAtoms),
		"C1" + strings.Repeat("C", MaxAtoms-2) + "C1",
		strings.Repeat("C1CC1", MaxAtoms/3),
		strings.Repeat("N[C@@H](C)C(=O)", 500) + "O",
		strings.Repeat("c1ccccc1-", 500) + "C",
		acene(200),
		acene(300),
		strings.Repeat("C(", MaxAtoms-1) + "C" + strings.Repeat(")", MaxAtoms-1),
	} {
		if _, err := p.Parse(smiles); err != nil {
			t.Errorf("%.20s…: %v", smiles, err)
		}
	}
}

func BenchmarkParse(b *testing.B) {
	var p Parser
	var smiles []string
	for _, g := range loadGolden(b) {
		if !g.Rejected && len(g.Atoms) > 12 {
			smiles = append(smiles, g.SMILES)
		}
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		p.Parse(smiles[i%len(smiles)])
	}
}

// TestGraph compares graphs with the molecules that they are made of.
func TestGraph(t *testing.T) {
	var p Parser
	graphs := 0
	for _, g := range loadGolden(t) {
		m, err := p.Parse(g.SMILES)
		if err != nil {
			continue
		}
		gr, err := m.Graph()
		if err != nil {
			continue
		}
		graphs++
		if err := gr.Validate(); err != nil {
			t.Fatalf("%s: %v", g.SMILES, err)
		}
		for i, a := range m.Atoms {
			if c := gr.X.Category[i]; (c/feature.ChiralityTags+1)%(maxZ+1) != int32(a.Z) || c%feature.ChiralityTags != int32(a.Chirality) || gr.X.Width != 360 {
				t.Errorf("%s: atom %d has the category %d", g.SMILES, i, c)
			}
		}
		if gr.Entries() != 2*len(m.Bonds) {
			t.Errorf("%s: %d entries for %d bonds", g.SMILES, gr.Entries(), len(m.Bonds))
		}
		for _, b := range m.Bonds {
			for _, e := range [2][2]int32{{b.Begin, b.End}, {b.End, b.Begin}} {
				k := slices.Index(gr.Neighbors(int(e[0])), e[1])
				if k < 0 || gr.EdgeLabel[int(gr.Ptr[e[0]])+k] != int32(b.Type)*feature.BondDirections+int32(b.Direction) {
					t.Errorf("%s: bond %+v is not in the graph", g.SMILES, b)
				}
			}
		}
	}
	if graphs < 400 {
		t.Errorf("only %d graphs", graphs)
	}
	for smiles, want := range map[string]string{
		"[U]$[U]":            "molecule: the bond between atoms 0 and 1 is quadruple, which is no category",
		"F[Pt@SP1](Cl)(Br)I": "molecule: atom 1 has a chirality other than tetrahedral, which is no category",
	} {
		m, err := p.Parse(smiles)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := m.Graph(); err == nil || err.Error() != want {
			t.Errorf("%s: error %v, want %s", smiles, err, want)
		}
	}
}

// TestCanonical: what is written in several ways is one molecule, and no other.
func TestCanonical(t *testing.T) {
	seen := map[string]string{}
	var p Parser
	for _, ways := range []string{
		"CCO OCC C(O)C [CH3][CH2]O", "c1ccccc1C CC1=CC=CC=C1", "C[C@H](N)C(=O)O N[C@@H](C)C(=O)O OC([C@@H](N)C)=O",
		"C[C@@H](N)C(=O)O", "CC(N)C(=O)O", `C/C=C/C C\C=C\C C(\C)=C/C`, `C/C=C\C C\C=C/C`, "CC=CC", "CC(=O)[O-].[Na+] [Na+].[O-]C(C)=O",
		"CC(=O)O", "[Fe]->[Ni] [Ni]<-[Fe]", "[Fe]<-[Ni] [Ni]->[Fe]", "[Fe]->[Fe] [Fe]<-[Fe]", "[13CH3]CO OC[13CH3]", "C[NH3+]", "CN", "OC1CCCC1 C1CC(O)CC1", "[2H]O[2H]", "O",
	} {
		for _, s := range strings.Fields(ways) {
			m, err := p.Parse(s)
			if err != nil {
				t.Fatal(err)
			}
			form := p.Canonical(m)
			if of, ok := seen[form]; ok && of != ways {
				t.Errorf("%s is one of %s", s, of)
			} else if !ok && s != strings.Fields(ways)[0] {
				t.Errorf("%s is none of %s", s, ways)
			}
			seen[form] = ways
		}
	}
}
