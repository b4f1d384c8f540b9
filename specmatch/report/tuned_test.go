//go:build unix

package report_test

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gonum.org/v1/gonum/stat"

	"github.com/specmatch/specmatch/specmatch/cli"
	"github.com/specmatch/specmatch/specmatch/report"
	"github.com/specmatch/specmatch/specmatch/report/browsertest"
	"github.com/specmatch/specmatch/specmatch/run"
)

// tuning is a fine-tuning that is made up.
type tuning struct {
	kind               string
	tasks, seeds, rows int
	rare               bool // class b has one record
	gaps               bool
	shared             bool // all seeds have one test set
}

// tuned writes the run directory of a fine-tuning.
func tuned(t *testing.T, dir string, c tuning) {
	t.Helper()
	f := cli.NewFlagSet("specmatch finetune", "", "")
	recipe, output := cli.Recipe{Epochs: 12, Batch: 2, LR: 1, Seeds: c.seeds}, run.Output{}
	f.Add(&recipe, &output)
	if err := f.Parse([]string{"-out", dir}, io.Discard); err != nil {
		t.Fatal(err)
	}
	d, err := run.Open(run.Options{Experiment: "specmatch finetune", Flags: f, Seeds: c.seeds, Engine: "cpu", Out: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	rng := rand.New(rand.NewPCG(1, 2))
	var targets []string
	for k := range c.tasks {
		targets = append(targets, fmt.Sprintf("a target with a long name %d", k))
	}
	metric := map[string]string{"regression": "rmse", "binary": "roc_auc", "classes": "accuracy"}[c.kind]
	var values []float64
	for seed := range c.seeds {
		unit := fmt.Sprintf("seed=%d", seed)
		v := 0.842311 + 1e-5*float64(seed) // nearly equal
		values = append(values, v)
		var b strings.Builder
		b.WriteString("id")
		if c.kind == "classes" {
			b.WriteString(",class_a,class_b")
		} else {
			b.WriteString("," + strings.Join(targets, ","))
		}
		for _, name := range targets {
			b.WriteString("," + name + "_observed")
		}
		b.WriteString(",distance\n")
		labels := rng
		if c.shared {
			labels = rand.New(rand.NewPCG(3, 4))
		}
		for i := range c.rows {
			var p, y []string
			for range targets {
				v := rng.NormFloat64()
				switch c.kind {
				case "regression":
					p, y = append(p, fmt.Sprintf("%.4g", v)), append(y, fmt.Sprintf("%.4g", v+0.5*rng.NormFloat64()))
				case "binary":
					q := 1 / (1 + math.Exp(-v))
					p, y = append(p, fmt.Sprintf("%.4g", q)), append(y, fmt.Sprint(map[bool]int{true: 1}[rng.Float64() < q && (!c.rare || i == 0)]))
				default:
					q := 1 / (1 + math.Exp(-v))
					p, y = append(p, fmt.Sprint(1-q), fmt.Sprint(q)), append(y, map[bool]string{true: "b", false: "a"}[i == 0 || !c.rare && labels.Float64() < 0.5])
				}
				if c.gaps && rng.IntN(3) == 0 {
					y[len(y)-1] = ""
				}
			}
			fmt.Fprintf(&b, "m%d,%s,%s,%.3f\n", i, strings.Join(p, ","), strings.Join(y, ","), rng.ExpFloat64())
		}
		table := fmt.Sprintf("test-%d.csv", seed)
		if err := os.WriteFile(filepath.Join(dir, table), []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		_, err = run.Do(d, unit, func() (json.RawMessage, error) {
			for e := range 12 {
				at := math.Exp(-float64(e) / 4)
				if err := d.Metrics(unit, e+1, slog.Float64("loss", at), slog.Float64("valid_loss", 1.1*at), slog.Float64("test_loss", 1.2*at),
					slog.Float64("valid_"+metric, v-at), slog.Float64("test_"+metric, v-at)); err != nil {
					return nil, err
				}
			}
			ring := report.Case{ID: "worst <1>", SMILES: "c1ccccc1N(C)C.[Na+]", Error: 3, Of: "y", Predicted: 1.23, Observed: "-5.8389999999999995",
				Values: []float64{1, -2, 3, 0, 0, 0, 5, 0, 0, -4}}
			graph := report.Case{ID: "g", Error: 2, Of: "y", Observed: "no", Values: []float64{1, 2, 3}, Edges: [][2]int{{0, 1}}}
			one := report.Case{ID: "an atom", Error: 1, Observed: "no", SMILES: "[He]", Values: []float64{0}}
			var confusion [][][]float64
			for range targets {
				if c.kind != "regression" {
					confusion = append(confusion, [][]float64{{float64(c.rows), 1}, {1, 0}})
				}
			}
			return json.Marshal(map[string]any{"Confusion": confusion, "Parts": []int{8, 1, 1}, "Shared": []int{0, 2}, "Worst": []report.Case{ring, graph, one}})
		}, table)
		if err != nil {
			t.Fatal(err)
		}
	}
	var rows []run.Row
	for _, name := range targets {
		suffix := ""
		if len(targets) > 1 {
			suffix = " " + name
		}
		for _, method := range []string{c.kind, "baseline"} {
			mean, std := stat.MeanStdDev(values, nil)
			rows = append(rows, run.Row{Experiment: "specmatch finetune", Dataset: "set", Method: method, Protocol: "random", Metric: metric + suffix,
				Mean: mean, Std: std, PerSeed: values, GraphsPerSecond: math.NaN()})
		}
	}
	if c.shared {
		mean := rows[0]
		mean.Method = "together"
		mean.Mean, mean.Std = 91, math.NaN()
		mean.PerSeed = []float64{91}
		rows = append(rows, mean)
	}
	rejected := "line,value,reason\n2,C1CC,column 2: ring 1 is not closed\n3,C1CCC,column 2: ring 1 is not closed\n"
	if err := os.WriteFile(filepath.Join(dir, "rejected.csv"), []byte(rejected), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := d.WriteResults(rows); err != nil {
		t.Fatal(err)
	}
}

// overlaps lists the texts of charts that touch another one of their chart, or leave it.
const overlaps = `[...document.querySelectorAll("svg.plot:not(.graph)")].filter(s => s.checkVisibility()).flatMap(svg => {
  const all = [...svg.querySelectorAll("text")].map(e => ({text: e.textContent, r: e.getBoundingClientRect()})), edge = svg.getBoundingClientRect();
  const bad = all.filter(a => a.r.left < edge.left - 1 || a.r.right > edge.right + 1).map(a => "outside: " + a.text);
  all.forEach((a, i) => all.slice(i + 1).forEach(b => {
    if (a.text && b.text && a.r.left < b.r.right && b.r.left < a.r.right && a.r.top + 2 < b.r.bottom && b.r.top + 2 < a.r.bottom) bad.push(a.text + " on " + b.text);
  }));
  return bad;
})`

// TestTuned: the page of a fine-tuning says what it has to, in a file that is not large.
func TestTuned(t *testing.T) {
	for name, c := range tunings {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			tuned(t, filepath.Join(dir, "run"), c)
			path := filepath.Join(dir, "report.html")
			if err := page(t, "", filepath.Join(dir, "run")).Save(path); err != nil {
				t.Fatal(err)
			}
			data, err := os.ReadFile(path)
			if err != nil || len(data) > 2_000_000 {
				t.Errorf("%d bytes, %v", len(data), err)
			}
			for _, want := range []string{`id="learning"`, `id="predictions"`, `id="worst"`, `id="data"`, "2 records were rejected", "ring 1 is not closed", "line 2: C1CC",
				"specmatch finetune -batch 2", "worst &lt;1&gt; (seed 0): y 1.23, observed -5.839<", "error by distance"} {
				if !strings.Contains(string(data), want) {
					t.Errorf("no %s", want)
				}
			}
			for _, want := range map[string][]string{"regression": {"residuals"}, "binary": {"ROC", "calibration", "precision and recall", `id="confusion"`}, "classes": {"calibration", `id="confusion"`}}[c.kind] {
				if !strings.Contains(string(data), want) {
					t.Errorf("no %s", want)
				}
			}
		})
	}
}

var tunings = map[string]tuning{
	"two near-equal seeds":    {kind: "regression", tasks: 1, seeds: 2, rows: 100},
	"one seed":                {kind: "regression", tasks: 1, seeds: 1, rows: 40},
	"ten tasks with gaps":     {kind: "binary", tasks: 10, seeds: 2, rows: 100, gaps: true},
	"ten numbers":             {kind: "regression", tasks: 10, seeds: 2, rows: 1000, gaps: true},
	"100,000 rows":            {kind: "regression", tasks: 1, seeds: 1, rows: 100_000},
	"a class with one record": {kind: "classes", tasks: 1, seeds: 2, rows: 60, rare: true},
	"one yes":                 {kind: "binary", tasks: 1, seeds: 1, rows: 60, rare: true},
}

// TestTunedInBrowser: no labels of the page overlap or are cut off, at the widths of a phone and a
// desktop and in both themes, and it asks for nothing.
func TestTunedInBrowser(t *testing.T) {
	b := browsertest.Start(t)
	for name, c := range tunings {
		dir := t.TempDir()
		tuned(t, filepath.Join(dir, "run"), c)
		path := filepath.Join(dir, "report.html")
		if err := page(t, "", filepath.Join(dir, "run")).Save(path); err != nil {
			t.Fatal(err)
		}
		for _, theme := range []string{"light", "dark"} {
			for _, width := range []int{1280, 400} {
				b.Prefers(theme)
				b.Open("file://"+path, width, 900)
				b.Eval(`document.querySelectorAll("details").forEach(d => d.open = true)`)
				if w := b.Eval("document.documentElement.scrollWidth"); w != fmt.Sprint(width) {
					t.Errorf("%s: at a width of %d pixels the page is %s wide", name, width, w)
				}
				if bad := b.Eval(overlaps); bad != "[]" {
					t.Errorf("%s: at a width of %d pixels: %s", name, width, bad)
				}
				b.Screenshot(fmt.Sprintf("%s-%s-%d.png", strings.ReplaceAll(name, " ", "-"), theme, width))
			}
		}
		for _, url := range b.Asked {
			if !strings.HasPrefix(url, "file://") && url != "about:blank" {
				t.Errorf("%s: the page asks for %s", name, url)
			}
		}
	}
	for _, e := range b.Failed {
		t.Errorf("a script has failed: %s", e)
	}
}
