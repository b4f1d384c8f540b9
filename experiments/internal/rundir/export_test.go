package rundir

import (
	"testing"
	"time"
)

// SetInstructionSet makes starts until the end of the test be on a processor with
// another instruction set.
func SetInstructionSet(t testing.TB, name string) {
	was := instructionSet
	instructionSet = func() string { return name }
	t.Cleanup(func() { instructionSet = was })
}

// Events are the bytes of an event file with one step, of figures in columns of these names.
func Events(at time.Time, columns []string, row Epoch) []byte {
	return append(boardHeader(at), (&metrics{columns: columns}).event(at, row)...)
}
