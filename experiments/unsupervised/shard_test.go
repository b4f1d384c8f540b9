package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// TestCollect: shares of an experiment, collected without its data, print and leave
// what one process does.
func TestCollect(t *testing.T) {
	mutag := filepath.Join("..", "..", "..", "shared", "data", "tu", "MUTAG.zip")
	if _, err := os.Stat(mutag); err != nil {
		t.Skip("needs MUTAG: ", err)
	}
	data := t.TempDir()
	zip, err := os.ReadFile(mutag)
	if err == nil {
		err = os.WriteFile(filepath.Join(data, "MUTAG.zip"), zip, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	start := func(dir string, args ...string) string {
		t.Helper()
		var stdout bytes.Buffer
		if err := execute(t.Context(), append(args, "-out", dir), &stdout, io.Discard); err != nil {
			t.Fatal(err)
		}
		tables, err := os.ReadFile(filepath.Join(dir, "tables.md"))
		if err != nil {
			return ""
		}
		return string(tables)
	}
	args := []string{"-dataset", "MUTAG", "-data", data, "-method", "untrained,infonce,specmatch", "-seeds", "2", "-epochs", "1", "-folds", "2", "-protocol", "graphcl"}
	root := t.TempDir()
	want := start(filepath.Join(root, "whole"), args...)
	shared := filepath.Join(root, "shared")
	for i := range 2 {
		start(shared, append(args, "-shard", fmt.Sprintf("%d/2", i))...)
	}
	if err := os.RemoveAll(data); err != nil {
		t.Fatal(err)
	}
	if got := start(filepath.Join(root, "collected"), "-collect", shared); got != want || want == "" {
		t.Errorf("collected\n%s\nwant\n%s", got, want)
	}
}
