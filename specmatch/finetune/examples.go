package finetune

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/gnn/dataset/moleculenet"
	"github.com/specmatch/specmatch/gnn/dataset/records"
	"github.com/specmatch/specmatch/gnn/dataset/suggest"
	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/gnn/random"
	"github.com/specmatch/specmatch/specmatch/check"
	"github.com/specmatch/specmatch/specmatch/model"
)

// Task says what is learned from the records of a file, and how they are split.
type Task struct {
	// Targets are the columns or keys to predict. By default they are those of a set of the
	// literature: class in TUDataset's format, and the targets of a table of MoleculeNet.
	Targets []string
	// Kind is the kind of the targets. "" goes by the values: 0 and 1 only are Binary, numbers
	// Regression, others Classes, and so is class in TUDataset's format, but not attribute. A missing
	// value is empty, or what pandas takes for one, such as NA, null or #N/A.
	Kind model.Kind
	// Positive is the text that counts as 1 in binary tasks of two texts, such as active; "" if they are 0 and 1.
	Positive string
	// Split is [Random], [Stratified], [Scaffold], [StratifiedScaffold], [Cluster], or the column with
	// train, valid or test; "" is Random for regression and Stratified otherwise.
	Split string
	// Valid and Test are files with those sets; the other sets are taken from the first file.
	// A file without a path is none. The path [NoTest] makes the test set empty.
	Valid, Test File
	// Weight is the column with the weights of the records, "" for none; see [Data]. A record of weight 0 is not
	// used at all. The file of Test needs no such column.
	Weight string
	// Bounds accepts targets such as >10 and ≤0.5 as bounds of a number; otherwise they are
	// refused.
	Bounds bool
	// Scale is the scale on which numbers are learned. Every target must have a place on it.
	Scale model.Scale
	// Merge is how the records of one molecule or graph within a part are merged; "" keeps all.
	Merge check.Merge
	// Beside are numbers of molecules, computed by records.Options.Vector, that the head sees next
	// to the embedding; nil for none.
	Beside *model.Numbers
}

// tuClass is the label of a set in TUDataset's format; the several labels of a set have this name and a number.
const tuClass = "class"

// NoTest is the path of Task.Test for fits that hold out no records for a test.
const NoTest = "none"

// File is another file with the columns of the first.
type File struct {
	Path, Format string    // Format "" goes by the name
	Input        io.Reader // as in [records.Options]
}

// Errors about a task rather than a file.
var (
	ErrNoTargets = errors.New(
		"no target is named, and the file is not a known set with targets of its own",
	)
	ErrScale   = errors.New("only numbers have a scale, and the targets are classes or binary")
	ErrSeveral = errors.New("only one target can have classes; several are binary tasks or numbers")
	// ErrSelfLoops is of an encoder whose card says SelfLoops.
	ErrSelfLoops = errors.New("the encoder was trained on graphs with the self-loops of GraphCL's code, which " +
		"a fit does not add")
)

// Examples are the records of a file, with their targets as numbers.
type Examples struct {
	*records.Table
	Task                    // with the targets and the kind that were found
	Head     model.Head     // for the targets
	Y        []float64      // as in [Data]; NaN where a target is missing, also a class
	Bounds   []int8         // as in [Data]
	Weights  []float64      // as in [Data]
	Features *graph.Columns // of the graphs; nil for molecules

	path  string
	first map[string]int // position in Records of the first record of each part's own file

	decided  map[int]bool // tasks whose scale [Examples.ChooseScales] decided
	clusters []int        // each record's cluster, if they are split by it
	merged   int          // records that others stand for, or that were dropped
	lost     []check.Loss // labels that merging lost
	copies   [][]int      // records of equal molecules or graphs, each group with two members or more
	copiesOf []int        // each record's position in copies; -1 if it has no copy
}

