package finetune_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/specmatch/specmatch/gnn/dataset/records"
	"github.com/specmatch/specmatch/specmatch/finetune"
	"github.com/specmatch/specmatch/specmatch/model"
)

// TestKinds: the kind of targets is what their values say, or what is asked for, and the
// numbers are those of the head.
func TestKinds(t *testing.T) {
	for _, c := range []struct {
		columns string
		kind    model.Kind
		rows    string
		want    string // kind, outputs, values or the error
	}{
		{"y", "", "0|1||1", "binary 1 [0 1 NaN 1]"},
		{"y", "", "0|1||2", "regression 1 [0 1 NaN 2]"},
		{"y", "", "b|a|b||a", "classes 2 [1 0 1 NaN 0]"},
		{"y", model.Classes, "10|9|10|9", "classes 2 [1 0 1 0]"},
		{"y,z", "", "0,1|1,|,0", "binary 2 [0 1 1 NaN NaN 0]"},
		{"y,z", "", "0.5,1|1,|,0", "regression 2 [0.5 1 1 NaN NaN 0]"},
		{"y", "", "1|x|2|3", `t.csv:3: column y: "x" is not a number`},
		{"y", "", "1|NA|2.5|null|None|#N/A|-|n.d.|NaN|3", "regression 1 [1 NaN 2.5 NaN NaN NaN NaN NaN NaN 3]"},
		{"y", "", "1|2.5|n.d.|n.d.|?|-", "regression 1 [1 2.5 NaN NaN NaN NaN]"},
		{"y", "", "1.5|~5", `t.csv:3: column y: "~5" has a sign or a unit; write the number alone`},
		{"y", "", "0|na|1|N/A", "binary 1 [0 NaN 1 NaN]"},
		{"y", "", "+|-|+|-|NA", "classes 2 [0 1 0 1 NaN]"},
		{"y", "", "1.5|>10|2|<-0.77", `t.csv:3: column y: ">10" is a bound and not a number; write the number alone, leave the target empty, make classes of it, or ask for bounds (-bounds) (and 1 other targets like it)`},
		{"y", "", `"0,5"|"1,0"|"1,5"|"0,5"|"1,0"|"1,5"`, `t.csv:2: column y: "0,5" has a decimal comma; write a point (and 5 other`},
		{"y", "", "1|2|1e308", "is beyond 1e+37; take another unit or the logarithm"},
		{"y", "", "a|b|c|d", "has 4 different values in 4 records"},
		{"y", model.Binary, "0|1|2", `t.csv:4: column y: "2" is no binary target; want 0, 1 or nothing`},
		{"y,z", "", "1,|2,", "no record has a value of z"},
		{"y,z", model.Classes, "a,b|a,b", finetune.ErrSeveral.Error()},
		{"", "", "1|2", finetune.ErrNoTargets.Error()},
	} {
		var task finetune.Task
		task.Kind = c.kind
		if c.columns != "" {
			task.Targets = strings.Split(c.columns, ",")
		}
		text := "smiles,y,z\n"
		for row := range strings.SplitSeq(c.rows, "|") {
			if len(task.Targets) < 2 {
				row += ","
			}
			text += "C," + row + "\n"
		}
		x, err := finetune.Read(t.Context(), "t.csv", task, records.Options{Input: strings.NewReader(text)})
		got := fmt.Sprint(err)
		if err == nil {
			got = fmt.Sprint(x.Kind, " ", x.Head.Outputs, " ", x.Y)
		}
		if !strings.Contains(got, c.want) {
			t.Errorf("%q as %q: %s, want %s", c.rows, c.kind, got, c.want)
		}
	}
	for rows, want := range map[string]string{
		"1 -1 1 -1": "regression; they have two values only: write 0 and 1", "0 1 2 NA 0": "regression, 1 of 5 missing; they have three",
		"0 1 NA": "binary, 1 of 3 missing", "3.7 3.7": "nothing to learn", "0.5 1 2": "targets y: regression", "1 2 3 4": "targets y: regression",
	} {
		text := "smiles,y\nC," + strings.ReplaceAll(rows, " ", "\nC,") + "\n"
		x, err := finetune.Read(t.Context(), "t.csv", finetune.Task{Targets: []string{"y"}}, records.Options{Input: strings.NewReader(text)})
		if err != nil {
			t.Fatal(err)
		}
		if got := x.Summary(); !strings.Contains(got, want) || strings.HasSuffix(want, "regression") && got != want {
			t.Errorf("%s: %q, want %q", rows, got, want)
		}
	}
	_, err := finetune.Read(t.Context(), "t.csv", finetune.Task{}, records.Options{Input: strings.NewReader("smiles\nC\n")})
	if !errors.Is(err, finetune.ErrNoTargets) {
		t.Error(err)
	}
}

