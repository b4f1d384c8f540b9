//go:build unix

package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/backend/cpu"
	"github.com/specmatch/specmatch/backend/roofline"
	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/gnn/augment"
	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/gnn/random"
	"github.com/specmatch/specmatch/specmatch"
	"github.com/specmatch/specmatch/specmatch/report/plot"
	"github.com/specmatch/specmatch/tensor"
)

// A size is a step of a GIN of three layers.
type size struct{ batch, width int }

// sizes are those of PeerSizes: batches at one width, widths at one batch.
var sizes = []size{{64, 32}, {512, 32}, {2048, 32}, {8192, 32}, {512, 128}, {512, 512}}

// sizeEnv makes the test program take steps of the size that it holds, and print a sizeCost.
const sizeEnv = "SPECMATCH_TEST_SIZE"

// sizeCost is what a step took: milliseconds of processor time, which other programs
// disturb less than time, and the MB that the process had at most.
type sizeCost struct {
	MS    float64 `json:"processor_ms"`
	MB    float64 `json:"peak_rss_mb"`
	Nodes float64 `json:"nodes"` // of both views
}

var figure = flag.String("figure", "", "`file` for the figure of PeerSizes, without .svg")

// steps is how many are timed: seconds of them.
func (s size) steps() int { return min(200, max(2, 1<<19/(s.batch*s.width))) }

// work is the least that a step does: products, of which S is symmetric, and every
// matrix of nodes written once and read once in each direction.
func (s size) work(nodes float64) backend.Work {
	rows, w := 2*float64(s.batch), float64(s.width)
	encoder := 5 * 3 * 2 * nodes * w * w // five products, the first layer's are sums of rows; two gradients each
	head := 2 * 3 * 2 * rows * 9 * w * w
	losses := 3 * rows * rows * 3 * w
	// h1 and h2 of every layer, y of all but the last, the sums over neighbours of all but the first.
	matrices := 4 * nodes * w * 10
	return backend.Work{Flops: int64(encoder + head + losses), Bytes: int64(3 * matrices)}
}