// Read reads a file with the targets of a task, which sets o.Fields, o.Scaffolds and o.Identities.
// A value that is no target is an error with its line.
func Read(ctx context.Context, path string, t Task, o records.Options) (*Examples, error) {
	format, _ := records.FormatOf(path) // "-" and other names have none
	isTU := cmp.Or(o.Format, format) == records.TU
	switch {
	case len(t.Targets) > 0:
	case isTU:
		t.Targets = []string{tuClass}
	default:
		smiles, targets, err := moleculenet.Columns(ctx, path)
		if err != nil {
			return nil, fmt.Errorf("finetune: %s: %w", path, ErrNoTargets)
		}
		o.SMILES = cmp.Or(o.SMILES, smiles)
		t.Targets = targets
	}
	var err error
	o.Fields, err = t.fields()
	if err != nil {
		return nil, err
	}
	o.Scaffolds = t.byScaffold()
	o.Identities = true
	table, err := records.ReadAll(ctx, path, o)
	if err != nil {
		if strings.HasSuffix(err.Error(), fmt.Sprintf("no column %q", t.Split)) {
			err = fmt.Errorf("%w%s", err, suggest.DidYouMean(t.Split, splits))
		}
		return nil, err
	}
	x := &Examples{
		Table:    table,
		Task:     t,
		Features: o.Columns,
		path:     path,
	}
	if err := x.checkColumns(o.Fields[len(t.Targets):]); err != nil {
		return nil, err
	}
	if err := x.readWeights(x.Table, path); err != nil {
		return nil, err
	}
	if x.Content == records.Graphs && x.Features == nil {
		columns, err := x.Set.Columns()
		if err != nil {
			return nil, err
		}
		x.Features = &columns
	}
	if err := x.readParts(ctx, o); err != nil {
		return nil, err
	}
	x.settleKind(isTU)
	if err := x.group(ctx); err != nil {
		return nil, err
	}
	return x, x.readTargets()
}

// checkColumns returns an error if no record of the first file has the column of the split or of the weights. Its
// targets may be in another file.
func (x *Examples) checkColumns(columns []string) error {
	for _, name := range columns {
		if slices.Contains(x.Reading.Absent, name) {
			return fmt.Errorf("%s: %s", x.path, x.Reading.NoValue(name))
		}
	}
	return nil
}

// group finds the records of equal molecules or graphs, merges them as the task says, and finds clusters if they are
// to be split.
func (x *Examples) group(ctx context.Context) error {
	if err := x.findCopies(ctx); err != nil {
		return err
	}
	if err := x.mergeCopies(ctx); err != nil {
		return err
	}
	if x.Split == Cluster && x.Content == records.Molecules {
		return x.findClusters(ctx)
	}
	return nil
}

// fields returns the columns to read: the targets, the column that splits the records, and the weights.
func (t Task) fields() ([]string, error) {
	fields := slices.Clone(t.Targets)
	if t.Split != "" && !isSplit(t.Split) {
		if t.Test.Path == NoTest {
			return nil, fmt.Errorf("finetune: the column %s says what is the test set, and there is to be none; leave "+
				"its test records out of the file, or the column unnamed", t.Split)
		}
		files := slices.DeleteFunc([]string{t.Valid.Path, t.Test.Path}, func(s string) bool {
			return s == ""
		})
		if len(files) > 0 {
			return nil, fmt.Errorf(
				"finetune: both the column %s and the files %s split the records",
				t.Split, strings.Join(files, " and "),
			)
		}
		fields = append(fields, t.Split)
	}
	if t.Weight != "" {
		fields = append(fields, t.Weight)
	}
	return fields, nil
}

// settleKind sets the kind if it is left to the values. The attributes of a set in TUDataset's format are numbers like
// any others, but its labels are not.
func (x *Examples) settleKind(isTU bool) {
	switch {
	case x.Positive != "":
		x.Kind = model.Binary
		return
	case x.Kind != "":
		return
	}
	x.Kind = x.guessKind(x.Targets)
	if isTU && slices.ContainsFunc(x.Targets, x.isClass) {
		x.Kind = model.Classes
	}
}

// isClass reports whether a target of a set in TUDataset's format has classes. The target class always has; one of
// several labels is a binary task if its values are 0 and 1.
func (x *Examples) isClass(target string) bool {
	isLabel := strings.HasPrefix(target, tuClass)
	return target == tuClass || isLabel && x.guessKind([]string{target}) != model.Binary
}

// readTargets fills Y, and the split if it is left to the values.
func (x *Examples) readTargets() error {
	for k, name := range x.Targets {
		hasValue := func(r *records.Record) bool {
			return strings.TrimSpace(r.Fields[k]) != ""
		}
		if !slices.ContainsFunc(x.Records, hasValue) {
			return fmt.Errorf("%s: %s", x.path, x.Reading.NoValue(name))
		}
	}
	split := Stratified
	if x.Kind == model.Regression {
		split = Random
	}
	x.Split = cmp.Or(x.Split, split)
	if x.Kind == model.Regression && (x.Split == Stratified || x.Split == StratifiedScaffold) {
		return fmt.Errorf("finetune: the split %s is for classes and binary tasks, and %s has numbers; random, "+
			"scaffold and cluster take them", x.Split, strings.Join(x.Targets, ", "))
	}
	switch {
	case x.Kind == model.Classes:
		return x.readClasses()
	case x.Positive != "":
		return x.readPositive()
	}
	return x.readNumbers()
}

