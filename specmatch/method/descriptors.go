package method

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"sync"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/autodiff/nn"
	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/gnn/augment"
	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/gnn/molecule"
	"github.com/specmatch/specmatch/gnn/molecule/descriptor"
	"github.com/specmatch/specmatch/gnn/molecule/fingerprint"
	"github.com/specmatch/specmatch/specmatch"
	"github.com/specmatch/specmatch/specmatch/setting"
	"github.com/specmatch/specmatch/specmatch/train"
)

// descriptors trains an encoder to predict computed properties of a molecule from the readout of all
// layers: descriptors of its graph and, on request, folded Morgan counts. Predicting descriptors is the
// task of ChemBERTa-2 (Ahmad et al. 2022), a language model of SMILES, which predicts 200 descriptors
// of RDKit with the mean squared error.
var descriptors = &Method{
	Name:      "descriptors",
	Title:     "Descriptors",
	Regimes:   []Regime{Transfer},
	OnRequest: true,
	Molecules: true,
	Readout:   gnn.ReadoutAll,
	Settings:  []setting.Setting{morgan, anneal},
	new: func(s Setup) (*Learner, error) {
		targets, err := s.describe()
		if err != nil {
			return nil, err
		}
		e, rng, err := s.NewEncoder()
		if err != nil {
			return nil, err
		}
		p := NewPrediction(s.Backend, e, targets, rng)
		return s.newPrediction(p, e, p.Loss), nil
	},
}

var morgan = setting.New(
	"morgan",
	"`number` of folded Morgan counts that are predicted next to descriptors; 0 is none",
	setting.IntIn(0, 1<<16),
	0,
)

var anneal = setting.New(
	"anneal",
	"`number` of epochs in which the learning rate falls to 0 along half a cosine, usually that of "+
		"-epochs; 0: it stays",
	setting.Int(0),
	0,
)

// batchLoss returns the loss [1×1] of a batch of the graphs with these indices.
type batchLoss func(b *graph.Batch, samples []int, t *autodiff.Tape) *autodiff.Var

// prediction learns to predict what is known of each graph.
type prediction struct {
	train.Defaults
	*train.Minimizer
	loss   batchLoss
	rate   float64 // of the first step
	anneal int     // epochs in which the rate falls to 0; 0: it stays
}

// newPrediction returns the learner of a module that holds the encoder e.
func (s Setup) newPrediction(m nn.Module, e gnn.Encoder, loss batchLoss) *Learner {
	l := &prediction{
		Defaults:  train.Defaults{Loader: s.loader(augment.Identity{})},
		Minimizer: train.NewMinimizer(s.Backend, m, s.Rate),
		loss:      loss,
		rate:      s.Rate,
		anneal:    anneal.Of(s.Options),
	}
	return &Learner{Learner: l, Model: &specmatch.Model{Encoder: e}}
}

// Step takes a step on the loss of the batch.
func (p *prediction) Step(b train.Batch) (train.Metrics, error) {
	if p.anneal > 0 {
		p.Adam.SetRate(annealed(p.rate, b.Epoch*p.Batches()+b.Index, p.anneal*p.Batches()))
	}
	return p.Minimize(func() *autodiff.Var {
		return p.loss(b.Graphs, b.Samples, p.Tape)
	})
}

// annealed returns the rate of a step, counted from 0: rate·(1 + cos(π·step/steps))/2, and 0 from steps on.
func annealed(rate float64, step, steps int) float64 {
	progress := min(float64(step)/float64(steps), 1)
	return rate * (1 + math.Cos(math.Pi*progress)) / 2
}

// Prediction predicts numbers of the graphs. With s = h·W + b the output for a kind of targets y, which
// are standardised and clipped to ±6,
//
//	loss = Σ over the kinds of the mean of l(s - y),  l(d) = d²/2 where |d| < 1, else |d| - ½.
type Prediction struct {
	gnn.Encoder
	Outputs []*nn.Linear // [width×numbers], of each kind
	Targets []*Targets   // of all graphs, of each kind
}

// NewPrediction returns the task with outputs initialised as in PyTorch by default.
func NewPrediction(be backend.Backend, e gnn.Encoder, targets []*Targets, rng *rand.Rand) *Prediction {
	p := &Prediction{Encoder: e, Targets: targets}
	for k, t := range targets {
		l := nn.NewLinear(be, fmt.Sprintf("pretext.outputs.%d", k), e.Width(), len(t.mean), nn.KaimingUniform, rng)
		l.ResetBias(be, rng)
		p.Outputs = append(p.Outputs, l)
	}
	return p
}

// Loss returns the loss [1×1] of a batch of the graphs with these indices.
func (p *Prediction) Loss(b *graph.Batch, samples []int, t *autodiff.Tape) *autodiff.Var {
	h := p.Forward(gnn.NewBatch(t, b), nn.Train)
	return autodiff.ConcatRows(p.losses(h, samples)...).Sum()
}

// losses returns the loss [1×1] of each kind for graphs with vectors h.
func (p *Prediction) losses(h *autodiff.Var, samples []int) (losses []*autodiff.Var) {
	for k, targets := range p.Targets {
		y := h.Tape().Matrix(len(samples), len(targets.mean), targets.rows(samples))
		losses = append(losses, smoothL1(p.Outputs[k].Forward(h).Sub(y)).Mean())
	}
	return losses
}

