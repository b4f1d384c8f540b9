package finetune_test

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/gnn/dataset/records"
	"github.com/specmatch/specmatch/specmatch/check"
	"github.com/specmatch/specmatch/specmatch/finetune"
	"github.com/specmatch/specmatch/specmatch/model"
)

// TestReplicates: labels of one molecule, however it is written, are counted, and those that differ are reported with
// their lines and their spread.
func TestReplicates(t *testing.T) {
	for _, c := range []struct{ values, want string }{
		{"1.5,3,2.5,4.25,3,8", "2 molecules have 4 labels of y in all; those of 1 differ, with a standard deviation of " +
			"0.5 over all replicates, most for the lines 2, 4"},
		{"0,1,0,0,0,0", "2 molecules have 4 labels of y in all; those of 1 contradict each other, such as the lines 3, 6"},
		{"a,b,a,c,b,c", "2 molecules have 4 labels of y in all, which agree"},
		{"1.5,2,,4.25,,8", ""},
	} {
		var b strings.Builder
		b.WriteString("smiles,y\n")
		// Lines 2 and 4 are ethanol, lines 3 and 6 benzene with numbers of a reaction.
		smiles := []string{"CCO", "c1ccccc1", "OCC", "CCN", "[cH:1]1[cH:2][cH:3][cH:4][cH:5][cH:6]1", "CCC"}
		for i, y := range strings.Split(c.values, ",") {
			fmt.Fprintf(&b, "%s,%s\n", smiles[i], y)
		}
		x, err := read(t, b.String(), finetune.Task{Targets: []string{"y"}})
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(x.Replicates(), "; "); got != c.want {
			t.Errorf("%s: %q, want %q", c.values, got, c.want)
		}
	}
}

