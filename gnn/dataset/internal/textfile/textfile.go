// Package textfile reads files of text, compressed or not, line by line or as tables.
package textfile

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
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
		if err != nil && !begins(magicGzip) {
			return fmt.Errorf("is no gzip file (%w): rename it without .gz", err)
		}
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
// commas, semicolons or tabs, whichever occur most often in the header, or by what a line such as sep=; above
// the header says.
type Rows struct {
	Header []string // columns that are not asked for may have one name, or none
	Row    []string // the current row; valid until the next
	File   string

	lines  *Lines
	comma  rune
	header int   // line of the header
	start  int   // line of the row
	places []int // for each field, how many lines of the row are before it; nil if the row has no quotes
}

// Rows reads the header of the table.
func (t *Text) Rows() (*Rows, error) {
	c := &Rows{File: t.Name, lines: t.Lines()}
	text, err := c.firstLine()
	if err != nil {
		return nil, err
	}
	separator, isNamed := namedSeparator(text)
	if isNamed {
		text, err = c.firstLine()
		if err != nil {
			return nil, err
		}
		c.comma = separator
	} else {
		c.comma, err = c.separator(text)
		if err != nil {
			return nil, err
		}
	}
	c.lines.unread(nil, text)
	c.lines.Line--
	if err := c.Next(); err != nil {
		return nil, err
	}
	c.Header = slices.Clone(c.Row)
	t.header = c.lines.Line
	if err := CheckUTF8(text); err != nil {
		return nil, c.BadHeader("", err.Error())
	}
	return c, nil
}

// firstLine returns the next line that is not empty, which is to be the header.
func (c *Rows) firstLine() (text string, err error) {
	for err == nil && text == "" {
		text, err = c.lines.line()
	}
	c.header = c.lines.Line
	if err == io.EOF {
		c.header = 1
		return "", c.BadHeader("", "want a header, have an empty file")
	}
	return text, err
}

// namedSeparator returns the separator that a line such as sep=; names. Excel writes and reads such a line.
func namedSeparator(text string) (separator rune, ok bool) {
	if unquoted, isQuoted := strings.CutPrefix(text, `"`); isQuoted {
		text = strings.TrimSuffix(unquoted, `"`)
	}
	const prefix = "sep="
	if len(text) <= len(prefix) || !strings.EqualFold(text[:len(prefix)], prefix) {
		return 0, false
	}
	named := text[len(prefix):]
	if strings.Trim(named, named[:1]) != "" { // programs pad the line to the number of columns
		return 0, false
	}
	separator = rune(named[0])
	isSign := unicode.IsPunct(separator) || unicode.IsSymbol(separator) || unicode.IsSpace(separator)
	return separator, isSign && separator != '"'
}

// separator returns what separates the columns of a header.
func (c *Rows) separator(header string) (rune, error) {
	const separators = ",;\t"
	counts := map[rune]int{}
	isQuoted := false
	mayOpen := true // whether a quote here opens a field, or is the other one of two that stand for a quote within it
	for _, r := range header {
		switch {
		case isQuoted:
			isQuoted = r != '"'
		case r == '"' && mayOpen:
			isQuoted = true
		default:
			counts[r]++
			mayOpen = strings.ContainsRune(separators, r)
		}
	}
	best := ','
	for _, r := range separators {
		if counts[r] > counts[best] {
			best = r
		}
	}
	if counts[best] == 0 && counts['|'] > 0 && strings.Contains(c.lines.peek(), "|") {
		return 0, c.BadHeader(header, "columns are separated by commas, semicolons or tabs, and | is none of them: "+
			"write a line sep=| above this one")
	}
	return best, nil
}

