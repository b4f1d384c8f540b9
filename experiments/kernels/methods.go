package main

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/specmatch/specmatch/experiments/internal/cli"
	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/gnn/kernel"
	"github.com/specmatch/specmatch/gnn/word2vec"
)

// settings are the flags of the methods.
type settings struct {
	rounds     int
	dim        int
	depth      int
	epochs     int
	walks      int
	length     int
	p, q       float64
	steps      int
	property   string
	tokenLimit int
	ginEpochs  int
}

func defaultSettings() settings {
	return settings{
		rounds: 5, dim: 128, depth: 2, epochs: 100, walks: 10, length: 80, p: 1, q: 1,
		steps: 100000, property: "s", tokenLimit: word2vec.GensimTokenLimit,
		ginEpochs: 100,
	}
}

// Register implements [cli.Group].
func (s *settings) Register(f *cli.FlagSet) {
	cli.Var(f, &s.rounds, "rounds", cli.Int(0), "most WL rounds `h`; how many of them is chosen in each fold")
	cli.Var(f, &s.dim, "dim", cli.Int(1), "numbers `D` in a vector of node2vec, sub2vec and graph2vec")
	cli.Var(f, &s.depth, "depth", cli.Int(0), "WL `rounds` in the documents of graph2vec and dgk")
	cli.Var(f, &s.epochs, "epochs", cli.Int(1), "`epochs` of graph2vec")
	cli.Var(f, &s.walks, "walks", cli.Int(1), "`walks` of node2vec that begin at every node")
	cli.Var(f, &s.length, "walk-length", cli.Int(2), "`nodes` of a walk of node2vec")
	cli.Var(f, &s.p, "return", cli.Positive, "node2vec's return parameter `p`")
	cli.Var(f, &s.q, "in-out", cli.Positive, "node2vec's in-out parameter `q`")
	cli.Var(f, &s.steps, "steps", cli.Int(2), "`steps` of the walk of a graph in sub2vec")
	cli.Var(f, &s.property, "property", cli.OneOf("n", "s"), "what sub2vec preserves: `n`, neighbourhoods, or s, structure (classes of degrees)")
	cli.Var(f, &s.ginEpochs, "gin-epochs", cli.Int(1), "most `epochs` of the supervised GIN in a fold")
	f.Check(func() error {
		for _, c := range []struct {
			name        string
			value, most int
		}{{"rounds", s.rounds, 10}, {"depth", s.depth, 10}, {"dim", s.dim, 8192}} {
			if c.value > c.most {
				return cli.Usagef("-%s %d: want at most %d", c.name, c.value, c.most)
			}
		}
		return nil
	})
	cli.Var(f, &s.tokenLimit, "token-limit", cli.Int(0), "`words` of a document that sub2vec and graph2vec read, 0 for all; 10000 as gensim does silently")
}

// features are what a method makes of a data set. Exactly one field is set.
type features struct {
	// rounds are the parts of a kernel: after each of them the sum of the
	// products so far is a kernel to choose.
	rounds     []*kernel.Sparse
	assignment bool // sums of the smaller counts take the place of products
	// vectors is the row-major matrix of one vector of dim numbers per graph.
	vectors []float64
	dim     int
}

// method is one row of the table.
type method struct {
	name   string // as -method has it
	row    string // as the table has it
	seeded bool   // features depend on the seed
	// classify, of a method without features, returns the mean accuracy over the
	// outer folds, a fraction.
	classify func(ctx context.Context, s *settings, ds *dataset.Dataset, seed int, outer []dataset.Fold) (float64, error)
	// build makes the features of the others.
	build func(ctx context.Context, s *settings, ds *dataset.Dataset, seed int) (features, error)
	// refuse, if set, is the error with which the method refuses a set that is
	// too large for it.
	refuse func(s *settings, ds *dataset.Dataset) error
}

