package play

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"

	"github.com/specmatch/specmatch/autodiff/nn"
	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/backend/cpu"
	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/gnn/augment"
	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/specmatch"
	"github.com/specmatch/specmatch/specmatch/eval"
	"github.com/specmatch/specmatch/specmatch/method"
	"github.com/specmatch/specmatch/specmatch/model"
	"github.com/specmatch/specmatch/specmatch/train"
	"github.com/specmatch/specmatch/tensor"
)

// Settings are those of a training. Beta and what follows act from the next step on, the
// others from the beginning.
type Settings struct {
	Seed      int     `json:"seed"`
	Batch     int     `json:"batch"`
	Beta      float64 `json:"beta"`
	Kappa     float64 `json:"kappa"`
	P         float64 `json:"p"`
	Tau       float64 `json:"tau"`
	Adjacency string  `json:"adjacency"`
}

// setup returns the setup of method "specmatch" without engine and graphs.
func (s Settings) setup() (method.Setup, error) {
	return method.Setup{
		Batch: s.Batch,
		Seed:  uint64(s.Seed),
		Options: method.Options{
			"beta":       s.Beta,
			"kappa":      s.Kappa,
			"percentile": s.P,
			"tau":        s.Tau,
			"adjacency":  s.Adjacency,
			"policy":     augment.Random2,
		},
	}.Complete()
}

// Training is SpecMatch-CL on the embedded set: what method "specmatch" does, one step
// at a time, on one thread.
type Training struct {
	settings Settings
	changed  bool // since the beginning
	set      *dataset.Dataset
	be       backend.Backend
	setup    method.Setup
	trainer  *specmatch.Trainer
	loader   *augment.Loader
	epoch    int
	index    int // of the next batch in its epoch
	next     func() ([]int, *graph.Batch, bool)
	stop     func()
	basis    *mat.Dense // [96×2], of the untrained embeddings
}

// NewTraining returns a training with initial weights.
func NewTraining(s Settings) (*Training, error) {
	setup, err := s.setup()
	if err != nil {
		return nil, err
	}
	t := &Training{
		settings: s,
		setup:    setup,
		set:      dataset.Default(),
		be:       cpu.New(tensor.Float32, cpu.Workers(1)),
	}
	if s.Batch < 2 || s.Batch > len(t.set.Graphs) {
		return nil, fmt.Errorf("batches of %d graphs; want 2 to %d", s.Batch, len(t.set.Graphs))
	}
	t.setup.Backend = t.be
	t.setup.Graphs = t.set.Graphs
	t.setup.Encoder = gnn.Architecture{
		Kind:   gnn.KindGIN,
		In:     t.set.FeatureWidth,
		Hidden: 32,
		Layers: 3,
	}
	encoder, rng, err := t.setup.NewEncoder()
	if err != nil {
		return nil, err
	}
	t.trainer = specmatch.NewTrainer(
		t.be, specmatch.NewModel(t.be, encoder, rng), method.Objective(setup.Options), setup.Rate,
	)
	view, err := t.setup.View()
	if err != nil {
		return nil, err
	}
	t.loader = &augment.Loader{Graphs: t.set.Graphs, Batch: s.Batch, Collator: augment.Collator{
		Views: []augment.Augmentation{view, view}, Seed: t.setup.Seed, Workers: 1,
	}}
	return t, nil
}

// Baselines are the accuracies, in percent, that any training must beat.
type Baselines struct {
	Untrained  *Evaluation `json:"untrained"`
	Statistics float64     `json:"statistics"` // the same weights, once batch norm has seen an epoch
	Labels     float64     `json:"labels"`     // counts of the nodes' labels, without a network
	basis      *mat.Dense  // of the points of every evaluation
}

// Baselines measures them with the weights as they are. Running statistics move in
// every training, whatever it learns; those that an epoch of views gives are put back.
func (t *Training) Baselines() (b Baselines, err error) {
	b.Untrained, err = t.Evaluate()
	if err != nil {
		return b, err
	}
	snapshot := train.Keep(t.trainer.Model)
	defer snapshot.Free()
	for _, batch := range t.loader.Epoch(context.Background(), 0) {
		t.trainer.Model.Forward(gnn.NewBatch(t.trainer.Tape, batch), nn.Train)
		t.trainer.Tape.Reset()
	}
	moved, err := t.Evaluate()
	if err != nil {
		return b, err
	}
	snapshot.Restore()
	b.Statistics = moved.Accuracy
	b.basis = t.basis
	b.Labels, err = t.countedLabels()
	return b, err
}

