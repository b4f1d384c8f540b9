package backend

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/specmatch/specmatch/tensor"
)

// OpenFunc opens an engine of the given precision.
type OpenFunc func(p tensor.Precision) (Backend, error)

var (
	mu      sync.Mutex // guards openers
	openers = map[string]OpenFunc{}
)

// Register makes an engine available to [Open]. Engines call it in init. It
// panics if the name is taken.
func Register(name string, open OpenFunc) {
	mu.Lock()
	defer mu.Unlock()
	if _, dup := openers[name]; dup {
		panic("backend: Register called twice for " + name)
	}
	openers[name] = open
}

// Names returns the engines in this build, sorted.
func Names() []string {
	mu.Lock()
	defer mu.Unlock()
	return slices.Sorted(maps.Keys(openers))
}

// Open opens the named engine. For an engine that is not in this build it returns an
// error that says what to do; it never falls back to another.
func Open(name string, p tensor.Precision) (Backend, error) {
	mu.Lock()
	open, ok := openers[name]
	mu.Unlock()
	if ok {
		return open(p)
	}
	names := strings.Join(Names(), ", ")
	if strings.HasPrefix(name, "cuda") {
		return nil, fmt.Errorf(
			"backend %q is not in this build; rebuild with -tags cuda (have: %s)",
			name,
			names,
		)
	}
	return nil, fmt.Errorf("backend %q is unknown (have: %s)", name, names)
}
