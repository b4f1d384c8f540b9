package layering

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestREADME: the Go of the README is that of tested examples, line by line.
func TestREADME(t *testing.T) {
	const root = "../../../"
	tested := map[string]bool{}
	for _, file := range []string{"autodiff/example_test.go", "specmatch/method/example_test.go"} {
		data, err := os.ReadFile(root + file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(data)) {
			tested[strings.TrimSpace(line)] = true
		}
	}
	data, err := os.ReadFile(root + "README.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(string(data), "```go\n")[1:]
	if len(blocks) != 2 {
		t.Errorf("%d blocks of Go, want 2", len(blocks))
	}
	for _, b := range blocks {
		code, _, _ := strings.Cut(b, "```")
		lines := strings.Split(strings.TrimSpace(code), "\n")
		if len(lines) > 13 {
			t.Errorf("%d lines of Go in a block; the reader was promised a dozen", len(lines))
		}
		for _, line := range lines {
			if !tested[strings.TrimSpace(line)] {
				t.Errorf("no example has the line %q", line)
			}
		}
	}
}

// The reading path takes an afternoon: it is no longer than this, and leans on no more names
// that it does not explain.
const (
	mostLines = 2300
	mostNames = 40
)

// TestReadingPath: the files of the README's reading path are as long as it says, none uses
// a later one, and together they keep within the limits. A name counts once, if a listed file uses it
// and none declares it or one like it.
func TestReadingPath(t *testing.T) {
	const root = "../../../"
	data, err := os.ReadFile(root + "README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, path, _ := strings.Cut(string(data), "| file | lines |")
	path, _, _ = strings.Cut(path, "\n\n")
	total := 0
	var files []string
	for line := range strings.Lines(path) {
		cells := strings.Split(line, "|")
		if len(cells) < 4 || !strings.Contains(cells[1], "`") {
			continue
		}
		file := strings.Trim(cells[1], " `")
		text, err := os.ReadFile(root + file)
		if err != nil {
			t.Fatal(err)
		}
		n := strings.Count(string(text), "\n")
		total += n
		files = append(files, file)
		if want, err := strconv.Atoi(strings.TrimSpace(cells[2])); err != nil || want != n {
			t.Errorf("%s has %d lines; the table of README.md says %s", file, n, cells[2])
		}
	}
	if len(files) < 10 || total > mostLines {
		t.Errorf("%d files of %d lines; want no more than %d lines", len(files), total, mostLines)
	}
	uses, declared := usesOf(t, root, files)
	var names []string
	for _, u := range uses {
		if later := slices.Index(files, u.declarer); later > slices.Index(files, u.user) {
			t.Errorf("%s uses %s of %s, which comes later", u.user, u.name, u.declarer)
		}
		if !declared[u.name] && !slices.Contains(names, u.name) {
			names = append(names, u.name)
		}
	}
	slices.Sort(names)
	if len(names) > mostNames {
		t.Errorf("%d names of files that are not listed; want no more than %d: %v", len(names), mostNames, names)
	}
	t.Logf("%d lines, %d names: %v", total, len(names), names)
}
