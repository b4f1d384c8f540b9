package train_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/autodiff/nn"
	"github.com/specmatch/specmatch/autodiff/optim"
	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/backend/ref"
	"github.com/specmatch/specmatch/gnn/augment"
	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/specmatch/train"
)

// toy has everything that a learner may have: steps whose metrics come one late,
// batches that teach nothing, state that Begin makes and that End changes, views
// that depend on it, and an end of its own.
type toy struct {
	train.Defaults
	line *nn.Linear
	*train.Minimizer
	be backend.Backend

	state struct {
		Memory, Target float64 // made by Begin; moved by End
		Skip           int     // the batches that teach nothing
		Begun          []int
	}
	late  train.Metrics
	stop  int // the epoch that is the last; 0 is none
	onEnd func() error
	steps int            // in this start
	at    map[int]func() // what happens at a step of this start
}

func newToy() *toy {
	be := ref.New()
	one := &graph.Graph{Ptr: []int32{0, 0}, X: graph.Features{Width: 1, Category: []int32{0}}}
	l := nn.NewLinear(be, "line", 1, 1, nn.XavierUniform, rand.New(rand.NewPCG(1, 2)))
	y := &toy{line: l, Minimizer: train.NewMinimizer(be, l, 0.1), be: be, at: map[int]func(){}}
	y.Loader = &augment.Loader{Graphs: slices.Repeat([]*graph.Graph{one}, 10), Batch: 3, Collator: augment.Collator{Views: []augment.Augmentation{augment.Identity{}}}}
	y.state.Target, y.state.Skip = 3, 2
	return y
}

func (y *toy) Begin(ctx context.Context, epoch int) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	y.state.Begun = append(y.state.Begun, epoch)
	y.state.Memory = y.state.Target / float64(epoch+2)
	return nil
}

// Epoch has one batch less where the state says so.
func (y *toy) Epoch(ctx context.Context, epoch int) iter.Seq2[[]int, *graph.Batch] {
	return func(yield func([]int, *graph.Batch) bool) {
		k := 0
		for samples, b := range y.Loader.Epoch(ctx, epoch) {
			if k++; k > 3 && y.state.Memory > 1 || !yield(samples, b) {
				return
			}
		}
	}
}

func (y *toy) Step(b train.Batch) (train.Metrics, error) {
	y.steps++
	if f := y.at[y.steps]; f != nil {
		f()
	}
	m, err := y.Minimize(func() *autodiff.Var {
		if b.Index == y.state.Skip {
			return nil
		}
		x := y.Tape.Matrix(len(b.Samples), 1, func() (v []float64) {
			for _, i := range b.Samples {
				v = append(v, float64(i)/10+y.state.Memory)
			}
			return v
		}())
		return y.line.Forward(x).Square().Mean()
	})
	if m == nil {
		return nil, err
	}
	before := y.late
	y.late = train.Metrics{"loss": m["loss"], "nan": math.NaN()}
	if b.Index == 0 {
		y.late["first"] = m["loss"]
	}
	return before, nil
}

func (y *toy) Last() (train.Metrics, error) {
	last := y.late
	y.late = nil
	return last, nil
}

func (y *toy) End(ctx context.Context, epoch int) (train.Metrics, error) {
	if y.onEnd != nil {
		if err := y.onEnd(); err != nil {
			return nil, err
		}
	}
	y.state.Target = math.Sqrt(y.state.Target + float64(epoch))
	y.state.Skip = (y.state.Skip + 1) % 3
	m := train.Metrics{"target": y.state.Target, "loss_at_end": math.Inf(1)}
	if y.stop > 0 && epoch+1 == y.stop {
		return m, train.ErrStop
	}
	return m, nil
}

func (y *toy) State() (nn.Module, any) {
	return optim.Checkpoint{Module: y.line, Optimizer: y.Adam}, &y.state
}

// bits is all that training leaves.
func (y *toy) bits(t *testing.T) string {
	t.Helper()
	var b bytes.Buffer
	tensors, values := y.State()
	if err := nn.Save(&b, tensors, nil); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%x %v", b.Bytes(), values)
}