// Distinct returns an error if two columns have the same name. It is for tables all of whose columns are used.
func (c *Rows) Distinct() error {
	sorted := slices.Sorted(slices.Values(c.Header))
	for i, name := range sorted[1:] {
		if name == sorted[i] {
			_, err := c.Column(name)
			return err
		}
	}
	return nil
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

// Next reads the next row; the error at the end is [io.EOF]. After a [*dataset.SyntaxError] it continues with the next
// line. A quote that is not closed costs its own row and, up to the line that seemed to close it, each line with a quote
// that is a character. If text stands behind the quote that seemed to close it, the field may end later: the next line
// with a quote that is a character is rejected, too, unless a row is read before it.
func (c *Rows) Next() error {
	err := c.next()
	if err == nil && c.start >= c.lines.tail {
		c.lines.isEndUnknown = false
	}
	return err
}

// next reads a row or its error.
func (c *Rows) next() error {
	text := ""
	for text == "" {
		var err error
		text, err = c.lines.line()
		if err != nil {
			return err
		}
	}
	c.start = c.lines.Line
	c.places = nil
	if !strings.Contains(text, `"`) {
		c.Row = c.Row[:0]
		for field := range strings.SplitSeq(text, string(c.comma)) {
			c.Row = append(c.Row, field)
		}
		return c.counted()
	}
	return c.nextQuoted(text)
}

// nextQuoted reads a row with quotes, whose first line is known.
func (c *Rows) nextQuoted(text string) error {
	row := quotedRow{comma: string(c.comma)}
	bad := row.add(text)
	if row.hasBare && (c.start <= c.lines.tail || c.lines.isEndUnknown) {
		if c.start > c.lines.tail {
			c.lines.isEndUnknown = false
		}
		return c.badRow(text, "this line has a quote that may be of a row before it, which is rejected")
	}
	// A row goes on as long as a quote is open.
	lines := []string{text}
	size := len(text)
	var ending error
	for row.isOpen && bad == nil && size < LongestLine && ending == nil {
		var next string
		next, ending = c.lines.line()
		if ending == nil {
			lines = append(lines, next)
			size = size + 1 + len(next)
			bad = row.add(next)
		}
	}
	if bad == nil && !row.isOpen {
		c.Row = row.fields
		c.places = row.places
		bad = c.counted()
		if bad == nil || len(lines) == 1 {
			return bad
		}
	}
	if bad == errBehind && len(lines) == 1 {
		return c.badRow(text, bad.Error())
	}
	// A row that cannot be read gives its other lines back. One of them may have the quote that ends the field, and
	// must not pass for a row of its own with this quote: the last one or, if text stands behind the quote there,
	// another one behind it.
	c.lines.unread(ending, lines[1:]...)
	c.lines.Line = c.start
	if bad != nil {
		c.lines.tail = c.start + len(lines) - 1
		c.lines.isEndUnknown = c.lines.isEndUnknown || bad == errBehind
	}
	// The rejected row says why.
	const consequence = "; the lines after this one are read as rows of their own"
	var count *dataset.SyntaxError
	if errors.As(bad, &count) { // every quote is closed
		return c.badRow(text, count.Reason+consequence)
	}
	return c.badRow(text, `a quote that opens here is not closed: a field that is to begin with this character is `+
		`written as """…"`+consequence)
}

// badRow returns an error about the row that begins with the text.
func (c *Rows) badRow(text, reason string) error {
	return &dataset.SyntaxError{File: c.File, Line: c.start, Value: Shorten(text), Reason: reason}
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
	if c.places == nil {
		return c.start
	}
	return c.start + c.places[field]
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
		Line:   c.header,
		Value:  Shorten(value),
		Reason: reason,
	}
}

// Column returns the position of a column. Blanks around names do not matter, unless two
// columns differ in nothing else. It returns an error if two columns have the name.
func (c *Rows) Column(name string) (int, error) {
	places := c.named(func(h string) bool { return h == name })
	if len(places) > 1 {
		return 0, c.BadHeader("", fmt.Sprintf(
			"two columns named %q, the columns %d and %d: rename one of them", name, places[0]+1, places[1]+1))
	}
	if len(places) == 0 {
		trimmed := strings.TrimSpace(name)
		places = c.named(func(h string) bool { return strings.TrimSpace(h) == trimmed })
	}
	if len(places) != 1 {
		reason := fmt.Sprintf("no column %q", name) + suggest.DidYouMean(name, c.Header)
		return 0, c.BadHeader(strings.Join(c.Header, ","), reason)
	}
	return places[0], nil
}

// named returns the positions of the columns whose names are as wanted.
func (c *Rows) named(isWanted func(string) bool) (places []int) {
	for i, h := range c.Header {
		if isWanted(h) {
			places = append(places, i)
		}
	}
	return places
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

	tail         int  // the line that seems to end a row that was rejected, 0 before there is one
	isEndUnknown bool // whether a line behind tail may end that row instead

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

// Position returns the number of the line that was read last, and that of the last line of the header that Rows has
// read, 0 if it has read none.
func (t *Text) Position() (line, header int) {
	if t.lines != nil {
		line = t.lines.Line
	}
	return line, t.header
}

// IsSettled reports whether the lines up to that of [Text.Position] and those behind it are read as if the others were
// not there. They are not where a row was rejected whose end is not reached.
func (t *Text) IsSettled() bool {
	return t.lines == nil || t.lines.Line >= t.lines.tail && !t.lines.isEndUnknown
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

// peek returns the next line, "" if there is none, and gives it back.
func (l *Lines) peek() string {
	text, err := l.line()
	l.Line--
	if err == nil {
		l.unread(nil, text)
	} else {
		l.err = err
	}
	return text
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
