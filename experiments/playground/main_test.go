package main

import (
	"bytes"
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/specmatch/specmatch/experiments/playground/play"
)

var testContext = context.Background()

// TestOperators: every operator of the examples has a comment, a formula and a place.
func TestOperators(t *testing.T) {
	all, err := operatorsOf("../../autodiff")
	if err != nil {
		t.Fatal(err)
	}
	ops := map[string]bool{"SubRow": true, "MulScalar": true}
	for _, e := range play.Examples {
		tr, err := play.Tape{Text: e.Text, X: e.X, W: e.W, B: e.B}.Trace()
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range tr.Steps {
			ops[tr.Nodes[s.Node].Op] = true
		}
	}
	for op := range ops {
		if o := all[op]; o.VJP == "" || o.Line == 0 || o.Source == "" || o.Doc == "" {
			t.Errorf("%s: %+v", op, o)
		}
	}
	if v := all["MatMul"].VJP; v != "dx = dy·wᵀ, dw = xᵀ·dy." {
		t.Errorf("the VJP of MatMul: %q", v)
	}
}

// TestSize: Go, HTML, CSS and JavaScript without tests have at most 3,000 lines.
func TestSize(t *testing.T) {
	lines := 0
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		ext := filepath.Ext(path)
		if err != nil || strings.HasSuffix(path, "_test.go") || ext != ".go" && ext != ".html" && ext != ".css" && ext != ".js" {
			return err
		}
		text, err := os.ReadFile(path)
		lines += bytes.Count(text, []byte("\n"))
		return err
	})
	if err != nil || lines > 3000 || lines < 1000 {
		t.Errorf("%d lines, %v", lines, err)
	}
	t.Logf("%d lines of 3000", lines)
}
