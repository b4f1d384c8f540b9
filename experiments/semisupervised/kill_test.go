package main

import (
	"testing"

	"github.com/specmatch/specmatch/specmatch/run/runtest"
)

func TestMain(m *testing.M) { runtest.Main(m, execute) }

// TestKilled: killed at random moments, every method ends with the bits of a run
// that nothing disturbs. What is interrupted is the same with few graphs and layers.
func TestKilled(t *testing.T) {
	runtest.KillMethods(t, methods, "-data", runtest.FewGraphs(t, 96), "-dataset", "few", "-batch", "32", "-encoder", "reference",
		"-seeds", "1", "-epochs", "2", "-finetune-epochs", "1", "-folds", "3", "-label-rate", "0.5", "-protocol", "val")
}
