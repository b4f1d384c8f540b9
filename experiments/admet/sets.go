package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"gonum.org/v1/gonum/stat"

	"github.com/specmatch/specmatch/backend/cpu"
	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/gnn/dataset/moleculenet"
	"github.com/specmatch/specmatch/gnn/dataset/records"
	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/gnn/molecule"
	"github.com/specmatch/specmatch/gnn/molecule/feature"
	"github.com/specmatch/specmatch/gnn/random"
	"github.com/specmatch/specmatch/specmatch/apply"
	"github.com/specmatch/specmatch/specmatch/eval/forest"
	"github.com/specmatch/specmatch/specmatch/eval/probe"
	"github.com/specmatch/specmatch/specmatch/finetune"
	"github.com/specmatch/specmatch/specmatch/model"
	"github.com/specmatch/specmatch/specmatch/pretrained"
	"github.com/specmatch/specmatch/tensor"
)

// set is a set of a benchmark with its metric, as finetune.Metrics names it.
type set struct {
	name, metric string
	scaffolds    bool // is divided by scaffold, for want of an official division
}

// sets are those with an official division, of the TDC ADMET group (Huang et al., Therapeutics
// Data Commons, NeurIPS 2021), with the metrics of its leaderboard, and of Biogen (Fang et al.,
// Prospective validation of machine learning algorithms for ADME prediction, JCIM 2023); and
// those of MoleculeNet (Wu et al., Chemical Science 2018).
var sets = []set{
	{"caco2_wang", "mae", false},
	{"hia_hou", "roc_auc", false},
	{"bioavailability_ma", "roc_auc", false},
	{"lipophilicity_astrazeneca", "mae", false},
	{"solubility_aqsoldb", "mae", false},
	{"bbb_martins", "roc_auc", false},
	{"cyp2d6_veith", "average_precision", false},
	{"cyp2c9_veith", "average_precision", false},
	{"cyp2c9_substrate_carbonmangels", "average_precision", false},
	{"cyp2d6_substrate_carbonmangels", "average_precision", false},
	{"cyp3a4_substrate_carbonmangels", "roc_auc", false},
	{"clearance_microsome_az", "spearman", false},
	{"herg", "roc_auc", false},
	{"ames", "roc_auc", false},
	{"biogen_hlm", "rmse", false},
	{"esol", "rmse", true},
	{"freesolv", "rmse", true},
	{"lipo", "rmse", true},
	{"bbbp", "roc_auc", true},
	{"bace", "roc_auc", true},
	{"clintox", "roc_auc", true},
	{"sider", "roc_auc", true},
	{"tox21", "roc_auc", true},
	{"toxcast", "roc_auc", true},
	{"hiv", "roc_auc", true}, {"muv", "roc_auc", true},
	{expansionrx, relativeError, false},
}

// named returns the names of the sets that are divided by scaffold, or of those with an official division.
func named(scaffolds bool) (names []string) {
	for _, s := range sets {
		if s.scaffolds == scaffolds && s.endpoints() == nil {
			names = append(names, s.name)
		}
	}
	return names
}

func find(name string) (set, error) {
	if i := slices.IndexFunc(sets, func(s set) bool { return s.name == name }); i >= 0 {
		return sets[i], nil
	}
	return set{}, fmt.Errorf("-dataset %s: no such set (have: %s)",
		name, strings.Join(slices.Concat(named(false), named(true), []string{expansionrx}), ", "))
}

// kind is what the targets are, by the metric.
func (s set) kind() model.Kind {
	if s.metric == "roc_auc" || s.metric == "average_precision" {
		return model.Binary
	}
	return model.Regression
}

func (s set) protocol() string {
	switch {
	case s.scaffolds:
		return "scaffold"
	case s.endpoints() != nil:
		return "time"
	}
	return "tdc"
}

