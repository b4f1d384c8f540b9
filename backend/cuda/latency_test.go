//go:build emulate

package cuda

import (
	"cmp"
	"errors"
	flags "flag"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/specmatch/specmatch/backend/cuda/internal/ptx"
	"github.com/specmatch/specmatch/backend/cuda/kernels"
	"github.com/specmatch/specmatch/gnn"
	graphs "github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/gnn/molecule/feature"
	"github.com/specmatch/specmatch/specmatch"
	"github.com/specmatch/specmatch/tensor"
)

var update = flags.Bool("update", false, "write testdata/latency.txt anew")

// The H200 of the model: its clock, its multiprocessors, and the rates that large
// copies and products reach, by others' measurements.
const (
	gigahertz      = 1.755
	processors     = 132
	bytesPerMicro  = 4.3e6
	flopsPerMicro  = 50e6
	tf32PerMicro   = 247e6 // half of what the tensor cores have, of TF32
	microPerLaunch = 1     // within a recorded step
)

// modeller is a driver that computes nothing. It estimates the launches of a step
// when it is replayed: of each it interprets some blocks, on memory full of ones but
// for what was copied in, which has the sizes and the neighbours.
type modeller struct {
	*emulator
	e       *engine
	module  *ptx.Module
	machine ptx.Machine
	perSM   map[string]int // blocks that a multiprocessor can have, of sass.txt
	kernels map[string]estimate
	// What the products would take in TF32, at the least and at the most.
	tf32  [2]float64
	split float64 // and as three products in TF32
}

// estimate is that of a kernel's launches.
type estimate struct {
	launches, blocks int     // blocks of the largest
	cycles           int64   // of the slowest block
	micros           float64 // in all
}

// add counts a launch that takes so many microseconds besides its cost.
func (d *modeller) add(kernel string, blocks int, cycles int64, micros float64) {
	k := d.kernels[kernel]
	d.kernels[kernel] = estimate{k.launches + 1, max(k.blocks, blocks), max(k.cycles, cycles), k.micros + microPerLaunch + micros}
}

func (d *modeller) alloc(bytes int) (pointer, error) {
	p, err := d.emulator.alloc(bytes)
	if err == nil {
		words := view[uint32](d.memory[p])
		for k := range words {
			words[k] = math.Float32bits(1)
		}
		d.machine.Memory.Add(uint64(p), d.memory[p])
	}
	return p, err
}

// launch estimates as many rounds as the blocks need, one as long as the slowest
// block and the others as long as the mean, or what the bytes need.
func (d *modeller) launch(kernel string, grid, block dims, params []uint64) error {
	if d.recording == nil {
		return nil
	}
	most := 24 // blocks to interpret
	if kernel == "norm_grad_partials" {
		most = math.MaxInt // it leaves indices to others
	}
	n, bytes := int(grid[0]*grid[1]), d.e.moves
	var some []int
	for k := range min(n, most) {
		some = append(some, k*(n-1)/max(1, min(n, most)-1))
	}
	params = slices.Clone(params)
	return d.do(func() error {
		cycles, err := d.machine.Run(d.module, kernel, grid, block, params, some...)
		if err != nil {
			return err
		}
		slowest, sum := slices.Max(cycles), int64(0)
		for _, c := range cycles {
			sum += c
		}
		more := ceil(n, processors*d.perSM[kernel]) - 1
		waits := float64(slowest) + float64(more)*float64(sum)/float64(len(cycles))
		d.add(kernel, n, slowest, max(float64(bytes)/bytesPerMicro, waits/gigahertz/1000))
		return nil
	})
}

func (d *modeller) gemm(transA, transB bool, m, n, k int, alpha float64, a pointer, lda int, b pointer, ldb int, beta float64, c pointer) error {
	if d.recording == nil {
		return nil
	}
	bytes, flops := float64(d.e.moves)/bytesPerMicro, float64(productFlops(m, n, k))
	return d.do(func() error {
		d.add("cuBLAS", 0, 0, max(bytes, flops/flopsPerMicro))
		d.tf32[0] += microPerLaunch + bytes
		d.tf32[1] += microPerLaunch + max(bytes, flops/tf32PerMicro)
		if flops < float64(worthSplitting.flops) || 2*m*n < worthSplitting.width*(m+n) {
			d.split += microPerLaunch + max(bytes, flops/flopsPerMicro)
			return nil
		}
		operands := float64((m*k+k*n)*4) / bytesPerMicro
		d.split += 2*microPerLaunch + 4*operands                                // the kernel split
		d.split += microPerLaunch + max(bytes+2*operands, 3*flops/tf32PerMicro) // and the product
		return nil
	})
}

