package main

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/specmatch/specmatch/backend/cpu"
	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/gnn/dataset/records"
	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/gnn/molecule"
	"github.com/specmatch/specmatch/gnn/molecule/descriptor"
	"github.com/specmatch/specmatch/gnn/molecule/fingerprint"
	"github.com/specmatch/specmatch/gnn/random"
	"github.com/specmatch/specmatch/specmatch"
	"github.com/specmatch/specmatch/specmatch/eval/probe"
	"github.com/specmatch/specmatch/specmatch/finetune"
	"github.com/specmatch/specmatch/specmatch/pretrained"
	"github.com/specmatch/specmatch/tensor"
)

// set is a set of the benchmark with its metric, as finetune.Metrics names it.
type set struct{ name, metric string }

// sets are those with an official division: of the TDC ADMET group (Huang et al., Therapeutics
// Data Commons, NeurIPS 2021), with the metrics of its leaderboard, and of Biogen (Fang et al.,
// Prospective validation of machine learning algorithms for ADME prediction, JCIM 2023).
var sets = []set{
	{"caco2_wang", "mae"}, {"hia_hou", "roc_auc"}, {"bioavailability_ma", "roc_auc"}, {"lipophilicity_astrazeneca", "mae"},
	{"solubility_aqsoldb", "mae"}, {"bbb_martins", "roc_auc"}, {"cyp2d6_veith", "average_precision"}, {"cyp2c9_veith", "average_precision"},
	{"cyp2c9_substrate_carbonmangels", "average_precision"}, {"cyp2d6_substrate_carbonmangels", "average_precision"},
	{"cyp3a4_substrate_carbonmangels", "roc_auc"}, {"clearance_microsome_az", "spearman"}, {"herg", "roc_auc"}, {"ames", "roc_auc"},
	{"biogen_hlm", "rmse"},
}

func find(name string) (set, error) {
	var names []string
	for _, s := range sets {
		if s.name == name {
			return s, nil
		}
		names = append(names, s.name)
	}
	return set{}, fmt.Errorf("-dataset %s: no such set (have: %s)", name, strings.Join(names, ", "))
}

// kind is what the targets are, by the metric.
func (s set) kind() specmatch.Kind {
	if s.metric == "roc_auc" || s.metric == "average_precision" {
		return specmatch.Binary
	}
	return specmatch.Regression
}

// lower reports whether less is better.
func (s set) lower() bool { return s.metric == "mae" || s.metric == "rmse" }

// loadedSet is a set with its molecules.
type loadedSet struct {
	set
	sum         string // of the file
	left        []string
	molecules   []*molecule.Molecule
	y           []float64
	train, test []int

	mu sync.Mutex
	x  map[string][]float32 // by the name of the feature
}

// load reads a set. Records without a molecule that can be used are left out, with a line.
func (s set) load(ctx context.Context, dir string) (*loadedSet, error) {
	path := filepath.Join(dir, s.name+".csv")
	l := &loadedSet{set: s, x: map[string][]float32{}}
	var err error
	if l.sum, err = dataset.SumFile(ctx, path); err != nil {
		if l.sum, err = dataset.SumFile(ctx, path+".gz"); err != nil {
			return nil, fmt.Errorf("%s: %w", s.name, err)
		}
		path += ".gz"
	}
	dropped := 0
	err = records.Read(ctx, path, records.Options{Want: records.Molecules, SMILES: "smiles", Atoms: "rich", Fields: []string{"y", "split"}}, func(r *records.Record) error {
		if r.Err != nil {
			dropped++
			return nil
		}
		y, err := strconv.ParseFloat(r.Fields[0], 64)
		if err != nil {
			return fmt.Errorf("%s:%d: y %q: %w", path, r.Line, r.Fields[0], err)
		}
		m, err := new(molecule.Parser).Parse(r.SMILES) // a parser's next molecule takes the place of the last
		if err != nil {
			return fmt.Errorf("%s:%d: %w", path, r.Line, err)
		}
		switch r.Fields[1] {
		case "train":
			l.train = append(l.train, len(l.y))
		case "test":
			l.test = append(l.test, len(l.y))
		default:
			return fmt.Errorf("%s:%d: split %q; want train or test", path, r.Line, r.Fields[1])
		}
		l.molecules, l.y = append(l.molecules, m), append(l.y, y)
		return nil
	})
	if dropped > 0 {
		l.left = append(l.left, fmt.Sprintf("%s: %d molecules cannot be used", s.name, dropped))
	}
	if err == nil && (len(l.train) < 16 || len(l.test) < 2) {
		err = fmt.Errorf("%s: %d records to train on and %d to test; want 16 and 2", path, len(l.train), len(l.test))
	}
	return l, err
}

// feature makes a part of the vector of a molecule, [N×dim].
type feature func(ctx context.Context, l *loadedSet) (x []float32, dim int, err error)

const countColumns = 2048

