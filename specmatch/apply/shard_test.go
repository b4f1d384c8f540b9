package apply_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/specmatch/specmatch/gnn/dataset/records"
	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/specmatch/apply"
	"github.com/specmatch/specmatch/specmatch/shard"
)

// TestShards: shares of a job, one of them interrupted again and again, give the bytes of one
// process, also where there are fewer batches than shares; what is missing is named.
func TestShards(t *testing.T) {
	t.Chdir(t.TempDir())
	var text strings.Builder
	text.WriteString("smiles\n")
	for i := range 9*1024 + 100 {
		if i%1999 == 7 {
			text.WriteString("C(\xfc\n") // ü in Latin-1
			continue
		}
		text.WriteString(strings.Repeat("C", 1+i%9) + "\n")
	}
	if err := os.WriteFile("m.csv", []byte(text.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	read := func(name string) string {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	for _, c := range []struct {
		ending string
		shares int
		half   bool
	}{{".csv", 4, false}, {".npy", 4, true}, {".parquet", 3, false}, {".csv", 12, false}} {
		name := fmt.Sprintf("%d-%v", c.shares, c.half) + c.ending
		job := apply.Job{Path: "m.csv", Half: c.half, Model: apply.Model{Columns: []string{"nodes", "square"}, Key: "k", Reads: apply.Input{Content: records.Molecules}}}
		left := -1 // graphs until an interruption; negative is none
		job.Model.Rows = func(ctx context.Context, graphs []*graph.Graph) (y []float64, err error) {
			for _, g := range graphs {
				if left--; left == 0 {
					return nil, context.Canceled
				}
				y = append(y, float64(g.Nodes()), float64(g.Nodes()*g.Nodes()))
			}
			return y, nil
		}
		if _, err := job.WriteFile(t.Context(), "whole-"+name); err != nil {
			t.Fatal(err)
		}
		for i := range c.shares {
			job.Shard = shard.Shard{I: c.shares - 1 - i, N: c.shares}
			if job.Shard.I == 2 {
				_, err := job.Collect(t.Context(), name)
				if want := fmt.Sprintf("3 of %d shards are missing or not finished: 0, 1, 2", c.shares); c.shares > 3 && (err == nil || !strings.Contains(err.Error(), want)) {
					t.Errorf("%v, want %s", err, want)
				}
				for _, left = range []int{1100, 900} { // a batch is done, and the next begun
					if r, err := job.WriteFile(t.Context(), name); c.shares == 4 && (!errors.Is(err, context.Canceled) || !r.Resumes) {
						t.Fatal(r, err)
					}
				}
				left = -1
			}
			first, err := job.WriteFile(t.Context(), name)
			if err != nil {
				t.Fatal(err)
			}
			if again, err := job.WriteFile(t.Context(), name); err != nil || again != first { // it is finished
				t.Errorf("%+v, %v", again, err)
			}
		}
		if c.ending == ".npy" {
			single := job
			single.Half = false
			_, err := single.Collect(t.Context(), name)
			if err == nil || !strings.Contains(err.Error(), "the shards are of float16: ask for it (-float16)") {
				t.Errorf("float32 of float16: %v", err)
			}
		}
		if _, err := job.Collect(t.Context(), "./"+name); err != nil {
			t.Fatal(err)
		}
		for _, ending := range []string{"", ".ids.csv", apply.Rejected} {
			if ending == ".ids.csv" && c.ending != ".npy" {
				continue
			}
			if read(name+ending) != read("whole-"+name+ending) {
				t.Errorf("%s%s is not what one process writes", name, ending)
			}
		}
		if partial, _ := filepath.Glob("*.partial"); len(partial) > 0 {
			t.Error("left: ", partial)
		}
	}
	// A damaged share is missing, one of another job is refused, and so are two numbers of shares.
	job := apply.Job{Path: "m.csv", Model: apply.Model{Columns: []string{"nodes"}, Key: "k", Rows: nodes, Reads: apply.Input{Content: records.Molecules}}}
	collect := func(want string) {
		t.Helper()
		if _, err := job.Collect(t.Context(), "x.csv"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	collect("there are no shards of x.csv")
	for i := range 2 {
		job.Shard = shard.Shard{I: i, N: 2}
		if _, err := job.WriteFile(t.Context(), "x.csv"); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile("x.csv.shard-1-of-2", []byte(strings.ToUpper(read("x.csv.shard-0-of-2"))), 0o644); err != nil {
		t.Fatal(err)
	}
	collect("1 of 2 shards are missing or not finished: 1")
	job.Model.Key = "other"
	collect("1 of 2 shards are of another job: 0; they differ in the model or what it computes (such as -model or -readout); repeat")
	if _, err := job.WriteFile(t.Context(), "x.csv"); err != nil {
		t.Fatal(err)
	}
	collect("1 of 2 shards are of another job: 0; they differ in the model")
	job.Shard.I = 0
	if _, err := job.WriteFile(t.Context(), "x.csv"); err != nil {
		t.Fatal(err)
	}
	if r, err := job.Collect(t.Context(), "x.csv"); err != nil || r.Records != 9316 {
		t.Error(r, err)
	}
	job.Strict = true
	collect("2 of 2 shards are of another job: 0, 1; they differ in how it is read or written (-format, -id, -smiles-column,")
	job.Strict = false
	if err := os.WriteFile("m.csv", []byte("smiles\nC\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	collect("they differ in the file of records (-in); repeat them with -shard i/2")
	job.Shard = shard.Shard{I: 0, N: 3}
	if _, err := job.WriteFile(t.Context(), "x.csv"); err != nil {
		t.Fatal(err)
	}
	collect("shards of 2 and of 3")
	earlier := []byte(`{"Key":"records settings model","Records":1,"Done":true}`)
	if err := os.WriteFile("z.csv.shard-1-of-2.journal", earlier, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := job.Collect(t.Context(), "z.csv"); err == nil || !strings.Contains(err.Error(),
		"z.csv: 1 of 2 shards are of an earlier version of specmatch: 1; collect them with that, or repeat them") {
		t.Error(err)
	}
	job.Path, job.Records.Input = "-", strings.NewReader("smiles\nC\n")
	if _, err := job.WriteFile(t.Context(), "y.csv"); err == nil || !strings.Contains(err.Error(), "which all shards read") {
		t.Error(err)
	}
}

// TestShardOverInput: a shard does not overwrite the file that it reads.
func TestShardOverInput(t *testing.T) {
	t.Chdir(t.TempDir())
	name := "k.csv.shard-0-of-1"
	if err := os.WriteFile(name, []byte("smiles\nC\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	job := apply.Job{
		Path:    name,
		Records: records.Options{Format: records.CSV},
		Model:   apply.Model{Columns: []string{"nodes"}, Key: "k", Rows: nodes, Reads: apply.Input{Content: records.Molecules}},
		Shard:   shard.Shard{I: 0, N: 1},
	}
	_, err := job.WriteFile(t.Context(), "k.csv")
	if err == nil || !strings.Contains(err.Error(), "cannot write "+name+": it is the input") {
		t.Error(err)
	}
	if data, err := os.ReadFile(name); err != nil || string(data) != "smiles\nC\n" {
		t.Errorf("%q, %v", data, err)
	}
}

// TestFloat16: a matrix of float16 has the nearest ones, of two the even one, and one beyond
// them is an error that names it.
func TestFloat16(t *testing.T) {
	t.Chdir(t.TempDir())
	tested := map[float64]uint16{
		0: 0, 1: 0x3c00, -2: 0xc000, 65504: 0x7bff, 65519: 0x7bff, 1 + 1./2048: 0x3c00, 1 + 3./2048: 0x3c02, 0x1p-14: 0x0400, 0x1p-24: 1, 0x1p-25: 0,
		0x1.8p-24: 2, 0x1.ff8p-15: 0x03ff, 0x1.ffep-15: 0x0400, -0x1p-30: 0x8000, 1. / 3: 0x3555, math.Nextafter(1, 2): 0x3c00,
	}
	for v, want := range tested {
		job := apply.Job{Path: "m.csv", Half: true, Records: records.Options{Input: strings.NewReader("smiles\nC\n")}, Model: apply.Model{Columns: []string{"v"}}}
		job.Model.Rows = func(context.Context, []*graph.Graph) ([]float64, error) { return []float64{v}, nil }
		if _, err := job.WriteFile(t.Context(), "v.npy"); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile("v.npy")
		if err != nil || len(data) != 130 || !strings.Contains(string(data), "'<f2'") || uint16(data[128])|uint16(data[129])<<8 != want {
			t.Errorf("%g is %x, want %x; %v", v, data[128:], want, err)
		}
	}
	job := apply.Job{Path: "m.csv", Half: true, Records: records.Options{Input: strings.NewReader("smiles\nC\n")}, Model: apply.Model{Columns: []string{"v"}}}
	job.Model.Rows = func(context.Context, []*graph.Graph) ([]float64, error) { return []float64{-65519.999}, nil }
	if _, err := job.WriteFile(t.Context(), "v.npy"); err == nil || !strings.Contains(err.Error(), "-65519.999 in column v is beyond 65504") {
		t.Error(err)
	}
	if _, err := job.WriteFile(t.Context(), "v.csv"); err == nil || !strings.Contains(err.Error(), "ends in .npy") {
		t.Error(err)
	}
}