func (d *modeller) gemmParts(parts, m, n, k int, alpha float64, a, b, c pointer) error {
	return d.gemm(true, false, m, n, parts*k, alpha, a, m, b, n, 0, c)
}

// molecules returns two views of so many random trees with rings, of a mean of so
// many nodes, as experiments/bench trains on: a label is k with a probability
// proportional to (1+k)^-1.6.
func molecules(n int, mean, deviation float64, labels int, bonds bool) *graphs.Batch {
	rng := rand.New(rand.NewPCG(1, 2))
	b := new(graphs.Batch)
	for range 2 {
		for range n {
			nodes := max(3, int(0.8*(mean+deviation*rng.NormFloat64())))
			rows := make([]map[int32]int32, nodes)
			for i := range rows {
				rows[i] = map[int32]int32{}
				for _, j := range []int{i - 1 - rng.IntN(3), i - 5} {
					if j = max(0, j); i > 0 && (len(rows[i]) == 0 || rng.IntN(10) == 0) {
						bond := feature.BondDirections * rng.Int32N(3)
						rows[i][int32(j)], rows[j][int32(i)] = bond, bond
					}
				}
			}
			g := &graphs.Graph{Ptr: []int32{0}, X: graphs.Features{Width: labels}}
			for _, row := range rows {
				for j := range int32(nodes) {
					if bond, ok := row[j]; ok {
						g.Adj = append(g.Adj, j)
						if bonds {
							g.EdgeLabel = append(g.EdgeLabel, bond)
						}
					}
				}
				g.Ptr = append(g.Ptr, int32(len(g.Adj)))
				label := labels
				for label >= labels {
					label = int(math.Pow(rng.Float64(), -1/0.6)) - 1
				}
				g.X.Category = append(g.X.Category, int32(label))
			}
			if bonds {
				g.X.Width *= feature.ChiralityTags
				for i := range g.X.Category {
					g.X.Category[i] *= feature.ChiralityTags
				}
			}
			b.Append(g)
		}
		b.EndView()
	}
	return b
}

