package main

import (
	"testing"

	"github.com/specmatch/specmatch/specmatch/run/runtest"
)

func TestMain(m *testing.M) { runtest.Main(m, execute) }

// TestKilled: killed at random moments, every method ends with the bits of a run
// that nothing disturbs.
func TestKilled(t *testing.T) {
	runtest.KillMethods(t, methods, "-hidden", "16", "-layers", "2", "-batch", "64", "-corpus-size", "400", "-epochs", "3", "-finetune-epochs", "3", "-finetune-batch", "64", "-seeds", "1")
}
