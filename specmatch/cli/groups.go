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

// Data holds the flags -dataset and -data, and on request -node-features.
type Data struct {
	Datasets []string // none is the embedded synthetic set
	Dir      string
	// NodeFeatures is the default of -node-features; "" has no such flag and is FeaturesAuto.
	NodeFeatures dataset.NodeFeatures

	flags *FlagSet // records the sums of the files read
}

func (d *Data) Register(f *FlagSet) {
	d.flags = f
	Var(f, &d.Datasets, "dataset", setting.List(setting.Text),
		"data sets `A,B`: names of the TUDataset collection, such as MUTAG,NCI1, or files of graphs with\n"+
			"classes, such as graphs.jsonl or edges.csv; by default the embedded synthetic set")
	Var(f, &d.Dir, "data", setting.Text,
		"folder `DIR` with the data sets: DIR/NAME.zip, DIR/NAME/ or the file DIR/NAME")
	switch d.NodeFeatures {
	case "":
	case dataset.FeaturesLabels:
		NodeFeatures(f, &d.NodeFeatures, []string{"labels", "onehot"},
			"node `features`: labels, or onehot for one-hot attributes")
	default:
		NodeFeatures(f, &d.NodeFeatures, []string{"auto", "labels", "both", "onehot", "degrees"},
			"node `features`: labels; both (labels and attributes); onehot (one-hot attributes as labels);\n"+
				"degrees (labels, or degrees if there are none); auto (labels, or attributes if there are none)")
	}
	f.Grows("dataset")
	f.Free("data") // the contents of the files are compared instead
}

// NodeFeatures registers -node-features with some of the choices of [dataset.NodeFeatures].
func NodeFeatures(f *FlagSet, p *dataset.NodeFeatures, choices []string, usage string) {
	parse := func(s string) (dataset.NodeFeatures, error) {
		s, err := setting.OneOf(choices...)(s)
		return dataset.NodeFeatures(s), err
	}
	Var(f, p, "node-features", parse, usage)
}

// Open calls [Data.Read]. With -collect it reads nothing and returns sets that have only a name.
func (d *Data) Open(ctx context.Context, stderr io.Writer) (sets []*dataset.Dataset, err error) {
	if !d.flags.Collecting() || len(d.Datasets) == 0 {
		return d.Read(ctx, stderr)
	}
	for _, name := range d.Datasets {
		sets = append(sets, &dataset.Dataset{Name: name})
	}
	return sets, nil
}

// Read reads the data sets, or makes the embedded one if none is named. It writes a line per set
// to stderr: the node features, and what was dropped.
func (d *Data) Read(ctx context.Context, stderr io.Writer) ([]*dataset.Dataset, error) {
	switch {
	case len(d.Datasets) == 0 && d.Dir == "":
		ds, err := dataset.Motifs(dataset.MotifConfig{})
		return []*dataset.Dataset{ds}, err
	case len(d.Datasets) == 0:
		names, err := dataset.List(d.Dir)
		if err != nil {
			return nil, err
		}
		return nil, Usagef("-data %s needs -dataset: it holds %s; without both, the embedded synthetic set is used",
			d.Dir, cmp.Or(strings.Join(names, ", "), "no data sets"))
	case d.Dir == "":
		return nil, Usagef("-dataset needs -data: the folder with NAME.zip or NAME/ (experiments/datasets fetches)")
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
			fmt.Fprintf(stderr, "%s: %d of %d graphs are directed: an edge is listed in one direction only\n",
				name, n, len(ds.Graphs))
		}
		if f := d.flags.Lookup("folds"); f != nil {
			folds, _ := strconv.Atoi(f.Value.String())
			if class, n := dataset.SmallestClass(ds.Labels()); n < folds { // scikit-learn warns, too
				fmt.Fprintf(
					stderr,
					"%s: class %d has only %d graphs for %d folds: some folds lack it in training or test\n",
					name, ds.ClassValues[class], n, folds,
				)
			}
		}
		sets = append(sets, ds)
	}
	return sets, nil
}

// Recipe holds the training flags -epochs, -batch, -lr, -seeds and -first-seed.
type Recipe struct {
	Epochs    int
	Batch     int
	LR        float64
	Seeds     int // seeds FirstSeed … FirstSeed+Seeds-1
	FirstSeed int
}

