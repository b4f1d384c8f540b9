package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/specmatch/specmatch/specmatch/run/runtest"
)

// TestFormats: the same graphs, whose nodes have attributes only, give the same accuracy in
// TUDataset's format and as JSON Lines.
func TestFormats(t *testing.T) {
	dir := t.TempDir()
	rng := rand.New(rand.NewPCG(33, 4))
	var lines strings.Builder
	tu := map[string]string{}
	first := 1
	for i := range 60 {
		nodes, class := 3+rng.IntN(4), rng.IntN(3)
		var edges [][2]int
		var attributes [][2]float32
		for v := range nodes {
			attributes = append(attributes, [2]float32{rng.Float32() + float32(class)/3, rng.Float32()})
			tu["node_attributes"] += fmt.Sprintf("%g, %g\n", attributes[v][0], attributes[v][1])
			tu["graph_indicator"] += fmt.Sprintf("%d\n", i+1)
			if v > 0 {
				u := rng.IntN(v)
				edges = append(edges, [2]int{u, v})
				tu["A"] += fmt.Sprintf("%d, %d\n%d, %d\n", first+u, first+v, first+v, first+u)
			}
		}
		first += nodes
		tu["graph_labels"] += fmt.Sprintf("%d\n", class)
		if err := json.NewEncoder(&lines).Encode(map[string]any{"edges": edges, "attributes": attributes, "class": class}); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "LETTERS"), 0o755); err != nil {
		t.Fatal(err)
	}
	tu["../letters.jsonl"] = lines.String()
	for part, text := range tu {
		name := filepath.Join(dir, "LETTERS", "LETTERS_"+part+".txt")
		if strings.HasPrefix(part, "..") {
			name = filepath.Join(dir, part[3:])
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var got [2][]float64
	for k, name := range []string{"LETTERS", "letters.jsonl"} {
		out := filepath.Join(dir, fmt.Sprint("run", k))
		runOK(t, out, "-dataset", name, "-data", dir, "-method", "untrained", "-protocol", "graphcl")
		got[k] = runtest.Results(t, out)[0].PerSeed
	}
	if !slices.Equal(got[0], got[1]) || got[0][0] < 40 {
		t.Errorf("accuracies %v as a set of TUDataset's, %v as JSON Lines", got[0], got[1])
	}
}
