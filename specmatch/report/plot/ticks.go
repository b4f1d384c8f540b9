package plot

import (
	"math"
	"strconv"
	"strings"
)

const mostLabels = 7

type tick struct {
	value float64
	label string
}

// numbers returns the ticks of an axis, at most that many if it is linear.
func numbers(log bool, lo, hi float64, most int) []tick {
	if log {
		return logTicks(lo, hi)
	}
	return linearTicks(lo, hi, most)
}

// linearTicks labels at most that many multiples of 1, 2 or 5 times a power of ten.
func linearTicks(lo, hi float64, most int) (ticks []tick) {
	k := int(math.Floor(math.Log10((hi - lo) / float64(most))))
	i := 1             // the step is i·10^k
	const slack = 1e-9 // of a step: an end that is a multiple up to rounding counts
	ends := func() (first, last int) {
		return int(math.Ceil(lo/scale(i, k) - slack)), int(math.Floor(hi/scale(i, k) + slack))
	}
	first, last := ends()
	for ; last-first+1 > most; first, last = ends() {
		switch i {
		case 1:
			i = 2
		case 2:
			i = 5
		case 5:
			i = 1
			k++
		}
	}
	for n := first; n <= last; n++ {
		v := scale(i, k) * float64(n)
		ticks = append(ticks, tick{
			max(lo, min(hi, v)), linearLabel(v, k, max(math.Abs(lo), math.Abs(hi))),
		})
	}
	return ticks
}

// scale returns i·10^k. Division by a power of ten rounds once, where
// multiplication by 10^-1 would round twice.
func scale(i, k int) float64 {
	if k < 0 {
		return float64(i) / math.Pow10(-k)
	}
	return float64(i) * math.Pow10(k)
}

// linearLabel formats a multiple v of 10^k on an axis that reaches to size:
// plainly, or as in "2.5e−6" where zeros would be too many.
func linearLabel(v float64, k int, size float64) string {
	if v == 0 {
		return "0"
	}
	s := strconv.FormatFloat(v, 'f', max(0, -k), 64)
	if size >= 1e6 || size < 1e-3 {
		s = exponent(strconv.FormatFloat(v, 'e', max(0, int(math.Floor(math.Log10(math.Abs(v))))-k), 64))
	}
	return strings.ReplaceAll(s, "-", "−")
}

// exponent drops the sign and the zeros of an exponent as strconv writes it.
func exponent(s string) string {
	digits, exp, _ := strings.Cut(s, "e")
	n, _ := strconv.Atoi(exp)
	return digits + "e" + strconv.Itoa(n)
}

// logTicks is for an axis of decimal logarithms. It labels as many i·10^k as there is
// room for: whole decades if the axis has two of them, not all of a long one, else 1, 2
// and 5, else all.
func logTicks(lo, hi float64) []tick {
	first, last := int(math.Floor(lo)), int(math.Ceil(hi))
	every := 1 + (last-first-1)/7
	for _, labelled := range []func(i, k int) bool{
		func(i, k int) bool { return i == 1 && (k-first)%every == 0 },
		func(i, k int) bool { return i == 1 || i == 2 || i == 5 },
		func(i, k int) bool { return true },
	} {
		var ticks []tick
		for k := first; k <= last; k++ {
			for i := 1; i <= 9; i++ {
				v := float64(k) + math.Log10(float64(i))
				if labelled(i, k) && lo-1e-9 <= v && v <= hi+1e-9 {
					ticks = append(ticks, tick{v, logLabel(i, k)})
				}
			}
		}
		if len(ticks) >= 2 {
			return ticks
		}
	}
	// Fewer than two labels even so: the axis is nearly linear.
	ticks := linearTicks(math.Pow(10, lo), math.Pow(10, hi), mostLabels)
	for i := range ticks {
		ticks[i].value = math.Log10(ticks[i].value)
	}
	return ticks
}

// logLabel formats i·10^k: plainly near 1, else as in "2e−5".
func logLabel(i, k int) string {
	if -3 <= k && k <= 4 {
		return strconv.FormatFloat(scale(i, k), 'f', max(0, -k), 64)
	}
	return strings.ReplaceAll(strconv.Itoa(i)+"e"+strconv.Itoa(k), "-", "−")
}
