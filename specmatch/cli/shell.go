package cli

import (
	"path/filepath"
	"strings"
)

// plainCharacters need no quotes in a command.
const plainCharacters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=+.,:/@%" +
	string(filepath.Separator)

// ShellQuote returns the words as a shell reads them.
func ShellQuote(words ...string) string {
	var quoted []string
	for _, w := range words {
		if strings.Trim(w, plainCharacters) != "" || w == "" {
			w = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
		quoted = append(quoted, w)
	}
	return strings.Join(quoted, " ")
}
