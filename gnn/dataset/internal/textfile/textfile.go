// Package textfile reads files of text, compressed or not: their rows of fields and
// their lines.
package textfile

import (
	"bufio"
	"compress/gzip"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/specmatch/specmatch/gnn/dataset"
)

// Find returns the path of the first of the names that is in dir. If none is,
// the error wraps [fs.ErrNotExist].
func Find(dir string, names ...string) (string, error) {
	for _, name := range names {
		path := filepath.Join(dir, name)
		if _, err := os.Lstat(path); err == nil {
			return path, nil
		} else if !errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("dataset: %w", err)
		}
	}
	return "", fmt.Errorf("dataset: none of %s is in %s: %w", strings.Join(names, ", "), dir, fs.ErrNotExist)
}

// Text is the contents of a file, unpacked and without the byte-order mark with which
// some programs begin text.
type Text struct {
	Name string

	ctx   context.Context
	r     io.Reader
	limit int64     // how many more bytes may come; beyond it is an error
	file  io.Closer // or nil
}

// Open opens a file. It is compressed if the name ends in .gz. If in is set, it is read
// in place of the file. A cancelled ctx ends the reading.
func Open(ctx context.Context, name string, in io.Reader) (*Text, error) {
	t := &Text{Name: name, limit: math.MaxInt64, ctx: ctx}
	if in == nil {
		f, err := os.Open(name)
		if err != nil {
			return nil, fmt.Errorf("dataset: %w", err)
		}
		in, t.file = f, f
	}
	b := bufio.NewReaderSize(in, 64<<10)
	if isGzip(name) {
		z, err := gzip.NewReader(b)
		if err != nil {
			t.Close()
			return nil, fmt.Errorf("dataset: %s: %w", name, err)
		}
		b = bufio.NewReader(z)
	}
	const mark = "\uFEFF"
	if p, _ := b.Peek(len(mark)); string(p) == mark { // an error comes again with the next read
		b.Discard(len(mark))
	}
	t.r = b
	return t, nil
}

// isGzip reports whether a file is compressed, by its name.
func isGzip(name string) bool { return strings.EqualFold(filepath.Ext(name), ".gz") }

// Read implements [io.Reader].
func (t *Text) Read(p []byte) (int, error) {
	if err := t.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := t.r.Read(p)
	if t.limit -= int64(n); t.limit < 0 {
		return 0, dataset.ErrTooLarge
	}
	return n, err
}

// Close closes the file that Open opened.
func (t *Text) Close() error {
	if t.file == nil {
		return nil
	}
	return t.file.Close()
}

// Rows are those of a table, whose first line is its header.
type Rows struct {
	Header []string // distinct names
	Row    []string // the last one; valid until the next
	File   string

	r *csv.Reader
}

// Rows reads the header of the table.
func (t *Text) Rows() (*Rows, error) {
	c := &Rows{File: t.Name, r: csv.NewReader(t)}
	c.r.ReuseRecord = true
	switch err := c.Next(); {
	case err == io.EOF:
		return nil, c.BadHeader("", "want a header, have an empty file")
	case err != nil:
		return nil, err
	}
	c.Header = slices.Clone(c.Row)
	sorted := slices.Sorted(slices.Values(c.Header))
	for i, name := range sorted[1:] {
		if name == sorted[i] {
			return nil, c.BadHeader("", fmt.Sprintf("two columns named %q", name))
		}
	}
	return c, nil
}

// ReadRows reads a table: header is called when its header is known, and row, if set, for
// every row. in is as in [Open]. The table may have [dataset.MaxFileBytes] if it is
// compressed.
func ReadRows(ctx context.Context, name string, in io.Reader, header, row func(*Rows) error) error {
	t, err := Open(ctx, name, in)
	if err != nil {
		return err
	}
	defer t.Close()
	if isGzip(name) {
		t.limit = dataset.MaxFileBytes
	}
	c, err := t.Rows()
	if err == nil {
		err = header(c)
	}
	for err == nil && row != nil {
		if err = c.Next(); err == nil {
			err = row(c)
		}
	}
	if err == io.EOF {
		return nil
	}
	return err
}

// Begins returns an error unless these are the first names of the header.
func (c *Rows) Begins(names ...string) error {
	if len(c.Header) < len(names) || !slices.Equal(c.Header[:len(names)], names) {
		return c.BadHeader("", "want a header that begins with "+strings.Join(names, ","))
	}
	return nil
}

// Next reads the next row; the error at the end is [io.EOF]. After a
// [*dataset.SyntaxError] it can go on.
func (c *Rows) Next() error {
	var err error
	c.Row, err = c.r.Read()
	var syntax *csv.ParseError
	switch {
	case errors.As(err, &syntax):
		return &dataset.SyntaxError{File: c.File, Line: syntax.Line, Reason: syntax.Err.Error()}
	case err != nil && err != io.EOF:
		return fmt.Errorf("dataset: %s: %w", c.File, err)
	}
	return err
}

// Line returns the line of a field of the row.
func (c *Rows) Line(field int) int {
	line, _ := c.r.FieldPos(field)
	return line
}

// Bad returns an error about a field of the row.
func (c *Rows) Bad(field int, reason string) *dataset.SyntaxError {
	return &dataset.SyntaxError{File: c.File, Line: c.Line(field), Value: Shorten(c.Row[field]), Reason: reason}
}

// BadHeader returns an error about the header.
func (c *Rows) BadHeader(value, reason string) *dataset.SyntaxError {
	return &dataset.SyntaxError{File: c.File, Line: 1, Value: Shorten(value), Reason: reason}
}

// Column returns the position of a column.
func (c *Rows) Column(name string) (int, error) {
	i := slices.Index(c.Header, name)
	if i < 0 {
		reason := fmt.Sprintf("no column %q", name)
		if len(c.Header) == 1 && strings.ContainsAny(c.Header[0], ";\t") {
			reason += "; columns are separated by commas"
		}
		return 0, c.BadHeader(strings.Join(c.Header, ","), reason)
	}
	return i, nil
}

// LongestLine is how many bytes a line of [Lines] may have.
const LongestLine = 1 << 20

// Lines are those of a text that are not blank.
type Lines struct {
	File string
	Line int // number of the last one

	s *bufio.Scanner
}

// Lines reads line by line.
func (t *Text) Lines() *Lines {
	s := bufio.NewScanner(t)
	s.Buffer(nil, LongestLine)
	return &Lines{File: t.Name, s: s}
}

// Next returns a line without the blanks around it; the error at the end is [io.EOF].
func (l *Lines) Next() (string, error) {
	for l.s.Scan() {
		l.Line++
		if text := strings.TrimSpace(l.s.Text()); text != "" {
			return text, nil
		}
	}
	switch err := l.s.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return "", &dataset.SyntaxError{File: l.File, Line: l.Line + 1, Reason: fmt.Sprintf("longer than %d bytes", LongestLine)}
	case err != nil:
		return "", fmt.Errorf("dataset: %s: %w", l.File, err)
	}
	return "", io.EOF
}

// longestValue is how many characters of a value an error shows.
const longestValue = 64

// Shorten cuts a value for an error message.
func Shorten(s string) string {
	if r := []rune(s); len(r) > longestValue {
		return string(r[:longestValue]) + "…"
	}
	return s
}
