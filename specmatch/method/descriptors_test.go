package method

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/gnn/molecule"
	"github.com/specmatch/specmatch/gnn/molecule/feature"
	"github.com/specmatch/specmatch/specmatch/train"
)

// goldenTargets are those of golden.py, of two kinds.
func goldenTargets() []*Targets {
	const n = 60
	many, counts := make([][]float64, n), make([][]float64, n)
	for i := range n {
		f := float64(i)
		many[i], counts[i] = []float64{math.Sin(0.7 * f), math.Cos(1.1 * f), 5}, make([]float64, 2)
		if i%3 == 0 {
			counts[i][0] = float64(i % 4)
		}
		if i%5 == 0 {
			counts[i][1] = 2
		}
	}
	many[17][0], many[3][1] = 40, math.NaN()
	return []*Targets{NewTargets(many), NewTargets(counts)}
}

// goldenSamples are the graphs of each step.
var goldenSamples = [][]int{{17, 3, 40}, {5, 17, 9}, {0, 1, 59}}

func newTablePrediction() *Prediction {
	be := newFloat64()
	p := NewPrediction(be, newTable(be), goldenTargets(), rand.New(rand.NewPCG(1, 1)))
	wave(p)
	return p
}

func TestDescriptorsGolden(t *testing.T) {
	p := newTablePrediction()
	steps := train.NewMinimizer(p.Parameters()[0].Backend(), p, 0.05)
	checkGolden(t, "descriptors", steps, p, func(step int) *autodiff.Var {
		return p.Loss(tableGraphs(rawPaths), goldenSamples[step], steps.Tape)
	})
}

func TestDescriptorsGradients(t *testing.T) {
	p := newTablePrediction()
	checkGradients(t, p.Parameters()[0].Backend(), p.Parameters(), "", func(tape *autodiff.Tape) *autodiff.Var {
		return p.Loss(tableGraphs(rawPaths), goldenSamples[0], tape)
	})
}

// TestTargets: standardised, targets have the mean 0 and the variance 1 but for what bounds and
// gaps do to them, whatever the unit.
func TestTargets(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var rows [][]float64
	for range 500 {
		v := rng.NormFloat64()
		rows = append(rows, []float64{v, 1e6*v - 3e5, 0, max(0, v), math.Inf(1)})
	}
	rows[7][0], rows[7][1] = 1e5, math.NaN()
	targets := NewTargets(rows)
	all := make([]int, len(rows))
	for i := range all {
		all[i] = i
	}
	x := targets.rows(all)
	column := func(k int) (values []float64, mean, variance float64) {
		for i := range rows {
			v := x[5*i+k]
			values, mean, variance = append(values, v), mean+v/500, variance+v*v/500
		}
		return values, mean, variance
	}
	values, _, _ := column(0)
	if slices.Max(values) != maxTarget {
		t.Errorf("an outlier is %v", slices.Max(values))
	}
	for _, k := range []int{1, 3} {
		if _, mean, variance := column(k); math.Abs(mean) > 1e-6 || math.Abs(variance-1) > 3e-3 {
			t.Errorf("column %d has mean %v, variance %v", k, mean, variance)
		}
	}
	for _, k := range []int{2, 4} {
		if values, _, _ := column(k); slices.Max(values) != 0 || slices.Min(values) != 0 {
			t.Errorf("column %d, where there is nothing to predict: %v", k, values)
		}
	}
	if x[5*7+1] != 0 {
		t.Errorf("a gap is %v", x[5*7+1])
	}
}

// TestDescriptorsOrder: the loss of a batch does not depend on the order of its graphs, and
// a graph's numbers are its own.
func TestDescriptorsOrder(t *testing.T) {
	p := newTablePrediction()
	tape := autodiff.NewTape(p.Parameters()[0].Backend())
	defer tape.Reset()
	loss := func(paths [][]int32, samples ...int) float64 {
		return p.Loss(tableGraphs(paths), samples, tape).Float()
	}
	want := loss(rawPaths, 17, 3, 40)
	nearly(t, "turned", loss([][]int32{rawPaths[2], rawPaths[0], rawPaths[1]}, 40, 17, 3), want, 1e-13)
	if got := loss(rawPaths, 3, 17, 40); math.Abs(got-want) < 1e-3 {
		t.Errorf("with numbers of other graphs the loss is %v", got)
	}
}

