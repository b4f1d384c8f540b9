package apply

import (
	"encoding/json"
	"errors"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/tensor/files"
)

// Endings of files that are there while a job runs.
const (
	partialEnding = ".partial"
	journalEnding = ".journal"
)

// partialFiles are files that are written together, batch by batch. They end in .partial until they
// are complete.
type partialFiles struct {
	names   []string // when they are complete; the last is that of the rejected records
	files   []*os.File
	journal string    // the file that keeps state; "" is none
	written []written // to each file
	state   state     // at the end of the last batch
	saved   time.Time // when the journal was written last
}

// written is how many bytes a file has, and their sum by castagnoli.
type written struct {
	size int64
	sum  uint32
}

// savePeriod is how long the journal may lag behind the files. To save after every batch takes a
// fifth of the time of a job, and a kill loses no more than this much work.
const savePeriod = time.Second

// state says how far the files are written. It is the contents of the journal.
type state struct {
	Key jobKey
	Result
	First           *dataset.SyntaxError // about the first rejected record
	Passed, Batches int                  // records and batches of the file, with those of other shards
	Columns         []string             `json:",omitempty"` // of a shard
	Done            bool                 `json:",omitempty"` // a shard is complete
	Sizes           []int64              // of the files
	Sums            []uint32             // of that many bytes of the files, by castagnoli
	Sum             uint32               // of the other fields, as JSON with a Sum of 0
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// sum returns the value of the field Sum.
func (s state) sum() (uint32, error) {
	s.Sum = 0
	data, err := json.Marshal(s)
	return crc32.Checksum(data, castagnoli), err
}

// summingWriter writes to a file and counts and sums its bytes.
type summingWriter struct {
	file    *os.File
	written *written
}

func (w summingWriter) Write(b []byte) (int, error) {
	n, err := w.file.Write(b)
	w.count(b[:n])
	return n, err
}

// count notes that b has been written behind everything before it.
func (w summingWriter) count(b []byte) {
	w.written.size += int64(len(b))
	w.written.sum = crc32.Update(w.written.sum, castagnoli, b)
}

// writers returns the files as writers that keep the sums up to date.
func (p *partialFiles) writers() (writers []io.Writer) {
	for i, f := range p.files {
		writers = append(writers, summingWriter{f, &p.written[i]})
	}
	return writers
}

// open opens the files where an earlier start of the same job has ended.
func (p *partialFiles) open() error {
	if err := p.resume(); err != nil {
		return err
	}
	if p.state.Done {
		return nil
	}
	p.written = make([]written, len(p.names))
	for i := range p.state.Sizes {
		p.written[i] = written{p.state.Sizes[i], p.state.Sums[i]}
	}
	for i, name := range p.names {
		f, err := os.OpenFile(name+partialEnding, os.O_CREATE|os.O_RDWR, 0o644)
		if err != nil {
			return err
		}
		p.files = append(p.files, f)
		size := p.written[i].size
		if err := f.Truncate(size); err != nil {
			return err
		}
		if _, err := f.Seek(size, io.SeekStart); err != nil {
			return err
		}
	}
	return nil
}

// resume restores the state from the journal, if that is of the same job and the files have the
// bytes that it notes.
func (p *partialFiles) resume() error {
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
	var s state
	if json.Unmarshal(data, &s) != nil || s.Key != p.state.Key ||
		len(s.Sizes) != len(p.names) || len(s.Sums) != len(p.names) {
		return nil
	}
	if sum, err := s.sum(); err != nil || sum != s.Sum {
		return nil
	}
	for i, name := range p.names {
		if !s.Done {
			name += partialEnding
		}
		// A disk may have lost what it reported as written.
		if !hasSum(name, s.Sizes[i], s.Sums[i]) {
			return nil
		}
	}
	p.state = s
	return nil
}

// hasSum reports whether the first bytes of a file have a sum.
func hasSum(name string, size int64, expected uint32) bool {
	f, err := os.Open(name)
	if err != nil {
		return false
	}
	defer f.Close()
	sum := crc32.New(castagnoli)
	_, err = io.CopyN(sum, f, size)
	return err == nil && sum.Sum32() == expected
}

// note notes in the journal that the files hold everything up to a batch.
func (p *partialFiles) note(r Result, first *dataset.SyntaxError, b Batch) error {
	p.state.Result = r
	p.state.First = valid(first)
	p.state.Passed = b.end
	p.state.Batches = b.number + 1
	p.noteWritten()
	if time.Since(p.saved) < savePeriod {
		return nil
	}
	return p.save()
}

// valid returns a copy of an error whose texts are UTF-8. JSON holds no others, and the sum of a
// state would not be that of the state as it is read.
func valid(e *dataset.SyntaxError) *dataset.SyntaxError {
	if e == nil {
		return nil
	}
	return &dataset.SyntaxError{
		File:   validText(e.File),
		Line:   e.Line,
		Value:  validText(e.Value),
		Reason: validText(e.Reason),
	}
}

// validText replaces what is not UTF-8 in a text.
func validText(text string) string { return strings.ToValidUTF8(text, "\ufffd") }

// noteWritten notes that everything written so far belongs to whole batches.
func (p *partialFiles) noteWritten() {
	p.state.Sizes = nil
	p.state.Sums = nil
	for _, w := range p.written {
		p.state.Sizes = append(p.state.Sizes, w.size)
		p.state.Sums = append(p.state.Sums, w.sum)
	}
}

// save writes the journal, after the files are on the disk. There is none before the first batch.
func (p *partialFiles) save() error {
	p.saved = time.Now()
	if p.journal == "" || p.state.Sizes == nil {
		return nil
	}
	for _, f := range p.files {
		if err := f.Sync(); err != nil {
			return err
		}
	}
	return p.writeJournal()
}

// writeJournal writes the state.
func (p *partialFiles) writeJournal() (err error) {
	p.state.Sum, err = p.state.sum()
	if err != nil {
		return err
	}
	return files.Write(p.journal, func(f io.Writer) error {
		return json.NewEncoder(f).Encode(p.state)
	})
}

// finish gives the files their names, the output last, and removes those that are not part of it.
func (p *partialFiles) finish(format format, out string, columns []string) error {
	rejected := len(p.files) - 1
	scratch, err := format.end(out, p.files[:rejected], p.state.Records-p.state.Rejected, columns)
	if err != nil {
		return err
	}
	for i := rejected; i >= 0; i-- {
		if err := errors.Join(p.files[i].Sync(), p.files[i].Close()); err != nil {
			return err
		}
		partial := p.names[i] + partialEnding
		switch {
		case i == rejected && p.state.Rejected == 0:
			err = os.Remove(p.names[i]) // of an earlier job
			if err == nil || errors.Is(err, fs.ErrNotExist) {
				err = os.Remove(partial)
			}
		case i < rejected && scratch:
			err = os.Remove(partial)
		default:
			err = os.Rename(partial, p.names[i])
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

// finishShard gives the files of a shard their names, and leaves the journal, which says that they
// are complete.
func (p *partialFiles) finishShard() error {
	p.noteWritten() // a shard without a batch has noted nothing yet
	if err := p.save(); err != nil {
		return err
	}
	for i, f := range p.files {
		if err := errors.Join(f.Close(), os.Rename(p.names[i]+partialEnding, p.names[i])); err != nil {
			return err
		}
	}
	p.files = nil
	p.state.Done = true
	return p.writeJournal()
}

// close closes the files, and removes them if the job cannot resume.
func (p *partialFiles) close() {
	for i, f := range p.files {
		f.Close()
		if p.journal == "" || p.state.Records == 0 {
			os.Remove(p.names[i] + partialEnding)
		}
	}
}
