package dataset

import (
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/mathext/prng"
)

// Fold is a split of the samples 0..n-1 into a training and a test set, both ascending.
type Fold struct {
	Train, Test []int
}

// KFold splits 0..n-1 into k folds at random, whatever the classes: scikit-learn's
// KFold(k, shuffle=True, random_state=seed). It panics unless 1 ≤ k ≤ n.
func KFold(n, k int, seed uint32) []Fold {
	if k < 1 || k > n {
		panic(fmt.Sprintf("dataset: KFold: %d folds of %d samples", k, n))
	}
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	NewRandomState(seed).Shuffle(order)
	folds := make([]Fold, k)
	for f := range folds {
		size := n / k
		if f < n%k {
			size++
		}
		folds[f].Test = slices.Sorted(slices.Values(order[:size]))
		order = order[size:]
		for i := range n {
			if _, inTest := slices.BinarySearch(folds[f].Test, i); !inTest {
				folds[f].Train = append(folds[f].Train, i)
			}
		}
	}
	return folds
}

// StratifiedKFold splits the samples into k folds of nearly equal size, each with nearly
// the class proportions of the whole. It returns for each fold the samples inside (Test)
// and outside it (Train).
//
// The indices are exactly those of scikit-learn's StratifiedKFold(k, shuffle,
// random_state=seed), checked against version 1.2.1, so that published protocols can be
// followed to the sample. Unshuffled, the samples of a class are dealt out in their order;
// shuffled, the order comes from NewRandomState(seed). The seed has no effect without
// shuffle.
//
// It returns an error if k < 2 or there are fewer than k samples. A class with fewer than k
// members occurs in as many folds as it has members. scikit-learn warns then, and refuses
// if every class has fewer. [SmallestClass] lets a caller check.
func StratifiedKFold(labels []int, k int, shuffle bool, seed uint32) ([]Fold, error) {
	if k < 2 {
		return nil, fmt.Errorf("dataset: StratifiedKFold: %d folds, want at least 2", k)
	}
	if k > len(labels) {
		return nil, fmt.Errorf("dataset: StratifiedKFold: %d folds of only %d samples", k, len(labels))
	}
	// Classes are numbered in order of appearance, because scikit-learn shuffles
	// them in that order.
	number := make(map[int]int)
	class := make([]int, len(labels))
	var count []int
	for i, v := range labels {
		c, ok := number[v]
		if !ok {
			c = len(count)
			number[v] = c
			count = append(count, 0)
		}
		class[i] = c
		count[c]++
	}

	// Sort the samples by class and deal them out in turn: the sample at place p goes
	// to fold p mod k. deal[c] lists the folds of class c.
	var rng *RandomState
	if shuffle {
		rng = NewRandomState(seed)
	}
	deal := make([][]int, len(count))
	place := 0
	for c, n := range count {
		for range n {
			deal[c] = append(deal[c], place%k)
			place++
		}
		slices.Sort(deal[c])
		if shuffle {
			rng.Shuffle(deal[c])
		}
	}
	// Each sample takes the next fold of its class.
	folds := make([]Fold, k)
	for i, c := range class {
		test := deal[c][0]
		deal[c] = deal[c][1:]
		for f := range folds {
			if f == test {
				folds[f].Test = append(folds[f].Test, i)
			} else {
				folds[f].Train = append(folds[f].Train, i)
			}
		}
	}
	return folds, nil
}

// SmallestClass returns the label with the fewest members, in a tie the smaller one,
// and the number of its members; 0, 0 if there are no labels.
func SmallestClass(labels []int) (label, members int) {
	count := make(map[int]int)
	for _, v := range labels {
		count[v]++
	}
	for v, n := range count {
		if members == 0 || n < members || n == members && v < label {
			label = v
			members = n
		}
	}
	return label, members
}

// RandomState is NumPy's legacy generator numpy.random.RandomState(seed), as far as
// scikit-learn's splitters use it. It exists to repeat published splits to the sample;
// use [rand.Rand] for anything else.
type RandomState struct {
	mt prng.MT19937
}

