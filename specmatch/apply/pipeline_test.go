package apply_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/specmatch/specmatch/gnn/dataset/records"
	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/specmatch/apply"
	"github.com/specmatch/specmatch/specmatch/shard"
)

// chains is a table of molecules, a few of which cannot be read.
func chains(n int) string {
	var b strings.Builder
	b.WriteString("smiles,name\n")
	for i := range n {
		chain := strings.Repeat("C", 1+i%37)
		if i%500 == 77 {
			chain = "C("
		}
		fmt.Fprintf(&b, "%s,m%d\n", chain, i)
	}
	return b.String()
}

// sizes is a model of the numbers of nodes and edges, which takes as long as wait says.
func sizes(wait func()) apply.Model {
	return apply.Model{
		Columns: []string{"nodes", "edges"},
		Key:     "sizes",
		Reads:   apply.Input{Content: records.Molecules},
		Rows: func(ctx context.Context, graphs []*graph.Graph) (y []float64, err error) {
			wait()
			for _, g := range graphs {
				y = append(y, float64(g.Nodes()), float64(g.Entries()))
			}
			return y, ctx.Err()
		},
	}
}

// TestReplicas: any number of replicas, however fast each is, gives the bytes of one model, also in shards
// and after an interruption, and several compute at the same time.
func TestReplicas(t *testing.T) {
	dir := t.TempDir()
	input := filepath.Join(dir, "m.csv")
	if err := os.WriteFile(input, []byte(chains(25000)), 0o644); err != nil {
		t.Fatal(err)
	}
	var busy, mostBusy atomic.Int32
	wait := func() {
		now := busy.Add(1)
		for {
			most := mostBusy.Load()
			if now <= most || mostBusy.CompareAndSwap(most, now) {
				break
			}
		}
		time.Sleep(time.Duration(rand.IntN(5)) * time.Millisecond)
		busy.Add(-1)
	}
	job := func(replicas int) *apply.Job {
		j := &apply.Job{Path: input, Records: records.Options{ID: "name"}, Model: sizes(wait)}
		for range replicas {
			j.Replicas = append(j.Replicas, sizes(wait))
		}
		return j
	}
	outputs := func(path string) (text string) {
		for _, ending := range []string{"", ".ids.csv", apply.Rejected} {
			data, err := os.ReadFile(path + ending)
			if err != nil {
				t.Fatal(err)
			}
			text += string(data)
		}
		return text
	}
	whole := filepath.Join(dir, "whole.npy")
	if _, err := job(0).WriteFile(t.Context(), whole); err != nil {
		t.Fatal(err)
	}
	if mostBusy.Load() != 1 {
		t.Errorf("%d batches at a time with one model", mostBusy.Load())
	}
	for _, replicas := range []int{1, 2, 15} {
		out := filepath.Join(dir, fmt.Sprintf("%d.npy", replicas))
		ctx, cancel := context.WithCancel(t.Context())
		j := job(replicas)
		j.Progress = func(done int) {
			if done > 3000 {
				cancel()
			}
		}
		if r, err := j.WriteFile(ctx, out); !errors.Is(err, context.Canceled) || !r.Resumes {
			t.Fatalf("%d replicas: %+v, %v", replicas, r, err)
		}
		if _, err := job(replicas-1).WriteFile(t.Context(), out); err != nil {
			t.Fatal(err)
		}
		if outputs(out) != outputs(whole) {
			t.Errorf("%d replicas give other bytes", replicas)
		}
		sharded := filepath.Join(dir, fmt.Sprintf("sharded-%d.npy", replicas))
		for _, k := range []int{2, 0, 1} {
			j := job(replicas)
			j.Shard = shard.Shard{I: k, N: 3}
			if _, err := j.WriteFile(t.Context(), sharded); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := job(0).Collect(t.Context(), sharded); err != nil {
			t.Fatal(err)
		}
		if outputs(sharded) != outputs(whole) {
			t.Errorf("%d replicas in shards give other bytes", replicas)
		}
	}
	if mostBusy.Load() < 2 {
		t.Error("replicas never compute at the same time")
	}
}

// TestReplicaFails: an error ends a job where the first batch that has one is, and emit sees the batches
// before it only.
func TestReplicaFails(t *testing.T) {
	failure := errors.New("out of memory")
	for name, c := range map[string]struct {
		fails, emitFails int // number of the batch
		want             string
	}{
		"compute": {3, -1, "012"},
		"emit":    {-1, 2, "012"},
	} {
		var b strings.Builder
		b.WriteString("smiles\n")
		for i := range 9000 { // the batch's number is the number of atoms
			b.WriteString(strings.Repeat("C", 1+i/1024) + "\n")
		}
		m := apply.Model{
			Columns: []string{"nodes"},
			Reads:   apply.Input{Content: records.Molecules},
			Rows: func(_ context.Context, graphs []*graph.Graph) ([]float64, error) {
				number := graphs[0].Nodes() - 1
				if number == c.fails {
					time.Sleep(5 * time.Millisecond) // later batches are done before
					return nil, failure
				}
				return make([]float64, len(graphs)), nil
			},
		}
		j := apply.Job{
			Path:     "-",
			Records:  records.Options{Input: strings.NewReader(b.String()), Format: records.CSV},
			Model:    m,
			Replicas: []apply.Model{m, m, m},
		}
		emitted := ""
		err := j.Stream(t.Context(), func(b apply.Batch) error {
			number := b.Records[0].Graph.Nodes() - 1
			emitted += fmt.Sprint(number)
			if number == c.emitFails {
				return failure
			}
			return nil
		})
		if !errors.Is(err, failure) || emitted != c.want {
			t.Errorf("%s: batches %s, want %s; %v", name, emitted, c.want, err)
		}
	}
}

// TestStrictReplicas: the batches before a bad record are written.
func TestStrictReplicas(t *testing.T) {
	text := "smiles\n" + strings.Repeat("CC\n", 3*1024+5) + "C(\n" + strings.Repeat("CC\n", 3000)
	j := apply.Job{
		Path:     "-",
		Records:  records.Options{Input: strings.NewReader(text), Format: records.CSV},
		Model:    sizes(func() {}),
		Replicas: []apply.Model{sizes(func() { time.Sleep(time.Millisecond) })},
		Strict:   true,
	}
	var rows bytes.Buffer
	_, err := j.WriteCSV(t.Context(), &rows, io.Discard)
	if lines := strings.Count(rows.String(), "\n"); err == nil || lines != 1+3*1024 {
		t.Errorf("%d lines, %v", lines, err)
	}
}
