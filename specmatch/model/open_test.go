package model_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/specmatch/specmatch/autodiff/nn"
	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/backend/cpu"
	"github.com/specmatch/specmatch/backend/ref"
	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/gnn/augment"
	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/gnn/molecule/feature"
	"github.com/specmatch/specmatch/specmatch"
	"github.com/specmatch/specmatch/specmatch/model"
	"github.com/specmatch/specmatch/tensor"
)

// kinds are one architecture of every kind.
var kinds = []gnn.Architecture{
	{Kind: gnn.KindGIN, In: 5, Hidden: 6, Layers: 3},
	{Kind: gnn.KindResGCN, In: 5 + 6, Hidden: 6, Layers: 3, Residual: true},
	{Kind: gnn.KindChemGIN, Hidden: 6, Layers: 2, Dropout: 0.5},
	{Kind: gnn.KindBioGIN, Hidden: 6, Layers: 2, Center: true},
	{Kind: gnn.KindChemGIN, Hidden: 6, Layers: 2, Sum: true},
}

// trainedModel returns a model of the architecture with graphs that it can read. No
// two of its values are equal, so that none can take the place of another.
func trainedModel(t testing.TB, be backend.Backend, a gnn.Architecture, head *model.Head) (*model.Trained, []*graph.Graph) {
	t.Helper()
	rng := rand.New(rand.NewPCG(3, 0))
	e, err := a.New(be, rng)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range e.Parameters() {
		v := make([]float64, p.Value.Len())
		be.Download(v, p.Value)
		for i := range v {
			v[i] += 0.1 * rng.Float64()
		}
		be.Upload(p.Value, v)
	}
	if g, ok := e.(*gnn.GIN); ok {
		g.Convs[1].Eps = 0.25
	}
	for _, b := range e.Buffers() {
		v := make([]float64, b.Value.Len())
		for i := range v {
			v[i] = 0.5 + rng.Float64()
		}
		be.Upload(b.Value, v)
	}
	m := &model.Trained{Encoder: e, Card: model.Card{
		Provenance: model.Provenance{
			Method: "graphcl", Options: map[string]string{"tau": "0.2"}, Seed: 7, Epochs: 20,
			Data: []model.DataSource{{Name: "motifs", SHA256: strings.Repeat("0f", 32)}},
		},
	}}
	set := dataset.Default()
	if a.Kind == gnn.KindResGCN {
		set = set.WithDegrees(4)
	}
	graphs := set.Graphs[:12]
	switch a.Kind {
	case gnn.KindGIN, gnn.KindResGCN:
		c, err := set.Columns()
		if err != nil {
			t.Fatal(err)
		}
		m.Card.Features = &c
	default:
		graphs = relabelled(a.Kind, graphs)
	}
	if head != nil {
		m.Card.Head = head
		m.Head = nn.NewLinear(be, "predictor", e.Width(), head.Outputs, nn.XavierUniform, rng)
		m.Head.ResetBias(be, rng)
	}
	return m, graphs
}

// relabelled returns the graphs with nodes and edges as the encoder of molecules or
// of proteins wants them.
func relabelled(kind string, graphs []*graph.Graph) []*graph.Graph {
	var out []*graph.Graph
	for _, g := range graphs {
		h := *g
		width, labels := int32(feature.AtomTypes*feature.ChiralityTags), int32(feature.BondTypes*feature.BondDirections)
		if kind == gnn.KindBioGIN {
			width, labels = gnn.NodeFlags, 1<<gnn.EdgeBits
		}
		h.X = graph.Features{Width: int(width)}
		for i := range g.Nodes() {
			h.X.Category = append(h.X.Category, (7*g.X.Category[i]+int32(i))%width)
			for _, j := range g.Neighbors(i) {
				h.EdgeLabel = append(h.EdgeLabel, int32(i+int(j))%labels)
			}
		}
		out = append(out, &h)
	}
	return out
}

