package dataset

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"

	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/gnn/molecule"
)

// Corpus is a long list of molecules without labels, for pre-training.
type Corpus struct {
	// Graphs are the molecules in the order of the file, as
	// [molecule.Molecule.Graph] makes them. Their slices are parts of common
	// arrays; two million drug-like molecules take 2 GiB.
	Graphs []*graph.Graph
	// Rows is the number of molecules read, usable or not.
	Rows int
	// Dropped is the number of rows whose molecule could not be used, and Reasons
	// has the first ones.
	Dropped int
	Reasons []*SyntaxError
}

// mostReasons bounds Corpus.Reasons.
const mostReasons = 10

// CorpusOptions say how [OpenCorpus] reads a file. The zero value is ready for
// use.
type CorpusOptions struct {
	// Column is the name of the column of SMILES of a CSV file. Default "smiles".
	Column string
	// Limit is how many rows are read; 0 means all.
	Limit int
	// Cache is the path of a file that keeps the graphs: it is used if it is of
	// the same file, column and limit, and otherwise made. Empty means none.
	Cache string
	// Progress, if set, is called now and then with the rows read so far, from
	// the goroutine of OpenCorpus.
	Progress func(rows int)
}

// OpenCorpus reads the molecules of a file: a CSV file with a header (.csv,
// .csv.gz), or one SMILES a line, which a name may follow (any other name,
// compressed if it ends in .gz). The file is streamed and its molecules are
// parsed on all processors; the result does not depend on their number.
// Molecules that cannot be used are dropped and counted.
//
// With a cache, the file is read only if it has changed: the cache records its
// SHA-256 sum. A cache that is damaged is an error that wraps [ErrCache]; a file
// that never was a cache is another one.
func OpenCorpus(ctx context.Context, path string, opts CorpusOptions) (*Corpus, error) {
	opts.Column = cmp.Or(opts.Column, "smiles")
	h := cacheHeader{Format: cacheFormat, Column: opts.Column, Limit: opts.Limit}
	if opts.Cache != "" {
		var err error
		if h.Source, err = SumFile(ctx, path); err != nil {
			return nil, fmt.Errorf("dataset: %w", err)
		}
		have, c, err := readCache(opts.Cache)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return nil, err
		case have.sameSource(&h):
			return have.corpus(path, c)
		}
	}
	c := new(graphCodes)
	c.Width = graph.AtomTypes * graph.ChiralityTags
	err := h.readCorpus(ctx, path, c, opts.Progress)
	if err != nil {
		return nil, err
	}
	if c.Graphs == 0 {
		return nil, unusable(path, h.Reasons)
	}
	if opts.Cache != "" {
		if err := h.writeCache(opts.Cache, c); err != nil {
			return nil, err
		}
	}
	return h.corpus(path, c)
}

// unusable is the error about a file of which every molecule was dropped.
func unusable(path string, dropped []*SyntaxError) error {
	if len(dropped) == 0 {
		return fmt.Errorf("dataset: %s: there is no molecule in it", path)
	}
	return fmt.Errorf("dataset: %s: no molecule of it can be used, such as %w", path, dropped[0])
}

// readCorpus fills c with the graphs of a file and h with the account of it.
func (h *cacheHeader) readCorpus(ctx context.Context, path string, c *graphCodes, progress func(rows int)) error {
	emit := func(p *parsed) {
		h.Rows++
		if p.err != nil {
			h.Dropped++
			if len(h.Reasons) < mostReasons {
				h.Reasons = append(h.Reasons, p.err)
			}
		} else {
			c.append(p)
		}
		if progress != nil && h.Rows%chunkRows == 0 {
			progress(h.Rows)
		}
	}
	limited := func(next func() (smilesRow, error)) func() (smilesRow, error) {
		n := 0
		return func() (smilesRow, error) {
			if n++; h.Limit > 0 && n > h.Limit {
				return smilesRow{}, io.EOF
			}
			return next()
		}
	}
	if base := strings.TrimSuffix(strings.ToLower(path), ".gz"); filepath.Ext(base) == ".csv" {
		return readCSV(ctx, path, func(rows *csvRows) error {
			column, err := position(rows, h.Column)
			if err != nil {
				return err
			}
			next := func() (row smilesRow, err error) {
				ok, err := rows.next()
				if err != nil || !ok {
					return row, cmp.Or(err, io.EOF)
				}
				line, _ := rows.r.FieldPos(column)
				return smilesRow{smiles: strings.TrimSpace(rows.row[column]), line: line}, nil
			}
			return parseSMILES(ctx, path, limited(next), false, emit)
		})
	}
	f, err := openText(ctx, path)
	if err != nil {
		return err
	}
	defer f.Close()
	lines := newLines(path, f)
	next := func() (smilesRow, error) {
		text, err := lines.next()
		return smilesRow{smiles: text, line: lines.line}, err
	}
	return parseSMILES(ctx, path, limited(next), false, emit)
}

