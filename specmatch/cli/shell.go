package cli

import (
	"path/filepath"
	"strings"
)

// plainCharacters need no quotes in a command.
const plainCharacters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=+.,:/@%"

// ShellQuote returns the words as a shell reads them.
func ShellQuote(words ...string) string {
	var quoted []string
	isSpecial := func(r rune) bool {
		return r != filepath.Separator && !strings.ContainsRune(plainCharacters, r)
	}
	for _, w := range words {
		if strings.ContainsFunc(w, isSpecial) || w == "" {
			w = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
		quoted = append(quoted, w)
	}
	return strings.Join(quoted, " ")
}