// sign is that of what is better than 0: 1, or -1 of an error.
func (s set) sign() float64 {
	if s.metric == "mae" || s.metric == "rmse" || s.metric == relativeError {
		return -1
	}
	return 1
}

// loadedSet is a set with its molecules.
type loadedSet struct {
	set
	sum         string   // of the file
	dropped     int      // records without a molecule that can be used
	smiles      []string // of the molecules of a joined set
	molecules   []*molecule.Molecule
	y           []float64 // [molecules×tasks], NaN where there is none
	tasks       int
	train, test []int    // of the official division
	scaffold    []string // of the molecules
	encoder     string   // a file, or "" for the built-in one

	mu   sync.Mutex
	key  string
	x    []float32
	fits map[string][][]float64 // predictions of fits; see tuneOnce
}

// locate returns the path of DIR/NAME.csv or NAME.csv.gz, and the checksum.
func locate(ctx context.Context, dir, name string) (path, sum string, err error) {
	path = filepath.Join(dir, name+".csv")
	sum, err = dataset.SumFile(ctx, path)
	if errors.Is(err, fs.ErrNotExist) {
		path += ".gz"
		sum, err = dataset.SumFile(ctx, path)
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", name, err)
	}
	return path, sum, err
}

// load reads a set. Records without a molecule that can be used are left out.
func (s set) load(ctx context.Context, dir string) (*loadedSet, error) {
	if s.endpoints() != nil {
		return s.loadJoined(ctx, dir)
	}
	l := &loadedSet{set: s}
	path, sum, err := locate(ctx, dir, s.name)
	if err != nil {
		return nil, err
	}
	l.sum = sum
	o := records.Options{
		Want:      records.Molecules,
		SMILES:    "smiles",
		Atoms:     "rich",
		Fields:    []string{"y"},
		Scaffolds: true,
	}
	if s.scaffolds {
		o.SMILES, o.Fields, err = moleculenet.Columns(ctx, path)
		if err != nil {
			return nil, err
		}
	}
	l.tasks = len(o.Fields)
	if !s.scaffolds {
		o.Fields = append(o.Fields, "split")
	}
	err = records.Read(ctx, path, o, func(r *records.Record) error {
		if r.Err != nil {
			l.dropped++
			return nil
		}
		for k, text := range r.Fields[:l.tasks] {
			y := math.NaN()
			text = strings.TrimSpace(text)
			if text != "" || !s.scaffolds {
				y, err = strconv.ParseFloat(text, 64)
				if err != nil {
					return fmt.Errorf("%s:%d: %s %q: %w", path, r.Line, o.Fields[k], text, err)
				}
			}
			l.y = append(l.y, y)
		}
		// a parser's next molecule takes the place of the last
		m, err := new(molecule.Parser).Parse(r.SMILES)
		if err != nil {
			return fmt.Errorf("%s:%d: %w", path, r.Line, err)
		}
		switch n := len(l.molecules); {
		case s.scaffolds:
		case r.Fields[1] == "train":
			l.train = append(l.train, n)
		case r.Fields[1] == "test":
			l.test = append(l.test, n)
		default:
			return fmt.Errorf("%s:%d: split %q; want train or test", path, r.Line, r.Fields[1])
		}
		l.molecules = append(l.molecules, m)
		l.scaffold = append(l.scaffold, r.Scaffold)
		return nil
	})
	if err == nil && !s.scaffolds && (len(l.train) < 16 || len(l.test) < 2) {
		err = fmt.Errorf("%s: %d records to train on and %d to test; want 16 and 2",
			path, len(l.train), len(l.test))
	}
	return l, err
}

// computation makes a part of the vector of a molecule, [N×dim].
type computation func(ctx context.Context, l *loadedSet) (x []float32, dim int, err error)

