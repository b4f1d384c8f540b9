package setting

import (
	"encoding/csv"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/specmatch/specmatch/gnn/dataset/suggest"
)

// Parser parses a flag's argument. Its error says what is wanted; the caller adds the flag and the
// value:
//
//	invalid value "120" for flag -p: want a number from 0 to 100
type Parser[T any] func(s string) (T, error)

// Text accepts any string except an empty one, which most often is an unset shell variable.
func Text(s string) (string, error) {
	if strings.TrimSpace(s) == "" {
		return "", errors.New("want a name, not an empty string")
	}
	return s, nil
}

// OneOf accepts one of the choices.
func OneOf(choices ...string) Parser[string] {
	return func(s string) (string, error) {
		if !slices.Contains(choices, s) {
			return "", fmt.Errorf("want %s%s", or(choices), suggest.DidYouMean(s, choices))
		}
		return s, nil
	}
}

// or joins the choices, as in "a, b or c".
func or(choices []string) string {
	end := len(choices) - 1
	if end < 1 {
		return strings.Join(choices, "")
	}
	return strings.Join(choices[:end], ", ") + " or " + choices[end]
}

// List accepts a comma-separated list of one or more different elements.
func List[T comparable](element Parser[T]) Parser[[]T] {
	return func(s string) ([]T, error) {
		var list []T
		parts := strings.Split(s, ",")
		// A comma within quotes is part of an element.
		if strings.HasPrefix(s, `"`) || strings.Contains(s, `,"`) {
			r := csv.NewReader(strings.NewReader(s))
			var err error
			parts, err = r.Read()
			if err != nil {
				return nil, fmt.Errorf("%q: want quotes as in CSV: %w", s, err)
			}
		}
		for _, part := range parts {
			x, err := element(strings.TrimSpace(part))
			if err != nil {
				return nil, fmt.Errorf("%q: %w", part, err)
			}
			if slices.Contains(list, x) {
				return nil, fmt.Errorf("%q is listed twice", part)
			}
			list = append(list, x)
		}
		return list, nil
	}
}

// JoinList returns a text that [List] reads as these elements. Those with a comma or a quote are quoted as in CSV.
func JoinList(elements []string) string {
	var b strings.Builder
	w := csv.NewWriter(&b)
	w.Write(elements) // to memory: this cannot fail
	w.Flush()
	return strings.TrimSuffix(b.String(), "\n")
}

// Int accepts a whole number of at least lo.
func Int(lo int) Parser[int] {
	return func(s string) (int, error) {
		n, err := strconv.Atoi(s)
		if err != nil || n < lo {
			return 0, fmt.Errorf("want a whole number of at least %d", lo)
		}
		return n, nil
	}
}

// IntIn accepts a whole number in [lo, hi].
func IntIn(lo, hi int) Parser[int] {
	return func(s string) (int, error) {
		n, err := strconv.Atoi(s)
		if err != nil || n < lo || n > hi {
			return 0, fmt.Errorf("want a whole number from %d to %d", lo, hi)
		}
		return n, nil
	}
}

// Float accepts a number in [lo, hi].
func Float(lo, hi float64) Parser[float64] {
	return func(s string) (float64, error) {
		x, err := strconv.ParseFloat(s, 64)
		if err != nil || !(lo <= x && x <= hi) { // NaN is in no range
			return 0, fmt.Errorf("want a number from %v to %v", lo, hi)
		}
		return x, nil
	}
}

// Positive accepts a finite number above 0.
func Positive(s string) (float64, error) {
	x, err := strconv.ParseFloat(s, 64)
	if err != nil || !(0 < x && x <= math.MaxFloat64) {
		return 0, errors.New("want a number above 0")
	}
	return x, nil
}

// Bool accepts true and false.
func Bool(s string) (bool, error) {
	value, err := strconv.ParseBool(s)
	if err != nil {
		return false, errors.New("want true or false")
	}
	return value, nil
}
