package apply

import (
	"context"
	"fmt"
	"iter"
	"math"
	"slices"

	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/gnn/dataset/records"
	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/specmatch/shard"
	"github.com/specmatch/specmatch/tensor/files"
)

// Job is a file of records and the model that they pass.
type Job struct {
	Path string // of the file
	// Records say how the file is read. The model sets Want, Columns, Atoms and Vector.
	Records records.Options
	Model   Model
	// Replicas compute batches at the same time as Model: the same model, each on an engine of its own.
	// The output does not depend on how many there are.
	Replicas []Model
	// Strict makes the first record that cannot be used the job's error.
	Strict bool
	// Progress, if set, is called after every batch with the number of records that are done, and first
	// with those of an earlier start.
	Progress func(done int)
	// Shard is the part of the batches to compute, see [Job.WriteFile]; the zero Shard is all of them.
	Shard shard.Shard
	// Half writes a .npy as float16. A number beyond 65,504 is an error.
	Half bool

	// Keep is how many of Records.Fields are written after the id; only a table in CSV can have them.
	Keep int
	// Written, if set, is called with every batch after it is written.
	Written func(Batch)

	firstBatch int  // its number in the file
	narrow     bool // batches have narrow instead of Values, where the model can
}

// columns returns the names of the columns after the id.
func (j *Job) columns() []string {
	names := append(slices.Clone(j.Records.Fields[:j.Keep]), j.Model.Columns...)
	return files.Distinct("id", names...)[1:]
}

// format returns the format of an output, with the fields that are kept.
func (j *Job) format(path string) (format, error) {
	f, err := formatOf(path, j.Half)
	if err != nil || j.Keep == 0 {
		return f, err
	}
	if _, isTable := f.(csvFormat); !isTable {
		return nil, fmt.Errorf("%s: only a name that ends in .csv can keep columns", path)
	}
	return csvFormat{j.Keep}, nil
}

// Batch is a run of records that follow one another in a file.
type Batch struct {
	Records []*records.Record
	// Values are the rows of the records without an Err, row-major. They are nil where float32 is
	// all that an output needs: Rows has the rows nevertheless.
	Values []float64

	narrow []float32 // what Values would be, rounded to float32
	text   *[]byte   // memory for a format
	texts  [][]byte  // for each file, by the format
	starts []int64   // in each file, of its text
	after  progress  // of the job, when the batch is written
	width  int       // of a row
	number int       // of the batch in the file
	end    int       // number of records in the file up to the end of the batch
}

// Rows returns the records that could be used, and their rows, each valid until the next one.
func (b Batch) Rows() iter.Seq2[*records.Record, []float64] {
	return func(yield func(*records.Record, []float64) bool) {
		start := 0
		wide := make([]float64, 0, b.width)
		for _, r := range b.Records {
			if r.Err != nil {
				continue
			}
			end := start + b.width
			var row []float64
			if b.Values != nil {
				row = b.Values[start:end]
			} else {
				row = appendNumbers(wide, b.narrow[start:end])
			}
			if !yield(r, row) {
				return
			}
			start = end
		}
	}
}

// compute fills in the rows of a batch by one of the models.
func (j *Job) compute(ctx context.Context, m *Model, b *Batch) (err error) {
	b.narrow = b.narrow[:0]
	b.Values = b.Values[:0]
	var graphs []*graph.Graph
	for _, r := range b.Records {
		if r.Err == nil {
			graphs = append(graphs, r.Graph)
		}
	}
	if j.narrow && m.rows32 != nil {
		b.Values = nil
		b.narrow = slices.Grow(b.narrow, len(graphs)*b.width)[:len(graphs)*b.width]
		if err := m.rows32(ctx, b.narrow, graphs); err != nil {
			return err
		}
		b.narrow, err = rejectNonFinite(j, b, b.narrow)
		return err
	}
	var y []float64
	if m.Rows != nil && len(graphs) > 0 {
		y, err = m.Rows(ctx, graphs)
		if err != nil {
			return err
		}
	}
	width := len(m.Columns) - m.width // of the rows of m.Rows
	if n := len(graphs) * width; len(y) != n {
		return fmt.Errorf("apply: the model returned %d numbers for %d graphs, want %d",
			len(y), len(graphs), n)
	}
	if m.width == 0 {
		b.Values = y
	} else {
		for i, g := range graphs {
			b.Values = appendNumbers(b.Values, g.Globals[:m.before])
			b.Values = append(b.Values, y[i*width:(i+1)*width]...)
			b.Values = appendNumbers(b.Values, g.Globals[m.before:m.width])
		}
	}
	b.Values, err = rejectNonFinite(j, b, b.Values)
	return err
}

func appendNumbers(values []float64, numbers []float32) []float64 {
	for _, x := range numbers {
		values = append(values, float64(x))
	}
	return values
}

// rejectNonFinite gives an Err to the records of a batch whose row among values has a number that
// is not finite as a float32, and returns the other rows, in the same memory.
func rejectNonFinite[T float32 | float64](j *Job, b *Batch, values []T) ([]T, error) {
	start := 0
	finite := 0 // end of the rows that stay
	for _, r := range b.Records {
		if r.Err != nil {
			continue
		}
		row := values[start : start+b.width]
		column := nonFinite(row)
		if column < 0 {
			if finite < start {
				copy(values[finite:], row)
			}
			finite += b.width
		} else {
			r.Err = &dataset.SyntaxError{
				File:  j.Path,
				Line:  r.Line,
				Value: r.SMILES,
				Reason: fmt.Sprintf("the model's result is not finite: column %s is %v; does the record "+
					"have too large numbers?", j.Model.Columns[column], row[column]),
			}
			if j.Strict {
				return nil, r.Err
			}
		}
		start += b.width
	}
	return values[:finite], nil
}

// nonFinite returns the position of the first number that is not finite as a float32; -1 if all are.
func nonFinite[T float32 | float64](row []T) int {
	for k, v := range row {
		if !(v <= math.MaxFloat32 && v >= -math.MaxFloat32) {
			return k
		}
	}
	return -1
}