var features = map[string]computation{
	"counts":      computed("morgan:2:2048"),
	"bits":        computed("bits:2:2048"),
	"descriptors": computed("descriptors"),
	"vectors": func(ctx context.Context, l *loadedSet) ([]float32, int, error) {
		be := cpu.New(tensor.Float32)
		defer be.Close()
		open := func() (*model.Trained, error) { return pretrained.Open(be) }
		if l.encoder != "" {
			open = func() (*model.Trained, error) { return model.Open(l.encoder, be) }
		}
		m, err := open()
		if err != nil {
			return nil, 0, err
		}
		graphs, err := l.graphs(m.Card.Encoder.Atoms, nil)
		if err != nil {
			return nil, 0, err
		}
		h, err := m.Embed(ctx, graphs)
		x := make([]float32, len(h))
		for i, v := range h {
			x[i] = float32(v)
		}
		return x, m.Width(), err
	},
}

// computed is a feature of package apply, by its word there.
func computed(word string) computation {
	return func(_ context.Context, l *loadedSet) ([]float32, int, error) {
		n, vectors, err := numbers(word)
		if err != nil {
			return nil, 0, err
		}
		rows := make([][]float32, len(l.molecules))
		for i, m := range l.molecules {
			rows[i] = vectors.Vector(m)
		}
		vectors.Complete()
		return slices.Concat(rows...), n.Size, nil
	}
}

// numbers returns what features of package apply are, and how they are computed.
func numbers(words ...string) (*model.Numbers, records.Vectors, error) {
	parsed, err := apply.ParseFeatures(words)
	if err != nil {
		return nil, nil, err
	}
	n, vector, err := apply.Numbers(parsed)
	if err != nil {
		return nil, nil, err
	}
	return n, vector(), nil
}

// graphs returns those of the molecules, with the vectors as their Globals, unless these are nil.
func (l *loadedSet) graphs(atoms string, vectors records.Vectors) (graphs []*graph.Graph, err error) {
	categories, err := feature.ByName(atoms)
	if err != nil {
		return nil, err
	}
	for _, m := range l.molecules {
		g, err := m.GraphOf(categories)
		if err != nil {
			return nil, err
		}
		if vectors != nil {
			g.Globals = vectors.Vector(m)
		}
		graphs = append(graphs, g)
	}
	if vectors != nil {
		vectors.Complete()
	}
	return graphs, nil
}

// method is a row of the table: a model on some features side by side.
type method struct {
	name, title string
	features    []string // none predicts the mean
	model       fitted
	more        bool // is not among those that are compared unless others are asked for
}

// fitted is what is fitted to features.
type fitted int

const (
	linear fitted = iota
	// near is the mean of the nearest neighbours: of fingerprints by Tanimoto's similarity, of
	// vectors by the cosine when they are standardised.
	near
	// trees is a random forest of a hundred trees, which tries a third of the columns at a split for numbers
	// and their square root otherwise.
	trees
	// tuned is an encoder that is fitted itself, as fittings says.
	tuned
	// recall is how often, in %, the molecule that is nearest has the same scaffold, of those of the
	// set that share theirs with another. It takes no targets.
	recall
)

var fittings = map[string]fitting{
	"tuned-hu":       {atoms: feature.Hu.Name, members: 1},
	"tuned-rich":     {atoms: feature.Rich.Name, members: 1},
	"tuned-encoder":  {encoder: true, members: 1},
	"tuned-features": {atoms: feature.Rich.Name, features: earlier, members: 1},
	"tuned-ensemble": {atoms: feature.Rich.Name, features: earlier, members: 5},
	"tuned-forest":   {atoms: feature.Rich.Name, features: earlier, forest: true, members: 1},
	"tuned-default":  mixture(fitting{features: earlier}),
	"tuned-three":    mixture(fitting{features: earlier, members: 3}),
	"tuned-rdkit":    mixture(fitting{features: rdkit}),
	"tuned-auto":     mixture(fitting{choose: true}),
	"tuned-minimol":  mixture(fitting{features: minimol}),
	"tuned-zinc":     mixture(fitting{features: zinc}),
	"tuned-before":   {atoms: feature.Rich.Name, features: zinc, members: 1},
	"light-default":  mixture(fitting{features: earlier, light: true}),
	"light-rdkit":    mixture(fitting{features: rdkit, light: true}),
	"light-auto":     mixture(fitting{choose: true, light: true}),
	"tuned-alone": {
		atoms:    feature.Rich.Name,
		features: earlier,
		members:  1,
		absolute: true,
		alone:    true,
	},
	"tuned-absolute": {
		atoms:    feature.Rich.Name,
		features: earlier,
		members:  1,
		absolute: true,
	},
	"tuned-together": {
		atoms:    feature.Rich.Name,
		features: earlier,
		members:  3,
		absolute: true,
	},
}

