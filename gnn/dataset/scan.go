package dataset

import (
	"fmt"
	"io"
	"strconv"
	"strings"
)

// SyntaxError reports a line of a data file that cannot be used. Every error
// about the *content* of a file is a *SyntaxError; use [errors.As] to get at
// its parts.
type SyntaxError struct {
	File   string // path of the file; for a zip member the archive's path, a slash and the member's name
	Line   int    // 1-based line
	Value  string // offending text, shortened; empty if the line as a whole is wrong
	Reason string // what is wrong with it
}

// Error returns "dataset: file:line: "value": reason".
func (e *SyntaxError) Error() string {
	if e.Value == "" {
		return fmt.Sprintf("dataset: %s:%d: %s", e.File, e.Line, e.Reason)
	}
	return fmt.Sprintf("dataset: %s:%d: %q: %s", e.File, e.Line, e.Value, e.Reason)
}

const (
	scanBuffer = 64 << 10
	// maxToken bounds the bytes of one number, so that a file without
	// separators cannot make the scanner buffer it.
	maxToken = 64
)

// A scanner reads lines of comma-separated numbers, the only syntax of the
// TUDataset format, byte by byte from a fixed buffer: no line is ever held as
// a string, which is what makes COLLAB's 24.6 million lines a matter of
// seconds. Blanks around numbers, CRLF line ends, a missing final newline and
// blank lines at the end of the file are accepted; nothing else is.
//
//	for {
//		ok, err := s.next() // at the start of a line?
//		v, err := s.int32() // one number, then
//		more, err := s.sep() // a comma (more) or the end of the line
//	}
type scanner struct {
	file     string
	r        io.Reader
	buf      []byte
	pos, end int
	mark     int // start of the current token in buf, or -1
	line     int // 1-based number of the line at pos
	err      error
}

func newScanner(file string, r io.Reader) *scanner {
	return &scanner{file: file, r: r, buf: make([]byte, scanBuffer), mark: -1, line: 1}
}

// eof is what peek returns after the last byte.
const eof = -1

// peek returns the byte at the read position without consuming it.
func (s *scanner) peek() int {
	if s.pos < s.end {
		return int(s.buf[s.pos])
	}
	return s.fill()
}

// fill reads more bytes, keeping the current token, and returns the next one.
func (s *scanner) fill() int {
	keep := s.pos
	if s.mark >= 0 {
		keep = s.mark
		s.mark = 0
	}
	s.end = copy(s.buf, s.buf[keep:s.end])
	s.pos -= keep
	for tries := 0; s.err == nil; tries++ {
		n, err := s.r.Read(s.buf[s.end:])
		s.end += n
		if err == nil && n == 0 && tries == 100 {
			err = io.ErrNoProgress
		}
		s.err = err
		if n > 0 {
			return int(s.buf[s.pos])
		}
	}
	return eof
}

// failed returns the read error, if that is why the file seems to end.
func (s *scanner) failed() error {
	if s.err == nil || s.err == io.EOF {
		return nil
	}
	return fmt.Errorf("dataset: %s:%d: %w", s.file, s.line, s.err)
}

// blanks skips spaces, tabs and carriage returns and returns the byte after.
func (s *scanner) blanks() int {
	c := s.peek()
	for c == ' ' || c == '\t' || c == '\r' {
		s.pos++
		c = s.peek()
	}
	return c
}

// next reports whether another line of numbers follows and moves to its start.
// A blank line is an error unless only blank lines follow: it would shift every
// item after it.
func (s *scanner) next() (bool, error) {
	first := s.line
	for {
		switch s.blanks() {
		case eof:
			return false, s.failed()
		case '\n':
			s.pos++
			s.line++
		default:
			if s.line != first {
				return false, &SyntaxError{s.file, first, "", "blank line before the end of the file"}
			}
			return true, nil
		}
	}
}

// sep consumes what follows a number: a comma, and more is true, or the end of
// the line or file.
func (s *scanner) sep() (more bool, err error) {
	switch s.blanks() {
	case ',':
		s.pos++
		return true, nil
	case '\n':
		s.pos++
		s.line++
		return false, nil
	case eof:
		return false, s.failed()
	}
	s.mark = s.pos
	return false, s.bad(s.token(), "want a comma or the end of the line")
}

