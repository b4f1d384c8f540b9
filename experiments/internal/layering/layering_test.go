// Package layering holds the direction of imports: the house of the README, in
// a test.
package layering

import (
	"os/exec"
	"strings"
	"testing"
)

const module = "github.com/specmatch/specmatch/"

// layers lists the folders from the ground up. A package may import packages
// of its own layer and of layers below.
var layers = []string{"tensor", "backend", "autodiff", "gnn", "specmatch", "experiments"}

// hostOnly packages are plain slices: they import nothing of the engine.
var hostOnly = []string{"gnn/graph", "gnn/random", "gnn/augment", "gnn/dataset", "gnn/molecule", "gnn/kernel", "gnn/word2vec", "specmatch/eval"}

// engine is what hostOnly packages must do without; loops on slices are not of it.
var (
	engine = []string{"tensor", "backend", "autodiff"}
	loops  = []string{"backend/cpu/simd"}
)

func level(t *testing.T, pkg string) int {
	top, _, _ := strings.Cut(pkg, "/")
	for i, l := range layers {
		if l == top {
			return i
		}
	}
	t.Errorf("package %s is in none of the layers %v", pkg, layers)
	return -1
}

func under(pkg string, folders []string) bool {
	for _, f := range folders {
		if pkg == f || strings.HasPrefix(pkg, f+"/") {
			return true
		}
	}
	return false
}

func TestImportsGoDown(t *testing.T) {
	out, err := exec.Command("go", "list", "-f", `{{.ImportPath}} {{join .Deps " "}}`, module+"...").CombinedOutput()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, out)
	}
	edges := 0
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		pkg := strings.TrimPrefix(fields[0], module)
		for _, dep := range fields[1:] {
			d, ours := strings.CutPrefix(dep, module)
			if !ours {
				continue
			}
			edges++
			if level(t, d) > level(t, pkg) {
				t.Errorf("%s imports %s, which is above it", pkg, d)
			}
			if under(pkg, hostOnly) && under(d, engine) && !under(d, loops) {
				t.Errorf("%s imports %s; it must stay free of the engine", pkg, d)
			}
		}
	}
	if edges < 20 {
		t.Errorf("saw only %d imports inside the module: is go list run in the right place?", edges)
	}
}
