package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/backend/cpu"
	"github.com/specmatch/specmatch/backend/cpu/simd"
	"github.com/specmatch/specmatch/experiments/internal/table"
	"github.com/specmatch/specmatch/gnn/random"
	"github.com/specmatch/specmatch/tensor"
)

// A kernel is one primitive of the engine at one size, and the request that
// makes peer/kernels.py prepare the same; see there for what the operands hold.
type kernel struct {
	name    string
	flops   float64
	request map[string]any
	out     *tensor.Tensor
	call    func()

	ours, theirs []float64 // milliseconds a call, by round
}

// products are those of a training step: op(A) [m×k] times op(B) [k×n].
var products = []struct {
	name           string
	transA, transB bool
	m, n, k        int
}{
	{"TU layer 1", false, false, 15000, 32, 37},
	{"TU layer 2", false, false, 15000, 32, 32},
	{"TU layer 1, dW", true, false, 37, 32, 15000},
	{"TU layer 2, dW", true, false, 32, 32, 15000},
	{"TU layer 2, dX", false, true, 15000, 32, 32},
	{"ResGCN", false, false, 15000, 128, 128},
	{"ResGCN, dW", true, false, 128, 128, 15000},
	{"ResGCN, dX", false, true, 15000, 128, 128},
	{"molecules, up", false, false, 7000, 600, 300},
	{"molecules, down", false, false, 7000, 300, 600},
	{"molecules, up, dW", true, false, 300, 600, 7000},
	{"molecules, down, dW", true, false, 600, 300, 7000},
	{"molecules, up, dX", false, true, 7000, 300, 600},
	{"molecules, down, dX", false, true, 7000, 600, 300},
	{"similarities, 1024", false, true, 1024, 1024, 96},
	{"similarities, 512", false, true, 512, 512, 96},
	{"their gradient", false, false, 1024, 96, 1024},
	{"square, 1024", false, false, 1024, 1024, 1024},
	{"square, 2048", false, false, 2048, 2048, 2048},
}

// numbers returns a matrix of the numbers that the peer's have too.
func numbers(be backend.Backend, rows, cols int) *tensor.Tensor {
	x := make([]float64, rows*cols)
	for i := range x {
		x[i] = float64(i*7919%1009-504) / 1009
	}
	t := be.Alloc(rows, cols)
	be.Upload(t, x)
	return t
}

// shaped returns rows×cols numbers, or cols×rows if they are to be transposed.
func shaped(be backend.Backend, transposed bool, rows, cols int) *tensor.Tensor {
	if transposed {
		rows, cols = cols, rows
	}
	return numbers(be, rows, cols)
}

// kernels lists what is compared.
func kernels(be backend.Backend) []*kernel {
	var ks []*kernel
	for _, p := range products {
		a, b, c := shaped(be, p.transA, p.m, p.k), shaped(be, p.transB, p.k, p.n), be.Alloc(p.m, p.n)
		form := func(t bool) string { return map[bool]string{true: "ᵀ"}[t] }
		ks = append(ks, &kernel{
			name:    fmt.Sprintf("A%s·B%s, %d×%d×%d, %s", form(p.transA), form(p.transB), p.m, p.n, p.k, p.name),
			flops:   2 * float64(p.m) * float64(p.n) * float64(p.k),
			request: map[string]any{"op": "gemm", "ta": p.transA, "tb": p.transB, "m": p.m, "n": p.n, "k": p.k},
			out:     c, call: func() { be.Gemm(c, p.transA, p.transB, 1, a, b, 0) },
		})
	}
	for _, edges := range []int{32, 64} {
		ptr, adj := molecules(edges)
		n := len(ptr) - 1
		a := &backend.CSR{Rows: n, Cols: n, Ptr: be.Indices(ptr), Col: be.Indices(adj)}
		for _, width := range []int{32, 128, 300} {
			x, y := numbers(be, n, width), be.Alloc(n, width)
			ks = append(ks, &kernel{
				name:    fmt.Sprintf("x + A·x, %d nodes, %d entries, width %d", n, len(adj), width),
				flops:   float64(width * (n + len(adj))),
				request: map[string]any{"op": "spmm", "ptr": ptr, "adj": adj, "width": width},
				out:     y, call: func() { be.SpMM(y, a, x, 1) },
			})
		}
	}
	return ks
}

// molecules returns 512 graphs of 30 nodes, each a random tree and what edges
// are left, without double edges: a mini-batch of molecules with 32.
func molecules(edges int) (ptr, adj []int32) {
	const graphs, nodes = 512, 30
	rng := random.Stream(0, 1<<32, 0, 0)
	ptr = []int32{0}
	for g := range graphs {
		var linked [nodes][nodes]bool
		for e := range edges {
			u, v := e+1, rng.IntN(min(e, nodes-1)+1)
			if u >= nodes {
				u = rng.IntN(nodes)
			}
			if u != v {
				linked[u][v], linked[v][u] = true, true
			}
		}
		for u := range nodes {
			for v := range nodes {
				if linked[u][v] {
					adj = append(adj, int32(g*nodes+v))
				}
			}
			ptr = append(ptr, int32(len(adj)))
		}
	}
	return ptr, adj
}

// compareKernels times the engine's kernels and the peer's in turn, kernel by
// kernel: ours, theirs, ours, theirs.
func compareKernels(ctx context.Context, command string, threads, rounds int, stdout, stderr io.Writer) error {
	be := cpu.New(tensor.Float32, cpu.Workers(threads))
	defer be.Close()
	t, err := inTurn(ctx, be, kernels(be), command, threads, rounds, 200*time.Millisecond, stderr)
	if err != nil {
		return err
	}
	return t.WriteMarkdown(stdout)
}

