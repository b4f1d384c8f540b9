package word2vec

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"

	"github.com/specmatch/specmatch/backend/cpu/simd"
	"github.com/specmatch/specmatch/gnn/random"
)

// Corpus is a list of documents that need not be in memory.
type Corpus struct {
	Docs  int // number of documents
	Words int // size of the vocabulary; words are 0..Words-1
	// Doc appends the words of document i to buf. It is called once for every epoch
	// and once before, and must return the same words each time.
	Doc func(i int, buf []int32) []int32
}

// Config holds the settings of training. gensim's defaults are in brackets; the zero
// value of a field means what it says, and not the default.
type Config struct {
	Dim        int     // numbers in a vector [100]
	Window     int     // most words to either side; shrunk at random at every position [5]
	Negative   int     // words drawn against each; 0 for none [5]
	Hierarchic bool    // hierarchical softmax, instead of negative sampling or with it [false]
	MinCount   int     // rarer words are dropped from documents [5]
	Sample     float64 // fraction of all words above which a word is thinned out; 0 never [1e-3]
	Rate       float64 // learning rate at the start [0.025]
	LastRate   float64 // learning rate that the end approaches [1e-4]
	Epochs     int     // [5; 10 for documents]
	// TokenLimit is how many words of a document are read, not counting those that are
	// too rare or thinned out; 0 reads all. gensim silently reads [GensimTokenLimit].
	TokenLimit int
	// Shuffle takes the documents in a random order, a new one in every epoch. gensim
	// takes them as they come, so that a file sorted by class might leak the class into
	// the vectors of documents. experiments/kernels/results has figures for both.
	Shuffle bool
	Seed    uint64
}

// GensimTokenLimit is gensim's MAX_SENTENCE_LEN and MAX_DOCUMENT_LEN.
const GensimTokenLimit = 10000

func (c Config) validate() error {
	switch {
	case c.Dim < 1:
		return fmt.Errorf("word2vec: vectors of %d numbers", c.Dim)
	case c.Window < 0 || c.Negative < 0 || c.MinCount < 0 || c.Epochs < 0 || c.TokenLimit < 0:
		return fmt.Errorf("word2vec: a setting is negative: %+v", c)
	case c.Negative == 0 && !c.Hierarchic:
		return fmt.Errorf("word2vec: neither negative samples nor hierarchical softmax")
	case !(c.Sample >= 0 && c.Sample < 1):
		return fmt.Errorf("word2vec: words above a share of %g are thinned out, want "+
			"0 or a share below 1",
			c.Sample)
	case !(c.Rate > 0 && c.LastRate >= 0 && c.LastRate <= c.Rate && c.Rate <= 1):
		return fmt.Errorf("word2vec: rates from %g to %g", c.Rate, c.LastRate)
	}
	return nil
}

// Model holds the learned vectors.
type Model struct {
	Dim int
	// Words is the row-major matrix [words×Dim]. Rows of words that occur too rarely are
	// zero. DBOW leaves words as they were drawn.
	Words []float32
	// Docs is the row-major matrix [documents×Dim]; nil after SkipGram.
	Docs []float32
}

// SkipGram learns vectors of words, each from the words around it.
func SkipGram(ctx context.Context, c Corpus, cfg Config) (*Model, error) {
	return train(ctx, c, cfg, skipGram)
}

// DBOW learns vectors of documents, each from the words in it in any order: PV-DBOW.
func DBOW(ctx context.Context, c Corpus, cfg Config) (*Model, error) {
	return train(ctx, c, cfg, dbow)
}

// DM learns vectors of documents and words, the mean of which predicts the word in
// their middle: PV-DM with the mean.
func DM(ctx context.Context, c Corpus, cfg Config) (*Model, error) {
	return train(ctx, c, cfg, dm)
}

// The purposes of the random streams of this package.
const (
	purposeLearn random.Purpose = 1<<34 + iota // starting vectors, windows and seeds
	purposeOrder                               // of the documents
	purposeWalk
	purposeLongWalk
)

type kind int

const (
	skipGram kind = iota
	dbow
	dm
)

