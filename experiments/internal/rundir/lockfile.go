package rundir

import (
	"errors"
	"fmt"
	"os"
)

// LockFile keeps other processes from writing a file, by a lock on PATH.lock, which
// release removes. Where the system has no locks it does nothing.
func LockFile(path string) (release func(), err error) {
	name := path + ".lock"
	f, err := os.OpenFile(name, os.O_CREATE|os.O_RDONLY, 0o644)
	if err != nil {
		return nil, err
	}
	f.Close()
	locked, err := lock(name)
	if err == nil && locked != nil {
		// Another process may have removed the file since it was opened.
		a, errA := locked.Stat()
		b, errB := os.Stat(name)
		if errA != nil || errB != nil || !os.SameFile(a, b) {
			locked.Close()
			err = errLocked
		}
	}
	if errors.Is(err, errLocked) {
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
