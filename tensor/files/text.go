package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Printable returns a text as it may leave for a file or a terminal: bytes that are not
// UTF-8 are U+FFFD, and control characters are escaped as Go does, such as \x1b and \n.
func Printable(text string) string {
	hidden := func(r rune) bool {
		return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' || bidi(r)
	}
	if utf8.ValidString(text) && strings.IndexFunc(text, hidden) < 0 {
		return text
	}
	var b strings.Builder
	for _, r := range text { // U+FFFD for what is not UTF-8
		if hidden(r) {
			quoted := strconv.QuoteRuneToASCII(r)
			b.WriteString(quoted[1 : len(quoted)-1])
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// bidi reports whether a character turns round the order in which others are shown.
func bidi(r rune) bool { return r >= '\u202a' && r <= '\u202e' || r >= '\u2066' && r <= '\u2069' }

// PrintableLines is [Printable] but for the ends of lines.
func PrintableLines(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = Printable(line)
	}
	return strings.Join(lines, "\n")
}

// Distinct returns the names of the columns of a table as they are written: printable (see
// [Printable]), and with _2, _3 and so on behind one that is there already.
func Distinct(first string, others ...string) []string {
	names := []string{Printable(first)}
	wanted := map[string]bool{}
	taken := map[string]bool{names[0]: true}
	for _, name := range others {
		wanted[Printable(name)] = true
	}
	next := map[string]int{}
	for _, name := range others {
		name = Printable(name)
		unique := name
		for n := max(2, next[name]); taken[unique] || unique != name && wanted[unique]; n++ {
			unique = fmt.Sprintf("%s_%d", name, n)
			next[name] = n + 1
		}
		taken[unique] = true
		names = append(names, unique)
	}
	return names
}

// Apart returns an error if one of the files that are to be written is a folder, or is one
// of those that are read. Of a folder that is read all files count; "-" is the standard
// input. Files that do not exist are no one's.
func Apart(written, read []string) error {
	type file struct {
		name string
		info os.FileInfo
	}
	var all []file
	for _, name := range read {
		if name == "-" {
			if info, err := os.Stdin.Stat(); err == nil && info.Mode().IsRegular() {
				all = append(all, file{"the standard input", info})
			}
			continue
		}
		info, err := os.Stat(name)
		if err != nil {
			continue // whoever reads it says so
		}
		all = append(all, file{name, info})
		if !info.IsDir() {
			continue
		}
		filepath.WalkDir(name, func(path string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				if info, err := os.Stat(path); err == nil {
					all = append(all, file{path, info})
				}
			}
			return nil // what cannot be listed cannot be read
		})
	}
	for _, name := range written {
		info, err := os.Stat(name)
		if err != nil {
			continue
		}
		if info.IsDir() {
			return fmt.Errorf("%s is to be written, and is a folder", name)
		}
		for _, f := range all {
			if os.SameFile(info, f.info) {
				return fmt.Errorf("%s is to be written, and is %s, which is read", name, f.name)
			}
		}
	}
	return nil
}

// Unfinished returns the name that the temporary file of that name, of a call of [Write],
// was to get; "" for other files.
func Unfinished(name string) string {
	end := strings.LastIndexByte(name, '.')
	if _, err := strconv.ParseUint(name[end+1:], 10, 32); err != nil || end < 1 || name[0] != '.' {
		return ""
	}
	return name[1:end]
}

// Sweep removes what calls of [Write] to a path have left that were killed. Nothing else
// may be writing it.
func Sweep(path string) error {
	dir, base := filepath.Split(path)
	entries, err := os.ReadDir(filepath.Clean(dir))
	if err != nil {
		return err
	}
	for _, e := range entries {
		if Unfinished(e.Name()) == base && e.Type().IsRegular() {
			if err := os.Remove(filepath.Join(dir, e.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	return nil
}
