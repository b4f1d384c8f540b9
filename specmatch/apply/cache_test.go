package apply

import (
	"runtime/debug"
	"testing"

	"github.com/specmatch/specmatch/specmatch/train"
)

// TestCacheSize: caches have a quarter of the memory that Go may have, and not more than Memory.
func TestCacheSize(t *testing.T) {
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(-1))
	debug.SetMemoryLimit(128 << 20)
	if got := CacheSize(); got != 32<<20 {
		t.Errorf("%d bytes of 128 MiB", got)
	}
	debug.SetMemoryLimit(1 << 60)
	if got := CacheSize(); got != min(Memory, int(train.Memory()/4)) {
		t.Errorf("%d bytes", got)
	}
}
