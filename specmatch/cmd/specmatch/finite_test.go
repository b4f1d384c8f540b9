package main

import (
	"fmt"
	"strings"
	"testing"
)

// TestNonFinite: a record whose attributes are beyond float32 has no prediction: predict lists it and scores the others,
// and finetune names its line.
func TestNonFinite(t *testing.T) {
	t.Chdir(t.TempDir())
	graphs := func(large int) string {
		var b strings.Builder
		for i := range 30 {
			x := float64(i)
			if i == large {
				x = 3e38
			}
			fmt.Fprintf(&b, `{"nodes": 3, "edges": [[0, 1], [1, 2]], "attributes": [[%g], [%[1]g], [%[1]g]], "y": %g}`+"\n",
				x, float64(i)/2)
		}
		return b.String()
	}
	write(t, "good.jsonl", graphs(-1))
	write(t, "large.jsonl", graphs(7))
	must(t, "finetune -in good.jsonl -target y -out run -epochs 2 -hidden 8 -layers 2 -seeds 1")
	out := must(t, "predict -in large.jsonl -target y -out p.csv -model run/"+division{}.modelFile())
	for _, want := range []string{"p.csv: 29 rows", "p.csv.rejected.csv: 1 of 30 records", "y: 29 records with a target: RMSE"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in %s", want, out)
		}
	}
	if rejected := read(t, "p.csv.rejected.csv"); !strings.Contains(rejected, "8,8,,the model's result is not finite: column y is") {
		t.Error(rejected)
	}
	_, _, err := invoke(t.Context(), "finetune -in large.jsonl -target y -folds 3 -epochs 2 -hidden 8 -layers 2 -out folds")
	if err == nil || !strings.Contains(err.Error(), "large.jsonl:8: finetune: graph 7: attribute 0 of node 0 is 3e+38") {
		t.Error(err)
	}
}