// NewRandomState returns the generator with NumPy's seeding by one integer
// (init_genrand of the Mersenne Twister).
func NewRandomState(seed uint32) *RandomState {
	r := new(RandomState)
	r.mt.Seed(uint64(seed))
	return r
}

// Uint32 returns the next 32 random bits.
func (r *RandomState) Uint32() uint32 { return r.mt.Uint32() }

// Intn returns a number in 0..n-1 by masked rejection: the bits needed for n-1
// are drawn until they are in range (NumPy's random_interval(n-1)). It panics
// if n is outside 1..1<<31-1.
func (r *RandomState) Intn(n int) int {
	if n < 1 || n > 1<<31-1 {
		panic(fmt.Sprintf("dataset: RandomState.Intn: n = %d, want 1 to 1<<31-1", n))
	}
	if n == 1 {
		return 0 // without a draw
	}
	mask := uint32(1)<<bits.Len(uint(n-1)) - 1
	for {
		if v := int(r.Uint32() & mask); v < n {
			return v
		}
	}
}

// Shuffle permutes p as RandomState.shuffle does a one-dimensional array.
func (r *RandomState) Shuffle(p []int) {
	for i := len(p) - 1; i > 0; i-- {
		j := r.Intn(i + 1)
		p[i], p[j] = p[j], p[i]
	}
}

// Permutation fills dst with the numbers 0..n-1 in an order drawn from rng, growing it
// if necessary, and returns it. Every order is equally likely. A training loop that
// passes the slice of the last epoch does not allocate.
func Permutation(dst []int, n int, rng *rand.Rand) []int {
	dst = slices.Grow(dst[:0], n)[:n]
	for i := range dst {
		dst[i] = i
	}
	rng.Shuffle(n, func(i, j int) { dst[i], dst[j] = dst[j], dst[i] })
	return dst
}

// RandomSplit splits n samples into 80, 10 and 10 %, in an order drawn from rng.
func RandomSplit(n int, rng *rand.Rand) Split {
	order := Permutation(nil, n, rng)
	train := n * 8 / 10
	valid := n * 9 / 10
	return Split{Train: order[:train], Valid: order[train:valid], Test: order[valid:]}
}

// Split is a split of the samples 0..n-1 into a training, a validation and a test set.
type Split struct {
	Train, Valid, Test []int
}

// Check returns an error if one of the sets is empty, as happens where most molecules share a
// scaffold, or if no graph of the training set is labelled: nothing could be trained or measured.
// n is the number of all graphs.
func (s Split) Check(n int, labelled func(i int) bool) error {
	train, valid, test := len(s.Train), len(s.Valid), len(s.Test)
	if min(train, valid, test) == 0 {
		return fmt.Errorf(
			"its %d graphs are split into %d for training, %d for validation and %d for testing; want "+
				"some in every set",
			n, train, valid, test,
		)
	}
	if !slices.ContainsFunc(s.Train, labelled) {
		return fmt.Errorf("none of the %d graphs to train on has a label", len(s.Train))
	}
	return nil
}

// Few labels need at least so many graphs, in all and of a class, for results to mean anything.
const (
	minLabelled = 15
	minPerClass = 2
)

