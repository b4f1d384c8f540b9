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

// Printable returns a text that is safe on a terminal, and has one line: bytes that are not
// UTF-8 become U+FFFD, and control characters are escaped as in Go, such as \x1b and \n.
func Printable(text string) string { return escape(text, isControl) }

// Data is [Printable] for the cells of a table in a file: it keeps tabs and line feeds, so that the cells of
// another table, such as names, stay as they are. A carriage return is escaped, since readers of CSV drop it before
// a line feed, so that two cells would become one.
func Data(text string) string {
	return escape(text, func(r rune) bool {
		return isControl(r) && r != '\t' && r != '\n'
	})
}

// Cells appends the [Data] of the cells of a row to dst.
func Cells(dst, row []string) []string {
	for _, cell := range row {
		dst = append(dst, Data(cell))
	}
	return dst
}

// isControl reports whether a character does not stand for itself on a terminal.
func isControl(r rune) bool {
	return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' || bidi(r)
}

// escape replaces bytes that are not UTF-8, and escapes the hidden characters.
func escape(text string, hidden func(rune) bool) string {
	if utf8.ValidString(text) && strings.IndexFunc(text, hidden) < 0 {
		return text
	}
	var b strings.Builder
	for _, r := range text { // range yields U+FFFD for bytes that are not UTF-8
		if hidden(r) {
			quoted := strconv.QuoteRuneToASCII(r)
			b.WriteString(quoted[1 : len(quoted)-1])
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// bidi reports whether a character changes the direction of the text around it.
func bidi(r rune) bool {
	return r >= '\u202a' && r <= '\u202e' || r >= '\u2066' && r <= '\u2069'
}

// PrintableLines is [Printable] that keeps line breaks.
func PrintableLines(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = Printable(line)
	}
	return strings.Join(lines, "\n")
}

// Distinct returns the printable names of the columns of a table. A name that occurred
// before gets the suffix _2, _3 and so on.
func Distinct(first string, names ...string) []string {
	columns := []string{Printable(first)}
	taken := map[string]bool{columns[0]: true}
	wanted := map[string]bool{}
	for _, name := range names {
		wanted[Printable(name)] = true
	}
	next := map[string]int{} // the next suffix of a name
	for _, name := range names {
		name = Printable(name)
		unique := name
		for n := max(2, next[name]); taken[unique] || unique != name && wanted[unique]; n++ {
			unique = fmt.Sprintf("%s_%d", name, n)
			next[name] = n + 1
		}
		taken[unique] = true
		columns = append(columns, unique)
	}
	return columns
}

// Pattern returns a pattern for [filepath.Glob] that matches a path alone, whatever signs of patterns its names have.
func Pattern(path string) string {
	if filepath.Separator == '/' {
		path = strings.ReplaceAll(path, `\`, `\\`)
	}
	// Classes and not backslashes, which separate names on Windows.
	return strings.NewReplacer("*", "[*]", "?", "[?]", "[", "[[]").Replace(path)
}

// Apart returns an error if a file to write is a folder, a link or a device, is also read, or
// is to be written twice. A folder that is read stands for all its files; "-" is the standard
// input. Files to read that do not exist are ignored.
func Apart(written, read []string) error {
	inputs := inputsOf(read)
	for i, name := range written {
		for _, other := range written[:i] {
			if filepath.Clean(name) == filepath.Clean(other) {
				return fmt.Errorf("cannot write %s: another output has that name", name)
			}
		}
		info, err := os.Lstat(name)
		if err != nil {
			continue
		}
		target, err := os.Stat(name)
		if err == nil && target.IsDir() {
			return fmt.Errorf("cannot write %s: it is a folder", name)
		}
		for _, f := range inputs {
			if err == nil && os.SameFile(target, f.info) {
				return fmt.Errorf("cannot write %s: it is the input %s", name, f.name)
			}
		}
		if info.Mode()&fs.ModeSymlink != 0 {
			return fmt.Errorf("cannot write %s: it is a link, which would be replaced; name its target",
				name)
		}
		if !info.Mode().IsRegular() {
			return fmt.Errorf("cannot write %s: it is a device or the like, not a regular file; - is "+
				"standard output",
				name)
		}
	}
	return nil
}

// input is a file that is read, under a name for messages.
type input struct {
	name string
	info os.FileInfo
}

// inputsOf returns the files that the names stand for, without those that do not exist.
func inputsOf(read []string) (inputs []input) {
	for _, name := range read {
		if name == "-" {
			if info, err := os.Stdin.Stat(); err == nil && info.Mode().IsRegular() {
				inputs = append(inputs, input{"the standard input", info})
			}
			continue
		}
		info, err := os.Stat(name)
		if err != nil {
			continue // its reader will report that
		}
		inputs = append(inputs, input{name, info})
		folder, err := filepath.EvalSymlinks(name) // since WalkDir does not follow a link
		if err != nil || !info.IsDir() {
			continue
		}
		filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				if info, err := os.Stat(path); err == nil {
					inputs = append(inputs, input{path, info})
				}
			}
			return nil // a folder that cannot be listed cannot be read, either
		})
	}
	return inputs
}

// Unfinished returns the final name of a temporary file of [Write]; "" for other files.
func Unfinished(name string) string {
	end := strings.LastIndexByte(name, '.')
	if _, err := strconv.ParseUint(name[end+1:], 10, 32); err != nil || end < 1 || name[0] != '.' {
		return ""
	}
	return name[1:end]
}

// Sweep removes the temporary files that killed calls of [Write] to a path have left. No
// other process may be writing the path.
func Sweep(path string) error {
	return eachTemp(path, func(name string) error {
		if err := os.Remove(name); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	})
}

// eachTemp calls visit with the paths of the temporary files of a path, until an error.
func eachTemp(path string, visit func(name string) error) error {
	dir, base := filepath.Split(path)
	entries, err := os.ReadDir(filepath.Clean(dir))
	if err != nil {
		return err
	}
	for _, e := range entries {
		if Unfinished(e.Name()) == base && e.Type().IsRegular() {
			if err := visit(filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}
