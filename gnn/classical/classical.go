// Package classical makes features of graphs without a network: counts of nodes and labels,
// Weisfeiler-Lehman kernels, and embeddings of walks and of subtrees.
//
// These are the classical rows in tables of graph classification, and the plain baselines
// that belong above them. The package knows nothing of classes; package
// [github.com/specmatch/specmatch/specmatch/eval] classifies the features.
package classical

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/gnn/kernel"
	"github.com/specmatch/specmatch/gnn/word2vec"
)

// Options are the settings of the methods; each reads those that concern it.
type Options struct {
	Rounds     int     // most WL rounds h, of wl and wloa; at least 0
	Depth      int     // WL rounds in the documents of graph2vec and dgk; at least 0
	Dim        int     // numbers in a vector of node2vec, sub2vec and graph2vec; at least 1
	Epochs     int     // of graph2vec; at least 1
	Walks      int     // of node2vec that begin at every node; at least 1
	WalkLength int     // nodes of such a walk; at least 2
	P, Q       float64 // node2vec's return and in-out parameters; positive
	Steps      int     // of the walk of a graph in sub2vec; at least 2
	Structural bool    // sub2vec preserves structure (classes of degrees), not neighbourhoods
	TokenLimit int     // words of a document that sub2vec and graph2vec read, 0 for all
	Seed       uint64
}

// Defaults returns the settings of the papers, with gensim's silent limit of 10,000 words.
func Defaults() Options {
	return Options{
		Rounds:     5,
		Depth:      2,
		Dim:        128,
		Epochs:     100,
		Walks:      10,
		WalkLength: 80,
		P:          1,
		Q:          1,
		Steps:      100000,
		Structural: true,
		TokenLimit: word2vec.GensimTokenLimit,
	}
}

// Features are what a method makes of N graphs: either Rounds or X is set.
type Features struct {
	// Rounds are the parts of a kernel. The sum of the products of the first h+1 of them is
	// the kernel for h rounds, of which one is to be chosen.
	Rounds     []*kernel.Sparse
	Assignment bool // Σ min of counts takes the place of products

	X   []float64 // vectors [N×Dim], row-major
	Dim int
}

// Sparse returns the features of each kernel, every row of norm 1.
func (f *Features) Sparse() (matrices []*kernel.Sparse) {
	parts := slices.Clone(f.Rounds)
	for h := range parts {
		if f.Assignment {
			parts[h] = parts[h].Unary()
		}
		m := kernel.Join(parts[:h+1]...).Compact()
		m.Normalize()
		matrices = append(matrices, m)
	}
	return matrices
}

// Kernels returns each kernel, normalized.
func (f *Features) Kernels() []*kernel.Matrix {
	sum := kernel.Subtree
	if f.Assignment {
		sum = kernel.Assignment
	}
	total := sum(f.Rounds)
	for _, k := range total {
		k.Normalize()
	}
	return total
}

// Method is a way to make features.
type Method struct {
	Name   string
	Title  string // in tables
	Seeded bool   // features depend on Options.Seed
	build  func(ctx context.Context, graphs []*graph.Graph, o Options) (Features, error)
	// updates, if set, estimates how many vectors change while it learns.
	updates func(graphs []*graph.Graph, o Options) float64
}

// Features makes the features of graphs. It returns an error if ctx is cancelled or the options
// of an embedding are out of range.
func (m *Method) Features(ctx context.Context, graphs []*graph.Graph, o Options) (Features, error) {
	f, err := m.build(ctx, graphs, o)
	if err != nil {
		err = fmt.Errorf("%s: %w", m.Name, err)
	}
	return f, err
}

// Updates estimates how many vectors the method changes while it learns, at ten to thirty
// million a second. It returns 0 if the method learns none or few.
func (m *Method) Updates(graphs []*graph.Graph, o Options) float64 {
	if m.updates == nil {
		return 0
	}
	return m.updates(graphs, o)
}

