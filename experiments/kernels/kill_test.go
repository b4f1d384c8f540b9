package main

import (
	"testing"

	"github.com/specmatch/specmatch/specmatch/run/runtest"
)

func TestMain(m *testing.M) { runtest.Main(m, execute) }

// TestKill: killed at random moments and taken up with -out alone, a run leaves what an
// undisturbed one does.
func TestKill(t *testing.T) {
	runtest.Kill(t, 20, "-data", runtest.FewGraphs(t, 60), "-dataset", "few", "-method", "labels,wl,graph2vec", "-seeds", "1", "-folds", "3", "-rounds", "2", "-dim", "8", "-epochs", "4")
}
