package method

import (
	"context"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/autodiff/nn"
	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/specmatch/train"
	"github.com/specmatch/specmatch/tensor"
)

// otherParts are a third view of the graphs of the goldens.
var otherParts = [][]int32{{1, 2}, {3}, {0, 0, 1}}

// ownRows are the places of the goldens' graphs among five.
var ownRows = []int{3, 1, 4}

// tableStudents are the methods with a teacher, on the table of the goldens.
func tableStudents() map[string]*taught {
	all := map[string]*taught{}
	for _, name := range []string{"ema", "ema-batch", "ema-memory"} {
		be := newFloat64()
		s := goldenSetup(be)
		s.Graphs = motifGraphs(5)
		l := newStudent(s, goldenModel(be), goldenModel(be), s.loader())
		switch name {
		case "ema":
			l.term = alignment
		case "ema-batch":
			l.term = batchGraph
		default:
			r := newRemembering(be, l)
			t := autodiff.NewTape(be)
			v := make([]float64, r.memory.Len())
			for i := range v {
				v[i] = math.Sin(2.9*float64(i) + 0.3)
			}
			r.remember(t.Matrix(5, tableWidth, v).L2Normalize(), []int{0, 1, 2, 3, 4})
			t.Reset()
		}
		all[name] = l
	}
	return all
}

func TestTeacherGolden(t *testing.T) {
	for name, l := range tableStudents() {
		checkGoldenPair(t, name, l.Minimizer, l.model, func(step int) train.Losses {
			if step > 0 {
				l.follow()
			}
			return l.losses(tableGraphs(someParts, otherParts), tableGraphs(rawPaths), ownRows)
		})
	}
}

func TestTeacherGradients(t *testing.T) {
	for name, l := range tableStudents() {
		// A teacher that is elsewhere, or the gradient of ema's term is near 0.
		for _, p := range l.teacher.Parameters() {
			l.be.Affine(p.Value, 0.5, p.Value, 0.1)
		}
		t.Run(name, func(t *testing.T) {
			checkGradients(t, l.be, l.model.Parameters(), "", func(tape *autodiff.Tape) *autodiff.Var {
				_, z := l.model.Forward(gnn.NewBatch(tape, tableGraphs(someParts, otherParts)), nn.Train)
				return l.term(z.SliceRows(0, 3).L2Normalize(), z.SliceRows(3, 6).L2Normalize(), l.teach(tape, tableGraphs(rawPaths)), ownRows)
			})
		})
	}
}

// unit returns random unit rows.
func unit(t *autodiff.Tape, rng *rand.Rand, n int) *autodiff.Var {
	v := make([]float64, n*tableWidth)
	for i := range v {
		v[i] = rng.NormFloat64()
	}
	return t.Matrix(n, tableWidth, v).L2Normalize()
}

// TestTeacherTerms: no term is negative, none depends on the order of the graphs, and
// each is 0 where it is to be: the alignment for views that are the teacher's, the
// graphs' for similarities that are half as strong as the teacher's, since the
// temperatures differ by 2. A graph of the whole set is that of a batch if there are
// no other graphs.
func TestTeacherTerms(t *testing.T) {
	be := newFloat64()
	tape, rng := autodiff.NewTape(be), rand.New(rand.NewPCG(7, 7))
	defer tape.Reset()
	u1, u2, target := unit(tape, rng, 6), unit(tape, rng, 6), unit(tape, rng, 6)
	reversed := func(x *autodiff.Var) *autodiff.Var { return x.GatherRows([]int32{5, 4, 3, 2, 1, 0}) }
	l := &taught{be: be, graphs: motifGraphs(6), model: goldenModel(be)}
	r := newRemembering(be, l)
	samples := []int{0, 1, 2, 3, 4, 5}
	for name, term := range map[string]func(u1, u2, t *autodiff.Var, samples []int) *autodiff.Var{
		"ema": alignment, "ema-batch": batchGraph, "ema-memory": r.setGraph,
	} {
		v := term(u1, u2, target, samples).Float()
		if !(v > 0) {
			t.Errorf("%s: the term of random rows is %v", name, v)
		}
		nearly(t, name+" reversed", term(reversed(u1), reversed(u2), reversed(target), []int{5, 4, 3, 2, 1, 0}).Float(), v, 1e-12)
		nearly(t, name+" with the views exchanged", term(u2, u1, target, samples).Float(), v, 1e-12)
	}
	nearly(t, "alignment with itself", alignment(target, target, target, nil).Float(), 0, 1e-12)
	orthogonal := tape.Matrix(4, 4, []float64{1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1})
	nearly(t, "graph of equal similarities", batchGraph(orthogonal, orthogonal, orthogonal, nil).Float(), 0, 1e-12)
	// The two candidates of a graph have cosines c and -c to it for the views, and c/2
	// and -c/2 for the teacher.
	c := 0.6
	view := tape.Matrix(1, 2, []float64{1, 0})
	w := newWalk(view, candidates{own: view, further: rays(tape, c/2, -c/2)})
	far := candidates{own: view, further: rays(tape, c, -c)}
	nearly(t, "half as strong", w.divergence(view, far, w.step(far)).Float(), 0, 1e-12)
}

