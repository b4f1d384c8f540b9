package dataset

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/specmatch/specmatch/gnn/graph"
)

type skGolden struct {
	NumPy   string `json:"numpy"`
	Sklearn string `json:"sklearn"`
	Folds   []struct {
		Name    string
		Labels  []int
		K       int
		Shuffle bool
		Seed    uint32
		Test    [][]int
	}
	States []struct {
		Seed         uint32
		Bits         []uint32
		Permutations [][]int
		BigHead      []int `json:"big_head"`
		BigTail      []int `json:"big_tail"`
	}
}

// golden reads testdata/sklearn_folds.json, made by sklearn_folds.py beside it.
func golden(t *testing.T) *skGolden {
	t.Helper()
	b, err := os.ReadFile("testdata/sklearn_folds.json")
	if err != nil {
		t.Fatal(err)
	}
	g := new(skGolden)
	if err := json.Unmarshal(b, g); err != nil {
		t.Fatal(err)
	}
	if len(g.Folds) < 10 || len(g.States) < 5 {
		t.Fatalf("golden file has only %d splits and %d states", len(g.Folds), len(g.States))
	}
	t.Logf("golden values of scikit-learn %s, NumPy %s", g.Sklearn, g.NumPy)
	return g
}

func TestStratifiedKFoldIsSklearns(t *testing.T) {
	for _, c := range golden(t).Folds {
		t.Run(fmt.Sprintf("%s/k=%d/shuffle=%t/seed=%d", c.Name, c.K, c.Shuffle, c.Seed), func(t *testing.T) {
			folds, err := StratifiedKFold(c.Labels, c.K, c.Shuffle, c.Seed)
			if err != nil {
				t.Fatal(err)
			}
			if len(folds) != len(c.Test) {
				t.Fatalf("%d folds, want %d", len(folds), len(c.Test))
			}
			for f, want := range c.Test {
				if !slices.Equal(folds[f].Test, want) {
					t.Errorf("fold %d: test %v, want %v", f, folds[f].Test, want)
				}
				var train []int
				for i := range c.Labels {
					if !slices.Contains(want, i) {
						train = append(train, i)
					}
				}
				if !slices.Equal(folds[f].Train, train) {
					t.Errorf("fold %d: train %v, want %v", f, folds[f].Train, train)
				}
			}
		})
	}
}

// upTo returns the numbers 0..n-1.
func upTo(n int) []int {
	p := make([]int, n)
	for i := range p {
		p[i] = i
	}
	return p
}

// permutation is NumPy's RandomState.permutation.
func permutation(r *RandomState, n int) []int {
	p := upTo(n)
	r.Shuffle(p)
	return p
}

func TestRandomStateIsNumPys(t *testing.T) {
	for _, c := range golden(t).States {
		t.Run(fmt.Sprint(c.Seed), func(t *testing.T) {
			r := NewRandomState(c.Seed)
			for i, want := range c.Bits {
				if got := r.Uint32(); got != want {
					t.Errorf("word %d: %d, want %d", i, got, want)
				}
			}
			r = NewRandomState(c.Seed)
			for i, want := range c.Permutations {
				if got := permutation(r, len(want)); !slices.Equal(got, want) {
					t.Errorf("permutation %d: %v, want %v", i, got, want)
				}
			}
			big := permutation(NewRandomState(c.Seed), 3000)
			if got := big[:10]; !slices.Equal(got, c.BigHead) {
				t.Errorf("permutation of 3000 begins %v, want %v", got, c.BigHead)
			}
			if got := big[2990:]; !slices.Equal(got, c.BigTail) {
				t.Errorf("permutation of 3000 ends %v, want %v", got, c.BigTail)
			}
		})
	}
}

func TestRandomStateIntn(t *testing.T) {
	r := NewRandomState(1)
	seen := make([]int, 6)
	for range 6000 {
		seen[r.Intn(6)]++
	}
	for v, n := range seen {
		if n < 850 || n > 1150 { // ±5 standard deviations
			t.Errorf("Intn(6) gave %d %d times of 6000", v, n)
		}
	}
	a, b := NewRandomState(1), NewRandomState(1)
	if v := a.Intn(1); v != 0 || a.Uint32() != b.Uint32() {
		t.Errorf("Intn(1) = %d, or it took a draw, which NumPy's does not", v)
	}
	for _, n := range []int{0, -1, math.MinInt} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("Intn(%d) did not panic", n)
				}
			}()
			r.Intn(n)
		}()
	}
}

