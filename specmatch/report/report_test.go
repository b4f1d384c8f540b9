package report_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"gonum.org/v1/gonum/stat"

	"github.com/specmatch/specmatch/specmatch/cli"
	"github.com/specmatch/specmatch/specmatch/report"
	"github.com/specmatch/specmatch/specmatch/run"
	"github.com/specmatch/specmatch/specmatch/run/runtest"
)

// shape is the size of a run that is made up.
type shape struct{ sets, methods, seeds, epochs, metrics int }

var names = []string{
	"infonce", "specmatch", "untrained", "graphcl", "infograph", "joao", "joaov2",
	"simgrace", "mssgcl", "cuco", "gae", "infomax", "attrmasking",
}

// accuracy is that of a method on a set with a seed.
func accuracy(set, method, seed int, beta float64) float64 {
	rng := rand.New(rand.NewPCG(uint64(set), uint64(100*method+seed)))
	x := 70 + 5*float64(set) + float64(method) + rng.NormFloat64()
	if names[method] == "specmatch" {
		x += beta
	}
	return x
}

// made writes a run directory, as an experiment does, and returns its path.
func made(t *testing.T, dir string, beta float64, s shape) string {
	t.Helper()
	f := cli.NewFlagSet("made", "", "")
	loss, recipe, output := runtest.Loss{Methods: names}, cli.Recipe{Epochs: s.epochs, Batch: 2, LR: 1, Seeds: s.seeds}, run.Output{}
	f.Add(&loss, &recipe, &output)
	if err := f.Parse([]string{"-out", dir, "-beta", fmt.Sprint(beta)}, io.Discard); err != nil {
		t.Fatal(err)
	}
	d, err := run.Open(run.Options{Experiment: "made", Flags: f, Seeds: s.seeds, Engine: "cpu", Out: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	var rows []run.Row
	for set := range s.sets {
		for m := range s.methods {
			r := run.Row{
				Experiment: "made", Dataset: fmt.Sprintf("SET-%d", set), Method: names[m], Protocol: "linear", Metric: "accuracy",
				Epochs: s.epochs, Seconds: 90 * float64(s.seeds), GraphsPerSecond: 1000, Percentile: math.NaN(),
			}
			for seed := range s.seeds {
				unit := fmt.Sprintf("%s/%s/seed=%d", r.Dataset, r.Method, seed)
				a, err := run.Do(d, unit, func() (float64, error) {
					for e := range s.epochs {
						columns := []slog.Attr{slog.String("dataset", r.Dataset), slog.Int("seed", seed)}
						for k := range s.metrics {
							columns = append(columns, slog.Float64(fmt.Sprintf("metric_%d", k), float64(k+m)*math.Exp(-float64(e)/10)+0.01*float64(seed)))
						}
						if err := d.Metrics(unit, e+1, columns...); err != nil {
							return 0, err
						}
					}
					return accuracy(set, m, seed, beta), nil
				})
				if err != nil {
					t.Fatal(err)
				}
				r.PerSeed = append(r.PerSeed, a)
			}
			r.Mean, r.Std = stat.MeanStdDev(r.PerSeed, nil)
			rows = append(rows, r)
		}
	}
	if err := d.WriteResults(rows); err != nil {
		t.Fatal(err)
	}
	return dir
}

// page makes the report of runs that lie in a folder.
func page(t *testing.T, against string, paths ...string) *report.Page {
	t.Helper()
	runs, err := report.Read(paths)
	if err != nil {
		t.Fatal(err)
	}
	p, err := report.New(runs, report.Options{Against: against})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// markdown returns the tables of a page.
func markdown(t *testing.T, p *report.Page) string {
	t.Helper()
	var b bytes.Buffer
	if err := p.WriteMarkdown(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// Runs that differ in β are rows that name it, but for methods that β does not touch;
// differences are those of the seeds, and corrected for the rows of the table.
func TestSweep(t *testing.T) {
	dir := t.TempDir()
	s := shape{sets: 2, methods: 3, seeds: 5, epochs: 2, metrics: 1}
	made(t, filepath.Join(dir, "a"), 0.5, s)
	made(t, filepath.Join(dir, "b"), 1, s)
	text := markdown(t, page(t, "", dir))
	for _, want := range []string{
		"| method | SET-0 | SET-1 |",
		"\n| SpecMatch-CL, beta=0.5 |", "\n| SpecMatch-CL, beta=1 |", "\n| InfoNCE (β = 0) |",
		"made, linear, accuracy (%); rows compared: 6",
		"| -beta | 0.5 | 1 |",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	_, results, _ := strings.Cut(text, "## Results")
	results, _, _ = strings.Cut(results, "\n## ")
	if strings.Contains(results, "InfoNCE (β = 0), beta") || !strings.Contains(results, "SpecMatch-CL, beta") {
		t.Errorf("InfoNCE, which is equal in both runs, has rows of its own:\n%s", results)
	}
	var x []float64
	for seed := range s.seeds {
		x = append(x, accuracy(1, 1, seed, 1)-accuracy(1, 0, seed, 1))
	}
	mean, std := stat.MeanStdDev(x, nil)
	want := fmt.Sprintf("| SpecMatch-CL, beta=1 | SET-1 | 5 | %.2f | %.2f |", mean, std/math.Sqrt(5))
	if !strings.Contains(text, strings.ReplaceAll(want, "-0", "−0")) && !strings.Contains(text, want) {
		t.Errorf("no %q in\n%s", want, text)
	}
	if text := markdown(t, page(t, "untrained", dir)); !strings.Contains(text, "| untrained encoder |\n") {
		t.Errorf("differences are not those from the row that was asked for:\n%s", text)
	}
	runs, _ := report.Read([]string{dir})
	if _, err := report.New(runs, report.Options{Against: "nothing"}); err == nil || !strings.Contains(err.Error(), `"nothing"`) {
		t.Errorf("differences from a row that is not there: %v", err)
	}
}

// memory is runs that are read from no directory, with a column for each metric.
func memory(runs int, s shape) (all []*run.Run) {
	for k := range runs {
		r := &run.Run{Path: fmt.Sprint("runs/", k), Experiment: "made", Flags: map[string]json.RawMessage{"beta": json.RawMessage(fmt.Sprint(k))}}
		for seed := range s.seeds {
			r.Seeds = append(r.Seeds, seed)
		}
		for m := range s.metrics {
			r.Columns = append(r.Columns, fmt.Sprint("metric_", m))
		}
		for set := range s.sets {
			for m := range s.methods {
				row := run.Row{Experiment: "made", Dataset: fmt.Sprint("SET-", set), Method: names[m], Protocol: "linear", Metric: "accuracy"}
				for seed := range s.seeds {
					row.PerSeed = append(row.PerSeed, accuracy(set, m, seed, float64(k)))
					for e := range s.epochs {
						values := map[string]string{}
						for i, column := range r.Columns {
							values[column] = fmt.Sprint(float64(i+m)*math.Exp(-float64(e)/10) + 0.01*float64(seed))
						}
						r.Metrics = append(r.Metrics, run.Epoch{Unit: fmt.Sprintf("%s/%s/seed=%d", row.Dataset, row.Method, seed), Epoch: e + 1, Values: values})
					}
				}
				row.Mean, row.Std = stat.MeanStdDev(row.PerSeed, nil)
				r.Rows = append(r.Rows, row)
			}
		}
		all = append(all, r)
	}
	return all
}

// A page stays below 2 MB, with fewer points and then fewer curves, and asks for
// nothing from elsewhere.
func TestSize(t *testing.T) {
	for _, c := range []struct {
		runs  []*run.Run
		shown int // metrics
	}{
		{memory(2, shape{sets: 8, methods: 13, seeds: 2, epochs: 100, metrics: 12}), 12},
		{memory(40, shape{sets: 3, methods: 5, seeds: 1, epochs: 30, metrics: 12}), 1},
	} {
		p, err := report.New(c.runs, report.Options{})
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := p.WriteHTML(&b); err != nil {
			t.Fatal(err)
		}
		t.Logf("%d runs: %d bytes", len(c.runs), b.Len())
		if b.Len() > 2_000_000 {
			t.Errorf("the page of %d runs has %d bytes", len(c.runs), b.Len())
		}
		if shown := len(regexp.MustCompile(`(<h3>|<summary>)made, metric_`).FindAllString(b.String(), -1)); shown != c.shown {
			t.Errorf("%d runs: %d metrics are shown, want %d", len(c.runs), shown, c.shown)
		}
		if cut := strings.Contains(b.String(), "1 of 12 metrics are shown"); cut != (c.shown == 1) {
			t.Errorf("%d runs: that metrics are left out is said: %t", len(c.runs), cut)
		}
		if external := regexp.MustCompile(`(?i)(src|href)\s*=\s*"[^#]|url\(|@import|https?:`).FindString(b.String()); external != "" {
			t.Errorf("the page refers to something else: %q", external)
		}
	}
}

// Compare says what differs, and nothing of what does not.
func TestCompare(t *testing.T) {
	dir := t.TempDir()
	a := made(t, filepath.Join(dir, "a"), 0.5, shape{1, 2, 3, 2, 1})
	b := made(t, filepath.Join(dir, "b"), 1, shape{1, 2, 4, 2, 1})
	runs, err := report.Read([]string{a, b})
	if err != nil {
		t.Fatal(err)
	}
	text := markdown(t, report.Compare(runs[0], runs[1]))
	for _, want := range []string{
		"| -beta | 0.5 | 1 |\n", "| -seeds | 3 | 4 |\n",
		"| SET-0/specmatch/seed=3 | finished | no | yes |",
		"| SpecMatch-CL | SET-0 | linear, accuracy (%) |", "| 3 | 0.50 | 0.00 |",
		"3 of 8 units are equal.",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	for _, unwanted := range []string{"-epochs", "infonce/seed=0", "-out"} {
		if strings.Contains(text, unwanted) {
			t.Errorf("%q, which is equal, in\n%s", unwanted, text)
		}
	}
	if text := markdown(t, report.Compare(runs[0], runs[0])); !strings.Contains(text, "6 of 6 units are equal.") || strings.Contains(text, "| -") && strings.Contains(text, "beta") {
		t.Errorf("a run differs from itself:\n%s", text)
	}
}

// What is not there, or not a run, is named.
func TestReadErrors(t *testing.T) {
	dir := t.TempDir()
	if _, err := report.Read([]string{dir}); err == nil || !strings.Contains(err.Error(), dir) {
		t.Errorf("an empty folder: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := report.Read([]string{dir}); err == nil || !strings.Contains(err.Error(), "config.json") {
		t.Errorf("half a config.json: %v", err)
	}
	if err := page(t, "", made(t, t.TempDir(), 1, shape{1, 1, 1, 1, 1})).Save("x.pdf"); err == nil || !strings.Contains(err.Error(), "x.pdf") {
		t.Errorf("a format that there is not: %v", err)
	}
}

// Runs with equal settings are told apart by their folders, and if these have one name
// by where they lie.
func TestEqualSettings(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, folders := range [][2]string{{"a", "b"}, {"c/same", "d/same"}} {
		a := made(t, folders[0], 1, shape{1, 2, 3, 1, 1})
		b := made(t, folders[1], 1, shape{1, 2, 4, 1, 1})
		text := markdown(t, page(t, "", a, b))
		for _, folder := range folders {
			if folder == "c/same" || folder == "d/same" {
				folder = "same, " + folder
			}
			if want := "| SpecMatch-CL, " + folder + " |"; strings.Count(text, want) < 2 {
				t.Errorf("no %q in\n%s", want, text)
			}
		}
	}
}

// A run that is no longer one of a sweep is not reported with it, nor with a folder above or by a link.
func TestSmallerSweep(t *testing.T) {
	above := t.TempDir()
	dir := filepath.Join(above, "sweep")
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "b"} {
		made(t, filepath.Join(dir, name), 1, shape{1, 2, 2, 1, 1})
	}
	for _, plan := range []string{"", `{"Runs":[{"Name":"b"}]}`} {
		want := 2
		if plan != "" {
			want = 1
			if err := os.WriteFile(filepath.Join(dir, "sweep.json"), []byte(plan), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		for _, path := range []string{dir, above, link} {
			if runs, err := report.Read([]string{path}); err != nil || len(runs) != want {
				t.Errorf("plan %q: %d runs in %s, %v; want %d", plan, len(runs), path, err, want)
			}
		}
	}
	runs, err := report.Read([]string{link})
	if want := filepath.Join(link, "b"); err != nil || runs[0].Path != want {
		t.Errorf("the run of a link is %v, %v; want %s", runs, err, want)
	}
}
