// Package layering holds the direction of imports: the house of the README, in
// a test.
package layering

import (
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/specmatch/specmatch/"

// layers lists the folders from the ground up. A package may import packages
// of its own layer and of layers below.
var layers = []string{"tensor", "backend", "autodiff", "gnn", "specmatch", "experiments"}

// floors are those of the specmatch layer, from the ground up. A package stands on the floor of its
// own name or of the nearest folder above it, and imports packages of its floor and of those below;
// so what a program imports as a library never leads to command lines, runs or reports.
var floors = [][]string{
	{"setting", "shard", "table", "eval", "train/tensorboard", "run/progress", "report/plot", "report/browsertest"},
	{"train", "model"},
	{"."},
	{"method", "theory", "pretrained", "domain", "check"},
	{"apply"},
	{"finetune"},
	{"cli"},
	{"run"},
	{"report"},
	{"laboratory"},
	{"cmd"},
}

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

// floorOf returns the floor of a package of the specmatch layer, by its path below specmatch.
func floorOf(t *testing.T, pkg string) int {
	t.Helper()
	for folder := pkg; ; folder = path.Dir(folder) {
		for i, floor := range floors {
			if slices.Contains(floor, folder) && (folder != "." || pkg == ".") {
				return i
			}
		}
		if folder == "." {
			t.Errorf("package specmatch/%s is on no floor", pkg)
			return len(floors)
		}
	}
}

// TestFloors: inside the specmatch layer, too, imports go downwards only.
func TestFloors(t *testing.T) {
	out, err := exec.Command("go", "list", "-f", `{{.ImportPath}} {{join .Imports " "}}`, module+"specmatch/...").CombinedOutput()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, out)
	}
	below := func(importPath string) (string, bool) {
		pkg, ours := strings.CutPrefix(importPath+"/", module+"specmatch/")
		return path.Clean(pkg), ours
	}
	edges := 0
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		pkg, _ := below(fields[0])
		for _, imported := range fields[1:] {
			dep, ours := below(imported)
			if !ours {
				continue
			}
			edges++
			if floorOf(t, dep) > floorOf(t, pkg) {
				t.Errorf("specmatch/%s imports specmatch/%s, which is above it", pkg, dep)
			}
		}
	}
	if edges < 20 {
		t.Errorf("saw only %d imports inside specmatch", edges)
	}
}
