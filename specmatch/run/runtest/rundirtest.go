// Package runtest makes and reads run directories, and reads tables, in the
// tests of experiments.
package runtest

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/specmatch/specmatch/specmatch/cli"
	"github.com/specmatch/specmatch/specmatch/run"
	"github.com/specmatch/specmatch/specmatch/table"
)

// Open returns a new run directory with room for weights, which the end of the test
// closes.
func Open(t testing.TB, experiment string) *run.Dir {
	t.Helper()
	return open(t, experiment, filepath.Join(t.TempDir(), "run"))
}

// Reopen closes a run directory and opens it again, as the next start of a run does.
func Reopen(t testing.TB, dir *run.Dir) *run.Dir {
	t.Helper()
	if err := dir.Close(); err != nil {
		t.Fatal(err)
	}
	return open(t, dir.Experiment, dir.Path)
}

func open(t testing.TB, experiment, path string) *run.Dir {
	t.Helper()
	dir, err := run.Open(run.Options{
		Experiment: experiment,
		Flags:      cli.NewFlagSet(experiment, "", ""),
		Seeds:      1,
		Engine:     "cpu",
		Out:        path,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dir.Close() })
	if err := os.MkdirAll(dir.Join("weights"), 0o777); err != nil {
		t.Fatal(err)
	}
	return dir
}

// Results returns the rows of results.json without the timings, which are the only
// part that differs between two runs with the same flags. Numbers that a row does
// not have are NaN: compare with cmpopts.EquateNaNs.
func Results(t testing.TB, dir string) []run.Row {
	t.Helper()
	var rows []run.Row
	JSON(t, filepath.Join(dir, "results.json"), &rows)
	for i := range rows {
		rows[i].Seconds = 0
		rows[i].GraphsPerSecond = 0
	}
	return rows
}

// Find returns the row of a method on a data set under a protocol.
func Find(rows []run.Row, dataset, method, protocol string) (r run.Row, ok bool) {
	i := slices.IndexFunc(rows, func(r run.Row) bool {
		return r.Dataset == dataset && r.Method == method && r.Protocol == protocol
	})
	if i < 0 {
		return r, false
	}
	return rows[i], true
}

// Metrics returns metrics.csv as one map per line, by the name of the column.
func Metrics(t testing.TB, dir string) []map[string]string {
	t.Helper()
	f, err := os.Open(filepath.Join(dir, "metrics.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var all []map[string]string
	for _, l := range lines[1:] {
		m := map[string]string{}
		for i, name := range lines[0] {
			m[name] = l[i]
		}
		all = append(all, m)
	}
	return all
}

// JSON reads a file into v.
func JSON(t testing.TB, path string, v any) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(data, v)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Files fails the test for each of the files that is not there, or empty.
func Files(t testing.TB, dir string, names ...string) {
	t.Helper()
	for _, f := range names {
		if info, err := os.Stat(filepath.Join(dir, f)); err != nil || info.Size() == 0 {
			t.Errorf("%s: missing or empty (%v)", f, err)
		}
	}
}

// Rows returns the rows of a table, each with its name first.
func Rows(t testing.TB, tab *table.Table) [][]string {
	t.Helper()
	var text bytes.Buffer
	if err := tab.WriteMarkdown(&text); err != nil {
		t.Fatal(err)
	}
	var rows [][]string
	for l := range strings.Lines(text.String()) {
		if !strings.HasPrefix(l, "|") {
			continue
		}
		l = strings.TrimSuffix(strings.TrimPrefix(strings.ReplaceAll(l, "**", ""), "| "), " |\n")
		rows = append(rows, strings.Split(l, " | "))
	}
	return rows[2:] // after the header and the line below it
}

// OddSets runs an experiment on sets with graphs without nodes, with a class of one graph and with
// classes smaller than the folds. It fails unless they are evaluated, one line says so, and the same
// graphs as JSON Lines have the same accuracies.
func OddSets(
	t *testing.T,
	run func(ctx context.Context, args []string, stdout, stderr io.Writer) error,
	args ...string,
) {
	t.Helper()
	data, summary := oddSets(t)
	var stderr bytes.Buffer
	out := filepath.Join(t.TempDir(), "run")
	args = append(
		[]string{
			"-data", data, "-dataset", "FINGER,finger.jsonl,MSRC,FIRST", "-seeds", "1", "-out", out,
		},
		args...,
	)
	if err := run(t.Context(), args, io.Discard, &stderr); err != nil {
		t.Fatal(err)
	}
	for name, line := range summary {
		if strings.Count(stderr.String(), line) != 1 {
			t.Errorf("%s: not said once:\n%s", name, &stderr)
		}
	}
	rows := Results(t, out)
	for _, r := range rows {
		if r.Dataset == "FINGER" {
			if twin, ok := Find(rows, "finger.jsonl", r.Method, r.Protocol); !ok || twin.Mean != r.Mean {
				t.Errorf("%s, %s: %v in TUDataset's format, %v as JSON Lines",
					r.Method, r.Protocol, r.Mean, twin.Mean)
			}
		}
	}
	if len(rows) < 8 {
		t.Errorf("%d rows", len(rows))
	}
}

// oddSets writes likenesses of sets of TUDataset's site into a folder, and returns it and what
// programs say of each: of FINGER some graphs have no nodes, as of Fingerprint, and finger.jsonl has
// the same graphs; in MSRC a class has one graph, as in MSRC_21C, and in FIRST classes have
// fewer graphs than there are folds, as in FIRSTMM_DB.
func oddSets(t testing.TB) (dir string, said map[string]string) {
	t.Helper()
	dir = t.TempDir()
	write := func(path, text string) {
		if err := os.WriteFile(filepath.Join(dir, path), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var lines strings.Builder
	for name, class := range map[string]func(g int) int{
		"FINGER": func(g int) int { return g % 2 },
		"MSRC":   func(g int) int { return min(g, 1) + g%2 },
		"FIRST":  func(g int) int { return g % 8 },
	} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
		var edges, graphs, classes strings.Builder
		node := 0
		for g := range 24 {
			fmt.Fprintln(&classes, class(g))
			nodes := 3 + g%4
			if name == "FINGER" && g%5 == 4 {
				nodes = 0
			}
			pairs := []string{}
			for i := range nodes {
				node++
				fmt.Fprintln(&graphs, g+1)
				if i > 0 {
					fmt.Fprintf(&edges, "%d, %d\n%[2]d, %[1]d\n", node-1, node)
					pairs = append(pairs, fmt.Sprintf("[%d,%d]", i-1, i))
				}
			}
			if name == "FINGER" {
				fmt.Fprintf(&lines, `{"nodes":%d,"edges":[%s],"class":%d}`+"\n",
					nodes, strings.Join(pairs, ","), class(g))
			}
		}
		for part, text := range map[string]string{
			"A":               edges.String(),
			"graph_indicator": graphs.String(),
			"graph_labels":    classes.String(),
		} {
			write(name+"/"+name+"_"+part+".txt", text)
		}
	}
	write("finger.jsonl", lines.String())
	return dir, map[string]string{
		"FINGER": "FINGER: 20 graphs, 2 classes; features of nodes: none, all are alike; left out: 4 " +
			"graphs without nodes\n",
		"finger.jsonl": "finger.jsonl: 20 graphs, 2 classes; features of nodes: none, all are alike; " +
			"left out: 4 graphs without nodes\n",
		"MSRC":  "MSRC: class 0 has only 1 graphs for 10 folds: some folds lack it in training or test",
		"FIRST": "FIRST: class 0 has only 3 graphs for 10 folds: some folds lack it in training or test",
	}
}
