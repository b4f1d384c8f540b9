//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package run_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/specmatch/specmatch/specmatch/run"
	"github.com/specmatch/specmatch/tensor/files"
)

// TestSweep: what a killed process left of files that it was writing goes with the
// next start, and nothing else, also if the start has a link to the directory.
func TestSweep(t *testing.T) {
	o := options(t, t.TempDir())
	d := open(t, o)
	path, err := d.Checkpoint("a/b")
	if err != nil {
		t.Fatal(err)
	}
	// The name is what files.Write uses, seen while it writes.
	names := func() []string {
		entries, err := os.ReadDir(filepath.Dir(path))
		if err != nil {
			t.Fatal(err)
		}
		var all []string
		for _, e := range entries {
			all = append(all, e.Name())
		}
		return all
	}
	var left []string
	if err := files.Write(path, func(io.Writer) error { left = append(left, names()...); return nil }); err != nil {
		t.Fatal(err)
	}
	for _, name := range left {
		if err := os.WriteFile(filepath.Join(filepath.Dir(path), name), []byte("half"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{".notes", ".a.safetensors", "b.safetensors.1"} {
		if err := os.WriteFile(filepath.Join(filepath.Dir(path), name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(names()); n != 5 {
		t.Fatalf("%d files, want the checkpoint, half of another and three more: %q", n, names())
	}
	// What a share is writing is not this run's.
	share := filepath.Join(d.Path, "shards", "0-of-2")
	writing := filepath.Join(share, "checkpoints", ".a.safetensors.1")
	if err := errors.Join(os.MkdirAll(filepath.Dir(writing), 0o755), os.WriteFile(filepath.Join(share, "config.json"), nil, 0o644), os.WriteFile(writing, nil, 0o644)); err != nil {
		t.Fatal(err)
	}
	d.Close()
	o.Out = filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(d.Path, o.Out); err != nil {
		t.Fatal(err)
	}
	open(t, o)
	if _, err := os.Stat(writing); err != nil {
		t.Error(err)
	}
	if got, want := fmt.Sprint(names()), "[.a.safetensors .notes a-b.safetensors b.safetensors.1]"; got != want {
		t.Errorf("left are %s, want %s", got, want)
	}
}

// TestShared: while a run has its directory open, nobody else can open it; two runs
// in one directory would write every unit twice, and nothing could read it again.
func TestShared(t *testing.T) {
	o := options(t, t.TempDir())
	d := open(t, o)
	if _, err := run.Open(o); err == nil || !strings.Contains(err.Error(), o.Out+": another process") {
		t.Errorf("opened twice: %v", err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	open(t, o)

	// A run that is refused does not keep the directory.
	refused := options(t, t.TempDir())
	open(t, refused).Close()
	if _, err := run.Open(options(t, refused.Out, "-p", "50")); err == nil {
		t.Error("other flags were accepted")
	}
	open(t, refused)
}
