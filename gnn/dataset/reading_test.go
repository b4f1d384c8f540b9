package dataset

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// stopping cancels while its file is read, and counts what is read afterwards.
type stopping struct {
	fs.FS
	file   string
	cancel context.CancelFunc
	after  int
}

func (s *stopping) Open(name string) (fs.File, error) {
	f, err := s.FS.Open(name)
	if err != nil || name != s.file {
		return f, err
	}
	return &stoppingFile{f, s, false}, nil
}

type stoppingFile struct {
	fs.File
	s       *stopping
	stopped bool
}

func (f *stoppingFile) Read(p []byte) (int, error) {
	n, err := f.File.Read(p)
	if f.stopped {
		f.s.after += n
	}
	f.s.cancel()
	f.stopped = true
	return n, err
}

// A cancelled context ends the reading of whatever file within a buffer's length.
func TestCancelledReading(t *testing.T) {
	large := files{
		"A":               strings.Repeat("1, 2\n2, 1\n", 1<<17),
		"graph_indicator": strings.Repeat("1\n", 1<<18),
		"graph_labels":    "1\n",
		"node_labels":     strings.Repeat("7\n", 1<<18),
		"node_attributes": strings.Repeat("0.5, 2\n", 1<<18),
		"edge_labels":     strings.Repeat("3\n", 1<<18),
	}
	for part := range large {
		ctx, cancel := context.WithCancel(t.Context())
		f := &stopping{FS: large.fsys("S"), file: "S_" + part + ".txt", cancel: cancel}
		if _, err := LoadFS(ctx, f, "S", Options{NodeAttributes: true}); !errors.Is(err, context.Canceled) || f.after > 0 {
			t.Errorf("%s: %v after %d bytes more", part, err, f.after)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	dir := t.TempDir()
	path := large.archive(t, dir, "S")
	for name, read := range map[string]func() error{
		"Open":         func() error { _, err := Open(ctx, dir, "S", Options{}); return err },
		"CheckArchive": func() error { return CheckArchive(ctx, path, "S") },
		"SumFile":      func() error { _, err := SumFile(ctx, path); return err },
	} {
		if err := read(); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The largest sets stop within a second, wherever they are cancelled.
func TestCancelledRealReading(t *testing.T) {
	if testing.Short() {
		t.Skip("reads large sets; left out with -short")
	}
	for _, name := range []string{"COLLAB", "REDDIT-MULTI-5K"} {
		if _, err := os.Stat(filepath.Join(shared, "tu", name+".zip")); err != nil {
			t.Skipf("no %s in %s", name, shared)
		}
		var worst time.Duration
		for after := 100 * time.Millisecond; after < time.Second; after += 600 * time.Millisecond {
			ctx, cancel := context.WithTimeout(t.Context(), after)
			start := time.Now()
			_, err := Open(ctx, filepath.Join(shared, "tu"), name, Options{})
			cancel()
			if err == nil {
				break // it was read in less
			}
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s after %v: %v", name, after, err)
			}
			worst = max(worst, time.Since(start)-after)
		}
		if t.Logf("%s: at most %v late", name, worst); worst > time.Second {
			t.Errorf("%s: %v late", name, worst)
		}
	}
}

// TestSums: every file that was read is noted by its contents, from an archive as
// from a folder, and no other.
func TestSums(t *testing.T) {
	dir := t.TempDir()
	with := small.with("node_attributes", strings.Repeat("1\n", 7))
	for _, path := range []string{with.archive(t, dir, "S"), with.folder(t, dir, "S")} {
		sums := map[string]string{}
		note := func(file, sum string) { sums[file] = sum }
		ds, err := LoadTU(t.Context(), path, Options{Sum: note})
		if err != nil {
			t.Fatal(err)
		}
		for part, text := range with {
			want := fmt.Sprintf("%x", sha256.Sum256([]byte(text)))
			if part == "node_attributes" {
				want = "" // it was not asked for
			}
			if got := sums["S_"+part+".txt"]; got != want {
				t.Errorf("%s: %s has the sum %q, want %q", path, part, got, want)
			}
		}
		if !ds.AttributesLeftOut {
			t.Errorf("%s: attributes are left out and nothing says so", path)
		}
		if ds, err = LoadTU(t.Context(), path, Options{NodeAttributes: true, Sum: note}); err != nil || ds.AttributesLeftOut || sums["S_node_attributes.txt"] == "" {
			t.Errorf("%s with attributes: %v, %v", path, ds, err)
		}
	}
}

// A file that is missing is named, and not by a system call.
func TestMissingFile(t *testing.T) {
	dir := t.TempDir()
	path := small.without("A").folder(t, dir, "NO")
	_, err := LoadTU(t.Context(), path, Options{})
	if want := fmt.Sprintf("dataset: %s: no file NO_A.txt: %v", path, fs.ErrNotExist); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	_, err = LoadFS(t.Context(), broken{small.fsys("S")}, "S", Options{})
	if err == nil || strings.Contains(err.Error(), "statx") || !strings.Contains(err.Error(), "S_graph_labels.txt: permission denied") {
		t.Errorf("got %v", err)
	}
}

// broken is a file system that has all files and gives none.
type broken struct{ fs.FS }

func (broken) Stat(name string) (fs.FileInfo, error) {
	return nil, &fs.PathError{Op: "statx", Path: name, Err: fs.ErrPermission}
}
