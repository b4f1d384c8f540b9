package main

import (
	"bytes"
	"encoding/json"
	"io"
	"math/rand/v2"
	"testing"
)

func TestSyntheticStatistics(t *testing.T) {
	graphs := nci1Like.generate(rand.New(rand.NewPCG(1, 1)))
	nodes, entries := 0, 0
	for _, g := range graphs {
		if err := g.Validate(); err != nil {
			t.Fatal(err)
		}
		nodes += g.Nodes()
		entries += g.Entries()
	}
	n := float64(len(graphs))
	if mean := float64(nodes) / n; mean < 29 || mean > 31.5 {
		t.Errorf("%.2f nodes a graph, want about 29.9 (clipping at 3 adds a little)", mean)
	}
	if mean := float64(entries) / 2 / n; mean < 30 || mean > 34 {
		t.Errorf("%.2f edges a graph, want about 32.3", mean)
	}
}

func TestBenchPrintsJSON(t *testing.T) {
	for _, args := range [][]string{{"-steps", "2", "-warmup", "1", "-json"}, {"-steps", "1", "-warmup", "0", "-json", "-composed", "-precision", "float64"}} {
		var out bytes.Buffer
		if err := run(t.Context(), args, &out, io.Discard); err != nil {
			t.Fatal(err)
		}
		var r map[string]any
		if err := json.Unmarshal(out.Bytes(), &r); err != nil {
			t.Fatalf("%v: %s", err, out.String())
		}
		for _, k := range []string{"workload", "backend", "threads", "ms_per_step", "ms_augment", "ms_forward", "ms_backward", "ms_optimizer", "graphs_per_second", "allocs_per_step", "peak_rss_mb"} {
			if _, ok := r[k]; !ok {
				t.Errorf("the JSON lacks %q", k)
			}
		}
		if r["ms_per_step"].(float64) <= 0 || r["loss"].(float64) <= 0 {
			t.Errorf("%v: %v", args, r)
		}
	}
}