func embeddings(t testing.TB, m *model.Trained, graphs []*graph.Graph) []float64 {
	t.Helper()
	h, err := m.Embed(context.Background(), graphs)
	if err != nil {
		t.Fatal(err)
	}
	if len(h) != len(graphs)*m.Width() {
		t.Fatalf("%d numbers for %d graphs of width %d", len(h), len(graphs), m.Width())
	}
	return h
}

func saveModel(t testing.TB, m *model.Trained) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "model.safetensors")
	if err := m.Save(path); err != nil {
		t.Fatal(err)
	}
	return path
}

var heads = []*model.Head{
	nil,
	{Kind: model.Classes, Outputs: 3, ClassValues: []string{"-1", "1", "4"}},
	{Kind: model.Binary, Outputs: 2, Tasks: []string{"toxic", "soluble"}},
	{Kind: model.Regression, Outputs: 1, Tasks: []string{"logP"}, Mean: []float64{2.5}, Std: []float64{0.1}},
}

// TestOpen: a file gives back the model: its card, its embeddings to the last bit,
// its head.
func TestOpen(t *testing.T) {
	engines := map[string]func() backend.Backend{
		"ref":     func() backend.Backend { return ref.New() },
		"float32": func() backend.Backend { return cpu.New(tensor.Float32) },
	}
	for name, engine := range engines {
		for k, a := range kinds {
			t.Run(name+"/"+a.Kind, func(t *testing.T) {
				m, graphs := trainedModel(t, engine(), a, heads[k%len(heads)])
				want := embeddings(t, m, graphs)
				path := saveModel(t, m)
				got, err := model.Open(path, engine())
				if err != nil {
					t.Fatal(err)
				}
				if !slices.Equal(embeddings(t, got, graphs), want) {
					t.Error("embeddings differ")
				}
				if m.Card.Encoder != a {
					t.Errorf("the card's encoder is %+v, want %+v", m.Card.Encoder, a)
				}
				card, _ := json.Marshal(got.Card)
				wantCard, _ := json.Marshal(m.Card)
				if !bytes.Equal(card, wantCard) {
					t.Errorf("card %s, want %s", card, wantCard)
				}
				if !strings.HasPrefix(got.Card.Provenance.Software, "github.com/specmatch/specmatch") {
					t.Errorf("software %q", got.Card.Provenance.Software)
				}
				if (got.Head == nil) != (m.Head == nil) {
					t.Fatalf("head %v, want %v", got.Head, m.Head)
				}
				if _, err := got.Predict(t.Context(), graphs); (err == nil) != (m.Head != nil) {
					t.Errorf("predictions of a model with head %v: %v", m.Head, err)
				}
				if m.Head != nil {
					y, err := got.Predict(t.Context(), graphs)
					applied, _ := m.Apply(want, graphs)
					if err != nil || !slices.Equal(y, applied) || len(y) != len(graphs)*m.Card.Head.Outputs {
						t.Errorf("predictions %v, %v", y, err)
					}
					for i, p := range m.Head.Parameters() {
						v, w := make([]float64, p.Value.Len()), make([]float64, p.Value.Len())
						p.Backend().Download(v, p.Value)
						q := got.Head.Parameters()[i]
						q.Backend().Download(w, q.Value)
						if !slices.Equal(v, w) {
							t.Errorf("%s: %v, want %v", p.Name, w, v)
						}
					}
				}
				again := saveModel(t, got)
				x, err := os.ReadFile(path)
				y, err2 := os.ReadFile(again)
				if err != nil || err2 != nil || !bytes.Equal(x, y) {
					t.Errorf("saved again, the bytes differ (%v, %v)", err, err2)
				}
			})
		}
	}
}

// TestSelfLoops: a model that was trained by GraphCL's code embeds graphs with its
// self-loops, and its file says so.
func TestSelfLoops(t *testing.T) {
	be := ref.New()
	m, graphs := trainedModel(t, be, kinds[0], nil)
	bare := embeddings(t, m, graphs)
	m.Card.SelfLoops = true
	looped := embeddings(t, m, graphs)
	if slices.Equal(bare, looped) {
		t.Fatal("self-loops change nothing")
	}
	ws := new(augment.Workspace)
	want, err := gnn.Embed(context.Background(), be, m.Encoder, graphs, func(b *graph.Batch, g *graph.Graph) {
		augment.Identity{SelfLoops: true}.Append(b, g, nil, ws)
	})
	if err != nil || !slices.Equal(looped, want) {
		t.Errorf("not the embeddings of the graphs with self-loops (%v)", err)
	}
	got, err := model.Open(saveModel(t, m), be)
	if err != nil || !slices.Equal(embeddings(t, got, graphs), looped) {
		t.Errorf("the file forgets the self-loops (%v)", err)
	}
}

