package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/specmatch/specmatch/backend/cpu"
	"github.com/specmatch/specmatch/specmatch/cli"
	"github.com/specmatch/specmatch/tensor"
)

func TestBenchPrintsJSON(t *testing.T) {
	for _, args := range [][]string{
		{"-steps", "2", "-warmup", "1", "-json", "-losses"},
		{"-batch", "64", "-steps", "1", "-warmup", "0", "-json", "-composed", "-precision", "float64"},
		{"-batch", "64", "-steps", "1", "-warmup", "0", "-json", "-recorded"},
		{"-workload", "semisupervised", "-batch", "16", "-steps", "1", "-warmup", "0", "-json"},
		{"-workload", "transfer", "-batch", "4", "-steps", "1", "-warmup", "0", "-json"},
		{"-workload", "transfer", "-batch", "4", "-steps", "1", "-warmup", "0", "-json", "-recorded"},
	} {
		if testing.Short() && args[0] == "-workload" {
			continue // seconds a step, or minutes with the race detector
		}
		var out bytes.Buffer
		if err := execute(t.Context(), args, &out, io.Discard); err != nil {
			t.Fatal(err)
		}
		var r map[string]any
		if err := json.Unmarshal(out.Bytes(), &r); err != nil {
			t.Fatalf("%v: %s", err, out.String())
		}
		for _, k := range []string{"workload", "backend", "threads", "ms_per_step", "ms_train", "ms_device", "device_busy", "recorded", "ms_augment", "ms_forward", "ms_backward", "ms_optimizer", "graphs_per_second", "allocs_per_step", "peak_rss_mb"} {
			if _, ok := r[k]; !ok {
				t.Errorf("the JSON lacks %q", k)
			}
		}
		if r["ms_per_step"].(float64) <= 0 || r["loss"].(float64) <= 0 {
			t.Errorf("%v: %v", args, r)
		}
		if losses, ok := r["losses"].([]any); ok != slices.Contains(args, "-losses") || ok && len(losses) != 2 {
			t.Errorf("%v: losses %v", args, r["losses"])
		}
	}
}

// What does not fit is refused before it is allocated, and -h lists the workloads.
func TestUsage(t *testing.T) {
	for args, want := range map[string]string{
		"-workload chess":            "-workload",
		"-batch 9223372036854775807": "-batch 9223372036854775807: want at most 16384 graphs",
		"-steps 9223372036854775807": "-steps 9223372036854775807: storing the times needs about",
	} {
		var usage *cli.UsageError
		if err := execute(t.Context(), strings.Fields(args), io.Discard, io.Discard); !errors.As(err, &usage) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", args, err, want)
		}
	}
	var help bytes.Buffer
	if err := execute(t.Context(), []string{"-h"}, &help, io.Discard); !errors.Is(err, flag.ErrHelp) || !strings.Contains(help.String(), "semisupervised, transfer, unsupervised") {
		t.Errorf("-h: %v\n%s", err, help.String())
	}
}

// A cancelled context ends a measurement in the middle.
func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	start := time.Now()
	if err := execute(ctx, []string{"-steps", "1000000"}, io.Discard, io.Discard); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) > 3*time.Second {
		t.Errorf("%v after %v", err, time.Since(start))
	}
}

// TestStepAllocations: once the sizes have been seen, a step with its
// augmentation makes a few hundred small allocations on the Go heap, handles and
// closures, however many graphs it trains on: every matrix is recycled.
func TestStepAllocations(t *testing.T) {
	if testing.Short() {
		t.Skip("trains for some seconds")
	}
	const limitKB = 100 // one matrix of the largest batch here is 150 to 4000
	be := cpu.New(tensor.Float32)
	defer be.Close()
	for name, w := range workloads {
		t.Run(name, func(t *testing.T) {
			var counts []float64
			few := map[string]int{"transfer": 2}[name] // its steps take long, and its matrices are large
			few = cmp.Or(few, 16)
			for _, w.batch = range []int{few, 4 * few} {
				r := result{AllocKBPerStep: limitKB + 1}
				// A collection empties the pools of scratch memory, and a busy machine moves
				// work to threads whose pools are empty: not every time.
				for try := 0; try < 8 && r.AllocKBPerStep > limitKB; try++ {
					var err error
					if r, err = measure(t.Context(), be, w, 3, 6, false, nil); err != nil {
						t.Fatal(err)
					}
				}
				t.Logf("batch %d: %.0f allocations and %.1f kB a step", w.batch, r.AllocsPerStep, r.AllocKBPerStep)
				if r.AllocKBPerStep > limitKB {
					t.Errorf("batch %d: %.1f kB a step, want at most %d", w.batch, r.AllocKBPerStep, limitKB)
				}
				counts = append(counts, r.AllocsPerStep)
			}
			if counts[1] > counts[0]+20 {
				t.Errorf("%v allocations a step with %d graphs, %v with %d", counts[0], few, counts[1], 4*few)
			}
		})
	}
}
