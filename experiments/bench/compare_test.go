package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/backend/cpu"
	"github.com/specmatch/specmatch/backend/cpu/simd"
	"github.com/specmatch/specmatch/gnn/random"
	"github.com/specmatch/specmatch/tensor"
)

// The benchmarks of this file time the same work here and elsewhere, run by run in turn,
// A B A B, so that a machine whose speed drifts is the same for both:
//
//	go test -run '^$' -bench PeerStep/unsupervised -cpu 1 -benchtime 5x ./experiments/bench -peer 'python3 peer/step.py --layers sparse'
//	go test -run '^$' -bench PeerKernels -cpu 1 -benchtime 5x ./experiments/bench -peer 'python3 peer/kernels.py'
//
// An iteration is a round. The first peer takes --threads N and --workload NAME and prints
// one JSON object with the step's median in milliseconds as median_ms.total; -peer may be
// repeated, and all take part in every round. The second answers as peer/kernels.py does.
// Figures are medians over the rounds; a ratio above 1 says that specmatch is faster.
var (
	peers []string
	steps = flag.Int("steps", 60, "our steps in a round of PeerStep")
)

func init() {
	flag.Func("peer", "`command` of another implementation, split at blanks", func(s string) error {
		peers = append(peers, s)
		return nil
	})
}

func BenchmarkPeerStep(b *testing.B) {
	if peers == nil {
		b.Skip("without -peer there is nothing to compare with")
	}
	for _, name := range slices.Sorted(maps.Keys(workloads)) {
		b.Run(name, func(b *testing.B) {
			threads := runtime.GOMAXPROCS(0)
			be := cpu.New(tensor.Float32)
			defer be.Close()
			contestants := []func() (float64, error){func() (float64, error) {
				r, err := measure(b.Context(), be, workloads[name], *steps, 10, false, nil)
				return r.StepMS, err
			}}
			for _, peer := range peers {
				command := append(strings.Fields(peer), "--threads", fmt.Sprint(threads), "--workload", name)
				contestants = append(contestants, func() (float64, error) { return peerStep(b.Context(), command) })
			}
			times, err := inTurn(b.Loop, threads, contestants...)
			if err != nil {
				b.Fatal(err)
			}
			report(b, times, func(ms float64) float64 { return ms }, "ms/step")
		})
	}
}

func BenchmarkPeerKernels(b *testing.B) {
	if len(peers) != 1 {
		b.Skip("want one -peer to compare with")
	}
	threads := runtime.GOMAXPROCS(0)
	be := cpu.New(tensor.Float32)
	defer be.Close()
	peer, err := start(b.Context(), peers[0], threads)
	if err != nil {
		b.Fatal(err)
	}
	defer peer.stop()
	b.Logf("%v against %s", simd.Level(), peer.versions)
	for _, k := range kernels(be) {
		b.Run(k.name, func(b *testing.B) {
			times, err := peer.inTurn(be, k, b.Loop, threads, 200*time.Millisecond)
			if err != nil {
				b.Fatal(err)
			}
			report(b, times, func(ms float64) float64 { return k.flops / ms / 1e6 }, "GFLOP/s")
		})
	}
}

// minScaling is the throughput of two threads over one below which the second core is
// taken to be busy with something else; rounds before or after which it is less do not
// count.
const minScaling = 1.8

// inTurn times the contestants in turn while next returns true, and returns what they
// took, by contestant and round.
func inTurn(next func() bool, threads int, contestants ...func() (float64, error)) (times [][]float64, err error) {
	times = make([][]float64, len(contestants))
	for left := 20; next(); {
		for counted := false; !counted; {
			before := scaling(threads)
			round := make([]float64, len(contestants))
			for i, time := range contestants {
				if round[i], err = time(); err != nil {
					return nil, err
				}
			}
			counted = threads != 2 || min(before, scaling(threads)) >= minScaling
			if !counted {
				if left--; left < 0 {
					return nil, fmt.Errorf("the second core is never free: 20 rounds left out")
				}
				continue
			}
			for i, ms := range round {
				times[i] = append(times[i], ms)
			}
		}
	}
	return times, nil
}

