package method

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/gnn/dataset/tasks"
	"github.com/specmatch/specmatch/gnn/molecule"
	"github.com/specmatch/specmatch/specmatch/train"
)

// goldenLabels are the tables of golden.py.
func goldenLabels() []*tasks.Labels {
	first := &tasks.Labels{File: "first", Names: []string{"a", "b", "c", "few"}}
	second := &tasks.Labels{File: "second", Names: []string{"d"}}
	for i := range 60 {
		f := float64(i)
		var row, other []tasks.Label
		if i%2 == 0 {
			active := 0.0
			if i%3 == 0 {
				active = 1
			}
			row = append(row, tasks.Label{Task: 0, Value: float32(active)})
		} else {
			v := 3*math.Sin(0.9*f) + 2
			if i == 17 {
				v = 90
			}
			row = append(row, tasks.Label{Task: 1, Value: float32(v)})
		}
		if i%3 == 0 {
			row = append(row, tasks.Label{Task: 2, Value: float32(0.5 + 0.5*math.Cos(0.4*f))})
		}
		if i < 4 {
			row = append(row, tasks.Label{Task: 3, Value: 1})
		}
		if 3 <= i && i < 20 {
			other = append(other, tasks.Label{Task: 0, Value: float32(i % 2)})
		}
		first.Rows = append(first.Rows, row)
		second.Rows = append(second.Rows, other)
	}
	return []*tasks.Labels{first, second}
}

func newTableAssays() *Assays {
	be := newFloat64()
	var described [][]float64
	for i := range 60 {
		described = append(described, []float64{math.Sin(0.7 * float64(i))})
	}
	var heads []*TaskTargets
	for _, l := range goldenLabels() {
		heads = append(heads, NewTaskTargets(l, 0.5, 10))
	}
	a := NewAssays(be, newTable(be), heads, []*Targets{NewTargets(described)}, rand.New(rand.NewPCG(1, 1)))
	a.Beside = 0.5
	wave(a)
	return a
}

func TestAssaysGolden(t *testing.T) {
	a := newTableAssays()
	steps := train.NewMinimizer(a.Parameters()[0].Backend(), a, 0.05)
	checkGolden(t, "assays", steps, a, func(step int) *autodiff.Var {
		return a.Loss(tableGraphs(rawPaths), goldenSamples[step], steps.Tape)
	})
}

func TestAssaysGradients(t *testing.T) {
	a := newTableAssays()
	checkGradients(t, a.Parameters()[0].Backend(), a.Parameters(), "", func(tape *autodiff.Tape) *autodiff.Var {
		return a.Loss(tableGraphs(rawPaths), goldenSamples[0], tape)
	})
}

// TestAssaysLabels: the loss does not depend on the order of graphs or of tasks, a graph's labels are its own,
// and graphs without labels add nothing.
func TestAssaysLabels(t *testing.T) {
	be := newFloat64()
	tape := autodiff.NewTape(be)
	defer tape.Reset()
	loss := func(l *tasks.Labels, power float64, paths [][]int32, samples ...int) float64 {
		a := NewAssays(be, newTable(be), []*TaskTargets{NewTaskTargets(l, power, 10)}, nil, rand.New(rand.NewPCG(1, 1)))
		// all outputs are alike, so that tasks may change their places
		for _, head := range a.Heads {
			v := make([]float64, head.Table.Value.Len())
			for i := range v {
				v[i] = float64(i%tableWidth) - 1.3
			}
			be.Upload(head.Table.Value, v)
		}
		v := a.Loss(tableGraphs(paths), samples, tape)
		if v == nil {
			return math.NaN()
		}
		return v.Float()
	}
	first := goldenLabels()[0]
	want := loss(first, 0.5, rawPaths, 17, 3, 40)
	nearly(t, "turned", loss(first, 0.5, [][]int32{rawPaths[2], rawPaths[0], rawPaths[1]}, 40, 17, 3), want, 1e-13)
	if got := loss(first, 0.5, rawPaths, 3, 17, 40); math.Abs(got-want) < 1e-3 {
		t.Errorf("with labels of other graphs the loss is %v", got)
	}
	if got := loss(first, 1, rawPaths, 17, 3, 40); math.Abs(got-want) < 1e-4 {
		t.Errorf("with other weights of tasks the loss is %v", got)
	}
	turned := &tasks.Labels{Names: []string{"c", "few", "a", "b"}}
	for _, row := range first.Rows {
		var other []tasks.Label
		for _, l := range row {
			other = append(other, tasks.Label{Task: (l.Task + 2) % 4, Value: l.Value})
		}
		slices.SortFunc(other, func(a, b tasks.Label) int { return int(a.Task - b.Task) })
		turned.Rows = append(turned.Rows, other)
	}
	nearly(t, "other order of tasks", loss(turned, 0.5, rawPaths, 17, 3, 40), want, 1e-13)
	second := goldenLabels()[1]
	if got := loss(second, 0.5, rawPaths, 0, 1, 59); !math.IsNaN(got) {
		t.Errorf("graphs without labels have the loss %v", got)
	}
	nearly(t, "a graph without labels", loss(second, 0.5, rawPaths, 5, 7, 59), loss(second, 0.5, rawPaths[:2], 5, 7), 1e-13)
}

// TestAssaysLearn: an encoder learns labels of molecules next to descriptors, and says what it cannot use.
func TestAssaysLearn(t *testing.T) {
	s := Setup{
		Backend: newFloat64(), Regime: Transfer, Encoder: gnn.Architecture{Kind: gnn.KindChemGIN, Hidden: 8, Layers: 2}, Batch: 8,
		SMILES: strings.Fields("CCO CCN c1ccccc1 CC(=O)O C1CC1 CCCl CC#N c1ccncc1 CCCCCC CS O CC(C)C OCCO NCC(=O)O"),
	}
	l := &tasks.Labels{File: "t.csv", Names: []string{"has oxygen", "atoms"}}
	for i, smiles := range s.SMILES {
		m, err := molecule.Parse(smiles)
		if err != nil {
			t.Fatal(err)
		}
		g, err := m.Graph()
		if err != nil {
			t.Fatal(err)
		}
		s.Graphs = append(s.Graphs, g)
		row := []tasks.Label{{Task: 1, Value: float32(len(m.Atoms))}}
		if i%4 != 3 {
			row = slices.Insert(row, 0, tasks.Label{Task: 0, Value: float32(min(1, strings.Count(smiles, "O")))})
		}
		l.Rows = append(l.Rows, row)
	}
	s.Labels = []*tasks.Labels{l}
	s.Options = Options{"morgan": 16, "task-minimum": 5}
	learner, err := New("assays", s)
	if err != nil {
		t.Fatal(err)
	}
	defer learner.Close()
	var losses []float64
	if _, err := train.Run(t.Context(), learner, train.Options{Epochs: 40}, func(p train.Progress) error {
		if p.Ended {
			losses = append(losses, p.Metrics["loss"])
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if last := losses[len(losses)-1]; !(last < losses[0]/3) {
		t.Errorf("the loss goes from %v to %v", losses[0], last)
	}
	none, short, few := s, s, s
	none.Labels = nil
	short.Labels = []*tasks.Labels{{File: "t.csv", Names: l.Names, Rows: l.Rows[:3]}}
	few.Options = Options{"task-minimum": 15}
	for want, bad := range map[string]Setup{
		"assays needs labels of its graphs":                  none,
		"t.csv: labels of 3 records for 14 graphs":           short,
		"t.csv: none of 2 tasks has 15 labels that differ (": few,
	} {
		if _, err := New("assays", bad); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
