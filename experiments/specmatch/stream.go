package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/specmatch/specmatch/experiments/internal/cli"
	"github.com/specmatch/specmatch/experiments/internal/progress"
	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/gnn/dataset/records"
	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/internal/files"
)

// input is what to read: -in, -format, -smiles-column and -id.
type input struct {
	In, Format, SMILES, ID string

	stdin io.Reader
}

// Register implements [cli.Group].
func (in *input) Register(f *cli.FlagSet) {
	cli.Var(f, &in.In, "in", cli.Text, "`file` to read: .csv, .smi, .jsonl, each with .gz or without, .parquet, or TUDataset's .zip or\nfolder; - is standard input")
	cli.Var(f, &in.Format, "format", cli.OneOf(append(records.Formats, formatParquet)...), "`format` of the file, where its name does not tell: "+strings.Join(records.Formats, ", ")+", "+formatParquet)
	cli.Var(f, &in.SMILES, "smiles-column", cli.Text, "`column` of SMILES in a table of molecules; none is smiles, in upper or lower case,\nor else the only column whose name contains that")
	cli.Var(f, &in.ID, "id", cli.Text, "`column` or key that names the records; none numbers them from 1")
	f.Check(func() error {
		if in.In == "" {
			return cli.Usagef("-in is needed: a file of molecules or graphs")
		}
		if in.In == "-" && in.Format == "" {
			in.Format = records.CSV
		}
		if in.In == "-" && in.Format == formatParquet {
			return cli.Usagef("-in - -format parquet: a Parquet file is read from its end; give its name")
		}
		return nil
	})
}

// parquet reports whether the file is one.
func (in *input) parquet() bool {
	return in.Format == formatParquet || in.Format == "" && strings.HasSuffix(strings.ToLower(in.In), ".parquet")
}

// options returns how the file is read for a model, or for a new one if features and
// want are empty. They serve one reading.
func (in *input) options(features *graph.Columns, want records.Content) (records.Options, error) {
	o := records.Options{Format: in.Format, Want: want, SMILES: in.SMILES, ID: in.ID, Columns: features}
	switch {
	case in.parquet():
		text, err := openParquet(in.In)
		if err != nil {
			return o, err
		}
		o.Format, o.Input = records.CSV, text
	case in.In == "-":
		o.Input = cmp.Or[io.Reader](in.stdin, os.Stdin)
	}
	return o, nil
}

// job turns the records of a file into rows of numbers, batch by batch.
type job struct {
	*input
	Out    string
	Strict bool

	label   string // for the progress bar
	options records.Options
	columns []string // of the rows
	key     string   // what the rows depend on beside the file
	compute func(ctx context.Context, graphs []*graph.Graph) ([]float64, error)
}

// Register adds -out and -strict.
func (j *job) Register(f *cli.FlagSet) {
	cli.Var(f, &j.Out, "out", cli.Text, "`file` to write: .npy (float32, with the ids in OUT.ids.csv), .csv or .parquet; - is standard output,\nas CSV")
	f.BoolVar(&j.Strict, "strict", false, "end with an error at the first record that cannot be read")
	f.Check(func() error {
		switch {
		case j.Out == "":
			return cli.Usagef("-out is needed: a .npy, .csv or .parquet file, or -")
		case j.Out != "-" && !j.matrix() && !strings.HasSuffix(strings.ToLower(j.Out), ".csv"):
			return cli.Usagef("-out %s: want a name that ends in .npy, .csv or .parquet, or -", j.Out)
		}
		a, errIn := os.Stat(j.In)
		b, errOut := os.Stat(j.Out)
		if errIn == nil && errOut == nil && os.SameFile(a, b) {
			return cli.Usagef("-out %s is the file that -in reads", j.Out)
		}
		return nil
	})
}

// matrix reports whether the rows are written as a matrix, with the ids in a file of
// their own; a Parquet file is made of both in the end.
func (j *job) matrix() bool { return j.ends(".npy") || j.ends(".parquet") }