// Methods lists the methods in the order of tables.
func Methods() []*Method {
	return []*Method{
		{Name: "size", Title: "(log nodes, log edges)", build: plain(size)},
		{Name: "labels", Title: "labels or degrees, counted", build: plain(labels)},
		{Name: "pairs", Title: "labels along edges, counted", build: plain(pairs)},
		{Name: "wl", Title: "WL subtree", build: plain(wl)},
		{
			Name:  "wloa",
			Title: "WL optimal assignment",
			build: plain(func(graphs []*graph.Graph, o Options) Features {
				f := wl(graphs, o)
				f.Assignment = true
				return f
			}),
		},
		{
			Name:   "dgk",
			Title:  "deep WL kernel (DGK type 1)",
			Seeded: true,
			build:  deep,
		},
		{
			Name:    "node2vec",
			Title:   "node2vec, mean of nodes",
			Seeded:  true,
			build:   node2vec,
			updates: node2vecUpdates,
		},
		{
			Name:    "sub2vec",
			Title:   "sub2vec",
			Seeded:  true,
			build:   sub2vec,
			updates: sub2vecUpdates,
		},
		{
			Name:    "graph2vec",
			Title:   "graph2vec",
			Seeded:  true,
			build:   graph2vec,
			updates: graph2vecUpdates,
		},
	}
}

// plain adapts a method that is too fast to be interrupted.
func plain(
	build func(graphs []*graph.Graph, o Options) Features,
) func(context.Context, []*graph.Graph, Options) (Features, error) {
	return func(_ context.Context, graphs []*graph.Graph, o Options) (Features, error) {
		return build(graphs, o), nil
	}
}

// size makes features of the numbers of nodes and edges alone.
func size(graphs []*graph.Graph, _ Options) Features {
	f := Features{Dim: 2}
	for _, g := range graphs {
		edges := float64(g.Entries()) / 2
		f.X = append(f.X, math.Log(float64(g.Nodes())), math.Log1p(edges))
	}
	return f
}

// labels counts how many nodes have each label, or degree.
func labels(graphs []*graph.Graph, _ Options) Features {
	counts := kernel.Refine(graphs, 0).Counts()[0]
	return Features{X: counts.Dense(), Dim: counts.Width}
}

// pairs also counts how many edges join two labels, by the label of the edge.
func pairs(graphs []*graph.Graph, _ Options) Features {
	counts := kernel.Refine(graphs, 0).Counts()[0]
	return Features{Rounds: []*kernel.Sparse{kernel.Join(counts, kernel.Pairs(graphs))}}
}

func wl(graphs []*graph.Graph, o Options) Features {
	return Features{Rounds: kernel.Refine(graphs, o.Rounds).Counts()}
}

// learning returns the settings that the embeddings share. They are gensim's defaults except
// where the papers' own code differs, and without the thinning of frequent words and the limit
// on rare ones, which ruin a small corpus. Documents are shuffled, since several sets are sorted
// by class.
func learning(o Options) word2vec.Config {
	return word2vec.Config{
		Negative: 5,
		MinCount: 1,
		Rate:     0.025,
		LastRate: 1e-4,
		Shuffle:  true,
		Seed:     o.Seed,
	}
}

// deep weighs WL colors by the length of their vectors: K = P diag(‖v_c‖) Pᵀ, type 1 of
// Yanardag and Vishwanathan's kernels. Type 3, K = PPᵀ, is the WL subtree kernel.
// Vectors are learned as in their code, by skip-gram with hierarchical softmax.
func deep(ctx context.Context, graphs []*graph.Graph, o Options) (Features, error) {
	rounds := kernel.Refine(graphs, o.Depth).Counts()
	c := learning(o)
	c.Dim = 25
	c.Window = 5
	c.Negative = 0
	c.Hierarchic = true
	c.Epochs = 5
	m, err := word2vec.SkipGram(ctx, word2vec.Runs(rounds), c)
	if err != nil {
		return Features{}, err
	}
	first := 0
	for _, r := range rounds {
		scaleColumns(r, m, first)
		first += r.Width
	}
	return Features{Rounds: rounds}, nil
}

