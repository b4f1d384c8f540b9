package gnn_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/autodiff/nn"
	"github.com/specmatch/specmatch/backend/cpu"
	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/gnn/molecule"
	"github.com/specmatch/specmatch/tensor"
)

// smiles has environments that occur in several molecules, rings, isomers, charges and an atom
// without bonds.
var smiles = []string{
	"CCO", "CCCO", "CC(=O)O", "c1ccccc1", "c1ccccc1C", "Cc1ccccc1", "C[C@H](N)C(=O)O", "C[C@@H](N)C(=O)O", "F/C=C/F", "F/C=C\\F",
	"C1CC1", "C1CCC1", "[Na+].[Cl-]", "N", "CC(C)(C)c1ccc(O)cc1", "O=C1c2ccccc2C(=O)N1C1CCC(=O)NC1=O", "CCCCCCCCCCCCCCCC", "c1ccc2ccccc2c1",
}

func parsed(t testing.TB, of []string) (gs []*graph.Graph) {
	t.Helper()
	for _, s := range of {
		m, err := new(molecule.Parser).Parse(s)
		if err != nil {
			t.Fatal(err)
		}
		g, err := m.Graph()
		if err != nil {
			t.Fatal(err)
		}
		gs = append(gs, g)
	}
	return gs
}

// TestEnvironments: vectors by environment are those of Forward but for rounding, for every
// readout; and to the last bit they depend neither on what else is embedded, nor on its order,
// nor on what is remembered or forgotten.
func TestEnvironments(t *testing.T) {
	be := cpu.New(tensor.Float32)
	defer be.Close()
	smiles := append(slices.Clip(smiles), strings.Repeat("CCO", 280)) // more atoms than a block of the engine
	graphs := parsed(t, smiles)
	for _, c := range []gnn.ChemGINConfig{
		{Hidden: 7, Layers: 1}, {Hidden: 16, Layers: 5, Sum: true}, {Hidden: 5, Layers: 3, Readout: gnn.ReadoutAll}, {Hidden: 8, Layers: 4, Readout: "2,4:max,sum"},
	} {
		e := gnn.NewChemGIN(be, c, rand.New(rand.NewPCG(1, 2)))
		stir(be, e)
		w := e.Width()
		want := make([]float64, 0, len(graphs)*w)
		tape := autodiff.NewInference(be)
		for _, g := range graphs {
			want = append(want, e.Forward(gnn.NewBatch(tape, graph.Collate(g)), nn.Eval).Data()...)
			tape.Reset()
		}
		got, err := gnn.Embed(t.Context(), be, e, graphs, nil)
		if err != nil {
			t.Fatal(err)
		}
		for i := range want {
			if !(math.Abs(got[i]-want[i]) <= 1e-5*(1+math.Abs(want[i]))+2e-7*float64(graphs[i/w].Nodes())) {
				t.Fatalf("%+v: entry %d of %s is %v, want %v", c, i%w, smiles[i/w], got[i], want[i])
			}
		}
		several := cpu.New(tensor.Float32, cpu.Workers(3))
		same := gnn.NewChemGIN(several, c, rand.New(rand.NewPCG(1, 2)))
		stir(several, same)
		if h, err := gnn.Embed(t.Context(), several, same, graphs, nil); err != nil || !slices.Equal(h, got) {
			t.Fatalf("%+v: three workers compute other bits, or an error: %v", c, err)
		}
		several.Close()
		single := make([]float32, len(got))
		if err := gnn.NewEnvironments(e, 0).Embed32(t.Context(), be, single, graphs, nil); err != nil {
			t.Fatal(err)
		}
		for i, v := range single {
			if float64(v) != got[i] {
				t.Fatalf("%+v: entry %d is %v in float32, want %v", c, i, v, got[i])
			}
		}
		for i, g := range graphs { // a first batch of one atom, among others
			m := gnn.NewEnvironments(e, 0)
			if h, err := m.Embed(t.Context(), be, []*graph.Graph{g}, nil); err != nil || !slices.Equal(h, got[i*w:(i+1)*w]) {
				t.Fatalf("%+v: the vector of %s by itself has other bits, or an error: %v", c, smiles[i], err)
			}
			m.Close(be)
		}
		for name, bytes := range map[string]int{"nothing is remembered": 0, "a little": 20_000, "all": 1 << 30} {
			m, rng := gnn.NewEnvironments(e, bytes), rand.New(rand.NewPCG(3, 4))
			for range 20 {
				order := rng.Perm(len(graphs))[:1+rng.IntN(len(graphs))]
				var part []*graph.Graph
				for _, k := range order {
					part = append(part, graphs[k])
				}
				h, err := m.Embed(t.Context(), be, part, nil)
				if err != nil {
					t.Fatal(err)
				}
				for i, k := range order {
					if !slices.Equal(h[i*w:(i+1)*w], got[k*w:(k+1)*w]) {
						t.Fatalf("%+v, %s: the vector of %s depends on its company %v", c, name, smiles[k], order)
					}
				}
			}
		}
	}
}