// methods lists the rows in the order of the table.
var methods = []*method{
	{name: "majority", row: "majority class", classify: majority},
	{name: "size", row: "(log nodes, log edges)", build: unseeded(size)},
	{name: "labels", row: "labels or degrees, counted", build: unseeded(labels)},
	{name: "pairs", row: "labels along edges, counted", build: unseeded(pairs)},
	{name: "wl", row: "WL subtree", build: unseeded(wl)},
	{name: "wloa", row: "WL optimal assignment", build: unseeded(func(s *settings, ds *dataset.Dataset) features {
		f := wl(s, ds)
		f.assignment = true
		return f
	})},
	{name: "dgk", row: "deep WL kernel (DGK type 1)", seeded: true, build: deep},
	{name: "node2vec", row: "node2vec, mean of nodes", seeded: true, build: node2vec, refuse: refuseNode2vec},
	{name: "sub2vec", row: "sub2vec", seeded: true, build: sub2vec, refuse: refuseSub2vec},
	{name: "graph2vec", row: "graph2vec", seeded: true, build: graph2vec, refuse: refuseGraph2vec},
	{name: "gin", row: "GIN, supervised", seeded: true, classify: gin, refuse: refuseGIN},
}

func methodNames() []string {
	var names []string
	for _, m := range methods {
		names = append(names, m.name)
	}
	return names
}

func methodOf(name string) *method {
	return methods[slices.IndexFunc(methods, func(m *method) bool { return m.name == name })]
}

// unseeded adapts a method that draws nothing at random and takes no time to speak of.
func unseeded(build func(s *settings, ds *dataset.Dataset) features) func(context.Context, *settings, *dataset.Dataset, int) (features, error) {
	return func(_ context.Context, s *settings, ds *dataset.Dataset, _ int) (features, error) {
		return build(s, ds), nil
	}
}

// size is what is left of a graph that is only counted.
func size(_ *settings, ds *dataset.Dataset) features {
	f := features{dim: 2}
	for _, g := range ds.Graphs {
		edges := float64(g.Entries()) / 2
		f.vectors = append(f.vectors, math.Log(float64(g.Nodes())), math.Log1p(edges))
	}
	return f
}

// labels counts how many nodes have each label, or degree.
func labels(_ *settings, ds *dataset.Dataset) features {
	counts := kernel.Refine(ds.Graphs, 0).Counts()[0]
	return features{vectors: counts.Dense(), dim: counts.Width}
}

// pairs also counts how many edges join two labels, apart for each label of edges.
func pairs(_ *settings, ds *dataset.Dataset) features {
	counts := kernel.Refine(ds.Graphs, 0).Counts()[0]
	return features{rounds: []*kernel.Sparse{kernel.Join(counts, kernel.Pairs(ds.Graphs))}}
}

func wl(s *settings, ds *dataset.Dataset) features {
	return features{rounds: kernel.Refine(ds.Graphs, s.rounds).Counts()}
}

// learning is what the embeddings share: gensim's defaults but for what the papers'
// own code sets and for what ruins a small corpus, thinning out frequent words and
// leaving out rare ones. Documents are shuffled: several sets are sorted by class.
func learning(seed int) word2vec.Config {
	return word2vec.Config{Negative: 5, MinCount: 1, Rate: 0.025, LastRate: 1e-4, Shuffle: true, Seed: uint64(seed)}
}

