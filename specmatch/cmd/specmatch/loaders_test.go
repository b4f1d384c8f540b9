//go:build emulate

package main

import (
	"fmt"
	"strings"
	"testing"
)

// TestLoaders: on one engine of the emulator, any number of workers gives the same bytes.
func TestLoaders(t *testing.T) {
	t.Chdir(t.TempDir())
	var table strings.Builder
	table.WriteString("smiles,y\n")
	for i := range 1100 {
		fmt.Fprintf(&table, "%s,%d\n", []string{"C", "N", "O", "CC", "CO"}[i%5], i%7)
	}
	write(t, "m.csv", table.String())
	write(t, "few.csv", table.String()[:400])
	must(t, "finetune few.csv RUN -target y -seeds 1 -epochs 1 -hidden 8 -layers 2")
	for _, command := range []string{"embed m.csv OUT", "predict m.csv OUT -model RUN"} {
		outputs := map[string]bool{}
		for _, workers := range []int{1, 4} {
			out := fmt.Sprintf("%s-%d.csv", command[:5], workers)
			must(t, fmt.Sprintf("%s -backend cuda-emulator -workers %d", strings.Replace(command, "OUT", out, 1), workers))
			outputs[read(t, out)] = true
		}
		if len(outputs) != 1 {
			t.Errorf("%s: another number of workers gives other bytes", command)
		}
	}
}
