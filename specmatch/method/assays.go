package method

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/autodiff/nn"
	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/gnn/dataset/tasks"
	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/specmatch/setting"
)

// assays trains an encoder to predict labels of many tasks, with gaps, from the readout of all layers:
// measurements of bioassays, or the answers of another model. Descriptors and Morgan counts are predicted
// next to them, as by the method descriptors. The outputs are thrown away. Such training is that of MiniMol
// (Kläser et al. 2024) and, with 1,310 assays of ChEMBL, of Hu et al. (2020); neither code was followed.
var assays = &Method{
	Name:      "assays",
	Title:     "Assays",
	Regimes:   []Regime{Transfer},
	OnRequest: true,
	Molecules: true,
	Labels:    true,
	Readout:   gnn.ReadoutAll,
	Settings:  []setting.Setting{taskPower, taskMinimum, besideWeight, morgan, anneal},
	ignores: func(s Setup) []setting.Setting {
		if besideWeight.Of(s.Options) > 0 {
			return nil
		}
		return []setting.Setting{morgan}
	},
	new: func(s Setup) (*Learner, error) {
		heads, err := s.taskTargets()
		if err != nil {
			return nil, err
		}
		var described []*Targets
		if besideWeight.Of(s.Options) > 0 {
			described, err = s.describe()
			if err != nil {
				return nil, err
			}
		}
		e, rng, err := s.NewEncoder()
		if err != nil {
			return nil, err
		}
		a := NewAssays(s.Backend, e, heads, described, rng)
		a.Beside = besideWeight.Of(s.Options)
		return s.newPrediction(a, e, a.Loss), nil
	},
}

var (
	taskPower = setting.New(
		"task-power",
		"`power` p: a task with n labels weighs n^p in the loss of assays; 1: all labels weigh alike, 0: all tasks",
		setting.Float(0, 1),
		0.5,
	)
	taskMinimum = setting.New(
		"task-minimum",
		"`number` of labels that a task of assays needs; tasks with fewer, or with equal labels, are dropped",
		setting.Int(1),
		10,
	)
	besideWeight = setting.New(
		"descriptors-weight",
		"`weight` of the loss of descriptors (and Morgan counts, -morgan) next to that of assays; 0 is none",
		setting.Float(0, 1e6),
		1.0,
	)
)

// Assays predicts labels of tasks. With s = h·W + c the outputs for a table of labels y with weights w, which
// are 0 where there is no label,
//
//	loss = Σ over the tables of Σ w·l(s, y) / Σ w  +  Beside · the loss of Prediction,
//	l(s, y) = softplus(s) - y·s for labels from 0 to 1, else d²/2 where |d| = |s - y| < 1, else |d| - ½.
//
// c is the logit of the task's mean; labels outside 0 to 1 are standardised, and their c is 0.
type Assays struct {
	Prediction
	Beside float64 // weight of the loss of Prediction
	Heads  []*nn.Embedding
	Tasks  []*TaskTargets
}

// NewAssays returns the task with Xavier-uniform outputs, and those of NewPrediction for the described targets,
// of which there may be none.
func NewAssays(
	be backend.Backend, e gnn.Encoder, heads []*TaskTargets, described []*Targets, rng *rand.Rand,
) *Assays {
	a := &Assays{
		Prediction: *NewPrediction(be, e, described, rng),
		Beside:     1,
		Tasks:      heads,
	}
	for k, t := range heads {
		name := fmt.Sprintf("pretext.tasks.%d", k)
		a.Heads = append(a.Heads, nn.NewEmbedding(be, name, len(t.center), e.Width(), rng))
	}
	return a
}

// Parameters returns the encoder's and those of all outputs.
func (a *Assays) Parameters() []*autodiff.Param {
	params := a.Prediction.Parameters()
	for _, h := range a.Heads {
		params = append(params, h.Parameters()...)
	}
	return params
}

// Loss returns the loss [1×1] of a batch of the graphs with these indices, nil if they have no labels and
// nothing is predicted next to them.
func (a *Assays) Loss(b *graph.Batch, samples []int, t *autodiff.Tape) *autodiff.Var {
	h := a.Forward(gnn.NewBatch(t, b), nn.Train)
	var losses []*autodiff.Var
	for k, targets := range a.Tasks {
		if l := targets.loss(h, samples, a.Heads[k]); l != nil {
			losses = append(losses, l)
		}
	}
	if described := a.Prediction.losses(h, samples); described != nil {
		losses = append(losses, autodiff.ConcatRows(described...).Sum().Scale(a.Beside))
	}
	if losses == nil {
		return nil
	}
	return autodiff.ConcatRows(losses...).Sum()
}

// TaskTargets holds the labels of a table as targets of training. Tasks are those that are kept, in the order
// of the table, those with labels from 0 to 1 first.
type TaskTargets struct {
	rows   [][]tasks.Label // as in the table
	index  []int32         // of the tasks of the table among those that are kept, or -1
	binary int             // number of tasks with labels from 0 to 1
	center []float64       // c of such a task, the mean of another one
	std    []float64       // of the others
	weight []float64       // of a label of the task
}

