package run

import "testing"

// SetInstructionSet makes starts until the end of the test be on a processor with
// another instruction set.
func SetInstructionSet(t testing.TB, name string) {
	was := instructionSet
	instructionSet = func() string { return name }
	t.Cleanup(func() { instructionSet = was })
}
