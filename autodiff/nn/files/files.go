// Package files writes files that appear whole or not at all, and keeps two processes
// from writing the same one.
package files

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Write writes a file that appears whole or not at all: it is written to a temporary
// file in the same folder, .NAME.NUMBER, flushed to the disk, and renamed.
func Write(path string, write func(w io.Writer) error) (err error) {
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			f.Close() // a second Close does no harm
			os.Remove(f.Name())
		}
	}()
	if err := write(f); err != nil {
		return err
	}
	if err := cmp.Or(f.Chmod(0o644), f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	// The rename itself is on the disk when the directory is. Not every
	// system can flush one, and the file is whole in any case.
	if d, err := os.Open(dir); err == nil {
		d.Sync()
		d.Close()
	}
	return nil
}

// WriteJSON writes a value as indented JSON, as [Write] does.
func WriteJSON(path string, v any) error {
	return Write(path, func(w io.Writer) error {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(v)
	})
}

// ErrLocked says that another process has a lock.
var ErrLocked = errors.New("another process runs in this directory")

// LockEnding is the ending of the files of [LockFile].
const LockEnding = ".lock"

// LockFile keeps other processes from writing a file, by a lock on PATH.lock, which
// release removes. Where the system has no locks it does nothing.
func LockFile(path string) (release func(), err error) {
	name := path + LockEnding
	f, err := os.OpenFile(name, os.O_CREATE|os.O_RDONLY, 0o644)
	if err != nil {
		return nil, err
	}
	f.Close()
	locked, err := Lock(name)
	if err == nil && locked != nil {
		// Another process may have removed the file since it was opened.
		a, errA := locked.Stat()
		b, errB := os.Stat(name)
		if errA != nil || errB != nil || !os.SameFile(a, b) {
			locked.Close()
			err = ErrLocked
		}
	}
	if errors.Is(err, ErrLocked) {
		return nil, fmt.Errorf("%s: another process is writing it", path)
	}
	if err != nil {
		return nil, err
	}
	return func() {
		os.Remove(name) // before others can lock it
		if locked != nil {
			locked.Close()
		}
	}, nil
}