// rays returns unit rows of these cosines to (1, 0).
func rays(t *autodiff.Tape, cosines ...float64) *autodiff.Var {
	var v []float64
	for _, c := range cosines {
		v = append(v, c, math.Sqrt(1-c*c))
	}
	return t.Matrix(len(cosines), 2, v)
}

// learnedBits trains a learner for two epochs and returns its encoder's bits.
func learnedBits(t *testing.T, l *Learner, err error) string {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if _, err := train.Run(t.Context(), l, train.Options{Epochs: 2}, func(train.Progress) error { return nil }); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := nn.Save(&b, l.Model.Encoder, nil); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestNothingIsInfoNCE: a jitter of 0 and a teacher without weight leave InfoNCE, bit
// for bit, and those of the methods do not.
func TestNothingIsInfoNCE(t *testing.T) {
	s := motifs(t, Unsupervised)
	s.Seed = 5
	s, err := s.Complete()
	if err != nil {
		t.Fatal(err)
	}
	learn := func(name string) string {
		l, err := New(name, s)
		return learnedBits(t, l, err)
	}
	want := learn(InfoNCE)
	still, err := newJittered(s, 0)
	if learnedBits(t, still, err) != want {
		t.Error("a jitter of 0 is not InfoNCE")
	}
	for _, name := range []string{"ema", "ema-batch", "ema-memory"} {
		l, err := New(name, s)
		if err != nil {
			t.Fatal(err)
		}
		switch x := l.Learner.(type) {
		case *taught:
			x.Beta.Ratio = 0
		case *remembering:
			x.Beta.Ratio = 0
		}
		if learnedBits(t, l, nil) != want {
			t.Errorf("%s without weight is not InfoNCE", name)
		}
	}
	for _, name := range []string{"jitter", "ema", "ema-batch", "ema-memory"} {
		if learn(name) == want {
			t.Errorf("%s is InfoNCE", name)
		}
	}
}

// TestTeacherFollows: the weights of the teacher are 0.9 of what they were and 0.1 of
// the model's, in which its pass leaves the running statistics alone.
func TestTeacherFollows(t *testing.T) {
	l := newLearner(t, "ema-memory", motifs(t, Unsupervised)).Learner.(*remembering)
	read := func(x *tensor.Tensor) []float64 {
		v := make([]float64, x.Len())
		l.be.Download(v, x)
		return v
	}
	buffers := func() (all [][]float64) {
		for _, b := range l.model.Buffers() {
			all = append(all, read(b.Value))
		}
		return all
	}
	before := buffers()
	if err := l.Begin(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if !cmp.Equal(before, buffers()) {
		t.Error("filling the memory moves the model's running statistics")
	}
	rows := read(l.memory)
	for i := range l.memory.Rows {
		norm := 0.0
		for _, x := range rows[i*l.memory.Cols : (i+1)*l.memory.Cols] {
			norm += x * x
		}
		nearly(t, "norm of a row of the memory", norm, 1, 1e-5)
	}
	weight := func(m nn.Module) []float64 { return read(m.Parameters()[0].Value) }
	for samples, b := range l.Epoch(t.Context(), 0) {
		was := weight(l.teacher)
		if _, err := l.Step(train.Batch{Samples: samples, Graphs: b}); err != nil {
			t.Fatal(err)
		}
		own := weight(l.model)
		for i, w := range weight(l.teacher) {
			nearly(t, "weight", w, 0.9*was[i]+0.1*own[i], 1e-6)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := l.Begin(ctx, 0); err == nil {
		t.Error("cancelled, the memory was filled")
	}
}
