package apply

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/specmatch/specmatch/gnn/dataset/records"
	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/specmatch/shard"
	"github.com/specmatch/specmatch/tensor/files"
)

// Job is a file of records and the model that they go through.
type Job struct {
	Path string // of the file
	// Records say how the file is read. Want, Columns and Atoms are those of the model.
	Records records.Options
	Model   Model
	// Strict makes the first record that cannot be used the job's error.
	Strict bool
	// Progress, if set, is called after every batch with how many records are done, and
	// first with those of an earlier start.
	Progress func(done int)
	// Shard is the share of the batches to compute, see [Job.WriteFile]; the zero Shard is all.
	Shard shard.Shard
	// Half writes a .npy as float16. A number beyond 65,504 is an error.
	Half bool

	// Keep is how many of Records.Fields are written behind the id, which only a table in CSV has.
	Keep int
	// Seen, if set, is called with every batch that has been written.
	Seen func(Batch)

	batch int // the number of the first batch
}

// columns are the names of what is written behind the id.
func (j *Job) columns() []string {
	return files.Distinct("id", append(slices.Clone(j.Records.Fields[:j.Keep]), j.Model.Columns...)...)[1:]
}

// form is [formatOf] with the fields that are kept.
func (j *Job) form(path string) (format, error) {
	form, err := formatOf(path, j.Half)
	if _, table := form.(csvFormat); table {
		form = csvFormat{j.Keep}
	} else if err == nil && j.Keep > 0 {
		err = fmt.Errorf("%s: columns are kept in a name that ends in .csv only", path)
	}
	return form, err
}

// Batch is some records that follow one another in a file.
type Batch struct {
	Records []*records.Record
	// Values are the rows, row-major, of the records without an Err.
	Values []float64

	text               *[]byte // memory for a format
	width, number, end int     // the batch's number in the file, and how many records it has up to its end
}

// Rows returns the records that could be used, and their rows.
func (b Batch) Rows() iter.Seq2[*records.Record, []float64] {
	return func(yield func(*records.Record, []float64) bool) {
		at := 0
		for _, r := range b.Records {
			if r.Err != nil {
				continue
			}
			if !yield(r, b.Values[at:at+b.width]) {
				return
			}
			at += b.width
		}
	}
}

// A batch has so many records, or graphs of so many nodes, or just more.
const (
	batchRecords = 1024
	batchNodes   = 1 << 16
)

// Stream calls emit with batch after batch, in the order of the file. An error of emit
// ends it, and so does ctx. The memory of a batch is used again for the next one.
func (j *Job) Stream(ctx context.Context, emit func(Batch) error) error {
	b := Batch{
		text:   new([]byte),
		width:  len(j.Model.Columns),
		number: j.batch,
		end:    j.Records.Skip,
	}
	nodes := 0
	flush := func() (err error) {
		if len(b.Records) == 0 {
			return nil
		}
		b.end += len(b.Records)
		if j.Shard.Has(b.number) {
			b.Values, err = j.rows(ctx, b.Records, b.Values[:0])
			if err == nil {
				err = emit(b)
			}
		} else {
			err = ctx.Err()
		}
		b.Records = b.Records[:0]
		b.number++
		nodes = 0
		return err
	}
	options := j.Model.Reads.Options(j.Records)
	err := records.Read(ctx, j.Path, options, func(r *records.Record) error {
		if r.Err == nil {
			nodes += r.Graph.Nodes()
		} else if j.Strict {
			return r.Err
		}
		b.Records = append(b.Records, r)
		if len(b.Records) < batchRecords && nodes < batchNodes {
			return nil
		}
		return flush()
	})
	if err != nil {
		return err
	}
	return flush()
}

// rows returns the rows of a batch. It may use the memory of values.
func (j *Job) rows(ctx context.Context, batch []*records.Record, values []float64) (y []float64, err error) {
	m := &j.Model
	var graphs []*graph.Graph
	for _, r := range batch {
		if r.Err == nil {
			graphs = append(graphs, r.Graph)
		}
	}
	if m.Rows != nil && len(graphs) > 0 {
		y, err = m.Rows(ctx, graphs)
		if err != nil {
			return nil, err
		}
	}
	width := len(m.Columns) - m.width // of what Rows computes
	if want := len(graphs) * width; len(y) != want {
		return nil, fmt.Errorf("apply: the model gave %d numbers for %d graphs, want %d",
			len(y), len(graphs), want)
	}
	if m.width == 0 {
		return y, nil
	}
	for i, g := range graphs {
		values = appendAll(values, g.Globals[:m.before])
		values = append(values, y[i*width:(i+1)*width]...)
		values = appendAll(values, g.Globals[m.before:m.width])
	}
	return values, nil
}

func appendAll(to []float64, numbers []float32) []float64 {
	for _, x := range numbers {
		to = append(to, float64(x))
	}
	return to
}
