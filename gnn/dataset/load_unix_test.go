//go:build unix

package dataset

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// Opening a named pipe blocks until somebody writes to it; so nobody may open
// one.
func TestLoadNamedPipe(t *testing.T) {
	dir := t.TempDir()
	folder, archive := small.without("A").folder(t, dir, "P"), filepath.Join(dir, "pipe.zip")
	for _, path := range []string{filepath.Join(folder, "P_A.txt"), archive} {
		if err := syscall.Mkfifo(path, 0o666); err != nil {
			t.Skip(err)
		}
	}
	for path, want := range map[string]string{folder: "P_A.txt: is not a regular file", archive: "is neither a file nor a folder"} {
		if _, err := LoadTU(t.Context(), path, Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("LoadTU(%s): %v; want an error with %q", path, err, want)
		}
	}
	if err := CheckArchive(t.Context(), archive, "pipe"); err == nil || !strings.Contains(err.Error(), "is not a regular file") {
		t.Errorf("CheckArchive: %v", err)
	}
}