func (j *job) ends(with string) bool { return strings.HasSuffix(strings.ToLower(j.Out), with) }

// Records go through the model in batches of so many, or of so many nodes.
const (
	batchRecords = 1024
	batchNodes   = 1 << 16
)

// partNodes bounds the nodes that are computed at once, and so memory: all layers'
// activations are held until then.
const partNodes = 1024

// rows computes the rows of a batch, a few graphs at a time.
func (j *job) rows(ctx context.Context, graphs []*graph.Graph) (all []float64, err error) {
	for len(graphs) > 0 {
		n, nodes := 0, 0
		for n < len(graphs) && nodes < partNodes {
			nodes += graphs[n].Nodes()
			n++
		}
		values, err := j.compute(ctx, graphs[:n])
		if err != nil {
			return nil, err
		}
		all, graphs = append(all, values...), graphs[n:]
	}
	return all, nil
}

// state is how far a job has come; it lies beside the unfinished output.
type state struct {
	Key               string // of what it was done with
	Records, Rejected int    // read so far
	Sizes             []int64
}

// work does a job.
func (j *job) work(ctx context.Context, stdout, stderr io.Writer) (err error) {
	// Most of the heap is the engine's, which keeps what it has for the next batch, so
	// that leaving much garbage beside it would double the memory and gain nothing.
	defer debug.SetGCPercent(debug.SetGCPercent(40))
	w, err := j.open(ctx, stdout, stderr)
	if err != nil {
		return err
	}
	defer func() { err = w.close(err) }()
	bar := progress.Start(stderr, progress.Options{Label: j.label, Unit: "record"})
	defer bar.Stop()
	bar.Skip(w.at.Records)
	j.options.Skip = w.at.Records
	var (
		batch []*records.Record
		nodes int
		first *dataset.SyntaxError
	)
	flush := func() error {
		if len(batch) == 0 {
			return nil
		}
		var graphs []*graph.Graph
		for _, r := range batch {
			if r.Err == nil {
				graphs = append(graphs, r.Graph)
			}
		}
		values, err := j.rows(ctx, graphs)
		if err != nil {
			return err
		}
		if err := w.write(batch, values, len(j.columns)); err != nil {
			return err
		}
		bar.Add(len(batch))
		batch, nodes = batch[:0], 0
		return nil
	}
	err = records.Read(ctx, j.In, j.options, func(r *records.Record) error {
		if r.Err != nil {
			if j.Strict {
				return r.Err
			}
			first = cmp.Or(first, r.Err)
		} else {
			nodes += r.Graph.Nodes()
		}
		if batch = append(batch, r); len(batch) < batchRecords && nodes < batchNodes {
			return nil
		}
		return flush()
	})
	if err == nil {
		err = flush()
	}
	bar.Stop()
	switch n := w.at; {
	case err != nil && ctx.Err() != nil && w.journal != "":
		fmt.Fprintf(stderr, "%d records are done: the same command goes on with the others\n", n.Records)
		return err
	case err != nil:
		return err
	case n.Records == 0:
		return fmt.Errorf("%s: there are no records in it", j.In)
	case n.Records == n.Rejected && first != nil:
		return fmt.Errorf("%s: none of its %d records can be used, such as %w", j.In, n.Records, first)
	}
	return w.finish(stdout)
}

// writer writes the rows of a job. With an output that is a file, everything is
// written beside it, under names of its own, until all is done.
type writer struct {
	j       *job
	at      state
	names   []string   // of the files, when they are done
	files   []*os.File // data, rejected records, and of .npy the ids
	to      []io.Writer
	journal string // the file of the state; "" is none
	release func() // of the output's lock
	targets int    // how many of a record's fields follow its values
}

const (
	partial        = ".partial"
	rejectedEnding = ".rejected.csv"
)