// deep weighs WL colors by the length of their vectors: K = P diag(‖v_c‖) Pᵀ, type 1 of
// Yanardag and Vishwanathan's kernels. Type 3, K = PPᵀ, is the WL subtree kernel.
// Vectors are learned as in their code, by skip-gram with hierarchical softmax.
func deep(ctx context.Context, s *settings, ds *dataset.Dataset, seed int) (features, error) {
	rounds := kernel.Refine(ds.Graphs, s.depth).Counts()
	c := learning(seed)
	c.Dim, c.Window, c.Negative, c.Hierarchic, c.Epochs = 25, 5, 0, true, 5
	m, err := word2vec.SkipGram(ctx, word2vec.Runs(rounds), c)
	if err != nil {
		return features{}, err
	}
	first := 0
	for _, r := range rounds {
		scaleColumns(r, m, first)
		first += r.Width
	}
	return features{rounds: rounds}, nil
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

// node2vec learns vectors of nodes, of all graphs together but with words of their
// own, and takes the mean over a graph. The spaces of two graphs have nothing in common
// but the start, so that little should come of it.
func node2vec(ctx context.Context, s *settings, ds *dataset.Dataset, seed int) (features, error) {
	walks, first := word2vec.Walks(ds.Graphs, word2vec.WalkConfig{PerNode: s.walks, Length: s.length, P: s.p, Q: s.q, Seed: uint64(seed)})
	c := learning(seed)
	c.Dim, c.Window, c.Epochs = s.dim, 10, 1
	m, err := word2vec.SkipGram(ctx, walks, c)
	if err != nil {
		return features{}, err
	}
	f := features{vectors: make([]float64, len(ds.Graphs)*s.dim), dim: s.dim}
	for g := range ds.Graphs {
		row := f.vectors[g*s.dim : (g+1)*s.dim]
		n := float64(first[g+1] - first[g])
		for k, v := range m.Words[first[g]*s.dim : first[g+1]*s.dim] {
			row[k%s.dim] += float64(v) / n
		}
	}
	return f, nil
}

func sub2vec(ctx context.Context, s *settings, ds *dataset.Dataset, seed int) (features, error) {
	c := learning(seed)
	c.Dim, c.Window, c.Epochs, c.TokenLimit = s.dim, 2, sub2vecEpochs, s.tokenLimit
	walks := word2vec.LongWalkConfig{Length: s.steps, Structural: s.property == "s", Seed: uint64(seed)}
	return documents(word2vec.DM(ctx, word2vec.LongWalks(ds.Graphs, walks), c))
}

func graph2vec(ctx context.Context, s *settings, ds *dataset.Dataset, seed int) (features, error) {
	c := learning(seed)
	c.Dim, c.Epochs, c.TokenLimit = s.dim, s.epochs, s.tokenLimit
	return documents(word2vec.DBOW(ctx, word2vec.Subtrees(ds.Graphs, s.depth), c))
}

const sub2vecEpochs = 20

// documents makes features of the vectors of documents.
func documents(m *word2vec.Model, err error) (features, error) {
	if err != nil {
		return features{}, err
	}
	f := features{vectors: make([]float64, len(m.Docs)), dim: m.Dim}
	for i, v := range m.Docs {
		f.vectors[i] = float64(v)
	}
	return f, nil
}

// mostUpdates is how many vectors a method may change for one seed: at ten to thirty
// million a second, by the size of the vocabulary, seven to twenty minutes.
const mostUpdates = 1.2e10

// refuseAbove is the error about a method that would change too many vectors.
func refuseAbove(updates float64, advice string) error {
	if updates <= mostUpdates {
		return nil
	}
	return cli.Usagef("%.1e updates of vectors a seed, at most %.1e are taken on: %s", updates, mostUpdates, advice)
}

func refuseNode2vec(s *settings, ds *dataset.Dataset) error {
	// A window shrunk at random covers 11 of its 20 words on average, each against
	// one word and five.
	tokens := float64(nodes(ds)) * float64(s.walks) * float64(s.length)
	return refuseAbove(tokens*11*6, "fewer or shorter walks make it smaller, as -walks 1 -walk-length 20")
}

func refuseSub2vec(s *settings, ds *dataset.Dataset) error {
	steps := s.steps
	if s.tokenLimit > 0 {
		steps = min(steps, s.tokenLimit)
	}
	// Ten steps of a walk, read or not, take as long as an update.
	each := float64(steps)*6 + float64(s.steps)/10
	return refuseAbove(float64(len(ds.Graphs))*sub2vecEpochs*each, "fewer -steps make it smaller, or a -token-limit")
}

func refuseGraph2vec(s *settings, ds *dataset.Dataset) error {
	return refuseAbove(float64(nodes(ds))*float64(s.depth+1)*float64(s.epochs)*6, fmt.Sprintf("fewer -epochs make it smaller, as -epochs %d", max(1, s.epochs/10)))
}

func nodes(ds *dataset.Dataset) int {
	n := 0
	for _, g := range ds.Graphs {
		n += g.Nodes()
	}
	return n
}
