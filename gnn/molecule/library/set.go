package library

import (
	"fmt"
	"math"
	"math/bits"

	"github.com/specmatch/specmatch/gnn/molecule"
	"github.com/specmatch/specmatch/gnn/molecule/fingerprint"
)

// Set is a list of molecules, each known by its fingerprint or its vector. Several goroutines may call its
// methods at once.
type Set interface {
	// Len returns the number of molecules.
	Len() int
	// Similarity returns the similarity of two molecules.
	Similarity(i, j int) float64
	// Search adds the molecules from begin to before end to best, by their similarity to molecule q
	// of queries. Their index in the set plus offset becomes [Hit.Index]. It panics unless queries
	// is a set of the same kind.
	Search(best *Best, queries Set, q, begin, end, offset int)

	// appendFrom appends molecule i of a set of the same kind.
	appendFrom(set Set, i int)

	columns() int // of the matrix that PCA sees
	// calls see for the numbers of a row that are not 0
	visit(i int, see func(column int, value float64))
	neighbours(i int, least float64, see func(j int, s float64)) // calls see for each j < i that is similar
}

// Append appends molecule i of a set to another one of the same kind and size, or to itself.
func Append(dst, src Set, i int) { dst.appendFrom(src, i) }

// Bits is a set of Morgan bits, 64 to a word, with Tanimoto's similarity: the bits that two
// molecules share, over those that one of them has. Two molecules without any bit have the
// similarity 1.
type Bits struct {
	morgan fingerprint.Morgan
	folded []float32
	words  int      // of a molecule
	packed []uint64 // [molecules×words]
	ones   []int32  // of each molecule
}

// NewBits returns an empty set of fingerprints of a radius, folded to a number of bits above 0.
func NewBits(radius, size int) *Bits {
	return &Bits{
		morgan: fingerprint.Morgan{Radius: radius},
		folded: make([]float32, size),
		words:  (size + 63) / 64,
	}
}

// Add appends a molecule.
func (b *Bits) Add(m *molecule.Molecule) {
	b.morgan.Fold(b.folded, m, true)
	start := len(b.packed)
	b.packed = append(b.packed, make([]uint64, b.words)...)
	row := b.packed[start:]
	ones := int32(0)
	for k, v := range b.folded {
		if v > 0 {
			row[k/64] |= 1 << (k % 64)
			ones++
		}
	}
	b.ones = append(b.ones, ones)
}

func (b *Bits) appendFrom(set Set, i int) {
	source := set.(*Bits)
	b.packed = append(b.packed, source.row(i)...)
	b.ones = append(b.ones, source.ones[i])
}

// Reset removes all molecules.
func (b *Bits) Reset() {
	b.packed = b.packed[:0]
	b.ones = b.ones[:0]
}

// Len implements [Set].
func (b *Bits) Len() int { return len(b.ones) }

func (b *Bits) row(i int) []uint64 { return b.packed[i*b.words : (i+1)*b.words] }

// Similarity implements [Set].
func (b *Bits) Similarity(i, j int) float64 {
	return tanimoto(common(b.row(i), b.row(j)), int(b.ones[i]+b.ones[j]))
}

// tanimoto returns the similarity of two fingerprints with these bits in common and in both together.
func tanimoto(common, sum int) float64 {
	if sum == 0 {
		return 1
	}
	return float64(common) / float64(sum-common)
}

// common returns the number of bits that two fingerprints of the same length share.
func common(a, b []uint64) (n int) {
	for len(a) >= 4 && len(b) >= 4 {
		n += bits.OnesCount64(a[0]&b[0]) +
			bits.OnesCount64(a[1]&b[1]) +
			bits.OnesCount64(a[2]&b[2]) +
			bits.OnesCount64(a[3]&b[3])
		a = a[4:]
		b = b[4:]
	}
	for k, word := range a {
		n += bits.OnesCount64(word & b[k])
	}
	return n
}