func TestStratifiedKFoldErrors(t *testing.T) {
	for _, c := range []struct {
		labels []int
		k      int
		want   string
	}{
		{[]int{0, 1, 0, 1}, 1, "1 folds, want at least 2"},
		{[]int{0, 1, 0, 1}, -3, "-3 folds"},
		{nil, 2, "2 folds of only 0 samples"},
		{[]int{0, 1, 0}, 4, "4 folds of only 3 samples"},
	} {
		if folds, err := StratifiedKFold(c.labels, c.k, false, 0); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("StratifiedKFold(%v, %d) = %v, %v; want an error with %q", c.labels, c.k, folds, err, c.want)
		}
	}
}

// Whatever the labels, the folds partition the samples, differ in size by at
// most one per class and hold each class as evenly as possible.
func TestStratifiedKFoldProperties(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		n, classes, k := 10+rng.IntN(90), 1+rng.IntN(5), 2+rng.IntN(5)
		labels := make([]int, n)
		for i := range labels {
			labels[i] = rng.IntN(classes) * rng.IntN(3)
		}
		count := make(map[int]int)
		for _, v := range labels {
			count[v]++
		}
		folds, err := StratifiedKFold(labels, k, rng.IntN(2) == 0, rng.Uint32())
		if err != nil {
			enough := false
			for _, c := range count {
				enough = enough || c >= k
			}
			if enough {
				t.Fatalf("labels %v, k = %d: %v", labels, k, err)
			}
			continue
		}
		seen := make([]int, n)
		for f, fold := range folds {
			if len(fold.Train)+len(fold.Test) != n || !slices.IsSorted(fold.Test) || !slices.IsSorted(fold.Train) {
				t.Fatalf("fold %d of %d samples: train %v, test %v", f, n, fold.Train, fold.Test)
			}
			if m := len(fold.Test); m < n/k || m > n/k+1 {
				t.Errorf("fold %d has %d of %d samples, k = %d", f, m, n, k)
			}
			in := make(map[int]int)
			for _, i := range fold.Test {
				seen[i]++
				in[labels[i]]++
			}
			for v, c := range count {
				if m := in[v]; m < c/k || m > c/k+1 {
					t.Errorf("fold %d has %d of the %d members of class %d, k = %d", f, m, c, v, k)
				}
			}
		}
		for i, m := range seen {
			if m != 1 {
				t.Fatalf("sample %d is tested %d times", i, m)
			}
		}
	}
}

func TestSmallestClass(t *testing.T) {
	for _, c := range []struct {
		labels         []int
		label, members int
	}{
		{nil, 0, 0},
		{[]int{7}, 7, 1},
		{[]int{3, 3, -1, -1, 5, 5, 5}, -1, 2},
	} {
		if label, members := SmallestClass(c.labels); label != c.label || members != c.members {
			t.Errorf("SmallestClass(%v) = %d, %d; want %d, %d", c.labels, label, members, c.label, c.members)
		}
	}
}

func TestPermutation(t *testing.T) {
	p := Permutation(nil, 100, rand.New(rand.NewPCG(3, 4)))
	q := Permutation(make([]int, 7, 200), 100, rand.New(rand.NewPCG(3, 4)))
	if !slices.Equal(p, q) {
		t.Error("the same generator gave different permutations")
	}
	if r := Permutation(nil, 100, rand.New(rand.NewPCG(3, 5))); slices.Equal(p, r) {
		t.Error("different generators gave the same permutation")
	}
	slices.Sort(q)
	if !slices.Equal(q, upTo(100)) {
		t.Errorf("not a permutation: %v", q)
	}
	if n := testing.AllocsPerRun(10, func() { p = Permutation(p, 100, rand.New(rand.NewPCG(1, 1))) }); n > 2 {
		t.Errorf("%v allocations with a large enough slice, want only the generator's", n)
	}
	if p := Permutation(nil, 0, rand.New(rand.NewPCG(1, 1))); len(p) != 0 {
		t.Errorf("Permutation of 0 = %v", p)
	}
}

func TestRandomSplit(t *testing.T) {
	s := RandomSplit(95, rand.New(rand.NewPCG(1, 2)))
	if len(s.Train) != 76 || len(s.Valid) != 9 || len(s.Test) != 10 {
		t.Errorf("parts of %d, %d and %d", len(s.Train), len(s.Valid), len(s.Test))
	}
	all := slices.Sorted(slices.Values(slices.Concat(s.Train, s.Valid, s.Test)))
	for i, k := range all {
		if i != k {
			t.Fatalf("sample %d is missing or twice", i)
		}
	}
	if slices.IsSorted(s.Train) {
		t.Error("not at random")
	}
}