func (j *job) open(ctx context.Context, stdout, stderr io.Writer) (*writer, error) {
	w := &writer{j: j}
	if j.Out == "-" {
		w.to = []io.Writer{stdout, stderr}
		return w, w.header()
	}
	var err error
	if w.release, err = files.LockFile(j.Out); err != nil {
		return nil, err
	}
	if err := w.begin(ctx); err != nil {
		return nil, w.close(err)
	}
	return w, nil
}

// begin opens the files, and goes on where an interrupted job has ended.
func (w *writer) begin(ctx context.Context) error {
	j := w.j
	w.names = []string{j.Out, j.Out + rejectedEnding}
	if j.matrix() {
		w.names = append(w.names, j.Out+".ids.csv")
	}
	if info, err := os.Stat(j.In); err == nil && info.Mode().IsRegular() {
		sum, err := dataset.SumFile(ctx, j.In)
		if err != nil {
			return err
		}
		w.journal = j.Out + ".journal"
		o := j.options
		o.Input, o.Columns = nil, nil // the model, of which key tells, has the columns
		w.at.Key = fmt.Sprintf("%s %+v %s", sum, o, j.key)
	}
	at, err := w.read()
	if err != nil {
		return err
	}
	for i, name := range w.names {
		f, err := os.OpenFile(name+partial, os.O_CREATE|os.O_RDWR, 0o644)
		if err != nil {
			return err
		}
		w.files, w.to = append(w.files, f), append(w.to, f)
		size := int64(0)
		if at != nil {
			size = at.Sizes[i]
		}
		if err := f.Truncate(size); err != nil {
			return err
		}
		if _, err := f.Seek(size, io.SeekStart); err != nil {
			return err
		}
	}
	if at != nil {
		w.at = *at
		return nil
	}
	return w.header()
}

// read returns the state of a job that was interrupted, nil if there is none or if it
// was another job.
func (w *writer) read() (*state, error) {
	if w.journal == "" {
		return nil, nil
	}
	data, err := os.ReadFile(w.journal)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	at := new(state)
	if json.Unmarshal(data, at) != nil || at.Key != w.at.Key || len(at.Sizes) != len(w.names) {
		return nil, nil
	}
	for i, name := range w.names {
		if info, err := os.Stat(name + partial); err != nil || info.Size() < at.Sizes[i] {
			return nil, nil
		}
	}
	return at, nil
}

// header begins the files.
func (w *writer) header() error {
	columns := append([]string{"id"}, w.j.columns...)
	if w.j.matrix() {
		if _, err := w.to[2].Write(csvLines([]string{"id"})); err != nil {
			return err
		}
		_, err := w.to[0].Write(npyHeader(0, len(w.j.columns)))
		return err
	}
	_, err := w.to[0].Write(csvLines(columns))
	return err
}

// write writes the rows of a batch, and notes that they are written.
func (w *writer) write(batch []*records.Record, values []float64, width int) error {
	var rows []byte
	var lines, rejected [][]string
	for _, r := range batch {
		if r.Err != nil {
			rejected = append(rejected, []string{strconv.Itoa(r.Err.Line), r.ID, r.Err.Value, r.Err.Reason})
			continue
		}
		row := values[:width]
		values = values[width:]
		line := []string{r.ID}
		for _, v := range row {
			if w.j.matrix() {
				rows = binary.LittleEndian.AppendUint32(rows, math.Float32bits(float32(v)))
			} else {
				line = append(line, strconv.FormatFloat(v, 'g', -1, 32))
			}
		}
		lines = append(lines, append(line, r.Fields[:w.targets]...))
	}
	w.at.Records += len(batch)
	if w.at.Rejected += len(rejected); len(rejected) == w.at.Rejected && len(rejected) > 0 { // the first ones
		rejected = append([][]string{{"line", "id", "value", "reason"}}, rejected...)
	}
	parts := [][]byte{csvLines(lines...), csvLines(rejected...)}
	if w.j.matrix() {
		parts = [][]byte{rows, parts[1], parts[0]}
	}
	for i, part := range parts {
		if _, err := w.to[i].Write(part); err != nil {
			return err
		}
	}
	if w.journal == "" {
		return nil
	}
	w.at.Sizes = nil
	for _, f := range w.files {
		size, err := f.Seek(0, io.SeekCurrent)
		if err != nil {
			return err
		}
		w.at.Sizes = append(w.at.Sizes, size)
	}
	return files.Write(w.journal, func(f io.Writer) error { return json.NewEncoder(f).Encode(w.at) })
}