func train(ctx context.Context, c Corpus, cfg Config, k kind) (*Model, error) {
	t, err := newTrainer(ctx, c, cfg, k)
	if err != nil {
		return nil, err
	}
	rng := random.Stream(cfg.Seed, purposeLearn, 0, 0)
	t.start(rng)
	for epoch := range cfg.Epochs {
		if err := t.epoch(ctx, epoch, randomDraws{rng}); err != nil {
			return nil, err
		}
	}
	return &t.Model, nil
}

// draws gives training its random numbers.
type draws interface {
	// seed returns a state for the generator of negative samples.
	seed() uint64
	// shrink returns by how much each of n windows is smaller, 0..window-1.
	shrink(n, window int) []int
}

type randomDraws struct{ *rand.Rand }

func (r randomDraws) seed() uint64 { return r.Uint64() & lcgMask }

func (r randomDraws) shrink(n, window int) []int {
	s := make([]int, n)
	for i := range s {
		s[i] = r.IntN(window)
	}
	return s
}

// lcg is the generator of word2vec.c and gensim: that of drand48, of which the upper
// 32 of 48 bits are used.
type lcg uint64

const lcgMask = 1<<48 - 1

func (g *lcg) next() uint64 {
	v := uint64(*g) >> 16
	*g = lcg((uint64(*g)*25214903917 + 11) & lcgMask)
	return v
}

type trainer struct {
	Model
	cfg    Config
	kind   kind
	corpus Corpus

	kept       []bool   // words that occur often enough
	keep       []uint32 // 2³² times the probability that an occurrence stays; nil for 1
	byRank     []int32  // kept words, the most frequent first
	cumulative []uint32 // of count^¾ by rank, the last 2³¹-1
	table      []share  // cumulative and byRank, side by side
	guide      []int32  // the first rank to look at for a draw, by its upper bits
	guideShift int      // the number of lower bits
	path       [][]node // of a word in the Huffman tree
	negative   []float32
	inner      []float32 // of the tree's inner nodes

	batch  int // words that share a rate
	rate   float32
	random lcg
	work   []float32
	hidden []float32

	last, next prediction // see inTurn
	words      [ahead]int32
	drawn      []int32 // of words, those that nothing has used
}

// node is an inner node on the path from the root to a word, and the branch that the path takes.
type node struct {
	inner int32
	code  float32
}

func newTrainer(ctx context.Context, c Corpus, cfg Config, k kind) (*trainer, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	if k != dbow && cfg.Window == 0 {
		return nil, fmt.Errorf("word2vec: a window of 0 words")
	}
	t := &trainer{
		Model:  Model{Dim: cfg.Dim},
		cfg:    cfg,
		kind:   k,
		corpus: c,
		batch:  batchWords,
	}
	count, err := countWords(ctx, c)
	if err != nil {
		return nil, err
	}
	// Rank those that occur often enough.
	t.kept = make([]bool, c.Words)
	total := 0
	for w, n := range count {
		if n > 0 && n >= cfg.MinCount {
			t.kept[w] = true
			t.byRank = append(t.byRank, int32(w))
			total += n
		}
	}
	if len(t.byRank) == 0 {
		return nil, fmt.Errorf("word2vec: no word occurs %d times", max(cfg.MinCount, 1))
	}
	slices.SortStableFunc(t.byRank, func(a, b int32) int {
		return cmp.Compare(count[b], count[a])
	})
	if cfg.Sample > 0 {
		t.keep = make([]uint32, c.Words)
		for _, w := range t.byRank {
			t.keep[w] = uint32(
				min(keepProbability(count[w], cfg.Sample*float64(total)), 1) * math.MaxUint32,
			)
		}
	}
	// Tables to draw negative samples from, and the Huffman tree.
	ranked := make([]int, len(t.byRank))
	for r, w := range t.byRank {
		ranked[r] = count[w]
	}
	t.cumulative = cumulative(ranked)
	t.index()
	if cfg.Hierarchic {
		t.path = make([][]node, c.Words)
		for r, p := range huffman(ranked) {
			t.path[t.byRank[r]] = p
		}
	}
	return t, nil
}

