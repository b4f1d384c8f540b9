// Package textfile reads files of text, compressed or not, line by line or as tables.
package textfile

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
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
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/klauspost/compress/zstd"

	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/gnn/dataset/suggest"
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
	return "", fmt.Errorf("dataset: none of %s is in %s: %w",
		strings.Join(names, ", "), dir, fs.ErrNotExist)
}

// Text is the contents of a file: unpacked, in UTF-8, and without a byte-order mark.
type Text struct {
	Name string

	ctx    context.Context
	r      io.Reader
	packed bool
	limit  int64     // how many more bytes may be read
	file   io.Closer // or nil
	lines  *Lines    // the reader that Lines returned last
	header int       // the line where the header of Rows ends
}

// Open opens a file. It unpacks gzip and zstd, which it knows by their first bytes; a file
// whose name ends in .gz must be gzip. It converts UTF-16, which it knows by the byte-order
// mark or by the zeros in every second byte. Lines may end in CR alone. If input is set, it is
// read in place of the file. A cancelled ctx ends the reading.
func Open(ctx context.Context, name string, input io.Reader) (*Text, error) {
	t := &Text{Name: name, limit: math.MaxInt64, ctx: ctx}
	if input == nil {
		f, err := os.Open(name)
		if err != nil {
			return nil, fmt.Errorf("dataset: %w", err)
		}
		input = f
		t.file = f
	}
	if err := t.decode(input); err != nil {
		t.Close()
		return nil, fmt.Errorf("dataset: %s: %w", name, err)
	}
	return t, nil
}

// Magic numbers, and the marks of UTF-8 and UTF-16.
const (
	magicGzip = "\x1f\x8b"
	magicZstd = "\x28\xb5\x2f\xfd"
	mark8     = "\uFEFF"
	markLE    = "\xff\xfe"
	markBE    = "\xfe\xff"
)

// binaries says what files are that are no text, by their first bytes, and what to do.
var binaries = map[string]string{
	"PK\x03\x04": "is a zip archive: unpack it, or name it .zip if it is a set in " +
		"TUDataset's format",
	"PAR1":             "is a Parquet file: name it .parquet, or say -format parquet",
	"BZh":              "is packed by bzip2: unpack it, or pack it by gzip or zstd",
	"\xfd7zXZ\x00":     "is packed by xz: unpack it, or pack it by gzip or zstd",
	"\xd0\xcf\x11\xe0": "is a spreadsheet of Excel: save it as CSV",
	"SQLite format 3":  "is a database of SQLite: export the table as CSV",
	"\x89HDF":          "is an HDF5 file: write its table as CSV or Parquet",
	"\x93NUMPY":        "is a matrix of NumPy: write it as CSV",
	"\x80\x02": "is a pickle of Python, which is never run: write its records as " +
		"CSV or JSON Lines",
	"\x80\x03": "is a pickle of Python, which is never run: write its records as " +
		"CSV or JSON Lines",
	"\x80\x04": "is a pickle of Python, which is never run: write its records as " +
		"CSV or JSON Lines",
	"\x80\x05": "is a pickle of Python, which is never run: write its records as " +
		"CSV or JSON Lines",
}

// decode sets up the readers that turn the bytes of input into text.
func (t *Text) decode(input io.Reader) error {
	const peeked = 64 << 10
	// Unpack.
	b := bufio.NewReaderSize(input, peeked)
	begins := func(s string) bool { // an error returns with the next read
		p, _ := b.Peek(len(s))
		return string(p) == s
	}
	switch {
	case begins(magicGzip) || isGzip(t.Name):
		z, err := gzip.NewReader(b)
		if err != nil {
			return err
		}
		b = bufio.NewReaderSize(z, peeked)
		t.packed = true
	case begins(magicZstd):
		z, err := zstd.NewReader(b, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(128<<20))
		if err != nil {
			return err
		}
		b = bufio.NewReaderSize(z, peeked)
		t.packed = true
	}
	for magic, remark := range binaries {
		if begins(magic) {
			return errors.New(remark)
		}
	}
	// Convert UTF-16.
	start, _ := b.Peek(peeked)
	order := unmarkedUTF16(start)
	switch {
	case begins(mark8):
		b.Discard(len(mark8))
	case begins(markLE):
		b.Discard(len(markLE))
		order = binary.LittleEndian
	case begins(markBE):
		b.Discard(len(markBE))
		order = binary.BigEndian
	}
	if order != nil {
		b = bufio.NewReaderSize(&utf16Reader{r: b, order: order}, peeked)
	}
	// Convert line ends.
	t.r = b
	if p, _ := b.Peek(peeked); bytes.IndexByte(p, '\r') >= 0 && bytes.IndexByte(p, '\n') < 0 {
		t.r = crReader{b}
	}
	return nil
}

