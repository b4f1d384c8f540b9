package apply

import (
	"bytes"
	"context"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/specmatch/specmatch/gnn/dataset/records"
	"github.com/specmatch/specmatch/gnn/graph"
)

// TestNarrow: a .npy, and a stream of matrices, of a model that gives float32 has the bytes of one that
// gives float64, also where rows are not finite, and Written sees the rows.
func TestNarrow(t *testing.T) {
	value := func(g *graph.Graph) float32 {
		if g.Nodes() == 2 {
			return float32(math.Inf(1))
		}
		return float32(g.Nodes()) / 3
	}
	wide := Model{
		Columns: []string{"a", "b"},
		Reads:   Input{Content: records.Molecules},
		Rows: func(_ context.Context, graphs []*graph.Graph) (y []float64, err error) {
			for _, g := range graphs {
				y = append(y, float64(value(g)), 1)
			}
			return y, nil
		},
	}
	single := wide
	single.rows32 = func(_ context.Context, dst []float32, graphs []*graph.Graph) error {
		for i, g := range graphs {
			dst[2*i] = value(g)
			dst[2*i+1] = 1
		}
		return nil
	}
	var files [2][]byte
	var rows [2][]float64
	for i, m := range []Model{wide, single} {
		path := filepath.Join(t.TempDir(), "v.npy")
		job := Job{
			Path:    "m.smi",
			Records: records.Options{Input: strings.NewReader("CCC\nCC\nCCCC\nC(\nC\nCC\nCCC\n")},
			Model:   m,
			Written: func(b Batch) {
				if (b.Values == nil) != (i == 1) {
					t.Errorf("model %d: values %v", i, b.Values)
				}
				for _, row := range b.Rows() {
					rows[i] = append(rows[i], row...)
				}
			},
		}
		r, err := job.WriteFile(t.Context(), path)
		if err != nil || r.Records != 7 || r.Rejected != 3 {
			t.Fatalf("model %d: %+v, %v", i, r, err)
		}
		for _, ending := range []string{"", ".ids.csv", Rejected} {
			data, err := os.ReadFile(path + ending)
			if err != nil {
				t.Fatal(err)
			}
			files[i] = append(files[i], data...)
		}
		var stream bytes.Buffer
		job.Records.Input = strings.NewReader("CCC\nCC\nCCCC\nC(\n")
		job.Written = nil
		if _, err := job.WriteNPY(t.Context(), &stream, io.Discard); err != nil {
			t.Fatal(err)
		}
		if n := stream.Len(); n != 128+4*2*4 {
			t.Errorf("model %d: a matrix of %d bytes", i, n)
		}
		files[i] = append(files[i], stream.Bytes()...)
	}
	if !bytes.Equal(files[0], files[1]) {
		t.Errorf("%q\n%q", files[0], files[1])
	}
	for i := range rows[0] {
		rows[0][i] = float64(float32(rows[0][i]))
	}
	if len(rows[0]) != 8 || !slices.Equal(rows[0], rows[1]) {
		t.Errorf("rows %v and %v", rows[0], rows[1])
	}
}

// TestMatrix: the bytes of a matrix do not depend on the order of the bytes in memory.
func TestMatrix(t *testing.T) {
	b := Batch{narrow: []float32{1, -2.5, 3e-40}, text: new([]byte)}
	if one, other := (npyFormat{}).matrix(b, isLittleEndian), (npyFormat{}).matrix(b, false); !bytes.Equal(one, other) {
		t.Errorf("%x and %x", one, other)
	}
}

// TestLines: rows are escaped in a copy, since all jobs share the header of rejected records.
func TestLines(t *testing.T) {
	row := []string{"a\x00", ""}
	if got := string(csvLines(row)); got != "a\\x00,\n" || row[0] != "a\x00" {
		t.Errorf("%q of %q", got, row)
	}
}
