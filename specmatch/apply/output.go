package apply

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"math"
	"os"
	"slices"
	"strconv"

	"github.com/specmatch/specmatch/backend/cpu/simd"
	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/tensor/files"
)

// Result is what a job has done, together with earlier starts of it.
type Result struct {
	Records, Rejected int
	// Resumes says of a job that has not ended that it would go on where it is.
	Resumes bool `json:"-"`
}

// WriteFile writes the rows to a file that ends in .csv, .npy or .parquet; see the comment
// of the package. It is an error if no record can be used, or if one of the [Outputs] is
// the file of records.
func (j *Job) WriteFile(ctx context.Context, path string) (r Result, err error) {
	form, err := j.form(path)
	if err != nil {
		return r, fmt.Errorf("apply: %w", err)
	}
	outputs, err := Outputs(path)
	if err == nil {
		err = files.Apart(outputs, []string{j.Path})
	}
	if err != nil {
		return r, err
	}
	sharded := j.Shard.N > 0
	path = shardPath(j.Shard, path)
	release, err := files.LockFile(path)
	if err != nil {
		return r, err
	}
	defer release()
	if err := errors.Join(files.Sweep(path), files.Sweep(path+journal)); err != nil {
		return r, err
	}
	p := parts{names: partsOf(form, path)}
	if sharded {
		p.names = append(p.names, path+index)
		p.at.Columns = j.columns()
	}
	if info, err := os.Stat(j.Path); err == nil && info.Mode().IsRegular() {
		sum, err := dataset.SumFile(ctx, j.Path)
		if err != nil {
			return r, err
		}
		o := j.Records
		program, err := os.Executable()
		if err == nil {
			program, err = dataset.SumFile(ctx, program)
		}
		if err != nil {
			return r, err
		}
		// the key of the model is also that of its columns
		o.Input = nil
		o.Columns = nil
		o.Reading = nil
		p.journal = path + journal
		p.at.Key = fmt.Sprintf("%s %+v %d %v %v %s %v %s",
			sum, o, j.Keep, j.Strict, j.Half, j.Model.Key, simd.Level(), program)
	} else if sharded {
		return r, fmt.Errorf("apply: %s: a shard is of a file, which all shards read", j.Path)
	}
	defer p.close()
	if err := p.open(); err != nil {
		return r, err
	}
	if p.at.Done {
		return p.at.Result, nil
	}
	w := writer{
		job:     j,
		form:    form,
		done:    p.at.Result,
		first:   p.at.First,
		note:    p.note,
		sharded: sharded,
	}
	for i := range p.files {
		w.to = append(w.to, p.part(i))
	}
	rest := *j
	rest.Records.Skip += p.at.Passed
	rest.batch = p.at.Batches
	err = w.begin(p.at.Sizes != nil || sharded)
	if err == nil {
		err = w.end(rest.Stream(ctx, w.batch))
	}
	if err == nil && sharded {
		err = p.finishShard()
	} else if err == nil {
		err = p.finish(form, path, j.Model.Columns)
	} else if errors.As(err, new(none)) { // as it would be when the job went on
		p.journal = ""
		err = errors.Join(err, os.RemoveAll(path+journal))
	}
	w.done.Resumes = err != nil && p.journal != ""
	return w.done, err
}

// WriteCSV writes the rows to w as a table with a header, and those records that cannot be
// used to rejected. Nothing of it goes on after an interruption.
func (j *Job) WriteCSV(ctx context.Context, w, rejected io.Writer) (Result, error) {
	return j.writeTo(ctx, csvFormat{j.Keep}, w, rejected)
}

// WriteNPY is [Job.WriteCSV] for programs: matrices [records×columns] of float32 in NumPy's
// format, one for each batch and one behind the other. A record that cannot be used has a row
// of NaN.
func (j *Job) WriteNPY(ctx context.Context, w, rejected io.Writer) (Result, error) {
	return j.writeTo(ctx, streamFormat{columns: len(j.Model.Columns)}, w, rejected)
}

func (j *Job) writeTo(ctx context.Context, form format, w, rejected io.Writer) (Result, error) {
	to := writer{
		job:  j,
		form: form,
		to:   []io.Writer{w, rejected},
		note: func(Result, *dataset.SyntaxError, Batch) error { return nil },
	}
	if err := to.begin(false); err != nil {
		return to.done, err
	}
	err := to.end(j.Stream(ctx, to.batch))
	return to.done, err
}

