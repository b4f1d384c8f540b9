package specmatch_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/backend/ref"
	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/gnn/molecule/feature"
	"github.com/specmatch/specmatch/specmatch"
	training "github.com/specmatch/specmatch/specmatch/train"
	"github.com/specmatch/specmatch/tensor"
)

// onRecording runs f on ref and on every engine with fused operators.
func onRecording(t *testing.T, f func(t *testing.T, open func() backend.Backend)) {
	t.Run("ref", func(t *testing.T) { f(t, ref.New) })
	for _, open := range fusing {
		for _, p := range []tensor.Precision{tensor.Float64, tensor.Float32} {
			t.Run(fmt.Sprint(open(p).Name(), " ", p), func(t *testing.T) { f(t, func() backend.Backend { return open(p) }) })
		}
	}
}

// recordedBatches have sizes on both sides of a step of the padding, and the
// first size more than once.
func recordedBatches(dense bool) (bs []*graph.Batch) {
	for k, n := range []int{7, 7, 12, 7, 12, 7} {
		b := randomBatch(uint64(20+k), n)
		if dense {
			b.Densify(b.Nodes())
		}
		bs = append(bs, b)
	}
	return bs
}

// damped is a trainer whose Adam has a large ε. The gradient of a bias in front of
// batch norm is 0 but for rounding, of which the usual ε makes steps of full size;
// and the sizes of matrices, so their padding, may change the order in which an
// engine sums a product.
func damped(be backend.Backend, m *specmatch.Model, o specmatch.Objective, opts ...autodiff.Option) *specmatch.Trainer {
	tr := specmatch.NewTrainer(be, m, o, 0.01, opts...)
	tr.Adam.Config.Eps = 0.01
	return tr
}

