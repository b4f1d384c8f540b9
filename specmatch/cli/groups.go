package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/backend/cpu"
	_ "github.com/specmatch/specmatch/backend/cuda" // in builds that have it
	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/gnn/dataset/records"
	"github.com/specmatch/specmatch/specmatch/setting"
	"github.com/specmatch/specmatch/tensor"
)

// Data is what to train on: -dataset and -data.
type Data struct {
	Datasets []string // none is the embedded synthetic set
	Dir      string
	// NodeFeatures is the default of -node-features; "" has no such flag and is FeaturesAuto.
	NodeFeatures dataset.NodeFeatures

	flags *FlagSet // records what is read
}

func (d *Data) Register(f *FlagSet) {
	d.flags = f
	Var(f, &d.Datasets, "dataset", setting.List(setting.Text),
		"data sets `A,B`, spelled as TUDataset does, as in MUTAG,NCI1, or files of graphs with a "+
			"class\n"+
			"each, as in graphs.jsonl or edges.csv; none is the embedded synthetic set")
	Var(f, &d.Dir, "data", setting.Text,
		"`DIR` with the data sets: DIR/NAME.zip, DIR/NAME/, or DIR/NAME of a file")
	features := func(choices ...string) setting.Parser[dataset.NodeFeatures] {
		return func(s string) (dataset.NodeFeatures, error) {
			s, err := setting.OneOf(choices...)(s)
			return dataset.NodeFeatures(s), err
		}
	}
	switch d.NodeFeatures {
	case "":
	case dataset.FeaturesLabels:
		Var(f, &d.NodeFeatures, "node-features", features("labels", "onehot"),
			"`what` nodes are told apart by: their labels, or, as onehot, attributes that are one-hot")
	default:
		Var(f, &d.NodeFeatures, "node-features", features("auto", "labels", "both", "onehot", "degrees"),
			"`what` nodes have as features: labels, both labels and attributes, attributes that are "+
				"one-hot as labels (onehot),\n"+
				"degrees: labels, and degrees where there are none, or auto: labels, and "+
				"attributes where there are none")
	}
	f.Grows("dataset")
	f.Free("data") // the contents of the files are compared instead
}

// Open is [Data.Read], but for -collect, which reads no data: the sets then have
// their names alone.
func (d *Data) Open(ctx context.Context, stderr io.Writer) (sets []*dataset.Dataset, err error) {
	if !d.flags.Collecting() || len(d.Datasets) == 0 {
		return d.Read(ctx, stderr)
	}
	for _, name := range d.Datasets {
		sets = append(sets, &dataset.Dataset{Name: name})
	}
	return sets, nil
}

// Read reads the data sets, or makes the embedded one if none is named. A line
// on stderr says what the features of nodes are, and what is left out.
func (d *Data) Read(ctx context.Context, stderr io.Writer) ([]*dataset.Dataset, error) {
	switch {
	case len(d.Datasets) == 0 && d.Dir == "":
		ds, err := dataset.Motifs(dataset.MotifConfig{})
		return []*dataset.Dataset{ds}, err
	case len(d.Datasets) == 0:
		there, err := dataset.List(d.Dir)
		if err != nil {
			return nil, err
		}
		return nil, Usagef(
			"-data %s without -dataset: want the names of sets in it (there are %s), or neither for "+
				"the embedded synthetic set",
			d.Dir,
			cmp.Or(strings.Join(there, ", "), "none"),
		)
	case d.Dir == "":
		return nil, Usagef("-dataset needs -data: the folder with NAME.zip or NAME/ (see " +
			"experiments/datasets for how to get them)")
	}
	var sets []*dataset.Dataset
	for _, name := range d.Datasets {
		sums := map[string]string{}
		o := dataset.Options{Sum: func(file, sum string) {
			d.flags.Input(file, sum)
			sums[file] = sum
		}}
		ds, err := cmp.Or(d.NodeFeatures, dataset.FeaturesAuto).Open(o,
			func(o dataset.Options) (*dataset.Dataset, error) {
				return records.Open(ctx, d.Dir, name, o)
			})
		if err != nil {
			return nil, err
		}
		fmt.Fprintln(stderr, ds.Summary())
		ds.Sums = sums
		if n := ds.Directed(); n > 0 {
			fmt.Fprintf(
				stderr,
				"%s: %d of %d graphs are directed, an edge of theirs being listed in "+
					"one direction only\n",
				name,
				n,
				len(ds.Graphs),
			)
		}
		if f := d.flags.Lookup("folds"); f != nil {
			folds, _ := strconv.Atoi(f.Value.String())
			if class, n := dataset.SmallestClass(ds.Labels()); n < folds { // scikit-learn warns, too
				fmt.Fprintf(
					stderr,
					"%s: a class has fewer graphs than there are folds, class %d only %d for %d "+
						"folds: not every fold tests it, or trains on it\n",
					name, ds.ClassValues[class], n, folds,
				)
			}
		}
		sets = append(sets, ds)
	}
	return sets, nil
}

// Recipe is how to train: -epochs, -batch, -lr, -seeds and -first-seed.
type Recipe struct {
	Epochs    int
	Batch     int
	LR        float64
	Seeds     int // seeds FirstSeed … FirstSeed+Seeds-1
	FirstSeed int
}

