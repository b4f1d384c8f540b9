package apply_test

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/specmatch/specmatch/backend/cpu"
	"github.com/specmatch/specmatch/gnn/dataset/parquet"
	"github.com/specmatch/specmatch/gnn/dataset/records"
	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/gnn/molecule/descriptor"
	"github.com/specmatch/specmatch/specmatch/apply"
	"github.com/specmatch/specmatch/specmatch/pretrained"
	"github.com/specmatch/specmatch/tensor"
)

// nodes is a model that counts.
func nodes(_ context.Context, graphs []*graph.Graph) (y []float64, err error) {
	for _, g := range graphs {
		y = append(y, float64(g.Nodes()))
	}
	return y, nil
}

// TestStream: every record comes once, in order, with the row that is its own, however
// batches and parts of them fall.
func TestStream(t *testing.T) {
	var text strings.Builder
	text.WriteString("smiles\n")
	want := 0
	for i := range 5000 {
		if i%7 == 3 || i == 4999 {
			text.WriteString("C(\n")
			continue
		}
		want++
		text.WriteString(strings.Repeat("C", 1+i%50) + "\n")
	}
	job := apply.Job{
		Path: "m.csv", Records: records.Options{Input: strings.NewReader(text.String())},
		Model: apply.Model{Columns: []string{"nodes"}, Rows: nodes},
	}
	read, rows := 0, 0
	err := job.Stream(t.Context(), func(b apply.Batch) error {
		for _, r := range b.Records {
			if read++; r.Number != read {
				t.Fatalf("record %d comes after %d", r.Number, read-1)
			}
		}
		for r, row := range b.Rows() {
			if rows++; len(row) != 1 || int(row[0]) != 1+(r.Number-1)%50 {
				t.Fatalf("record %d has the row %v", r.Number, row)
			}
		}
		return nil
	})
	if err != nil || read != 5000 || rows != want {
		t.Errorf("%d records, %d rows, want %d; %v", read, rows, want, err)
	}
}