// lines are those of a text that are not blank.
type lines struct {
	file string
	s    *bufio.Scanner
	line int // number of the last one
}

func newLines(file string, r io.Reader) *lines {
	s := bufio.NewScanner(r)
	s.Buffer(nil, longestLine)
	return &lines{file: file, s: s}
}

// next returns a line without the blanks around it; the error at the end is io.EOF.
func (l *lines) next() (string, error) {
	for l.s.Scan() {
		l.line++
		if text := strings.TrimSpace(l.s.Text()); text != "" {
			return text, nil
		}
	}
	switch err := l.s.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return "", &SyntaxError{File: l.file, Line: l.line + 1, Reason: fmt.Sprintf("longer than %d bytes", longestLine)}
	case err != nil:
		return "", fmt.Errorf("dataset: %s: %w", l.file, err)
	}
	return "", io.EOF
}

const longestLine = 1 << 20

// A smilesRow is a molecule of a file, its line, and what else stands there.
type smilesRow struct {
	smiles string
	line   int
	labels []int8       // of a set of MoleculeNet
	record *Record      // of [ReadRecords]
	err    *SyntaxError // the row cannot be read
}

// parsed is what became of a row: a graph, or an error.
type parsed struct {
	row      smilesRow
	scaffold string
	graph    *graph.Graph
	err      *SyntaxError
}

func (c *graphCodes) append(p *parsed) {
	c.Graphs++
	c.Nodes += p.graph.Nodes()
	c.Entries += p.graph.Entries()
	c.code = appendGraph(c.code, p.graph)
}

// chunkRows are parsed by one worker at a time.
const chunkRows = 1024

type smilesChunk struct {
	rows []smilesRow
	out  []parsed
	done chan struct{}
}

// parseSMILES parses the rows that next returns, until it returns io.EOF, on
// all processors, and gives the results to emit in the order of the rows. With
// scaffolds it also identifies those. next and emit are called one at a time.
func parseSMILES(ctx context.Context, file string, next func() (smilesRow, error), scaffolds bool, emit func(*parsed)) error {
	workers := runtime.GOMAXPROCS(0)
	work := make(chan *smilesChunk)
	queue := make(chan *smilesChunk, 2*workers) // in order
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			var p molecule.Parser
			for c := range work {
				c.out = make([]parsed, len(c.rows))
				for i, r := range c.rows {
					c.out[i].parse(&p, file, r, scaffolds)
				}
				close(c.done)
			}
		})
	}
	var readErr error
	wg.Go(func() {
		defer close(queue)
		defer close(work)
		for readErr == nil && ctx.Err() == nil {
			c := &smilesChunk{done: make(chan struct{})}
			for len(c.rows) < chunkRows && readErr == nil {
				var r smilesRow
				if r, readErr = next(); readErr == nil {
					c.rows = append(c.rows, r)
				}
			}
			if len(c.rows) == 0 {
				return
			}
			select {
			case queue <- c:
				work <- c
			case <-ctx.Done():
			}
		}
	})
	for c := range queue {
		<-c.done
		for i := range c.out {
			if ctx.Err() == nil {
				emit(&c.out[i])
			}
		}
	}
	wg.Wait()
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case readErr != io.EOF:
		return readErr
	}
	return nil
}

func (p *parsed) parse(parser *molecule.Parser, file string, r smilesRow, scaffold bool) {
	if p.row, p.err = r, r.err; p.err != nil {
		return
	}
	m, err := parser.Parse(r.smiles)
	if err == nil {
		p.graph, err = m.Graph()
	}
	if err != nil {
		reason := err.Error()
		var e *molecule.Error
		var ce *molecule.CategoryError
		if errors.As(err, &e) {
			reason = fmt.Sprintf("column %d: %s", e.Column, e.Reason)
		} else if errors.As(err, &ce) {
			reason = ce.Reason
		}
		p.err = &SyntaxError{file, r.line, shorten(r.smiles), reason}
		return
	}
	if scaffold {
		p.scaffold = parser.Scaffold(m)
	}
}

