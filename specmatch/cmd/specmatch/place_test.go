package main

import (
	"strings"
	"testing"
)

// TestRunFolder: a run whose folder has the signs of a pattern in its name is joined from its shards and applied, and
// what is written into the folder of a model can be written again.
func TestRunFolder(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "m.csv", moleculeTable(60))
	fit := "finetune -in m.csv -target length -epochs 1 -seeds 2 -out tuned[1]" + few + tiny
	must(t, fit+"-shard 0/2")
	must(t, fit+"-shard 1/2")
	if list := must(t, fit+"-list"); strings.Count(list, "done in") != 2 {
		t.Errorf("the fits of the shards are not found:\n%s", list)
	}
	must(t, fit)
	must(t, "train -in m.csv -epochs 0 -out encoder[1]"+tiny)
	for _, line := range []string{
		"predict -in m.csv -model tuned[1] -domain tuned[1]/d.csv -out tuned[1]/p.csv",
		"embed -in m.csv -model encoder[1] -out encoder[1]/v.npy",
		"search -in m.csv -query CCO -by vectors -model encoder[1] -out encoder[1]/h.csv -page encoder[1]/h.html",
	} {
		first := must(t, line)
		if again := must(t, line); again != first {
			t.Errorf("%s: %q, and then %q", line, first, again)
		}
	}
}
