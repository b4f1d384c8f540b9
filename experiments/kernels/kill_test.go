package main

import (
	"testing"

	"github.com/specmatch/specmatch/experiments/internal/rundirtest"
)

func TestMain(m *testing.M) { rundirtest.Main(m, run) }

// TestKill: killed at random moments and taken up with -out alone, a run leaves what an
// undisturbed one does.
func TestKill(t *testing.T) {
	rundirtest.Kill(t, 20, "-method", "labels,wl,graph2vec", "-seeds", "1", "-folds", "3", "-rounds", "2", "-dim", "8", "-epochs", "4")
}
