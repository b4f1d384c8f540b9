package play

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/autodiff/nn"
	"github.com/specmatch/specmatch/backend/cpu"
	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/gnn/augment"
	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/gnn/molecule"
	"github.com/specmatch/specmatch/gnn/molecule/depict"
	"github.com/specmatch/specmatch/gnn/random"
	"github.com/specmatch/specmatch/tensor"
)

var embedded = sync.OnceValue(dataset.Default)

// Motif names the classes of the embedded set.
var Motif = [...]string{"house", "butterfly", "K2,3"}

// Picture is a request for a [Drawing]: a graph of the embedded set, or a SMILES if it
// is not "", and an augmentation.
type Picture struct {
	Index  int     `json:"index"`
	SMILES string  `json:"smiles"`
	Policy string  `json:"policy"` // dropN, permE, maskN or subgraph
	Ratio  float64 `json:"ratio"`
	Seed   int     `json:"seed"`
}

// Drawing is a graph, a view of it, and what a layer does to each of its nodes.
type Drawing struct {
	Title  string   `json:"title"`
	Names  []string `json:"names"`  // of the labels
	Labels []int32  `json:"labels"` // of the nodes
	Edges  [][2]int `json:"edges"`  // each once
	// Of a molecule: its drawing, the places of its atoms there, and the colours of the names; "" is the page's.
	SVG     string       `json:"svg,omitempty"`
	Places  [][2]float64 `json:"places,omitempty"`
	Colours []string     `json:"colours,omitempty"`
	// The view: which nodes stay, whose features are noise, and its edges.
	Kept   []bool   `json:"kept"`
	Masked []bool   `json:"masked"`
	View   [][2]int `json:"view"`
	Layer  Layer    `json:"layer"`
}

// Layer is a GIN layer with initial weights on the graph: the sums [n×labels] of x_i and
// of its neighbours' x, and its values [n×8] after each half of the MLP.
type Layer struct {
	Sum    Numbers `json:"sum"`
	Hidden Numbers `json:"hidden"`
	Out    Numbers `json:"out"`
}

const layerWidth = 8

// Draw answers the request. An error of a SMILES is an [Error] at its column.
func (p Picture) Draw() (*Drawing, error) {
	d := &Drawing{}
	g, err := p.graph(d)
	if err != nil {
		return nil, err
	}
	d.Edges = edgesOf(g.Ptr, g.Adj)

	// The label of a node is its number here, so that the view says which it kept.
	n := g.Nodes()
	numbered := *g
	numbered.EdgeLabel = nil
	numbered.X = graph.Features{Width: n, Category: make([]int32, n)}
	for i := range numbered.X.Category {
		numbered.X.Category[i] = int32(i)
	}
	if !(p.Ratio >= 0 && p.Ratio <= 0.9) {
		return nil, fmt.Errorf("ratio %v; want 0 to 0.9", p.Ratio)
	}
	// 0 would be the usual ratio
	view, err := augment.ParsePolicy(p.Policy, augment.ImplIntended, max(p.Ratio, 1e-9))
	if err != nil {
		return nil, err
	}
	var b graph.Batch
	b.Reset(n)
	view.Append(&b, &numbered, random.Stream(uint64(p.Seed), 0, 0, p.Index), new(augment.Workspace))
	d.Kept = make([]bool, n)
	d.Masked = make([]bool, n)
	ids := make([]int, b.Nodes())
	for i := range ids {
		ids[i] = i
		if b.X.OneHot() {
			ids[i] = int(b.X.Category[i])
		} else { // of the augmentations, noise alone makes features dense, and it keeps all nodes
			d.Masked[i] = b.X.Dense[i*n+i] != 1
		}
		d.Kept[ids[i]] = true
	}
	for _, e := range edgesOf(b.Ptr, b.Adj) {
		d.View = append(d.View, [2]int{ids[e[0]], ids[e[1]]})
	}
	d.Layer = layer(g)
	return d, nil
}

// edgesOf lists undirected edges once.
func edgesOf(ptr, adj []int32) (edges [][2]int) {
	for i := range len(ptr) - 1 {
		for _, j := range adj[ptr[i]:ptr[i+1]] {
			if int(j) < i {
				edges = append(edges, [2]int{int(j), i})
			}
		}
	}
	return edges
}

// graph returns the graph of the request, and sets the drawing's title, names and labels.
func (p Picture) graph(d *Drawing) (*graph.Graph, error) {
	if p.SMILES == "" {
		set := embedded()
		if p.Index < 0 || p.Index >= len(set.Graphs) {
			return nil, fmt.Errorf("graph %d; want 0 to %d", p.Index, len(set.Graphs)-1)
		}
		g := set.Graphs[p.Index]
		d.Title = fmt.Sprintf("graph %d, %s", p.Index, Motif[g.Class])
		d.Labels = g.X.Category
		for k := range set.FeatureWidth {
			d.Names = append(d.Names, strconv.Itoa(k))
		}
		return g, nil
	}
	m, err := molecule.Parse(p.SMILES)
	if e, ok := err.(*molecule.Error); ok {
		return nil, &Error{1, e.Column, e.Reason}
	}
	if err != nil {
		return nil, err
	}
	if len(m.Atoms) == 0 || len(m.Atoms) > maxAtoms {
		return nil, &Error{1, 1, fmt.Sprintf("%d atoms; want 1 to %d", len(m.Atoms), maxAtoms)}
	}
	d.Title = p.SMILES
	d.Labels = make([]int32, len(m.Atoms))
	for i, a := range m.Atoms {
		k := slices.Index(d.Names, molecule.Symbol(a.Z))
		if k < 0 {
			k = len(d.Names)
			d.Names = append(d.Names, molecule.Symbol(a.Z))
			d.Colours = append(d.Colours, depict.Colour(a.Z))
		}
		d.Labels[i] = int32(k)
	}
	drawing := depict.Layout(m)
	d.SVG = drawing.SVG(depict.Options{Title: p.SMILES})
	for _, p := range drawing.Atoms[:len(m.Atoms)] {
		d.Places = append(d.Places, [2]float64{bondLength * p.X, -bondLength * p.Y})
	}
	var edges [][2]int
	for _, b := range m.Bonds {
		edges = append(edges, [2]int{int(b.Begin), int(b.End)})
	}
	return graph.FromEdges(len(m.Atoms), edges, graph.Features{Width: len(d.Names), Category: d.Labels})
}

const (
	maxAtoms   = 80
	bondLength = 30 // of [depict.Drawing.SVG]
)

// layer runs a GIN layer with weights of seed 0.
func layer(g *graph.Graph) (l Layer) {
	be := cpu.New(tensor.Float64, cpu.Workers(1))
	defer be.Close()
	conv := gnn.NewGINConv(
		be, "layer", g.X.Width, layerWidth, layerWidth, nn.XavierUniform, rand.New(rand.NewPCG(0, 0)),
	)
	t := autodiff.NewInference(be)
	var host graph.Batch
	host.Append(g)
	host.EndView()
	b := gnn.NewBatch(t, &host)
	sums := b.Features().SpMM(b.Adj, 1+conv.Eps)
	hidden := conv.MLP.Layers[0].Forward(sums).ReLU()
	l.Sum, l.Hidden, l.Out = sums.Data(), hidden.Data(), conv.MLP.Layers[1].Forward(hidden).Data()
	return l
}
