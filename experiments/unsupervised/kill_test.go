package main

import (
	"testing"

	"github.com/specmatch/specmatch/specmatch/method"
	"github.com/specmatch/specmatch/specmatch/run/runtest"
)

func TestMain(m *testing.M) { runtest.Main(m, execute) }

// TestKilled: killed at random moments, every method ends with the bits of a run
// that nothing disturbs. What is interrupted is the same with few graphs.
func TestKilled(t *testing.T) {
	runtest.KillMethods(t, method.Names(method.Unsupervised), "-data", runtest.FewGraphs(t, 32), "-dataset", "few", "-seeds", "1", "-epochs", "3", "-batch", "16", "-folds", "3", "-protocol", "linear")
}