// Rejected is the ending, behind the name of the output, of the list of the records that
// cannot be used.
const Rejected = ".rejected.csv"

// writer writes the batches of a job.
type writer struct {
	job   *Job
	form  format
	to    []io.Writer // for the format's files, and then for the rejected records
	done  Result
	first *dataset.SyntaxError
	note  func(Result, *dataset.SyntaxError, Batch) error // that a batch is written, and what was first

	sharded bool // without what files begin with, and with an index of the batches
}

// begin writes what files begin with, unless they have begun.
func (w *writer) begin(begun bool) error {
	if !begun {
		if err := w.append(w.form.begin(w.job.columns())); err != nil {
			return err
		}
	}
	w.progress()
	return nil
}

func (w *writer) progress() {
	if w.job.Progress != nil {
		w.job.Progress(w.done.Records)
	}
}

// batch writes a batch.
func (w *writer) batch(b Batch) error {
	var rejected [][]string
	for _, r := range b.Records {
		if r.Err == nil {
			continue
		}
		w.done.Rejected++
		if w.done.Rejected == 1 && !w.sharded {
			rejected = append(rejected, rejectedHeader)
		}
		w.first = cmp.Or(w.first, r.Err)
		rejected = append(rejected, []string{strconv.Itoa(r.Err.Line), r.ID, r.Err.Value, r.Err.Reason})
	}
	w.done.Records += len(b.Records)
	texts := append(w.form.batch(b), csvLines(rejected...))
	if half, ok := w.form.(npyFormat); ok && half.half {
		if k := slices.IndexFunc(b.Values, func(v float64) bool { return math.Abs(v) >= 65520 }); k >= 0 {
			return fmt.Errorf("%s: %g in column %s is beyond 65504, the largest float16",
				w.job.Path, b.Values[k], w.job.Model.Columns[k%b.width])
		}
	}
	if w.sharded {
		texts = append(texts, indexLine(texts))
	}
	if err := w.append(texts); err != nil {
		return err
	}
	w.progress()
	if w.job.Seen != nil {
		w.job.Seen(b)
	}
	return w.note(w.done, w.first, b)
}

var rejectedHeader = []string{"line", "id", "value", "reason"}

// none is the error that no record can be used.
type none struct{ error }

func (e none) Unwrap() error { return e.error }

// end returns the error of a stream, or that there was nothing in it.
func (w *writer) end(err error) error {
	switch n := w.done; {
	case err != nil || w.sharded: // collecting finds that there is nothing
		return err
	case n.Records == 0:
		return fmt.Errorf("%s: there are no records in it", w.job.Path)
	case n.Records == n.Rejected:
		return none{fmt.Errorf("%s: none of its %d records can be used, such as %w",
			w.job.Path, n.Records, w.first)}
	}
	return nil
}

func (w *writer) append(texts [][]byte) error {
	for i, text := range texts {
		if _, err := w.to[i].Write(text); err != nil {
			return err
		}
	}
	return nil
}

// parts are files that are written together, batch by batch. Until they are whole they
// have names of their own.
type parts struct {
	names   []string // when they are whole; the last is that of the rejected records
	files   []*os.File
	journal string // where at is noted; "" is nowhere
	at      state
}

const (
	partial = ".partial"
	journal = ".journal"
)