// TestLatency estimates the steps of experiments/bench. No kernel's slowest block, and no
// step, may take a tenth longer than in testdata/latency.txt.
func TestLatency(t *testing.T) {
	const file = "testdata/latency.txt"
	sass, err := os.ReadFile("kernels/sass.txt")
	if err != nil {
		t.Fatal(err)
	}
	perSM := map[string]int{}
	_, rows, _ := strings.Cut(string(sass), "\nf32\n")
	rows, _, _ = strings.Cut(rows, "\nf64\n")
	for _, row := range strings.Split(rows, "\n") {
		var name string
		var registers, shared, blocks int
		if _, err := fmt.Sscan(row, &name, &registers, &shared, &blocks); err != nil {
			t.Fatalf("sass.txt: %q: %v", row, err)
		}
		perSM[name] = blocks
	}
	module, err := ptx.Parse(kernels.PTX(tensor.Float32))
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	fmt.Fprintf(&out, `# Estimates for an H200 in float32: go test -tags emulate -run TestLatency ./backend/cuda -update
#
# For each kernel in a recorded step of experiments/bench: the number of launches, the
# blocks of the largest, the cycles of the slowest block, and microseconds in all.
#
# cuBLAS is not modelled: a product takes the time of its bytes or its operations at the
# rates of large products. For TF32 there is no such rate: the products here are 300
# to 600 wide, and fill neither the tiles of the tensor cores nor a round of all
# multiprocessors. So the time of a step with TF32 is a range: its products take as long
# as their bytes at one end, and reach half of the tensor cores' 495 TFLOP/s at the other.
# Three products in TF32 (cuda-3xtf32) are estimated at that half, with the launches and the
# bytes that splitting adds.
`)
	for _, w := range []struct {
		name    string
		batch   *graphs.Batch
		encoder func(e *engine, rng *rand.Rand) gnn.Encoder
		match   bool
	}{
		{"unsupervised", molecules(512, 29.87, 13.5, 37, false), func(e *engine, rng *rand.Rand) gnn.Encoder {
			return gnn.NewGIN(e, gnn.GINConfig{In: 37, Hidden: 32, Layers: 3}, rng)
		}, false},
		{"unsupervised, matched", molecules(512, 29.87, 13.5, 37, false), func(e *engine, rng *rand.Rand) gnn.Encoder {
			return gnn.NewGIN(e, gnn.GINConfig{In: 37, Hidden: 32, Layers: 3}, rng)
		}, true},
		{"semisupervised", molecules(512, 29.87, 13.5, 37, false), func(e *engine, rng *rand.Rand) gnn.Encoder {
			return gnn.NewResGCN(e, gnn.PaperResGCN(37), rng)
		}, false},
		{"transfer", molecules(256, 26.6, 6, feature.AtomTypes, true), func(e *engine, rng *rand.Rand) gnn.Encoder {
			return gnn.NewChemGIN(e, gnn.ChemGINConfig{Hidden: 300, Layers: 5}, rng)
		}, false},
	} {
		d := &modeller{
			emulator: newEmulator(tensor.Float32), module: module, machine: ptx.Machine{Memory: &ptx.Memory{Unchecked: true}},
			perSM: perSM, kernels: map[string]estimate{},
		}
		e, err := open(d, tensor.Float32)
		if err != nil {
			t.Fatal(err)
		}
		d.e = e
		rng := rand.New(rand.NewPCG(1, 2))
		o := specmatch.Objective{Contrast: specmatch.InfoNCE{Tau: 0.2}, Match: specmatch.DefaultLaplacianMatch()}
		if w.match {
			o.Beta.Weight = 0.01
		}
		r, err := specmatch.NewRecorded(specmatch.NewTrainer(e, specmatch.NewModel(e, w.encoder(e, rng), rng), o, 1e-3))
		if err != nil {
			t.Fatal(err)
		}
		for range 2 { // the second is a replay
			if _, err := r.Step(w.batch); err != nil {
				t.Fatal(err)
			}
		}
		kernels, total := d.kernels, estimate{}
		for _, k := range kernels {
			total.launches += k.launches
			total.micros += k.micros
		}
		names := slices.SortedFunc(maps.Keys(kernels), func(a, b string) int { return -cmp.Compare(kernels[a].micros, kernels[b].micros) })
		others := total.micros - kernels["cuBLAS"].micros
		fmt.Fprintf(&out, "\n%s: %d launches, %.0f µs; with TF32 %.0f to %.0f µs; with three products in TF32 %.0f µs\n",
			w.name, total.launches, total.micros, others+d.tf32[0], others+d.tf32[1], others+d.split)
		for _, name := range names {
			k := kernels[name]
			fmt.Fprintf(&out, "%-24s %4d %6d %8d %7.1f\n", name, k.launches, k.blocks, k.cycles, k.micros)
		}
		if err := errors.Join(r.Close(), e.Close()); err != nil {
			t.Error(err)
		}
	}
	if *update {
		if err := os.WriteFile(file, []byte(out.String()), 0o666); err != nil {
			t.Fatal(err)
		}
		return
	}
	before, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	now, then := figures(out.String()), figures(string(before))
	for name, v := range now {
		old, ok := then[name]
		if !ok || v > 1.1*old {
			t.Errorf("%s: %.0f, more than a tenth above the %.0f of %s: see what became slower, or run the test with -update", name, v, old, file)
		}
	}
}

// figures reads a table of estimates: the time of each step, and of each of its
// kernels the cycles.
func figures(table string) map[string]float64 {
	all := map[string]float64{}
	workload := ""
	for _, line := range strings.Split(table, "\n") {
		var launches, blocks int
		var kernel string
		var v float64
		if name, rest, ok := strings.Cut(line, ": "); ok && line[0] != '#' {
			workload = name
			if _, err := fmt.Sscanf(rest, "%d launches, %f µs", &launches, &v); err == nil {
				all[workload] = v
			}
		} else if n, _ := fmt.Sscan(line, &kernel, &launches, &blocks, &v); n == 4 {
			all[workload+", "+kernel] = v
		}
	}
	return all
}
