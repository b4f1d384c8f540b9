package main

import (
	"testing"

	"github.com/specmatch/specmatch/experiments/internal/rundirtest"
	"github.com/specmatch/specmatch/specmatch/method"
)

func TestMain(m *testing.M) { rundirtest.Main(m, run) }

// TestKilled: killed at random moments, every method ends with the bits of a run
// that nothing disturbs. What is interrupted is the same with few graphs.
func TestKilled(t *testing.T) {
	rundirtest.KillMethods(t, method.Names(method.Unsupervised), "-data", rundirtest.FewGraphs(t, 48), "-dataset", "few", "-seeds", "1", "-epochs", "4", "-batch", "16", "-folds", "3", "-protocol", "linear")
}
