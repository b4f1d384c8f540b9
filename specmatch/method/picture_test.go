package method_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/graph/layout"
	"gonum.org/v1/gonum/graph/simple"
	"gonum.org/v1/gonum/spatial/r2"

	"github.com/specmatch/specmatch/backend/cpu"
	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/gnn/augment"
	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/specmatch/method"
	"github.com/specmatch/specmatch/specmatch/train"
	"github.com/specmatch/specmatch/tensor"
)

var update = flag.Bool("update", false, "write the picture of the front page anew")

// TestPicture: the picture of the front page shows what the code computes: two views of
// a graph, and the graphs that a trained encoder's vectors of the views induce over a
// batch.
func TestPicture(t *testing.T) {
	const file, batch = "../views.svg", 12
	set := dataset.Default()
	be := cpu.New(tensor.Float64)
	l, err := method.New("specmatch", method.Setup{
		Backend: be, Graphs: set.Graphs,
		Encoder: gnn.Architecture{Kind: gnn.KindGIN, In: set.FeatureWidth, Hidden: 32, Layers: 3},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := train.Run(context.Background(), l, train.Options{Epochs: 20}, func(train.Progress) error { return nil }); err != nil {
		t.Fatal(err)
	}
	var p picture
	p.begin()
	// The categories of the drawn graph are its nodes' numbers, so that views tell
	// which nodes they have kept.
	drawn := set.Graphs[9]
	numbered := *drawn
	numbered.X = graph.Features{Width: drawn.Nodes(), Category: make([]int32, drawn.Nodes())}
	for i := range numbered.X.Category {
		numbered.X.Category[i] = int32(i)
	}
	at := positions(drawn)
	views := viewsOf([]*graph.Graph{&numbered})
	p.text(110, 24, "a graph")
	p.graph(20, 60, at, &numbered, drawn, nil)
	p.text(330, 24, "two random views")
	for v, g := range views {
		p.graph(240, 22+float64(v)*145, at, g, drawn, &numbered)
	}
	p.text(645, 24, "similarity graphs of a batch, one for each view")
	slices.SortStableFunc(set.Graphs, func(a, b *graph.Graph) int { return a.Class - b.Class })
	var samples []*graph.Graph
	for k := range batch {
		samples = append(samples, set.Graphs[k*len(set.Graphs)/batch])
	}
	var edges [2]map[[2]int]bool
	views = viewsOf(samples)
	for v := range edges {
		h, err := l.Embed(context.Background(), views[v*batch:(v+1)*batch])
		if err != nil {
			t.Fatal(err)
		}
		edges[v] = similar(h, batch)
	}
	for v := range edges {
		p.ring(530+float64(v)*230, 170, 88, samples, edges[v], edges[1-v])
	}
	p.end()
	if *update {
		if err := os.WriteFile(file, p.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if have, err := os.ReadFile(file); err != nil || !bytes.Equal(have, p.Bytes()) {
		t.Errorf("%s is not what the code draws (error %v); go test ./specmatch/method -run TestPicture -update writes it", file, err)
	}
}

// viewsOf returns two views of every graph, first all first ones.
func viewsOf(graphs []*graph.Graph) (views []*graph.Graph) {
	var b graph.Batch
	samples := make([]int, len(graphs))
	for i := range samples {
		samples[i] = i
	}
	c := augment.Collator{Views: []augment.Augmentation{augment.NodeDropping{Ratio: 0.2}, augment.Subgraph{Ratio: 0.2}}, Seed: 3}
	c.Collate(&b, graphs, samples, 0)
	for g := range b.Graphs() {
		from, to := b.GraphPtr[g], b.GraphPtr[g+1]
		view := &graph.Graph{X: graph.Features{Width: b.X.Width, Category: b.X.Category[from:to]}, Ptr: []int32{0}}
		for i := from; i < to; i++ {
			for _, j := range b.Adj[b.Ptr[i]:b.Ptr[i+1]] {
				view.Adj = append(view.Adj, j-from)
			}
			view.Ptr = append(view.Ptr, int32(len(view.Adj)))
		}
		views = append(views, view)
	}
	return views
}

// similar returns the pairs of n rows of h whose cosine is above the 70th percentile.
func similar(h []float64, n int) map[[2]int]bool {
	d := len(h) / n
	var all []float64
	cosines := map[[2]int]float64{}
	for i := range n {
		for j := range i {
			a, b := h[i*d:(i+1)*d], h[j*d:(j+1)*d]
			c := floats.Dot(a, b) / floats.Norm(a, 2) / floats.Norm(b, 2)
			cosines[[2]int{j, i}] = c
			all = append(all, c)
		}
	}
	slices.Sort(all)
	edges := map[[2]int]bool{}
	for pair, c := range cosines {
		if c > all[len(all)*7/10] {
			edges[pair] = true
		}
	}
	return edges
}

// positions lays a graph out in [0, 1]².
func positions(g *graph.Graph) []r2.Vec {
	u := simple.NewUndirectedMatrix(g.Nodes(), 0, 0, 0) // has its nodes in order, unlike other graphs
	for i := range g.Nodes() {
		for _, j := range g.Neighbors(i) {
			u.SetWeightedEdge(simple.WeightedEdge{F: simple.Node(j), T: simple.Node(i), W: 1})
		}
	}
	eades := layout.EadesR2{Repulsion: 1, Rate: 0.05, Updates: 300, Theta: 0.2, Src: rand.NewPCG(1, 1)}
	o := layout.NewOptimizerR2(u, eades.Update)
	for o.Update() {
	}
	var at []r2.Vec
	least, most := r2.Vec{X: math.Inf(1), Y: math.Inf(1)}, r2.Vec{X: math.Inf(-1), Y: math.Inf(-1)}
	for i := range g.Nodes() {
		v := o.Coord2(int64(i))
		at = append(at, v)
		least = r2.Vec{X: min(least.X, v.X), Y: min(least.Y, v.Y)}
		most = r2.Vec{X: max(most.X, v.X), Y: max(most.Y, v.Y)}
	}
	for i, v := range at {
		at[i] = r2.Vec{X: (v.X - least.X) / (most.X - least.X), Y: (v.Y - least.Y) / (most.Y - least.Y)}
	}
	return at
}

// picture is an SVG that is legible on light and dark pages.
type picture struct{ bytes.Buffer }

func (p *picture) begin() {
	fmt.Fprint(p, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 880 320" font-family="sans-serif" font-size="14" text-anchor="middle">
<title>Two views of a graph, and the similarity graphs that the views of a batch induce</title>
<style>text{fill:#333}line{stroke:#8888;stroke-width:1.3}.lost{stroke:#8884;stroke-dasharray:2 3}.one{stroke:#d33;stroke-width:1.8}
.c0{fill:#4477aa}.c1{fill:#ee9933}.c2{fill:#228855}.c3{fill:#aa5599}.c4{fill:#999}.gone{fill:none;stroke:#8886;stroke-dasharray:2 2}
@media(prefers-color-scheme:dark){text{fill:#ccc}}</style>
`)
}

func (p *picture) end() {
	p.text(645, 300, "red: an edge in one view only; L_G makes the two graphs alike")
	fmt.Fprintln(p, "</svg>")
}

func (p *picture) text(x, y float64, s string) {
	fmt.Fprintf(p, "<text x=\"%.0f\" y=\"%.0f\">%s</text>\n", x, y, s)
}

func (p *picture) line(class string, a, b r2.Vec) {
	fmt.Fprintf(p, "<line class=\"%s\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>\n", class, a.X, a.Y, b.X, b.Y)
}

func (p *picture) dot(class string, a r2.Vec, r float64) {
	fmt.Fprintf(p, "<circle class=\"%s\" cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\"/>\n", class, a.X, a.Y, r)
}

// graph draws g, whose categories are numbers of nodes of labelled, and what it has lost
// of whole, if that is not nil.
func (p *picture) graph(x, y float64, at []r2.Vec, g, labelled, whole *graph.Graph) {
	place := func(i int32) r2.Vec { return r2.Vec{X: x + 10 + 170*at[i].X, Y: y + 12 + 105*at[i].Y} }
	draw := func(g *graph.Graph, class string) {
		for i := range g.Nodes() {
			for _, j := range g.Neighbors(i) {
				if int(j) < i {
					p.line(class, place(g.X.Category[i]), place(g.X.Category[j]))
				}
			}
		}
	}
	if whole != nil {
		draw(whole, "lost")
		for i := range whole.Nodes() {
			if !slices.Contains(g.X.Category, int32(i)) {
				p.dot("gone", place(int32(i)), 4)
			}
		}
	}
	draw(g, "kept")
	for _, i := range g.X.Category {
		p.dot(fmt.Sprint("c", labelled.X.Category[i]), place(i), 5)
	}
}

// ring draws the graphs of a batch on a circle, and between them the edges of a
// similarity graph; those that the other one lacks are red.
func (p *picture) ring(x, y, r float64, graphs []*graph.Graph, edges, other map[[2]int]bool) {
	place := func(i int) r2.Vec {
		sin, cos := math.Sincos(2 * math.Pi * float64(i) / float64(len(graphs)))
		return r2.Vec{X: x + r*sin, Y: y - r*cos}
	}
	for i := range graphs {
		for j := range i {
			switch pair := [2]int{j, i}; {
			case edges[pair] && other[pair]:
				p.line("both", place(i), place(j))
			case edges[pair]:
				p.line("one", place(i), place(j))
			}
		}
	}
	for i, g := range graphs {
		p.dot(fmt.Sprint("c", g.Class), place(i), 7)
	}
}
