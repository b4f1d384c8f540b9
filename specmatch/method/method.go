package method

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/gnn/augment"
	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/gnn/molecule/feature"
	"github.com/specmatch/specmatch/gnn/random"
	"github.com/specmatch/specmatch/specmatch"
	"github.com/specmatch/specmatch/specmatch/model"
	"github.com/specmatch/specmatch/specmatch/train"
)

// Regime is a kind of experiment. The reference codes of some methods differ
// between regimes.
type Regime string

// The regimes of the paper's Tables 1, 2 and 3.
const (
	Unsupervised   Regime = "unsupervised"
	SemiSupervised Regime = "semisupervised"
	Transfer       Regime = "transfer"
)

// Method is a way of learning without labels.
type Method struct {
	Name    string // in flags and files
	Title   string // in tables
	Regimes []Regime
	// Recipe is how the paper of the method trains it, by regime, where that is not
	// the regime's way. New leaves it to the caller.
	Recipe map[Regime]Recipe
	// OnRequest keeps the method out of an experiment's tables unless it is named: a
	// control, or a question of our own.
	OnRequest bool
	// Molecules says that it needs to know the molecules that the graphs are of, by
	// Setup.SMILES.
	Molecules bool
	// Readout is the encoder's where the setup names none; "" leaves the encoder its own.
	Readout gnn.Readout

	reads func(s Setup) settings          // all that it depends on besides what all methods do; nil is nothing
	new   func(s Setup) (*Learner, error) // of a setup without gaps
}

// settings are switches by the names of their flags.
type settings map[string]any

// contrast are the settings of the contrastive methods.
func (s Setup) contrast() settings {
	o, beta := s.Objective, fmt.Sprint(s.Objective.Beta.Beta)
	if o.Beta.Ratio > 0 {
		beta = fmt.Sprint("auto:", o.Beta.Ratio)
	}
	return settings{
		"policy": s.Policy, "ratio": s.Ratio, "tau": o.Contrast.Temperature, "sum": o.Contrast.Sum,
		"beta": beta, "warmup": o.Beta.WarmupSteps, "on-h": o.OnH, "center": o.Center,
		"adjacency": o.Match.Adjacency, "kappa": o.Match.Kappa, "p": o.Match.Percentile,
		"random-walk": o.Match.RandomWalk, "theta-gradient": o.Match.ThresholdGradient,
	}
}

// Settings returns what a learner of the setup depends on besides the graphs, the
// encoder and the seed, by the names of the experiments' flags.
func (m *Method) Settings(s Setup) map[string]string {
	s = s.withDefaults()
	all := map[string]string{"batch": fmt.Sprint(s.Batch), "lr": fmt.Sprint(s.Rate), "raw-statistics": fmt.Sprint(s.RawStatistics)}
	if m.reads != nil {
		for name, v := range m.reads(s) {
			all[name] = fmt.Sprint(v)
		}
	}
	return all
}

// New returns a learner with initial weights. It is an error if the setup makes no
// sense, its encoder cannot read one of its graphs, the method is not for them or for the
// regime, or the device fails.
func (m *Method) New(s Setup) (l *Learner, err error) {
	defer backend.Recover(&err)
	s = s.withDefaults()
	if !slices.Contains(m.Regimes, s.Regime) {
		return nil, fmt.Errorf("method: %s is not for the regime %q; want one of %q", m.Name, s.Regime, m.Regimes)
	}
	if s.Batch < 1 || !(s.Rate > 0) || math.IsInf(s.Rate, 0) {
		return nil, fmt.Errorf("method: batches of %d graphs and learning rate %v; want numbers above 0", s.Batch, s.Rate)
	}
	if len(s.Graphs) == 0 {
		return nil, errors.New("method: there are no graphs to learn from")
	}
	if m.Molecules && s.Encoder.Kind != gnn.KindChemGIN {
		return nil, fmt.Errorf("method: %s is for molecules, not for encoder %s", m.Name, s.Encoder.Kind)
	}
	if s.Morgan < 0 || s.Morgan > 1<<16 {
		return nil, fmt.Errorf("method: %d folded counts; want 0 to %d", s.Morgan, 1<<16)
	}
	if m.Molecules && len(s.SMILES) != len(s.Graphs) {
		return nil, fmt.Errorf("method: %s wants the SMILES of its graphs; there are %d of %d", m.Name, len(s.SMILES), len(s.Graphs))
	}
	s.Encoder.Readout = cmp.Or(s.Encoder.Readout, m.Readout)
	for i, g := range s.Graphs {
		if err := s.Encoder.Accepts(g); err != nil {
			return nil, fmt.Errorf("method: graph %d: %w", i, err)
		}
	}
	if _, err := augment.ParsePolicy(s.Policy, augment.ImplIntended, s.Ratio); err != nil {
		return nil, err
	}
	masks := s.Policy == augment.Random4 || strings.Contains(s.Policy, string(augment.MaskN))
	if _, reads := m.Settings(s)["policy"]; reads && masks && s.Encoder.In == 0 {
		return nil, fmt.Errorf("method: policy %s: %s draws numbers, and encoder %s takes categories of nodes", s.Policy, augment.MaskN, s.Encoder.Kind)
	}
	if _, reads := m.Settings(s)["tau"]; reads && !(s.Objective.Contrast.Temperature > 0) {
		return nil, fmt.Errorf("method: temperature %v; want a number above 0 (DefaultOptions has the usual ones)", s.Objective.Contrast.Temperature)
	}
	if s.RawStatistics && s.JOAO.ProbeMoves {
		return nil, errors.New("method: RawStatistics keeps anything else from moving the running statistics, and JOAO.ProbeMoves wants that; want one of them")
	}
	if l, err = m.new(s); err != nil {
		return nil, err
	}
	if s.RawStatistics {
		l = s.rawStatistics(l)
	}
	l.method, l.setup = m, s
	return l, nil
}

