package files_test

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"os"
	"path/filepath"
	"testing"

	"github.com/specmatch/specmatch/tensor/files"
)

func TestWrite(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for _, path := range []string{"plot.svg", filepath.Join(dir, "plot.svg")} { // relative, absolute
		if err := files.Write(path, func(w io.Writer) error { _, err := io.WriteString(w, path); return err }); err != nil {
			t.Fatal(err)
		}
	}
	failed := errors.New("no")
	if err := files.Write("plot.svg", func(w io.Writer) error { io.WriteString(w, "half"); return failed }); !errors.Is(err, failed) {
		t.Errorf("got %v", err)
	}
	if data, err := os.ReadFile("plot.svg"); string(data) != filepath.Join(dir, "plot.svg") {
		t.Errorf("a failed write changed the file: %q, %v", data, err)
	}
	if info, err := os.Stat("plot.svg"); err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if files, err := os.ReadDir("."); len(files) != 1 {
		t.Errorf("temporary files stay: %v, %v", files, err)
	}
	if err := files.Write("no/such/dir", func(io.Writer) error { return nil }); err == nil {
		t.Error("wrote to a directory that does not exist")
	}
}

func ExampleWrite() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "table.csv")
	release, err := files.LockFile(path) // another process that writes it gets an error
	if err != nil {
		log.Fatal(err)
	}
	defer release()
	err = files.Write(path, func(w io.Writer) error {
		fmt.Fprintln(w, "name,y")
		return errors.New("the second row is wrong")
	})
	_, missing := os.Stat(path)
	fmt.Println(err, errors.Is(missing, fs.ErrNotExist))
	// Output: the second row is wrong true
}
