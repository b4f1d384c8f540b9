package run_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/specmatch/specmatch/specmatch/run"
	"github.com/specmatch/specmatch/specmatch/table"
	"github.com/specmatch/specmatch/specmatch/train"
)

func TestMetrics(t *testing.T) {
	d := open(t, options(t, t.TempDir()))
	for _, row := range []struct {
		unit    string
		epoch   int
		columns []slog.Attr
	}{
		{"a", 1, []slog.Attr{slog.Float64("train/loss", 0.1), slog.Duration("time", 1500*time.Millisecond), slog.Int("nodes", 7), slog.String("note", "x, \"y\"\nz"), slog.Time("at", time.Unix(0, 0).UTC())}},
		{"a", 2, []slog.Attr{slog.Int("nodes", 8), slog.Float64("train/loss", math.NaN())}}, // by name
		{"b", 1, []slog.Attr{slog.Float64("train/loss", math.Inf(1)), slog.Bool("note", true)}},
		{"b", 2, nil},
	} {
		if err := d.Metrics(row.unit, row.epoch, row.columns...); err != nil {
			t.Fatal(err)
		}
	}
	want := `unit,epoch,train/loss,time,nodes,note,at
a,1,0.1,1.5,7,"x, ""y"" z",1970-01-01T00:00:00Z
a,2,NaN,,8,,
b,1,+Inf,,,true,
b,2,,,,,
`
	if got := read(t, d, "metrics.csv"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	for _, columns := range [][]slog.Attr{{slog.Int("epoch", 1)}, {slog.Int("nodes", 1), slog.Int("nodes", 1)}} {
		if err := d.Metrics("a", 3, columns...); err == nil || !strings.Contains(err.Error(), columns[0].Key) {
			t.Errorf("column %s stands twice: %v", columns[0].Key, err)
		}
	}
	if got := read(t, d, "metrics.csv"); got != want {
		t.Errorf("an error wrote\n%s", got)
	}
}

// A row with new columns widens the file, in the start that it belongs to and in
// later ones.
func TestMetricsWiden(t *testing.T) {
	o := options(t, t.TempDir())
	d := open(t, o)
	row := func(unit string, epoch int, columns ...any) {
		t.Helper()
		var attrs []slog.Attr
		for i := 0; i < len(columns); i += 2 {
			attrs = append(attrs, slog.Any(columns[i].(string), columns[i+1]))
		}
		if err := d.Metrics(unit, epoch, attrs...); err != nil {
			t.Fatal(err)
		}
	}
	row("a", 1, "loss", 0.5)
	row("b", 1, "p", 0.2, "loss", 0.25, "q", 3)
	row("a", 2, "loss", 0.5)
	row("c", 1)
	d.Close()
	d = open(t, o)
	row("c", 1, "memory", 7) // again, and wider
	row("b", 2, "q", 4)
	want := `unit,epoch,loss,p,q,memory
a,1,0.5,,,
b,1,0.25,0.2,3,
a,2,0.5,,,
c,1,,,,7
b,2,,,4,
`
	if got := read(t, d, "metrics.csv"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// An interrupted unit runs again, from its beginning or from a checkpoint, and
// leaves each epoch once.
func TestMetricsOfResumedUnit(t *testing.T) {
	for _, tt := range []struct {
		name string
		from int
	}{{"beginning", 0}, {"checkpoint", 2}} {
		t.Run(tt.name, func(t *testing.T) {
			o := options(t, t.TempDir())
			d := open(t, o)
			row := func(unit string, epoch, start int) {
				t.Helper()
				if err := d.Metrics(unit, epoch, slog.Int("start", start)); err != nil {
					t.Fatal(err)
				}
			}
			row("a", 0, 1)
			for epoch := range 4 {
				row("b", epoch, 1)
			}
			row("c", 0, 1)
			spoil(t, d, "metrics.csv", "c,1")
			d.Close()

			d = open(t, o)
			for epoch := tt.from; epoch < 5; epoch++ {
				row("b", epoch, 2)
			}
			var got []string
			for line := range strings.Lines(read(t, d, "metrics.csv")) {
				got = append(got, strings.TrimSpace(line))
			}
			want := []string{"unit,epoch,start", "a,0,1"}
			if tt.from == 2 {
				want = append(want, "b,0,1", "b,1,1")
			}
			want = append(want, "c,0,1")
			if tt.from == 0 {
				want = append(want, "b,0,2", "b,1,2")
			}
			want = append(want, "b,2,2", "b,3,2", "b,4,2")
			if !reflect.DeepEqual(got, want) {
				t.Errorf("got %q\nwant %q", got, want)
			}
		})
	}
}

func TestSpoiltMetrics(t *testing.T) {
	for _, tt := range []struct{ text, err string }{
		{"epoch,loss\n", "metrics.csv:1: columns"},
		{"unit,epoch,loss\na,1\n", "metrics.csv: record on line 2: wrong number of fields"},
		{"unit,epoch,loss\na,1,2\na,one,2\n", `metrics.csv:3: epoch "one"`},
	} {
		o := options(t, t.TempDir())
		d := open(t, o)
		spoil(t, d, "metrics.csv", tt.text)
		d.Close()
		if _, err := run.Open(o); err == nil || !strings.Contains(err.Error(), tt.err) {
			t.Errorf("%q: got %v, want %s", tt.text, err, tt.err)
		}
	}
}

func TestResults(t *testing.T) {
	d := open(t, options(t, t.TempDir()))
	if err := d.WriteResults(nil); err != nil || read(t, d, "results.json") != "[\n]\n" {
		t.Errorf("no rows: %q, %v", read(t, d, "results.json"), err)
	}
	rows := []run.Row{
		{
			Experiment: "unsupervised", Dataset: "MUTAG", Method: "specmatch", Protocol: "rbf", Metric: "accuracy",
			Mean: 88.5, Std: 0.5, PerSeed: []float64{88, 89}, Seeds: []int{0, 1}, Beta: train.Beta{Ratio: 0.2}, Percentile: 80, Epochs: 20,
			Backend: "cpu", Precision: "float32", Seconds: 12.25, GraphsPerSecond: 1e6,
		},
		{Mean: math.NaN(), Std: math.Inf(1), PerSeed: []float64{math.Inf(-1), 1}, Beta: train.Beta{Weight: 0.5}, Percentile: math.NaN(), Seconds: math.NaN(), GraphsPerSecond: math.NaN()},
		{},
	}
	if err := d.WriteResults(rows); err != nil {
		t.Fatal(err)
	}
	want := `[
  {"experiment":"unsupervised","dataset":"MUTAG","method":"specmatch","protocol":"rbf","metric":"accuracy","mean":88.5,"std":0.5,"per_seed":[88,89],"seeds":[0,1],"beta":"auto:0.2","p":80,"epochs":20,"backend":"cpu","precision":"float32","seconds":12.25,"graphs_per_second":1000000},
  {"experiment":"","dataset":"","method":"","protocol":"","metric":"","mean":null,"std":null,"per_seed":[null,1],"seeds":[0,1],"beta":0.5,"p":null,"epochs":0,"backend":"","precision":"","seconds":null,"graphs_per_second":null},
  {"experiment":"","dataset":"","method":"","protocol":"","metric":"","mean":0,"std":0,"per_seed":[],"beta":0,"p":0,"epochs":0,"backend":"","precision":"","seconds":0,"graphs_per_second":0}
]
`
	text := read(t, d, "results.json")
	if text != want {
		t.Errorf("got\n%s\nwant\n%s", text, want)
	}
	var back []run.Row
	if err := json.Unmarshal([]byte(text), &back); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(back[0], rows[0]) {
		t.Errorf("read back %+v", back[0])
	}
	if !math.IsNaN(back[1].Mean) || !math.IsNaN(back[1].PerSeed[0]) || back[1].PerSeed[1] != 1 {
		t.Errorf("read back %+v", back[1])
	}
	if err := json.Unmarshal([]byte(`[{"mean":"high"}]`), &back); err == nil {
		t.Error("a word was read as a number")
	}
	if err := json.Unmarshal([]byte(`[{"dataset":"MUTAG","method":"gae","per_seed":[1],"seeds":[0,1]}]`), &back); err == nil || !strings.Contains(err.Error(), "gae on MUTAG: 1 values of 2 seeds") {
		t.Errorf("a value too few: %v", err)
	}
}

func TestReport(t *testing.T) {
	d := open(t, options(t, t.TempDir()))
	first, second := table.New("method", table.Column{Name: "MUTAG"}), table.New("method", table.Column{Name: "NCI1"})
	first.Add("infonce", table.Number(87, 0))
	second.Add("infonce", table.Number(79, 0))
	var stdout bytes.Buffer
	if err := d.Report(&stdout, nil, first, nil, second); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"MUTAG", "87", "NCI1", "79"} {
		if !strings.Contains(stdout.String(), want) || !strings.Contains(read(t, d, "tables.md"), want) {
			t.Errorf("the tables lack %q:\n%s\n%s", want, stdout.String(), read(t, d, "tables.md"))
		}
	}
	if !strings.Contains(read(t, d, "tables.md"), "| --- |") || strings.Contains(stdout.String(), "| --- |") {
		t.Error("tables.md is Markdown and the output is text")
	}
}