func init() {
	var s size
	if n, _ := fmt.Sscan(os.Getenv(sizeEnv), &s.batch, &s.width); n < 2 {
		return
	}
	if err := takeSteps(s); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// takeSteps takes steps of a size and prints what they cost.
func takeSteps(s size) error {
	w := workload{stats: dataset.NCI1Like, batch: s.batch, encoder: func(be backend.Backend, rng *rand.Rand) gnn.Encoder {
		return gnn.NewGIN(be, gnn.GINConfig{In: dataset.NCI1Like.Labels, Hidden: s.width, Layers: 3}, rng)
	}}
	w.stats.Graphs = max(w.stats.Graphs, s.batch)
	be := cpu.New(tensor.Float32)
	o := specmatch.Objective{Contrast: specmatch.InfoNCE{Tau: 0.2}, Match: specmatch.DefaultLaplacianMatch()}
	o.Beta.Weight = 0.01
	tr := specmatch.NewTrainer(be, w.model(be), o, learningRate)
	graphs := w.stats.Generate(random.Stream(0, purposeData, 0, 0))
	loader := &augment.Loader{Graphs: graphs, Batch: s.batch, DropLast: true, Collator: augment.Collator{Views: views}}
	var c sizeCost
	before := 0.0
	for k, epoch := 0, 0; ; epoch++ {
		for _, b := range loader.Epoch(context.Background(), epoch) {
			if k == 2 {
				before = processorTime()
			}
			if _, err := tr.Step(b, false); err != nil {
				return err
			}
			if c.Nodes = float64(b.Nodes()); k == 1+s.steps() {
				c.MS, c.MB = (processorTime()-before)/float64(s.steps()), peakRSS()
				return json.NewEncoder(os.Stdout).Encode(c)
			}
			k++
		}
	}
}

// cost runs a command that prints a sizeCost.
func (s size) cost(ctx context.Context, command ...string) (c sizeCost, err error) {
	x := exec.CommandContext(ctx, command[0], command[1:]...)
	x.Env = append(x.Environ(), "GOMAXPROCS=1", fmt.Sprintf("%s=%d %d", sizeEnv, s.batch, s.width))
	x.Stderr = os.Stderr
	out, err := x.Output()
	if err == nil {
		err = json.Unmarshal(out, &c)
	}
	if err == nil && !(c.MS > 0 && c.MB > 0) {
		err = fmt.Errorf("no processor_ms or peak_rss_mb in %s", out)
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", strings.Join(command, " "), err)
	}
	return c, err
}

// processorRates are an engine's at best, in processor time.
func processorRates(be backend.Backend) roofline.Rates {
	rate := func(amount float64, call func()) float64 {
		call()
		before := processorTime()
		for range 8 {
			call()
		}
		return 8 * amount / (processorTime() - before)
	}
	const n = 2048
	x, y, z := be.Alloc(n, n), be.Alloc(n, n), be.Alloc(n, n)
	be.Fill(x, 0.5)
	be.Fill(y, 0.25)
	long, copied := be.Alloc(8*n, n), be.Alloc(8*n, n)
	be.Fill(long, 0.5)
	return roofline.Rates{
		Flops: rate(2*n*n*n, func() { be.Gemm(z, false, false, 1, x, y, 0) }),
		Bytes: rate(2*4*8*n*n, func() { be.CopyBlock(copied, 0, 0, long, 0, 0, 8*n, n) }),
	}
}

// BenchmarkPeerSizes takes steps of several sizes in turn with a peer, on one thread, and
// prints a table; an iteration is a round of all sizes:
//
//	go test -run '^$' -bench PeerSizes -cpu 1 -benchtime 3x -timeout 0 ./experiments/bench -peer 'python3 peer/step.py --layers sparse' -figure sizes
func BenchmarkPeerSizes(b *testing.B) {
	if len(peers) != 1 || runtime.GOMAXPROCS(0) != 1 {
		b.Skip("want one -peer to compare with, and -cpu 1")
	}
	be := cpu.New(tensor.Float32)
	rates := processorRates(be)
	var all [2][][]sizeCost // by side, size and round
	for side := range all {
		all[side] = make([][]sizeCost, len(sizes))
	}
	for b.Loop() {
		for i, s := range sizes {
			peer := append(strings.Fields(peers[0]), "--batch", fmt.Sprint(s.batch), "--width", fmt.Sprint(s.width),
				"--steps", fmt.Sprint(s.steps()), "--warmup", "1", "--brief")
			for side, command := range [][]string{{os.Args[0]}, peer} {
				c, err := s.cost(b.Context(), command...)
				if err != nil && side == 0 {
					b.Fatal(err)
				} else if err != nil { // as where memory does not suffice
					fmt.Fprintln(os.Stderr, err)
					c = sizeCost{math.NaN(), math.NaN(), 0}
				}
				all[side][i] = append(all[side][i], c)
				fmt.Fprintln(os.Stderr, s, command[0], c)
			}
		}
	}
	b.ReportMetric(0, "ns/op") // of a round: says nothing
	table, panels := sizeTable(rates, all)
	fmt.Printf("\n%.0f GFLOP/s, %.0f GB/s\n%s", rates.Flops/1e6, rates.Bytes/1e6, table)
	if *figure != "" {
		if err := plot.Save(*figure, 2, panels...); err != nil {
			b.Fatal(err)
		}
	}
}

// sizeTable returns the medians as a table and as panels: time and memory against batch
// and against width.
func sizeTable(rates roofline.Rates, all [2][][]sizeCost) (table string, panels []plot.Panel) {
	median := func(side, i int, of func(c sizeCost) float64) float64 {
		var x []float64
		for _, c := range all[side][i] {
			x = append(x, of(c))
		}
		return medianOf(x)
	}
	ms, mb := func(c sizeCost) float64 { return c.MS }, func(c sizeCost) float64 { return c.MB }
	names := []string{"specmatch", "PyTorch", "roofline"}
	// Of batch and width, time and memory, and the names.
	var lines [2][2][3]plot.Series
	table = "| batch | width | specmatch, ms | PyTorch, ms | ratio | roofline, ms (share) | binds | specmatch, MB | PyTorch, MB |\n" +
		"| ---: | ---: | ---: | ---: | ---: | ---: | --- | ---: | ---: |\n"
	for i, s := range sizes {
		nodes := median(0, i, func(c sizeCost) float64 { return c.Nodes })
		ours, theirs := median(0, i, ms), median(1, i, ms)
		floor := rates.Floor(s.work(nodes), 1, false, ours)
		table += fmt.Sprintf("| %d | %d | %.1f | %.1f | %.2f | %.1f (%.0f %%) | %s | %.0f | %.0f |\n", s.batch, s.width,
			ours, theirs, theirs/ours, floor.MS, 100*floor.Share, floor.Binds, median(0, i, mb), median(1, i, mb))
		for k, value := range [2]int{s.batch, s.width} {
			if fixed := [2]bool{s.width == 32, s.batch == 512}; !fixed[k] {
				continue
			}
			for what, y := range [2][]float64{{ours, theirs, floor.MS}, {median(0, i, mb), median(1, i, mb)}} {
				for n := range y {
					line := &lines[k][what][n]
					line.Name = names[n]
					line.X, line.Y = append(line.X, float64(value)), append(line.Y, y[n])
				}
			}
		}
	}
	for what, label := range []string{"processor time of a step (ms)", "peak memory (MB)"} {
		for k, of := range []string{"batch, at width 32", "width, at batch 512"} {
			axes := plot.Axes{Title: label, XLabel: of, YLabel: label, LogX: true, LogY: true}
			panels = append(panels, plot.Lines{Axes: axes, Series: lines[k][what][:3-what]})
		}
	}
	return strings.ReplaceAll(table, "NaN", "–"), panels
}

// TestPeerSizes: a small step has a cost, and what is printed has a row for every size.
func TestPeerSizes(t *testing.T) {
	c, err := size{4, 8}.cost(t.Context(), os.Args[0])
	if err != nil || c.Nodes < 8 {
		t.Fatalf("%+v, %v", c, err)
	}
	if _, err := (size{4, 8}).cost(t.Context(), "echo", "{}"); err == nil || !strings.Contains(err.Error(), "no processor_ms") {
		t.Errorf("a peer that says nothing: %v", err)
	}
	var all [2][][]sizeCost
	for side := range all {
		for range sizes {
			all[side] = append(all[side], []sizeCost{c})
		}
	}
	table, panels := sizeTable(roofline.Rates{Bytes: 1, Flops: 1}, all)
	if rows := strings.Count(table, "\n"); rows != 2+len(sizes) || len(panels) != 4 {
		t.Errorf("%d lines, %d panels\n%s", rows, len(panels), table)
	}
	if err := plot.Save(t.TempDir()+"/sizes", 2, panels...); err != nil {
		t.Error(err)
	}
}
