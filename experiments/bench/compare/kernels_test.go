package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
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

// TestKernels compares some kernels with plain loops in another process: both
// sides must agree on the operands and on what is computed.
func TestKernels(t *testing.T) {
	be := cpu.New(tensor.Float32, cpu.Workers(1))
	defer be.Close()
	var ks []*kernel
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
	t.Setenv(peerEnv, "right")
	got, err := inTurn(t.Context(), be, ks, os.Args[0], 1, 2, time.Millisecond, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := got.WriteMarkdown(&out); err != nil {
		t.Fatal(err)
	}
	for _, k := range ks {
		rate := fmt.Sprintf("%.1f", k.flops/1.5/1e6)
		if len(k.ours) != 2 || k.ours[0] <= 0 || !strings.Contains(out.String(), "| "+k.name+" |") || !strings.Contains(out.String(), "| "+rate+" |") {
			t.Errorf("%s: times %v, the peer's rate %s:\n%s", k.name, k.ours, rate, out.String())
		}
	}

	t.Setenv(peerEnv, "wrong")
	if _, err := inTurn(t.Context(), be, ks[:1], os.Args[0], 1, 1, time.Millisecond, io.Discard); err == nil || !strings.Contains(err.Error(), "computes another result") {
		t.Errorf("a peer with wrong results: %v", err)
	}
	if _, err := inTurn(t.Context(), be, ks[:1], "false", 1, 1, time.Millisecond, io.Discard); err == nil {
		t.Error("a peer that ends at once is no error")
	}
}