// Sets of features, by their full names.
var (
	earlier = []string{"descriptors", "morgan:2:2048", learned}
	rdkit   = []string{"rdkit", "morgan:2:2048", learned}
	minimol = []string{
		"descriptors",
		"morgan:2:2048",
		learned + ":minimol",
	}
	zinc = []string{
		"descriptors",
		"morgan:2:2048",
		learned + ":zinc",
	}
)

// mixture adds to a fit what all fits of finetune have: the forest, and a scale that validation chooses.
func mixture(f fitting) fitting {
	f.atoms = feature.Rich.Name
	f.forest = true
	f.scale = true
	f.members = max(1, f.members)
	return f
}

// neighbours is how many are asked.
const neighbours = 5

var methods = []method{
	{"mean", "mean, or share of class 1", nil, linear, false},
	{"bits", "Morgan bits", []string{"bits"}, linear, true},
	{"counts", "Morgan counts", []string{"counts"}, linear, false},
	{"descriptors", "descriptors", []string{"descriptors"}, linear, false},
	{"both", "counts and descriptors", []string{"counts", "descriptors"}, linear, false},
	{"vectors", "vectors of the encoder", []string{"vectors"}, linear, false},
	{"all", "all of these", []string{"counts", "descriptors", "vectors"}, linear, false},
	{"bits-near", "bits, neighbours", []string{"bits"}, near, true},
	{"counts-near", "counts, neighbours", []string{"counts"}, near, true},
	{"vectors-near", "vectors, neighbours", []string{"vectors"}, near, true},
	{"forest", "random forest", []string{"counts", "descriptors"}, trees, true},
	{"tuned-hu", "fine-tuned, Hu's categories", nil, tuned, true},
	{"tuned-rich", "fine-tuned, rich categories", nil, tuned, true},
	{"tuned-encoder", "fine-tuned encoder", nil, tuned, true},
	{"tuned-features", "fine-tuned, with features", nil, tuned, true},
	{"tuned-ensemble", "five of these", nil, tuned, true},
	{"tuned-forest", "with features and the forest", nil, tuned, true},
	{"tuned-default", "with features, the forest and a chosen scale", nil, tuned, true},
	{"tuned-three", "three of these", nil, tuned, true},
	{"tuned-rdkit", "one with RDKit's descriptors", nil, tuned, true},
	{"tuned-auto", "one with chosen features", nil, tuned, true},
	{"tuned-minimol", "one with vectors of minimol", nil, tuned, true},
	{"tuned-zinc", "one with vectors of zinc", nil, tuned, true},
	{"tuned-before", "zinc, without forest and scale", nil, tuned, true},
	{"light-default", "without a network", nil, tuned, true},
	{"light-rdkit", "without, RDKit's descriptors", nil, tuned, true},
	{"light-auto", "without, chosen features", nil, tuned, true},
	{"tuned-alone", "the same, each target alone", nil, tuned, true},
	{"tuned-absolute", "with features, absolute errors", nil, tuned, true},
	{"tuned-together", "three of these", nil, tuned, true},
	{"counts-scaffold", "counts, scaffold of the nearest, %", []string{"counts"}, recall, true},
	{"vectors-scaffold", "vectors, scaffold of the nearest, %", []string{"vectors"}, recall, true},
}