// TestEmbedRefuses: a graph that a model cannot read is an error with its index.
func TestEmbedRefuses(t *testing.T) {
	be := ref.New()
	models := map[string]*model.Trained{}
	good := map[string][]*graph.Graph{}
	for _, a := range kinds {
		models[a.Kind], good[a.Kind] = trainedModel(t, be, a, nil)
	}
	change := func(kind string, f func(g *graph.Graph)) *graph.Graph {
		g := *good[kind][1]
		f(&g)
		return &g
	}
	unseen := &graph.Graph{Ptr: []int32{0, 0, 0}, X: graph.Features{Width: 5, Category: []int32{0, 2}}}
	models["gin"].Card.Features.Labels[0].Unseen = []int{2}
	models["resgcn"].Card.Features.Labels[0].Unseen = []int{2}
	dense := change("resgcn", func(g *graph.Graph) {
		g.X.Dense = slices.Clone(g.X.Dense)
		for i := range g.Nodes() {
			g.X.Dense[i*g.X.Width+2] = 0
		}
		g.X.Dense[3*g.X.Width+2] = 1
	})
	for _, c := range []struct {
		kind  string
		graph *graph.Graph
		want  string
	}{
		{"gin", nil, "nil graph"},
		{"gin", &graph.Graph{}, "Ptr is empty"},
		{"gin", good["resgcn"][0], "node features of width 11; encoder gin wants 5"},
		{"gin", &graph.Graph{Ptr: []int32{0, 1, 2}, Adj: []int32{7, 0}, X: graph.Features{Width: 5, Category: []int32{0, 1}}}, "edge 7→0: source outside 0..1"},
		{"gin", &graph.Graph{Ptr: []int32{0, 1, 1}, Adj: []int32{1}, X: graph.Features{Width: 5, Category: []int32{0, 1}}}, "lacks its reverse"},
		{"gin", &graph.Graph{Ptr: []int32{0, 0}, X: graph.Features{Width: 5, Category: []int32{9}}}, "category 9"},
		{"gin", unseen, "node 1 has the label 2, which the model has not seen; it has seen 0 to 4 except 1"},
		{"resgcn", dense, "node 3 has the label 2, which"},
		{"resgcn", good["gin"][0], "width 5; encoder resgcn wants 11"},
		{"chemgin", good["gin"][0], "width 5; encoder chemgin wants 360"},
		{"chemgin", change("chemgin", func(g *graph.Graph) { g.X.Dense, g.X.Category = g.X.Materialize(g.Nodes()), nil }), "wants categories"},
		{"chemgin", change("chemgin", func(g *graph.Graph) { g.EdgeLabel = nil }), "edges have no labels"},
		{"chemgin", change("chemgin", func(g *graph.Graph) {
			g.EdgeLabel = slices.Clone(g.EdgeLabel)
			g.EdgeLabel[3] = 18
		}), "edge label 18; encoder chemgin wants 0 to 17"},
		{"biogin", change("biogin", func(g *graph.Graph) {
			g.EdgeLabel = slices.Clone(g.EdgeLabel)
			g.EdgeLabel[0] = -1
		}), "edge label -1; encoder biogin wants 0 to 511"},
	} {
		m := models[c.kind]
		first := good[c.kind][0]
		if f := m.Card.Features; f != nil { // whose labels are all seen
			first = &graph.Graph{Ptr: []int32{0, 0}, X: graph.Features{Width: f.Width(), Category: []int32{0}}}
		}
		_, err := m.Embed(context.Background(), []*graph.Graph{first, c.graph})
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "graph 1: ") {
			t.Errorf("%s: %v, want graph 1 and %q in it", c.kind, err, c.want)
		}
	}
	models["resgcn"].Card.Features.Labels[0].Unseen = nil
	if h, err := models["resgcn"].Embed(context.Background(), nil); err != nil || len(h) != 0 {
		t.Errorf("no graphs: %v, %v", h, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := models["resgcn"].Embed(ctx, good["resgcn"]); err != context.Canceled {
		t.Errorf("cancelled: %v", err)
	}
	// Of labels that the encoder does not read, some graphs may have some.
	mixed := slices.Clone(good["resgcn"])
	labelled := *mixed[0]
	labelled.EdgeLabel = make([]int32, labelled.Entries())
	mixed[0] = &labelled
	if !slices.Equal(embeddings(t, models["resgcn"], mixed), embeddings(t, models["resgcn"], good["resgcn"])) {
		t.Error("edge labels change the embeddings of an encoder that reads none")
	}
}

func TestSaveModelRefuses(t *testing.T) {
	be := ref.New()
	for want, change := range map[string]func(m *model.Trained){
		"the card does not say how the node features of encoder gin are made": func(m *model.Trained) { m.Card.Features = nil },
		"have width 4, those of the encoder 5": func(m *model.Trained) {
			m.Card.Features = &graph.Columns{Attributes: 4}
		},
		"1 of degrees":                 func(m *model.Trained) { m.Card.Features.DegreeColumns = 1 },
		"the model has a head (true)":  func(m *model.Trained) { m.Card.Head = nil },
		"the model has a head (false)": func(m *model.Trained) { m.Head = nil },
		`head of kind "ranking"`:       func(m *model.Trained) { m.Card.Head.Kind = "ranking" },
		"the head is [18×1]; want 18×2": func(m *model.Trained) {
			m.Card.Head = &model.Head{Kind: model.Binary, Outputs: 2}
		},
		"1 means and 0 standard":               func(m *model.Trained) { m.Card.Head.Std = nil },
		"mean NaN":                             func(m *model.Trained) { m.Card.Head.Mean = []float64{math.NaN()} },
		"standard deviation 0":                 func(m *model.Trained) { m.Card.Head.Std = []float64{0} },
		"a head of kind binary with 0 outputs": func(m *model.Trained) { m.Card.Head = &model.Head{Kind: model.Binary} },
		`named "other.weight"`: func(m *model.Trained) {
			m.Head = nn.NewLinear(be, "other", 18, 1, nn.XavierUniform, rand.New(rand.NewPCG(1, 0)))
		},
		"type model_test.strange": func(m *model.Trained) { m.Encoder = strange{m.Encoder} },
	} {
		head := *heads[3]
		m, _ := trainedModel(t, be, kinds[0], &head)
		change(m)
		path := filepath.Join(t.TempDir(), "model.safetensors")
		if err := m.Save(path); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%v, want %q in it", err, want)
		}
		if _, err := os.Stat(path); err == nil {
			t.Errorf("%s: there is a file", want)
		}
	}
	m, _ := trainedModel(t, be, kinds[2], nil)
	m.Card.Features = new(graph.Columns)
	if err := m.Save(filepath.Join(t.TempDir(), "m")); err == nil || !strings.Contains(err.Error(), "encoder chemgin defines its own") {
		t.Error(err)
	}
}