// int32 reads an integer of 32 bits.
func (s *scanner) int32() (int32, error) {
	c := s.blanks()
	s.mark = s.pos
	sign := int64(1)
	if c == '-' || c == '+' {
		if c == '-' {
			sign = -1
		}
		s.pos++
		c = s.peek()
	}
	v, digits := int64(0), 0
	for c >= '0' && c <= '9' {
		if s.pos-s.mark == maxToken {
			return 0, s.bad(s.token(), "too long for a number")
		}
		if v = v*10 + int64(c-'0'); v > 1<<31 {
			return 0, s.bad(s.token(), "does not fit in 32 bits")
		}
		digits++
		s.pos++
		c = s.peek()
	}
	if digits == 0 || !delimiter(c) {
		return 0, s.bad(s.token(), "not an integer")
	}
	if v *= sign; v > 1<<31-1 {
		return 0, s.bad(s.token(), "does not fit in 32 bits")
	}
	s.mark = -1
	return int32(v), nil
}

// float32 reads a finite decimal number, rounded through float64 as PyTorch
// Geometric's reader does.
func (s *scanner) float32() (float32, error) {
	c := s.blanks()
	s.mark = s.pos
	for c >= '0' && c <= '9' || c == '-' || c == '+' || c == '.' || c == 'e' || c == 'E' {
		if s.pos-s.mark == maxToken {
			return 0, s.bad(s.token(), "too long for a number")
		}
		s.pos++
		c = s.peek()
	}
	if !delimiter(c) {
		return 0, s.bad(s.token(), "not a finite decimal number")
	}
	v, err := strconv.ParseFloat(string(s.buf[s.mark:s.pos]), 64)
	if f := float32(v); err == nil && f-f == 0 { // not ±Inf after rounding
		s.mark = -1
		return f, nil
	}
	return 0, s.bad(s.token(), "not a finite decimal number")
}

func delimiter(c int) bool {
	return c == ',' || c == '\n' || c == ' ' || c == '\r' || c == '\t' || c == eof
}

// token returns the field that starts at the mark, shortened to a length that
// fits in a message.
func (s *scanner) token() string {
	for s.pos = s.mark; s.pos-s.mark < maxToken/2; s.pos++ {
		if c := s.peek(); c == ',' || c == '\n' || c == eof {
			break
		}
	}
	t := strings.TrimRight(string(s.buf[s.mark:s.pos]), " \t\r")
	if s.pos-s.mark == maxToken/2 {
		t += "…"
	}
	return t
}

// bad returns the error for a value on the current line. If the data ended
// because reading failed, that is the error.
func (s *scanner) bad(value, reason string) error {
	if err := s.failed(); err != nil && s.pos == s.end {
		return err
	}
	if value == "" {
		reason = "a number is missing"
	}
	return &SyntaxError{s.file, s.line, value, reason}
}

// badInt is bad for a number that was read but is not acceptable.
func (s *scanner) badInt(v int32, format string, args ...any) error {
	return &SyntaxError{s.file, s.line, strconv.Itoa(int(v)), fmt.Sprintf(format, args...)}
}

// rows reads the rest of the file as a table, appending each number with add.
// All rows must have as many columns as the first, and there must be want rows
// (any number if want < 0), one per item.
func (s *scanner) rows(want int, item string, add func() error) (rows, cols int, err error) {
	for {
		ok, err := s.next()
		if err != nil {
			return 0, 0, err
		}
		if !ok {
			break
		}
		if rows == want {
			return 0, 0, &SyntaxError{s.file, s.line, "", fmt.Sprintf("more than %d lines, one per %s", want, item)}
		}
		line, n := s.line, 0
		for more := true; more; n++ {
			if err := add(); err != nil {
				return 0, 0, err
			}
			if more, err = s.sep(); err != nil {
				return 0, 0, err
			}
		}
		if rows == 0 {
			cols = n
		}
		if n != cols {
			return 0, 0, &SyntaxError{s.file, line, "", fmt.Sprintf("%d columns, but the first line has %d", n, cols)}
		}
		rows++
	}
	if want >= 0 && rows < want {
		return 0, 0, &SyntaxError{s.file, s.line, "", fmt.Sprintf("the file ends after %d lines, want %d, one per %s", rows, want, item)}
	}
	return rows, cols, nil
}

// ints reads a table of integers, row by row.
func (s *scanner) ints(want int, item string) (v []int32, cols int, err error) {
	if want > 0 {
		v = make([]int32, 0, min(want, 1<<20))
	}
	_, cols, err = s.rows(want, item, func() error {
		x, err := s.int32()
		v = append(v, x)
		return err
	})
	return v, cols, err
}

// floats reads a table of real numbers, row by row.
func (s *scanner) floats(want int, item string) (v []float32, cols int, err error) {
	_, cols, err = s.rows(want, item, func() error {
		x, err := s.float32()
		v = append(v, x)
		return err
	})
	return v, cols, err
}