func recorded(t *testing.T, tr *specmatch.Trainer) *specmatch.Recorded {
	t.Helper()
	r, err := specmatch.NewRecorded(tr)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// trainRecorded runs the steps and returns their stats.
func trainRecorded(t *testing.T, r *specmatch.Recorded, bs []*graph.Batch) (all []training.Stats) {
	t.Helper()
	collect := func(s *training.Stats, err error) {
		if err != nil {
			t.Fatal(err)
		}
		if s != nil {
			all = append(all, *s)
		}
	}
	for _, b := range bs {
		collect(r.Step(b))
	}
	collect(r.Last())
	if s, err := r.Last(); s != nil || err != nil {
		t.Errorf("a second Last gives stats %v, error %v", s, err)
	}
	return all
}

func runningStatistics(be backend.Backend, m *specmatch.Model) (all []float64) {
	for _, b := range m.Buffers() {
		v := make([]float64, b.Value.Len())
		be.Download(v, b.Value)
		all = append(all, v...)
	}
	return all
}

// TestRecordedIsStep compares recorded steps on padded batches with the trainer's
// own steps: padding reaches nothing.
func TestRecordedIsStep(t *testing.T) {
	for _, dense := range []bool{false, true} {
		for _, c := range []struct {
			beta   float64
			warmup int
		}{{0, 0}, {0.03, 0}, {0.05, 3}} {
			t.Run(fmt.Sprintf("dense %v, β %v", dense, c), func(t *testing.T) {
				onRecording(t, func(t *testing.T, open func() backend.Backend) {
					be := open()
					tol := 1e-10
					if be.Precision() == tensor.Float32 {
						tol = 1e-3
					}
					o := objective(0)
					o.Beta.Weight, o.Warmup = c.beta, c.warmup
					eager := damped(be, smallModel(be, 1), o)
					var want []training.Stats
					for _, b := range recordedBatches(dense) {
						s, err := eager.Step(b, false)
						if err != nil {
							t.Fatal(err)
						}
						want = append(want, s.Stats)
					}
					tr := damped(be, smallModel(be, 1), o)
					before := be.InUse()
					r := recorded(t, tr)
					got := trainRecorded(t, r, recordedBatches(dense))
					if len(got) != len(want) {
						t.Fatalf("%d stats of %d steps", len(got), len(want))
					}
					near := func(what string, got, want float64) {
						t.Helper()
						if !(math.Abs(got-want) <= tol*max(1, math.Abs(want))) && !(math.IsNaN(got) && math.IsNaN(want)) {
							t.Errorf("%s is %v, want %v", what, got, want)
						}
					}
					for k, w := range want {
						near(fmt.Sprint("loss of step ", k), got[k].Loss, w.Loss)
						near(fmt.Sprint("L_C of step ", k), got[k].Main, w.Main)
						near(fmt.Sprint("L_G of step ", k), got[k].Aux, w.Aux)
						near(fmt.Sprint("β of step ", k), got[k].Beta, w.Beta)
					}
					wantWeights := weights(eager.Model)
					for k, v := range weights(tr.Model) {
						near(fmt.Sprint("weight ", k), v, wantWeights[k])
					}
					wantRunning := runningStatistics(be, eager.Model)
					for k, v := range runningStatistics(be, tr.Model) {
						near(fmt.Sprint("running statistic ", k), v, wantRunning[k])
					}
					if err := r.Close(); err != nil {
						t.Error(err)
					}
					if n := be.InUse() - before; n != 0 {
						t.Errorf("%d bytes in use after Close", n)
					}
				})
			})
		}
	}
}

// encoders are those whose steps are recorded, small, and what makes a batch of
// recordedBatches one that they take.
var encoders = []struct {
	name string
	new  func(be backend.Backend, rng *rand.Rand) gnn.Encoder
	take func(b *graph.Batch)
}{
	{"GIN", func(be backend.Backend, rng *rand.Rand) gnn.Encoder {
		return gnn.NewGIN(be, gnn.GINConfig{In: labels, Hidden: 6, Layers: 2}, rng)
	}, func(*graph.Batch) {}},
	{"ResGCN", func(be backend.Backend, rng *rand.Rand) gnn.Encoder {
		return gnn.NewResGCN(be, gnn.ResGCNConfig{In: labels, Hidden: 6, Layers: 2, Residual: true}, rng)
	}, func(*graph.Batch) {}},
	{"ChemGIN", func(be backend.Backend, rng *rand.Rand) gnn.Encoder {
		return gnn.NewChemGIN(be, gnn.ChemGINConfig{Hidden: 6, Layers: 2}, rng)
	}, func(b *graph.Batch) {
		relabel(b, feature.AtomTypes*feature.ChiralityTags, feature.BondTypes*feature.BondDirections)
	}},
	{"ChemGIN with dropout", func(be backend.Backend, rng *rand.Rand) gnn.Encoder {
		return gnn.NewChemGIN(be, gnn.ChemGINConfig{Hidden: 6, Layers: 2, Dropout: 0.3}, rng)
	}, func(b *graph.Batch) {
		relabel(b, feature.AtomTypes*feature.ChiralityTags, feature.BondTypes*feature.BondDirections)
	}},
	{"BioGIN", func(be backend.Backend, rng *rand.Rand) gnn.Encoder {
		return gnn.NewBioGIN(be, gnn.BioGINConfig{Hidden: 6, Layers: 2}, rng)
	}, func(b *graph.Batch) { relabel(b, gnn.NodeFlags, 1<<gnn.EdgeBits) }},
}

// relabel gives a batch so many categories of nodes, and labels of edges, which
// depend on where they are.
func relabel(b *graph.Batch, categories int, edges int32) {
	b.X.Width = categories
	for i, c := range b.X.Category {
		b.X.Category[i] = (c*17 + int32(i%5)) % int32(categories)
	}
	b.EdgeLabel = make([]int32, len(b.Adj))
	for k := range b.EdgeLabel {
		b.EdgeLabel[k] = int32(k*k) % edges
	}
}

// TestRecordedEncoders does the same for all encoders, in both forms. With dropout
// the padding takes random numbers, and steps are others.
func TestRecordedEncoders(t *testing.T) {
	for _, e := range encoders {
		if strings.Contains(e.name, "dropout") {
			continue
		}
		for k := range 4 {
			directed, form := k&1 != 0, []string{"fused", "composed"}[k/2]
			opts := forms()[form]
			t.Run(fmt.Sprintf("%s, directed %v, %s", e.name, directed, form), func(t *testing.T) {
				onRecording(t, func(t *testing.T, open func() backend.Backend) {
					be := open()
					tol := 1e-9
					if be.Precision() == tensor.Float32 {
						tol = 2e-3
					}
					model := func() *specmatch.Model {
						rng := newRand(3)
						return specmatch.NewModel(be, e.new(be, rng), rng)
					}
					bs := recordedBatches(false)
					for _, b := range bs {
						e.take(b)
						b.Asymmetric = directed
					}
					o := objective(0.03)
					if directed {
						o.Contrast.Variant = specmatch.CrossView
					}
					eager := damped(be, model(), o, opts...)
					for _, b := range bs {
						if _, err := eager.Step(b, false); err != nil {
							t.Fatal(err)
						}
					}
					tr := damped(be, model(), o, opts...)
					before := be.InUse()
					r := recorded(t, tr)
					trainRecorded(t, r, bs)
					want := append(weights(eager.Model), runningStatistics(be, eager.Model)...)
					for k, v := range append(weights(tr.Model), runningStatistics(be, tr.Model)...) {
						if !(math.Abs(v-want[k]) <= tol*max(1, math.Abs(want[k]))) {
							t.Errorf("number %d is %v, want %v", k, v, want[k])
						}
					}
					if err := r.Close(); err != nil {
						t.Error(err)
					}
					if n := be.InUse() - before; n != 0 {
						t.Errorf("%d bytes in use after Close", n)
					}
				})
			})
		}
	}
}

// TestReplayIsStep: a step that is replayed gives the bits of one that is run for
// the first time on the same padded batch.
func TestReplayIsStep(t *testing.T) {
	onRecording(t, func(t *testing.T, open func() backend.Backend) {
		for _, e := range encoders {
			t.Run(e.name, func(t *testing.T) {
				train := func(fresh bool) (*specmatch.Model, []training.Stats) {
					be, rng := open(), newRand(1)
					tr := specmatch.NewTrainer(be, specmatch.NewModel(be, e.new(be, rng), rng), objective(0.03), 0.01)
					r := recorded(t, tr)
					var all []training.Stats
					for _, b := range recordedBatches(false) {
						e.take(b)
						all = append(all, trainRecorded(t, r, []*graph.Batch{b})...)
						if fresh { // so the next step is not a replay
							if err := r.Close(); err != nil {
								t.Fatal(err)
							}
							r = recorded(t, tr)
						}
					}
					return tr.Model, all
				}
				replayed, got := train(false)
				run, want := train(true)
				for k := range want {
					if got[k].Loss != want[k].Loss {
						t.Errorf("loss of step %d is %v, want the bits of %v", k, got[k].Loss, want[k].Loss)
					}
				}
				w := weights(run)
				for k, v := range weights(replayed) {
					if v != w[k] {
						t.Fatalf("weight %d is %v, want the bits of %v", k, v, w[k])
					}
				}
			})
		}
	})
}

// TestRecordedNonFinite: a bad step is reported late, and has changed nothing.
func TestRecordedNonFinite(t *testing.T) {
	onRecording(t, func(t *testing.T, open func() backend.Backend) {
		be := open()
		tr := specmatch.NewTrainer(be, smallModel(be, 1), objective(0.03), 0.01)
		r := recorded(t, tr)
		bs := recordedBatches(true)
		trainRecorded(t, r, bs[:2])
		before := weights(tr.Model)
		bad := recordedBatches(true)[2]
		bad.X.Dense[5] = float32(math.NaN())
		if _, err := r.Step(bad); err != nil {
			t.Fatalf("the bad step failed at once, with %v", err)
		}
		_, err := r.Step(bs[3])
		var e *training.NonFiniteError
		if !errors.As(err, &e) || e.Step != 2 || e.What != "the loss" {
			t.Errorf("behind a loss that is NaN at step 2, the error is %v", err)
		}
		at := &tr.Values
		steps := at.Steps
		if _, again := r.Step(bs[4]); again == nil || again.Error() != err.Error() || at.Steps != steps {
			t.Errorf("then the error is %v after %d steps, want %v after %d", again, at.Steps, err, steps)
		}
		for k, v := range weights(tr.Model) {
			if v != before[k] {
				t.Fatalf("weight %d went from %v to %v", k, before[k], v)
			}
		}
	})
}

// TestRecordedNonFiniteParts: a loss that is not finite is noticed although its
// gradient is, and the other way round.
func TestRecordedNonFiniteParts(t *testing.T) {
	onRecording(t, func(t *testing.T, open func() backend.Backend) {
		for what, spoil := range map[string]func(o *specmatch.Objective, m *specmatch.Model){
			// The hard threshold has no gradient.
			"the loss": func(o *specmatch.Objective, _ *specmatch.Model) {
				o.Match.Adjacency, o.Beta.Weight = specmatch.Hard, math.MaxFloat64
			},
			"the gradient's norm": func(_ *specmatch.Objective, m *specmatch.Model) { hugeGradient(m) },
		} {
			be := open()
			o, m := objective(0), smallModel(be, 1)
			spoil(&o, m)
			r := recorded(t, specmatch.NewTrainer(be, m, o, 0.01))
			before := weights(m)
			if _, err := r.Step(randomBatch(1, 12)); err != nil {
				t.Fatal(err)
			}
			var e *training.NonFiniteError
			if _, err := r.Last(); !errors.As(err, &e) || e.Step != 0 || e.What != what || !math.IsInf(e.Value, 1) {
				t.Errorf("%s is infinite at step 0: error %v", what, err)
			}
			if !slices.Equal(weights(m), before) {
				t.Errorf("%s is infinite, and the weights changed", what)
			}
		}
	})
}

// TestRecordedKinds: batches of one size but of other kinds, with dense features or
// with edges in one direction, are not taken for one another.
func TestRecordedKinds(t *testing.T) {
	oneHot, dense, directed := randomBatch(20, 7), randomBatch(20, 7), randomBatch(20, 7)
	dense.Densify(dense.Nodes())
	dense.X.Dense[3] = 0.5
	ptr, adj := []int32{0}, []int32{}
	for i := range int32(directed.Nodes()) {
		for _, j := range directed.Adj[directed.Ptr[i]:directed.Ptr[i+1]] {
			if j < i || (i+j)%8 > 0 {
				adj = append(adj, j)
			}
		}
		ptr = append(ptr, int32(len(adj)))
	}
	if len(adj) == len(directed.Adj) {
		t.Fatal("no edge was taken away")
	}
	directed.Ptr, directed.Adj, directed.Asymmetric = ptr, adj, true
	onRecording(t, func(t *testing.T, open func() backend.Backend) {
		be := open()
		tol := 1e-10
		if be.Precision() == tensor.Float32 {
			tol = 1e-3
		}
		bs := []*graph.Batch{oneHot, dense, directed, oneHot, directed, dense}
		eager, tr := damped(be, smallModel(be, 1), objective(0.03)), damped(be, smallModel(be, 1), objective(0.03))
		for _, b := range bs {
			if _, err := eager.Step(b, false); err != nil {
				t.Fatal(err)
			}
		}
		trainRecorded(t, recorded(t, tr), bs)
		want := weights(eager.Model)
		for k, v := range weights(tr.Model) {
			if !(math.Abs(v-want[k]) <= tol*max(1, math.Abs(want[k]))) {
				t.Fatalf("weight %d is %v, want %v", k, v, want[k])
			}
		}
	})
}

// refusing is an engine that cannot record, or whose recordings cannot be replayed.
type refusing struct {
	backend.Backend
	replay bool
}

func (e *refusing) Capture(f func()) (backend.Step, error) {
	if !e.replay {
		f()
		return nil, errMemory
	}
	step, err := e.Backend.Capture(f)
	return &refusingStep{step}, err
}

type refusingStep struct{ backend.Step }

func (*refusingStep) Replay() error { return errMemory }

// TestRecordedDeviceError: a step that the engine does not record, or not replay,
// is an error at every call from then on, and keeps no memory.
func TestRecordedDeviceError(t *testing.T) {
	for _, replay := range []bool{false, true} {
		be := &refusing{ref.New(), replay}
		tr := specmatch.NewTrainer(be, smallModel(be, 1), objective(0.03), 0.01)
		b := randomBatch(1, 5)
		before := be.InUse()
		r := recorded(t, tr)
		if replay {
			if _, err := r.Step(b); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 {
			if _, err := r.Step(b); !errors.Is(err, errMemory) {
				t.Errorf("replay %v: error %v", replay, err)
			}
			be.replay = true // it works now, but that is too late
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		if n := be.InUse() - before; n != 0 {
			t.Errorf("replay %v: %d bytes in use after Close", replay, n)
		}
	}
}

// TestRecordedMemory: so it is when memory runs out for the batch itself.
func TestRecordedMemory(t *testing.T) {
	be := &failing{Backend: ref.New()}
	r := recorded(t, specmatch.NewTrainer(be, smallModel(be, 1), objective(0.03), 0.01))
	be.after = 1
	for range 2 {
		if _, err := r.Step(randomBatch(1, 5)); !errors.Is(err, errMemory) {
			t.Errorf("error %v", err)
		}
	}
}

// recorder is an engine for which recording is worth it.
type recorder struct{ backend.Backend }

func (recorder) Records() bool { return true }

// TestRecordedRefuses what the host decides.
func TestRecordedRefuses(t *testing.T) {
	be := ref.New()
	steered := objective(0)
	steered.Beta.Ratio = 0.2
	if _, err := specmatch.NewRecorded(specmatch.NewTrainer(be, smallModel(be, 1), steered, 0.01)); err == nil || !strings.Contains(err.Error(), "steered β") {
		t.Errorf("the error is %v, want one about the steered β", err)
	}
	for engine, want := range map[backend.Backend]bool{be: false, recorder{be}: true} {
		for _, o := range []specmatch.Objective{steered, objective(0)} {
			tr := specmatch.NewTrainer(engine, smallModel(engine, 1), o, 0.01)
			if got := tr.Records(); got != (want && o.Beta.Ratio == 0) {
				t.Errorf("an engine that records %v, ratio %v: recorded %v", want, o.Beta.Ratio, got)
			}
		}
	}
	r := recorded(t, specmatch.NewTrainer(be, smallModel(be, 1), objective(0), 0.01))
	if _, err := r.Step(graph.Collate(randomGraphs(1, 3)...)); err == nil || !strings.Contains(err.Error(), "two equal, non-empty views") {
		t.Errorf("a batch of one view gives %v", err)
	}
}
