//go:build !linux

package sweep

import "os"

// peak returns 0: the unit of Maxrss depends on the system.
func peak(*os.ProcessState) int64 { return 0 }