// FewLabels splits a data set for semi-supervised learning, once for each fold, as GraphCL's code
// does. Fold k is the test set and, if validate, the fold before it the validation set. The
// training set, whose labels are known, is the first of 1/rate stratified parts of all other
// graphs. It returns an error if 1/rate is not a whole number, if the training set has fewer than
// 15 graphs or fewer than 2 of a class, or if there are too few or too many folds.
func FewLabels(ds *Dataset, folds int, rate float64, validate bool, seed uint32) ([]Split, error) {
	parts := int(math.Round(1 / rate))
	if parts < 2 || math.Abs(1/rate-float64(parts)) > 1e-6 {
		return nil, fmt.Errorf(
			"a label rate of %v: want one over a whole number of at least 2, as 0.1 and 0.01",
			rate,
		)
	}
	if validate && folds < 3 {
		return nil, fmt.Errorf(
			"%d folds: one is for testing, another for validation and the rest for "+
				"training; want at least 3",
			folds,
		)
	}
	labels := ds.Labels()
	outer, err := StratifiedKFold(labels, folds, true, seed)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", ds.Name, err)
	}
	splits := make([]Split, folds)
	for k := range outer {
		s := Split{Test: outer[k].Test}
		if validate {
			s.Valid = outer[(k+folds-1)%folds].Test
		}
		var pool, poolLabels []int
		for _, i := range outer[k].Train {
			if !slices.Contains(s.Valid, i) {
				pool = append(pool, i)
				poolLabels = append(poolLabels, labels[i])
			}
		}
		class, members := SmallestClass(poolLabels)
		if n := len(pool) / parts; n < minLabelled || members/parts < minPerClass {
			return nil, fmt.Errorf("%s is too small for a label rate of 1/%d: of %d graphs to choose "+
				"from, %d would have a label, and %d of class %d; want at least %d, and %d of "+
				"every class",
				ds.Name,
				parts,
				len(pool),
				n,
				members/parts,
				ds.ClassValues[class],
				minLabelled,
				minPerClass,
			)
		}
		inner, err := StratifiedKFold(poolLabels, parts, true, seed)
		if err != nil {
			return nil, fmt.Errorf("%s, a label rate of %v: %w", ds.Name, rate, err)
		}
		for _, i := range inner[0].Test {
			s.Train = append(s.Train, pool[i])
		}
		splits[k] = s
	}
	return splits, nil
}

// ScaffoldSplit splits molecules so that those of one scaffold stay together: the test
// set has scaffolds that training has not seen. scaffolds[i] identifies the scaffold of
// molecule i; train and valid are the fractions of the training and the validation set,
// 0.8 and 0.1 in the literature.
//
// Groups of equal scaffold are taken from the largest to the smallest; among groups of one
// size, that with the last first member comes first. Each group goes to Train if that stays
// within its fraction, otherwise to Valid if both together stay within theirs, otherwise to
// Test. Nothing is random. The sets list their groups in this order. It is the split of
// Hu et al. (2020), index by index.
//
// It returns an error if a fraction is negative or both together exceed 1.
func ScaffoldSplit[S comparable](scaffolds []S, train, valid float64) (Split, error) {
	return ScaffoldSplitIn(scaffolds, train, valid, nil)
}

// ScaffoldSplitIn is [ScaffoldSplit] with groups of at most a twentieth of the molecules in an
// order drawn from rng, unless that is nil, as in chemprop.
func ScaffoldSplitIn[S comparable](scaffolds []S, train, valid float64, rng *rand.Rand) (Split, error) {
	if !(train >= 0 && valid >= 0 && train+valid <= 1+1e-9) {
		return Split{}, fmt.Errorf(
			"dataset: ScaffoldSplit: fractions %v and %v; want two that are not negative and at most "+
				"1 together",
			train, valid,
		)
	}
	// The groups, in the order of the split of Hu et al.
	index := make(map[S]int)
	var groups [][]int
	for i, s := range scaffolds {
		g, ok := index[s]
		if !ok {
			g = len(groups)
			index[s] = g
			groups = append(groups, nil)
		}
		groups[g] = append(groups[g], i)
	}
	slices.SortFunc(groups, func(a, b []int) int {
		if len(a) != len(b) {
			return len(b) - len(a)
		}
		return b[0] - a[0]
	})
	n := float64(len(scaffolds))
	if rng != nil {
		large := 0
		for large < len(groups) && float64(len(groups[large])) > n/20 {
			large++
		}
		small := groups[large:]
		rng.Shuffle(len(small), func(i, j int) {
			small[i], small[j] = small[j], small[i]
		})
	}
	// The first set that has room takes a group.
	var s Split
	for _, g := range groups {
		switch {
		case float64(len(s.Train)+len(g)) <= train*n:
			s.Train = append(s.Train, g...)
		case float64(len(s.Train)+len(s.Valid)+len(g)) <= (train+valid)*n:
			s.Valid = append(s.Valid, g...)
		default:
			s.Test = append(s.Test, g...)
		}
	}
	return s, nil
}