// report reports the median rates of all contestants, and of their times over ours the
// median, the least and the greatest.
func report(b *testing.B, times [][]float64, rate func(ms float64) float64, unit string) {
	b.ReportMetric(0, "ns/op") // of a round: says nothing
	b.ReportMetric(rate(medianOf(times[0])), unit)
	for i, theirs := range times[1:] {
		peer := fmt.Sprintf("peer%d-", i+1)
		ratios := ratios(times[0], theirs)
		b.ReportMetric(rate(medianOf(theirs)), peer+unit)
		b.ReportMetric(medianOf(ratios), peer+"ratio")
		b.ReportMetric(slices.Min(ratios), peer+"ratio-min")
		b.ReportMetric(slices.Max(ratios), peer+"ratio-max")
	}
}

// ratios are their times over ours, round by round.
func ratios(ours, theirs []float64) (r []float64) {
	for i, ms := range ours {
		r = append(r, theirs[i]/ms)
	}
	return r
}

// peerStep runs a peer's command once and returns its median step in milliseconds.
func peerStep(ctx context.Context, command []string) (float64, error) {
	name := strings.Join(command, " ")
	out, err := exec.CommandContext(ctx, command[0], command[1:]...).Output()
	if err != nil {
		if exit, ok := err.(*exec.ExitError); ok {
			err = fmt.Errorf("%w\n%s", err, exit.Stderr)
		}
		return 0, fmt.Errorf("%s: %w", name, err)
	}
	var answer struct {
		Median struct{ Total float64 } `json:"median_ms"`
	}
	if err := json.Unmarshal(out, &answer); err != nil {
		return 0, fmt.Errorf("%s: output is not JSON: %w", name, err)
	}
	if !(answer.Median.Total > 0) {
		return 0, fmt.Errorf("%s: the output has no median_ms.total", name)
	}
	return answer.Median.Total, nil
}

// scaling returns how much more a register-only loop gets done on that many
// threads than on one.
func scaling(threads int) float64 {
	if threads == 1 {
		return 1
	}
	single := spin(1)
	return spin(threads) / single
}

// spin counts the rounds of a dependent chain of multiply-adds that the threads
// finish together in 100 ms.
func spin(threads int) float64 {
	counts := make([]float64, threads)
	var wg sync.WaitGroup
	end := time.Now().Add(100 * time.Millisecond)
	for i := range counts {
		wg.Go(func() {
			x, n := 1.0, 0.0
			for time.Now().Before(end) {
				for range 1 << 14 {
					x = x*0.999 + 0.001
				}
				n++
			}
			if x < 2 { // always, but the compiler does not know
				counts[i] = n
			}
		})
	}
	wg.Wait()
	sum := 0.0
	for _, n := range counts {
		sum += n
	}
	return sum
}

func medianOf(x []float64) float64 {
	x = slices.Clone(x)
	slices.Sort(x)
	if len(x)%2 == 0 {
		return (x[len(x)/2-1] + x[len(x)/2]) / 2
	}
	return x[len(x)/2]
}

// A kernel is one primitive of the engine at one size, and the request that
// makes peer/kernels.py prepare the same; see there for what the operands hold.
type kernel struct {
	name    string
	flops   float64
	request map[string]any
	out     *tensor.Tensor
	call    func()
}

// peerProducts are those of a training step: op(A) [m×k] times op(B) [k×n].
var peerProducts = []struct {
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
func kernels(be backend.Backend) []kernel {
	var ks []kernel
	for _, p := range peerProducts {
		a, b, c := shaped(be, p.transA, p.m, p.k), shaped(be, p.transB, p.k, p.n), be.Alloc(p.m, p.n)
		form := func(t bool) string { return map[bool]string{true: "ᵀ"}[t] }
		ks = append(ks, kernel{
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
			ks = append(ks, kernel{
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
	return medianOf(times)
}

// kernelPeer is a running peer/kernels.py.
type kernelPeer struct {
	command  string
	versions string
	cmd      *exec.Cmd
	in       io.WriteCloser
	out      *bufio.Scanner
}

// inTurn times a kernel here and at the peer, each for so long in every round, after
// comparing their results.
func (p *kernelPeer) inTurn(be backend.Backend, k kernel, next func() bool, threads int, block time.Duration) ([][]float64, error) {
	if err := p.prepare(be, k); err != nil {
		return nil, err
	}
	return inTurn(next, threads,
		func() (float64, error) { return medianCall(k.call, block), nil },
		func() (float64, error) { return p.ask(map[string]any{"op": "time", "ms": block.Milliseconds()}, "ms") })
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
func (p *kernelPeer) prepare(be backend.Backend, k kernel) error {
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
