package main

import (
	"testing"

	"github.com/specmatch/specmatch/experiments/internal/rundirtest"
	"github.com/specmatch/specmatch/specmatch/method"
)

func TestMain(m *testing.M) { rundirtest.Main(m, run) }

// TestKilled: killed at random moments, every method ends with the bits of a run
// that nothing disturbs.
func TestKilled(t *testing.T) {
	rundirtest.KillMethods(t, method.Names(method.Unsupervised), "-seeds", "1", "-epochs", "8", "-batch", "16", "-folds", "3", "-protocol", "linear")
}
