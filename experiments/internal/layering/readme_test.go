package layering

import (
	"os"
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

// TestReadingPath: the files of the README's reading path are as long as it says, and
// no more than an afternoon's.
func TestReadingPath(t *testing.T) {
	data, err := os.ReadFile("../../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, path, _ := strings.Cut(string(data), "| file | lines |")
	path, _, _ = strings.Cut(path, "\n\n")
	total, files := 0, 0
	for line := range strings.Lines(path) {
		cells := strings.Split(line, "|")
		if len(cells) < 4 || !strings.Contains(cells[1], "`") {
			continue
		}
		file := strings.Trim(cells[1], " `")
		text, err := os.ReadFile("../../../" + file)
		if err != nil {
			t.Fatal(err)
		}
		n := strings.Count(string(text), "\n")
		total, files = total+n, files+1
		if want, err := strconv.Atoi(strings.TrimSpace(cells[2])); err != nil || want != n {
			t.Errorf("%s has %d lines; the README says %s", file, n, cells[2])
		}
	}
	if files < 10 || total > 2500 {
		t.Errorf("%d files of %d lines; want no more than 2,500", files, total)
	}
}
