package method

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/gnn/augment"
	"github.com/specmatch/specmatch/specmatch/setting"
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

	// Settings lists what it depends on besides what all methods do.
	Settings []setting.Setting

	ignores func(s Setup) []setting.Setting // of Settings, those without effect in a setup; nil is none
	check   func(s Setup) error             // options that contradict one another; nil is none
	new     func(s Setup) (*Learner, error) // of a complete setup
}

// Reads returns the settings that a learner of the setup depends on.
func (m *Method) Reads(s Setup) []setting.Setting {
	reads := []setting.Setting{rawStatistics}
	if s.Regime == Unsupervised || s.Regime == "" {
		reads = append(reads, selfLoops)
	}
	reads = append(reads, m.Settings...)
	if m.ignores == nil {
		return reads
	}
	ignored := m.ignores(s)
	return slices.DeleteFunc(reads, func(r setting.Setting) bool {
		return slices.Contains(ignored, r)
	})
}

// Used returns what a learner of the setup depends on besides the graphs, the encoder and the
// seed: the values of its settings by name, and batch and lr.
func (m *Method) Used(s Setup) (map[string]string, error) {
	s, err := s.Complete()
	if err != nil {
		return nil, err
	}
	record := map[string]string{"batch": fmt.Sprint(s.Batch), "lr": fmt.Sprint(s.Rate)}
	for _, r := range m.Reads(s) {
		record[r.Name()] = fmt.Sprint(s.Options[r.Name()])
	}
	return record, nil
}

// Check returns an error if the options are no values of settings, or contradict one another
// for the method.
func (m *Method) Check(r Regime, o Options) error {
	s, err := Setup{Regime: r, Options: o}.Complete()
	if err != nil {
		return err
	}
	return m.checkOptions(s)
}

func (m *Method) checkOptions(s Setup) error {
	if m.check == nil {
		return nil
	}
	if err := m.check(s); err != nil {
		return fmt.Errorf("method: %s: %w", m.Name, err)
	}
	return nil
}

// New returns a learner with initial weights. It is an error if the setup makes no
// sense, its encoder cannot read one of its graphs, the method is not for them or for the
// regime, or the device fails.
func (m *Method) New(s Setup) (l *Learner, err error) {
	defer backend.Recover(&err)
	s, err = s.Complete()
	if err != nil {
		return nil, err
	}
	if err := m.accepts(s); err != nil {
		return nil, err
	}
	s.Encoder.Readout = cmp.Or(s.Encoder.Readout, m.Readout)
	for i, g := range s.Graphs {
		if err := s.Encoder.Accepts(g); err != nil {
			return nil, fmt.Errorf("method: graph %d: %w", i, err)
		}
	}
	if err := m.checkOptions(s); err != nil {
		return nil, err
	}
	policy := Policy.Of(s.Options)
	masks := policy == augment.Random4 || strings.Contains(policy, string(augment.MaskN))
	if masks && s.Encoder.In == 0 && slices.Contains(m.Reads(s), setting.Setting(Policy)) {
		return nil, fmt.Errorf(
			"method: policy %s: %s draws numbers, and encoder %s takes categories of nodes",
			policy,
			augment.MaskN,
			s.Encoder.Kind,
		)
	}
	l, err = m.new(s)
	if err != nil {
		return nil, err
	}
	if rawStatistics.Of(s.Options) {
		l = s.rawStatistics(l)
	}
	l.method = m
	l.setup = s
	return l, nil
}

// accepts returns an error if the method is not for the regime, the graphs or the encoder of a
// setup.
func (m *Method) accepts(s Setup) error {
	switch {
	case !slices.Contains(m.Regimes, s.Regime):
		return fmt.Errorf("method: %s is not for the regime %q; want one of %q",
			m.Name, s.Regime, m.Regimes)
	case s.Batch < 1 || !(s.Rate > 0) || math.IsInf(s.Rate, 0):
		return fmt.Errorf("method: batches of %d graphs and learning rate %v; want numbers above 0",
			s.Batch, s.Rate)
	case len(s.Graphs) == 0:
		return errors.New("method: there are no graphs to learn from")
	case m.Molecules && s.Encoder.Kind != gnn.KindChemGIN:
		return fmt.Errorf("method: %s is for molecules, not for encoder %s", m.Name, s.Encoder.Kind)
	case m.Molecules && len(s.SMILES) != len(s.Graphs):
		return fmt.Errorf("method: %s wants the SMILES of its graphs; there are %d of %d",
			m.Name, len(s.SMILES), len(s.Graphs))
	}
	return nil
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
		if recipe := m.Recipe[r]; recipe != (Recipe{}) && slices.Contains(names, m.Name) {
			parts = append(parts, m.Title+": "+recipe.String())
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

// methods lists all of them, in the order of tables. It is set in init, because the methods
// read it themselves, when they complete a setup.
var methods []*Method

func init() {
	methods = []*Method{
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
}

// Settings returns the settings that some of the methods read, each once, in the order of tables.
func Settings(methods []*Method, r Regime) (settings []setting.Setting) {
	for _, m := range methods {
		for _, s := range m.Reads(Setup{Regime: r}) {
			if !slices.Contains(settings, s) {
				settings = append(settings, s)
			}
		}
	}
	return settings
}

// All returns the methods for a regime, in the order of tables.
func All(r Regime) []*Method {
	var list []*Method
	for _, m := range methods {
		if slices.Contains(m.Regimes, r) {
			list = append(list, m)
		}
	}
	return list
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

// Differences returns the defaults of settings in a regime, by name, where they differ from those
// in another one.
func Differences(base, regime Regime) map[string]string {
	differences := map[string]string{}
	for _, s := range Settings(methods, base) {
		a, b := s.Default(string(base)), s.Default(string(regime))
		if a != b {
			differences[s.Name()] = fmt.Sprint(b)
		}
	}
	return differences
}
