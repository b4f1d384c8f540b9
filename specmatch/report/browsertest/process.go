//go:build unix

package browsertest

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// ticks is how many units of processor time in /proc make a second.
const ticks = 100

// Usage returns the resident memory of the page's process in bytes, and the processor time that it has taken. Both are 0
// on a system without /proc.
func (b *Browser) Usage() (memory int64, processor time.Duration) {
	parents := map[string]string{}
	fields := map[string][]string{} // of stat, from the state on
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		_, rest, _ := strings.Cut(string(text), ") ")
		id := filepath.Base(filepath.Dir(path))
		fields[id] = strings.Fields(rest)
		parents[id] = fields[id][1]
	}
	browser := fmt.Sprint(b.process)
	for id, stat := range fields {
		ancestor := id
		for ancestor != "" && ancestor != browser {
			ancestor = parents[ancestor]
		}
		command, err := os.ReadFile("/proc/" + id + "/cmdline")
		if ancestor == "" || err != nil || !bytes.Contains(command, []byte("--type=renderer")) {
			continue
		}
		number := func(k int) int64 {
			n, _ := strconv.ParseInt(stat[k], 10, 64)
			return n
		}
		// A spare process has little of both.
		memory = max(memory, number(21)*int64(os.Getpagesize()))
		processor += time.Duration(number(11)+number(12)) * time.Second / ticks
	}
	return memory, processor
}
