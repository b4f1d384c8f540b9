package pretrained_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/specmatch/specmatch/backend/cpu"
	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/gnn/molecule"
	"github.com/specmatch/specmatch/specmatch"
	"github.com/specmatch/specmatch/specmatch/pretrained"
	"github.com/specmatch/specmatch/tensor"
)

// TestModel: the file is the one that the card describes, and it embeds molecules.
func TestModel(t *testing.T) {
	card, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	m, err := pretrained.Open(cpu.New(tensor.Float32))
	if err != nil {
		t.Fatal(err)
	}
	p := m.Card.Provenance
	if len(p.Data) != 1 || p.Method != "attrmasking" || p.Seed != 0 {
		t.Errorf("%+v", p)
	}
	for _, want := range []string{
		fmt.Sprintf("%x", sha256.Sum256(pretrained.Model)), p.Data[0].SHA256, fmt.Sprint(p.Epochs, " epochs"), fmt.Sprint("width ", m.Width()),
	} {
		if !bytes.Contains(card, []byte(want)) {
			t.Errorf("the card has no %q", want)
		}
	}
	if limit := 8 << 20; len(pretrained.Model) > limit {
		t.Errorf("%d bytes; want at most %d", len(pretrained.Model), limit)
	}
	var graphs []*graph.Graph
	for _, smiles := range strings.Fields("CCO c1ccccc1 C1CCCCC1") {
		mol, err := molecule.Parse(smiles)
		if err != nil {
			t.Fatal(err)
		}
		g, err := mol.Graph()
		if err != nil {
			t.Fatal(err)
		}
		graphs = append(graphs, g)
	}
	h, err := m.Embed(context.Background(), graphs)
	if err != nil || len(h) != 3*m.Width() {
		t.Fatalf("%d numbers, %v", len(h), err)
	}
	distance := func(a, b int) (d float64) {
		for k := range m.Width() {
			d += math.Pow(h[a*m.Width()+k]-h[b*m.Width()+k], 2)
		}
		return math.Sqrt(d)
	}
	// What attributes can be told by: an aromatic ring is no saturated one.
	if near, far := distance(0, 2), distance(0, 1); !(near < far) {
		t.Errorf("ethanol is %v from cyclohexane, %v from benzene", near, far)
	}
}

// TestReadout: the file, which names no readout, is read as it was written; the sums of the last
// layer are the vectors that the card has figures of, bit for bit.
func TestReadout(t *testing.T) {
	be := cpu.New(tensor.Float32)
	file, err := specmatch.Read(bytes.NewReader(pretrained.Model), be)
	if err != nil {
		t.Fatal(err)
	}
	if a := file.Card.Encoder; a.Readout != "" || a.Sum || a.Atoms != "" || file.Width() != 128 {
		t.Errorf("%+v", a)
	}
	m, err := pretrained.Open(be)
	if err != nil {
		t.Fatal(err)
	}
	last, err := m.WithReadout("last:sum")
	if err != nil {
		t.Fatal(err)
	}
	mol, err := molecule.Parse("CC(=O)Oc1ccccc1C(=O)O")
	if err != nil {
		t.Fatal(err)
	}
	g, err := mol.Graph()
	if err != nil {
		t.Fatal(err)
	}
	embed := func(m *specmatch.Trained) []float64 {
		h, err := m.Embed(t.Context(), []*graph.Graph{g})
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	all, sums := embed(m), embed(last)
	file.Encoder.(*gnn.ChemGIN).Config.Sum = true
	if !slices.Equal(sums, embed(file)) || !slices.Equal(sums, all[4*3*128:4*3*128+128]) {
		t.Error("the sums of the last layer differ")
	}
	if _, err := m.WithReadout("6:sum"); err == nil || m.Width() != 1920 {
		t.Errorf("%v, width %d", err, m.Width())
	}
}