// TestEnds: errors of the model, of who takes the rows, and of the context end a job.
func TestEnds(t *testing.T) {
	failed := errors.New("no")
	job := func(rows func(context.Context, []*graph.Graph) ([]float64, error)) *apply.Job {
		return &apply.Job{
			Path: "m.csv", Records: records.Options{Input: strings.NewReader("smiles\nC\nCC\n")},
			Model: apply.Model{Columns: []string{"nodes"}, Rows: rows},
		}
	}
	none := func(apply.Batch) error { return nil }
	if err := job(nodes).Stream(t.Context(), func(apply.Batch) error { return failed }); !errors.Is(err, failed) {
		t.Error(err)
	}
	err := job(func(context.Context, []*graph.Graph) ([]float64, error) { return nil, failed }).Stream(t.Context(), none)
	if !errors.Is(err, failed) {
		t.Error(err)
	}
	err = job(func(context.Context, []*graph.Graph) ([]float64, error) { return []float64{1}, nil }).Stream(t.Context(), none)
	if err == nil || !strings.Contains(err.Error(), "1 numbers for 2 graphs, want 2") {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := job(nodes).Stream(ctx, none); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if _, err := job(nodes).WriteFile(t.Context(), "rows.txt"); err == nil || !strings.Contains(err.Error(), "want a name that ends in") {
		t.Error(err)
	}
	encoder, err := pretrained.Open(cpu.New(tensor.Float32))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := apply.Predictor(encoder); err == nil || !strings.Contains(err.Error(), "without a head") {
		t.Error(err)
	}
	if _, err := apply.Predictor(); err == nil {
		t.Error("no model predicts")
	}
}

// TestProgress: it counts what is done, that of an earlier start included, which is what
// a job goes on from.
func TestProgress(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("m.smi", bytes.Repeat([]byte("CC\n"), 3010), 0o666); err != nil {
		t.Fatal(err)
	}
	left := 1100
	var seen []int
	job := apply.Job{Path: "m.smi", Records: records.Options{Skip: 10}, Progress: func(n int) { seen = append(seen, n) }, Model: apply.Model{
		Columns: []string{"nodes"}, Rows: func(ctx context.Context, graphs []*graph.Graph) ([]float64, error) {
			if left -= len(graphs); left < 0 {
				return nil, errors.New("broken off")
			}
			return nodes(ctx, graphs)
		},
	}}
	r, err := job.WriteFile(t.Context(), "rows.csv")
	if err == nil || !r.Resumes || r.Records != 1024 {
		t.Errorf("%+v, %v", r, err)
	}
	left = 5000
	if r, err = job.WriteFile(t.Context(), "rows.csv"); err != nil || r != (apply.Result{Records: 3000}) {
		t.Errorf("%+v, %v", r, err)
	}
	if got := fmt.Sprint(seen); got != "[0 1024 1024 2048 3000]" {
		t.Error(got)
	}
}

// TestJournal: what a start has left is taken up only if it is what that start has written,
// and in the same way.
func TestJournal(t *testing.T) {
	t.Chdir(t.TempDir())
	text := "smiles\nC(\xfc\n" + strings.Repeat("CC\nCCC\n", 1024)
	if err := os.WriteFile("m.csv", []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	start := func(limit int, out string, strict bool) (graphs int, err error) {
		job := apply.Job{Path: "m.csv", Strict: strict, Model: apply.Model{
			Columns: []string{"nodes"}, Rows: func(ctx context.Context, all []*graph.Graph) ([]float64, error) {
				if graphs += len(all); graphs > limit {
					return nil, errors.New("broken off")
				}
				return nodes(ctx, all)
			},
		}}
		_, err = job.WriteFile(t.Context(), out)
		return graphs, err
	}
	edit := func(name string, change func([]byte) []byte) {
		data, err := os.ReadFile(name)
		if err == nil {
			err = os.WriteFile(name, change(data), 0o666)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	number := func(key, value string) func([]byte) []byte {
		return func(b []byte) []byte {
			return regexp.MustCompile(`"`+key+`":-?[0-9]+`).ReplaceAll(b, []byte(`"`+key+`":`+value))
		}
	}
	if _, err := start(1e6, "whole.csv", false); err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile("whole.csv")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		what string
		do   func()
		all  bool // is computed again
	}{
		{"nothing", func() {}, false},
		{"zeros in the data", func() { edit("v.csv.partial", func(b []byte) []byte { clear(b[len(b)/2:]); return b }) }, true},
		{"a shorter file", func() { edit("v.csv.partial", func(b []byte) []byte { return b[:len(b)-1] }) }, true},
		{"-5 records", func() { edit("v.csv.journal", number("Records", "-5")) }, true},
		{"many records", func() { edit("v.csv.journal", number("Records", "1000000000")) }, true},
		{"none rejected", func() { edit("v.csv.journal", number("Rejected", "0")) }, true},
		{"a negative size", func() {
			edit("v.csv.journal", func(b []byte) []byte { return bytes.Replace(b, []byte(`"Sizes":[`), []byte(`"Sizes":[-`), 1) })
		}, true},
		{"half a journal", func() { edit("v.csv.journal", func(b []byte) []byte { return b[:len(b)/2] }) }, true},
		{"a killed writer's file", func() { os.WriteFile(".v.csv.journal.123", nil, 0o666) }, false},
	} {
		if _, err := start(1100, "v.csv", false); err == nil {
			t.Fatal(c.what, ": not broken off")
		}
		c.do()
		graphs, err := start(1e6, "v.csv", false)
		if err != nil || (graphs == 2048) != c.all {
			t.Errorf("%s: %d graphs went through the model, %v", c.what, graphs, err)
		}
		if got, err := os.ReadFile("v.csv"); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: another output, %v", c.what, err)
		}
		if left, err := filepath.Glob("*v.csv*"); err != nil || strings.Join(left, " ") != "v.csv v.csv.rejected.csv" {
			t.Errorf("%s: left %v, %v", c.what, left, err)
		}
	}
	start(1100, "v.csv", false)
	if _, err := start(1e6, "v.csv", true); err == nil || !strings.Contains(err.Error(), "m.csv:2") {
		t.Errorf("strict from now on: %v", err)
	}
}

// TestNothing: a file of which no record can be used is an error however often it is tried,
// also after a start that ended in between, and leaves nothing.
func TestNothing(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("m.csv", []byte("smiles\n"+strings.Repeat("C(\n", 1100)), 0o666); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		job := apply.Job{Path: "m.csv", Model: apply.Model{Columns: []string{"nodes"}, Rows: nodes}}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		job.Progress = func(done int) {
			if i == 1 && done == 1024 {
				cancel()
			}
		}
		_, err := job.WriteFile(ctx, "v.npy")
		if i == 1 && errors.Is(err, context.Canceled) {
			continue
		}
		if err == nil || !strings.Contains(err.Error(), "none of its 1100 records can be used, such as dataset: m.csv:2") {
			t.Errorf("start %d: %v", i, err)
		}
		if left, err := filepath.Glob("*v.npy*"); err != nil || left != nil {
			t.Errorf("start %d: left %v, %v", i, left, err)
		}
	}
}

// TestText: what leaves is UTF-8 without control characters, and no two columns have a name.
func TestText(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("m.csv", []byte("smiles,name\nC,M\xfcller\nCC,a\x1b[31m\nC(,\x00\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	job := apply.Job{Path: "m.csv", Records: records.Options{ID: "name"}, Model: apply.Model{Columns: []string{"nodes"}, Rows: nodes}}
	for _, out := range []string{"v.csv", "v.npy", "v.parquet"} {
		if _, err := job.WriteFile(t.Context(), out); err != nil {
			t.Fatal(err)
		}
		if out == "v.npy" {
			out += ".ids.csv"
		}
		for _, name := range []string{out, strings.TrimSuffix(out, ".ids.csv") + apply.Rejected} {
			text, err := os.ReadFile(name)
			if err != nil || filepath.Ext(name) == ".csv" && (!utf8.Valid(text) || bytes.ContainsAny(text, "\x00\x1b")) {
				t.Errorf("%s: %q, %v", name, text, err)
			}
		}
	}
	x, err := parquet.Open("v.parquet")
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	if text, err := io.ReadAll(x); err != nil || !utf8.Valid(text) || !bytes.Contains(text, []byte(`a\x1b[31m,2`)) {
		t.Errorf("%q, %v", text, err)
	}
	if _, err := job.WriteFile(t.Context(), "."+string(filepath.Separator)+"m.csv"); err == nil || !strings.Contains(err.Error(), "it is the input") {
		t.Errorf("onto itself: %v", err)
	}
}

// TestIDs: ids and fields keep their tabs and line feeds, so that different ones stay different. Carriage returns are
// escaped, since readers of CSV drop some.
func TestIDs(t *testing.T) {
	t.Chdir(t.TempDir())
	names := []string{"a\nb", `a\nb`, "tab\there", `tab\there`, "\tb", "c\rd", `q"x`, "e\r\nf", "e\nf"}
	var text bytes.Buffer
	lines := json.NewEncoder(&text)
	for _, name := range names {
		lines.Encode(map[string]any{"nodes": 2, "edges": [][2]int{{0, 1}}, "name": name})
	}
	lines.Encode(map[string]any{"nodes": 2, "edges": [][2]int{{0, -1}}, "name": "un\nusable"})
	if err := os.WriteFile("m.jsonl", text.Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		out, table string
		keep       int
	}{{"v.csv", "v.csv", 1}, {"v.npy", "v.npy.ids.csv", 0}, {"v.parquet", "v.parquet", 0}} {
		job := apply.Job{
			Path:    "m.jsonl",
			Records: records.Options{ID: "name", Fields: []string{"name"}},
			Model:   apply.Model{Columns: []string{"nodes"}, Rows: nodes},
			Keep:    c.keep,
		}
		if _, err := job.WriteFile(t.Context(), c.out); err != nil {
			t.Fatal(err)
		}
		var table io.Reader
		var err error
		if c.out == c.table && c.keep == 0 {
			table, err = parquet.Open(c.table)
		} else {
			table, err = os.Open(c.table)
		}
		if err != nil {
			t.Fatal(err)
		}
		rows, err := csv.NewReader(table).ReadAll()
		if err != nil || len(rows) != 1+len(names) {
			t.Fatalf("%s: %q, %v", c.out, rows, err)
		}
		for i, row := range rows[1:] {
			for k, field := range row[:1+c.keep] {
				if want := strings.ReplaceAll(names[i], "\r", `\r`); field != want {
					t.Errorf("%s: column %d is %q, want %q", c.out, k, field, want)
				}
			}
		}
		rejected, err := os.ReadFile(c.out + apply.Rejected)
		if err != nil || !bytes.Contains(rejected, []byte(",\"un\nusable\",")) {
			t.Errorf("%s: %q, %v", c.out, rejected, err)
		}
	}
}

// TestEmptyID: an empty id has a line of its own in the list of ids, and a row of a table.
func TestEmptyID(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("m.csv", []byte("smiles,name\nC,a\nCC,\nCCC,b\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	job := apply.Job{Path: "m.csv", Records: records.Options{ID: "name"}, Model: apply.Model{Columns: []string{"nodes"}, Rows: nodes}}
	for _, out := range []string{"v.npy", "v.parquet"} {
		if _, err := job.WriteFile(t.Context(), out); err != nil {
			t.Fatal(err)
		}
	}
	if ids, err := os.ReadFile("v.npy.ids.csv"); err != nil || string(ids) != "id\na\n\"\"\nb\n" {
		t.Errorf("%q, %v", ids, err)
	}
	x, err := parquet.Open("v.parquet")
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	if text, err := io.ReadAll(x); err != nil || string(text) != "id,nodes\na,1\n,2\nb,3\n" {
		t.Errorf("%q, %v", text, err)
	}
}

// TestDescribe: the texts of a model, which may be another's, stay in their lines.
func TestDescribe(t *testing.T) {
	encoder, err := pretrained.Open(cpu.New(tensor.Float32))
	if err != nil {
		t.Fatal(err)
	}
	card := encoder.Card
	lines := strings.Count(apply.Describe(card), "\n")
	card.Provenance.Software += "\x1b[2J\nsha256      0000\xff"
	if text := apply.Describe(card); strings.Contains(text, "\x1b") || !utf8.ValidString(text) || strings.Count(text, "\n") != lines {
		t.Errorf("%q", text)
	}
}

// TestWideBatches: thousands of numbers of a record make batches smaller, and no record is lost between two.
func TestWideBatches(t *testing.T) {
	m, err := pretrained.Open(cpu.New(tensor.Float32))
	if err != nil {
		t.Fatal(err)
	}
	counts, err := apply.ParseFeature("morgan")
	if err != nil {
		t.Fatal(err)
	}
	wide, err := apply.Features(m, counts)
	if err != nil {
		t.Fatal(err)
	}
	const molecules = 600
	text := "smiles\n" + strings.Repeat("CCO\n", molecules)
	job := apply.Job{Path: "m.csv", Records: records.Options{Input: strings.NewReader(text)}, Model: wide}
	var sizes []int
	err = job.Stream(t.Context(), func(b apply.Batch) error {
		sizes = append(sizes, len(b.Records))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if want := []int{256, 256, molecules - 512}; !slices.Equal(sizes, want) {
		t.Errorf("batches of %v records, want %v", sizes, want)
	}
}

// TestFeatures: the parts of a vector stand where they are asked for, and are what their packages
// and the encoder compute, whatever comes between.
func TestFeatures(t *testing.T) {
	m, err := pretrained.Open(cpu.New(tensor.Float32))
	if err != nil {
		t.Fatal(err)
	}
	const text = "smiles\nCCO\nC(\nCC(=O)Nc1ccc(O)cc1\n[Na+].[Cl-]\n"
	run := func(words ...string) (columns []string, rows [][]float64) {
		var features []apply.Feature
		for _, w := range words {
			f, err := apply.ParseFeature(w)
			if again, _ := apply.ParseFeature(f.String()); err != nil || again != f {
				t.Fatalf("%s is %v, again %v; %v", w, f, again, err)
			}
			features = append(features, f)
		}
		model, err := apply.Features(m, features...)
		if err != nil {
			t.Fatal(err)
		}
		job := apply.Job{Path: "m.csv", Records: records.Options{Input: strings.NewReader(text)}, Model: model}
		if err := job.Stream(t.Context(), func(b apply.Batch) error {
			for _, row := range b.Rows() {
				rows = append(rows, slices.Clone(row))
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		return model.Columns, rows
	}
	words := []string{"bits:1:8", "descriptors", "encoder", "morgan:0:4"}
	columns, rows := run(words...)
	var wantColumns []string
	want := make([][]float64, len(rows))
	for _, w := range words {
		c, r := run(w)
		wantColumns = append(wantColumns, c...)
		for i := range r {
			want[i] = append(want[i], r[i]...)
		}
	}
	if len(rows) != 3 || !slices.Equal(columns, wantColumns) || !slices.EqualFunc(rows, want, slices.Equal[[]float64]) {
		t.Errorf("columns %v and rows %v, want %v and %v", columns, rows, wantColumns, want)
	}
	if c, r := run("rdkit"); !slices.Equal(c, descriptor.RDKitNames()) || float32(r[0][6]) != 46.069 {
		t.Errorf("columns %v and rows %v", c, r)
	}
	if columns[0] != "bits_0" || columns[8] != "MolWt" || columns[len(columns)-1] != "morgan_3" {
		t.Errorf("columns %v", columns)
	}
	if w := float32(rows[0][8]); w != 46.069 {
		t.Errorf("ethanol weighs %v", w)
	}
	for _, s := range []string{"", "fcfp", "morgan:", "morgan:11", "bits:2:0", "bits:2:8193", "encoder:1", "morgan:2:8:8"} {
		if f, err := apply.ParseFeature(s); err == nil {
			t.Errorf("%q is feature %v", s, f)
		}
	}
	if _, err := apply.Features(m); err == nil {
		t.Error("a model without features")
	}
	if _, err := apply.Features(m, apply.Encoder, apply.Encoder); err == nil || !strings.Contains(err.Error(), "twice") {
		t.Error(err)
	}
}
