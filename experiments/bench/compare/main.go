// Command compare times experiments/bench against another implementation of
// the same training step, run by run in turn, A B A B, so that a machine whose
// speed drifts is the same for both:
//
//	go run ./experiments/bench/compare -peer 'python3 experiments/bench/peer/step.py' -threads 1
//
// The peer is a command that prints one JSON object with the step's median in
// milliseconds as median_ms.total, and takes --threads N; a command given after
// -peer2, if any, takes part in the same way. With -kernels the engine's matrix
// products and sums over neighbours are timed instead, in the shapes of training,
// against those of a peer that answers as peer/kernels.py does:
//
//	go run ./experiments/bench/compare -kernels -peer 'python3 experiments/bench/peer/kernels.py'
//
// With two threads, a sentinel before and after every round says whether the
// second core was there: it runs a register-only loop on one thread and then on
// two, and rounds in which two threads did less than 1.8 times the work are not
// counted.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/specmatch/specmatch/experiments/internal/cli"
	"github.com/specmatch/specmatch/experiments/internal/table"
)

func main() { cli.Main(run) }

// minScaling is the throughput of two threads over one below which the second
// core is taken to be busy with something else.
const minScaling = 1.8

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	peer, peer2, workload, threads, rounds, steps, kernels := "", "", "unsupervised", 1, 5, 60, false
	flags := cli.NewFlagSet("bench/compare", "Times one training step against another implementation, in turn.", "-peer 'python3 experiments/bench/peer/step.py --layers sparse' -threads 2")
	cli.Var(flags, &peer, "peer", cli.Text, "`command` of the other implementation, split at blanks")
	cli.Var(flags, &peer2, "peer2", cli.Text, "`command` of a third")
	cli.Var(flags, &workload, "workload", cli.Text, "`what` to train, as experiments/bench names it")
	cli.Var(flags, &threads, "threads", cli.Int(1), "`threads` for each")
	cli.Var(flags, &rounds, "rounds", cli.Int(1), "`rounds` to count")
	cli.Var(flags, &steps, "steps", cli.Int(1), "our `steps` in a round")
	flags.BoolVar(&kernels, "kernels", kernels, "compare single kernels, not a step")
	if err := flags.Parse(args, stdout); err != nil {
		return err
	}
	if peer == "" {
		return cli.Usagef("-peer is needed: the command to compare with")
	}
	if kernels {
		return compareKernels(ctx, peer, threads, rounds, stdout, stderr)
	}
	dir, err := os.MkdirTemp("", "specmatch-compare")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	bench := filepath.Join(dir, "bench")
	build := exec.CommandContext(ctx, "go", "build", "-o", bench, "github.com/specmatch/specmatch/experiments/bench")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w\n%s", err, out)
	}

	n := strconv.Itoa(threads)
	contestants := []contestant{
		{name: "specmatch", command: []string{bench, "-workload", workload, "-steps", strconv.Itoa(steps), "-json"}, env: "GOMAXPROCS=" + n, field: []string{"ms_per_step"}},
		{name: "peer: " + peer, command: append(strings.Fields(peer), "--threads", n), field: []string{"median_ms", "total"}},
	}
	if peer2 != "" {
		contestants = append(contestants, contestant{name: "peer: " + peer2, command: append(strings.Fields(peer2), "--threads", n), field: []string{"median_ms", "total"}})
	}
	skipped := 0
	for counted := 0; counted < rounds; {
		before := scaling(threads)
		times := make([]float64, len(contestants))
		for i, c := range contestants {
			if times[i], err = c.run(ctx); err != nil {
				return err
			}
		}
		after := scaling(threads)
		if threads == 2 && min(before, after) < minScaling {
			fmt.Fprintf(stderr, "round left out: the second core ran at %.2f and %.2f of two\n", before, after)
			if skipped++; skipped > 4*rounds {
				return fmt.Errorf("the second core is never free: %d rounds left out", skipped)
			}
			continue
		}
		counted++
		fmt.Fprintf(stderr, "round %d of %d:", counted, rounds)
		for i := range contestants {
			contestants[i].times = append(contestants[i].times, times[i])
			fmt.Fprintf(stderr, " %.2f ms", times[i])
		}
		fmt.Fprintln(stderr)
	}

	t := table.New("step", table.Names("median ms", "min", "max", "ratio to specmatch")...)
	t.Caption = fmt.Sprintf("%s, %d thread(s), %d rounds in turn (%d left out by the sentinel). The ratio is the median over rounds.", workload, threads, rounds, skipped)
	for _, c := range contestants {
		var ratios []float64
		for i, ms := range c.times {
			ratios = append(ratios, ms/contestants[0].times[i])
		}
		t.Add(c.name, table.Number(median(c.times), 2), table.Number(slices.Min(c.times), 2), table.Number(slices.Max(c.times), 2), table.Number(median(ratios), 2))
	}
	return t.WriteMarkdown(stdout)
}

type contestant struct {
	name    string
	command []string
	env     string
	field   []string // where the JSON has the milliseconds
	times   []float64
}

// run runs the command once and returns its median step.
func (c *contestant) run(ctx context.Context) (float64, error) {
	cmd := exec.CommandContext(ctx, c.command[0], c.command[1:]...)
	cmd.Env = os.Environ()
	if c.env != "" {
		cmd.Env = append(cmd.Env, c.env)
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return 0, fmt.Errorf("%s: %w\n%s", strings.Join(c.command, " "), err, stderr.Bytes())
	}
	var v any
	if err := json.Unmarshal(out, &v); err != nil {
		return 0, fmt.Errorf("%s: output is not JSON: %w", c.name, err)
	}
	for _, f := range c.field {
		m, ok := v.(map[string]any)
		if !ok || m[f] == nil {
			return 0, fmt.Errorf("%s: the output has no field %s", c.name, strings.Join(c.field, "."))
		}
		v = m[f]
	}
	ms, ok := v.(float64)
	if !ok {
		return 0, fmt.Errorf("%s: %s is not a number", c.name, strings.Join(c.field, "."))
	}
	return ms, nil
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

func median(x []float64) float64 {
	x = slices.Clone(x)
	slices.Sort(x)
	if len(x)%2 == 0 {
		return (x[len(x)/2-1] + x[len(x)/2]) / 2
	}
	return x[len(x)/2]
}