// TestDescriptorsLearn: an encoder learns from the readout of all layers to tell descriptors and
// counts of molecules, of which it says which cannot be read.
func TestDescriptorsLearn(t *testing.T) {
	s := Setup{
		Backend: newFloat64(), Regime: Transfer, Encoder: gnn.Architecture{Kind: gnn.KindChemGIN, Hidden: 8, Layers: 2}, Batch: 8,
		SMILES: strings.Fields("CCO CCN c1ccccc1 CC(=O)O C1CC1 CCCl CC#N c1ccncc1 CCCCCC CS O CC(C)C OCCO NCC(=O)O"),
	}
	s.Options = Options{"morgan": 64}
	s.Graphs = graphsOf(t, s.SMILES)
	l, err := New("descriptors", s)
	if err != nil {
		t.Fatal(err)
	}
	var losses []float64
	if _, err := train.Run(t.Context(), l, train.Options{Epochs: 60}, func(p train.Progress) error {
		if p.Ended {
			losses = append(losses, p.Metrics["loss"])
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if last := losses[len(losses)-1]; !(last < losses[0]/4) {
		t.Errorf("the loss goes from %v to %v", losses[0], last)
	}
	if a, err := gnn.ArchitectureOf(l.Model.Encoder); err != nil || a.Readout != gnn.ReadoutAll {
		t.Errorf("the readout is %q, %v", a.Readout, err)
	}
	bad := s
	bad.SMILES = slices.Clone(s.SMILES)
	bad.SMILES[3] = "C1CC"
	if _, err := New("descriptors", bad); err == nil || !strings.Contains(err.Error(), `graph 3: molecule: "C1CC"`) {
		t.Error(err)
	}
	bad.SMILES = nil
	if _, err := New("descriptors", bad); err == nil || !strings.Contains(err.Error(), "wants the SMILES") {
		t.Error(err)
	}
	bad.Encoder = gnn.Architecture{Kind: gnn.KindGIN, In: feature.Hu.NodeWidth(), Hidden: 8, Layers: 2}
	if _, err := New("descriptors", bad); err == nil || !strings.Contains(err.Error(), "is for molecules") {
		t.Error(err)
	}
}

// graphsOf returns the graphs of molecules.
func graphsOf(t *testing.T, smiles []string) (graphs []*graph.Graph) {
	t.Helper()
	for _, text := range smiles {
		m, err := molecule.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		g, err := m.Graph()
		if err != nil {
			t.Fatal(err)
		}
		graphs = append(graphs, g)
	}
	return graphs
}

// TestAnneal: the rate falls as torch.optim.lr_scheduler.CosineAnnealingLR's (T_max=4, eta_min=0), and once it
// is 0 the parameters stay.
func TestAnneal(t *testing.T) {
	for step, want := range []float64{0.1, 0.08535533905932738, 0.05, 0.014644660940672627, 0, 0} {
		nearly(t, fmt.Sprint("step ", step), annealed(0.1, step, 4), want, 1e-15)
	}
	s := Setup{
		Backend: newFloat64(),
		Regime:  Transfer,
		Encoder: gnn.Architecture{Kind: gnn.KindChemGIN, Hidden: 8, Layers: 2},
		Batch:   2,
		SMILES:  strings.Fields("CCO CCN c1ccccc1 CC(=O)O"),
		Options: Options{"anneal": 2},
	}
	s.Graphs = graphsOf(t, s.SMILES)
	l, err := New("descriptors", s)
	if err != nil {
		t.Fatal(err)
	}
	first := l.Model.Encoder.Parameters()[0]
	var weights [][]float64 // after each epoch
	_, err = train.Run(t.Context(), l, train.Options{Epochs: 3}, func(p train.Progress) error {
		if p.Ended {
			w := make([]float64, first.Value.Len())
			s.Backend.Download(w, first.Value)
			weights = append(weights, w)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if slices.Equal(weights[0], weights[1]) {
		t.Error("the second epoch, of a rate above 0, changes nothing")
	}
	if !slices.Equal(weights[1], weights[2]) {
		t.Error("the third epoch, of rate 0, changes the weights")
	}
}