// readParts appends the records of the files of Valid and Test.
func (x *Examples) readParts(ctx context.Context, o records.Options) error {
	x.first = map[string]int{}
	o.Want = x.Content
	o.Columns = x.Features
	o.Reading = nil
	for _, part := range []struct {
		name string
		file File
	}{{valid, x.Valid}, {test, x.Test}} {
		switch part.file.Path {
		case "":
			continue
		case NoTest:
			x.first[part.name] = len(x.Records)
			continue
		}
		if x.Weight != "" && part.name == test {
			o.Fields = o.Fields[:len(o.Fields)-1]
		}
		o.Format = part.file.Format
		o.Input = part.file.Input
		t, err := records.ReadAll(ctx, part.file.Path, o)
		if err != nil {
			return err
		}
		if part.name == test {
			x.noWeights(len(t.Records))
		} else if err := x.readWeights(t, part.file.Path); err != nil {
			return err
		}
		x.first[part.name] = len(x.Records)
		x.Records = append(x.Records, t.Records...)
		x.Set.Graphs = append(x.Set.Graphs, t.Set.Graphs...)
		x.Rejected = append(x.Rejected, t.Rejected...)
	}
	return nil
}

// filePart returns the part whose own file has record i; "" for the first file.
func (x *Examples) filePart(i int) (part string) {
	largest := -1
	for name, first := range x.first {
		if first <= i && first > largest {
			part = name
			largest = first
		}
	}
	return part
}

// file returns the name of the file with record i.
func (x *Examples) file(i int) string {
	return cmp.Or(map[string]string{valid: x.Valid.Path, test: x.Test.Path}[x.filePart(i)], x.path)
}

// eachTarget calls visit with every target of every record, in their order.
func (x *Examples) eachTarget(visit func(r *records.Record, target, text string)) {
	for _, r := range x.Records {
		for k, target := range x.Targets {
			visit(r, target, strings.TrimSpace(r.Fields[k]))
		}
	}
}

// NewModel returns a model for [New] to fit. Its weights are random, by the seed; those of the
// encoder are copied from source, if it is not nil, which may have another dropout and readout, but no
// self-loops ([ErrSelfLoops]). An encoder of molecules needs records that were read with a.Atoms as
// records.Options.Atoms.
func (x *Examples) NewModel(
	be backend.Backend, a gnn.Architecture, source *model.Trained, seed uint64,
) (*model.Trained, error) {
	if source != nil && source.Card.SelfLoops {
		return nil, fmt.Errorf("finetune: %w", ErrSelfLoops)
	}
	rng := random.Stream(seed, purposeHead, 0, 0)
	e, err := a.New(be, rng)
	if err != nil {
		return nil, err
	}
	method := "trained with labels"
	if source != nil {
		method = "fine-tuned"
		if err := model.CopyEncoder(e, source.Encoder); err != nil {
			return nil, err
		}
	}
	m := model.NewPredictorBeside(e, x.Head, x.Beside, a.Dropout, rng)
	m.Card.Features = x.Features
	m.Card.Standard = x.Set.Standard
	m.Card.Provenance = model.Provenance{
		Method:  method,
		Seed:    int(seed),
		Data:    model.Sources(x.Set.Name, x.Set.Sums),
		Reads:   x.Set.Reads,
		Options: map[string]string{"split": x.Split, "dropout": fmt.Sprint(a.Dropout)},
	}
	if x.Weight != "" {
		m.Card.Provenance.Options["weight"] = x.Weight
	}
	return m, nil
}

// Data returns what [New] learns from, for a split of the records.
func (x *Examples) Data(s dataset.Split) Data {
	return Data{
		Graphs:  x.Set.Graphs,
		Y:       x.Y,
		Bounds:  x.Bounds,
		Weights: x.Weights,
		Train:   s.Train,
		Valid:   s.Valid,
		Test:    s.Test,
	}
}

// graphs returns the graphs of some records.
func (x *Examples) graphs(samples []int) []*graph.Graph {
	return pick(x.Set.Graphs, samples)
}

// CountBounds returns how many targets of some records are bounds.
func (x *Examples) CountBounds(samples []int) (n int) {
	if x.Bounds == nil {
		return 0
	}
	tasks := len(x.Targets)
	for _, i := range samples {
		for _, b := range x.Bounds[i*tasks : (i+1)*tasks] {
			n += int(b * b)
		}
	}
	return n
}

// Locate adds the file and the line of the record to a [GraphError]; other errors stay as they are.
func (x *Examples) Locate(err error) error {
	var e *GraphError
	if !errors.As(err, &e) {
		return err
	}
	return fmt.Errorf("%s:%d: %w", x.file(e.Graph), x.Records[e.Graph].Line, err)
}