// Set changes the objective from the next step on.
func (t *Training) Set(s Settings) error {
	s.Seed = t.settings.Seed
	s.Batch = t.settings.Batch
	setup, err := s.setup()
	if err != nil {
		return err
	}
	t.changed = t.changed || t.trainer.Values.Steps > 0 && s != t.settings
	t.settings = s
	t.setup.Options = setup.Options
	t.trainer.Objective = method.Objective(setup.Options)
	t.trainer.Beta = t.trainer.Objective.Beta
	return nil
}

// Close ends the training.
func (t *Training) Close() {
	if t.stop != nil {
		t.stop()
	}
	t.be.Close()
}

// Report is what a step has done.
type Report struct {
	Step  int `json:"step"`
	Epoch int `json:"epoch"` // of the step, from 1
	// The losses of the step's batch, before the step; NaN is null.
	LossC    *float64 `json:"loss_c"`
	LossG    *float64 `json:"loss_g"`
	LossHard *float64 `json:"loss_hard"`
	Spread   *float64 `json:"spread"`
	Cosine   *float64 `json:"cosine"` // of the gradients of the two losses
	Views    Views    `json:"views"`
	// At the end of an epoch.
	Eval *Evaluation `json:"eval,omitempty"`
}

// Views are the similarity graphs of the two views of a batch, whose graphs are sorted
// by class, after the step.
type Views struct {
	N       int        `json:"n"`
	Classes []int      `json:"classes"`
	Samples []int      `json:"samples"` // numbers of the graphs in the set
	Edges   [2]string  `json:"edges"`   // the upper triangle, row by row: 1 where S > θ
	Spectra [2]Numbers `json:"spectra"` // of the Laplacians of the adjacency in force, ascending
}

// Evaluation is what the encoder is worth.
type Evaluation struct {
	Points   Numbers `json:"points"` // [n×2] of the embeddings, in the basis of the untrained encoder
	Classes  []int   `json:"classes"`
	Accuracy float64 `json:"accuracy"` // percent, protocol graphcl-c10
}

func finite(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}

// Step takes the next step.
func (t *Training) Step() (*Report, error) {
	if t.next == nil {
		t.next, t.stop = iter.Pull2(t.loader.Epoch(context.Background(), t.epoch))
	}
	samples, batch, ok := t.next()
	if !ok {
		return nil, errors.New("the epoch has no more batches")
	}
	s, err := t.trainer.Step(batch, true)
	if err != nil {
		return nil, err
	}
	r := &Report{
		Step:     t.trainer.Values.Steps,
		Epoch:    t.epoch + 1,
		LossC:    finite(s.Main),
		LossG:    finite(s.Aux),
		LossHard: finite(s.Diagnosis.LossHard),
		Spread:   finite(s.Diagnosis.Spread),
		Views:    t.views(samples, batch),
	}
	if s.Probe != nil && s.Probe.Aux > 0 {
		r.Cosine = finite(s.Probe.Cosine)
	}
	t.index++
	if t.index == t.loader.Batches() {
		t.stop()
		t.next = nil
		t.stop = nil
		t.index = 0
		t.epoch++
		r.Eval, err = t.Evaluate()
	}
	return r, err
}

// views returns the similarity graphs of a batch. The running statistics of the model
// stay as they are.
func (t *Training) views(samples []int, batch *graph.Batch) (v Views) {
	snapshot := train.Keep(t.trainer.Model)
	defer snapshot.Free()
	_, z := t.trainer.Model.Forward(gnn.NewBatch(t.trainer.Tape, batch), nn.Train)
	values := z.Data()
	d := z.Cols()
	t.trainer.Tape.Reset()
	snapshot.Restore()
	n := len(samples)
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	class := func(i int) int { return t.set.Graphs[samples[i]].Class }
	slices.SortStableFunc(order, func(a, b int) int { return class(a) - class(b) })
	v.N = n
	for _, i := range order {
		v.Classes = append(v.Classes, class(i))
		v.Samples = append(v.Samples, samples[i])
	}
	for k := range 2 {
		sorted := make([]float64, 0, n*d)
		for _, i := range order {
			sorted = append(sorted, values[(k*n+i)*d:(k*n+i+1)*d]...)
		}
		g := t.trainer.Objective.Match.Graph(sorted, n, d)
		var edges strings.Builder
		for i := range n {
			for j := i + 1; j < n; j++ {
				edges.WriteByte(map[bool]byte{false: '0', true: '1'}[g.S[i*n+j] > g.Threshold])
			}
		}
		v.Edges[k] = edges.String()
		var e mat.EigenSym
		if e.Factorize(mat.NewSymDense(n, g.L), false) {
			v.Spectra[k] = e.Values(nil)
		}
	}
	return v
}