// methodNames returns the names of the methods, or of those that are compared by default.
func methodNames(finetuned bool) (names []string) {
	for _, m := range methods {
		if finetuned || !m.more {
			names = append(names, m.name)
		}
	}
	return names
}

func methodOf(name string) method {
	return methods[slices.IndexFunc(methods, func(m method) bool {
		return m.name == name
	})]
}

// vectors returns features side by side [N×dim]. Those of the last call are kept.
func (l *loadedSet) vectors(ctx context.Context, names []string) (x []float32, dim int, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := len(l.molecules)
	key := strings.Join(names, " ")
	if l.x != nil && l.key == key {
		return l.x, len(l.x) / n, nil
	}
	l.x = nil
	l.key = key
	var parts [][]float32
	for _, name := range names {
		part, width, err := features[name](ctx, l)
		if err != nil {
			return nil, 0, err
		}
		parts = append(parts, part)
		dim += width
	}
	switch len(parts) {
	case 0: // a column that says nothing
		x = make([]float32, n)
		dim = 1
	case 1:
		x = parts[0]
	default:
		for i := range n {
			for _, p := range parts {
				w := len(p) / n
				x = append(x, p[i*w:(i+1)*w]...)
			}
		}
	}
	l.x = x
	return x, dim, nil
}

// outcome is what a method with a seed leaves in the journal.
type outcome struct {
	Set, Method string
	Value       float64
	Strength    float64
	Valid       float64 // the metric on the validation part
	// Endpoints are the metric of each endpoint of a joined set on the test part.
	Endpoints []float64 `json:",omitempty"`
}

const purposeValid random.Purpose = 1<<36 + 1

// divide returns a division: of the official part to train on at random, or, with seed 0, as Hu et
// al. divide by scaffold, with others in other orders of the scaffolds that are not large.
func (l *loadedSet) divide(seed int) (dataset.Split, error) {
	rng := random.Stream(uint64(seed), purposeValid, 0, 0)
	if l.scaffolds {
		if seed == 0 {
			rng = nil
		}
		s, err := dataset.ScaffoldSplitIn(l.scaffold, 0.8, 0.1, rng)
		if err == nil {
			err = s.Check(len(l.scaffold), func(i int) bool {
				return slices.ContainsFunc(l.y[i*l.tasks:(i+1)*l.tasks], func(y float64) bool {
					return !math.IsNaN(y)
				})
			})
		}
		return s, err
	}
	s := dataset.Split{Test: l.test}
	order := rng.Perm(len(l.train))
	for k, i := range order {
		if k < len(order)/8 {
			s.Valid = append(s.Valid, l.train[i])
		} else {
			s.Train = append(s.Train, l.train[i])
		}
	}
	return s, nil
}

