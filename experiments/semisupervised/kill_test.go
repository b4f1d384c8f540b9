package main

import (
	"testing"

	"github.com/specmatch/specmatch/experiments/internal/rundirtest"
)

func TestMain(m *testing.M) { rundirtest.Main(m, run) }

// TestKilled: killed at random moments, every method ends with the bits of a run
// that nothing disturbs.
func TestKilled(t *testing.T) {
	rundirtest.KillMethods(t, methods, "-seeds", "1", "-epochs", "2", "-finetune-epochs", "2", "-folds", "3", "-label-rate", "0.25", "-protocol", "val")
}
