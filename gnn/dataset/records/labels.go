package records

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/specmatch/specmatch/gnn/dataset/internal/textfile"
	"github.com/specmatch/specmatch/gnn/graph"
)

// labelList is the labels of the nodes or of the edges of a graph. The zero value is none.
type labelList struct {
	whole []int    // nil where there are none or texts
	texts []string // where one is a text, else nil
}

// errLabel is the error for a text that is no label.
var errLabel = errors.New("want a whole number or a text, the label")

func (l *labelList) empty() bool { return l.whole == nil && l.texts == nil }

func (l *labelList) len() int { return len(l.whole) + len(l.texts) }

// at returns a label as a text.
func (l *labelList) at(i int) string {
	if l.texts != nil {
		return l.texts[i]
	}
	return strconv.Itoa(l.whole[i])
}

// add appends a label: a whole number, which may be written as 4.0, or a text. It refuses empty texts and
// other numbers, which are measurements.
func (l *labelList) add(text string) error {
	text = strings.TrimSpace(text)
	v, err := parseWhole(text)
	_, notNumber := strconv.ParseFloat(text, 64)
	if err := textfile.CheckUTF8(text); err != nil {
		return err
	}
	switch {
	case err == nil && l.texts == nil:
		l.whole = append(l.whole, v)
	case text == "" || err != nil && notNumber == nil:
		return errLabel
	default:
		for i := range l.whole {
			l.texts = append(l.texts, strconv.Itoa(l.whole[i]))
		}
		l.whole = nil
		if err == nil {
			text = strconv.Itoa(v)
		}
		l.texts = append(l.texts, text)
	}
	return nil
}

// decode takes the labels from a list of whole numbers or texts, if there is one.
func (l *labelList) decode(list json.RawMessage) error {
	if len(list) == 0 || string(list) == "null" {
		return nil
	}
	if json.Unmarshal(list, &l.whole) == nil && !bytes.Contains(list, []byte("null")) {
		return nil
	}
	l.whole = nil
	var labels []json.RawMessage
	if json.Unmarshal(list, &labels) != nil {
		return errLabel
	}
	for _, label := range labels {
		text := string(label)
		switch {
		case label[0] == '"':
			json.Unmarshal(label, &text) // which is valid, as part of a valid list
		case !strings.ContainsAny(text[:1], "-0123456789"):
			return errLabel
		}
		if l.add(text) != nil {
			return errLabel
		}
	}
	return nil
}

// check returns an error unless there are n labels, or none, that fit in 32 bits. item is what has them.
func (l *labelList) check(n int, item string) error {
	if !l.empty() && l.len() != n {
		return fmt.Errorf("%d labels for %d %ss", l.len(), n, item)
	}
	for i, v := range l.whole {
		if v < math.MinInt32 || v > math.MaxInt32 {
			return fmt.Errorf("%s %d has the label %d, which does not fit in 32 bits", item, i, v)
		}
	}
	return nil
}

// in returns the values that stand for the labels. Where values have names, a number stands for its text;
// where they have none, a text must be a number.
func (l *labelList) in(values graph.LabelValues, item string) (labels []int, err error) {
	if l.texts == nil && values.Names == nil {
		return l.whole, nil
	}
	labels = make([]int, l.len())
	for i := range labels {
		text := l.at(i)
		if values.Names != nil {
			labels[i], err = values.Value(text)
		} else if labels[i], err = parseWhole(text); err != nil {
			err = fmt.Errorf("has the label %q, a text; the model has seen %v", text, values)
		}
		if err != nil {
			return nil, fmt.Errorf("%s %d: %w", item, i, err)
		}
	}
	return labels, nil
}

// valuesOf returns the values that the labels of several graphs need together, nil if there are none.
func valuesOf(lists []*labelList) (*graph.LabelValues, error) {
	l := &graph.LabelValues{}
	if slices.ContainsFunc(lists, func(l *labelList) bool { return l.texts != nil }) {
		has := map[string]bool{}
		for _, list := range lists {
			for i := range list.len() {
				has[list.at(i)] = true
			}
		}
		l.Names = slices.Sorted(maps.Keys(has))
		l.Width = len(has)
		return l, checkValues(l)
	}
	has := map[int]bool{}
	for _, list := range lists {
		for _, v := range list.whole {
			has[v] = true
		}
	}
	values := slices.Sorted(maps.Keys(has))
	if len(values) == 0 {
		return nil, nil
	}
	l.Min = values[0]
	l.Width = values[len(values)-1] - values[0] + 1
	if err := checkValues(l); err != nil {
		return nil, err
	}
	for k, v := range values[1:] {
		for u := values[k] + 1; u < v; u++ {
			l.Unseen = append(l.Unseen, u)
		}
	}
	return l, nil
}

// checkValues returns an error unless the values can be columns.
func checkValues(l *graph.LabelValues) error {
	columns := graph.Columns{Labels: []graph.LabelValues{*l}}
	if err := columns.Check(); err != nil {
		return trim(err)
	}
	return nil
}