// smoothL1 returns d²/2 where |d| < 1, else |d| - ½.
func smoothL1(d *autodiff.Var) *autodiff.Var {
	beyond := d.Abs().Shift(-1).ReLU()
	return d.Square().Sub(beyond.Square()).Scale(0.5)
}

// Parameters returns the encoder's and the outputs'.
func (p *Prediction) Parameters() []*autodiff.Param {
	params := p.Encoder.Parameters()
	for _, o := range p.Outputs {
		params = append(params, o.Parameters()...)
	}
	return params
}

// maxTarget is the largest size of a standardised target.
const maxTarget = 6

// Targets holds numbers of one kind, equally many for every graph.
type Targets struct {
	mean, std []float64
	// Nonzero numbers with their columns; those of graph i are at ptr[i] to ptr[i+1].
	ptr    []int
	column []uint16
	value  []float32
}

// NewTargets returns the targets of graphs, one row each, of equal length up to 65,536. It replaces
// numbers that are not finite by the mean.
func NewTargets(rows [][]float64) *Targets {
	t := &Targets{ptr: []int{0}}
	for _, row := range rows {
		t.add(row)
	}
	t.settle()
	return t
}

func (t *Targets) add(row []float64) {
	if t.mean == nil {
		t.mean = make([]float64, len(row))
		t.std = make([]float64, len(row))
	}
	for k, v := range row {
		if v != 0 {
			t.column = append(t.column, uint16(k))
			t.value = append(t.value, float32(v))
		}
	}
	t.ptr = append(t.ptr, len(t.value))
}

func (t *Targets) settle() {
	count := make([]float64, len(t.mean))
	zeros := make([]float64, len(t.mean))
	for k := range count {
		count[k] = float64(len(t.ptr) - 1)
		zeros[k] = count[k]
	}
	for e, k := range t.column {
		zeros[k]--
		if v := float64(t.value[e]); finite(v) {
			t.mean[k] += v
		} else {
			count[k]--
		}
	}
	for k, sum := range t.mean {
		t.mean[k] = sum / max(count[k], 1)
		t.std[k] = zeros[k] * t.mean[k] * t.mean[k]
	}
	for e, k := range t.column {
		if v := float64(t.value[e]); finite(v) {
			t.std[k] += (v - t.mean[k]) * (v - t.mean[k])
		}
	}
	for k, squares := range t.std {
		t.std[k] = math.Sqrt(squares / max(count[k], 1))
		if t.std[k] == 0 {
			t.std[k] = 1 // all are equal
		}
	}
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// rows returns the targets [n×numbers] of graphs, standardised and clipped.
func (t *Targets) rows(samples []int) []float64 {
	width := len(t.mean)
	rows := make([]float64, len(samples)*width)
	for n, i := range samples {
		row := rows[n*width : (n+1)*width]
		for k := range row {
			row[k] = t.standard(k, 0)
		}
		for e := t.ptr[i]; e < t.ptr[i+1]; e++ {
			k := int(t.column[e])
			row[k] = t.standard(k, float64(t.value[e]))
		}
	}
	return rows
}

func (t *Targets) standard(k int, v float64) float64 {
	if !finite(v) {
		return 0
	}
	return min(max((v-t.mean[k])/t.std[k], -maxTarget), maxTarget)
}

// describer computes the targets of molecules.
type describer struct {
	parser      molecule.Parser
	descriptors descriptor.Calculator
	morgan      fingerprint.Morgan
}

// rows returns the targets of a molecule for each kind; morgan is the number of folded counts.
func (d *describer) rows(smiles string, morgan int) ([][]float64, error) {
	m, err := d.parser.Parse(smiles)
	if err != nil {
		return nil, err
	}
	rows := [][]float64{make([]float64, len(descriptor.Names()))}
	d.descriptors.Compute(rows[0], m)
	if morgan > 0 {
		counts := make([]float64, morgan)
		for _, c := range d.morgan.Counts(m) {
			counts[c.ID%uint32(morgan)] += float64(c.N)
		}
		rows = append(rows, counts)
	}
	return rows, nil
}

// chunk is the number of molecules that are described at a time.
const chunk = 1024

// describe returns the targets of the molecules, computed on all processors.
func (s Setup) describe() ([]*Targets, error) {
	var targets []*Targets
	workers := make([]describer, runtime.GOMAXPROCS(0))
	for lo := 0; lo < len(s.SMILES); lo += chunk {
		part := s.SMILES[lo:min(lo+chunk, len(s.SMILES))]
		rows := make([][][]float64, len(part))
		failed := make([]error, len(part))
		var wg sync.WaitGroup
		for w := range workers {
			wg.Go(func() {
				d := &workers[w]
				d.parser.Standard = s.Standard
				d.morgan.Radius = 2
				for i := w; i < len(part); i += len(workers) {
					rows[i], failed[i] = d.rows(part[i], morgan.Of(s.Options))
				}
			})
		}
		wg.Wait()
		for i, kinds := range rows {
			if failed[i] != nil {
				return nil, fmt.Errorf("method: graph %d: %w", lo+i, failed[i])
			}
			for k, row := range kinds {
				if k == len(targets) {
					targets = append(targets, &Targets{ptr: []int{0}})
				}
				targets[k].add(row)
			}
		}
	}
	for _, t := range targets {
		t.settle()
	}
	return targets, nil
}