// Search implements [Set].
func (b *Bits) Search(best *Best, queries Set, q, begin, end, offset int) {
	source := queries.(*Bits)
	if source.words != b.words {
		panic(fmt.Sprintf("library: a query of %d words, for a set of %d", source.words, b.words))
	}
	query := source.row(q)
	ones := source.ones[q]
	b.compare(query, ones, begin, end, best.least, func(i int, s float64) float64 {
		best.Add(i+offset, s)
		return best.least
	})
}

// compare calls see for the molecules from begin to before end whose similarity to a query is at
// least least, which see may raise. A fingerprint with far fewer or more bits than the query is not
// looked at, since the smaller number bounds what both share.
func (b *Bits) compare(
	query []uint64, ones int32, begin, end int, least float64, see func(i int, s float64) float64,
) {
	smallest, largest := bounds(ones, least)
	for i := begin; i < end; i++ {
		n := b.ones[i]
		if n < smallest || n > largest {
			continue
		}
		s := tanimoto(common(query, b.row(i)), int(ones+n))
		if s < least {
			continue
		}
		if raised := see(i, s); raised > least {
			least = raised
			smallest, largest = bounds(ones, least)
		}
	}
}

// bounds returns the smallest and the largest number of bits of a fingerprint whose similarity to
// one with some ones may reach least. Rounding may make them wider by one.
func bounds(ones int32, least float64) (smallest, largest int32) {
	if least <= 0 {
		return 0, math.MaxInt32
	}
	smallest = int32(max(0, math.Floor(least*float64(ones))))
	largest = int32(min(math.MaxInt32, math.Ceil(float64(ones)/least)))
	return smallest, largest
}

func (b *Bits) neighbours(i int, least float64, see func(j int, s float64)) {
	b.compare(b.row(i), b.ones[i], 0, i, least, func(j int, s float64) float64 {
		see(j, s)
		return least
	})
}

func (b *Bits) columns() int { return len(b.folded) }

func (b *Bits) visit(i int, see func(column int, value float64)) {
	for w, word := range b.row(i) {
		for ; word != 0; word &= word - 1 {
			see(64*w+bits.TrailingZeros64(word), 1)
		}
	}
}

// Counts is a set of Morgan counts, which are not folded, with Tanimoto's similarity: the sum of
// the smaller counts of two molecules over that of the larger ones. It is 0 for two molecules
// without any.
type Counts struct {
	morgan fingerprint.Morgan
	counts []fingerprint.Count // of all molecules
	starts []int               // of each molecule in counts, and the end
	totals []int32
}

// NewCounts returns an empty set of fingerprints of a radius.
func NewCounts(radius int) *Counts {
	return &Counts{
		morgan: fingerprint.Morgan{Radius: radius},
		starts: []int{0},
	}
}

// Add appends a molecule.
func (c *Counts) Add(m *molecule.Molecule) {
	total := int32(0)
	for _, count := range c.morgan.Counts(m) {
		c.counts = append(c.counts, count)
		total += count.N
	}
	c.starts = append(c.starts, len(c.counts))
	c.totals = append(c.totals, total)
}

func (c *Counts) appendFrom(set Set, i int) {
	source := set.(*Counts)
	c.counts = append(c.counts, source.row(i)...)
	c.starts = append(c.starts, len(c.counts))
	c.totals = append(c.totals, source.totals[i])
}

// Reset removes all molecules.
func (c *Counts) Reset() {
	c.counts = c.counts[:0]
	c.starts = c.starts[:1]
	c.totals = c.totals[:0]
}

// Len implements [Set].
func (c *Counts) Len() int { return len(c.totals) }

func (c *Counts) row(i int) []fingerprint.Count { return c.counts[c.starts[i]:c.starts[i+1]] }

// Similarity implements [Set].
func (c *Counts) Similarity(i, j int) float64 { return c.to(c, i, j) }

// to returns the similarity of molecule i to molecule q of queries.
func (c *Counts) to(queries *Counts, i, q int) float64 {
	return fingerprint.Tanimoto(c.row(i), queries.row(q), c.totals[i]+queries.totals[q])
}

