package smarts

import "math"

// counted is a primitive that counts something. Without a number, value counts, or 1 and more where atLeast
// is set.
type counted struct {
	field   field
	value   int
	atLeast bool
}

var counts = map[byte]counted{
	'D': {degree, 1, false},
	'd': {heavyDegree, 1, false},
	'X': {neighbours, 1, false},
	'v': {valence, 1, false},
	'H': {hydrogens, 1, false},
	'h': {implicit, 1, true},
	'R': {rings, 1, true},
	'r': {smallest, 1, true},
	'x': {ringBonds, 1, true},
	'z': {hetero, 1, true},
	'Z': {aliphatic, 1, true},
}

// count reads the number or range of a primitive that counts.
func (r *reader) count(k counted) (test, error) {
	switch c := r.peek(); {
	case isDigit(c):
		n, err := r.number()
		return equal(k.field, n), err
	case c == '{':
		low, high, err := r.bounds()
		return test{
			op:    within,
			field: k.field,
			low:   low,
			high:  high,
		}, err
	case k.atLeast:
		return atLeast(k.field, k.value), nil
	}
	return equal(k.field, k.value), nil
}

// bounds reads a range: {2-3}, {-3} or {2-}.
func (r *reader) bounds() (low, high int16, err error) {
	start := r.pos
	r.pos++
	high = maxValue
	bounded := false
	if isDigit(r.peek()) {
		n, err := r.number()
		if err != nil {
			return 0, 0, err
		}
		low = int16(n)
		bounded = true
	}
	ok := r.take('-')
	if isDigit(r.peek()) {
		n, err := r.number()
		if err != nil {
			return 0, 0, err
		}
		high = int16(n)
		bounded = true
	}
	if !ok || !bounded || !r.take('}') {
		return 0, 0, r.fail(start, "a range is {n-m}, {n-} or {-m}")
	}
	return low, high, nil
}

// charge reads + or -, twice, with a number or with a range.
func (r *reader) charge() (test, error) {
	sign := r.peek()
	factor := 1
	if sign == '-' {
		factor = -1
	}
	r.pos++
	n := 1
	switch c := r.peek(); {
	case isDigit(c):
		var err error
		if n, err = r.number(); err != nil {
			return test{}, err
		}
	case c == '{':
		low, high, err := r.bounds()
		if factor < 0 {
			low, high = -high, -low
		}
		return test{
			op:    within,
			field: charge,
			low:   low,
			high:  high,
		}, err
	case c == sign:
		r.pos++
		n = 2
		if r.peek() == sign {
			return test{}, r.fail(r.pos, "charges beyond %c%c are written with a number", sign, sign)
		}
	}
	return equal(charge, factor*n), nil
}

// number reads a number that fits a field.
func (r *reader) number() (int, error) {
	start := r.pos
	n := 0
	for isDigit(r.peek()) {
		n = min(10*n+int(r.peek()-'0'), math.MaxInt32)
		r.pos++
	}
	switch {
	case r.pos == start:
		return 0, r.fail(start, "a number is missing")
	case n >= maxValue:
		return 0, r.fail(start, "the number is too large")
	}
	return n, nil
}