// countWords returns how often each word occurs.
func countWords(ctx context.Context, c Corpus) ([]int, error) {
	count := make([]int, c.Words)
	var buf []int32
	for d := range c.Docs {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		buf = c.Doc(d, buf[:0])
		for i, w := range buf {
			if w < 0 || int(w) >= c.Words {
				return nil, fmt.Errorf("word2vec: word %d of document %d is %d, outside 0..%d",
					i, d, w, c.Words-1)
			}
			count[w]++
		}
	}
	return count, nil
}

// keepProbability returns the probability that an occurrence stays of a word that occurs count times.
func keepProbability(count int, threshold float64) float64 {
	n := float64(count)
	return (math.Sqrt(n/threshold) + 1) * threshold / n
}

// cumulative returns the running sum of count^¾, scaled so that the last is 2³¹-1.
func cumulative(counts []int) []uint32 {
	var total float64
	for _, n := range counts {
		total += math.Pow(float64(n), 0.75)
	}
	table := make([]uint32, len(counts))
	var sum float64
	for r, n := range counts {
		sum += math.Pow(float64(n), 0.75)
		table[r] = uint32(math.RoundToEven(sum / total * math.MaxInt32))
	}
	return table
}

// start draws the vectors from U(−1,1)/Dim. Those of the output are zeros.
func (t *trainer) start(rng *rand.Rand) {
	draw := func(rows int) []float32 {
		v := make([]float32, rows*t.Dim)
		simd.HugePages(v)
		for i := range v {
			v[i] = (2*rng.Float32() - 1) / float32(t.Dim)
		}
		return v
	}
	t.Words = draw(t.corpus.Words)
	for w, frequent := range t.kept {
		if !frequent {
			clear(t.row(t.Words, int32(w)))
		}
	}
	if t.kind != skipGram {
		t.Docs = draw(t.corpus.Docs)
	}
	t.allocate()
}

func (t *trainer) allocate() {
	t.negative = make([]float32, t.corpus.Words*t.Dim)
	simd.HugePages(t.negative)
	if t.cfg.Hierarchic {
		t.inner = make([]float32, max(len(t.byRank)-1, 0)*t.Dim)
	}
	t.work = make([]float32, t.Dim)
	t.hidden = make([]float32, t.Dim)
}

func (t *trainer) row(m []float32, i int32) []float32 {
	return m[int(i)*t.Dim : (int(i)+1)*t.Dim]
}

// batchWords is how many words share a rate: gensim's batch_words.
const batchWords = 10000

// epoch goes over all documents once. Batches end where the next document would bring
// them above t.batch words; the rate depends on how many documents the batches before
// them had.
func (t *trainer) epoch(ctx context.Context, epoch int, source draws) error {
	var (
		words   []int32 // of the documents of a job that are used
		docs    []int   // of the job
		ends    []int   // where they end among words
		length  int     // words of the batch, used or not
		buf     []int32
		skipped int // documents of earlier batches
	)
	flush := func() {
		t.job(words, docs, ends, source)
		words = words[:0]
		docs = docs[:0]
		ends = ends[:0]
	}
	var order []int
	if t.cfg.Shuffle {
		order = random.Stream(t.cfg.Seed, purposeOrder, epoch, 0).Perm(t.corpus.Docs)
	}
	t.rate = t.rateAt(epoch, 0)
	seeded := false
	for k := range t.corpus.Docs {
		if err := ctx.Err(); err != nil {
			return err
		}
		d := k
		if order != nil {
			d = order[k]
		}
		buf = t.corpus.Doc(d, buf[:0])
		length += len(buf)
		if length > t.batch && k > skipped {
			if seeded {
				flush()
			}
			skipped = k
			length = len(buf)
			seeded = false
			t.rate = t.rateAt(epoch, skipped)
		}
		if !seeded {
			if t.cfg.Negative > 0 || t.keep != nil {
				t.random = lcg(source.seed())
			}
			seeded = true
		}
		words = t.sample(words, buf)
		docs = append(docs, d)
		ends = append(ends, len(words))
		if t.kind != skipGram { // a generator for each document
			flush()
			seeded = false
		}
	}
	if seeded {
		flush()
	}
	return nil
}

// rateAt returns the learning rate of a batch that comes after some documents of an epoch.
func (t *trainer) rateAt(epoch, docs int) float32 {
	progress := (float64(epoch) + float64(docs)/float64(t.corpus.Docs)) / float64(t.cfg.Epochs)
	return float32(max(t.cfg.Rate-(t.cfg.Rate-t.cfg.LastRate)*progress, t.cfg.LastRate))
}

