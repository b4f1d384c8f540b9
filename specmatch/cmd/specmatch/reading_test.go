package main

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/specmatch/specmatch/specmatch/eval"
)

// randomTrees is a table of edges of n random trees, whose columns class and noted are random.
func randomTrees(n int) (table string, classes []int) {
	rng := rand.New(rand.NewPCG(33, 1))
	var b strings.Builder
	b.WriteString("graph,source,target,label,class,noted\n")
	for i := range n {
		class, nodes := rng.IntN(2), 6+rng.IntN(10)
		classes = append(classes, class)
		for v := range nodes {
			fmt.Fprintf(&b, "t%d,%d,,%d,%d,%d\n", i, v, rng.IntN(3), class, class)
		}
		for v := 1; v < nodes; v++ {
			fmt.Fprintf(&b, "t%d,%d,%d,,%d,%d\n", i, rng.IntN(v), v, class, class)
		}
	}
	return b.String(), classes
}

// TestNoLeak: vectors of random trees say nothing of their random classes, which stand beside
// them in the table.
func TestNoLeak(t *testing.T) {
	t.Chdir(t.TempDir())
	text, classes := randomTrees(120)
	write(t, "trees.csv", text)
	_, said, err := invoke(t.Context(), "train -in trees.csv -epochs 1 -out run"+tiny)
	if want := "trees.csv: 120 graphs; id graph; labels of nodes label; not used class, noted\n"; err != nil || !strings.Contains(said, want) {
		t.Fatalf("%v, %q; want %q", err, said, want)
	}
	_, said, err = invoke(t.Context(), "embed -in trees.csv -model run/model.safetensors -out v.csv")
	if err != nil || !strings.Contains(said, "not used class, noted") {
		t.Fatalf("%v, %q", err, said)
	}
	var x []float64
	for _, row := range readCSV(t, "v.csv")[1:] {
		for _, text := range row[1:] {
			v, err := strconv.ParseFloat(text, 64)
			if err != nil {
				t.Fatal(err)
			}
			x = append(x, v)
		}
	}
	r, err := eval.GraphCL.Accuracy(t.Context(), x, classes, 10, 0, eval.Options{})
	if err != nil || r.Mean < 0.3 || r.Mean > 0.7 {
		t.Errorf("a classifier of random classes: %v, %v", r, err)
	}
}

// TestAttributesByName: a model finds the attributes that it was trained on, whatever the order
// of the columns, and says which are missing.
func TestAttributesByName(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "a.csv", "graph,source,target,p,q\ng,1,,0.5,9\ng,2,,1,8\ng,1,2,,\nh,1,,3,7\n")
	write(t, "b.csv", "graph,source,target,q,other,p\ng,1,,9,n,0.5\ng,2,,8,n,1\ng,1,2,,n,\nh,1,,7,n,3\n")
	write(t, "c.csv", "graph,source,target,q\ng,1,,9\n")
	must(t, "train -in a.csv -attributes p,q -epochs 0 -batch 2 -out run"+tiny)
	for _, name := range []string{"a", "b"} {
		must(t, "embed -in "+name+".csv -model run/model.safetensors -out "+name+".v.csv")
	}
	if a, b := read(t, "a.v.csv"), read(t, "b.v.csv"); a != b {
		t.Errorf("%s\nand with columns in another order\n%s", a, b)
	}
	if _, _, err := invoke(t.Context(), "embed -in c.csv -model run/model.safetensors -out c.v.csv"); err == nil || !strings.Contains(err.Error(), `no column "p"`) {
		t.Error(err)
	}
	if got := must(t, "inspect -model run/model.safetensors"); !strings.Contains(got, `2 attributes of nodes (["p" "q"])`) {
		t.Error(got)
	}
}

// TestOtherColumns: a model says what its features are from, and embedding says so where a file's are from
// something else.
func TestOtherColumns(t *testing.T) {
	t.Chdir(t.TempDir())
	text, _ := randomTrees(40)
	write(t, "trees.csv", text)
	write(t, "trees.jsonl", `{"edges": [[0, 1], [1, 2]], "labels": [0, 1, 2]}`+"\n")
	if _, said, err := invoke(t.Context(), "train -in trees.csv -epochs 1 -out run"+tiny); err != nil {
		t.Fatal(err, said)
	}
	const from = "labels of nodes label"
	if out, _, err := invoke(t.Context(), "inspect -model run/model.safetensors"); err != nil || !strings.Contains(out, "from "+from+"\n") {
		t.Errorf("%v, %q", err, out)
	}
	for in, want := range map[string]bool{"trees.csv": false, "trees.jsonl": true} {
		_, said, err := invoke(t.Context(), "embed -in "+in+" -model run/model.safetensors -out v.npy")
		if err != nil || strings.Contains(said, in+": the model was trained on other columns or keys: "+from+"\n") != want {
			t.Errorf("%s: %v, %q", in, err, said)
		}
	}
}