// outcome is what a run reports and leaves.
type outcome struct {
	Epochs []train.Metrics
	Bits   string
}

func run(t *testing.T, ctx context.Context, y *toy, o train.Options) (outcome, error) {
	t.Helper()
	var out outcome
	_, err := train.Run(ctx, y, o, func(p train.Progress) error {
		if p.Ended {
			if p.Epoch != len(out.Epochs)+1 || p.Epochs != o.Epochs {
				t.Errorf("epoch %d of %d is reported after %d epochs", p.Epoch, p.Epochs, len(out.Epochs))
			}
			out.Epochs = append(out.Epochs, p.Metrics)
		}
		return nil
	})
	out.Bits = y.bits(t)
	return out, err
}

// epochs of the toy; they have three or four batches each.
const epochs = 5

// whole is a run that nothing interrupts.
func whole(t *testing.T, y *toy) outcome {
	t.Helper()
	out, err := run(t, t.Context(), y, train.Options{Epochs: epochs})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestInterrupted cancels a run at every one of its steps and at random ones after
// that, and takes it up: what it reports and leaves is what an uninterrupted run
// does.
func TestInterrupted(t *testing.T) {
	first := newToy()
	want := whole(t, first)
	total := first.steps
	rng := rand.New(rand.NewPCG(7, 7))
	for step := 1; step <= total; step++ {
		o := train.Options{Epochs: epochs, Checkpoint: filepath.Join(t.TempDir(), "c")}
		starts := 0
		for next := step; ; next = 1 + rng.IntN(total) {
			y := newToy()
			ctx, cancel := context.WithCancel(t.Context())
			y.at[next] = cancel
			got, err := run(t, ctx, y, o)
			cancel()
			if starts++; err == nil {
				if d := cmp.Diff(want, got); d != "" {
					t.Fatalf("interrupted at step %d and later, %d starts: %s", step, starts, d)
				}
				break
			}
			if !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
		}
		if starts < 2 {
			t.Fatalf("nothing was interrupted at step %d", step)
		}
	}
}

// TestKilled ends runs without a word at every step, between checkpoints of every
// step: nothing is lost but what came after the last one.
func TestKilled(t *testing.T) {
	killed := errors.New("killed")
	want := whole(t, newToy())
	for _, every := range []time.Duration{1, time.Hour} {
		for step := 1; step <= 15; step++ {
			o := train.Options{Epochs: epochs, Checkpoint: filepath.Join(t.TempDir(), "c"), Every: every}
			y := newToy()
			y.at[step] = func() { panic(killed) }
			func() {
				defer func() {
					if r := recover(); r != nil && r != killed {
						panic(r)
					}
				}()
				run(t, t.Context(), y, o)
			}()
			if _, err := os.Stat(o.Checkpoint); (err == nil) != (every == 1 && step > 1) {
				t.Fatalf("checkpoints every %v, killed at step %d: %v", every, step, err)
			}
			again := newToy()
			got, err := run(t, t.Context(), again, o)
			if d := cmp.Diff(want, got); d != "" || err != nil {
				t.Fatalf("checkpoints every %v, killed at step %d: %v\n%s", every, step, err, d)
			}
		}
	}
}

// TestEnded: a run at its end is reported again without a step, also one that the
// learner has ended, and one of fewer epochs is refused.
func TestEnded(t *testing.T) {
	for _, stop := range []int{0, 3} {
		o := train.Options{Epochs: epochs, Checkpoint: filepath.Join(t.TempDir(), "c")}
		y := newToy()
		y.stop = stop
		want, err := run(t, t.Context(), y, o)
		if err != nil || stop > 0 && len(want.Epochs) != stop {
			t.Fatalf("stop %d: %d epochs, %v", stop, len(want.Epochs), err)
		}
		again := newToy()
		got, err := run(t, t.Context(), again, o)
		if d := cmp.Diff(want, got); d != "" || err != nil || again.steps > 0 {
			t.Errorf("stop %d: %d more steps, %v: %s", stop, again.steps, err, d)
		}
		o.Epochs = 2
		if _, err := run(t, t.Context(), newToy(), o); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("has %d epochs, but the run has only 2", len(want.Epochs))) {
			t.Errorf("fewer epochs: %v", err)
		}
	}
}

