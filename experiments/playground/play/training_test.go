package play

import (
	"context"
	"encoding/json"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/specmatch/specmatch/backend/cpu"
	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/specmatch"
	"github.com/specmatch/specmatch/specmatch/method"
	"github.com/specmatch/specmatch/specmatch/train"
	"github.com/specmatch/specmatch/tensor"
)

var usual = Settings{Batch: 60, Beta: 0.05, Kappa: 10, P: 80, Tau: 0.2, Adjacency: "sigmoid"}

func started(t *testing.T, s Settings) *Training {
	t.Helper()
	tr, err := NewTraining(s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(tr.Close)
	return tr
}

func steps(t *testing.T, tr *Training, n int) (r *Report) {
	t.Helper()
	for range n {
		var err error
		if r, err = tr.Step(); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

// TestTraining: the page's training is the method's, bit for bit, and what it hands out
// is the desktop's.
func TestTraining(t *testing.T) {
	tr := started(t, usual)
	base, err := tr.Baselines()
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("untrained %v, with statistics %v, counted labels %v", base.Untrained.Accuracy, base.Statistics, base.Labels)
	if base.Labels > 50 || base.Untrained.Accuracy < 60 || base.Statistics < 60 {
		t.Errorf("baselines %+v", base)
	}
	r := steps(t, tr, 8)
	if r.Epoch != 2 || r.Step != 8 || r.Eval == nil || len(r.Eval.Points) != 480 || r.Views.N != 60 || len(r.Views.Edges[0]) != 60*59/2 {
		t.Errorf("after two epochs: %+v", r)
	}
	for k := range 2 {
		s := r.Views.Spectra[k]
		if len(s) != 60 || math.Abs(s[0]) > 1e-9 || s[59] > 2 {
			t.Errorf("spectrum %v", s)
		}
		if n := strings.Count(r.Views.Edges[k], "1"); n != 354 {
			t.Errorf("%d edges at the 80th percentile", n)
		}
	}

	setup := tr.setup
	setup.Backend = cpu.New(tensor.Float32)
	l, err := method.New(method.SpecMatch, setup)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := train.Run(context.Background(), l, train.Options{Epochs: 2}, nil); err != nil {
		t.Fatal(err)
	}
	other := &Training{be: setup.Backend, trainer: &specmatch.Trainer{Model: l.Model}}
	if !slices.Equal(tr.weights(), other.weights()) {
		t.Error("the method has other weights")
	}
	file, err := tr.Model()
	if err != nil {
		t.Fatal(err)
	}
	trained, err := l.Trained(tr.set, 2)
	if err != nil {
		t.Fatal(err)
	}
	var want strings.Builder
	if err := trained.Write(&want); err != nil || want.String() != string(file) {
		t.Errorf("the method has another model file, %v", err)
	}
	csv, err := tr.CSV()
	if err != nil || strings.Count(csv, "\n") != 241 {
		t.Errorf("a table of %d lines, %v", strings.Count(csv, "\n"), err)
	}
	if command, same := tr.Command(); !same || !strings.Contains(command, "-epochs 2 -beta 0.05 -kappa 10 -percentile 80 -tau 0.2 -adjacency sigmoid") {
		t.Errorf("%s, %v", command, same)
	}
}

// TestSliders: settings act from the next step on; with the hard threshold β changes
// nothing.
func TestSliders(t *testing.T) {
	after := func(change func(*Settings)) []float64 {
		tr := started(t, usual)
		steps(t, tr, 1)
		s := usual
		if change(&s); s != usual {
			if err := tr.Set(s); err != nil {
				t.Fatal(err)
			}
			if _, same := tr.Command(); same {
				t.Error("the command line repeats a run with changes")
			}
		}
		steps(t, tr, 1)
		return tr.weights()
	}
	same := after(func(*Settings) {})
	for name, change := range map[string]func(*Settings){
		"β": func(s *Settings) { s.Beta = 1 }, "κ": func(s *Settings) { s.Kappa = 3 }, "p": func(s *Settings) { s.P = 50 },
		"τ": func(s *Settings) { s.Tau = 0.5 }, "adjacency": func(s *Settings) { s.Adjacency = "ste" },
	} {
		if slices.Equal(after(change), same) {
			t.Errorf("%s does not act", name)
		}
	}
	hard := func(beta float64) []float64 {
		return after(func(s *Settings) { s.Adjacency, s.Beta = "hard", beta })
	}
	if !slices.Equal(hard(0), hard(7)) {
		t.Error("with the hard threshold, β changes the weights")
	}
	for _, change := range []func(*Settings){
		func(s *Settings) { s.Beta = -1 }, func(s *Settings) { s.Tau = 0 }, func(s *Settings) { s.P = 101 },
		func(s *Settings) { s.Adjacency = "?" }, func(s *Settings) { s.Batch = 1 },
	} {
		s := usual
		if change(&s); func() bool { _, err := NewTraining(s); return err == nil }() {
			t.Errorf("%+v is a setting", s)
		}
	}
}

// TestStartAgain: a training that starts as one before has its baselines and points, measured once.
func TestStartAgain(t *testing.T) {
	var s Session
	request, err := json.Marshal(usual)
	if err != nil {
		t.Fatal(err)
	}
	epoch := func() (answers []string) {
		answers = append(answers, s.Call("start", string(request)))
		for range len(dataset.Default().Graphs) / usual.Batch {
			answers = append(answers, s.Call("step", "{}"))
		}
		return answers
	}
	first := epoch()
	if !strings.Contains(first[0], `"statistics"`) || !strings.Contains(first[len(first)-1], `"points"`) {
		t.Errorf("%.200s … %.200s", first[0], first[len(first)-1])
	}
	if second := epoch(); !slices.Equal(first, second) {
		t.Error("the second training differs from the first")
	}
	if len(s.baselines) != 1 {
		t.Errorf("measured %d times", len(s.baselines))
	}
}

// TestWeights writes the weights after each of five steps, and the model file, into the file that
// PLAYGROUND_WEIGHTS names: for the test that compares engines.
func TestWeights(t *testing.T) {
	path := os.Getenv("PLAYGROUND_WEIGHTS")
	if path == "" {
		t.Skip("PLAYGROUND_WEIGHTS names no file")
	}
	tr := started(t, usual)
	var w struct {
		Steps [][]float64
		Model []byte
	}
	for range 5 {
		steps(t, tr, 1)
		w.Steps = append(w.Steps, tr.weights())
	}
	var err error
	if w.Model, err = tr.Model(); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(w)
	if err == nil {
		err = os.WriteFile(path, text, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func BenchmarkStep(b *testing.B) {
	tr, err := NewTraining(usual)
	if err != nil {
		b.Fatal(err)
	}
	defer tr.Close()
	for b.Loop() {
		if _, err := tr.Step(); err != nil {
			b.Fatal(err)
		}
	}
}

// weights returns all weights and running statistics of the model.
func (t *Training) weights() (all []float64) {
	m := t.trainer.Model
	add := func(x *tensor.Tensor) {
		v := make([]float64, x.Len())
		t.be.Download(v, x)
		all = append(all, v...)
	}
	for _, p := range m.Parameters() {
		add(p.Value)
	}
	for _, b := range m.Buffers() {
		add(b.Value)
	}
	return all
}