// sample appends the words of a document that are used.
func (t *trainer) sample(words, doc []int32) []int32 {
	begin := len(words)
	for _, w := range doc {
		if !t.kept[w] || t.keep != nil && t.keep[w] < uint32(t.random.next()) {
			continue
		}
		words = append(words, w)
		if t.cfg.TokenLimit > 0 && len(words)-begin == t.cfg.TokenLimit {
			break
		}
	}
	return words
}

// job trains on documents that share a generator, docs[k] being words up to ends[k].
func (t *trainer) job(words []int32, docs, ends []int, source draws) {
	t.drawn = nil // by another generator
	var shrink []int
	if t.kind != dbow {
		shrink = source.shrink(len(words), t.cfg.Window)
	}
	begin := 0
	for k, end := range ends {
		for i := begin; i < end; i++ {
			if t.kind == dbow { // the document alone predicts its words
				t.inTurn(words[i], t.row(t.Docs, int32(docs[k])))
				continue
			}
			// The window around the word, cut off at the ends of the document.
			reach := t.cfg.Window - shrink[i]
			context := words[max(begin, i-reach):min(end, i+reach+1)]
			center := min(reach, i-begin) // place of i among them
			if t.kind == dm {
				t.predictMean(words[i], t.row(t.Docs, int32(docs[k])), context, center)
				continue
			}
			for j, c := range context {
				if j != center {
					t.inTurn(words[i], t.row(t.Words, c))
				}
			}
		}
		begin = end
	}
	t.settle()
}

// prediction is the task to predict a word from the vector in.
type prediction struct {
	word    int32
	in      []float32
	outputs []int32 // the word, and those drawn against it
}

// prepare draws the words for a prediction and prefetches their vectors. Those of a large
// vocabulary are in no cache, and each would be waited for in turn.
func (t *trainer) prepare(p *prediction, word int32, input []float32) {
	p.word = word
	p.in = input
	p.outputs = p.outputs[:0]
	if t.cfg.Negative == 0 {
		return
	}
	p.outputs = append(p.outputs, word)
	for range t.cfg.Negative {
		if sample := t.draw(); sample != word {
			p.outputs = append(p.outputs, sample)
		}
	}
	for _, w := range p.outputs {
		simd.Prefetch(t.row(t.negative, w))
	}
}

// predict takes one step for a prediction and leaves the change of its input vector in
// t.work. If apply, it also makes that change, which the output vectors before the step
// determine.
func (t *trainer) predict(p *prediction, apply bool) {
	clear(t.work)
	if t.cfg.Hierarchic {
		for _, n := range t.path[p.word] {
			t.step(p.in, t.row(t.inner, n.inner), 1-n.code)
		}
		if apply { // gensim finishes this before it samples
			simd.Axpy(1, t.work, p.in)
			clear(t.work)
		}
	}
	target := float32(1)
	for _, w := range p.outputs {
		t.step(p.in, t.row(t.negative, w), target)
		target = 0
	}
	if apply && t.cfg.Negative > 0 {
		simd.Axpy(1, t.work, p.in)
	}
}

// inTurn predicts a word from input, but only at the next call or at settle. Until then,
// while the prediction before it is computed, its vectors have time to arrive.
func (t *trainer) inTurn(word int32, input []float32) {
	t.prepare(&t.next, word, input)
	t.settle() // the one before
	t.last, t.next = t.next, t.last
}

func (t *trainer) settle() {
	if t.last.in != nil {
		t.predict(&t.last, true)
		t.last.in = nil
	}
}

// predictMean predicts a word from the mean of a document's vector and the vectors of the
// context, without the word at center. Each of them takes the whole change.
func (t *trainer) predictMean(word int32, doc []float32, context []int32, center int) {
	clear(t.hidden)
	for j, c := range context {
		if j != center {
			simd.Axpy(1, t.row(t.Words, c), t.hidden)
		}
	}
	simd.Axpy(1, doc, t.hidden)
	simd.Scale(t.hidden, 1/float32(len(context)), t.hidden)
	t.prepare(&t.next, word, t.hidden)
	t.predict(&t.next, false)
	simd.Axpy(1, t.work, doc)
	for j, c := range context {
		if j != center {
			simd.Axpy(1, t.work, t.row(t.Words, c))
		}
	}
}

