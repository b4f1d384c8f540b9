package classical_test

import (
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/specmatch/specmatch/gnn/classical"
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
	if os.Getenv("SPECMATCH_LARGE") == "" {
		t.Skip("evaluates twice, and SPECMATCH_LARGE is not set")
	}
	ds, err := dataset.Open(t.Context(), filepath.FromSlash("../../../shared/data/tu"), "IMDB-BINARY", dataset.Options{})
	if errors.Is(err, fs.ErrNotExist) {
		t.Skipf("no real data here: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	const seed = 1
	place := make([]int, len(ds.Graphs))
	for i := range place {
		place[i] = i
	}
	dataset.NewRandomState(seed).Shuffle(place)
	graphs := make([]*graph.Graph, len(place))
	for i, p := range place {
		graphs[i] = ds.Graphs[p]
	}
	file, shuffled := graph2vecAccuracy(t, graphs, ds.Labels(), false, seed), graph2vecAccuracy(t, graphs, ds.Labels(), true, seed)
	t.Logf("graphs at random places: %.2f %% in the order of the file, %.2f shuffled", file, shuffled)
	if !(file > 55 && math.Abs(shuffled-50) < 4) {
		t.Error("want over 55, and about 50")
	}
}

// graph2vecAccuracy is the accuracy of graph2vec with its settings and all words, in
// per cent.
func graph2vecAccuracy(t *testing.T, graphs []*graph.Graph, y []int, shuffle bool, seed int) float64 {
	t.Helper()
	o := classical.Defaults()
	o.Seed = uint64(seed)
	c := classical.Learning(o)
	c.Dim, c.Epochs, c.TokenLimit, c.Shuffle = o.Dim, o.Epochs, o.TokenLimit, shuffle
	f, err := classical.Documents(word2vec.DBOW(t.Context(), word2vec.Subtrees(graphs, o.Depth), c))
	if err != nil {
		t.Fatal(err)
	}
	res, err := eval.GraphCL.Accuracy(t.Context(), f.X, y, 10, uint32(seed), eval.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return 100 * res.Mean
}