// TestDivide: only records with a target are divided, each into one part; a column says
// which, and a scaffold is in one part only.
func TestDivide(t *testing.T) {
	var b strings.Builder
	b.WriteString("smiles,y,part\n")
	for i := range 100 {
		y := fmt.Sprint(i, ".5")
		if i%10 == 9 {
			y = ""
		}
		ring := fmt.Sprintf("C1%sC1", strings.Repeat("C", 1+i%20))
		fmt.Fprintf(&b, "C%s,%s,%s\n", ring, y, []string{"train", "valid", "train", "test"}[i%4])
	}
	for _, split := range []string{"", finetune.Scaffold, "part"} {
		x, err := finetune.Read(t.Context(), "t.csv", finetune.Task{Targets: []string{"y"}, Split: split}, records.Options{Input: strings.NewReader(b.String())})
		if err != nil {
			t.Fatal(err)
		}
		s, err := x.Divide(3)
		if err != nil {
			t.Fatal(err)
		}
		part, scaffold := map[int]int{}, map[string]int{}
		for p, samples := range [][]int{s.Train, s.Valid, s.Test} {
			for _, i := range samples {
				if _, twice := part[i]; twice || i%10 == 9 {
					t.Errorf("%q: record %d is in two parts, or has no target", split, i)
				}
				if q, seen := scaffold[x.Records[i].Scaffold]; seen && q != p && split == finetune.Scaffold {
					t.Errorf("scaffold %s is in two parts", x.Records[i].Scaffold)
				}
				if want := []int{0, 1, 0, 2}[i%4]; split == "part" && p != want {
					t.Errorf("record %d is in part %d, want %d", i, p, want)
				}
				part[i], scaffold[x.Records[i].Scaffold] = p, p
			}
		}
		if len(part) != 90 {
			t.Errorf("%q: %d records are divided", split, len(part))
		}
	}
	text := "smiles,y,part\nC,1,train\nC,2,valid\nC,3,tset\n"
	x, err := finetune.Read(t.Context(), "t.csv", finetune.Task{Targets: []string{"y"}, Split: "part"}, records.Options{Input: strings.NewReader(text)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := x.Divide(0); err == nil || !strings.Contains(err.Error(), `t.csv:4: column part: "tset"; want train, valid or test`) {
		t.Error(err)
	}
}

// TestStratified: for classes and yes-or-no tasks every part has each answer of three
// records and more, whatever the seed; parts are 80, 10 and 10 % of the records.
func TestStratified(t *testing.T) {
	for name, c := range map[string]struct {
		targets string
		row     func(i int) string
		answers int // in each part
	}{
		"3 % positives":    {"y", func(i int) string { return fmt.Sprint(b2i(i%100 < 3), ",") }, 2},
		"three positives":  {"y", func(i int) string { return fmt.Sprint(b2i(i < 3), ",") }, 2},
		"texts":            {"y", func(i int) string { return fmt.Sprint("abc"[min(i%50, 2):][:1], ",") }, 3},
		"tasks with gaps":  {"y,z", func(i int) string { return []string{"1,0", ",1", "0,0", ",0"}[min(i%60/2, 2+i%2)] }, 4},
		"24 of class 0, 1": {"y", func(i int) string { return fmt.Sprint(i%2, ",") }, 2},
	} {
		text, n := "smiles,y,z\n", 300
		if strings.HasPrefix(name, "24") {
			n = 24
		}
		for i := range n {
			text += "C," + c.row(i) + "\n"
		}
		x, err := finetune.Read(t.Context(), "t.csv", finetune.Task{Targets: strings.Split(c.targets, ",")}, records.Options{Input: strings.NewReader(text)})
		if err != nil {
			t.Fatal(name, err)
		}
		orders := map[string]bool{}
		for seed := range uint64(20) {
			s, err := x.Divide(seed)
			if err != nil || x.Split != finetune.Stratified {
				t.Fatalf("%s: split %s, %v", name, x.Split, err)
			}
			orders[fmt.Sprint(s)] = true
			all := slices.Sorted(slices.Values(slices.Concat(s.Train, s.Valid, s.Test)))
			if len(all) != n || len(slices.Compact(all)) != n || max(len(s.Test), len(s.Valid)) > n/10+1 {
				t.Errorf("%s: %d, %d and %d of %d records", name, len(s.Train), len(s.Valid), len(s.Test), n)
			}
			for _, part := range [][]int{s.Train, s.Valid, s.Test} {
				seen := map[string]bool{}
				for _, i := range part {
					for task := range x.Targets {
						if y := x.Y[i*len(x.Targets)+task]; y == y {
							seen[fmt.Sprint(task, y)] = true
						}
					}
				}
				if len(seen) != c.answers {
					t.Errorf("%s, seed %d: answers %v of %d", name, seed, seen, c.answers)
				}
			}
		}
		if len(orders) != 20 {
			t.Errorf("%s: %d divisions of 20 seeds", name, len(orders))
		}
	}
	o := records.Options{Input: strings.NewReader("smiles,y\nC,1.5\nC,2\n")}
	if _, err := finetune.Read(t.Context(), "t.csv", finetune.Task{Targets: []string{"y"}, Split: finetune.Stratified}, o); err == nil || !strings.Contains(err.Error(), "stratified is for classes") {
		t.Error(err)
	}
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// TestTUKinds: in TUDataset's format, the class of a set is one even if it is 0 or 1. Several labels of 0 and 1 are
// binary tasks, and attributes of graphs are numbers.
func TestTUKinds(t *testing.T) {
	for _, c := range []struct {
		part, text string
		targets    string
		want       string // kind and outputs, or the error
	}{
		{"graph_labels", "0\n1\n1\n0\n", "", "classes 2"},
		{"graph_labels", "1\n2\n2\n1\n", "class", "classes 2"},
		{"graph_labels", "0,1,2\n1,0,1\n1,1,2\n0,0,1\n", "class1", "binary 1"},
		{"graph_labels", "0,1,2\n1,0,1\n1,1,2\n0,0,1\n", "class3", "classes 2"},
		{"graph_labels", "0,1,2\n1,0,1\n1,1,2\n0,0,1\n", "class1,class2", "binary 2"},
		{"graph_labels", "0,1,2\n1,0,1\n1,1,2\n0,0,1\n", "class2,class3", finetune.ErrSeveral.Error()},
		{"graph_labels", "0,1,2\n1,0,1\n1,1,2\n0,0,1\n", "class1,class3", finetune.ErrSeveral.Error()},
		{"graph_labels", "0\n1\n1\n0\n", "class,attribute", finetune.ErrSeveral.Error()},
		{"graph_labels", "1\n2\n3\n1\n", "attribute,class", finetune.ErrSeveral.Error()},
		{"graph_labels", "0,1\n1,2\n1,3\n0,1\n", "class2,attribute", finetune.ErrSeveral.Error()},
		{"graph_labels", "0,1\n1,2\n1,3\n0,1\n", "class1,attribute", "regression 2"},
		{"graph_attributes", "0.5\n1.25\n2\n7\n", "attribute", "regression 1"},
		{"graph_attributes", "0.5,1\n1.25,0\n2,0\n7,1\n", "attribute1,attribute2", "regression 2"},
		{"graph_attributes", "0.5,1\n1.25,0\n2,0\n7,1\n", "attribute2", "binary 1"},
	} {
		dir := filepath.Join(t.TempDir(), "S")
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		for part, text := range map[string]string{
			"A":                "1, 2\n2, 1\n",
			"graph_indicator":  "1\n1\n2\n3\n4\n",
			"graph_attributes": "0.5\n1.25\n2\n7\n",
			c.part:             c.text,
		} {
			if err := os.WriteFile(filepath.Join(dir, "S_"+part+".txt"), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		var task finetune.Task
		if c.targets != "" {
			task.Targets = strings.Split(c.targets, ",")
		}
		x, err := finetune.Read(t.Context(), dir, task, records.Options{})
		got := fmt.Sprint(err)
		if err == nil {
			got = fmt.Sprint(x.Kind, " ", x.Head.Outputs)
		}
		if !strings.Contains(got, c.want) {
			t.Errorf("%s of %q: %s, want %s", c.targets, c.text, got, c.want)
		}
	}
}
