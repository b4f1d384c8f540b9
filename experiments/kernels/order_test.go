package main

import (
	"errors"
	"io/fs"
	"path/filepath"
	"testing"

	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/gnn/word2vec"
	"github.com/specmatch/specmatch/specmatch/eval"
)

// TestOrderLeaks is the control that makes the embeddings shuffle their documents:
// where labels belong to places in a file that is sorted by class, and graphs do not
// belong to places, nothing can be learned of the labels but from the order in which
// documents are read.
func TestOrderLeaks(t *testing.T) {
	if testing.Short() {
		t.Skip("minutes")
	}
	for name, seeds := range map[string]int{"MUTAG": 3, "PROTEINS": 1, "IMDB-BINARY": 1} {
		t.Run(name, func(t *testing.T) {
			ds, err := dataset.Open(t.Context(), filepath.FromSlash("../../../shared/data/tu"), name, dataset.Options{})
			if errors.Is(err, fs.ErrNotExist) {
				t.Skipf("no real data here: %v", err)
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, control := range []bool{false, true} {
				var mean [2]float64 // in the order of the file, shuffled
				for seed := range seeds {
					graphs := ds.Graphs
					if control {
						place := make([]int, len(graphs))
						for i := range place {
							place[i] = i
						}
						dataset.NewRandomState(uint32(seed)).Shuffle(place)
						graphs = make([]*graph.Graph, len(place))
						for i, p := range place {
							graphs[i] = ds.Graphs[p]
						}
					}
					for i, shuffle := range []bool{false, true} {
						mean[i] += graph2vecAccuracy(t, graphs, ds.Labels(), shuffle, seed) / float64(seeds)
					}
				}
				t.Logf("control %v: %.2f in the order of the file, %.2f shuffled", control, mean[0], mean[1])
				if most := mostFrequent(ds.Labels()); control && mean[1] > most+5 {
					t.Errorf("the shuffled control has %.2f, the most frequent class %.2f", mean[1], most)
				}
			}
		})
	}
}

// graph2vecAccuracy is the accuracy of graph2vec, with its default settings and all
// words, in per cent.
func graph2vecAccuracy(t *testing.T, graphs []*graph.Graph, y []int, shuffle bool, seed int) float64 {
	t.Helper()
	s, c := defaultSettings(), learning(seed)
	c.Dim, c.Epochs, c.TokenLimit, c.Shuffle = s.dim, s.epochs, s.tokenLimit, shuffle
	f, err := documents(word2vec.DBOW(t.Context(), word2vec.Subtrees(graphs, s.depth), c))
	if err != nil {
		t.Fatal(err)
	}
	outer, err := dataset.StratifiedKFold(y, 10, true, uint32(seed))
	if err != nil {
		t.Fatal(err)
	}
	res, err := eval.Evaluate(t.Context(), eval.GraphCL, eval.Data{X: f.vectors, Dim: f.dim, Y: y}, outer, eval.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return 100 * res.Mean
}

// mostFrequent is the share of the most frequent class in per cent.
func mostFrequent(y []int) float64 {
	count, most := map[int]int{}, 0
	for _, c := range y {
		count[c]++
		most = max(most, count[c])
	}
	return 100 * float64(most) / float64(len(y))
}
