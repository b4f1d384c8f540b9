//go:build unix

package sweep

import (
	"os"
	"os/exec"
	"runtime"
	"syscall"
)

// alone keeps the terminal's Ctrl-C from a command: it gets the SIGTERM that the sweep
// sends, and a second signal would end it before it has saved what it does.
func alone(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// peak returns the most memory that a process that has ended had, in bytes.
func peak(p *os.ProcessState) int64 {
	u, ok := p.SysUsage().(*syscall.Rusage)
	switch {
	case !ok:
		return 0
	case runtime.GOOS == "darwin":
		return int64(u.Maxrss)
	}
	return int64(u.Maxrss) << 10
}
