//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package rundir_test

import (
	"strings"
	"testing"

	"github.com/specmatch/specmatch/experiments/internal/rundir"
)

// TestShared: while a run has its directory open, nobody else can open it; two runs
// in one directory would write every unit twice, and nothing could read it again.
func TestShared(t *testing.T) {
	o := options(t, t.TempDir())
	d := open(t, o)
	if _, err := rundir.Open(o); err == nil || !strings.Contains(err.Error(), o.Out+": another process") {
		t.Errorf("opened twice: %v", err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	open(t, o)

	// A run that is refused does not keep the directory.
	refused := options(t, t.TempDir())
	open(t, refused).Close()
	if _, err := rundir.Open(options(t, refused.Out, "-p", "50")); err == nil {
		t.Error("other flags were accepted")
	}
	open(t, refused)
}
