package finetune_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/gnn/dataset/records"
	"github.com/specmatch/specmatch/specmatch/finetune"
)

// rings is a table of 300 molecules of 30 scaffolds, with a class that a tenth has.
func rings() string {
	var b strings.Builder
	b.WriteString("smiles,y,z\n")
	for i := range 300 {
		fmt.Fprintf(&b, "%sC1%sC1,%d,%d.5\n", strings.Repeat("C", 1+i/30), strings.Repeat("C", 1+i%30), min(1, i%10*i%7%2), i)
	}
	return b.String()
}

func read(t *testing.T, text string, task finetune.Task) (*finetune.Examples, error) {
	t.Helper()
	return finetune.Read(t.Context(), "t.csv", task, records.Options{Input: strings.NewReader(text)})
}

// TestFolds: every record is tested once, classes are as evenly dealt out as can be, by
// scaffold as far as whole scaffolds allow, which no division takes apart.
func TestFolds(t *testing.T) {
	for _, split := range []string{finetune.Stratified, finetune.Scaffold, finetune.StratifiedScaffold} {
		x, err := read(t, rings(), finetune.Task{Targets: []string{"y"}, Split: split})
		if err != nil {
			t.Fatal(err)
		}
		yes := func(part []int) (n float64) {
			for _, i := range part {
				n += x.Y[i]
			}
			return n
		}
		all := yes(slices.Collect(func(yield func(int) bool) {
			for i := range x.Y {
				yield(i)
			}
		}))
		whole := func(s dataset.Split) {
			t.Helper()
			part := map[string]int{}
			for p, samples := range [][]int{s.Train, s.Valid, s.Test} {
				for _, i := range samples {
					id := x.Records[i].Scaffold
					if q, ok := part[id]; ok && q != p && split != finetune.Stratified {
						t.Errorf("%s: a scaffold is in two parts", split)
					}
					part[id] = p
				}
			}
		}
		tested := map[int]int{}
		for f := range 5 {
			s, err := x.Fold(3, f, 5)
			if err != nil {
				t.Fatal(err)
			}
			for _, i := range s.Test {
				tested[i]++
			}
			if n := len(s.Train) + len(s.Valid) + len(s.Test); n != 300 || len(s.Test) != 60 || len(s.Valid) < 20 || len(s.Valid) > 40 {
				t.Errorf("%s, fold %d: %d, %d, %d", split, f, len(s.Train), len(s.Valid), len(s.Test))
			}
			if n := yes(s.Test); n < all/5-4 || n > all/5+4 || split == finetune.Stratified && (n < all/5-1 || n > all/5+1) {
				t.Errorf("%s, fold %d: %g of %g yes are tested", split, f, n, all)
			}
			if n := yes(s.Valid); split == finetune.Stratified && (n < all/10-1 || n > all/10+1) {
				t.Errorf("%s, fold %d: %g of %g yes validate", split, f, n, all)
			}
			whole(s)
		}
		if len(tested) != 300 {
			t.Errorf("%s: %d records are tested", split, len(tested))
		}
		if split == finetune.StratifiedScaffold {
			for seed := range uint64(10) {
				s, err := x.Divide(seed)
				if err != nil {
					t.Fatal(err)
				}
				whole(s)
				if n, m := yes(s.Test), yes(s.Valid); len(s.Test) < 20 || len(s.Valid) < 20 || n < all/10-3 || m < all/10-3 {
					t.Errorf("seed %d: %d and %d records, %g and %g of %g yes", seed, len(s.Valid), len(s.Test), m, n, all)
				}
			}
		}
	}
	for _, c := range []struct {
		task finetune.Task
		f, k int
		want string
	}{
		{finetune.Task{Targets: []string{"z"}}, 0, 301, "fold 1 of 301"}, {finetune.Task{Targets: []string{"z"}}, 2, 2, "fold 3 of 2"},
		{finetune.Task{Targets: []string{"z"}, Split: "y"}, 0, 2, "folds need one file"},
	} {
		x, err := read(t, rings(), c.task)
		if err == nil {
			_, err = x.Fold(0, c.f, c.k)
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
	if _, err := read(t, rings(), finetune.Task{Targets: []string{"z"}, Split: finetune.StratifiedScaffold}); err == nil {
		t.Error("numbers are stratified")
	}
}

// TestParts: files have the parts that they are given for, errors name the file and the line,
// and a molecule that is trained on and tested is counted however it is written.
func TestParts(t *testing.T) {
	file := func(name, text string) finetune.File {
		return finetune.File{Path: name, Input: strings.NewReader(text)}
	}
	for _, c := range []struct {
		valid, test string
		want        string // sizes of the parts, overlap
	}{
		{"smiles,y\nCO,1\nCCO,2\nC(C)O,4\n", "y,smiles\n3,CN\n1,OC\n,CC\n2,[CH3]O\n", "18 3 3, 1 2"},
		{"", "y,smiles\n3,CN\n1,OC\n", "16 2 2, 0 1"},
		{"smiles,y\nOC,1\n", "", "16 1 2, 1 0"},
		{"smiles,y\nOC,x\n", "", `valid.csv:2: column y: "x" is not a number`},
		{"smiles\nOC\n", "", `no column "y"`},
	} {
		text := "smiles,y\n"
		for i := range 18 {
			text += fmt.Sprintf("%sO,%d\n", strings.Repeat("C", 1+i*5), i)
		}
		task := finetune.Task{Targets: []string{"y"}}
		if c.valid != "" {
			task.Valid = file("valid.csv", c.valid)
		}
		if c.test != "" {
			task.Test = file("test.csv", c.test)
		}
		x, err := read(t, text, task)
		got := fmt.Sprint(err)
		if err == nil {
			s, err := x.Divide(1)
			if err != nil {
				t.Fatal(err)
			}
			v, n := x.Overlap(s)
			if !slices.Contains(s.Train, 0) {
				t.Fatalf("%q and %q: methanol, which the others have, too, is not trained on", c.valid, c.test)
			}
			got = fmt.Sprintf("%d %d %d, %d %d", len(s.Train), len(s.Valid), len(s.Test), v, n)
		}
		if !strings.Contains(got, c.want) {
			t.Errorf("%q and %q: %s, want %s", c.valid, c.test, got, c.want)
		}
	}
	task := finetune.Task{Targets: []string{"y"}, Split: "part", Valid: file("valid.csv", "smiles,y\nC,1\n")}
	if _, err := read(t, "smiles,y,part\nC,1,train\n", task); err == nil || !strings.Contains(err.Error(), "both the column part and the files valid.csv split") {
		t.Error(err)
	}
	task.Valid = finetune.File{}
	task.Test = finetune.File{Path: finetune.NoTest}
	if _, err := read(t, "smiles,y,part\nC,1,train\n", task); err == nil || !strings.Contains(err.Error(), "there is to be none") {
		t.Error(err)
	}
}

// TestSplitOfGraphs: graphs have no scaffolds, and no clusters.
func TestSplitOfGraphs(t *testing.T) {
	for _, split := range []string{finetune.Cluster, finetune.Scaffold} {
		text := strings.Repeat(`{"edges":[[0,1]],"nodes":2,"y":1.5}`+"\n", 20)
		o := records.Options{Input: strings.NewReader(text)}
		x, err := finetune.Read(t.Context(), "g.jsonl", finetune.Task{Targets: []string{"y"}, Split: split}, o)
		if err == nil {
			_, err = x.Divide(1)
		}
		if err == nil || !strings.Contains(err.Error(), split+" is for molecules") {
			t.Errorf("%s: %v", split, err)
		}
	}
}

// TestBounds: bounds are numbers with a side, if they are asked for.
func TestBounds(t *testing.T) {
	x, err := read(t, "smiles,y\nC,1.5\nC,>10\nC,<= -0.5\nC,≥3\nC,\n", finetune.Task{Targets: []string{"y"}, Bounds: true})
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(x.Y, x.Bounds); got != "[1.5 10 -0.5 3 NaN] [0 1 -1 1 0]" || !strings.Contains(x.Summary(), "3 bounds") {
		t.Error(got, x.Summary())
	}
	for _, text := range []string{"~5", ">x", "> "} {
		if _, err := read(t, "smiles,y\nC,1.5\nC,2\nC,"+text+"\n", finetune.Task{Targets: []string{"y"}, Bounds: true}); err == nil {
			t.Errorf("%q is a bound", text)
		}
	}
}

// TestOverlap: isomorphic graphs in two parts overlap, whatever the numbers of their nodes; others do not.
func TestOverlap(t *testing.T) {
	var b strings.Builder
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range 30 {
		edges := []string{"[0, 1], [1, 2]", "[0, 2], [1, 2]", "[2, 0], [1, 0]"}
		y := float64(i) + rng.Float64()
		if i < 20 { // one path in three numberings
			fmt.Fprintf(&b, `{"nodes": 3, "edges": [%s], "y": %g}`+"\n", edges[i%3], y)
		} else { // no two alike
			fmt.Fprintf(&b, `{"nodes": %d, "edges": [[0, 1]], "y": %g}`+"\n", i, y)
		}
	}
	x, err := finetune.Read(t.Context(), "g.jsonl", finetune.Task{Targets: []string{"y"}}, records.Options{Input: strings.NewReader(b.String())})
	if err != nil {
		t.Fatal(err)
	}
	s := dataset.Split{Train: []int{0, 1, 2, 20, 21}, Valid: []int{3, 4, 22, 23, 24}, Test: []int{5, 6, 7, 25, 26}}
	count := func(part []int) (n int) {
		for _, i := range part {
			if i < 20 {
				n++
			}
		}
		return n
	}
	if v, n := x.Overlap(s); v != count(s.Valid) || n != count(s.Test) || v+n == 0 {
		t.Errorf("%d and %d graphs overlap, want %d and %d", v, n, count(s.Valid), count(s.Test))
	}
}

// TestHalve: halves are nested and equal for equal seeds, and keep the proportions of the answers.
func TestHalve(t *testing.T) {
	var b strings.Builder
	b.WriteString("smiles,y\n")
	for i := range 160 {
		fmt.Fprintf(&b, "%s,%d\n", strings.Repeat("C", 1+i), (i%8)/7)
	}
	x, err := read(t, b.String(), finetune.Task{Targets: []string{"y"}})
	if err != nil {
		t.Fatal(err)
	}
	all := make([]int, 160)
	for i := range all {
		all[i] = i
	}
	half := x.Halve(all, 1)
	quarter := x.Halve(half, 1)
	ones := 0
	for _, i := range quarter {
		ones += int(x.Y[i])
		if !slices.Contains(half, i) {
			t.Errorf("record %d of a quarter is not in the half", i)
		}
	}
	if len(half) != 80 || len(quarter) != 40 || ones != 5 {
		t.Errorf("%d and %d of 160 records, %d of 5 ones", len(half), len(quarter), ones)
	}
	if !slices.Equal(half, x.Halve(all, 1)) || slices.Equal(half, x.Halve(all, 2)) {
		t.Error("the half is not that of its seed")
	}
}

// TestUnseen: a class that is tested or validated and not trained on is named.
func TestUnseen(t *testing.T) {
	text := "smiles,y\nC,a\nCC,b\nCCC,rare\nCCCC,a\nCCCCC,b\nCCCCCC,\n"
	x, err := read(t, text, finetune.Task{Targets: []string{"y"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		split dataset.Split
		want  []string
	}{
		{dataset.Split{Train: []int{0, 1, 2, 5}, Valid: []int{3}, Test: []int{4}}, nil},
		{dataset.Split{Train: []int{0, 1, 5}, Valid: []int{3}, Test: []int{2, 4}}, []string{"rare"}},
		{dataset.Split{Train: []int{1}, Valid: []int{0, 2}, Test: []int{3, 4}}, []string{"a", "rare"}},
		{dataset.Split{Train: []int{0}, Valid: []int{3}}, nil},
	} {
		if got := x.Unseen(c.split); !slices.Equal(got, c.want) {
			t.Errorf("%v: %q, want %q", c.split, got, c.want)
		}
	}
	x, err = read(t, rings(), finetune.Task{Targets: []string{"z"}})
	if err != nil {
		t.Fatal(err)
	}
	if got := x.Unseen(dataset.Split{Train: []int{0}, Test: []int{1}}); got != nil {
		t.Errorf("numbers: %q", got)
	}
}
