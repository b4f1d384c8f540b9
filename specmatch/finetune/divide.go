package finetune

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/gnn/random"
	"github.com/specmatch/specmatch/specmatch/model"
)

// The divisions, into 80, 10 and 10 %.
const (
	Random     = "random"     // in an order that the seed decides
	Stratified = "stratified" // random, with every class in each part, see [Examples.Divide]
	Scaffold   = "scaffold"   // of molecules: a scaffold is in one part only, see [dataset.ScaffoldSplit]
	// StratifiedScaffold deals scaffolds out, in an order that the seed decides, so that every
	// part comes as near to its share of each class as whole scaffolds allow.
	StratifiedScaffold = "stratified-scaffold"
)

// The parts that a file may have.
const (
	valid = "valid"
	test  = "test"
)

// The purposes of random streams: of divisions, and of a model's first weights.
const (
	purposeSplit random.Purpose = 1<<32 + 16 + iota
	purposeHead
)

func (t Task) byScaffold() bool { return t.Split == Scaffold || t.Split == StratifiedScaffold }

// given returns the part whose file has a record; "" for the file that is divided.
func (x *Examples) given(i int) (part string) {
	first := -1
	for p, from := range x.first {
		if from <= i && from > first {
			part = p
			first = from
		}
	}
	return part
}

// labelled returns the records that have a target, by the part that their file is.
func (x *Examples) labelled() map[string][]int {
	of := map[string][]int{}
	for i, n := 0, len(x.Targets); i < len(x.Records); i++ {
		if slices.ContainsFunc(x.Y[i*n:(i+1)*n], func(y float64) bool { return !math.IsNaN(y) }) {
			part := x.given(i)
			of[part] = append(of[part], i)
		}
	}
	return of
}

// Divide divides the records that have a target; Test is in the order of the file. It is
// an error if a part is empty.
//
// Stratified, the records of each class are divided alike, and one with several yes-or-no
// tasks counts as the rarest of its answers. Where classes are at most a tenth as many as
// records, each with three members or more is in every part.
//
// A part that has a file is all of it. Where only one has, a ninth of the first file is the
// other, as with [Examples.Fold].
func (x *Examples) Divide(seed uint64) (s dataset.Split, err error) {
	of := x.labelled()
	rng := random.Stream(seed, purposeSplit, 0, 0)
	labelled := of[""]
	s.Valid, s.Test = of[valid], of[test]
	if len(x.first) > 0 {
		s.Train = labelled
		for part, to := range map[string]*[]int{valid: &s.Valid, test: &s.Test} {
			if _, ok := x.first[part]; !ok {
				parts := x.deal(labelled, []float64{8. / 9, 1. / 9}, rng)
				s.Train, *to = parts[0], parts[1]
			}
		}
		return s, x.whole(&s)
	}
	switch x.Split {
	case Random:
		s = dataset.RandomSplit(len(labelled), rng)
	case Stratified:
		s = x.stratified(labelled, rng)
	case Scaffold:
		scaffolds := make([]string, len(labelled))
		for k, i := range labelled {
			scaffolds[k] = x.Records[i].Scaffold
		}
		s, err = dataset.ScaffoldSplit(scaffolds, 0.8, 0.1)
		if err != nil {
			return s, err
		}
	case StratifiedScaffold:
		parts := x.deal(labelled, []float64{0.8, 0.1, 0.1}, rng)
		s = dataset.Split{Train: parts[0], Valid: parts[1], Test: parts[2]}
		return s, x.whole(&s)
	default:
		parts := map[string]*[]int{"train": &s.Train, valid: &s.Valid, test: &s.Test}
		for k, i := range labelled {
			r := x.Records[i]
			v := strings.TrimSpace(r.Fields[len(x.Targets)])
			part, ok := parts[v]
			if !ok {
				return s, fmt.Errorf("%s:%d: column %s: %q; want train, valid or test",
					x.path, r.Line, x.Split, v)
			}
			*part = append(*part, k)
		}
	}
	for _, part := range [][]int{s.Train, s.Valid, s.Test} {
		for k, i := range part {
			part[k] = labelled[i]
		}
	}
	return s, x.whole(&s)
}

// Fold returns division f of k: each record is in the test part of one of them. An eighth of
// the others validates. Classes are dealt out evenly, rare ones first, and of a split by
// scaffold whole scaffolds are.
func (x *Examples) Fold(seed uint64, f, k int) (s dataset.Split, err error) {
	labelled := x.labelled()[""]
	switch {
	case len(x.first) > 0 ||
		!slices.Contains([]string{Random, Stratified, Scaffold, StratifiedScaffold}, x.Split):
		return s, fmt.Errorf("%s: folds are of one file, by a random, stratified or scaffold split", x.path)
	case f < 0 || f >= k || k < 2 || k > len(labelled):
		return s, fmt.Errorf("%s: fold %d of %d, of %d records with a target", x.path, f+1, k, len(labelled))
	}
	rng := random.Stream(seed, purposeSplit, 0, 0)
	folds := x.deal(labelled, slices.Repeat([]float64{1 / float64(k)}, k), rng)
	s.Test = folds[f]
	rest := slices.Sorted(slices.Values(slices.Concat(slices.Delete(folds, f, f+1)...)))
	parts := x.deal(rest, []float64{7. / 8, 1. / 8}, random.Stream(seed, purposeSplit, f+1, 0))
	s.Train, s.Valid = parts[0], parts[1]
	return s, x.whole(&s)
}

