package textfile

import (
	"errors"
	"strings"
)

// quotedRow divides a row with quotes into fields. A quote that begins a field opens it, and is closed before the
// next separator or the end of a line. Any other quote outside of such a field is a character, as in 2"-hydroxy: so
// pandas, Excel and R read it.
//
// The reader of encoding/csv would refuse the latter. With LazyQuotes, it would also take a quote that is never closed
// for closed at the end of the file, and so one row for all that follow.
type quotedRow struct {
	comma   string
	fields  []string
	places  []int // for each field, how many lines are before it
	isOpen  bool  // whether the last field goes on with the next line
	hasBare bool  // whether a field that no quote opens has quotes

	lines int // that have been added
	field strings.Builder
}

var errBehind = errors.New(
	`text stands behind the quote that closes a field: a quote within such a field is written twice, as in "2""-x"`)

// add adds the next line. After an error or a line at whose end no quote is open, there is no other.
func (q *quotedRow) add(text string) error {
	text = strings.TrimSuffix(text, "\r")
	for isLast := false; !isLast; {
		content, isQuoted := strings.CutPrefix(text, `"`)
		switch {
		case q.isOpen:
			content = text
		case isQuoted:
			q.isOpen = true
			q.places = append(q.places, q.lines)
		default:
			var field string
			var isMore bool
			field, text, isMore = strings.Cut(text, q.comma)
			q.hasBare = q.hasBare || strings.Contains(field, `"`)
			q.places = append(q.places, q.lines)
			q.fields = append(q.fields, field)
			isLast = !isMore
			continue
		}
		text = q.close(content)
		if q.isOpen {
			break
		}
		remainder, isMore := strings.CutPrefix(text, q.comma)
		if text != "" && !isMore {
			return errBehind
		}
		text = remainder
		isLast = !isMore
	}
	q.lines++
	return nil
}

// close adds to the open field what a line has of it, closes the field if its end is there, and returns the text
// behind it.
func (q *quotedRow) close(text string) (remainder string) {
	for {
		content, tail, isClosed := strings.Cut(text, `"`)
		q.field.WriteString(content)
		if !isClosed {
			q.field.WriteByte('\n')
			return ""
		}
		if !strings.HasPrefix(tail, `"`) {
			q.fields = append(q.fields, q.field.String())
			q.field.Reset()
			q.isOpen = false
			return tail
		}
		q.field.WriteByte('"')
		text = tail[1:]
	}
}
