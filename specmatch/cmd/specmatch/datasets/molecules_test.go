package datasets

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/specmatch/specmatch/gnn/dataset"
)

// TestHalves: a table of molecules becomes a set of two classes, split at the median,
// with elements as labels. A row that is no molecule and one without a number are left
// out.
func TestHalves(t *testing.T) {
	in, out := t.TempDir(), t.TempDir()
	text := "smiles,logd,act\nCCO,1.5,0\nnonsense,9,1\nCN,-2,0\nCC,,\nCCl,3,0\nC=O,0.5,1\n"
	if err := os.WriteFile(filepath.Join(in, "few.csv"), []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	export := func(name, column string) (stderr string, err error) {
		_, stderr, err = invoke(t, "export", "-data", in, "-dataset", name, "-column", column, "-out", out)
		return stderr, err
	}
	if stderr, err := export("few", "logd"); err != nil {
		t.Fatal(err, stderr)
	}
	ds, err := dataset.Open(t.Context(), out, "few", dataset.Options{})
	if err != nil {
		t.Fatal(err)
	}
	// The median of -2, 0.5, 1.5, 3 is taken to be 1.5; C, N, O and Cl are 0 to 3.
	if d := cmp.Diff([]int{1, 0, 1, 0}, ds.Labels()); d != "" {
		t.Error(d)
	}
	var nodes [][]int32
	for _, g := range ds.Graphs {
		nodes = append(nodes, g.X.Category)
	}
	if d := cmp.Diff([][]int32{{0, 0, 2}, {0, 1}, {0, 3}, {0, 2}}, nodes); d != "" || ds.FeatureWidth != 4 {
		t.Error(d)
	}
	// One has no numbers, and one none below its median.
	for _, column := range []string{"smiles", "act"} {
		stderr, err := export("few", column)
		if err == nil || !strings.Contains(stderr, `the numbers of column "`+column+`" do not fall into halves`) {
			t.Errorf("column %s: %v, %s", column, err, stderr)
		}
	}
	if stderr, err := export("none", "logd"); err == nil || !strings.Contains(stderr, "none.csv") {
		t.Errorf("a table that is not there: %v, %s", err, stderr)
	}
}
