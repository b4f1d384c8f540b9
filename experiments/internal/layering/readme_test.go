package layering

import (
	"os"
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
