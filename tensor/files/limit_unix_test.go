//go:build unix

package files_test

import (
	"errors"
	"io"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/specmatch/specmatch/tensor/files"
)

// TestNoDescriptors: without a file descriptor for the lock, the error is that, and no temporary file stays.
func TestNoDescriptors(t *testing.T) {
	t.Chdir(t.TempDir())
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Skip(err)
	}
	low := limit
	low.Cur = min(limit.Cur, 64)
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &low); err != nil {
		t.Skip(err)
	}
	defer unix.Setrlimit(unix.RLIMIT_NOFILE, &limit)
	var held []*os.File
	defer func() {
		for _, f := range held {
			f.Close()
		}
	}()
	for {
		f, err := os.Open(os.DevNull)
		if err != nil {
			break
		}
		held = append(held, f)
	}
	free := held[len(held)-1]
	held = held[:len(held)-1]
	free.Close()
	err := files.Write("a.csv", func(io.Writer) error { return nil })
	if !errors.Is(err, unix.EMFILE) {
		t.Errorf("%v, want %v", err, unix.EMFILE)
	}
	entries, errDir := os.ReadDir(".")
	if errDir != nil || len(entries) > 0 {
		t.Errorf("left %d files, %v", len(entries), errDir)
	}
}