// evaluate returns the metric on the test part.
func (l *loadedSet) evaluate(ctx context.Context, name string, seed int) (out outcome, err error) {
	m := methodOf(name)
	s, err := l.divide(seed)
	if err != nil {
		return out, err
	}
	out = outcome{Set: l.name, Method: name}
	valid := some(l.y, l.tasks, s.Valid)
	test := some(l.y, l.tasks, s.Test)
	if m.model == tuned {
		p, err := l.tuneOnce(ctx, fittings[name], s, seed, s.Valid, s.Test)
		if err == nil {
			out.Valid = l.score(p[0], valid)
			out.judge(l, p[1], test)
		}
		return out, err
	}
	x, dim, err := l.vectors(ctx, m.features)
	if err != nil {
		return out, err
	}
	if m.model == trees {
		predicted, err := l.forest(ctx, x, dim, s, seed)
		out.judge(l, predicted, test)
		return out, err
	}
	kind := probe.Squares
	if l.kind() == model.Binary {
		kind = probe.Logistic
	}
	similarity := probe.Cosine
	switch fingerprint := len(m.features) == 1 &&
		(m.features[0] == "bits" || m.features[0] == "counts"); {
	case fingerprint && m.model != linear:
		similarity = probe.Tanimoto
	case fingerprint && l.scaffolds:
		x = slices.Clone(x)
		if m.features[0] == "counts" {
			for k, v := range x {
				x[k] = float32(math.Log1p(float64(v)))
			}
		}
	default:
		x = probe.Standardize(x, dim, s.Train).Apply(x)
	}
	if m.model == recall {
		out.Value, err = l.recall(ctx, x, dim, similarity)
		return out, err
	}
	d := probe.Data{
		X:     x,
		Dim:   dim,
		Y:     l.y,
		Tasks: l.tasks,
		Kind:  kind,
	}
	if m.model == near {
		predicted, err := probe.Neighbours(ctx, d, s.Train, s.Test, neighbours, similarity)
		out.judge(l, predicted, test)
		return out, err
	}
	fit, err := probe.Choose(ctx, d, s.Train, s.Valid, func(predicted, y []float64) float64 {
		return l.sign() * l.score(predicted, y)
	})
	if err != nil {
		return out, err
	}
	out.Valid = l.score(fit.Predict(some(x, dim, s.Valid)), valid)
	out.Strength = fit.Strength
	out.judge(l, fit.Predict(some(x, dim, s.Test)), test)
	return out, nil
}

// forest returns the predictions of a random forest for each task on the test part.
func (l *loadedSet) forest(
	ctx context.Context, x []float32, dim int, s dataset.Split, seed int,
) ([]float64, error) {
	o := forest.Options{Seed: uint64(seed)}
	if l.kind() == model.Binary {
		o.Share = 1 / math.Sqrt(float64(dim))
	}
	predicted := make([]float64, len(s.Test)*l.tasks)
	for task := range l.tasks {
		var labelled []int
		var y []float64
		for _, i := range s.Train {
			if v := l.y[i*l.tasks+task]; !math.IsNaN(v) {
				labelled = append(labelled, i)
				y = append(y, v)
			}
		}
		fit, err := forest.Fit(ctx, some(x, dim, labelled), dim, y, 1, o)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", l.name, err)
		}
		for k, v := range fit.Predict(some(x, dim, s.Test)) {
			predicted[k*l.tasks+task] = v
		}
	}
	return predicted, nil
}

// some returns rows of x, which are of this width.
func some[T any](x []T, width int, rows []int) (part []T) {
	for _, i := range rows {
		part = append(part, x[i*width:(i+1)*width]...)
	}
	return part
}

func (l *loadedSet) recall(
	ctx context.Context, x []float32, dim int, similarity probe.Similarity,
) (float64, error) {
	times := map[string]int{}
	for _, s := range l.scaffold {
		times[s]++
	}
	var found, shared []int
	for i, s := range l.scaffold {
		found = append(found, i)
		if s != "" && times[s] > 1 {
			shared = append(shared, i)
		}
	}
	nearest, err := probe.Near(ctx, x, dim, found, shared, 1, similarity)
	same := 0.0
	for k, neighbours := range nearest {
		if l.scaffold[neighbours[0]] == l.scaffold[shared[k]] {
			same++
		}
	}
	return 100 * same / max(float64(len(shared)), 1), err
}

// score is the metric of predictions, the mean over the tasks that have both answers; 0 where it is
// undefined, as Spearman's is of a constant.
func (l *loadedSet) score(predicted, y []float64) float64 {
	if l.endpoints() != nil {
		return stat.Mean(relativeErrors(predicted, y, l.tasks), nil)
	}
	sum := 0.0
	n := 0
	for _, m := range finetune.Score(model.Head{Kind: l.kind(), Outputs: l.tasks}, predicted, y) {
		if v := m.Get(l.metric); !math.IsNaN(v) {
			sum += v
			n++
		}
	}
	return sum / float64(max(n, 1))
}
