package finetune

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/gnn/dataset/records"
	"github.com/specmatch/specmatch/gnn/random"
	"github.com/specmatch/specmatch/specmatch/check"
	"github.com/specmatch/specmatch/specmatch/model"
)

// The splits, into 80, 10 and 10 %.
const (
	Random     = "random"     // in an order that the seed decides
	Stratified = "stratified" // random, with every class in each part, see [Examples.Divide]
	Scaffold   = "scaffold"   // each scaffold of molecules in one part, see [dataset.ScaffoldSplit]
	// StratifiedScaffold deals out scaffolds, in an order that the seed decides, so that every
	// part comes as near to its share of each class as whole scaffolds allow.
	StratifiedScaffold = "stratified-scaffold"
	// Cluster deals out clusters of similar molecules in the same way.
	Cluster = "cluster"
)

// splits are the names that are not of columns.
var splits = []string{Random, Stratified, Scaffold, StratifiedScaffold, Cluster}

// isSplit reports whether a name is that of a split, and not of a column.
func isSplit(name string) bool { return slices.Contains(splits, name) }

// The parts that may have files of their own.
const (
	valid = "valid"
	test  = "test"
)

// The purposes of random streams: splits, the first weights of a model, halves of training sets, and parts of them.
const (
	purposeSplit random.Purpose = 1<<32 + 16 + iota
	purposeHead
	purposeHalve
	purposeParts
)

// byScaffold reports whether whole scaffolds are split.
func (t Task) byScaffold() bool {
	return t.Split == Scaffold || t.Split == StratifiedScaffold
}

// checkSplit returns an error if graphs are to be split by the structure of molecules.
func (x *Examples) checkSplit() error {
	if (x.byScaffold() || x.Split == Cluster) && x.Content != records.Molecules {
		return fmt.Errorf("%s: the split %s is for molecules, and these are %s", x.path, x.Split, x.Content)
	}
	return nil
}

// labelled returns the records with a target, by the part whose own file has them.
func (x *Examples) labelled() map[string][]int {
	byPart := map[string][]int{}
	for i, n := 0, len(x.Targets); i < len(x.Records); i++ {
		if slices.ContainsFunc(x.Y[i*n:(i+1)*n], func(y float64) bool { return !math.IsNaN(y) }) {
			part := x.filePart(i)
			byPart[part] = append(byPart[part], i)
		}
	}
	return byPart
}

// Divide splits the records with a target; Test is in the order of the file. An empty part is an error.
//
// A stratified split divides each class alike; a record with several binary tasks counts as the
// rarest of its answers. If there are at most a tenth as many classes as records, each class with
// three members or more is in every part.
//
// A column of parts may leave out the validation or the test set; a ninth of the training set is
// then that part. A part with a file of its own is that file. If only one part has one, a ninth of the first file
// is the other, dealt out as in [Examples.Fold].
func (x *Examples) Divide(seed uint64) (s dataset.Split, err error) {
	if err := x.checkSplit(); err != nil && len(x.first) < 2 {
		return s, err
	}
	byPart := x.labelled()
	rng := random.Stream(seed, purposeSplit, 0, 0)
	labelled := byPart[""]
	if len(x.first) > 0 {
		s.Train = labelled
		s.Valid = byPart[valid]
		s.Test = byPart[test]
		for name, part := range map[string]*[]int{valid: &s.Valid, test: &s.Test} {
			if _, ok := x.first[name]; !ok {
				parts := x.deal(labelled, []float64{8. / 9, 1. / 9}, rng)
				s.Train = parts[0]
				*part = parts[1]
			}
		}
		return s, x.checkParts(&s)
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
	case StratifiedScaffold, Cluster:
		parts := x.deal(labelled, []float64{0.8, 0.1, 0.1}, rng)
		s = dataset.Split{Train: parts[0], Valid: parts[1], Test: parts[2]}
		return s, x.checkParts(&s)
	default:
		s, err = x.divideByColumn(labelled, rng)
		if err != nil {
			return s, err
		}
		return s, x.checkParts(&s)
	}
	for _, part := range [][]int{s.Train, s.Valid, s.Test} {
		for k, i := range part {
			part[k] = labelled[i]
		}
	}
	return s, x.checkParts(&s)
}