// unmarkedUTF16 returns the byte order of text in UTF-16, nil for other text. Most even or most odd bytes
// of UTF-16 are zeros, which other text does not have.
func unmarkedUTF16(text []byte) binary.ByteOrder {
	var zeros [2]int
	for i, c := range text {
		if c == 0 {
			zeros[i%2]++
		}
	}
	switch {
	case zeros[1] > len(text)/4 && zeros[0] < zeros[1]/8:
		return binary.LittleEndian
	case zeros[0] > len(text)/4 && zeros[1] < zeros[0]/8:
		return binary.BigEndian
	}
	return nil
}

// utf16Reader converts UTF-16 to UTF-8.
type utf16Reader struct {
	r     *bufio.Reader
	order binary.ByteOrder
	rest  []byte
}

func (u *utf16Reader) Read(p []byte) (int, error) {
	for len(u.rest) < min(len(p), 4096) {
		c, err := u.unit()
		if err == nil && utf16.IsSurrogate(c) {
			var low rune
			low, err = u.unit()
			if err == nil {
				c = utf16.DecodeRune(c, low)
			}
		}
		if err != nil {
			if len(u.rest) > 0 {
				break
			}
			return 0, err
		}
		u.rest = utf8.AppendRune(u.rest, c)
	}
	n := copy(p, u.rest)
	u.rest = append(u.rest[:0], u.rest[n:]...)
	return n, nil
}

// unit reads 16 bits.
func (u *utf16Reader) unit() (rune, error) {
	var b [2]byte
	if _, err := io.ReadFull(u.r, b[:]); err != nil {
		return 0, err
	}
	return rune(u.order.Uint16(b[:])), nil
}

// crReader converts CR to LF, in text whose lines end in CR alone.
type crReader struct{ io.Reader }

func (c crReader) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	for i, b := range p[:n] {
		if b == '\r' {
			p[i] = '\n'
		}
	}
	return n, err
}

// isGzip reports whether a file is compressed, by its name.
func isGzip(name string) bool { return strings.EqualFold(filepath.Ext(name), ".gz") }