// strange is an encoder of a type that no file can name.
type strange struct{ gnn.Encoder }

// TestLoadEncoder: an encoder that was built by other means takes the weights of
// model files, with a head or without, and of files of earlier versions.
func TestLoadEncoder(t *testing.T) {
	be := ref.New()
	m, graphs := trainedModel(t, be, kinds[2], heads[2])
	want := embeddings(t, m, graphs)
	other := kinds[2]
	other.Dropout = 0.25
	load := func(path string) error {
		e, err := other.New(be, rand.New(rand.NewPCG(9, 0)))
		if err != nil {
			t.Fatal(err)
		}
		if err := model.LoadEncoder(path, e); err != nil {
			return err
		}
		if got := embeddings(t, &model.Trained{Encoder: e}, graphs); !slices.Equal(got, want) {
			t.Errorf("%s: other embeddings", path)
		}
		return nil
	}
	path := saveModel(t, m)
	if err := load(path); err != nil {
		t.Error(err)
	}
	m.Head, m.Card.Head = nil, nil
	if err := load(saveModel(t, m)); err != nil {
		t.Error(err)
	}
	// Pre-training left the encoder alone, or a model with its projection head, under
	// the names of a program.
	dir := t.TempDir()
	if err := nn.SaveFile(filepath.Join(dir, "encoder"), m.Encoder, nil); err != nil {
		t.Fatal(err)
	}
	if err := nn.SaveFile(filepath.Join(dir, "model"), specmatch.NewModel(be, m.Encoder, rand.New(rand.NewPCG(1, 0))), nil); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"encoder", "model"} {
		if err := load(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
		if _, err := model.Open(filepath.Join(dir, name), be); err == nil || !strings.Contains(err.Error(), "use LoadEncoder") {
			t.Errorf("opened weights of nothing known: %v", err)
		}
	}
	// What PyTorch writes of a module has counters, and says nothing of itself.
	header, _, numbers := parts(t, saveModel(t, m))
	header["batch_norms.0.num_batches_tracked"] = fmt.Appendf(nil, `{"dtype":"I64","shape":[],"data_offsets":[%d,%d]}`, len(numbers), len(numbers)+8)
	state := assemble(t, header, map[string]string{}, append(numbers, 1, 0, 0, 0, 0, 0, 0, 0))
	if err := os.WriteFile(filepath.Join(dir, "state_dict"), state, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := load(filepath.Join(dir, "state_dict")); err != nil {
		t.Error(err)
	}
	// Equal shapes, and another function.
	residual, _ := trainedModel(t, be, kinds[1], nil)
	plain := kinds[1]
	plain.Residual = false
	e, err := plain.New(be, rand.New(rand.NewPCG(1, 0)))
	if err != nil {
		t.Fatal(err)
	}
	if err := model.LoadEncoder(saveModel(t, residual), e); err == nil || !strings.Contains(err.Error(), "Residual:true") {
		t.Errorf("a residual encoder loaded as one that is not: %v", err)
	}
}

// files returns a model's header and data, for hostile changes.
func parts(t testing.TB, path string) (header map[string]json.RawMessage, meta map[string]string, data []byte) {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	n := int(raw[0]) | int(raw[1])<<8 | int(raw[2])<<16
	if err := json.Unmarshal(raw[8:8+n], &header); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(header["__metadata__"], &meta); err != nil {
		t.Fatal(err)
	}
	return header, meta, raw[8+n:]
}

// assemble makes a file of parts, as another program would: without version and
// checksum.
func assemble(t testing.TB, header map[string]json.RawMessage, meta map[string]string, data []byte) []byte {
	t.Helper()
	delete(meta, "specmatch_format")
	delete(meta, "specmatch_checksum")
	var err error
	if header["__metadata__"], err = json.Marshal(meta); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(header)
	if err != nil {
		t.Fatal(err)
	}
	n := len(text)
	return append(append([]byte{byte(n), byte(n >> 8), byte(n >> 16), 0, 0, 0, 0, 0}, text...), data...)
}

// TestOpenHostile: what a file says of itself is checked before it is believed.
func TestOpenHostile(t *testing.T) {
	be := ref.New()
	m, graphs := trainedModel(t, be, kinds[0], heads[1])
	path := saveModel(t, m)
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	open := func(data []byte) error {
		p := filepath.Join(dir, "hostile.safetensors")
		if err := os.WriteFile(p, data, 0o666); err != nil {
			t.Fatal(err)
		}
		_, err := model.Open(p, be)
		if err != nil && !strings.Contains(err.Error(), p) {
			t.Errorf("%v does not name the file", err)
		}
		return err
	}
	type file struct {
		header map[string]json.RawMessage
		meta   map[string]string
		data   []byte
	}
	card := func(old, new string) func(f *file) {
		return func(f *file) {
			text := strings.Replace(f.meta["specmatch_model"], old, new, 1)
			if text == f.meta["specmatch_model"] {
				t.Fatalf("no %q in %s", old, text)
			}
			f.meta["specmatch_model"] = text
		}
	}
	tensor := func(name, text string) func(f *file) {
		return func(f *file) { f.header[name] = json.RawMessage(text) }
	}
	for _, c := range []struct {
		name   string
		change func(f *file)
		want   string // "" if the file is good
	}{
		{"no change", func(f *file) {}, ""},
		{"weights that are no numbers", func(f *file) {
			for i := range f.data[:8] {
				f.data[i] = 0xff
			}
		}, "tensor bns.0.bias: value 0 of 6 is NaN"},
		{"no card", func(f *file) { delete(f.meta, "specmatch_model") }, "nothing says of what model"},
		{"a card that is no JSON", func(f *file) { f.meta["specmatch_model"] = "{" }, "specmatch_model: unexpected EOF"},
		{"a card of a later version", card(`"provenance"`, `"normalisation":"l2","provenance"`), `unknown field "normalisation"`},
		{"an architecture of a later version", card(`"gin"`, `"gat"`), `encoder "gat" is unknown`},
		{"more layers", card(`"layers":3`, `"layers":4`), "missing: bns.3.bias"},
		{"fewer layers", card(`"layers":3`, `"layers":2`), "unexpected: bns.2.bias"},
		{"another width", card(`"hidden":6`, `"hidden":7`), "bns.0.bias is [6], want [7]"},
		{"a width beyond memory", card(`"hidden":6`, `"hidden":1048576`), "its encoder"},
		{"a width beyond integers", card(`"hidden":6`, `"hidden":99999999999999999999`), "cannot unmarshal number"},
		{"layers beyond memory", card(`"layers":3`, `"layers":1048576`), "its encoder"},
		{"a width of features beyond memory", card(`"in":5`, `"in":1048576`), "the node features described have width 5"},
		{"features beyond memory", func(f *file) {
			card(`"in":5`, `"in":1048576`)(f)
			card(`"width":5`, `"width":1048576`)(f)
		}, "its encoder"},
		{"no features", card(`"features":`, `"features":null,"head":null,"features":null,"xfeatures":`), `unknown field "xfeatures"`},
		{"more outputs", card(`"outputs":3,"class_values":["-1","1","4"]`, `"outputs":4`), "predictor.bias is [3], want [4]"},
		{"outputs beyond memory", card(`"outputs":3,"class_values":["-1","1","4"]`, `"outputs":1048576`), "its encoder"},
		{"classes more than outputs", card(`["-1","1","4"]`, `["-1","1","4","5"]`), "labels of 4 classes"},
		{"no outputs", card(`"outputs":3`, `"outputs":-3`), "-3 outputs"},
		{"no head", card(`"head":{"kind":"classes","outputs":3,"class_values":["-1","1","4"]},`, ``), "unexpected: predictor.bias, predictor.weight"},
		{"a missing tensor", func(f *file) { delete(f.header, "predictor.weight"); f.data = f.data[:len(f.data)-8*18*3] }, "missing: predictor.weight"},
		{"a renamed tensor", func(f *file) {
			f.header["bns.0.gamma"] = f.header["bns.0.weight"]
			delete(f.header, "bns.0.weight")
		}, "missing: bns.0.weight; unexpected: bns.0.gamma"},
		{"another shape", tensor("bns.0.bias", `{"dtype":"F64","shape":[2,3],"data_offsets":[0,48]}`), "bns.0.bias is [2×3], want [6]"},
		{"a shape that overflows", tensor("bns.0.bias", `{"dtype":"F64","shape":[4294967296,4294967296],"data_offsets":[0,48]}`), "bns.0.bias is [4294967296×4294967296], want [6]"},
		{"another type", tensor("bns.0.bias", `{"dtype":"I64","shape":[6],"data_offsets":[0,48]}`), `bns.0.bias has dtype "I64"`},
		{"halves", tensor("bns.0.bias", `{"dtype":"BF16","shape":[24],"data_offsets":[0,48]}`), "bns.0.bias is [24]"},
		{"a place beyond the file", tensor("zz", `{"dtype":"F64","shape":[1073741824],"data_offsets":[8088,8589942680]}`), "tensor before it ends"},
		{"short data", func(f *file) { f.data = f.data[:len(f.data)-1] }, "truncated"},
		{"long data", func(f *file) { f.data = append(f.data, 0) }, "bytes after the last tensor"},
	} {
		header, meta, data := parts(t, path)
		f := &file{header, meta, data}
		c.change(f)
		err := open(assemble(t, f.header, f.meta, f.data))
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q in it", c.name, err, c.want)
		}
	}
	for n := 0; n < len(good); n += 101 {
		if open(good[:n]) == nil {
			t.Errorf("%d of %d bytes are accepted", n, len(good))
		}
	}
	good[len(good)-5] ^= 1
	if err := open(good); err == nil || !strings.Contains(err.Error(), "checksum") {
		t.Errorf("a flipped bit: %v", err)
	}
	if h := embeddings(t, m, graphs); len(h) == 0 {
		t.Error("the model itself")
	}
}

