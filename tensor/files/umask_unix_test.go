//go:build unix

package files_test

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/specmatch/specmatch/tensor/files"
)

// TestUmask: files get the permissions that the umask leaves.
func TestUmask(t *testing.T) {
	path := filepath.Join(t.TempDir(), "model.safetensors")
	for mask, want := range map[int]fs.FileMode{0o077: 0o600, 0o027: 0o640, 0o022: 0o644, 0o002: 0o664} {
		before := syscall.Umask(mask)
		err := files.Write(path, func(io.Writer) error { return nil })
		syscall.Umask(before)
		if err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("umask %o: mode %v, want %v; %v", mask, info.Mode(), want, err)
		}
	}
}

// TestLeftovers: a write removes what dead processes have left of that file, and nothing else.
func TestLeftovers(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, name := range []string{".why.jsonl.1", ".why.jsonl.2", ".other.jsonl.3"} {
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	unlock, err := files.Lock(".why.jsonl.2") // as a process that still writes has it
	if err != nil || unlock == nil {
		t.Skip("no locks here: ", err)
	}
	defer unlock()
	if err := files.Write("why.jsonl", func(io.Writer) error { return nil }); err != nil {
		t.Fatal(err)
	}
	var left []string
	entries, err := os.ReadDir(".")
	for _, e := range entries {
		left = append(left, e.Name())
	}
	if err != nil || len(left) != 3 || left[0] != ".other.jsonl.3" || left[1] != ".why.jsonl.2" {
		t.Errorf("left: %q, %v", left, err)
	}
}
