// Package suggest finds what a mistyped name may have meant, for messages that say what to type.
package suggest

import (
	"fmt"
	"strings"
	"unicode"
)

// DidYouMean returns a phrase for the end of a message about an unknown name, such as
//
//	; did you mean "smiles"?
//
// It names the known name that is nearest, and is empty if none is near. For one with a comma, it says how
// that is written in a list.
func DidYouMean(name string, known []string) string {
	best, ok := Nearest(name, known)
	switch {
	case !ok:
		return ""
	case strings.Contains(best, ","):
		return fmt.Sprintf("; did you mean %q? In a list, write it as %s", best, listed(best))
	}
	return fmt.Sprintf("; did you mean %q?", best)
}

// listed returns what is typed in a shell for a name with a comma in a list: quoted as in CSV, and this for the shell.
func listed(name string) string {
	element := `"` + strings.ReplaceAll(name, `"`, `""`) + `"`
	return "'" + strings.ReplaceAll(element, "'", `'\''`) + "'"
}

// Nearest returns the known name that a mistyped one is nearest to: one that differs in case,
// blanks or punctuation, that begins with it or that it begins with (three letters at least), or
// that a few edits make of it, one for every three letters, or one with commas, between two of which it stands. Of
// equally near names it returns the first. ok is false if none is near.
func Nearest(name string, known []string) (best string, ok bool) {
	word := plain(name)
	if word == "" {
		return "", false
	}
	least := 1 + max(1, len([]rune(word))/3) // more edits are too many
	for _, candidate := range known {
		other := plain(candidate)
		if other == "" {
			continue
		}
		d := edits(word, other)
		switch {
		case isPart(name, candidate):
			d = min(d, 1)
		case len(word) >= 3 && strings.HasPrefix(other, word):
			d = min(d, 1)
		case len(other) >= 3 && strings.HasPrefix(word, other):
			d = min(d, 2)
		}
		if d < least {
			best, ok = candidate, true
			least = d
		}
	}
	return best, ok
}

// isPart reports whether a name is what stands between two commas of a name, which a list has taken apart.
func isPart(name, whole string) bool {
	name = strings.TrimSpace(name)
	for part := range strings.SplitSeq(whole, ",") {
		if part != whole && strings.TrimSpace(part) == name {
			return true
		}
	}
	return false
}

// plain returns the letters and digits of a name, in lower case.
func plain(name string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, name)
}

// edits returns how many insertions, deletions, substitutions and exchanges of neighbours make one
// word of the other (the distance of Damerau and Levenshtein, with each letter edited once).
func edits(a, b string) int {
	x, y := []rune(a), []rune(b)
	rows := [3][]int{} // of the distances of prefixes: the row before the last, the last, this one
	for i := range rows {
		rows[i] = make([]int, len(y)+1)
	}
	for j := range rows[2] {
		rows[2][j] = j
	}
	for i := 1; i <= len(x); i++ {
		rows[0], rows[1], rows[2] = rows[1], rows[2], rows[0]
		rows[2][0] = i
		for j := 1; j <= len(y); j++ {
			cost := 1
			if x[i-1] == y[j-1] {
				cost = 0
			}
			d := min(rows[1][j]+1, rows[2][j-1]+1, rows[1][j-1]+cost)
			if i > 1 && j > 1 && x[i-1] == y[j-2] && x[i-2] == y[j-1] {
				d = min(d, rows[0][j-2]+1)
			}
			rows[2][j] = d
		}
	}
	return rows[2][len(y)]
}
