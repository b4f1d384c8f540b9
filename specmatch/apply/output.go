package apply

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"sync"

	"github.com/specmatch/specmatch/backend/cpu/simd"
	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/gnn/dataset/records"
	"github.com/specmatch/specmatch/tensor/files"
)

// Result is the outcome of a job, with its earlier starts.
type Result struct {
	Records, Rejected int
	// Resumes says that a job that has not ended resumes where it is.
	Resumes bool `json:"-"`
}

// WriteFile writes the rows to a file that ends in .csv, .npy or .parquet; see the comment of the
// package. It is an error if no record can be used, or if one of the [Outputs] is the file of
// records.
func (j *Job) WriteFile(ctx context.Context, path string) (Result, error) {
	format, err := j.format(path)
	if err != nil {
		return Result{}, fmt.Errorf("apply: %w", err)
	}
	outputs, err := Outputs(path, j.Shard)
	if err == nil {
		err = files.Apart(outputs, []string{j.Path})
	}
	if err != nil {
		return Result{}, err
	}
	path = shardPath(j.Shard, path)
	release, err := files.LockFile(path)
	if err != nil {
		return Result{}, err
	}
	defer release()
	if err := errors.Join(files.Sweep(path), files.Sweep(path+journalEnding)); err != nil {
		return Result{}, err
	}
	p := partialFiles{names: partsOf(format, path)}
	sharded := j.Shard.N > 0
	if sharded {
		p.names = append(p.names, path+index)
		p.state.Columns = j.columns()
	}
	p.state.Key, err = j.key(ctx)
	if err != nil {
		return Result{}, err
	}
	if p.state.Key != (jobKey{}) {
		p.journal = path + journalEnding
	} else if sharded {
		return Result{}, j.errNoFile()
	}
	defer p.close()
	if err := p.open(); err != nil {
		return Result{}, err
	}
	if p.state.Done {
		return p.state.Result, nil
	}

	w := writer{
		job:     j,
		format:  format,
		outputs: p.writers(),
		done:    progress{p.state.Result, p.state.First},
		note:    p.note,
		sharded: sharded,
	}
	resumed := *j
	resumed.Records.Skip = max(j.Records.Skip, p.state.Passed) // Passed includes Skip
	resumed.firstBatch = p.state.Batches
	resumed.narrow = isSingle(format)
	if err = w.begin(p.state.Sizes != nil || sharded); err == nil {
		err = w.end(resumed.stream(ctx, w.sink()))
	}
	switch {
	case err == nil && sharded:
		err = p.finishShard()
	case err == nil:
		err = p.finish(format, path, j.Model.Columns)
	case errors.As(err, new(unusable)): // a restart would end the same way
		p.journal = ""
		err = errors.Join(err, os.RemoveAll(path+journalEnding))
	default:
		err = errors.Join(err, p.save())
	}
	w.done.Resumes = err != nil && p.journal != ""
	return w.done.Result, err
}

// isSingle reports whether a format takes rows in float32 as they are.
func isSingle(f format) bool {
	switch f := f.(type) {
	case npyFormat:
		return !f.half
	case parquetFormat, streamFormat:
		return true
	}
	return false
}

// errNoFile returns the error that shards have no file to read.
func (j *Job) errNoFile() error {
	return fmt.Errorf("apply: %s: a shard is of a file, which all shards read", j.Path)
}

// jobKey identifies a job. One that is interrupted resumes only if all of its key is the same.
type jobKey struct {
	Records  string // SHA-256 of their file
	Settings string // how they are read, and what is written of them
	Model    string // what it computes, with its weights
	Engine   string // with the instruction set
	Program  string // SHA-256
}

// key returns the zero key if the records do not come from a regular file: such a job cannot resume.
func (j *Job) key(ctx context.Context) (key jobKey, err error) {
	info, err := os.Stat(j.Path)
	if err != nil || !info.Mode().IsRegular() {
		return key, nil
	}
	key.Records, err = dataset.SumFile(ctx, j.Path)
	if err != nil {
		return jobKey{}, err
	}
	key.Program, err = programSum()
	if err != nil {
		return jobKey{}, err
	}
	weights, engines, err := j.Model.identities()
	if err != nil {
		return jobKey{}, err
	}
	options := j.Records
	if format, err := records.FormatOf(j.Path); err == nil && options.Format == "" {
		options.Format = format // so that it is no other job if the format is given, too
	}
	options.Input = nil
	options.Columns = nil // those of the model, which its key covers
	options.Reading = nil
	settings := fmt.Sprintf("%+v %d %v %v", options, j.Keep, j.Strict, j.Half)
	key.Settings = validText(settings) // names of columns may be in another encoding
	key.Model = validText(weights)
	key.Engine = fmt.Sprintf("%s%v", engines, simd.Level())
	return key, nil
}

// programSum returns the SHA-256 sum of the program's file, which a process reads once.
var programSum = sync.OnceValues(func() (string, error) {
	path, err := os.Executable()
	if err != nil {
		return "", err
	}
	return dataset.SumFile(context.Background(), path)
})

// WriteCSV writes the rows to w as a table with a header, and the records that cannot be used to
// rejected. It does not resume after an interruption.
func (j *Job) WriteCSV(ctx context.Context, w, rejected io.Writer) (Result, error) {
	return j.writeTo(ctx, csvFormat{j.Keep}, w, rejected)
}

