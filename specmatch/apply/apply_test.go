package apply_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/specmatch/specmatch/backend/cpu"
	"github.com/specmatch/specmatch/gnn/dataset/records"
	"github.com/specmatch/specmatch/gnn/graph"
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

// TestKey: other weights are another model, on another engine too.
func TestKey(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range []tensor.Precision{tensor.Float32, tensor.Float64} {
		be := cpu.New(p)
		encoder, err := pretrained.Open(be)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			m, err := apply.Embedder(encoder)
			if err != nil {
				t.Fatal(err)
			}
			again, err := apply.Embedder(encoder)
			if err != nil || again.Key != m.Key {
				t.Error("one model, two keys", err)
			}
			seen[m.Key] = true
			w := encoder.Encoder.Parameters()[3].Value
			be.Axpby(w, 1, w, 1, w)
		}
	}
	if len(seen) != 4 {
		t.Errorf("%d keys of four models", len(seen))
	}
}

// TestProgress: it counts what is done, that of an earlier start included, which is what
// a job goes on from.
func TestProgress(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("m.smi", bytes.Repeat([]byte("CC\n"), 3000), 0o666); err != nil {
		t.Fatal(err)
	}
	left := 1100
	var seen []int
	job := apply.Job{Path: "m.smi", Progress: func(n int) { seen = append(seen, n) }, Model: apply.Model{
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