// TestMetrics: an epoch's metrics are means over the steps that have them, and
// those of its end; Begin comes once an epoch.
func TestMetrics(t *testing.T) {
	y := newToy()
	out := whole(t, y)
	if !slices.Equal(y.state.Begun, []int{0, 1, 2, 3, 4}) {
		t.Errorf("begun: %v", y.state.Begun)
	}
	target := 3.0
	for e, m := range out.Epochs {
		target = math.Sqrt(target + float64(e))
		if m["target"] != target {
			t.Errorf("epoch %d: target %v, want %v", e, m["target"], target)
		}
		_, first := m["first"]
		if !(m["loss"] > 0) || first != (e%3 != 1) { // in those the first batch teaches nothing
			t.Errorf("epoch %d: %v", e, m)
		}
		for _, name := range []string{"nan", "loss_at_end"} {
			if _, ok := m[name]; ok || !math.IsNaN(m.Get(name)) {
				t.Errorf("epoch %d: %s is %v", e, name, m.Get(name))
			}
		}
	}
}

// TestErrors: what goes wrong ends the run, says where, and leaves no checkpoint of
// a state that a resumed run could not have.
func TestErrors(t *testing.T) {
	broken := errors.New("broken")
	y := newToy()
	y.onEnd = func() error { return broken }
	file := filepath.Join(t.TempDir(), "c")
	if _, err := run(t, t.Context(), y, train.Options{Epochs: 2, Checkpoint: file}); !errors.Is(err, broken) || !strings.Contains(err.Error(), "epoch 1: ") {
		t.Errorf("End: %v", err)
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("a checkpoint after an error")
	}
	y = newToy()
	y.be.Fill(y.line.W.Value, math.Inf(1))
	if _, err := run(t, t.Context(), y, train.Options{Epochs: 2}); err == nil || !strings.Contains(err.Error(), "epoch 1: batch 1: train: step 0: the loss is") {
		t.Errorf("an infinite loss: %v", err)
	}
	y = newToy()
	y.Loader.Graphs = y.Loader.Graphs[:9]
	y.Loader.Batch = 9
	y.state.Skip = 0
	if _, err := run(t, t.Context(), y, train.Options{Epochs: 2}); err == nil || !strings.Contains(err.Error(), "epoch 1: no batch had anything to learn from") {
		t.Errorf("nothing to learn from: %v", err)
	}
	if _, err := train.Run(t.Context(), newToy(), train.Options{Epochs: 2}, func(p train.Progress) error {
		if p.Ended && p.Epoch == 2 {
			return broken
		}
		return nil
	}); err != broken {
		t.Errorf("each: %v", err)
	}
	// A failure is not hidden by an interruption at the same time.
	y = newToy()
	ctx, cancel := context.WithCancel(t.Context())
	y.onEnd = func() error { cancel(); return broken }
	if _, err := run(t, ctx, y, train.Options{Epochs: 2, Checkpoint: file}); !errors.Is(err, broken) {
		t.Errorf("End, interrupted: %v", err)
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("a checkpoint after an error and an interruption")
	}
	// A damaged checkpoint says what to do.
	for _, text := range []string{"", "nonsense", strings.Repeat("x", 100)} {
		if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		if _, err := run(t, t.Context(), newToy(), train.Options{Epochs: 2, Checkpoint: file}); err == nil || !strings.Contains(err.Error(), "remove "+file+" to train from the beginning") {
			t.Errorf("checkpoint %q: %v", text, err)
		}
	}
	tensors, _ := newToy().State()
	if err := nn.SaveFile(file, tensors, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := run(t, t.Context(), newToy(), train.Options{Epochs: 2, Checkpoint: file}); err == nil || !strings.Contains(err.Error(), "remove "+file) {
		t.Errorf("weights in place of a checkpoint: %v", err)
	}
}
