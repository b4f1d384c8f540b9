//go:build darwin || linux

package main

import (
	"strings"
	"syscall"
	"testing"
)

// TestFull: a disk without room is one line that names the file, and with room again
// the same command ends with what it would have written. The limit of this process on
// the size of a file stands for the end of the disk.
func TestFull(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "m.csv", moleculeTable(2*batchRecords))
	const line = "embed -in m.csv -id name -out "
	must(t, line+"whole.npy")
	var was syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &was); err != nil {
		t.Skip(err)
	}
	limit := was
	limit.Cur = batchRecords*4*128 + 1000 // room for a batch
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		t.Skip(err)
	}
	_, _, err := invoke(t.Context(), line+"v.npy")
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &was); err != nil {
		t.Fatal(err)
	}
	if err == nil || !strings.Contains(err.Error(), "v.npy.partial: file too large") || strings.Contains(err.Error(), "\n") {
		t.Errorf("without room: %v", err)
	}
	must(t, line+"v.npy")
	if read(t, "v.npy") != read(t, "whole.npy") || read(t, "v.npy.ids.csv") != read(t, "whole.npy.ids.csv") {
		t.Error("what went on afterwards has ended otherwise")
	}
}
