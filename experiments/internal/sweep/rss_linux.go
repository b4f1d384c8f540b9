package sweep

import (
	"os"
	"syscall"
)

// peak returns the most memory that a process that has ended had, in bytes.
func peak(p *os.ProcessState) int64 {
	if u, ok := p.SysUsage().(*syscall.Rusage); ok {
		return u.Maxrss << 10
	}
	return 0
}