// scaleColumns multiplies column c by the root of the length of vector first+c.
func scaleColumns(r *kernel.Sparse, m *word2vec.Model, first int) {
	root := make([]float64, r.Width)
	for c := range root {
		var square float64
		for _, v := range m.Words[(first+c)*m.Dim : (first+c+1)*m.Dim] {
			square += float64(float64(v) * float64(v))
		}
		root[c] = math.Pow(square, 0.25)
	}
	for k, c := range r.Index {
		r.Value[k] *= root[c]
	}
}

// node2vec learns vectors of the nodes of all graphs together, each graph with words of its
// own, and takes the mean over a graph. The spaces of two graphs share nothing but their
// random start, so little should be expected of it.
func node2vec(ctx context.Context, graphs []*graph.Graph, o Options) (Features, error) {
	if o.Walks < 1 || o.WalkLength < 2 {
		return Features{}, fmt.Errorf("%d walks of %d nodes; want at least 1 of 2", o.Walks, o.WalkLength)
	}
	for _, bias := range []float64{o.P, o.Q} {
		if !(bias > 0) || math.IsInf(bias, 1) {
			return Features{}, fmt.Errorf("the parameters P and Q are %g and %g; want positive numbers", o.P, o.Q)
		}
	}
	walks, first := word2vec.Walks(graphs, word2vec.WalkConfig{
		PerNode: o.Walks,
		Length:  o.WalkLength,
		P:       o.P,
		Q:       o.Q,
		Seed:    o.Seed,
	})
	c := learning(o)
	c.Dim = o.Dim
	c.Window = 10
	c.Epochs = 1
	m, err := word2vec.SkipGram(ctx, walks, c)
	if err != nil {
		return Features{}, err
	}
	f := Features{X: make([]float64, len(graphs)*o.Dim), Dim: o.Dim}
	for g := range graphs {
		row := f.X[g*o.Dim : (g+1)*o.Dim]
		n := float64(first[g+1] - first[g])
		for k, v := range m.Words[first[g]*o.Dim : first[g+1]*o.Dim] {
			row[k%o.Dim] += float64(v) / n
		}
	}
	return f, nil
}

func sub2vec(ctx context.Context, graphs []*graph.Graph, o Options) (Features, error) {
	c := learning(o)
	c.Dim = o.Dim
	c.Window = 2
	c.Epochs = sub2vecEpochs
	c.TokenLimit = o.TokenLimit
	walks := word2vec.LongWalkConfig{Length: o.Steps, Structural: o.Structural, Seed: o.Seed}
	return documents(word2vec.DM(ctx, word2vec.LongWalks(graphs, walks), c))
}

func graph2vec(ctx context.Context, graphs []*graph.Graph, o Options) (Features, error) {
	c := learning(o)
	c.Dim = o.Dim
	c.Epochs = o.Epochs
	c.TokenLimit = o.TokenLimit
	return documents(word2vec.DBOW(ctx, word2vec.Subtrees(graphs, o.Depth), c))
}

const sub2vecEpochs = 20

func documents(m *word2vec.Model, err error) (Features, error) {
	if err != nil {
		return Features{}, err
	}
	f := Features{X: make([]float64, len(m.Docs)), Dim: m.Dim}
	for i, v := range m.Docs {
		f.X[i] = float64(v)
	}
	return f, nil
}

func node2vecUpdates(graphs []*graph.Graph, o Options) float64 {
	// A window shrunk at random covers 11 of its 20 words on average, each against
	// one word and five.
	return float64(nodes(graphs)) * float64(o.Walks) * float64(o.WalkLength) * 11 * 6
}

func sub2vecUpdates(graphs []*graph.Graph, o Options) float64 {
	steps := o.Steps
	if o.TokenLimit > 0 {
		steps = min(steps, o.TokenLimit)
	}
	// Ten steps of a walk, read or not, take as long as an update.
	return float64(len(graphs)) * sub2vecEpochs * (float64(steps)*6 + float64(o.Steps)/10)
}

func graph2vecUpdates(graphs []*graph.Graph, o Options) float64 {
	return float64(nodes(graphs)) * float64(o.Depth+1) * float64(o.Epochs) * 6
}

func nodes(graphs []*graph.Graph) (n int) {
	for _, g := range graphs {
		n += g.Nodes()
	}
	return n
}
