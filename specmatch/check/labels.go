package check

import (
	"cmp"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// gaps are the texts of a missing label of any kind, in lower case: those of pandas and R.
var gaps = []string{
	"", "nan", "-nan", "na", "n/a", "<na>", "#na", "#n/a", "#n/a n/a", "null", "none", "1.#ind",
	"-1.#ind", "1.#qnan", "-1.#qnan",
}

// numberGaps are further texts of a missing number; a class may have such a name.
var numberGaps = []string{"-", "--", "–", ".", "?", "n.d.", "n.d", "nd", "n.a.", "n.a", "missing"}

// sides are the signs of bounds, with the side of the bound on which the number lies.
var sides = map[string]int8{
	">": 1,
	"≥": 1,
	"<": -1,
	"≤": -1,
}

// partNames are the names of the parts in a column, in lower case.
var partNames = map[string]string{
	"train":      "train",
	"training":   "train",
	"valid":      "valid",
	"val":        "valid",
	"validation": "valid",
	"test":       "test",
	"testing":    "test",
}

var (
	bound        = regexp.MustCompile(`^([<>≤≥~≈])=?\s*([-+]?[0-9.].*)`)
	decimalComma = regexp.MustCompile(`^[-+]?[0-9]+,[0-9]+$`)
)

// IsGap reports whether a text is that of a missing label of any kind.
func IsGap(text string) bool { return slices.Contains(gaps, strings.ToLower(text)) }

// IsNumberGap reports whether a text is that of a missing label where labels are numbers.
func IsNumberGap(text string) bool {
	return IsGap(text) || slices.Contains(numberGaps, strings.ToLower(text))
}

// Bound reads a bound, such as >10: the side of y on which the number lies, +1 above and -1 below. ok is false if the
// text is none.
func Bound(text string) (side int8, y float64, ok bool) {
	m := bound.FindStringSubmatch(text)
	if m == nil {
		return 0, 0, false
	}
	side = sides[m[1]]
	y, ok = Number(m[2])
	return side, y, ok && side != 0
}

func isBound(text string) bool {
	_, _, ok := Bound(text)
	return ok
}

// IsAlmostBound reports whether a text starts with a sign and a digit: a bound or what may be meant as one, such as ~5
// or >10 uM.
func IsAlmostBound(text string) bool { return bound.MatchString(text) }

// Part returns the part of a text in a column of parts: train, valid or test. If it names none, ok is false, and part
// is the text without blanks around it.
func Part(text string) (part string, ok bool) {
	text = strings.TrimSpace(text)
	part, ok = partNames[strings.ToLower(text)]
	return cmp.Or(part, text), ok
}

// HasDecimalComma reports whether a text is a number but for its comma.
func HasDecimalComma(text string) bool { return decimalComma.MatchString(text) }

// Number reads a label as a number; ok is false if it is none, or missing.
func Number(text string) (y float64, ok bool) {
	y, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	return y, err == nil && !math.IsNaN(y) && !math.IsInf(y, 0)
}

// labelsOf returns the labels of a task that are not missing, and those that are numbers. Next to a number or a
// bound, texts such as n.d. are missing, too.
func labelsOf(rows [][]string, task int) (given []string, numbers []float64) {
	for _, row := range rows {
		text := strings.TrimSpace(row[task])
		if IsGap(text) {
			continue
		}
		given = append(given, text)
		if y, ok := Number(text); ok {
			numbers = append(numbers, y)
		}
	}
	if len(numbers) > 0 || slices.ContainsFunc(given, IsAlmostBound) {
		given = slices.DeleteFunc(given, IsNumberGap)
	}
	return given, numbers
}