// TestGraphCopies: graphs of TUDataset's format that differ in labels of edges alone are copies, since no model reads
// these. Of a file whose edge labels are read, they are not.
func TestGraphCopies(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "S")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for part, text := range map[string]string{
		"A": "1, 2\n2, 1\n3, 4\n4, 3\n", "graph_indicator": "1\n1\n2\n2\n3\n4\n4\n4\n", "graph_labels": "0\n1\n1\n0\n",
		"edge_labels": "0\n0\n1\n1\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, "S_"+part+".txt"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	lines := filepath.Join(filepath.Dir(dir), "s.jsonl")
	text := `{"nodes":2,"edges":[[0,1]],"edge_labels":[0],"class":0}
{"nodes":2,"edges":[[0,1]],"edge_labels":[1],"class":1}
{"nodes":1,"edges":[],"class":1}
{"nodes":3,"edges":[],"class":0}`
	if err := os.WriteFile(lines, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]int{dir: 1, lines: 0} {
		x, err := finetune.Read(t.Context(), path, finetune.Task{Targets: []string{"class"}}, records.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if _, n := x.Overlap(dataset.Split{Train: []int{0}, Test: []int{1, 2}}); n != want {
			t.Errorf("%s: %d of the test graphs are in the training set, want %d", path, n, want)
		}
	}
}

// TestOutliers: a label that is far from all others is named before a fit, but not one of a target over decades, or 1 of 0
// and 1.
func TestOutliers(t *testing.T) {
	for _, c := range []struct {
		name string
		y    func(i int) float64
		want string
	}{
		{"a typing error", func(i int) float64 { return float64(i%10 + i/39*1000) },
			"1 labels of y are more than three interquartile ranges from the quartiles, such as 1009 (lines 41)"},
		{"no outlier", func(i int) float64 { return float64(i) / 7 }, ""},
		{"decades", func(i int) float64 { return math.Pow(10, float64(i)/10) }, ""},
		{"classes", func(i int) float64 { return float64(i / 39) }, ""},
	} {
		var text strings.Builder
		text.WriteString("smiles,y\n")
		for i := range 40 {
			fmt.Fprintf(&text, "%s,%g\n", strings.Repeat("C", i+1), c.y(i))
		}
		x, err := read(t, text.String(), finetune.Task{Targets: []string{"y"}})
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(x.Outliers(), "; "); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// TestRepeatedIDs: an id of two records is named, but neither numbers nor ids of a record each.
func TestRepeatedIDs(t *testing.T) {
	text := "id,n,smiles,y\nb,1,CCO,0\na,2,CCN,1\na,3,CCC,1\nb,4,CCS,0\nc,3,CCF,1\na,6,CO,0\n"
	for id, want := range map[string]string{
		"id": `2 ids are there more than once, such as "b" (lines 2, 5)`,
		"y":  `2 ids are there more than once, such as "0" (lines 2, 5, 7)`,
		"n":  `1 ids are there more than once, such as "3" (lines 4, 6)`,
		"":   "",
	} {
		o := records.Options{ID: id, Input: strings.NewReader(text)}
		x, err := finetune.Read(t.Context(), "in.csv", finetune.Task{Targets: []string{"y"}}, o)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(x.RepeatedIDs(), "; "); got != want {
			t.Errorf("-id %q: %q, want %q", id, got, want)
		}
	}
}

// TestMapNumbers: atom map numbers make neither another molecule nor another scaffold.
func TestMapNumbers(t *testing.T) {
	text := "smiles,y,part\nCCO,0,valid\n[CH3:1][CH2:2][OH:3],0,test\nCCN,1,train\n[NH2:1][CH2:7][CH3:2],1,test\n"
	x, err := read(t, text, finetune.Task{Targets: []string{"y"}, Split: "part"})
	if err != nil {
		t.Fatal(err)
	}
	if v, n := x.Overlap(dataset.Split{Train: []int{2}, Valid: []int{0}, Test: []int{1, 3}}); v != 0 || n != 1 {
		t.Errorf("%d and %d overlap, want 0 and 1", v, n)
	}
	text = "smiles,y\n" + strings.Repeat("[CH3:1][c:3]1[cH:5][cH:2][cH:4][cH:7][cH:6]1,7.5\n[cH:1]1[c:2]([CH2:7][CH3:6])[cH:4][cH:8][cH:3][cH:5]1,8\n", 4) +
		"C1CC1,1.5\nC1CCC1,2\n"
	x, err = read(t, text, finetune.Task{Targets: []string{"y"}, Split: finetune.Scaffold})
	if err != nil {
		t.Fatal(err)
	}
	s, err := x.Divide(0)
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Train) != 8 || slices.Contains(s.Train, 8) {
		t.Errorf("benzenes are on two sides: %+v", s)
	}
}

// TestBinaryAmongNumbers: a target of 0 and 1 next to one with more values is fitted as a number, which is said.
func TestBinaryAmongNumbers(t *testing.T) {
	const text = "smiles,y1,y2,y3\nC,0.5,1,0\nCC,2,0,1\nCCC,3,,2\nCCCC,4.5,1,1\n"
	for targets, want := range map[string]bool{"y1,y2": true, "y1,y3": false, "y2": false} {
		x, err := read(t, text, finetune.Task{Targets: strings.Split(targets, ",")})
		if err != nil {
			t.Fatal(err)
		}
		got := strings.Contains(x.Summary(), "y2 has 0 and 1 only and is fitted as a number")
		if got != want || !want && strings.Contains(x.Summary(), "fitted as a number") {
			t.Errorf("%s: %s", targets, x.Summary())
		}
	}
}

// TestLargeScaffolds: groups that are larger than a small part go to the training set, and the parts have their shares.
func TestLargeScaffolds(t *testing.T) {
	var b strings.Builder
	b.WriteString("smiles,y\n")
	add := func(ring, chain, y int) {
		fmt.Fprintf(&b, "%sC1%sC1,%d\n", strings.Repeat("C", chain), strings.Repeat("C", ring), y)
	}
	for i := range 12 {
		add(1, i, i%2)
		add(2, i, i%2)
	}
	for i := range 76 {
		add(3+i, 0, i%2)
	}
	x, err := read(t, b.String(), finetune.Task{Targets: []string{"y"}, Split: finetune.StratifiedScaffold})
	if err != nil {
		t.Fatal(err)
	}
	s, err := x.Divide(0)
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Train) != 80 || len(s.Valid) != 10 || len(s.Test) != 10 {
		t.Errorf("parts of %d, %d and %d", len(s.Train), len(s.Valid), len(s.Test))
	}
}

// TestCountSalts: molecules of several fragments are counted where a fit sees all fragments.
func TestCountSalts(t *testing.T) {
	for _, keepsOne := range []bool{false, true} {
		o := records.Options{Input: strings.NewReader("smiles,y\nCC(=O)[O-].[Na+],1\nCCO,2\nCCN,3\nC.O,4\n")}
		o.Standard.LargestFragment = keepsOne
		x, err := finetune.Read(t.Context(), "m.csv", finetune.Task{Targets: []string{"y"}}, o)
		if err != nil {
			t.Fatal(err)
		}
		if n := x.CountSalts(); n != map[bool]int{false: 2, true: 0}[keepsOne] {
			t.Errorf("%d salts, one fragment kept: %t", n, keepsOne)
		}
	}
}

// TestMergeReplicates: records of a molecule within a part become one, with the label that the rule says; those of
// another part, or file, stay.
func TestMergeReplicates(t *testing.T) {
	text := "smiles,y,part\nCCO,1,train\nCCN,5,train\nOCC,2,train\nCCO,9,test\nC(C)O,6,train\nCCC,4,valid\nCCC,4,valid\n"
	for merge, want := range map[check.Merge]string{
		check.Keep:   "[1 5 2 9 6 4 4]",
		check.Mean:   "[3 5 9 4]",
		check.Median: "[2 5 9 4]",
		check.Drop:   "[5 9 4]",
	} {
		task := finetune.Task{Targets: []string{"y"}, Split: "part", Kind: model.Regression, Merge: merge}
		x, err := read(t, text, task)
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(x.Y); got != want || len(x.Records) != len(x.Y) || len(x.Set.Graphs) != len(x.Y) {
			t.Errorf("%s: %s, want %s", merge, got, want)
		}
		if merge == check.Mean && !strings.Contains(x.Summary(), "3 replicates merged or dropped") {
			t.Error(x.Summary())
		}
	}
}

// TestMergeByKind: labels have a mean if the column is one of numbers, whatever those of the molecule are, and parts
// are the same however they are spelt.
func TestMergeByKind(t *testing.T) {
	for _, c := range []struct {
		kind model.Kind
		want string
	}{
		{"", "regression [0.5 2.5 1 1.5]"},
		{model.Classes, "classes [NaN 1 0 NaN]"},
	} {
		text := "smiles,y,part\nCCO,0,train\nOCC,1,Training\nCCN,2.5,test\nCCC,1,valid\nCCS,1,train\nSCC,2,train\n"
		task := finetune.Task{Targets: []string{"y"}, Split: "part", Kind: c.kind, Merge: check.Mean}
		x, err := read(t, text, task)
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(x.Kind, " ", x.Y); got != c.want {
			t.Errorf("%q: %s, want %s", c.kind, got, c.want)
		}
	}
}

// TestMergeLosses: the tightest bound of a molecule stands for its others, and labels that merging loses are named with
// their lines.
func TestMergeLosses(t *testing.T) {
	text := "smiles,y\nCCO,>3\nOCC,>7\nCCN,<2\nNCC,>4\nCCC,3 uM\nCCC,4\nCCC,6\nCN,1.5\nCCS,2\nCO,3\n"
	task := finetune.Task{Targets: []string{"y"}, Kind: model.Regression, Bounds: true, Merge: check.Mean}
	x, err := read(t, text, task)
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(x.Y, x.Bounds); got != "[7 NaN 5 1.5 2 3] [1 0 0 0 0 0]" {
		t.Error(got)
	}
	want := []string{
		`y: 1 molecules have no label, as their bounds contradict each other: correct them, or take -merge drop: ` +
			`["<2" ">4"] (lines 4, 5)`,
		`y: 1 molecules have labels that are no numbers, which do not count: write the number alone: ["3 uM" "4" "6"] ` +
			`(lines 6, 7, 8)`,
	}
	if got := x.Losses(); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
