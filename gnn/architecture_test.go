package gnn_test

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/specmatch/specmatch/autodiff/nn"
	"github.com/specmatch/specmatch/backend/ref"
	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/gnn/graph"
)

// TestArchitecture: an architecture builds an encoder that has it, of the size that
// it says, and survives JSON.
func TestArchitecture(t *testing.T) {
	for _, a := range []gnn.Architecture{
		{Kind: gnn.KindGIN, In: 7, Hidden: 4, Layers: 3}, {Kind: gnn.KindGIN, In: 1, Hidden: 3, Layers: 1, Eps: 1},
		{Kind: gnn.KindGIN, In: 7, Hidden: 4, Layers: 3, EdgeLabels: 5}, {Kind: gnn.KindGIN, In: 7, Hidden: 4, Layers: 1, Weights: true},
		{Kind: gnn.KindResGCN, In: 7, Hidden: 4, Layers: 3, Residual: true}, {Kind: gnn.KindResGCN, In: 2, Hidden: 5, Layers: 1},
		{Kind: gnn.KindChemGIN, Hidden: 4, Layers: 2, Dropout: 0.5}, {Kind: gnn.KindChemGIN, Hidden: 3, Layers: 1, Sum: true},
		{Kind: gnn.KindBioGIN, Hidden: 4, Layers: 2, Dropout: 0.5, Center: true}, {Kind: gnn.KindBioGIN, Hidden: 3, Layers: 1},
		{Kind: gnn.KindGIN, In: 7, Hidden: 4, Layers: 3, Readout: gnn.ReadoutAll}, {Kind: gnn.KindResGCN, In: 7, Hidden: 4, Layers: 3, Readout: "last:max"},
		{Kind: gnn.KindChemGIN, Hidden: 4, Layers: 3, Readout: "1,3:sum"}, {Kind: gnn.KindChemGIN, Hidden: 4, Layers: 2, Atoms: "rich"}, {Kind: gnn.KindBioGIN, Hidden: 4, Layers: 2, Readout: "all:mean,sum"},
	} {
		data, err := json.Marshal(a)
		if err != nil {
			t.Fatal(err)
		}
		var b gnn.Architecture
		if err := json.Unmarshal(data, &b); err != nil || a != b {
			t.Fatalf("%+v, by way of JSON %s %+v (%v)", a, data, b, err)
		}
		e, err := a.New(ref.New(), newRand(1))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := gnn.ArchitectureOf(e); err != nil || got != a {
			t.Errorf("%+v built %+v (%v)", a, got, err)
		}
		tensors, values := len(e.Parameters())+len(e.Buffers()), nn.NumParameters(e)
		for _, b := range e.Buffers() {
			values += b.Value.Len()
		}
		if a.Width() != e.Width() {
			t.Errorf("%+v: width %d, want %d", a, a.Width(), e.Width())
		}
		if n, v := a.Size(); n != tensors || v != values {
			t.Errorf("%+v: %d tensors of %d values; it has %d of %d", a, n, v, tensors, values)
		}
	}
}