// embed returns the embeddings [n×96] of the set.
func (t *Training) embed() ([]float64, error) {
	return gnn.Embed(context.Background(), t.be, t.trainer.Model.Encoder, t.set.Graphs, nil)
}

// Evaluate embeds the set and asks a support vector machine for its accuracy.
func (t *Training) Evaluate() (*Evaluation, error) {
	h, err := t.embed()
	if err != nil {
		return nil, err
	}
	w := t.trainer.Model.Encoder.Width()
	n := len(t.set.Graphs)
	x := mat.NewDense(n, w, h)
	if t.basis == nil {
		t.basis, err = principal(x)
		if err != nil {
			return nil, err
		}
	}
	var points mat.Dense
	points.Mul(x, t.basis)
	e := &Evaluation{Points: points.RawMatrix().Data, Classes: t.classes()}
	e.Accuracy, err = accuracy(h, e.Classes, t.settings.Seed)
	return e, err
}

func (t *Training) classes() (y []int) {
	for _, g := range t.set.Graphs {
		y = append(y, g.Class)
	}
	return y
}

func accuracy(h []float64, y []int, seed int) (float64, error) {
	r, err := eval.GraphCLC10.Accuracy(
		context.Background(), h, y, 10, uint32(seed), eval.Options{Workers: 1},
	)
	if err != nil {
		return 0, err
	}
	return 100 * r.Mean, nil
}

// countedLabels returns the accuracy, in percent, of how often each label occurs in a
// graph: what needs no network.
func (t *Training) countedLabels() (float64, error) {
	var h []float64
	for _, g := range t.set.Graphs {
		count := make([]float64, t.set.FeatureWidth)
		for _, c := range g.X.Category {
			count[c]++
		}
		h = append(h, count...)
	}
	return accuracy(h, t.classes(), t.settings.Seed)
}

// principal returns the two directions [w×2] in which the rows of x [n×w] vary most.
func principal(x *mat.Dense) (*mat.Dense, error) {
	var pc stat.PC
	if !pc.PrincipalComponents(x, nil) {
		return nil, errors.New("the embeddings have no principal directions")
	}
	var v mat.Dense
	pc.VectorsTo(&v)
	_, w := x.Dims()
	return mat.DenseCopyOf(v.Slice(0, w, 0, 2)), nil
}

// CSV returns the embeddings of the set, a row for each graph.
func (t *Training) CSV() (string, error) {
	h, err := t.embed()
	if err != nil {
		return "", err
	}
	w := t.trainer.Model.Encoder.Width()
	var b strings.Builder
	b.WriteString("graph,class")
	for j := range w {
		fmt.Fprintf(&b, ",h%d", j)
	}
	for i, g := range t.set.Graphs {
		fmt.Fprintf(&b, "\n%d,%d", i, g.Class)
		for _, v := range h[i*w : (i+1)*w] {
			b.WriteByte(',')
			b.WriteString(strconv.FormatFloat(v, 'g', -1, 32))
		}
	}
	return b.String() + "\n", nil
}

// Model returns the encoder as a model file.
func (t *Training) Model() ([]byte, error) {
	columns, err := t.set.Columns()
	if err != nil {
		return nil, err
	}
	m, err := method.Get(method.SpecMatch)
	if err != nil {
		return nil, err
	}
	record, err := m.Used(t.setup)
	if err != nil {
		return nil, err
	}
	trained := model.Trained{
		Encoder: t.trainer.Model.Encoder,
		Card: model.Card{Features: &columns, Provenance: model.Provenance{
			Method:  method.SpecMatch,
			Options: record,
			Data:    model.Sources(t.set.Name, nil),
			Seed:    t.settings.Seed,
			Epochs:  t.epoch,
		}}}
	var b bytes.Buffer
	err = trained.Write(&b)
	return b.Bytes(), err
}

// Command returns the command line that repeats the run on a desktop, and whether it
// does: not if settings have changed on the way.
func (t *Training) Command() (command string, same bool) {
	s := t.settings
	return fmt.Sprintf("go run ./experiments/unsupervised -method untrained,specmatch -seeds 1 -first-seed %d "+
			"-batch %d -epochs %d -beta %v -kappa %v -percentile %v -tau %v -adjacency %s -protocol graphcl-c10",
			s.Seed, s.Batch, max(t.epoch, 1), s.Beta, s.Kappa, s.P, s.Tau, s.Adjacency), !t.changed &&
			t.index == 0
}