// state is how far the files have come.
type state struct {
	Key string // of the job
	Result
	First           *dataset.SyntaxError // of the records that cannot be used
	Passed, Batches int                  // records and batches of the file, those of other shards included
	Columns         []string             `json:",omitempty"` // of a shard
	Done            bool                 `json:",omitempty"` // the shard is
	Sizes           []int64
	Sums            []uint32 // of so many bytes of the files, by castagnoli
	Sum             uint32   // of the others, as JSON with a Sum of 0
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// sum returns what Sum is to be.
func (s state) sum() (uint32, error) {
	s.Sum = 0
	data, err := json.Marshal(s)
	return crc32.Checksum(data, castagnoli), err
}

// part is a file whose sum is kept.
func (p *parts) part(i int) io.Writer {
	return writeFunc(func(b []byte) (int, error) {
		n, err := p.files[i].Write(b)
		p.at.Sums[i] = crc32.Update(p.at.Sums[i], castagnoli, b[:n])
		return n, err
	})
}

type writeFunc func([]byte) (int, error)

func (f writeFunc) Write(b []byte) (int, error) { return f(b) }

// open opens the files, at the place where an earlier job with the same key has ended.
func (p *parts) open() error {
	if err := p.resume(); err != nil {
		return err
	}
	if p.at.Sizes == nil {
		p.at.Sums = make([]uint32, len(p.names))
	}
	if p.at.Done {
		return nil
	}
	for i, name := range p.names {
		f, err := os.OpenFile(name+partial, os.O_CREATE|os.O_RDWR, 0o644)
		if err != nil {
			return err
		}
		p.files = append(p.files, f)
		size := int64(0)
		if p.at.Sizes != nil {
			size = p.at.Sizes[i]
		}
		if err := f.Truncate(size); err != nil {
			return err
		}
		if _, err := f.Seek(size, io.SeekStart); err != nil {
			return err
		}
	}
	return nil
}

// resume reads the journal, if there is one of this job and of files that are there.
func (p *parts) resume() error {
	if p.journal == "" {
		return nil
	}
	data, err := os.ReadFile(p.journal)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var at state
	if json.Unmarshal(data, &at) != nil || at.Key != p.at.Key || len(at.Sizes) != len(p.names) ||
		len(at.Sums) != len(p.names) {
		return nil
	}
	if sum, err := at.sum(); err != nil || sum != at.Sum {
		return nil
	}
	for i, name := range p.names { // a disk may have lost what it was told to keep
		if !at.Done {
			name += partial
		}
		f, err := os.Open(name)
		if err != nil {
			return nil
		}
		sum := crc32.New(castagnoli)
		_, err = io.CopyN(sum, f, at.Sizes[i])
		f.Close()
		if err != nil || sum.Sum32() != at.Sums[i] {
			return nil
		}
	}
	p.at = at
	return nil
}

// note writes down that the files have come so far, when they are on the disk.
func (p *parts) note(r Result, first *dataset.SyntaxError, b Batch) (err error) {
	p.at.Result = r
	p.at.First = first
	p.at.Passed = b.end
	p.at.Batches = b.number + 1
	return p.save()
}

// save writes the journal.
func (p *parts) save() (err error) {
	p.at.Sizes = nil
	if p.journal == "" {
		return nil
	}
	for _, f := range p.files {
		if err := f.Sync(); err != nil {
			return err
		}
		size, err := f.Seek(0, io.SeekCurrent)
		if err != nil {
			return err
		}
		p.at.Sizes = append(p.at.Sizes, size)
	}
	p.at.Sum, err = p.at.sum()
	if err != nil {
		return err
	}
	return files.Write(p.journal, func(f io.Writer) error {
		return json.NewEncoder(f).Encode(p.at)
	})
}

// finish gives the files their names, the output last, and removes those that are none.
func (p *parts) finish(form format, out string, columns []string) error {
	last := len(p.files) - 1
	scratch, err := form.end(out, p.files[:last], p.at.Records-p.at.Rejected, columns)
	if err != nil {
		return err
	}
	for i := last; i >= 0; i-- {
		if err := errors.Join(p.files[i].Sync(), p.files[i].Close()); err != nil {
			return err
		}
		old := p.names[i] + partial
		switch {
		case i == last && p.at.Rejected == 0:
			err = os.Remove(p.names[i])
			if err == nil || errors.Is(err, fs.ErrNotExist) { // of an earlier job
				err = os.Remove(old)
			}
		case i < last && scratch:
			err = os.Remove(old)
		default:
			err = os.Rename(old, p.names[i])
		}
		if err != nil {
			return err
		}
	}
	p.files = nil
	if p.journal == "" {
		return nil
	}
	return os.Remove(p.journal)
}

// close closes what is open. Of what cannot go on, nothing is kept.
func (p *parts) close() {
	for i, f := range p.files {
		f.Close()
		if p.journal == "" || p.at.Records == 0 {
			os.Remove(p.names[i] + partial)
		}
	}
}
