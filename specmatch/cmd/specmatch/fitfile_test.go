package main

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/backend/cpu"
	"github.com/specmatch/specmatch/specmatch/cli"
	"github.com/specmatch/specmatch/specmatch/finetune"
	"github.com/specmatch/specmatch/tensor"
)

// TestFitFile: the library's fit of a file is the program's, of molecules and of graphs.
func TestFitFile(t *testing.T) {
	if testing.Short() {
		t.Skip("fits for seconds")
	}
	t.Chdir(t.TempDir())
	write(t, "m.csv", moleculeTable(24))
	table, _ := randomTrees(24)
	write(t, "trees.csv", table)
	for file, target := range map[string]string{"m.csv": "length", "trees.csv": "class"} {
		run := file + "-run"
		must(t, "finetune "+file+" "+run+" -target "+target+" -seeds 1")
		m, err := openModel(filepath.Join(run, division{}.modelFile()), cli.Engine{Backend: "cpu"})
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		be := cpu.New(tensor.Float32)
		defer be.Close()
		fitted, _, err := finetune.FitFile(t.Context(), file, be, target)
		if err != nil {
			t.Fatal(err)
		}
		for i, p := range fitted.Parameters() {
			if want := m.Parameters()[i]; p.Name != want.Name || !slices.Equal(valuesOf(p), valuesOf(want)) {
				t.Errorf("%s: %s differs from the program's %s", file, p.Name, want.Name)
			}
		}
	}
}

// valuesOf returns the values of a parameter.
func valuesOf(p *autodiff.Param) []float64 {
	values := make([]float64, p.Value.Rows*p.Value.Cols)
	p.Backend().Download(values, p.Value)
	return values
}
