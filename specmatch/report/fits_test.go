package report

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/specmatch/specmatch/specmatch/report/plot"
	"github.com/specmatch/specmatch/specmatch/run"
)

// fine returns a fine-tuning of a kind, in a folder whose name has the letters of a pattern, with a table of
// predictions for each model.
func fine(t *testing.T, kind, metric string, tables ...string) *run.Run {
	t.Helper()
	r := &run.Run{
		Path:       filepath.Join(t.TempDir(), "lr[1]"),
		Experiment: finetuning,
		Flags:      map[string]json.RawMessage{},
		Rows:       []run.Row{{Dataset: "set", Method: kind, Metric: metric, Mean: 1, Std: math.NaN()}},
	}
	if err := os.Mkdir(r.Path, 0o755); err != nil {
		t.Fatal(err)
	}
	for seed, table := range tables {
		number := string(rune('0' + seed))
		if err := os.WriteFile(filepath.Join(r.Path, "test-"+number+".csv"), []byte(table), 0o644); err != nil {
			t.Fatal(err)
		}
		r.Units = append(r.Units, run.Record{
			Name:   "seed=" + number,
			Result: json.RawMessage(`{"Parts":[8,1,1]}`),
			Files:  map[string]string{"model-" + number + ".safetensors": "", "test-" + number + ".csv": ""},
		})
	}
	return r
}

// TestNames: targets may have the names that tables of predictions give to other columns.
func TestNames(t *testing.T) {
	for table, want := range map[string]string{
		"id,y,y_observed,distance\nm,1,2,3\n":                                      "y: 1 2 3",
		"id,y,y_observed\nm,1,2\n":                                                 "y: 1 2 NaN",
		"id,distance,distance_observed,distance_2\nm,1,2,3\n":                      "distance: 1 2 3",
		"id,y_observed,y_observed_observed,distance\nm,1,2,3\n":                    "y_observed: 1 2 3",
		"id,a,b_observed,a_observed,b_observed_observed\nm,1,3,2,4\n":              "a b_observed: 1 2 NaN, 3 4 NaN",
		"id,y,y_observed,y_observed_2,y_observed_observed,distance\nm,1,3,2,4,5\n": "y y_observed: 1 2 5, 3 4 5",
	} {
		x, err := newTuned(fine(t, "regression", "rmse", table))
		if err != nil {
			t.Errorf("%q: %v", table, err)
			continue
		}
		var pairs []string
		for k := range x.targets {
			p, y, distances := x.pairs(k)
			pairs = append(pairs, strings.Trim(plain(p)+" "+plain(y)+" "+plain(distances), " "))
		}
		if got := strings.Join(x.targets, " ") + ": " + strings.Join(pairs, ", "); got != want {
			t.Errorf("%q: %s, want %s", table, got, want)
		}
	}
	for table, want := range map[string]string{
		"":                         "the file is empty",
		"id,y\nm,1\n":              "targets that end in _observed",
		"id,class_a,y\nm,1,2\n":    "targets that end in _observed",
		"id\nm\n":                  "targets that end in _observed",
		"id,y,y_observed\nm,x,1\n": `"x" is not a number`,
	} {
		_, err := newTuned(fine(t, "regression", "rmse", table))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", table, err, want)
		}
	}
}

// plain returns numbers as a text.
func plain(values []float64) string {
	data, err := json.Marshal(values)
	if err != nil { // NaN, which JSON lacks
		return "NaN"
	}
	return strings.Trim(string(data), "[]")
}

// TestPositive: the text of -positive is the positive answer, in plots and in counts.
func TestPositive(t *testing.T) {
	const table = "id,y,y_observed\na,0.9,toxic\nb,0.2,safe\nc,0.7,safe\nd,0.5,\n"
	r := fine(t, "binary", "roc_auc", table, table)
	r.Rows = append(r.Rows, run.Row{Dataset: "set", Method: together, Metric: "roc_auc"})
	r.Flags["positive"] = json.RawMessage(`"toxic"`)
	x, err := newTuned(r)
	if err != nil {
		t.Fatal(err)
	}
	if p, y, _ := x.pairs(0); !slices.Equal(p, []float64{0.9, 0.2, 0.7}) || !slices.Equal(y, []float64{1, 0, 0}) {
		t.Errorf("predictions %v of %v", p, y)
	}
	counts := x.matrices()
	if len(counts) != 1 || !slices.EqualFunc(counts[0], [][]float64{{1, 1}, {0, 1}}, slices.Equal[[]float64]) {
		t.Errorf("confusion %v", counts)
	}
}