// divideByColumn splits records by the column that names their parts. If it has no validation or no
// test set, a ninth of the training set is that part.
func (x *Examples) divideByColumn(labelled []int, rng *rand.Rand) (s dataset.Split, err error) {
	parts := map[string][]int{}
	for _, i := range labelled {
		r := x.Records[i]
		text := strings.TrimSpace(r.Fields[len(x.Targets)])
		name, ok := check.Part(text)
		if !ok {
			return s, fmt.Errorf("%s:%d: column %s: %q; want train, valid or test",
				x.path, r.Line, x.Split, text)
		}
		parts[name] = append(parts[name], i)
	}
	s = dataset.Split{Train: parts["train"], Valid: parts[valid], Test: parts[test]}
	for _, part := range []*[]int{&s.Valid, &s.Test} {
		if len(*part) > 0 || len(s.Valid)+len(s.Test) == 0 {
			continue
		}
		dealt := x.deal(s.Train, []float64{8. / 9, 1. / 9}, rng)
		s.Train = dealt[0]
		*part = dealt[1]
	}
	return s, nil
}

// Fold returns split f of k for cross-validation: each record is in the test set of one of them. An
// eighth of the other records validates. Classes are dealt out evenly, rare ones first, and a split
// by scaffold deals out whole scaffolds.
func (x *Examples) Fold(seed uint64, f, k int) (s dataset.Split, err error) {
	if err := x.checkSplit(); err != nil {
		return s, err
	}
	labelled := x.labelled()[""]
	switch {
	case len(x.first) > 0 || !isSplit(x.Split):
		return s, fmt.Errorf("%s: folds need one file, and a random, stratified or scaffold split",
			x.path)
	case f < 0 || f >= k || k < 2 || k > len(labelled):
		return s, fmt.Errorf("%s: fold %d of %d, with %d records that have a target; want at least 2 folds, "+
			"and a record in each", x.path, f+1, k, len(labelled))
	}
	rng := random.Stream(seed, purposeSplit, 0, 0)
	folds := x.deal(labelled, slices.Repeat([]float64{1 / float64(k)}, k), rng)
	s.Test = folds[f]
	remaining := slices.Sorted(slices.Values(slices.Concat(slices.Delete(folds, f, f+1)...)))
	parts := x.deal(remaining, []float64{7. / 8, 1. / 8}, random.Stream(seed, purposeSplit, f+1, 0))
	s.Train, s.Valid = parts[0], parts[1]
	return s, x.checkParts(&s)
}

// Halve returns about half of some records, with the answers in the same proportions. Equal seeds halve alike, so
// that repeated halvings are nested.
func (x *Examples) Halve(samples []int, seed uint64) []int {
	rng := random.Stream(seed, purposeHalve, len(samples), 0)
	return x.deal(samples, []float64{0.5, 0.5}, rng)[0]
}

// checkParts sorts the test set, and returns an error if a part is empty.
func (x *Examples) checkParts(s *dataset.Split) error {
	slices.Sort(s.Test)
	training := len(s.Train)
	validation := len(s.Valid)
	testing := len(s.Test)
	untested := x.Test.Path == NoTest
	if training == 0 || validation == 0 || testing == 0 && !untested {
		if untested {
			return fmt.Errorf("%s: %d records with a target; want at least one to train on and one to validate",
				x.path, training+validation)
		}
		return fmt.Errorf("%s: the split %s divides its %d records with a target into %d to train on, "+
			"%d to validate and %d to test; want some in every part", x.path, x.Split,
			training+validation+testing, training, validation, testing)
	}
	return nil
}

// answer is a class, or a 1 or 0 of a binary task.
type answer struct {
	task int
	y    float64
}

// answers returns the answers of a record; there are none for regression.
func (x *Examples) answers(i int) (list []answer) {
	if x.Kind == model.Regression {
		return nil
	}
	tasks := len(x.Targets)
	for task, y := range x.Y[i*tasks : (i+1)*tasks] {
		if !math.IsNaN(y) {
			list = append(list, answer{task, y})
		}
	}
	return list
}

// group is records that a split keeps together.
type group struct {
	members []int
	answers []int           // of its members, in order; 0 stands for a record
	count   map[int]float64 // of each answer
	share   float64         // the largest share of an answer or of the records
}

// groupKey returns what the records of a group have in common: their scaffold or cluster. shared is false if each
// record is a group.
func (x *Examples) groupKey(i int) (key string, shared bool) {
	if x.clusters != nil {
		return strconv.Itoa(x.clusters[i]), true
	}
	return x.Records[i].Scaffold, x.byScaffold()
}

