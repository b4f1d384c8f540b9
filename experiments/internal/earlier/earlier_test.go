// Package earlier tests that today's programs resume the runs of an earlier version.
//
// Each folder of testdata holds an interrupted run of a program of commit d15b9c7: some
// units are finished, some are missing, and one or two have a checkpoint where those are
// small. The folder want holds the results of resuming the run with that version. Today's
// programs must write the same numbers, keep the finished units and use the checkpoints.
// The test thus protects what users' run directories depend on: the names of experiments,
// flags, units, files and tensors, and the fields of results in the journal.
//
// The script testdata/make.sh made the folders. Never make the runs again with a newer
// version; add folders instead. A change that alters bits on purpose makes only the
// folders want again, with KEEP=1.
package earlier

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/specmatch/specmatch/backend/cpu/simd"
	"github.com/specmatch/specmatch/specmatch/run/runtest"
)

const module = "github.com/specmatch/specmatch/"

type stored struct{ name, program, command string }

// runs lists the folders of testdata, each with the folder of its program and the command
// that resumes the run.
var runs = []stored{
	{"unsupervised", "experiments/unsupervised", "-out run"},
	{"semisupervised", "experiments/semisupervised", "-out run"},
	{"transfer", "experiments/transfer", "-out run"},
	{"ablation", "experiments/ablation", "-out run"},
	{"selection", "experiments/selection", "-out run"},
	{"theory", "experiments/theory", "-out run"},
	{"kernels", "experiments/kernels", "-out run"},
	{"admet", "experiments/admet", "-out run"},
	{"train-molecules", "specmatch/cmd/specmatch", "train -out run"},
	{"train-graphs", "specmatch/cmd/specmatch", "train -out run"},
	{"finetune", "specmatch/cmd/specmatch", "finetune -out run"},
	{"sweep", "specmatch/cmd/specmatch", "sweep -in sweep.txt -out run -workers 1 -shares 2"},
}

func TestResume(t *testing.T) {
	if testing.Short() {
		t.Skip("builds nine programs; skipped with -short")
	}
	if level := simd.Level(); level != simd.AVX2 && level != simd.AVX512 {
		t.Skipf("the stored results hold for AVX2 and AVX-512 on amd64; this is %v", level)
	}
	wanted := runs
	if !runtest.Large() {
		wanted = slices.DeleteFunc(slices.Clone(runs), func(r stored) bool {
			return r.name != "unsupervised" && r.name != "train-graphs" && r.name != "finetune"
		})
	}
	bin := build(t, wanted)
	for _, r := range wanted {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if err := os.CopyFS(dir, os.DirFS(filepath.Join("testdata", r.name))); err != nil {
				t.Fatal(err)
			}
			program := filepath.Join(bin, path.Base(r.program))
			command := exec.CommandContext(t.Context(), program, strings.Fields(r.command)...)
			command.Dir = dir
			// AVX-512 gives the same bits, but without -mixed a run resumes on its own
			// instruction set only.
			command.Env = append(os.Environ(), simd.EnvVar+"=avx2", "GOMAXPROCS=1")
			if output, err := command.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, output)
			}
			compareResults(t, filepath.Join(dir, "want"), filepath.Join(dir, "run"))
			checkUsed(t, filepath.Join("testdata", r.name, "run"), filepath.Join(dir, "run"))
		})
	}
}

// TestFolders fails if a folder of testdata is not in the table.
func TestFolders(t *testing.T) {
	entries, err := os.ReadDir("testdata")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		known := slices.ContainsFunc(runs, func(r stored) bool { return r.name == e.Name() })
		if e.IsDir() && !known {
			t.Errorf("testdata/%s: no test resumes it", e.Name())
		}
	}
}

// build builds each of their programs once and returns their folder. It builds for GOAMD64=v1:
// from v3 on, the compiler fuses products and sums, which changes bits.
func build(t *testing.T, wanted []stored) string {
	t.Helper()
	bin := t.TempDir()
	args := []string{"build", "-buildvcs=false", "-ldflags=-s -w", "-o", bin + string(filepath.Separator)}
	for _, r := range wanted {
		if program := module + r.program; !slices.Contains(args, program) {
			args = append(args, program)
		}
	}
	command := exec.CommandContext(t.Context(), "go", args...)
	command.Env = append(os.Environ(), "GOAMD64=v1")
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v: %s", err, output)
	}
	return bin
}