// TestShare: goroutines that share a cache compute the bits that each computes alone, whatever they
// find, wait for or replace, also with more atoms than the cache has room for.
func TestShare(t *testing.T) {
	const workers = 4
	large := strings.Repeat("CCO", 500)
	graphs := parsed(t, append(slices.Clip(smiles), strings.Repeat("CCN", 90), large))
	be := cpu.New(tensor.Float32)
	defer be.Close()
	e := gnn.NewChemGIN(be, gnn.ChemGINConfig{Hidden: 16, Layers: 4, Readout: gnn.ReadoutAll}, rand.New(rand.NewPCG(1, 2)))
	stir(be, e)
	w := e.Width()
	alone, err := gnn.Embed(t.Context(), be, e, graphs, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, bytes := range map[string]int{"nothing is remembered": 0, "a little": 200_000, "all": 1 << 26} {
		m := gnn.NewEnvironments(e, bytes)
		var group sync.WaitGroup
		for worker := range workers {
			view := m
			engine := be
			if worker > 0 {
				view = m.Share()
				engine = cpu.New(tensor.Float32)
				defer engine.Close()
			}
			rng := rand.New(rand.NewPCG(5, uint64(worker)))
			group.Go(func() {
				for range 30 {
					order := rng.Perm(len(graphs))[:1+rng.IntN(len(graphs))]
					var part []*graph.Graph
					for _, k := range order {
						part = append(part, graphs[k])
					}
					h, err := view.Embed(t.Context(), engine, part, nil)
					if err != nil {
						t.Error(err)
						return
					}
					for i, k := range order {
						if !slices.Equal(h[i*w:(i+1)*w], alone[k*w:(k+1)*w]) {
							t.Errorf("%s: worker %d: vector %d depends on the others", name, worker, k)
							return
						}
					}
				}
			})
		}
		group.Wait()
		m.Close(be)
	}
}

// TestEmbed32: on an engine without a cache, vectors in float32 are those of Embed, rounded.
func TestEmbed32(t *testing.T) {
	be := cpu.New(tensor.Float64)
	defer be.Close()
	graphs := parsed(t, smiles)
	e := gnn.NewChemGIN(be, gnn.ChemGINConfig{Hidden: 7, Layers: 2}, rand.New(rand.NewPCG(1, 2)))
	want, err := gnn.Embed(t.Context(), be, e, graphs, nil)
	if err != nil {
		t.Fatal(err)
	}
	got := make([]float32, len(want))
	if err := gnn.NewEnvironments(e, 0).Embed32(t.Context(), be, got, graphs, nil); err != nil {
		t.Fatal(err)
	}
	for i, v := range got {
		if v != float32(want[i]) {
			t.Fatalf("entry %d is %v, want %v", i, v, float32(want[i]))
		}
	}
}