var features = map[string]feature{
	"counts": func(_ context.Context, l *loadedSet) ([]float32, int, error) {
		x, g := make([]float32, len(l.molecules)*countColumns), fingerprint.Morgan{Radius: 2}
		for i, m := range l.molecules {
			g.Fold(x[i*countColumns:(i+1)*countColumns], m, false)
		}
		return x, countColumns, nil
	},
	"descriptors": func(_ context.Context, l *loadedSet) ([]float32, int, error) {
		var x []float32
		var c descriptor.Calculator
		values := make([]float64, len(descriptor.Names()))
		for _, m := range l.molecules {
			c.Compute(values, m)
			for _, v := range values {
				x = append(x, float32(v))
			}
		}
		return x, len(values), nil
	},
	"vectors": func(ctx context.Context, l *loadedSet) ([]float32, int, error) {
		be := cpu.New(tensor.Float32)
		defer be.Close()
		m, err := pretrained.Open(be)
		if err != nil {
			return nil, 0, err
		}
		categories, err := graph.CategoriesOf(m.Card.Encoder.Atoms)
		if err != nil {
			return nil, 0, err
		}
		var graphs []*graph.Graph
		for _, mol := range l.molecules {
			g, err := mol.GraphOf(categories)
			if err != nil {
				return nil, 0, err
			}
			graphs = append(graphs, g)
		}
		h, err := m.Embed(ctx, graphs)
		x := make([]float32, len(h))
		for i, v := range h {
			x[i] = float32(v)
		}
		return x, m.Width(), err
	},
}

// method is a row of the table: a linear model on some features side by side.
type method struct {
	name, title string
	features    []string // none predicts the mean
}

var methods = []method{
	{"mean", "mean, or share of class 1", nil},
	{"counts", "Morgan counts", []string{"counts"}},
	{"descriptors", "descriptors", []string{"descriptors"}},
	{"both", "counts and descriptors", []string{"counts", "descriptors"}},
	{"vectors", "vectors of the encoder", []string{"vectors"}},
	{"all", "all of these", []string{"counts", "descriptors", "vectors"}},
}

func methodNames() (names []string) {
	for _, m := range methods {
		names = append(names, m.name)
	}
	return names
}

func methodOf(name string) method {
	return methods[slices.IndexFunc(methods, func(m method) bool { return m.name == name })]
}

// vectors returns the features of a method side by side [N×dim], the same slice at every call.
func (l *loadedSet) vectors(ctx context.Context, m method) (x []float32, dim int, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := len(l.y)
	if x, ok := l.x[m.name]; ok {
		return x, len(x) / n, nil
	}
	var parts [][]float32
	for _, name := range m.features {
		part, ok := l.x[name]
		if !ok {
			if part, _, err = features[name](ctx, l); err != nil {
				return nil, 0, err
			}
			l.x[name] = part
		}
		parts = append(parts, part)
		dim += len(part) / n
	}
	for i := range n {
		for _, p := range parts {
			w := len(p) / n
			x = append(x, p[i*w:(i+1)*w]...)
		}
	}
	if dim == 0 { // a column that says nothing
		x, dim = make([]float32, n), 1
	}
	l.x[m.name] = x
	return x, dim, nil
}

// outcome is what a method with a seed leaves in the journal.
type outcome struct {
	Set, Method string
	Value       float64
	Strength    float64
}

const purposeValid random.Purpose = 1<<36 + 1

// evaluate returns the metric on the test part.
func (l *loadedSet) evaluate(ctx context.Context, name string, seed int) (out outcome, err error) {
	x, dim, err := l.vectors(ctx, methodOf(name))
	if err != nil {
		return out, err
	}
	order := random.Stream(uint64(seed), purposeValid, 0, 0).Perm(len(l.train))
	var train, valid []int
	for k, i := range order {
		if k < len(order)/8 {
			valid = append(valid, l.train[i])
		} else {
			train = append(train, l.train[i])
		}
	}
	kind := probe.Squares
	if l.kind() == specmatch.Binary {
		kind = probe.Logistic
	}
	d := probe.Data{X: probe.Standardize(x, dim, train).Apply(x), Dim: dim, Y: l.y, Tasks: 1, Kind: kind}
	m, err := probe.Choose(ctx, d, train, valid, func(predicted, y []float64) float64 {
		if v := l.score(predicted, y); !l.lower() {
			return v
		} else {
			return -v
		}
	})
	if err != nil {
		return out, err
	}
	predicted := m.Predict(d.X)
	var p, y []float64
	for _, i := range l.test {
		p, y = append(p, predicted[i]), append(y, l.y[i])
	}
	return outcome{l.name, name, l.score(p, y), m.Strength}, nil
}

// score is the metric of predictions; 0 where it is undefined, as Spearman's is of a constant.
func (l *loadedSet) score(predicted, y []float64) float64 {
	v := finetune.Score(specmatch.Head{Kind: l.kind(), Outputs: 1}, predicted, y)[0].Get(l.metric)
	if math.IsNaN(v) {
		return 0
	}
	return v
}