// compareResults compares each file in want with the file of the same name in got: its
// numbers and the names that scripts rely on, without times and prose.
func compareResults(t *testing.T, want, got string) {
	t.Helper()
	names := list(t, want)
	if len(names) == 0 {
		t.Error("there is nothing to compare")
	}
	for _, name := range names {
		var a, b any
		switch path.Ext(name) {
		case ".json":
			folder := filepath.Dir(name)
			a = runtest.Results(t, filepath.Join(want, folder))
			b = runtest.Results(t, filepath.Join(got, folder))
		case ".csv":
			a, b = metrics(t, want, nil), metrics(t, got, columns(t, want))
		case ".md":
			a, b = numbers(t, filepath.Join(want, name)), numbers(t, filepath.Join(got, name))
		case ".safetensors":
			a, b = tensors(t, filepath.Join(want, name)), tensors(t, filepath.Join(got, name))
		default:
			t.Fatalf("want/%s: no way to compare such a file", name)
		}
		if d := cmp.Diff(a, b, cmpopts.EquateNaNs()); d != "" {
			t.Errorf("%s (- earlier version, + today):\n%.3000s", name, d)
		}
	}
}

// checkUsed fails unless the program resumed the stored run instead of starting over: the
// journal begins with the units that were finished, and no checkpoint is left.
func checkUsed(t *testing.T, stored, resumed string) {
	t.Helper()
	for _, name := range list(t, stored) {
		if path.Base(name) != "done.jsonl" {
			continue
		}
		if !strings.HasPrefix(read(t, filepath.Join(resumed, name)), read(t, filepath.Join(stored, name))) {
			t.Errorf("%s: finished units were computed again", name)
		}
	}
	for _, name := range list(t, resumed) {
		if strings.Contains(name, "checkpoints/") {
			t.Errorf("%s was not used", name)
		}
	}
}

// list returns the files below a folder by their paths there, with slashes.
func list(t *testing.T, dir string) (names []string) {
	t.Helper()
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// columns returns the header of metrics.csv.
func columns(t *testing.T, dir string) []string {
	t.Helper()
	header, _, _ := strings.Cut(read(t, filepath.Join(dir, "metrics.csv")), "\n")
	return strings.Split(header, ",")
}

// metrics returns the rows of metrics.csv by unit and epoch, with the given columns, or
// with all if columns is nil.
func metrics(t *testing.T, dir string, columns []string) map[string]map[string]string {
	t.Helper()
	all := map[string]map[string]string{}
	for _, row := range runtest.Metrics(t, dir) {
		for name := range row {
			if columns != nil && !slices.Contains(columns, name) {
				delete(row, name)
			}
		}
		all[fmt.Sprintf("%s, epoch %s", row["unit"], row["epoch"])] = row
	}
	return all
}

var number = regexp.MustCompile(`[-−]?\d+(\.\d+)?`)

// numbers returns the numbers in each table row of a Markdown file, without the first
// cell, which names the row.
func numbers(t *testing.T, path string) (rows [][]string) {
	t.Helper()
	for line := range strings.Lines(read(t, path)) {
		if cells := strings.SplitN(line, "|", 3); len(cells) == 3 {
			rows = append(rows, number.FindAllString(cells[2], -1))
		}
	}
	return rows
}

// tensors returns the shapes, places and bytes of a model file's tensors. It drops the
// metadata, which record the version.
func tensors(t *testing.T, path string) map[string]string {
	t.Helper()
	data := read(t, path)
	size := binary.LittleEndian.Uint64([]byte(data[:8]))
	header := map[string]json.RawMessage{}
	if err := json.Unmarshal([]byte(data[8:8+size]), &header); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	delete(header, "__metadata__")
	all := map[string]string{"data": data[8+size:]}
	for name, place := range header {
		all[name] = string(place)
	}
	return all
}
