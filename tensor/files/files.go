// Package files writes files atomically ([Write]), keeps two processes from writing the same
// file ([Lock], [LockFile]) and a command from overwriting its inputs ([Apart]), and makes
// text of unknown origin safe to print ([Printable]).
package files

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"

	"github.com/gofrs/flock"
)

// Write writes a file that appears complete or not at all. It writes a temporary file in
// the same folder, .NAME.NUMBER, flushes it to disk, and renames it. It also removes the
// temporary files of that name that killed processes have left.
func Write(path string, write func(w io.Writer) error) (err error) {
	dir := filepath.Dir(path)
	removeDead(path)
	f, unlock, err := createTemp(filepath.Join(dir, "."+filepath.Base(path)))
	if err != nil {
		return err
	}
	defer unlock()
	defer func() {
		if err != nil {
			f.Close() // a second Close does no harm
			os.Remove(f.Name())
		}
	}()
	if err := write(f); err != nil {
		return err
	}
	if err := cmp.Or(f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	// The rename is on disk once the directory is. Not every system can flush a
	// directory, and the file is complete in any case.
	if d, err := os.Open(dir); err == nil {
		d.Sync()
		d.Close()
	}
	return nil
}

// createTemp creates a new file PREFIX.NUMBER with the permissions that the umask leaves
// ([os.CreateTemp] would keep it from all others), and locks it, so that no other process takes it for
// a dead one's.
func createTemp(prefix string) (f *os.File, unlock func() error, err error) {
	for range 10_000 {
		name := fmt.Sprintf("%s.%d", prefix, rand.Uint32())
		f, err = os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o666)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		unlock = func() error { return nil }
		if err != nil || !locksTemps {
			return f, unlock, err
		}
		unlock, err = claim(f)
		if err == nil {
			return f, unlock, nil
		}
		f.Close()
		if !errors.Is(err, ErrLocked) && !errors.Is(err, fs.ErrNotExist) {
			os.Remove(name)
			return nil, nil, err
		}
	}
	return nil, nil, fmt.Errorf("%s: cannot create a temporary file: %w", prefix, fs.ErrExist)
}

// claim locks a new temporary file. The error is [ErrLocked] or [fs.ErrNotExist] if another process has
// taken it for a dead one's, and has removed it or is about to.
func claim(f *os.File) (unlock func() error, err error) {
	unlock, err = Lock(f.Name())
	if err != nil {
		return nil, err
	}
	if unlock == nil { // the file system has no locks
		unlock = func() error { return nil }
	}
	opened, err := f.Stat()
	if err == nil {
		var named os.FileInfo
		named, err = os.Stat(f.Name())
		if err == nil && !os.SameFile(opened, named) {
			err = fs.ErrNotExist
		}
	}
	if err != nil {
		unlock()
		return nil, err
	}
	return unlock, nil
}

// locksTemps says that a locked file can be written and renamed, which Windows forbids.
const locksTemps = runtime.GOOS != "windows"

// removeDead removes the temporary files of a path that no process has locked. Where there are no locks
// they stay.
func removeDead(path string) {
	if !locksTemps {
		return
	}
	eachTemp(path, func(name string) error {
		if unlock, err := Lock(name); err == nil && unlock != nil {
			os.Remove(name)
			unlock()
		}
		return nil
	})
}

// WriteJSON writes a value as indented JSON, as [Write] does.
func WriteJSON(path string, v any) error {
	return Write(path, func(w io.Writer) error {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(v)
	})
}

// ErrLocked is the error of [Lock] if another process holds the lock.
var ErrLocked = errors.New("another process has it open")

// Lock locks an existing file or folder until unlock is called or the process ends, however
// it ends. It returns [ErrLocked] if another process holds the lock. On a file system
// without locks, unlock is nil.
func Lock(path string) (unlock func() error, err error) {
	return lock(flock.New(path, flock.SetFlag(os.O_RDONLY)))
}

func lock(l *flock.Flock) (unlock func() error, err error) {
	ok, err := l.TryLock()
	if pathError, missing := errors.AsType[*fs.PathError](err); missing && pathError.Op == "open" {
		return nil, err
	}
	switch {
	case err != nil: // the file system has no locks
		return nil, nil
	case !ok:
		return nil, ErrLocked
	}
	return l.Unlock, nil
}

// LockEnding is the suffix of the files of [LockFile].
const LockEnding = ".lock"

// LockFile keeps other processes from writing a file, by a lock on PATH.lock, which
// release removes. On a file system without locks it does nothing.
func LockFile(path string) (release func(), err error) {
	l := flock.New(path+LockEnding, flock.SetPermissions(0o666))
	unlock, err := lock(l)
	if err == nil && unlock != nil {
		// Another process may have removed the file since it was opened.
		a, errA := l.Stat()
		b, errB := os.Stat(l.Path())
		if errA != nil || errB != nil || !os.SameFile(a, b) {
			unlock()
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
		os.Remove(l.Path()) // before others can lock it
		if unlock != nil {
			unlock()
		}
	}, nil
}
