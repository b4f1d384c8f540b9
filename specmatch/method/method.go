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

// Regime is a kind of experiment. The reference codes of some methods differ between regimes.
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
	// Recipe is the recipe of the method's paper by regime, where it differs from the regime's. New does
	// not apply it; the caller does.
	Recipe map[Regime]Recipe
	// OnRequest excludes the method from an experiment's tables unless it is requested: it is a control,
	// or a question of our own.
	OnRequest bool
	// Frozen says that the method does not learn: it can only be trained for 0 epochs.
	Frozen bool
	// Molecules says that the method needs the molecules of the graphs, in Setup.SMILES.
	Molecules bool
	// Labels says that the method needs tables of labels, in Setup.Labels.
	Labels bool
	// Readout is the readout of the encoder if the setup has none; "" is the encoder's own.
	Readout gnn.Readout

	// Settings lists the settings of the method, besides those of all methods.
	Settings []setting.Setting

	ignores func(s Setup) []setting.Setting // returns the Settings without effect in a setup; may be nil
	check   func(s Setup) error             // returns an error if options contradict one another; may be nil
	new     func(s Setup) (*Learner, error) // takes a complete setup
}

// Reads returns the settings on which a learner of the setup depends.
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

// Used returns the values of all settings on which a learner of the setup depends, and batch and lr, by
// name.
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

// Check returns an error if an option is invalid, or if options contradict one another for the method.
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

// New returns a learner with initial weights. It returns an error if the setup is invalid, if the encoder
// cannot read one of the graphs, if the method does not support the graphs or the regime, or if the device
// fails.
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
		return nil, fmt.Errorf("method: policy %s: %s needs numeric node features, but encoder %s has categories",
			policy, augment.MaskN, s.Encoder.Kind)
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

// accepts returns an error if the method does not support the regime, the graphs or the encoder of a setup.
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
	case m.Labels && len(s.Labels) == 0:
		return fmt.Errorf("method: %s needs labels of its graphs", m.Name)
	}
	return nil
}

// Recipe holds the training settings of a method. A value of 0 means that of the regime.
type Recipe struct {
	Epochs int
	Rate   float64 // of Adam
	Layers int     // of the encoder
}

// String formats the recipe, as in "lr 0.001, 40 epochs". It returns "" for the zero value.
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

// Recipes describes the recipes of those named methods that have their own in a regime, as in
// "SimGRACE: 5 layers". It returns "" if there are none.
func Recipes(r Regime, names []string) string {
	var parts []string
	for _, m := range All(r) {
		if recipe := m.Recipe[r]; recipe != (Recipe{}) && slices.Contains(names, m.Name) {
			parts = append(parts, m.Title+": "+recipe.String())
		}
	}
	return strings.Join(parts, "; ")
}

// Names of methods that experiments treat specially.
const (
	Untrained      = "untrained"
	UntrainedTorch = "untrained-torch"
	GraphCL        = "graphcl"
	InfoNCE        = "infonce"
	SpecMatch      = "specmatch"
	Jitter         = "jitter"
	EMA            = "ema"
	EMABatch       = "ema-batch"
	EMAMemory      = "ema-memory"
)

// methods lists all methods in the order of tables (list.go).
var methods []*Method

// Settings returns the settings of methods in a regime, each once, in the order of the methods.
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

// Frozen reports whether a method of this name does not learn.
func Frozen(name string) bool {
	m, err := Get(name)
	return err == nil && m.Frozen
}

// Rows returns the names of the methods in a table by default.
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

// Title returns a method's title in tables. It returns other names unchanged.
func Title(name string) string {
	if m, err := Get(name); err == nil {
		return m.Title
	}
	return name
}

// New returns a learner of the named method, see [Method.New].
func New(name string, s Setup) (*Learner, error) {
	m, err := Get(name)
	if err != nil {
		return nil, err
	}
	return m.New(s)
}

// Differences returns the defaults of settings in a regime, by name, if they differ from those in the base
// regime.
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
