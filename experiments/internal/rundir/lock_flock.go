//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package rundir

import (
	"errors"
	"os"
	"syscall"
)

// lock keeps other processes from opening the directory until the file that it
// returns is closed, or the process ends in whatever way.
func lock(path string) (*os.File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	for {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	switch {
	case errors.Is(err, syscall.EWOULDBLOCK):
		f.Close()
		return nil, errLocked
	case err != nil: // a file system without locks
		f.Close()
		return nil, nil
	}
	return f, nil
}