// Recipe is how to train. What is 0 is as for the other methods of a regime.
type Recipe struct {
	Epochs int
	Rate   float64 // of Adam
	Layers int     // of the encoder
}

// String returns the recipe as in "lr 0.001, 40 epochs"; "" of the zero value.
func (r Recipe) String() string {
	var parts []string
	if r.Rate > 0 {
		parts = append(parts, fmt.Sprint("lr ", r.Rate))
	}
	if r.Epochs > 0 {
		parts = append(parts, fmt.Sprint(r.Epochs, " epochs"))
	}
	if r.Layers > 0 {
		parts = append(parts, fmt.Sprint(r.Layers, " layers"))
	}
	return strings.Join(parts, ", ")
}

// Recipes says which of the named methods have a recipe of their own in a regime,
// as in "SimGRACE: 5 layers"; "" if none has.
func Recipes(r Regime, names []string) string {
	var parts []string
	for _, m := range All(r) {
		if own := m.Recipe[r]; own != (Recipe{}) && slices.Contains(names, m.Name) {
			parts = append(parts, m.Title+": "+own.String())
		}
	}
	return strings.Join(parts, "; ")
}

// Names that experiments treat in a way of their own.
const (
	Untrained = "untrained"
	GraphCL   = "graphcl"
	InfoNCE   = "infonce"
	SpecMatch = "specmatch"
	Jitter    = "jitter"
	EMA       = "ema"
	EMABatch  = "ema-batch"
	EMAMemory = "ema-memory"
)

// methods lists all of them, in the order of tables.
var methods = []*Method{
	untrained,
	infoGraph,
	gae,
	edgePred,
	attrMasking,
	descriptors,
	infomax,
	contextPred,
	graphMAE,
	s2gae,
	graphCL,
	joao,
	joaov2,
	simGRACE,
	mssgcl,
	cuCo,
	infoNCE,
	jitter,
	ema,
	emaBatch,
	emaMemory,
	specMatch,
}

// All returns the methods for a regime, in the order of tables.
func All(r Regime) []*Method {
	var all []*Method
	for _, m := range methods {
		if slices.Contains(m.Regimes, r) {
			all = append(all, m)
		}
	}
	return all
}

// Names returns the names of [All].
func Names(r Regime) []string { return names(All(r)) }

// Rows returns the names of those of [All] that a table has unless others are asked for.
func Rows(r Regime) []string {
	return names(slices.DeleteFunc(All(r), func(m *Method) bool { return m.OnRequest }))
}

func names(methods []*Method) (names []string) {
	for _, m := range methods {
		names = append(names, m.Name)
	}
	return names
}

// Get returns the method of a name.
func Get(name string) (*Method, error) {
	for _, m := range methods {
		if m.Name == name {
			return m, nil
		}
	}
	return nil, fmt.Errorf("method: %q is unknown (have: %s)", name, strings.Join(names(methods), ", "))
}

// Title returns what tables call a method; any other name stays as it is.
func Title(name string) string {
	if m, err := Get(name); err == nil {
		return m.Title
	}
	return name
}

// New is Get and [Method].New.
func New(name string, s Setup) (*Learner, error) {
	m, err := Get(name)
	if err != nil {
		return nil, err
	}
	return m.New(s)
}

// Setup is what a method learns from, and how.
type Setup struct {
	Backend backend.Backend
	Regime  Regime // "" is Unsupervised
	Encoder gnn.Architecture
	Graphs  []*graph.Graph
	// SMILES are those of the graphs, and Standard is what is done to a molecule before it is
	// looked at; for methods that need Molecules.
	SMILES   []string
	Standard feature.Standardisation
	// Policy and Ratio are the augmentations, see [augment.ParsePolicy]; "" is
	// random2, and 0 the usual ratio.
	Policy  string
	Ratio   float64
	Batch   int     // graphs in a mini-batch; 0 is 128
	Rate    float64 // learning rate of Adam; 0 is 0.01
	Seed    uint64  // of weights, batches and views
	Options         // the zero value is DefaultOptions of the regime
}