func (r *Recipe) Register(f *FlagSet) {
	r.RegisterTraining(f)
	r.RegisterSeeds(f)
}

// RegisterTraining registers -epochs, -batch and -lr.
func (r *Recipe) RegisterTraining(f *FlagSet) {
	Var(f, &r.Epochs, "epochs", setting.Int(0), "number of training `epochs`")
	Var(f, &r.Batch, "batch", setting.Int(2),
		"batch `size`, at least 2; contrastive losses use the other graphs of a batch as negatives")
	Var(f, &r.LR, "lr", setting.Positive, "learning `rate` of Adam")
}

// RegisterSeeds registers -seeds and -first-seed, for experiments without epochs.
func (r *Recipe) RegisterSeeds(f *FlagSet) {
	Var(f, &r.Seeds, "seeds", setting.Int(1), "number `N` of independent runs with consecutive seeds")
	Var(f, &r.FirstSeed, "first-seed", setting.Int(0), "first `seed`")
	f.GrowsRange("first-seed", "seeds")
	f.Check(func() error {
		switch {
		case r.Seeds > maxSeeds:
			return Usagef("-seeds %d: want at most %d", r.Seeds, maxSeeds)
		case r.FirstSeed > math.MaxInt-r.Seeds:
			return Usagef("-first-seed %d -seeds %d: the last seed does not fit in %d bits",
				r.FirstSeed, r.Seeds, strconv.IntSize)
		}
		return nil
	})
}

// maxSeeds is the largest number of seeds: each takes memory before it runs.
const maxSeeds = 10_000

// Protocol holds the evaluation flags -protocol and -folds.
type Protocol struct {
	Protocols []string
	Choices   []string // the protocols that the experiment offers; not a flag
	Folds     int      // of the outer cross-validation; 0 becomes 10
}

func (p *Protocol) Register(f *FlagSet) {
	if p.Folds == 0 {
		p.Folds = 10
	}
	Var(f, &p.Protocols, "protocol", setting.List(setting.OneOf(p.Choices...)),
		"evaluation `protocols`, one row of results each: "+strings.Join(p.Choices, ","))
	Var(f, &p.Folds, "folds", setting.Int(2), "number of outer `folds` of the evaluation")
}

// Engine holds the engine flags -backend, -precision, -tf32 and -bf16. The environment variables
// SPECMATCH_BACKEND and SPECMATCH_PRECISION are the defaults of the first two.
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
		"compute `engine`: cpu; in builds with -tags cuda, also cuda, or cuda-3xtf32, which computes\n"+
			"float32 products on tensor cores at about the accuracy of float32")
	f.Env("backend", "SPECMATCH_BACKEND")
	Var(f, &e.Precision, "precision", parsePrecision,
		"floating-point `format` of the engine: float32 or float64")
	f.Env("precision", "SPECMATCH_PRECISION")
	f.BoolVar(&e.TF32, "tf32", e.TF32,
		"let cuda round the inputs of float32 products to TF32 (10 mantissa bits), for speed")
	f.BoolVar(&e.BF16, "bf16", e.BF16,
		"let cpu round the inputs of float32 products to bfloat16 (7 mantissa bits), for speed;\n"+
			"needs a processor with AVX512_BF16")
	f.Check(func() error {
		for _, x := range []struct {
			name, engine string
			on           bool
		}{{"-tf32", "cuda", e.TF32}, {"-bf16", "cpu", e.BF16}} {
			switch {
			case !x.on:
			case e.Backend != x.engine:
				return Usagef("%s needs -backend %s, not %s", x.name, x.engine, e.Backend)
			case e.Precision != tensor.Float32:
				return Usagef("%s needs -precision float32", x.name)
			}
		}
		return nil
	})
}

// engines returns the choices of -backend: cpu; those of cuda in every build, because their error
// explains how to get them; and cuda's emulator if the build has it.
func engines() []string {
	names := []string{"cpu", "cuda", "cuda-3xtf32"}
	for _, emulator := range []string{"cuda-emulator", "cuda-emulator-3xtf32"} {
		if slices.Contains(backend.Names(), emulator) {
			names = append(names, emulator)
		}
	}
	return names
}

// Name returns the engine's name for [backend.Open], such as "cuda-tf32".
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
