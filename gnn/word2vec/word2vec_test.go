package word2vec

import (
	"context"
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// inMemory is a corpus of words 0..words-1.
func inMemory(words int, docs ...[]int32) Corpus {
	return Corpus{Docs: len(docs), Words: words, Doc: func(i int, buf []int32) []int32 { return append(buf, docs[i]...) }}
}

// recorded hands out what gensim drew.
type recorded struct {
	t     *testing.T
	draws []json.RawMessage
}

func (r *recorded) take(v any) {
	r.t.Helper()
	if len(r.draws) == 0 {
		r.t.Fatal("more draws than gensim's")
	}
	if err := json.Unmarshal(r.draws[0], v); err != nil {
		r.t.Fatalf("a draw of another kind than gensim's: %v", err)
	}
	r.draws = r.draws[1:]
}

func (r *recorded) seed() uint64 {
	var hi, lo uint64
	r.take(&hi)
	r.take(&lo)
	return hi<<24 + lo
}

func (r *recorded) shrink(n, _ int) []int {
	var s []int
	r.take(&s)
	if len(s) != n {
		r.t.Fatalf("%d windows, gensim has %d", n, len(s))
	}
	return s
}

// TestAgainstGensim: an epoch of several batches, from gensim's vectors with
// gensim's draws, end with gensim's vectors.
func TestAgainstGensim(t *testing.T) {
	b, err := os.ReadFile("testdata/gensim.json")
	if err != nil {
		t.Fatal(err)
	}
	var golden struct {
		Runs []struct {
			Name, Kind string
			Settings   struct {
				Window, Negative, HS int
				MinCount             int `json:"min_count"`
				Sample               float64
			}
			Docs       [][]int32
			Kept       []int32
			Words      [][]float32
			DocVectors [][]float32 `json:"doc_vectors"`
			Draws      []json.RawMessage
			WordsAfter [][]float32 `json:"words_after"`
			DocsAfter  [][]float32 `json:"docs_after"`
			Cumulative []uint32
			Paths      [][][2]int32 // inner node and code, by rank
		}
	}
	if err := json.Unmarshal(b, &golden); err != nil {
		t.Fatal(err)
	}
	if len(golden.Runs) == 0 {
		t.Fatal("testdata/gensim.json is empty")
	}
	kinds := map[string]kind{"skipgram": skipGram, "dbow": dbow, "dm": dm}
	for _, g := range golden.Runs {
		t.Run(g.Name, func(t *testing.T) {
			s := g.Settings
			words := 0
			for _, d := range g.Docs {
				words = max(words, int(slices.Max(d))+1)
			}
			cfg := Config{
				Dim: len(g.Words[0]), Window: s.Window, Negative: s.Negative, Hierarchic: s.HS == 1, MinCount: s.MinCount,
				Sample: s.Sample, Rate: 0.05, LastRate: 0.001, Epochs: 1, TokenLimit: GensimTokenLimit,
			}
			tr, err := newTrainer(t.Context(), inMemory(words, g.Docs...), cfg, kinds[g.Kind])
			if err != nil {
				t.Fatal(err)
			}
			tr.batch = 100
			if a, b := slices.Sorted(slices.Values(tr.byRank)), slices.Sorted(slices.Values(g.Kept)); !slices.Equal(a, b) {
				t.Fatalf("words kept %v, gensim's %v", a, b)
			}
			if g.Cumulative != nil && !slices.Equal(tr.cumulative, g.Cumulative) {
				t.Errorf("table of negative samples %v, gensim's %v", tr.cumulative, g.Cumulative)
			}
			// Where words are equally frequent, gensim may order them otherwise and build
			// another tree that is as good.
			if cost(tr.path, tr.byRank, g.Docs) != cost(paths(g.Paths, g.Kept, words), g.Kept, g.Docs) {
				t.Error("gensim's tree has another cost")
			}
			if tr.path != nil {
				tr.path = paths(g.Paths, g.Kept, words)
			}
			tr.byRank = g.Kept
			tr.index()
			tr.Words = make([]float32, words*cfg.Dim)
			for r, w := range g.Kept {
				copy(tr.row(tr.Words, w), g.Words[r])
			}
			tr.Docs = slices.Concat(g.DocVectors...)
			tr.allocate()
			draws := &recorded{t, g.Draws}
			for epoch := range cfg.Epochs {
				if err := tr.epoch(t.Context(), epoch, draws); err != nil {
					t.Fatal(err)
				}
			}
			if len(draws.draws) > 0 {
				t.Errorf("%d draws of gensim's are left", len(draws.draws))
			}
			for r, w := range g.Kept {
				near(t, "word", tr.row(tr.Words, w), g.WordsAfter[r])
			}
			for d, want := range g.DocsAfter {
				near(t, "document", tr.row(tr.Docs, int32(d)), want)
			}
		})
	}
}

// paths returns gensim's tree by word.
func paths(byRank [][][2]int32, kept []int32, words int) [][]node {
	path := make([][]node, words)
	for r, p := range byRank {
		for _, n := range p {
			path[kept[r]] = append(path[kept[r]], node{n[0], float32(n[1])})
		}
	}
	return path
}

// cost is the number of steps down the tree that the documents take.
func cost(path [][]node, kept []int32, docs [][]int32) int {
	n := 0
	for _, w := range slices.Concat(docs...) {
		if path != nil && slices.Contains(kept, w) {
			n += len(path[w])
		}
	}
	return n
}

func near(t *testing.T, what string, got, want []float32) {
	t.Helper()
	for i, w := range want {
		if math.Abs(float64(got[i]-w)) > 1e-5 {
			t.Errorf("%s: %v, want %v", what, got, want)
			return
		}
	}
}

// byHand returns a trainer with a rate of 0.025 and one row of three numbers per
// vector. The table of σ is off by up to 0.003, which the tests allow for.
func byHand(words, output [][]float32) *trainer {
	t := &trainer{Model: Model{Dim: 3}, cfg: Config{Dim: 3, Negative: 1}, rate: 0.025}
	t.Words, t.negative = slices.Concat(words...), slices.Concat(output...)
	t.work, t.hidden = make([]float32, 3), make([]float32, 3)
	return t
}

const tableError = 1.3 * 0.003 * 0.025 // of several lookups

func nearly(t *testing.T, what string, got []float32, want ...float64) {
	t.Helper()
	for i, w := range want {
		if math.Abs(float64(got[i])-w) > tableError {
			t.Errorf("%s: %v, want %v", what, got, want)
			return
		}
	}
}

// TestSkipGramByHand is one word against two negative ones, worked out on paper. The
// input moves by the output vectors as they were.
func TestSkipGramByHand(t *testing.T) {
	tr := byHand([][]float32{{.1, -.2, .3}}, [][]float32{{.2, .1, -.1}, {-.3, .4, .2}, {.05, -.1, .25}})
	in := tr.row(tr.Words, 0)
	clear(tr.work)
	for i, target := range []float32{1, 0, 0} {
		tr.step(in, tr.row(tr.negative, int32(i)), target)
	}
	for i := range in {
		in[i] += tr.work[i]
	}
	nearly(t, "positive", tr.row(tr.negative, 0), .20126875, .0974625, -.09619375)
	nearly(t, "first negative", tr.row(tr.negative, 1), -.30121876, .40243751, .19634373)
	nearly(t, "second negative", tr.row(tr.negative, 2), .04868755, -.0973751, .24606266)
	nearly(t, "input", in, .10553754, -.20229383, .29301262)
}

// TestMeanByHand: every input takes the undivided change.
func TestMeanByHand(t *testing.T) {
	tr := byHand([][]float32{{.1, .3, 0}, {-.2, .1, .4}, {9, 9, 9}}, [][]float32{{-.1, .2, .3}, {0, 0, 0}, {.5, -.5, .2}})
	// The only word of the table is 0, so that it is what is drawn.
	tr.byRank, tr.cumulative = []int32{0}, []uint32{math.MaxInt32}
	tr.index()
	doc := []float32{.2, 0, -.1}
	tr.predictMean(2, doc, []int32{0, 2, 1}, 1)
	nearly(t, "positive", tr.row(tr.negative, 2), .50042292, -.49830834, .20126875)
	nearly(t, "negative", tr.row(tr.negative, 0), -.10042778, .1982889, .29871667)
	e := []float64{.00762707, -.00891039, -.00131248}
	nearly(t, "document", doc, .2+e[0], e[1], -.1+e[2])
	nearly(t, "word before", tr.row(tr.Words, 0), .1+e[0], .3+e[1], e[2])
	nearly(t, "word behind", tr.row(tr.Words, 1), -.2+e[0], .1+e[1], .4+e[2])
	if !slices.Equal(tr.row(tr.Words, 2), []float32{9, 9, 9}) {
		t.Error("the word itself has moved")
	}
}

func TestProbabilities(t *testing.T) {
	table := cumulative([]int{8, 4, 2, 1})
	last := 0.0
	for r, want := range []float64{.463310, .275486, .163805, .097399} {
		at := float64(table[r]) / math.MaxInt32
		if math.Abs(at-last-want) > 1e-6 {
			t.Errorf("rank %d is drawn with probability %v, want %v", r, at-last, want)
		}
		last = at
	}
	for count, want := range map[int]float64{500: .014342, 100: .032623, 10: .11, 1: .416228} {
		if got := keepProbability(count, 1e-4*1000); math.Abs(got-want) > 1e-6 {
			t.Errorf("a word that occurs %d times is kept with probability %v, want %v", count, got, want)
		}
	}
}

// TestHuffman: the code is prefix-free and as short as can be.
func TestHuffman(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 50 {
		counts := make([]int, 1+rng.IntN(30))
		for i := range counts {
			counts[i] = 1 + rng.IntN(20)
		}
		var kraft float64
		cost := 0
		for i, p := range huffman(counts) {
			kraft += math.Pow(0.5, float64(len(p)))
			cost += counts[i] * len(p)
			for k, n := range p {
				if k == 0 && int(n.inner) != len(counts)-2 {
					t.Fatalf("the path of %d does not begin at the root: %v", i, p)
				}
			}
		}
		// The cost of an optimal code is the sum of the weights of inner nodes.
		weights, best := slices.Clone(counts), 0
		for len(weights) > 1 {
			slices.Sort(weights)
			sum := weights[0] + weights[1]
			best += sum
			weights = append(weights[2:], sum)
		}
		if kraft != 1 || cost != best {
			t.Fatalf("counts %v: Kraft sum %v, cost %d, want 1 and %d", counts, kraft, cost, best)
		}
	}
}

var plain = Config{Dim: 8, Window: 2, Negative: 5, MinCount: 1, Rate: 0.025, LastRate: 1e-4, Epochs: 40, Seed: 3}

// TestLearns: words that share their company end closer than those that do not, and so
// do documents with the same words.
func TestLearns(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	var docs [][]int32
	for d := range 60 {
		topic := int32(d%2) * 5
		doc := make([]int32, 30)
		for i := range doc {
			doc[i] = topic + rng.Int32N(5)
		}
		docs = append(docs, doc)
	}
	cosine := func(m []float32, a, b int) float64 {
		var ab, aa, bb float64
		for i := range plain.Dim {
			x, y := float64(m[a*plain.Dim+i]), float64(m[b*plain.Dim+i])
			ab, aa, bb = ab+x*y, aa+x*x, bb+y*y
		}
		return ab / math.Sqrt(aa*bb)
	}
	hierarchic := plain
	hierarchic.Negative, hierarchic.Hierarchic = 0, true
	for name, learn := range map[string]func() ([]float32, int, int, error){
		"skip-gram": func() ([]float32, int, int, error) {
			m, err := SkipGram(t.Context(), inMemory(10, docs...), plain)
			return m.Words, 1, 6, err
		},
		"skip-gram, hierarchic": func() ([]float32, int, int, error) {
			m, err := SkipGram(t.Context(), inMemory(10, docs...), hierarchic)
			return m.Words, 1, 6, err
		},
		"PV-DBOW": func() ([]float32, int, int, error) {
			m, err := DBOW(t.Context(), inMemory(10, docs...), plain)
			return m.Docs, 2, 1, err
		},
		"PV-DM": func() ([]float32, int, int, error) {
			m, err := DM(t.Context(), inMemory(10, docs...), plain)
			return m.Docs, 2, 1, err
		},
	} {
		m, same, other, err := learn()
		if err != nil {
			t.Fatal(err)
		}
		if near, far := cosine(m, 0, same), cosine(m, 0, other); near < far+0.05 {
			t.Errorf("%s: cosine %.3f with its like, %.3f with another", name, near, far)
		}
	}
}

// TestShuffle: every epoch takes every document once, in an order of its own.
func TestShuffle(t *testing.T) {
	const n = 50
	var visits []int
	corpus := Corpus{Docs: n, Words: 1, Doc: func(i int, buf []int32) []int32 {
		visits = append(visits, i)
		return append(buf, 0)
	}}
	for _, shuffle := range []bool{false, true} {
		cfg := plain
		cfg.Shuffle, cfg.Epochs = shuffle, 2
		var runs [2][]int
		for i := range runs {
			visits = nil
			if _, err := DBOW(t.Context(), corpus, cfg); err != nil {
				t.Fatal(err)
			}
			runs[i] = visits[n:] // without the count of words
		}
		first, second := runs[0][:n], runs[0][n:]
		if !slices.Equal(runs[0], runs[1]) {
			t.Errorf("shuffled %v: a seed gives two orders", shuffle)
		}
		if slices.Equal(first, second) == shuffle || slices.IsSorted(first) == shuffle {
			t.Errorf("shuffled %v: orders %v and %v", shuffle, first, second)
		}
		for _, order := range [][]int{first, second} {
			for i, d := range slices.Sorted(slices.Values(order)) {
				if i != d {
					t.Fatalf("shuffled %v: document %d is not taken once", shuffle, i)
				}
			}
		}
	}
}

func TestSeedAndTokenLimit(t *testing.T) {
	docs := inMemory(4, []int32{0, 1, 2, 0, 1, 2, 3, 3}, []int32{0, 0, 1, 1, 2, 2, 0, 0})
	learn := func(c Corpus, cfg Config) *Model {
		m, err := DM(t.Context(), c, cfg)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	other, cut := plain, plain
	other.Seed++
	cut.TokenLimit = 6
	if !reflect.DeepEqual(learn(docs, plain), learn(docs, plain)) {
		t.Error("a seed gives two results")
	}
	if reflect.DeepEqual(learn(docs, plain), learn(docs, other)) {
		t.Error("two seeds give one result")
	}
	// The limit is on what is read, not on the vocabulary.
	if a := learn(docs, cut); reflect.DeepEqual(a, learn(docs, plain)) {
		t.Error("the limit has no effect")
	}
}

func TestErrors(t *testing.T) {
	good := inMemory(2, []int32{0, 1, 1})
	bad := func(change func(*Config)) Config {
		c := plain
		change(&c)
		return c
	}
	for want, f := range map[string]func() error{
		"vectors of 0 numbers":      func() error { _, err := DBOW(t.Context(), good, bad(func(c *Config) { c.Dim = 0 })); return err },
		"neither negative":          func() error { _, err := DBOW(t.Context(), good, bad(func(c *Config) { c.Negative = 0 })); return err },
		"a window of 0":             func() error { _, err := DM(t.Context(), good, bad(func(c *Config) { c.Window = 0 })); return err },
		"a setting is negative":     func() error { _, err := DM(t.Context(), good, bad(func(c *Config) { c.Epochs = -1 })); return err },
		"a share of 1":              func() error { _, err := DM(t.Context(), good, bad(func(c *Config) { c.Sample = 1 })); return err },
		"rates from 0.025 to 1":     func() error { _, err := DM(t.Context(), good, bad(func(c *Config) { c.LastRate = 1 })); return err },
		"no word occurs 9 times":    func() error { _, err := DBOW(t.Context(), good, bad(func(c *Config) { c.MinCount = 9 })); return err },
		"word 1 of document 0 is 7": func() error { _, err := DBOW(t.Context(), inMemory(2, []int32{0, 7}), plain); return err },
		"context canceled": func() error {
			ctx, stop := context.WithCancel(t.Context())
			stop()
			_, err := SkipGram(ctx, good, plain)
			return err
		},
	} {
		if err := f(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one about %q", err, want)
		}
	}
}

// TestDraw: the guide leads to the first rank whose running sum a draw does not exceed,
// for tables of few and of many words, even where a word has all but nothing.
func TestDraw(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, words := range []int{1, 2, 3, 1000, 70000} {
		counts := make([]int, words)
		for i := range counts {
			counts[i] = 1 + rng.IntN(1<<uint(rng.IntN(24)))
		}
		slices.SortFunc(counts, func(a, b int) int { return b - a })
		tr := &trainer{cumulative: cumulative(counts), random: 1}
		for r := range counts {
			tr.byRank = append(tr.byRank, int32(r))
		}
		tr.index()
		again := tr.random
		for range 20000 {
			x := uint32(again.next() % uint64(tr.cumulative[words-1]))
			want, _ := slices.BinarySearch(tr.cumulative, x)
			if got := tr.draw(); got != int32(want) {
				t.Fatalf("%d words: %d is drawn for %d, want %d", words, got, x, want)
			}
		}
	}
}
