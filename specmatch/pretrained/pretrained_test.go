package pretrained_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/specmatch/specmatch/backend/cpu"
	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/gnn/molecule"
	"github.com/specmatch/specmatch/gnn/molecule/feature"
	"github.com/specmatch/specmatch/specmatch/model"
	"github.com/specmatch/specmatch/specmatch/pretrained"
	"github.com/specmatch/specmatch/tensor"
)

// TestEncoders: the files are those that the card describes, and they embed molecules.
func TestEncoders(t *testing.T) {
	card, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	methods := map[string]string{"zinc": "descriptors", "minimol": "assays"}
	for _, encoder := range pretrained.Encoders {
		t.Run(encoder.Name, func(t *testing.T) { testEncoder(t, encoder, methods[encoder.Name], card) })
	}
}

func testEncoder(t *testing.T, encoder pretrained.Encoder, method string, card []byte) {
	m, err := encoder.Open(cpu.New(tensor.Float32))
	if err != nil {
		t.Fatal(err)
	}
	p := m.Card.Provenance
	if len(p.Data) == 0 || p.Method != method || p.Seed != 0 {
		t.Errorf("%+v", p)
	}
	for _, want := range []string{
		fmt.Sprintf("%x", sha256.Sum256(encoder.File)), p.Data[0].SHA256, fmt.Sprint(p.Epochs, " epochs"), fmt.Sprint("width ", m.Width()),
	} {
		if !bytes.Contains(card, []byte(want)) {
			t.Errorf("the card has no %q", want)
		}
	}
	if limit := 6 << 20; len(encoder.File) > limit {
		t.Errorf("%d bytes; want at most %d", len(encoder.File), limit)
	}
	graphs := parse(t, m, "CCO c1ccccc1 C1CCCCC1 CC(=O)O CC(=O)[O-] CC(=O)c1ccccc1 c1cccc(C(C)=O)c1 Cc1ccccc1")
	h, err := m.Embed(context.Background(), graphs)
	if err != nil || len(h) != len(graphs)*m.Width() {
		t.Fatalf("%d numbers, %v", len(h), err)
	}
	distance := func(a, b int) (d float64) {
		for k := range m.Width() {
			d += math.Pow(h[a*m.Width()+k]-h[b*m.Width()+k], 2)
		}
		return math.Sqrt(d)
	}
	// An acid is not its anion, and one molecule is one however it is written, but for rounding.
	if distance(3, 4) < 0.1 || distance(5, 6) > 1e-4 {
		t.Errorf("acetic acid is %v from acetate, two spellings of a molecule are %v apart", distance(3, 4), distance(5, 6))
	}
	if near, far := distance(1, 7), distance(0, 1); !(near < far) {
		t.Errorf("benzene is %v from toluene, %v from ethanol", near, far)
	}
}

// parse returns molecules as the model wants them.
func parse(t *testing.T, m *model.Trained, smiles string) (graphs []*graph.Graph) {
	t.Helper()
	categories, err := feature.ByName(m.Card.Encoder.Atoms)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range strings.Fields(smiles) {
		mol, err := molecule.Parse(s)
		if err != nil {
			t.Fatal(err)
		}
		g, err := mol.GraphOf(categories)
		if err != nil {
			t.Fatal(err)
		}
		graphs = append(graphs, g)
	}
	return graphs
}

// TestReadout: the file has the readout that it was trained by; the sums of the last layer are among
// its numbers, but for rounding.
func TestReadout(t *testing.T) {
	be := cpu.New(tensor.Float32)
	m, err := pretrained.Open(be)
	if err != nil {
		t.Fatal(err)
	}
	if a := m.Card.Encoder; a.Readout != gnn.ReadoutAll || a.Atoms != "rich" {
		t.Errorf("%+v", a)
	}
	last, err := m.WithReadout("last:sum")
	if err != nil {
		t.Fatal(err)
	}
	embed := func(m *model.Trained) []float64 {
		h, err := m.Embed(t.Context(), parse(t, m, "CC(=O)Oc1ccccc1C(=O)O"))
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	all, sums := embed(m), embed(last)
	for i, x := range all[4*3*128:][:128] {
		if len(sums) != 128 || math.Abs(sums[i]-x) > 1e-5*(1+math.Abs(x)) {
			t.Fatalf("sum %d of %d of the last layer is %v, want %v", i, len(sums), sums[i], x)
		}
	}
	if _, err := m.WithReadout("6:sum"); err == nil || m.Width() != 1920 {
		t.Errorf("%v, width %d", err, m.Width())
	}
}
