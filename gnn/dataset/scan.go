package dataset

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
)

// SyntaxError reports a line of a data file that cannot be used. Every error
// about the content of a file is a *SyntaxError; [errors.As] gives its parts.
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
	maxLine    = 16 << 20 // bytes
	maxNumber  = 64       // bytes
)

// A scanner reads lines of comma-separated numbers, the only syntax of the
// TUDataset format. Blanks around numbers, CRLF line ends, a missing final newline
// and blank lines at the end of the file are accepted; nothing else is.
type scanner struct {
	file string
	line int // number of the last one that is not blank
	s    *bufio.Scanner
}

func newScanner(file string, r io.Reader) *scanner {
	s := &scanner{file: file, s: bufio.NewScanner(r)}
	s.s.Buffer(make([]byte, scanBuffer), maxLine)
	return s
}

func (s *scanner) bad(line int, value, format string, args ...any) error {
	return &SyntaxError{s.file, line, value, fmt.Sprintf(format, args...)}
}

// number is the type of the numbers in a file.
type number interface{ int32 | float32 | float64 }

// trim removes blanks at both ends.
func trim(b []byte) []byte {
	blank := func(c byte) bool { return c == ' ' || c == '\t' || c == '\r' }
	for len(b) > 0 && blank(b[0]) {
		b = b[1:]
	}
	for len(b) > 0 && blank(b[len(b)-1]) {
		b = b[:len(b)-1]
	}
	return b
}

// scanRows calls f with the numbers of every line of the file.
func scanRows[T number](
	s *scanner, parse func(field []byte) (v T, reason string), f func(row []T) error,
) error {
	var row []T
	for line := 1; s.s.Scan() && s.s.Err() == nil; line++ { // an error may cut the last line
		text := trim(s.s.Bytes())
		if len(text) == 0 {
			continue
		}
		if line != s.line+1 { // a blank line would shift every item after it
			return s.bad(s.line+1, "", "blank line before the end of the file")
		}
		s.line = line
		row = row[:0]
		for unfinished := true; unfinished; {
			field := text
			comma := bytes.IndexByte(text, ',')
			unfinished = comma >= 0
			if unfinished {
				field = text[:comma]
				text = text[comma+1:]
			}
			field = trim(field)
			if len(field) == 0 {
				return s.bad(line, "", "a number is missing")
			}
			v, reason := parse(field)
			switch {
			case reason != "":
				return s.bad(line, shorten(field), "%s", reason)
			case len(field) > maxNumber:
				return s.bad(line, shorten(field), "too long for a number")
			}
			row = append(row, v)
		}
		if err := f(row); err != nil {
			return err
		}
	}
	return s.failed()
}

// failed returns the error that ended the reading, if any.
func (s *scanner) failed() error {
	switch err := s.s.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return s.bad(s.line+1, "", "longer than %d bytes", maxLine)
	case err != nil:
		return fmt.Errorf("dataset: %s:%d: %w", s.file, s.line+1, err)
	}
	return nil
}

func shorten(field []byte) string {
	if len(field) > maxNumber/2 {
		return string(field[:maxNumber/2]) + "…"
	}
	return string(field)
}

// parseInt parses an integer of 32 bits in a field that is not empty. It returns what is wrong
// with it, or "".
func parseInt(field []byte) (int32, string) {
	digits := field
	if field[0] == '-' || field[0] == '+' {
		digits = field[1:]
	}
	v := int64(0)
	for _, c := range digits {
		if c < '0' || c > '9' {
			return 0, "not an integer"
		}
		v = min(v*10+int64(c-'0'), 1<<40)
	}
	if field[0] == '-' {
		v = -v
	}
	switch {
	case len(digits) == 0:
		return 0, "not an integer"
	case v != int64(int32(v)):
		return 0, "does not fit in 32 bits"
	}
	return int32(v), ""
}

// parseFloat parses a finite decimal number and rounds it through float64, as PyTorch
// Geometric's reader does. It returns what is wrong with it, or "".
func parseFloat(field []byte) (float32, string) {
	v, reason := parseFloat64(field)
	f := float32(v)
	if reason == "" && f-f != 0 { // infinite
		reason = notFinite
	}
	return f, reason
}

const notFinite = "not a finite decimal number"

// parseFloat64 is [parseFloat] without the rounding.
func parseFloat64(field []byte) (float64, string) {
	v, err := strconv.ParseFloat(string(field), 64)
	// infinite, or hexadecimal
	if err != nil || v-v != 0 || len(bytes.Trim(field, "0123456789+-.eE")) > 0 {
		return 0, notFinite
	}
	return v, ""
}

// scanTable reads a file as a table, row by row. All rows must have as many columns as the
// first, and there must be one row per item, so many as items says unless it is negative.
func scanTable[T number](
	s *scanner, parse func([]byte) (T, string), items int, item string,
) (v []T, cols int, err error) {
	err = scanRows(s, parse, func(row []T) error {
		if s.line == 1 {
			cols = len(row)
			v = make([]T, 0, max(0, min(items, 1<<20))*cols)
		}
		if items >= 0 && s.line > items {
			return s.bad(s.line, "", "more than %d lines, one per %s", items, item)
		}
		if len(row) != cols {
			return s.bad(s.line, "", "%d columns, but the first line has %d", len(row), cols)
		}
		v = append(v, row...)
		return nil
	})
	if err == nil && s.line < items {
		err = s.bad(s.line+1, "", "the file ends after %d lines, want %d, one per %s",
			s.line, items, item)
	}
	return v, cols, err
}