func TestScaffoldSplit(t *testing.T) {
	// Ten molecules: groups of 4 (members 0 2 4 6), 2 (1 7), 2 (3 5), 1 (8), 1 (9).
	s, err := ScaffoldSplit([]int{7, 1, 7, 2, 7, 2, 7, 1, 3, 4}, 0.8, 0.1)
	want := Split{Train: []int{0, 2, 4, 6, 3, 5, 1, 7}, Valid: []int{9}, Test: []int{8}}
	if err != nil || !reflect.DeepEqual(s, want) {
		t.Errorf("split %v, %v; want %v", s, err, want)
	}
	// A group too large for Train may go to Valid, and smaller ones to Train still.
	s, err = ScaffoldSplit([]int{0, 0, 0, 0, 0, 1, 1, 2, 3, 4}, 0.4, 0.2)
	want = Split{Train: []int{5, 6, 9, 8}, Valid: []int{0, 1, 2, 3, 4}, Test: []int{7}}
	if err != nil || !reflect.DeepEqual(s, want) {
		t.Errorf("split %v, %v; want %v", s, err, want)
	}
	for _, shares := range [][2]float64{{-0.1, 0.1}, {0.5, 0.51}, {0.5, -1}, {math.NaN(), 0.1}, {0.5, math.NaN()}} {
		if _, err := ScaffoldSplit([]int{1}, shares[0], shares[1]); err == nil {
			t.Errorf("shares %v are accepted", shares)
		}
	}
}

// TestScaffoldSplitParts: every molecule is in one part, and so is every
// scaffold.
func TestScaffoldSplitParts(t *testing.T) {
	rng := NewRandomState(3)
	for n := 1; n < 200; n += 7 {
		scaffolds := make([]int, n)
		for i := range scaffolds {
			scaffolds[i] = i / 3
		}
		rng.Shuffle(scaffolds)
		s, err := ScaffoldSplit(scaffolds, 0.8, 0.1)
		if err != nil {
			t.Fatal(err)
		}
		part := map[int]int{}
		seen := make([]bool, n)
		for p, members := range [][]int{s.Train, s.Valid, s.Test} {
			for _, i := range members {
				if q, ok := part[scaffolds[i]]; ok && q != p || seen[i] {
					t.Fatalf("n = %d: molecule %d or its scaffold is in two parts", n, i)
				}
				part[scaffolds[i]], seen[i] = p, true
			}
		}
		if slices.Contains(seen, false) || float64(len(s.Train)) > 0.8*float64(n) {
			t.Fatalf("n = %d: split %v", n, s)
		}
	}
}

// TestKFold is scikit-learn's KFold(3, shuffle=True, random_state=1) on 10 points.
func TestKFold(t *testing.T) {
	want := [][]int{{2, 4, 6, 9}, {0, 1, 3}, {5, 7, 8}}
	for f, fold := range KFold(10, 3, 1) {
		if !reflect.DeepEqual(fold.Test, want[f]) {
			t.Errorf("fold %d tests on %v, want %v", f, fold.Test, want[f])
		}
		if all := slices.Sorted(slices.Values(slices.Concat(fold.Train, fold.Test))); len(all) != 10 || all[0] != 0 || all[9] != 9 {
			t.Errorf("fold %d is no division: %v", f, fold)
		}
	}
}

// synthetic is a set without nodes to speak of, with the given class sizes.
func synthetic(sizes ...int) *Dataset {
	ds := &Dataset{Name: "synthetic", Classes: len(sizes), FeatureWidth: 1}
	for c, n := range sizes {
		ds.ClassValues = append(ds.ClassValues, c)
		for range n {
			ds.Graphs = append(ds.Graphs, &graph.Graph{Ptr: []int32{0, 0}, X: graph.Features{Width: 1, Category: []int32{0}}, Class: c})
		}
	}
	return ds
}