// NewTaskTargets returns the targets of a table. A task with n labels weighs n^power. Tasks with fewer than
// minimum labels, or with equal ones, are dropped.
func NewTaskTargets(l *tasks.Labels, power float64, minimum int) *TaskTargets {
	summaries := summarise(l)
	t := &TaskTargets{
		rows:  l.Rows,
		index: slices.Repeat([]int32{-1}, len(l.Names)),
	}
	for _, binary := range []bool{true, false} {
		for k, s := range summaries {
			if s.n < minimum || s.least == s.largest || s.isBinary() != binary {
				continue
			}
			t.index[k] = int32(len(t.center))
			t.center = append(t.center, s.center())
			t.weight = append(t.weight, math.Pow(float64(s.n), power-1))
		}
		if binary {
			t.binary = len(t.center)
		}
	}
	t.setDeviations(summaries)
	return t
}

// summary summarises the labels of a task.
type summary struct {
	n       int
	sum     float64
	least   float64
	largest float64
}

// summarise returns the summaries of all tasks.
func summarise(l *tasks.Labels) []summary {
	summaries := make([]summary, len(l.Names))
	for _, row := range l.Rows {
		for _, label := range row {
			s := &summaries[label.Task]
			v := float64(label.Value)
			if s.n == 0 {
				s.least = v
				s.largest = v
			}
			s.n++
			s.sum += v
			s.least = min(s.least, v)
			s.largest = max(s.largest, v)
		}
	}
	return summaries
}

// isBinary reports whether all labels lie from 0 to 1.
func (s summary) isBinary() bool {
	return s.least >= 0 && s.largest <= 1
}

// center returns the logit of the mean for labels from 0 to 1, else the mean.
func (s summary) center() float64 {
	mean := s.sum / float64(s.n)
	if s.isBinary() {
		return math.Log(mean / (1 - mean))
	}
	return mean
}

// setDeviations sets the standard deviations of tasks.
func (t *TaskTargets) setDeviations(summaries []summary) {
	t.std = make([]float64, len(t.center))
	for _, row := range t.rows {
		for _, label := range row {
			k := t.index[label.Task]
			if k < int32(t.binary) {
				continue
			}
			d := float64(label.Value) - t.center[k]
			t.std[k] += d * d / float64(summaries[label.Task].n)
		}
	}
	for k, variance := range t.std {
		t.std[k] = math.Sqrt(variance)
	}
}

// batch returns the tasks with labels in a batch, ordered, and of all graphs and these tasks the targets and
// the weights [graphs×tasks], which are 0 where there is no label.
func (t *TaskTargets) batch(samples []int) (used []int32, y, w []float64) {
	position := make([]int32, len(t.center))
	for _, i := range samples {
		for _, label := range t.rows[i] {
			if k := t.index[label.Task]; k >= 0 {
				position[k] = 1
			}
		}
	}
	for k, present := range position {
		if present > 0 {
			position[k] = int32(len(used))
			used = append(used, int32(k))
		}
	}
	width := len(used)
	y = make([]float64, len(samples)*width)
	w = make([]float64, len(samples)*width)
	for n, i := range samples {
		for _, label := range t.rows[i] {
			k := t.index[label.Task]
			if k < 0 {
				continue
			}
			v := float64(label.Value)
			if int(k) >= t.binary {
				v = min(max((v-t.center[k])/t.std[k], -maxTarget), maxTarget)
			}
			entry := n*width + int(position[k])
			y[entry] = v
			w[entry] = t.weight[k]
		}
	}
	return used, y, w
}

// loss returns the loss [1×1] of graphs with vectors h, nil if they have no labels.
func (t *TaskTargets) loss(h *autodiff.Var, samples []int, head *nn.Embedding) *autodiff.Var {
	used, targets, weights := t.batch(samples)
	if len(used) == 0 {
		return nil
	}
	tape := h.Tape()
	n := len(samples)
	width := len(used)
	y := tape.Matrix(n, width, targets)
	w := tape.Matrix(n, width, weights)
	shift := make([]float64, width)
	binary := 0 // tasks in the batch with labels from 0 to 1
	for i, k := range used {
		if int(k) < t.binary {
			shift[i] = t.center[k]
			binary++
		}
	}
	s := h.MatMulT(head.Forward(tape, used)).AddRow(tape.Matrix(1, width, shift))

	// Each kind has its columns.
	var sums []*autodiff.Var
	if binary > 0 {
		sb := s.SliceCols(0, binary)
		l := sb.Softplus().Sub(sb.Mul(y.SliceCols(0, binary)))
		sums = append(sums, l.Mul(w.SliceCols(0, binary)).Sum())
	}
	if binary < width {
		d := s.SliceCols(binary, width).Sub(y.SliceCols(binary, width))
		sums = append(sums, smoothL1(d).Mul(w.SliceCols(binary, width)).Sum())
	}
	total := 0.0
	for _, v := range weights {
		total += v
	}
	return autodiff.ConcatRows(sums...).Sum().Scale(1 / total)
}

// taskTargets returns the targets of all tables of labels.
func (s Setup) taskTargets() (targets []*TaskTargets, err error) {
	for _, l := range s.Labels {
		if len(l.Rows) != len(s.Graphs) {
			return nil, fmt.Errorf("method: %s: labels of %d records for %d graphs", l.File, len(l.Rows), len(s.Graphs))
		}
		minimum := taskMinimum.Of(s.Options)
		t := NewTaskTargets(l, taskPower.Of(s.Options), minimum)
		if len(t.center) == 0 {
			return nil, fmt.Errorf("method: %s: none of %d tasks has %d labels that differ (-task-minimum)",
				l.File, len(l.Names), minimum)
		}
		targets = append(targets, t)
	}
	return targets, nil
}