// cacheFormat is to change with the format and with what the parser makes of a
// molecule.
const cacheFormat = 1

// cacheMagic begins a cache.
const cacheMagic = "specmatch molecules\n"

// A cacheHeader is a line of JSON after the magic; the code of the graphs
// follows, and the SHA-256 sum of all before.
type cacheHeader struct {
	Format  int    `json:"format"`
	Source  string `json:"source_sha256"`
	Column  string `json:"column"`
	Limit   int    `json:"limit"`
	Rows    int    `json:"rows"`
	Dropped int    `json:"dropped"`
	// Reasons name the file as it was called then.
	Reasons []*SyntaxError `json:"reasons,omitempty"`
	Graphs  int            `json:"graphs"`
	Nodes   int            `json:"nodes"`
	Entries int            `json:"entries"`
	Width   int            `json:"width"`
}

// ErrCache is wrapped by errors about a cache that is not what was written.
var ErrCache = errors.New("the cache is damaged; delete it to have it made again")

func (h *cacheHeader) sameSource(want *cacheHeader) bool {
	return h.Format == want.Format && h.Source == want.Source && h.Column == want.Column && h.Limit == want.Limit
}

// corpus decodes the graphs.
func (h *cacheHeader) corpus(path string, c *graphCodes) (*Corpus, error) {
	graphs, err := c.decode()
	if err != nil {
		return nil, err
	}
	for _, r := range h.Reasons {
		r.File = path
	}
	return &Corpus{Graphs: graphs, Rows: h.Rows, Dropped: h.Dropped, Reasons: h.Reasons}, nil
}

// writeCache writes the cache in one step.
func (h *cacheHeader) writeCache(path string, c *graphCodes) (err error) {
	h.Graphs, h.Nodes, h.Entries, h.Width = c.Graphs, c.Nodes, c.Entries, c.Width
	head, err := json.Marshal(h)
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".tmp*")
	if err != nil {
		return fmt.Errorf("dataset: %w", err)
	}
	defer func() {
		if err != nil {
			f.Close()
			os.Remove(f.Name())
			err = fmt.Errorf("dataset: %s: %w", path, err)
		}
	}()
	sum := sha256.New()
	w := io.MultiWriter(f, sum)
	for _, b := range [][]byte{[]byte(cacheMagic), append(head, '\n'), c.code} {
		if _, err := w.Write(b); err != nil {
			return err
		}
	}
	if _, err := f.Write(sum.Sum(nil)); err != nil {
		return err
	}
	if err := errors.Join(f.Chmod(0o644), f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// readCache reads a cache and checks its sum.
func readCache(path string) (*cacheHeader, *graphCodes, error) {
	f, _, err := openRegular(path)
	if err != nil {
		return nil, nil, fmt.Errorf("dataset: %w", err)
	}
	defer f.Close()
	b, err := io.ReadAll(f)
	if err != nil {
		return nil, nil, fmt.Errorf("dataset: %w", err)
	}
	damaged := func(why string) error { return fmt.Errorf("dataset: %s: %w (%s)", path, ErrCache, why) }
	if !bytes.HasPrefix(b, []byte(cacheMagic)) && !bytes.HasPrefix([]byte(cacheMagic), b) {
		return nil, nil, fmt.Errorf("dataset: %s: is no cache of molecules, and is not overwritten", path)
	}
	if len(b) < len(cacheMagic)+sha256.Size {
		return nil, nil, damaged(fmt.Sprintf("%d bytes", len(b)))
	}
	body, want := b[:len(b)-sha256.Size], b[len(b)-sha256.Size:]
	if got := sha256.Sum256(body); !bytes.Equal(got[:], want) {
		return nil, nil, damaged(fmt.Sprintf("SHA-256 is %s, want %s", hex.EncodeToString(got[:]), hex.EncodeToString(want)))
	}
	head, code, ok := bytes.Cut(body[len(cacheMagic):], []byte("\n"))
	h := new(cacheHeader)
	if err := json.Unmarshal(head, h); err != nil || !ok {
		return nil, nil, damaged(fmt.Sprintf("its header: %v", err))
	}
	return h, &graphCodes{h.Graphs, h.Nodes, h.Entries, h.Width, code}, nil
}