// whole sorts the test part, and returns an error if a part is empty.
func (x *Examples) whole(s *dataset.Split) error {
	slices.Sort(s.Test)
	n := len(s.Train)
	v := len(s.Valid)
	t := len(s.Test)
	if n == 0 || v == 0 || t == 0 {
		return fmt.Errorf("%s: the split %s divides its %d records with a target into %d to train on, "+
			"%d to validate and %d to test; want some in every part", x.path, x.Split, n+v+t, n, v, t)
	}
	return nil
}

// answer is a class, or a yes or a no in a task.
type answer struct {
	task int
	y    float64
}

// answers returns those of a record; numbers have none.
func (x *Examples) answers(i int) (all []answer) {
	for t, n := 0, len(x.Targets); t < n && x.Kind != model.Regression; t++ {
		if y := x.Y[i*n+t]; !math.IsNaN(y) {
			all = append(all, answer{t, y})
		}
	}
	return all
}

// deal divides records into parts with these shares, which add up to 1. What belongs
// together, by the split, stays so. One group after another, from the one with the largest
// share of an answer or of all records, goes to the part that this brings nearest to what it
// is to have of each answer and of all records, by χ² (Sechidis, Tsoumakas and Vlahavas, On
// the stratification of multi-label data, 2011, with another distance, and with groups).
func (x *Examples) deal(labelled []int, shares []float64, rng *rand.Rand) [][]int {
	type group struct {
		members []int
		answers []int           // that its members have, in order; 0 stands for a record
		count   map[int]float64 // of each answer
		share   float64         // the largest that it has of an answer or of the records
	}
	var groups []*group
	number := map[answer]int{}
	at := map[string]*group{}
	total := []float64{0}
	for _, k := range dataset.Permutation(nil, len(labelled), rng) {
		r := x.Records[labelled[k]]
		g := at[r.Scaffold]
		if g == nil || !x.byScaffold() {
			g = &group{count: map[int]float64{}}
			groups = append(groups, g)
			at[r.Scaffold] = g
		}
		has := []int{0}
		for _, a := range x.answers(labelled[k]) {
			if _, ok := number[a]; !ok {
				number[a] = len(total)
				total = append(total, 0)
			}
			has = append(has, number[a])
		}
		g.members = append(g.members, labelled[k])
		for _, c := range has {
			if g.count[c] == 0 {
				g.answers = append(g.answers, c)
			}
			g.count[c]++
			total[c]++
		}
	}
	for _, g := range groups {
		for c, n := range g.count {
			g.share = max(g.share, n/total[c])
		}
	}
	slices.SortStableFunc(groups, func(a, b *group) int { return cmp.Compare(b.share, a.share) })
	parts := make([][]int, len(shares))
	have := make([][]float64, len(shares))
	for p := range have {
		have[p] = make([]float64, len(total))
	}
	for _, g := range groups {
		best := 0
		least := math.Inf(1)
		for p, share := range shares {
			change := 0.0
			for _, c := range g.answers {
				want := share * total[c]
				change += g.count[c] * (2*(have[p][c]-want) + g.count[c]) / want
			}
			if change < least {
				best = p
				least = change
			}
		}
		parts[best] = append(parts[best], g.members...)
		for c, n := range g.count {
			have[best][c] += n
		}
	}
	return parts
}

// Overlap counts the molecules of the other parts that the training part has, too, in
// whatever way they are written.
func (x *Examples) Overlap(s dataset.Split) (valid, test int) {
	trained := map[[16]byte]bool{{}: false} // graphs have no identity
	for _, i := range s.Train {
		if id := x.Records[i].Identity; id != [16]byte{} {
			trained[id] = true
		}
	}
	count := func(part []int) (n int) {
		for _, i := range part {
			if trained[x.Records[i].Identity] {
				n++
			}
		}
		return n
	}
	return count(s.Valid), count(s.Test)
}

// stratified divides the places 0..len(labelled)-1 of some records.
func (x *Examples) stratified(labelled []int, rng *rand.Rand) (s dataset.Split) {
	count := map[answer]int{}
	groups := map[answer][]int{}
	for _, i := range labelled {
		for _, a := range x.answers(i) {
			count[a]++
		}
	}
	rarer := func(a, b answer) int {
		return cmp.Or(cmp.Compare(count[a], count[b]), cmp.Compare(a.task, b.task), cmp.Compare(a.y, b.y))
	}
	for _, k := range dataset.Permutation(nil, len(labelled), rng) {
		a := slices.MinFunc(x.answers(labelled[k]), rarer)
		groups[a] = append(groups[a], k)
	}
	everywhere := 10*len(groups) <= len(labelled)
	seen := 0
	for _, a := range slices.SortedFunc(maps.Keys(groups), rarer) {
		members := groups[a]
		seen += len(members)
		// the larger groups make up for what the rarer ones took
		for _, part := range []*[]int{&s.Test, &s.Valid} {
			n := max((seen+5)/10-len(*part), 0)
			if everywhere && count[a] > 2 {
				n = max(n, 1)
			}
			n = min(n, max(len(members)-1, 0))
			*part = append(*part, members[:n]...)
			members = members[n:]
		}
		s.Train = append(s.Train, members...)
	}
	return s
}