func (r *Recipe) Register(f *FlagSet) {
	Var(f, &r.Epochs, "epochs", setting.Int(0), "`epochs` to train")
	Var(f, &r.Batch, "batch", setting.Int(2),
		"graphs in a `batch`, at least 2: for contrastive losses each is the others' negative")
	Var(f, &r.LR, "lr", setting.Positive, "learning `rate` of Adam")
	r.RegisterSeeds(f)
}

// RegisterSeeds registers -seeds and -first-seed alone, for experiments that train in
// no epochs.
func (r *Recipe) RegisterSeeds(f *FlagSet) {
	Var(f, &r.Seeds, "seeds", setting.Int(1), "number `N` of independent runs, with consecutive seeds")
	Var(f, &r.FirstSeed, "first-seed", setting.Int(0), "the `first` of the seeds")
	f.GrowsRange("first-seed", "seeds")
	f.Check(func() error {
		switch {
		case r.Seeds > maxSeeds:
			return Usagef("-seeds %d: want at most %d", r.Seeds, maxSeeds)
		case r.FirstSeed > math.MaxInt-r.Seeds:
			return Usagef("-first-seed %d -seeds %d: the last seed would not fit in %d bits",
				r.FirstSeed, r.Seeds, strconv.IntSize)
		}
		return nil
	})
}

// maxSeeds bounds the number of seeds, because each takes memory before it runs.
const maxSeeds = 10_000

// Protocol is how to evaluate: -protocol and -folds.
type Protocol struct {
	Protocols []string
	Choices   []string // what the experiment knows; not a flag
	Folds     int      // of the outer cross-validation; 0 becomes 10
}

func (p *Protocol) Register(f *FlagSet) {
	if p.Folds == 0 {
		p.Folds = 10
	}
	Var(f, &p.Protocols, "protocol", setting.List(setting.OneOf(p.Choices...)),
		"evaluation `protocols`, one row of results each: "+strings.Join(p.Choices, ","))
	Var(f, &p.Folds, "folds", setting.Int(2), "outer `folds` of the evaluation")
}

// Engine is what to compute with: -backend and -precision, or else the
// environment's SPECMATCH_BACKEND and SPECMATCH_PRECISION, and -tf32 or -bf16.
type Engine struct {
	Backend   string // "" becomes "cpu"
	Precision tensor.Precision
	TF32      bool
	BF16      bool
}

func (e *Engine) Register(f *FlagSet) {
	if e.Backend == "" {
		e.Backend = "cpu"
	}
	Var(f, &e.Backend, "backend", setting.OneOf(engines()...),
		"`engine` to compute with: cpu or cuda (built with -tags cuda)")
	f.Env("backend", "SPECMATCH_BACKEND")
	Var(f, &e.Precision, "precision", parsePrecision,
		"floating-point `format` of the engine: float32 or float64")
	f.Env("precision", "SPECMATCH_PRECISION")
	f.BoolVar(&e.TF32, "tf32", e.TF32,
		"let cuda round the inputs of float32 products to 10 bits of fraction, for speed")
	f.BoolVar(&e.BF16, "bf16", e.BF16,
		"let cpu round the inputs of float32 products to bfloat16, 7 bits of fraction, for speed;\n"+
			"for processors with AVX512_BF16")
	f.Check(func() error {
		for _, x := range []struct {
			name, engine string
			on           bool
		}{{"-tf32", "cuda", e.TF32}, {"-bf16", "cpu", e.BF16}} {
			switch {
			case !x.on:
			case e.Backend != x.engine:
				return Usagef("%s is for -backend %s; %s has no such products",
					x.name, x.engine, e.Backend)
			case e.Precision != tensor.Float32:
				return Usagef("%s is for -precision float32", x.name)
			}
		}
		return nil
	})
}

// engines returns the choices of -backend: cpu; cuda in any build, because its error
// says what to do; and cuda's emulator if the build has it.
func engines() []string {
	names := []string{"cpu", "cuda"}
	if emulator := "cuda-emulator"; slices.Contains(backend.Names(), emulator) {
		names = append(names, emulator)
	}
	return names
}

// Name returns the engine's name: that of the backend, with its products.
func (e *Engine) Name() string {
	switch {
	case e.TF32:
		return e.Backend + "-tf32"
	case e.BF16:
		return e.Backend + "-bf16"
	}
	return e.Backend
}

// Open opens the engine. The caller closes it.
func (e *Engine) Open() (backend.Backend, error) {
	return backend.Open(e.Name(), e.Precision)
}

// OpenOne is [Engine.Open] for one of several engines at a time, which computes with the given
// number of threads, if it is of the CPU.
func (e *Engine) OpenOne(threads int) (backend.Backend, error) {
	if e.Backend != "cpu" {
		return e.Open()
	}
	options := []cpu.Option{cpu.Workers(threads)}
	if e.BF16 {
		options = append(options, cpu.BF16())
	}
	return cpu.Open(e.Precision, options...)
}

func parsePrecision(s string) (tensor.Precision, error) {
	if _, err := setting.OneOf(tensor.Float32.String(), tensor.Float64.String())(s); err != nil {
		return 0, err
	}
	return tensor.ParsePrecision(s)
}
