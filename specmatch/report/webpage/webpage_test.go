package webpage_test

import (
	"strings"
	"testing"

	"github.com/specmatch/specmatch/specmatch/report/webpage"
)

// TestSource: outside of the module, and without the go command, the error says what to do.
func TestSource(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv("GOFLAGS", "")
	if _, err := webpage.Source(t.Context()); err == nil || !strings.Contains(err.Error(), "change to a folder of a clone of it") {
		t.Error(err)
	}
	t.Setenv("PATH", "")
	if _, err := webpage.Source(t.Context()); err == nil || !strings.Contains(err.Error(), "install Go") {
		t.Error(err)
	}
}
