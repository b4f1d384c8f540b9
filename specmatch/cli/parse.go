package cli

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Parser turns a flag's argument into a value. Its error says what is wanted;
// flag and value are named around it:
//
//	invalid value "120" for flag -p: want a number from 0 to 100
type Parser[T any] func(s string) (T, error)

// Text accepts any string except the empty one, which is most often a shell
// variable that was not set.
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
			return "", fmt.Errorf("want %s", or(choices))
		}
		return s, nil
	}
}

// or joins the choices: "a, b or c".
func or(choices []string) string {
	last := len(choices) - 1
	if last < 1 {
		return strings.Join(choices, "")
	}
	return strings.Join(choices[:last], ", ") + " or " + choices[last]
}

// List accepts a comma-separated list of at least one element, none of them
// twice.
func List[T comparable](element Parser[T]) Parser[[]T] {
	return func(s string) ([]T, error) {
		var list []T
		parts := strings.Split(s, ",")
		if strings.HasPrefix(s, `"`) || strings.Contains(s, `,"`) { // a comma within quotes is part of an item
			r := csv.NewReader(strings.NewReader(s))
			var err error
			if parts, err = r.Read(); err != nil {
				return nil, fmt.Errorf("%q: quotes as in a table: %w", s, err)
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

// Beta is the weight β of the Laplacian loss, L = L_C + β·L_G: either a number
// or a rule. The zero value is the weight 0.
type Beta struct {
	Weight float64 // β, where Ratio is 0
	Ratio  float64 // otherwise the wanted ‖β∇L_G‖ / ‖∇L_C‖: "auto:Ratio"
}

// ParseBeta accepts a number of at least 0, or "auto:" and a number above 0.
func ParseBeta(s string) (Beta, error) {
	if ratio, ok := strings.CutPrefix(s, "auto:"); ok {
		if r, err := Positive(ratio); err == nil {
			return Beta{Ratio: r}, nil
		}
	} else if w, err := Float(0, math.MaxFloat64)(s); err == nil {
		return Beta{Weight: w}, nil
	}
	return Beta{}, errors.New("want a number of at least 0, or auto:R with R above 0, as in 1 or auto:0.2")
}

// String is the inverse of [ParseBeta].
func (b Beta) String() string {
	if b.Ratio > 0 {
		return fmt.Sprintf("auto:%v", b.Ratio)
	}
	return fmt.Sprint(b.Weight)
}

// MarshalJSON encodes a weight as a number and a rule as a string.
func (b Beta) MarshalJSON() ([]byte, error) {
	if b.Ratio > 0 {
		return json.Marshal(b.String())
	}
	return json.Marshal(b.Weight)
}

// UnmarshalJSON is the inverse of [Beta.MarshalJSON].
func (b *Beta) UnmarshalJSON(data []byte) (err error) {
	*b, err = ParseBeta(strings.Trim(string(data), `"`))
	return err
}