// step moves the output vector out so that σ(input·out) comes closer to target, and adds
// the change of input to t.work.
func (t *trainer) step(input, out []float32, target float32) {
	dot := simd.Dot(input, out)
	if dot <= -maxDot || dot >= maxDot {
		return
	}
	g := (target - sigmoidTable[int((dot+maxDot)*(tableSize/maxDot/2))]) * t.rate
	simd.Axpy(g, out, t.work)
	simd.Axpy(g, input, out)
}

// draw returns a word with a probability in proportion to count^¾.
func (t *trainer) draw() int32 {
	if len(t.drawn) == 0 {
		t.drawn = t.drawAhead()
	}
	w := t.drawn[0]
	t.drawn = t.drawn[1:]
	return w
}

// ahead is how many words are drawn at once. The tables of a large vocabulary are in no
// cache, either; in loops without a branch, the processor looks up several entries at a
// time.
const ahead = 64

func (t *trainer) drawAhead() []int32 {
	var x, rank [ahead]uint32
	sum := uint64(t.cumulative[len(t.cumulative)-1])
	for i := range x {
		x[i] = uint32(t.random.next() % sum)
		rank[i] = uint32(t.guide[x[i]>>t.guideShift])
	}
	for i := range rank { // one word further is mostly far enough
		if t.table[rank[i]].upTo < x[i] {
			rank[i]++
		}
	}
	for i, r := range rank {
		for t.table[r].upTo < x[i] {
			r++
		}
		t.words[i] = t.table[r].word
	}
	return t.words[:]
}

// share is a word and the largest number that draws it.
type share struct {
	upTo uint32
	word int32
}

// index makes the table and the guide to it, which has two to four entries a word, so that
// one look-up is mostly enough.
func (t *trainer) index() {
	t.table = make([]share, len(t.cumulative))
	for r, upTo := range t.cumulative {
		t.table[r] = share{upTo, t.byRank[r]}
	}
	t.guideShift = max(31-bits.Len(uint(2*len(t.table))), 0)
	t.guide = make([]int32, math.MaxInt32>>t.guideShift+1)
	r := int32(0)
	for b := range t.guide {
		for t.cumulative[r] < uint32(b)<<t.guideShift {
			r++
		}
		t.guide[b] = r
	}
}

const (
	maxDot    = 6
	tableSize = 1000
)

// sigmoidTable has σ(x) for x = −6, −5.988, …, 5.988.
var sigmoidTable = func() (table [tableSize]float32) {
	for i := range table {
		e := float32(math.Exp((float64(i)/tableSize*2 - 1) * maxDot))
		table[i] = e / (e + 1)
	}
	return table
}()

// huffman returns the path of every word in the Huffman tree of the counts. Among equal
// weights, the word or inner node that came first is taken first.
func huffman(counts []int) [][]node {
	n := len(counts)
	weight := slices.Clone(counts)     // of words, then of inner nodes
	children := make([][2]int, 0, n-1) // of inner nodes, in the order of their making
	// two queues, both ascending in weight
	words := make([]int, n)
	inner := []int{}
	for i := range words {
		words[i] = i
	}
	slices.SortStableFunc(words, func(a, b int) int {
		return cmp.Compare(weight[a], weight[b])
	})
	lightest := func() int {
		q := &words
		if len(words) == 0 || len(inner) > 0 && weight[inner[0]] < weight[words[0]] {
			q = &inner
		}
		x := (*q)[0]
		*q = (*q)[1:]
		return x
	}
	for len(children) < n-1 {
		a := lightest()
		b := lightest()
		children = append(children, [2]int{a, b})
		inner = append(inner, len(weight))
		weight = append(weight, weight[a]+weight[b])
	}
	paths := make([][]node, n+len(children))
	for k := len(children) - 1; k >= 0; k-- { // parents before their children
		for code, c := range children[k] {
			paths[c] = append(slices.Clone(paths[n+k]), node{int32(k), float32(code)})
		}
	}
	return paths[:n]
}