// TestArchitectureRefuses: what cannot be built is an error, and sizes do not
// overflow up to where Check stops them.
func TestArchitectureRefuses(t *testing.T) {
	const most = 1 << 20
	for want, a := range map[string]gnn.Architecture{
		`encoder "" is unknown (have: gin, resgcn, chemgin, biogin)`:                 {In: 1, Hidden: 1, Layers: 1},
		`encoder "gat" is unknown`:                                                   {Kind: "gat", In: 1, Hidden: 1, Layers: 1},
		"0 layers of width 4":                                                        {Kind: gnn.KindGIN, In: 1, Hidden: 4},
		"1 layers of width 1048577":                                                  {Kind: gnn.KindGIN, In: 1, Hidden: most + 1, Layers: 1},
		"1048577 layers of width 1":                                                  {Kind: gnn.KindBioGIN, Hidden: 1, Layers: most + 1},
		"gin with node features of width 0":                                          {Kind: gnn.KindGIN, Hidden: 1, Layers: 1},
		"resgcn with node features of width 1048577":                                 {Kind: gnn.KindResGCN, In: most + 1, Hidden: 1, Layers: 1},
		"chemgin with node features of width 5":                                      {Kind: gnn.KindChemGIN, In: 5, Hidden: 1, Layers: 1},
		"gin has no residual layers":                                                 {Kind: gnn.KindGIN, In: 1, Hidden: 1, Layers: 1, Residual: true},
		"chemgin has no residual layers, no choice of a sum or no center":            {Kind: gnn.KindChemGIN, Hidden: 1, Layers: 1, Center: true},
		"gin has no residual layers, no choice of a sum":                             {Kind: gnn.KindGIN, In: 1, Hidden: 1, Layers: 1, Sum: true},
		"gin with dropout 0.5":                                                       {Kind: gnn.KindGIN, In: 1, Hidden: 1, Layers: 1, Dropout: .5},
		"chemgin with dropout 1":                                                     {Kind: gnn.KindChemGIN, Hidden: 1, Layers: 1, Dropout: 1},
		`with readout "last:sum", and with a sum`:                                    {Kind: gnn.KindChemGIN, Hidden: 1, Layers: 1, Sum: true, Readout: "last:sum"},
		`readout "3:sum": want layers (all, last, or ascending numbers from 1 to 2)`: {Kind: gnn.KindGIN, In: 1, Hidden: 1, Layers: 2, Readout: "3:sum"},
		`readout "2,1:sum"`:                                                          {Kind: gnn.KindGIN, In: 1, Hidden: 1, Layers: 2, Readout: "2,1:sum"},
		`readout "0:sum"`:                                                            {Kind: gnn.KindGIN, In: 1, Hidden: 1, Layers: 2, Readout: "0:sum"},
		`readout "all"`:                                                              {Kind: gnn.KindGIN, In: 1, Hidden: 1, Layers: 2, Readout: "all"},
		`readout "all:sum,sum"`:                                                      {Kind: gnn.KindGIN, In: 1, Hidden: 1, Layers: 2, Readout: "all:sum,sum"},
		`readout "last:median"`:                                                      {Kind: gnn.KindGIN, In: 1, Hidden: 1, Layers: 2, Readout: "last:median"},
		"resgcn with ε = 1":                                                          {Kind: gnn.KindResGCN, In: 1, Hidden: 1, Layers: 1, Eps: 1},
		"resgcn with 2 labels of edges":                                              {Kind: gnn.KindResGCN, In: 1, Hidden: 1, Layers: 1, EdgeLabels: 2},
		"gin with 2 labels of edges and weights true":                                {Kind: gnn.KindGIN, In: 1, Hidden: 1, Layers: 1, EdgeLabels: 2, Weights: true},
		`gin with categories "rich" of atoms`:                                        {Kind: gnn.KindGIN, In: 1, Hidden: 1, Layers: 1, Atoms: "rich"},
		`unknown set of atom features "poor" (have: hu, rich)`:                       {Kind: gnn.KindChemGIN, Hidden: 1, Layers: 1, Atoms: "poor"},
		"chemgin with dropout NaN":                                                   {Kind: gnn.KindChemGIN, Hidden: 1, Layers: 1, Dropout: math.NaN()},
	} {
		if _, err := a.New(ref.New(), newRand(1)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q in it", a, err, want)
		}
	}
	for _, kind := range []string{gnn.KindGIN, gnn.KindResGCN, gnn.KindChemGIN, gnn.KindBioGIN} {
		a := gnn.Architecture{Kind: kind, Hidden: most, Layers: most}
		if kind == gnn.KindGIN || kind == gnn.KindResGCN {
			a.In = most
		}
		if err := a.Check(); err != nil {
			t.Fatal(err)
		}
		if tensors, values := a.Size(); tensors < most || values < most*most {
			t.Errorf("%+v: %d tensors of %d values", a, tensors, values)
		}
	}
	empty := &graph.Graph{Ptr: []int32{0}, X: graph.Features{Width: gnn.NodeFlags, Category: []int32{}}, EdgeLabel: []int32{}}
	for center, want := range map[bool]string{false: "", true: "a graph without nodes"} {
		a := gnn.Architecture{Kind: gnn.KindBioGIN, Hidden: 1, Layers: 1, Center: center}
		if err := a.Accepts(empty); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("a graph without nodes, center %v: %v", center, err)
		}
	}
	if _, err := gnn.ArchitectureOf(other{}); err == nil || !strings.Contains(err.Error(), "gnn_test.other") {
		t.Errorf("an encoder of another package: %v", err)
	}
}

// other is an encoder that is none of the package's.
type other struct{ gnn.Encoder }

// TestNilBackend: no engine is an error, not a panic.
func TestNilBackend(t *testing.T) {
	a := gnn.Architecture{Kind: gnn.KindGIN, In: 2, Hidden: 4, Layers: 1}
	if _, err := a.New(nil, rand.New(rand.NewPCG(1, 1))); err == nil || !strings.Contains(err.Error(), "the backend is nil") {
		t.Error(err)
	}
}