// Read implements [io.Reader].
func (t *Text) Read(p []byte) (int, error) {
	if err := t.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := t.r.Read(p)
	t.limit -= int64(n)
	if t.limit < 0 {
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

// Rows reads the rows of a table, whose first line is its header. Columns are separated by
// commas, semicolons or tabs, whichever occur most often in the header.
type Rows struct {
	Header []string // distinct names
	Row    []string // the current row; valid until the next
	File   string

	lines  *Lines
	comma  rune
	start  int         // line of the row
	fields *csv.Reader // the reader of the row; nil if the row has no quotes
}

// Rows reads the header of the table.
func (t *Text) Rows() (*Rows, error) {
	c := &Rows{File: t.Name, lines: t.Lines(), comma: ','}
	first, err := c.lines.line()
	for err == nil && first == "" {
		first, err = c.lines.line()
	}
	if err == io.EOF {
		return nil, c.BadHeader("", "want a header, have an empty file")
	}
	if err != nil {
		return nil, err
	}
	// Choose the separator.
	outside := true // of quotes
	counts := map[rune]int{}
	for _, r := range first {
		if r == '"' {
			outside = !outside
		} else if outside {
			counts[r]++
		}
	}
	for _, r := range ";\t" {
		if counts[r] > counts[c.comma] {
			c.comma = r
		}
	}
	c.lines.unread(nil, first)
	c.lines.Line--
	if err := c.Next(); err != nil {
		return nil, err
	}
	c.Header = slices.Clone(c.Row)
	t.header = c.lines.Line
	if err := CheckUTF8(first); err != nil {
		return nil, c.BadHeader("", err.Error())
	}
	sorted := slices.Sorted(slices.Values(c.Header))
	for i, name := range sorted[1:] {
		if name == sorted[i] {
			return nil, c.BadHeader("", fmt.Sprintf("two columns named %q", name))
		}
	}
	return c, nil
}

// ReadRows reads a table. It calls header when the header is known, and row, if set, for
// every row. input is as in [Open]. A compressed table may have [dataset.MaxFileBytes].
func ReadRows(ctx context.Context, name string, input io.Reader, header, row func(*Rows) error) error {
	t, err := Open(ctx, name, input)
	if err != nil {
		return err
	}
	defer t.Close()
	if t.packed {
		t.limit = dataset.MaxFileBytes
	}
	c, err := t.Rows()
	if err == nil {
		err = header(c)
	}
	for err == nil && row != nil {
		err = c.Next()
		if err == nil {
			err = row(c)
		}
	}
	if err == io.EOF {
		return nil
	}
	return err
}

// Begins returns an error unless the header begins with these names.
func (c *Rows) Begins(names ...string) error {
	if len(c.Header) < len(names) || !slices.Equal(c.Header[:len(names)], names) {
		return c.BadHeader("", "want a header that begins with "+strings.Join(names, ","))
	}
	return nil
}

// Next reads the next row; the error at the end is [io.EOF]. After a
// [*dataset.SyntaxError] it continues with the next line: a quote that is not closed costs
// no row but its own.
func (c *Rows) Next() error {
	text := ""
	for text == "" {
		var err error
		text, err = c.lines.line()
		if err != nil {
			return err
		}
	}
	c.start = c.lines.Line
	c.fields = nil
	if !strings.Contains(text, `"`) {
		c.Row = c.Row[:0]
		for field := range strings.SplitSeq(text, string(c.comma)) {
			c.Row = append(c.Row, field)
		}
		return c.counted()
	}
	// A row with quotes goes on as long as one is open.
	lines := []string{text}
	size := len(text)
	odd := strings.Count(text, `"`)%2 == 1
	var err error
	for odd && size < LongestLine && err == nil {
		var next string
		next, err = c.lines.line()
		if err == nil {
			lines = append(lines, next)
			size = size + 1 + len(next)
			odd = strings.Count(next, `"`)%2 == 0
		}
	}
	r := csv.NewReader(strings.NewReader(strings.Join(lines, "\n")))
	r.Comma = c.comma
	r.FieldsPerRecord = -1
	row, bad := r.Read()
	if bad == nil && !odd && r.InputOffset() >= int64(size) {
		c.Row = row
		c.fields = r
		bad = c.counted()
		if bad == nil {
			return nil
		}
	}
	// A row that cannot be read gives its other lines back.
	isComplete := len(lines) == 1 && !odd
	if _, ok := bad.(*csv.ParseError); isComplete && !ok {
		return bad
	}
	c.lines.unread(err, lines[1:]...)
	c.lines.Line = c.start
	return &dataset.SyntaxError{
		File:   c.File,
		Line:   c.start,
		Value:  Shorten(text),
		Reason: reasonFor(bad, isComplete),
	}
}

// reasonFor says why a row with quotes cannot be read, given the error of its fields. A row that is not complete
// gives its other lines back.
func reasonFor(bad error, isComplete bool) string {
	const rest = "; the lines after this one are read as rows of their own"
	var syntax *csv.ParseError
	var count *dataset.SyntaxError
	switch {
	case isComplete && errors.As(bad, &syntax):
		return syntax.Err.Error()
	case errors.As(bad, &count): // every quote is closed
		return count.Reason + rest
	}
	return "a quote that opens here is not closed" + rest
}

// counted returns an error unless the row has a field for each column.
func (c *Rows) counted() error {
	if c.Header == nil || len(c.Row) == len(c.Header) {
		return nil
	}
	reason := fmt.Sprintf("wrong number of fields: %d where the header has %d",
		len(c.Row), len(c.Header))
	return &dataset.SyntaxError{File: c.File, Line: c.start, Reason: reason}
}

// Line returns the line where a field of the row begins.
func (c *Rows) Line(field int) int {
	if c.fields == nil {
		return c.start
	}
	line, _ := c.fields.FieldPos(field)
	return c.start + line - 1
}

// Bad returns an error about a field of the row.
func (c *Rows) Bad(field int, reason string) *dataset.SyntaxError {
	return &dataset.SyntaxError{
		File:   c.File,
		Line:   c.Line(field),
		Value:  Shorten(c.Row[field]),
		Reason: reason,
	}
}

// BadHeader returns an error about the header.
func (c *Rows) BadHeader(value, reason string) *dataset.SyntaxError {
	return &dataset.SyntaxError{
		File:   c.File,
		Line:   1,
		Value:  Shorten(value),
		Reason: reason,
	}
}

// Column returns the position of a column. Blanks around names do not matter, unless two
// columns differ in nothing else.
func (c *Rows) Column(name string) (int, error) {
	i := slices.Index(c.Header, name)
	if i < 0 {
		matches := func(h string) bool {
			return strings.TrimSpace(h) == strings.TrimSpace(name)
		}
		first := slices.IndexFunc(c.Header, matches)
		if first >= 0 && !slices.ContainsFunc(c.Header[first+1:], matches) {
			i = first
		}
	}
	if i < 0 {
		reason := fmt.Sprintf("no column %q", name) + suggest.DidYouMean(name, c.Header)
		return 0, c.BadHeader(strings.Join(c.Header, ","), reason)
	}
	return i, nil
}

// LongestLine is how many bytes a line or a row of a table may have; longer ones are skipped.
// A line of endOfPatience bytes ends the reading. Tests lower both.
var (
	LongestLine   = 32 << 20
	endOfPatience = 8 * LongestLine
)

// Lines reads the lines of a text.
type Lines struct {
	File string
	Line int // number of the current one

	r    *bufio.Reader
	buf  []byte
	back []string // lines that were given back, the next one last
	err  error    // to return after them
}

// Lines returns a reader of the lines.
func (t *Text) Lines() *Lines {
	t.lines = &Lines{File: t.Name, r: bufio.NewReaderSize(t, 64<<10)}
	return t.lines
}

// Position returns the number of the line that was read last, and that of the last line of the header that Rows
// has read, 0 if it has read none.
func (t *Text) Position() (line, header int) {
	if t.lines != nil {
		line = t.lines.Line
	}
	return line, t.header
}

// Next returns the next line that is not blank, without the blanks around it. The error at
// the end is [io.EOF]. After a [*dataset.SyntaxError] it continues with the next line.
func (l *Lines) Next() (string, error) {
	for {
		text, err := l.line()
		text = strings.TrimSpace(text)
		if text != "" || err != nil {
			return text, err
		}
	}
}

// Raw returns the next line without its end. Errors are those of Next.
func (l *Lines) Raw() (string, error) { return l.line() }

// unread gives lines back, with the error that came after them.
func (l *Lines) unread(err error, lines ...string) {
	for _, text := range slices.Backward(lines) {
		l.back = append(l.back, text)
	}
	if err != nil {
		l.err = err
	}
}

// line returns the next line without its end.
func (l *Lines) line() (string, error) {
	l.Line++
	if n := len(l.back); n > 0 {
		text := l.back[n-1]
		l.back = l.back[:n-1]
		return text, nil
	}
	if err := l.err; err != nil {
		l.err = nil
		return "", err
	}
	l.buf = l.buf[:0]
	for size := 0; ; {
		part, err := l.r.ReadSlice('\n')
		size += len(part)
		if size <= LongestLine {
			l.buf = append(l.buf, part...)
		}
		long := &dataset.SyntaxError{
			File:   l.File,
			Line:   l.Line,
			Reason: fmt.Sprintf("longer than %d bytes", LongestLine),
		}
		switch {
		case err == bufio.ErrBufferFull && size <= endOfPatience:
			continue
		case err == bufio.ErrBufferFull:
			return "", fmt.Errorf("%w, and even than %d, where the reading ends", long, endOfPatience)
		case err == io.EOF && size == 0:
			return "", io.EOF
		case err != nil && err != io.EOF:
			return "", fmt.Errorf("dataset: %s: %w", l.File, err)
		case size > LongestLine:
			l.buf = nil
			return "", long
		}
		return string(bytes.TrimSuffix(bytes.TrimSuffix(l.buf, []byte("\n")), []byte("\r"))), nil
	}
}

// CheckUTF8 returns an error unless a text is in UTF-8. Two texts that differ only in invalid bytes would
// become the same text.
func CheckUTF8(text string) error {
	if utf8.ValidString(text) {
		return nil
	}
	offset := 0
	for offset < len(text) {
		r, size := utf8.DecodeRuneInString(text[offset:])
		if r == utf8.RuneError && size == 1 {
			break
		}
		offset += size
	}
	return fmt.Errorf(
		"the byte 0x%02x at column %d is not UTF-8, but perhaps Latin-1: convert the file, such as by "+
			"iconv -f latin1 -t utf-8",
		text[offset],
		offset+1,
	)
}

// longestValue is how many characters of a value errors show.
const longestValue = 64

// Printable shortens a text for a terminal and replaces control characters.
func Printable(s string) string {
	return Shorten(strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return utf8.RuneError
		}
		return r
	}, s))
}

// Shorten cuts a value to the length that errors show.
func Shorten(s string) string {
	if r := []rune(s); len(r) > longestValue {
		return string(r[:longestValue]) + "…"
	}
	return s
}
