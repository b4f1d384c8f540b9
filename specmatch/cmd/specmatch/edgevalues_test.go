package main

import (
	"fmt"
	"strings"
	"testing"
)

// rings are rings of six nodes whose edges have the values one or other by turns (y = 0), or in halves (y = 1):
// the graphs differ in their edges only.
func rings(key, one, other string) string {
	var b strings.Builder
	for i := range 40 {
		half := i % 2
		var values []string
		for k := range 6 {
			value := one
			if half == 0 && k%2 == 1 || half == 1 && k > 2 {
				value = other
			}
			values = append(values, value)
		}
		fmt.Fprintf(&b, `{"id":"g%d","nodes":6,"edges":[[0,1],[1,2],[2,3],[3,4],[4,5],[5,0]],%q:[%s],"y":%d}`+"\n",
			i, key, strings.Join(values, ","), half)
	}
	return b.String()
}

// TestEdgeValues: train, finetune, embed and predict read labels and weights of edges. The model says so, and
// refuses graphs without them.
func TestEdgeValues(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "bare.jsonl", `{"id":"g0","nodes":2,"edges":[[0,1]],"y":1}`+"\n")
	for _, c := range []struct{ key, one, other, about, missing string }{
		{"edge_labels", `"single"`, `"double"`, `labels of edges ["double" "single"]`, "edges have no labels, which the model wants"},
		{"edge_weights", "0.5", "2", "weights of edges", "edges have no weights, which the model wants"},
	} {
		write(t, "g.jsonl", rings(c.key, c.one, c.other))
		must(t, "train -in g.jsonl -epochs 1 -method infonce -out "+c.key+"-encoder"+tiny)
		tuned := must(t, "finetune -in g.jsonl -id id -target y -seeds 1 -epochs 40 -batch 8 -lr 0.01 -hidden 8 -layers 2 -out "+c.key)
		if !strings.Contains(tuned, "ROC-AUC") || !strings.Contains(read(t, c.key+"/results.md"), "1.000") {
			t.Errorf("%s: edges that tell all are not learned:\n%s", c.key, tuned)
		}
		model := c.key + "/" + division{}.modelFile()
		for _, m := range []string{model, c.key + "-encoder/" + modelFile} {
			if about := must(t, "inspect -model "+m); !strings.Contains(about, c.about) {
				t.Errorf("%s: no %q in\n%s", c.key, c.about, about)
			}
			must(t, "finetune -in g.jsonl -id id -target y -seeds 1 -epochs 1 -out again-"+strings.ReplaceAll(m, "/", "-")+" -model "+m)
		}
		must(t, "predict -in g.jsonl -id id -explain "+c.key+".why.jsonl -out "+c.key+".csv -model "+model)
		for _, line := range []string{"predict -in bare.jsonl -out x.csv -model " + model,
			"embed -in bare.jsonl -out x.csv -model " + c.key + "-encoder/" + modelFile} {
			if _, stderr, err := invoke(t.Context(), line); err == nil || !strings.Contains(err.Error()+stderr, c.missing) {
				t.Errorf("%s: %v %s, want %s", line, err, stderr, c.missing)
			}
		}
		vectors := must(t, "embed -in g.jsonl -id id -out - -model "+c.key+"-encoder/"+modelFile)
		rows := strings.Split(vectors, "\n")
		if strings.TrimPrefix(rows[1], "g0") == strings.TrimPrefix(rows[2], "g1") {
			t.Errorf("%s: graphs that differ in their edges have one vector", c.key)
		}
		if _, stderr, err := invoke(t.Context(), "train -in g.jsonl -epochs 0 -ignore "+c.key+" -out bare-"+c.key+tiny); err != nil ||
			!strings.Contains(stderr, "not used "+c.key) {
			t.Errorf("ignored: %v, %s", err, stderr)
		}
	}
}