// groups returns the groups of some records, and the number of each answer in all. The records are
// in an order that rng decides.
func (x *Examples) groups(labelled []int, rng *rand.Rand) (groups []*group, total []float64) {
	number := map[answer]int{}
	byKey := map[string]*group{}
	total = []float64{0}
	for _, k := range dataset.Permutation(nil, len(labelled), rng) {
		key, shared := x.groupKey(labelled[k])
		g := byKey[key]
		if g == nil || !shared {
			g = &group{count: map[int]float64{}}
			groups = append(groups, g)
			byKey[key] = g
		}
		answers := []int{0}
		for _, a := range x.answers(labelled[k]) {
			if _, ok := number[a]; !ok {
				number[a] = len(total)
				total = append(total, 0)
			}
			answers = append(answers, number[a])
		}
		g.members = append(g.members, labelled[k])
		for _, c := range answers {
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
	return groups, total
}

// deal divides records into parts with these shares, which add up to 1. Records that the split
// keeps together are a group. The groups are dealt out one after another, from the one with the
// largest share of an answer or of all records. Each goes to the part that it brings nearest to its
// share of each answer and of all records, by χ² (Sechidis, Tsoumakas and Vlahavas, On the
// stratification of multi-label data, 2011, with another distance, and with groups).
func (x *Examples) deal(labelled []int, shares []float64, rng *rand.Rand) [][]int {
	groups, total := x.groups(labelled, rng)
	slices.SortStableFunc(groups, func(a, b *group) int {
		return cmp.Compare(b.share, a.share)
	})

	// Deal the groups out, the one that is hardest to place first.
	parts := make([][]int, len(shares))
	counts := make([][]float64, len(shares))
	for p := range counts {
		counts[p] = make([]float64, len(total))
	}
	for _, g := range groups {
		best := 0
		least := math.Inf(1)
		for p, share := range shares {
			change := 0.0
			for _, c := range g.answers {
				quota := share * total[c]
				change += g.count[c] * (2*(counts[p][c]-quota) + g.count[c]) / quota
			}
			if change < least {
				best = p
				least = change
			}
		}
		parts[best] = append(parts[best], g.members...)
		for c, n := range g.count {
			counts[best][c] += n
		}
	}
	return parts
}

// stratified divides the positions 0..len(labelled)-1 of some records.
func (x *Examples) stratified(labelled []int, rng *rand.Rand) (s dataset.Split) {
	count := map[answer]int{}
	groups := map[answer][]int{}
	for _, i := range labelled {
		for _, a := range x.answers(i) {
			count[a]++
		}
	}
	rarer := func(a, b answer) int {
		return cmp.Or(
			cmp.Compare(count[a], count[b]), cmp.Compare(a.task, b.task), cmp.Compare(a.y, b.y),
		)
	}
	for _, k := range dataset.Permutation(nil, len(labelled), rng) {
		a := slices.MinFunc(x.answers(labelled[k]), rarer)
		groups[a] = append(groups[a], k)
	}
	everywhere := 10*len(groups) <= len(labelled)
	dealt := 0
	for _, a := range slices.SortedFunc(maps.Keys(groups), rarer) {
		members := groups[a]
		dealt += len(members)
		// Larger groups make up for what the rarer ones took.
		for _, part := range []*[]int{&s.Test, &s.Valid} {
			n := max((dealt+5)/10-len(*part), 0)
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

// Unseen returns the classes that the validation or test set of a split has, and its training set has not; nil for
// other targets.
func (x *Examples) Unseen(s dataset.Split) (classes []string) {
	if x.Kind != model.Classes {
		return nil
	}
	trained := make([]bool, len(x.Head.ClassValues))
	for _, i := range s.Train {
		if y := x.Y[i]; !math.IsNaN(y) {
			trained[int(y)] = true
		}
	}
	for class, name := range x.Head.ClassValues {
		isClass := func(i int) bool { return x.Y[i] == float64(class) }
		if !trained[class] && slices.ContainsFunc(slices.Concat(s.Valid, s.Test), isClass) {
			classes = append(classes, name)
		}
	}
	return classes
}

// Unlabelled returns the targets of which the training set of a split has no label, so that nothing is learned of them.
func (x *Examples) Unlabelled(s dataset.Split) (targets []string) {
	for task, n := range x.Data(s).labelCounts(x.Head) {
		if n == 0 {
			targets = append(targets, x.Targets[task])
		}
	}
	return targets
}