// finish gives the files their names.
func (w *writer) finish(stdout io.Writer) error {
	if w.files == nil {
		return nil
	}
	n := w.at.Records - w.at.Rejected
	if w.j.matrix() {
		if _, err := w.files[0].WriteAt(npyHeader(n, len(w.j.columns)), 0); err != nil {
			return err
		}
	}
	if w.j.ends(".parquet") {
		if err := w.finishParquet(); err != nil {
			return err
		}
	}
	for i := len(w.names) - 1; i >= 0; i-- { // the data last
		err := errors.Join(w.files[i].Sync(), w.files[i].Close())
		if err == nil && w.names[i] == w.j.Out+rejectedEnding && w.at.Rejected == 0 {
			for _, name := range []string{w.names[i] + partial, w.names[i]} { // also of an earlier job
				if e := os.Remove(name); !errors.Is(e, fs.ErrNotExist) {
					err = errors.Join(err, e)
				}
			}
		} else if err == nil {
			err = os.Rename(w.names[i]+partial, w.names[i])
		}
		if err != nil {
			return err
		}
	}
	w.files = nil
	fmt.Fprintf(stdout, "%s: %d rows of %d columns\n", w.j.Out, n, len(w.j.columns))
	if w.at.Rejected > 0 {
		fmt.Fprintf(stdout, "%s: %d of %d records could not be used\n", w.j.Out+rejectedEnding, w.at.Rejected, w.at.Records)
	}
	if w.journal == "" {
		return nil
	}
	return os.Remove(w.journal)
}

// finishParquet makes the Parquet file of the matrix and the ids, which take no part
// in what follows.
func (w *writer) finishParquet() error {
	for _, f := range w.files {
		if _, err := f.Seek(0, io.SeekStart); err != nil {
			return err
		}
	}
	if _, err := w.files[0].Seek(int64(len(npyHeader(0, 0))), io.SeekStart); err != nil {
		return err
	}
	err := files.Write(w.j.Out, func(to io.Writer) error {
		return writeParquet(to, w.j.columns, w.files[0], w.files[2])
	})
	if err != nil {
		return err
	}
	for _, i := range []int{2, 0} {
		if err := errors.Join(w.files[i].Close(), os.Remove(w.names[i]+partial)); err != nil {
			return err
		}
	}
	w.files, w.names = w.files[1:2], w.names[1:2]
	return nil
}

// close closes what is open. Without a journal nothing can go on, so that nothing is
// kept.
func (w *writer) close(err error) error {
	for i, f := range w.files {
		f.Close()
		if w.journal == "" || w.at.Records == 0 {
			os.Remove(w.names[i] + partial)
		}
	}
	if w.release != nil {
		w.release()
	}
	return err
}

// csvLines encodes rows as CSV.
func csvLines(rows ...[]string) []byte {
	var b bytes.Buffer
	c := csv.NewWriter(&b)
	c.WriteAll(rows) // a bytes.Buffer takes everything
	return b.Bytes()
}

// npyHeader returns the 128 bytes with which NumPy's format 1.0 begins a matrix
// [rows×cols] of float32.
func npyHeader(rows, cols int) []byte {
	text := fmt.Sprintf("{'descr': '<f4', 'fortran_order': False, 'shape': (%d, %d), }", rows, cols)
	return fmt.Appendf(nil, "\x93NUMPY\x01\x00\x76\x00%-117s\n", text)
}