// inTurn times kernels and the peer's, each for so long in every round.
func inTurn(ctx context.Context, be backend.Backend, ks []*kernel, command string, threads, rounds int, block time.Duration, stderr io.Writer) (*table.Table, error) {
	peer, err := start(ctx, command, threads)
	if err != nil {
		return nil, err
	}
	defer peer.stop()
	skipped := 0
	for _, k := range ks {
		if err := peer.prepare(be, k); err != nil {
			return nil, err
		}
		for len(k.ours) < rounds {
			before := scaling(threads)
			ours := medianCall(k.call, block)
			theirs, err := peer.ask(map[string]any{"op": "time", "ms": block.Milliseconds()}, "ms")
			if err != nil {
				return nil, err
			}
			after := scaling(threads)
			if threads == 2 && min(before, after) < minScaling {
				fmt.Fprintf(stderr, "left out: the second core ran at %.2f and %.2f of two\n", before, after)
				if skipped++; skipped > 4*rounds*len(ks) {
					return nil, fmt.Errorf("the second core is never free: %d measurements left out", skipped)
				}
				continue
			}
			k.ours, k.theirs = append(k.ours, ours), append(k.theirs, theirs)
		}
		fmt.Fprintf(stderr, "%s: %.2f\n", k.name, k.ratio())
	}
	t := table.New("kernel", table.Names("specmatch GFLOP/s", "peer GFLOP/s", "ratio", "least", "greatest")...)
	t.Caption = fmt.Sprintf("%v, %d thread(s), against %s; medians of %d rounds in turn (%d left out by the sentinel). A ratio above 1 says that specmatch is faster.",
		simd.Level(), threads, peer.versions, rounds, skipped)
	for _, k := range ks {
		r := k.ratios()
		rate := func(ms []float64) table.Cell { return table.Number(k.flops/median(ms)/1e6, 1) }
		t.Add(k.name, rate(k.ours), rate(k.theirs), table.Number(median(r), 2), table.Number(slices.Min(r), 2), table.Number(slices.Max(r), 2))
	}
	return t, nil
}

// ratios are the peer's times over ours, round by round.
func (k *kernel) ratios() []float64 {
	var r []float64
	for i, ms := range k.ours {
		r = append(r, k.theirs[i]/ms)
	}
	return r
}

func (k *kernel) ratio() float64 { return median(k.ratios()) }

// medianCall is the median time of a call in milliseconds, over blocks of calls
// of about 4 ms that fill the given time, as the peer measures.
func medianCall(f func(), during time.Duration) float64 {
	f()
	f()
	begin := time.Now()
	f()
	calls := max(1, int(4*time.Millisecond/max(time.Since(begin), 1)))
	var times []float64
	for end := time.Now().Add(during); time.Now().Before(end) || len(times) < 5; {
		begin = time.Now()
		for range calls {
			f()
		}
		times = append(times, float64(time.Since(begin))/float64(time.Millisecond)/float64(calls))
	}
	return median(times)
}

// kernelPeer is a running peer/kernels.py.
type kernelPeer struct {
	command  string
	versions string
	cmd      *exec.Cmd
	in       io.WriteCloser
	out      *bufio.Scanner
}

func start(ctx context.Context, command string, threads int) (*kernelPeer, error) {
	words := append(strings.Fields(command), "--threads", fmt.Sprint(threads))
	p := &kernelPeer{command: command, cmd: exec.CommandContext(ctx, words[0], words[1:]...)}
	p.cmd.Stderr = os.Stderr
	var err error
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.out = bufio.NewScanner(out)
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	first, err := p.answer()
	if err != nil {
		p.stop()
		return nil, err
	}
	p.versions, _ = first["versions"].(string)
	return p, nil
}

// stop ends the peer: without requests it has nothing to do.
func (p *kernelPeer) stop() {
	p.in.Close()
	p.cmd.Wait()
}

func (p *kernelPeer) answer() (map[string]any, error) {
	if !p.out.Scan() {
		if err := p.out.Err(); err != nil {
			return nil, fmt.Errorf("%s: %w", p.command, err)
		}
		return nil, fmt.Errorf("%s: ended without an answer", p.command)
	}
	var a map[string]any
	if err := json.Unmarshal(p.out.Bytes(), &a); err != nil {
		return nil, fmt.Errorf("%s: answer is not JSON: %w", p.command, err)
	}
	return a, nil
}

// ask sends a request and returns one number of the answer.
func (p *kernelPeer) ask(request map[string]any, field string) (float64, error) {
	line, err := json.Marshal(request)
	if err != nil {
		return 0, err
	}
	if _, err := p.in.Write(append(line, '\n')); err != nil {
		return 0, fmt.Errorf("%s: %w", p.command, err)
	}
	a, err := p.answer()
	if err != nil {
		return 0, err
	}
	v, ok := a[field].(float64)
	if !ok {
		return 0, fmt.Errorf("%s: the answer has no number %q", p.command, field)
	}
	return v, nil
}

// prepare makes the peer ready for a kernel and compares the results: ratios of
// different work mean nothing.
func (p *kernelPeer) prepare(be backend.Backend, k *kernel) error {
	theirs, err := p.ask(k.request, "sum")
	if err != nil {
		return err
	}
	k.call()
	y, w := make([]float64, k.out.Len()), make([]float64, k.out.Len())
	be.Download(y, k.out)
	weights := numbers(be, k.out.Rows, k.out.Cols)
	be.Download(w, weights)
	be.Free(weights)
	ours, size := 0.0, 0.0
	for i := range y {
		ours += y[i] * w[i]
		size += math.Abs(y[i] * w[i])
	}
	if math.Abs(ours-theirs) > 1e-6*size {
		return fmt.Errorf("%s: %s computes another result: %v, want %v", k.name, p.command, theirs, ours)
	}
	return nil
}