// WriteNPY is [Job.WriteCSV] for programs. It writes a matrix [records×columns] of float32 in
// NumPy's format for each batch, one after the other. A record that cannot be used has a row of
// NaN.
func (j *Job) WriteNPY(ctx context.Context, w, rejected io.Writer) (Result, error) {
	return j.writeTo(ctx, streamFormat{columns: len(j.Model.Columns)}, w, rejected)
}

func (j *Job) writeTo(ctx context.Context, format format, rows, rejected io.Writer) (Result, error) {
	w := writer{
		job:     j,
		format:  format,
		outputs: []io.Writer{rows, rejected},
		note:    func(Result, *dataset.SyntaxError, Batch) error { return nil },
	}
	if err := w.begin(false); err != nil {
		return w.done.Result, err
	}
	job := *j
	job.narrow = isSingle(format)
	err := w.end(job.stream(ctx, w.sink()))
	return w.done.Result, err
}

// Rejected is the ending, after the name of the output, of the list of records that cannot be used.
const Rejected = ".rejected.csv"

var rejectedHeader = []string{"line", "id", "value", "reason"}

// progress says what a job has done.
type progress struct {
	Result
	first *dataset.SyntaxError // about the first rejected record
}

// writer writes the batches of a job. Files are written by several goroutines, each batch at its place;
// other outputs by one.
type writer struct {
	job     *Job
	format  format
	outputs []io.Writer // the format's files, then the rejected records
	done    progress    // up to the last batch that is written
	note    func(Result, *dataset.SyntaxError, Batch) error

	sharded bool // the files have no beginning, and an index of the batches

	placed progress // up to the last batch that has a place
	ends   []int64  // of the outputs, behind that batch
}

func (w *writer) sink() sink {
	return sink{
		prepare: w.prepare,
		place:   w.place,
		store:   w.store,
		emit:    w.write,
	}
}

// begin writes the beginning of the files, unless an earlier start has.
func (w *writer) begin(begun bool) error {
	if !begun {
		if err := w.append(w.format.begin(w.job.columns())); err != nil {
			return err
		}
	}
	w.placed = w.done
	w.ends = make([]int64, len(w.outputs))
	for i, output := range w.outputs {
		if file, ok := output.(summingWriter); ok {
			w.ends[i] = file.written.size
		}
	}
	w.report()
	return nil
}

// report calls the job's Progress.
func (w *writer) report() {
	if w.job.Progress != nil {
		w.job.Progress(w.done.Records)
	}
}

// prepare encodes a batch, unless a number is too large for the format.
func (w *writer) prepare(b *Batch) error {
	if npy, ok := w.format.(npyFormat); ok && npy.half {
		large := func(v float64) bool { return math.Abs(float64(float32(v))) >= 65520 } // as it is rounded
		if k := slices.IndexFunc(b.Values, large); k >= 0 {
			return fmt.Errorf("%s: %g in column %s is beyond 65504, the largest float16",
				w.job.Path, b.Values[k], w.job.Model.Columns[k%b.width])
		}
	}
	b.texts = w.format.batch(*b)
	return nil
}

// place lists the rejected records of a batch, and says where in the files its texts belong.
func (w *writer) place(b *Batch) {
	var rejected [][]string
	for _, r := range b.Records {
		if r.Err == nil {
			continue
		}
		w.placed.Rejected++
		if w.placed.Rejected == 1 && !w.sharded {
			rejected = append(rejected, rejectedHeader)
		}
		w.placed.first = cmp.Or(w.placed.first, r.Err)
		rejected = append(rejected, []string{strconv.Itoa(r.Err.Line), r.ID, r.Err.Value, r.Err.Reason})
	}
	w.placed.Records += len(b.Records)
	b.after = w.placed
	b.texts = append(b.texts, csvLines(rejected...))
	if w.sharded {
		b.texts = append(b.texts, indexLine(b.texts))
	}
	b.starts = b.starts[:0]
	for i, text := range b.texts {
		b.starts = append(b.starts, w.ends[i])
		w.ends[i] += int64(len(text))
	}
}

// store writes a batch to the outputs that are files.
func (w *writer) store(b *Batch) error {
	for i, text := range b.texts {
		file, ok := w.outputs[i].(summingWriter)
		if !ok {
			continue
		}
		if _, err := file.file.WriteAt(text, b.starts[i]); err != nil {
			return err
		}
	}
	return nil
}

// write writes a batch to the other outputs, and notes that it is written.
func (w *writer) write(b Batch) error {
	for i, text := range b.texts {
		if file, ok := w.outputs[i].(summingWriter); ok {
			file.count(text)
		} else if _, err := w.outputs[i].Write(text); err != nil {
			return err
		}
	}
	w.done = b.after
	w.report()
	if w.job.Written != nil {
		w.job.Written(b)
	}
	return w.note(w.done.Result, w.done.first, b)
}

// append writes a text to each output.
func (w *writer) append(texts [][]byte) error {
	for i, text := range texts {
		if _, err := w.outputs[i].Write(text); err != nil {
			return err
		}
	}
	return nil
}

// unusable is the error that no record can be used.
type unusable struct{ error }

func (e unusable) Unwrap() error { return e.error }

// end returns the error of a stream, or that it had no record to use.
func (w *writer) end(err error) error {
	switch n := w.done; {
	case err != nil || w.sharded: // [Collect] sees whether all shards are empty
		return err
	case n.Records == 0:
		return fmt.Errorf("%s: there are no records in it", w.job.Path)
	case n.Records == n.Rejected:
		return unusable{fmt.Errorf("%s: none of its %d records can be used, such as %w",
			w.job.Path, n.Records, n.first)}
	}
	return nil
}