// Options are the switches of the methods.
type Options struct {
	// Objective is the loss of the contrastive methods, each of which takes of it
	// what it has.
	Objective specmatch.Objective
	// GraphCLCode lets GraphCL follow its code bug for bug.
	GraphCLCode bool
	// RawStatistics has the running statistics of batch norm, which embeddings are
	// made with, moved by raw graphs alone, as MSSGCL always does.
	RawStatistics bool
	// Morgan is how many folded counts of environments the method descriptors predicts as well;
	// 0 is none.
	Morgan   int
	JOAO     JOAOOptions
	SimGRACE SimGRACEOptions
	MSSGCL   MSSGCLOptions
	CuCo     CuCoOptions
}

// DefaultOptions are those of the paper's experiments; "" is Unsupervised.
func DefaultOptions(r Regime) Options {
	o := Options{GraphCLCode: true, JOAO: JOAOOptions{Gamma: 0.1}, SimGRACE: SimGRACEOptions{Eta: 1}}
	if r == Transfer {
		o.SimGRACE.Eta = 0.1
	}
	o.Objective.Contrast.Temperature = map[Regime]float64{"": 0.2, Unsupervised: 0.2, SemiSupervised: 0.5, Transfer: 0.1}[r]
	o.Objective.Match = specmatch.DefaultLaplacianMatch()
	o.Objective.Beta.Beta = 0.05
	return o
}

// Learner is a method that has been set up: what package train drives.
type Learner struct {
	train.Learner
	// Model has the encoder and, for methods with a projection, its head.
	Model *specmatch.Model
	// SelfLoops says that the encoder must see graphs with the self-loops of
	// [augment.Identity].
	SelfLoops bool

	method *Method
	setup  Setup
}

// Embed returns the embeddings of n graphs, row-major [n×Width], seen by the encoder
// in the form that the method trains it on. The error is that of ctx or of a device
// that failed.
func (l *Learner) Embed(ctx context.Context, graphs []*graph.Graph) ([]float64, error) {
	form, ws := augment.Identity{SelfLoops: l.SelfLoops}, new(augment.Workspace)
	return gnn.Embed(ctx, l.setup.Backend, l.Model.Encoder, graphs, func(b *graph.Batch, g *graph.Graph) { form.Append(b, g, nil, ws) })
}

// Trained returns the encoder as a model file has it, which is saved, opened and
// embeds without more ado; it shares its weights. set is what the learner learned
// from for so many epochs: its graphs are those of the setup. The error says that the
// set's fields do not describe its features.
func (l *Learner) Trained(set *dataset.Dataset, epochs int) (*model.Trained, error) {
	card := model.Card{SelfLoops: l.SelfLoops, Provenance: model.Provenance{
		Method: l.method.Name, Options: l.method.Settings(l.setup), Data: model.Sources(set.Name, set.Sums), Seed: int(l.setup.Seed), Epochs: epochs, Reads: set.Reads,
	}}
	if l.setup.Encoder.Kind == gnn.KindChemGIN {
		card.Standard = set.Standard
	}
	if l.setup.Encoder.In > 0 {
		columns, err := set.Columns()
		if err != nil {
			return nil, err
		}
		card.Features = &columns
	}
	return &model.Trained{Card: card, Encoder: l.Model.Encoder}, nil
}

// The purposes of a learner's random streams, besides those of its views.
const (
	purposeInit random.Purpose = 1<<32 + iota
	_
	purposeTask
)

func (s Setup) withDefaults() Setup {
	if s.Regime == "" {
		s.Regime = Unsupervised
	}
	if s.Policy == "" {
		s.Policy = augment.Random2
	}
	if s.Batch == 0 {
		s.Batch = 128
	}
	if s.Rate == 0 {
		s.Rate = 0.01
	}
	if s.Options == (Options{}) {
		s.Options = DefaultOptions(s.Regime)
	}
	return s
}

// NewEncoder returns an encoder with the initial weights that all learners of the
// seed share, and the random stream that drew them, from which a method draws the
// weights that it adds.
func (s Setup) NewEncoder() (gnn.Encoder, *rand.Rand, error) {
	rng := random.Stream(s.Seed, purposeInit, 0, 0)
	e, err := s.Encoder.New(s.Backend, rng)
	return e, rng, err
}

// newModel is NewEncoder with a projection head on the encoder.
func (s Setup) newModel() (*specmatch.Model, *rand.Rand, error) {
	e, rng, err := s.NewEncoder()
	if err != nil {
		return nil, nil, err
	}
	return specmatch.NewModel(s.Backend, e, rng), rng, nil
}

// crossView returns GraphCL's loss as most methods have it: of the setup's
// temperature, as a mean.
func (s Setup) crossView() specmatch.InfoNCE {
	return specmatch.InfoNCE{Variant: specmatch.CrossView, Temperature: s.Objective.Contrast.Temperature}
}

func (s Setup) loader(views ...augment.Augmentation) *augment.Loader {
	return &augment.Loader{Graphs: s.Graphs, Batch: s.Batch, Collator: augment.Collator{Views: views, Seed: s.Seed}}
}