// TestShares: fits to a share of a training set are no models, and not part of the curves of the others. What predict
// writes next to the tables of a run is none of them.
func TestShares(t *testing.T) {
	const table = "id,y,y_observed\na,1,2\n"
	r := fine(t, "regression", "rmse", table, table)
	r.Rows = append(r.Rows, run.Row{Dataset: "set", Method: together, Metric: "rmse", Std: math.NaN()})
	for _, unit := range []string{"seed=0/share=2", "seed=1/share=2"} {
		r.Units = append(r.Units, run.Record{Name: unit, Result: json.RawMessage(`{"Records":4}`)})
	}
	for _, unit := range r.Units {
		loss := "1"
		if strings.Contains(unit.Name, "share") {
			loss = "9"
		}
		for epoch := range 2 {
			r.Metrics = append(r.Metrics, run.Epoch{
				Unit:   unit.Name,
				Epoch:  epoch + 1,
				Values: map[string]string{"loss": loss},
			})
		}
	}
	if err := os.WriteFile(filepath.Join(r.Path, "test-new.csv"), []byte("id,y\nx,1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	x, err := newTuned(r)
	if err != nil {
		t.Fatal(err)
	}
	if got := tunedTitle(r); !strings.Contains(got, ", 2 models together") {
		t.Errorf("title %q", got)
	}
	untested := *r
	untested.Rows = slices.Clone(r.Rows)
	for i := range untested.Rows {
		untested.Rows[i].Mean = math.NaN()
	}
	if got := tunedTitle(&untested); got != "set" {
		t.Errorf("the title without a score is %q", got)
	}
	if note := x.scoreNote(); !strings.Contains(note, "mean over the 2 models") {
		t.Errorf("note %q", note)
	}
	if rows := x.data()[0].table.Rows(); rows != 2 {
		t.Errorf("%d rows of data, want 2", rows)
	}
	if loss := x.learning()[0].charts[0].(plot.Lines).Series[0].Y; !slices.Equal(loss, []float64{1, 1}) {
		t.Errorf("loss %v, want 1", loss)
	}
}

// TestCommand: the command has every value that is set, whether or not it looks like none.
func TestCommand(t *testing.T) {
	r := fine(t, "regression", "rmse")
	for name, value := range map[string]string{
		"in": `"m.csv"`, "target": `["y","it's"]`, "test": `"none"`, "forest": "0", "dropout": "0", "network": "false",
		"balanced": "true", "kind": `"true"`, "valid": `""`, "weight": "null", "features": "[]", "mixed": "true",
		"shard": `"0/2"`, "node-features": `"degrees"`,
	} {
		r.Flags[name] = json.RawMessage(value)
	}
	const want = `specmatch finetune -balanced -dropout 0 -forest 0 -in m.csv -kind true -network=false ` +
		`-target 'y,it'\''s' -test none`
	if got := (&tuned{run: r}).command(); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

// TestLongFlags: a command has all of a long value, and values that differ at their ends alone differ.
func TestLongFlags(t *testing.T) {
	var targets []string
	for k := range 60 {
		targets = append(targets, fmt.Sprintf("the_inhibition_of_kinase_%d", k))
	}
	runs := []*run.Run{fine(t, "regression", "rmse"), fine(t, "regression", "rmse")}
	for k, r := range runs {
		targets[59] = fmt.Sprintf("y%d", k)
		r.Flags["target"], _ = json.Marshal(targets)
		command := (&tuned{run: r}).command()
		if want := "specmatch finetune -target " + strings.Join(targets, ","); command != want {
			t.Errorf("%s\nwant\n%s", command, want)
		}
	}
	var differ []string
	for _, s := range settingsOf(runs) {
		if s.differs() {
			differ = append(differ, s.name)
		}
		for _, cell := range s.cells() {
			if text := fmt.Sprint(cell); len(text) > 1100 {
				t.Errorf("%s has a cell of %d bytes", s.name, len(text))
			}
		}
	}
	if !slices.Equal(differ, []string{"-target"}) {
		t.Errorf("the runs differ in %q, want -target", differ)
	}
}
