package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/specmatch/specmatch/backend/cpu"
	"github.com/specmatch/specmatch/tensor"
)

// peerEnv makes the test program a peer: "right", or "wrong" in its results.
const peerEnv = "SPECMATCH_TEST_PEER"

func TestMain(m *testing.M) {
	if how := os.Getenv(peerEnv); how != "" {
		plainPeer(os.Stdin, os.Stdout, how == "wrong")
		return
	}
	os.Exit(m.Run())
}

// plainPeer answers as peer/kernels.py does, with plain loops.
func plainPeer(in io.Reader, out io.Writer, wrong bool) {
	answer := func(x map[string]any) {
		line, _ := json.Marshal(x)
		fmt.Fprintf(out, "%s\n", line)
	}
	number := func(i int) float64 { return float64(float32(float64(i*7919%1009-504) / 1009)) }
	at := func(transposed bool, i, j, rows, cols int) float64 {
		if transposed {
			return number(j*rows + i)
		}
		return number(i*cols + j)
	}
	answer(map[string]any{"versions": "plain loops"})
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var q struct {
			Op             string
			TA, TB         bool
			M, N, K, Width int
			Ptr, Adj       []int
		}
		if err := json.Unmarshal(lines.Bytes(), &q); err != nil {
			panic(err)
		}
		sum := 0.0
		switch q.Op {
		case "time":
			answer(map[string]any{"ms": 1.5})
			continue
		case "gemm":
			for i := range q.M {
				for j := range q.N {
					y := 0.0
					for k := range q.K {
						y += at(q.TA, i, k, q.M, q.K) * at(q.TB, k, j, q.K, q.N)
					}
					sum += y * number(i*q.N+j)
				}
			}
		case "spmm":
			for i := range len(q.Ptr) - 1 {
				for j := range q.Width {
					y := number(i*q.Width + j)
					for _, k := range q.Adj[q.Ptr[i]:q.Ptr[i+1]] {
						y += number(k*q.Width + j)
					}
					sum += y * number(i*q.Width+j)
				}
			}
		}
		if wrong {
			sum += 100
		}
		answer(map[string]any{"sum": sum})
	}
}

// rounds is a benchmark's Loop of so many rounds.
func rounds(n int) func() bool {
	return func() bool { n--; return n >= 0 }
}

// TestPeerKernels compares some kernels with plain loops in another process: both
// sides must agree on the operands and on what is computed.
func TestPeerKernels(t *testing.T) {
	be := cpu.New(tensor.Float32, cpu.Workers(1))
	defer be.Close()
	var ks []kernel
	for _, k := range kernels(be) {
		for _, size := range []string{"15000×32×37", "37×32×15000", "A·Bᵀ, 15000×32×32", "width 32"} {
			if strings.Contains(k.name, size) {
				ks = append(ks, k)
			}
		}
	}
	if len(ks) != 5 {
		t.Fatalf("%d kernels, want 5", len(ks))
	}
	against := func(how, command string) (*kernelPeer, error) {
		t.Setenv(peerEnv, how)
		return start(t.Context(), command, 1)
	}
	peer, err := against("right", os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	defer peer.stop()
	for _, k := range ks {
		times, err := peer.inTurn(be, k, rounds(2), 1, time.Millisecond)
		if err != nil {
			t.Fatal(err)
		}
		if ours, theirs := times[0], times[1]; len(ours) != 2 || ours[0] <= 0 || !slices.Equal(theirs, []float64{1.5, 1.5}) {
			t.Errorf("%s: times %v", k.name, times)
		}
	}

	wrong, err := against("wrong", os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	defer wrong.stop()
	if _, err := wrong.inTurn(be, ks[0], rounds(1), 1, time.Millisecond); err == nil || !strings.Contains(err.Error(), "computes another result") {
		t.Errorf("a peer with wrong results: %v", err)
	}
	if _, err := against("right", "false"); err == nil {
		t.Error("a peer that ends at once is no error")
	}
}

// TestPeerStep: what a peer prints is read, and what it does not is said.
func TestPeerStep(t *testing.T) {
	for script, want := range map[string]string{
		`echo '{"median_ms":{"total":2.5}}'`: "2.5",
		`echo '{"median_ms":{"total":0}}'`:   "no median_ms.total",
		`echo oops`:                          "not JSON",
		`echo no torch >&2; exit 1`:          "no torch",
	} {
		ms, err := peerStep(t.Context(), []string{"sh", "-c", script})
		if got := fmt.Sprint(ms, err); !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", script, got, want)
		}
	}
	if got := ratios([]float64{1, 2}, []float64{3, 4}); !slices.Equal(got, []float64{3, 2}) {
		t.Errorf("ratios %v", got)
	}
}