// TestFewLabels: the parts of a fold are disjoint, test folds cover the set once,
// and labels are few and stratified.
func TestFewLabels(t *testing.T) {
	for _, c := range []struct {
		sizes    []int
		rate     float64
		validate bool
		labelled [2]int // bounds
	}{
		{[]int{2053, 2057}, 0.1, false, [2]int{369, 371}}, // NCI1: a tenth of nine tenths
		{[]int{2053, 2057}, 0.1, true, [2]int{328, 330}},
		{[]int{2053, 2057}, 0.01, false, [2]int{37, 38}},
		{[]int{2600, 775, 1625}, 0.01, true, [2]int{40, 41}}, // COLLAB
		{[]int{663, 450}, 0.1, true, [2]int{88, 91}},         // PROTEINS
		{[]int{125, 63}, 0.5, true, [2]int{74, 76}},
	} {
		ds := synthetic(c.sizes...)
		all, err := FewLabels(ds, 10, c.rate, c.validate, 12345)
		if err != nil {
			t.Fatal(err)
		}
		tested := map[int]int{}
		for k, s := range all {
			seen := map[int]string{}
			for part, samples := range map[string][]int{"labelled": s.Train, "validation": s.Valid, "test": s.Test} {
				if !slices.IsSorted(samples) {
					t.Errorf("%s of fold %d is not in order", part, k)
				}
				for _, i := range samples {
					if other, twice := seen[i]; twice {
						t.Fatalf("%v, fold %d: graph %d is in %s and in %s", c, k, i, part, other)
					}
					seen[i] = part
				}
			}
			for _, i := range s.Test {
				tested[i]++
			}
			if n := len(s.Train); n < c.labelled[0] || n > c.labelled[1] {
				t.Errorf("%v, fold %d: %d labelled graphs", c, k, n)
			}
			if (len(s.Valid) > 0) != (c.validate) {
				t.Errorf("%v: %d graphs to validate on", c, len(s.Valid))
			}
			if c.validate && !slices.Equal(s.Valid, all[(k+9)%10].Test) {
				t.Errorf("%v, fold %d: the validation set is not the fold before", c, k)
			}
			counts := make([]int, len(c.sizes))
			for _, i := range s.Train {
				counts[ds.Graphs[i].Class]++
			}
			for class, n := range counts {
				want := float64(len(s.Train)) * float64(c.sizes[class]) / float64(len(ds.Graphs))
				if float64(n) < want-2 || float64(n) > want+2 {
					t.Errorf("%v, fold %d: %d labels of class %d, want about %.1f", c, k, n, class, want)
				}
			}
		}
		if len(tested) != len(ds.Graphs) || slices.Max(slices.Collect(maps.Values(tested))) != 1 {
			t.Errorf("%v: the test folds cover %d of %d graphs", c, len(tested), len(ds.Graphs))
		}
	}
}

func TestFewLabelsRefuse(t *testing.T) {
	for _, c := range []struct {
		ds   *Dataset
		rate float64
		want string
	}{
		{synthetic(663, 450), 0.01, "synthetic is too small for a label rate of 1/100: of 1001 graphs to choose from, 10 would have a label, and 4 of class 1; want at least 15, and 2 of every class"},
		{synthetic(2000, 100), 0.01, "and 0 of class 1"},
		{synthetic(2000, 2000), 0.3, "a label rate of 0.3: want one over a whole number"},
		{synthetic(5, 5), 0.1, "11 folds of only 10 samples"},
	} {
		folds := 10
		if len(c.ds.Graphs) == 10 {
			folds = 11
		}
		if _, err := FewLabels(c.ds, folds, c.rate, false, 12345); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want %s", err, c.want)
		}
	}
}

// TestScaffoldSplitIn: groups stay whole, a large one is trained on, and the others' order is the generator's.
func TestScaffoldSplitIn(t *testing.T) {
	scaffolds := make([]int, 100)
	for i := range scaffolds {
		scaffolds[i] = max(0, i-9) / 2 // 11 molecules of the first, and pairs
	}
	var tests []string
	for seed := range uint64(3) {
		s, err := ScaffoldSplitIn(scaffolds, 0.8, 0.1, rand.New(rand.NewPCG(seed, 0)))
		if err != nil {
			t.Fatal(err)
		}
		part := map[int]int{}
		for k, rows := range [][]int{s.Train, s.Valid, s.Test} {
			for _, i := range rows {
				if of, ok := part[scaffolds[i]]; ok && of != k {
					t.Errorf("seed %d: scaffold %d is in two parts", seed, scaffolds[i])
				}
				part[scaffolds[i]] = k
			}
		}
		if part[0] != 0 || len(s.Train) < 78 || len(s.Train)+len(s.Valid)+len(s.Test) != 100 {
			t.Errorf("seed %d: %v", seed, s)
		}
		tests = append(tests, fmt.Sprint(s.Test))
	}
	if tests[0] == tests[1] && tests[1] == tests[2] {
		t.Error("three seeds give one division")
	}
}
