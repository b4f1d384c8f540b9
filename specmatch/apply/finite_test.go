package apply_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"math"
	"strings"
	"testing"

	"github.com/specmatch/specmatch/gnn/dataset/records"
	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/specmatch/apply"
)

// TestNonFinite: rows with NaN, an infinity or a number beyond float32 are listed with the rejected records, and counted.
func TestNonFinite(t *testing.T) {
	results := []float64{1, 2, 3, math.NaN(), math.Inf(-1), 5, 1e39, 7, 8, 9} // two for each record
	job := apply.Job{
		Path:    "m.smi",
		Records: records.Options{Format: records.SMI},
		Model: apply.Model{
			Columns: []string{"a", "b"},
			Reads:   apply.Input{Content: records.Molecules},
			Rows: func(_ context.Context, graphs []*graph.Graph) ([]float64, error) {
				return results[:2*len(graphs)], nil
			},
		},
	}
	const text = "C one\nCC two\nCCC three\nCCCC four\nCCCCC five\n"
	job.Records.Input = strings.NewReader(text)
	var rows, rejected bytes.Buffer
	r, err := job.WriteCSV(t.Context(), &rows, &rejected)
	if err != nil || r.Records != 5 || r.Rejected != 3 {
		t.Errorf("%+v, %v", r, err)
	}
	if rows.String() != "id,a,b\none,1,2\nfive,8,9\n" {
		t.Error(rows.String())
	}
	for _, want := range []string{
		"2,two,CC,the model's result is not finite: column b is NaN",
		"3,three,CCC,the model's result is not finite: column a is -Inf",
		"4,four,CCCC,the model's result is not finite: column a is 1e+39",
	} {
		if !strings.Contains(rejected.String(), want) {
			t.Errorf("no %q in\n%s", want, &rejected)
		}
	}

	results = []float64{1, 2, 3, math.NaN(), math.Inf(-1), 5, 1e39, 7, 8, 9}
	job.Records.Input = strings.NewReader(text)
	rows.Reset()
	if _, err := job.WriteNPY(t.Context(), &rows, &rejected); err != nil {
		t.Fatal(err)
	}
	for i, want := range []bool{false, true, true, true, false} {
		v := math.Float32frombits(binary.LittleEndian.Uint32(rows.Bytes()[128+8*i:]))
		if got := v != v; got != want {
			t.Errorf("row %d of the matrix: NaN %v, want %v", i, got, want)
		}
	}

	results = []float64{1, 2, 3, math.NaN(), math.Inf(-1), 5, 1e39, 7, 8, 9}
	job.Records.Input = strings.NewReader(text)
	job.Strict = true
	if _, err := job.WriteCSV(t.Context(), &rows, &rejected); err == nil || !strings.Contains(err.Error(), "m.smi:2:") {
		t.Errorf("strict: %v", err)
	}
}