// Search implements [Set].
func (c *Counts) Search(best *Best, queries Set, q, begin, end, offset int) {
	source := queries.(*Counts)
	for i := begin; i < end; i++ {
		smallest, largest := bounds(source.totals[q], best.least)
		if n := c.totals[i]; n >= smallest && n <= largest {
			best.Add(i+offset, c.to(source, i, q))
		}
	}
}

func (c *Counts) neighbours(i int, least float64, see func(j int, s float64)) {
	smallest, largest := bounds(c.totals[i], least)
	for j := range i {
		if c.totals[j] < smallest || c.totals[j] > largest {
			continue
		}
		if s := c.Similarity(i, j); s >= least {
			see(j, s)
		}
	}
}

// foldedCounts is the number of columns that PCA sees of counts.
const foldedCounts = 2048

func (c *Counts) columns() int { return foldedCounts }

func (c *Counts) visit(i int, see func(column int, value float64)) {
	for _, count := range c.row(i) {
		see(int(count.ID%foldedCounts), float64(count.N))
	}
}

// Vectors is a set of vectors, with the cosine of two of them as their similarity. A vector of zeros has the
// similarity 0 to all.
type Vectors struct {
	width int
	rows  []float32 // of unit length, [molecules×width]
	plain []float32 // as they were added
}

// NewVectors returns an empty set of vectors with this many numbers.
func NewVectors(width int) *Vectors { return &Vectors{width: width} }

// Add appends a vector.
func (v *Vectors) Add(row []float64) {
	if len(row) != v.width {
		panic(fmt.Sprintf("library: a vector of %d numbers, want %d", len(row), v.width))
	}
	squares := 0.0
	for _, x := range row {
		squares += x * x
	}
	scale := 0.0
	if squares > 0 {
		scale = 1 / math.Sqrt(squares)
	}
	for _, x := range row {
		v.rows = append(v.rows, float32(x*scale))
		v.plain = append(v.plain, float32(x))
	}
}

func (v *Vectors) appendFrom(set Set, i int) {
	source := set.(*Vectors)
	v.rows = append(v.rows, source.row(i)...)
	v.plain = append(v.plain, source.plain[i*v.width:(i+1)*v.width]...)
}

// Reset removes all vectors.
func (v *Vectors) Reset() {
	v.rows = v.rows[:0]
	v.plain = v.plain[:0]
}

// Len implements [Set].
func (v *Vectors) Len() int { return len(v.rows) / max(1, v.width) }

func (v *Vectors) row(i int) []float32 { return v.rows[i*v.width : (i+1)*v.width] }

// Similarity implements [Set].
func (v *Vectors) Similarity(i, j int) float64 { return dot(v.row(i), v.row(j)) }

// dot returns the inner product of two vectors, in an order of its own.
func dot(a, b []float32) float64 {
	var sums [4]float64
	for len(a) >= 4 && len(b) >= 4 {
		sums[0] += float64(a[0] * b[0])
		sums[1] += float64(a[1] * b[1])
		sums[2] += float64(a[2] * b[2])
		sums[3] += float64(a[3] * b[3])
		a = a[4:]
		b = b[4:]
	}
	for k, x := range a {
		sums[0] += float64(x * b[k])
	}
	return sums[0] + sums[1] + (sums[2] + sums[3])
}

// Search implements [Set].
func (v *Vectors) Search(best *Best, queries Set, q, begin, end, offset int) {
	query := queries.(*Vectors).row(q)
	for i := begin; i < end; i++ {
		best.Add(i+offset, dot(v.row(i), query))
	}
}

func (v *Vectors) neighbours(i int, least float64, see func(j int, s float64)) {
	for j := range i {
		if s := v.Similarity(i, j); s >= least {
			see(j, s)
		}
	}
}

func (v *Vectors) columns() int { return v.width }

func (v *Vectors) visit(i int, see func(column int, value float64)) {
	for k, x := range v.plain[i*v.width : (i+1)*v.width] {
		if x != 0 {
			see(k, float64(x))
		}
	}
}