// TestOpenAllocates: memory is taken in proportion to the file, whatever the card
// says.
func TestOpenAllocates(t *testing.T) {
	be := ref.New()
	m, _ := trainedModel(t, be, kinds[0], heads[2])
	header, meta, data := parts(t, saveModel(t, m))
	path := filepath.Join(t.TempDir(), "hostile.safetensors")
	meta["specmatch_model"] = strings.Replace(meta["specmatch_model"], `"outputs":2,"tasks":["toxic","soluble"]`, `"outputs":2000`, 1)
	for _, sizes := range []string{
		`"hidden":6,"layers":20`, `"hidden":1048576,"layers":1048576`, `"hidden":1,"layers":1048576`, `"hidden":60,"layers":1`, `"hidden":2000,"layers":3`, `"hidden":1,"layers":600`,
	} {
		meta["specmatch_model"] = strings.Replace(meta["specmatch_model"], `"hidden":6,"layers":3`, sizes, 1)
		file := assemble(t, header, meta, data)
		if err := os.WriteFile(path, file, 0o666); err != nil {
			t.Fatal(err)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if _, err := model.Open(path, be); err == nil {
			t.Errorf("%s: accepted", sizes)
		}
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; n > 64*uint64(len(file))+4<<20 {
			t.Errorf("%s: %d bytes allocated for a file of %d", sizes, n, len(file))
		}
		meta["specmatch_model"] = strings.Replace(meta["specmatch_model"], sizes, `"hidden":6,"layers":3`, 1)
	}
}

// FuzzOpen: no file makes Open panic, and a model that it opens embeds, saves and
// opens again.
func FuzzOpen(f *testing.F) {
	be := cpu.New(tensor.Float32)
	for k, a := range kinds {
		m, _ := trainedModel(f, be, a, heads[k%len(heads)])
		f.Add(unsigned(f, saveModel(f, m)))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(t.TempDir(), "fuzz.safetensors")
		if err := os.WriteFile(path, data, 0o666); err != nil {
			t.Fatal(err)
		}
		m, err := model.Open(path, be)
		if err != nil {
			return
		}
		g, err := graph.FromEdges(2, [][2]int{{0, 1}}, graph.Features{Width: max(m.Card.Encoder.In, 1), Category: []int32{0, 0}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := m.Embed(t.Context(), []*graph.Graph{g}); err != nil && m.Card.Encoder.In > 0 && len(m.Card.Features.Labels) == 0 {
			t.Error(err)
		}
		if err := m.Save(path); err != nil {
			t.Fatal(err)
		}
		if _, err := model.Open(path, be); err != nil {
			t.Error(err)
		}
	})
}

// unsigned returns a file without its checksum, which no mutation would pass.
func unsigned(t testing.TB, path string) []byte {
	header, meta, data := parts(t, path)
	return assemble(t, header, meta, data)
}
