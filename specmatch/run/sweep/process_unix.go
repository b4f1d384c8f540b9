//go:build unix

package sweep

import (
	"os"
	"os/exec"
	"runtime"
	"syscall"
)

// alone keeps the terminal's Ctrl-C from a command. The sweep sends it SIGTERM; a second signal would
// end it before it has saved its state.
func alone(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// peak returns the peak memory of a process that has ended, in bytes; 0 if unknown.
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
