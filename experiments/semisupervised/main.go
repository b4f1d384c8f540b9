// Command semisupervised reproduces the semi-supervised regime of the paper (its Table 2): pre-train an
// encoder on all graphs without labels, then fine-tune the whole encoder on the few labelled graphs.
//
//	go run ./experiments/semisupervised
//	go run ./experiments/semisupervised -dataset NCI1 -data DIR -label-rate 0.1 -seeds 5
//
// There is one row per method: no pre-training; no pre-training, but fine-tuning on augmented graphs; and
// the methods of package method, among them GraphCL as in its code, the paper's L_C alone, and
// SpecMatch-CL, L_C + β·L_G. All rows of a seed share the initial weights and the order of the batches.
// All runs share the folds and the selected labels (splits.json), so that no row has easier ones. As in
// the literature, pre-training sees the graphs of the test folds, but not their labels.
package main

import (
	"context"
	"fmt"
	"io"

	_ "github.com/specmatch/specmatch/backend/cpu"
	"github.com/specmatch/specmatch/experiments/internal/paper"
	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/specmatch/cli"
	"github.com/specmatch/specmatch/specmatch/finetune"
	"github.com/specmatch/specmatch/specmatch/method"
	"github.com/specmatch/specmatch/specmatch/run"
	"github.com/specmatch/specmatch/specmatch/run/training"
	"github.com/specmatch/specmatch/specmatch/setting"
)

func main() { cli.Main(execute) }

const synopsis = `Pre-trains graph encoders without labels and fine-tunes them on a fraction of the
labels: the semi-supervised regime of SpecMatch-CL.`

var methods = append([]string{paper.None, paper.Augmentation}, method.Names(method.SemiSupervised)...)

type experiment struct {
	paper.Experiment // its Settings and Recipe are those of pre-training
	fine             fine

	sets []*labelledSet
}

type fine struct {
	paper.Finetuning
	LabelRate float64
	Encoder   string
}

func (f *fine) Register(fs *cli.FlagSet) {
	f.Finetuning.Register(fs)
	cli.Var(fs, &f.LabelRate, "label-rate", setting.Float(1e-4, 0.5),
		"`fraction` of the training labels that fine-tuning uses: 1 divided by a whole number")
	cli.Var(fs, &f.Encoder, "encoder", setting.OneOf("paper", "reference"),
		"`form` of the ResGCN: paper (5 convolutions, residual) or reference, GraphCL's code (3, not residual)")
}

// small holds the defaults of a run without -dataset, a demonstration of about a minute.
var small = map[string]string{
	"epochs":          "20",
	"finetune-epochs": "30",
	"seeds":           "2",
	"own-recipes":     "false",
}

func execute(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	protocols := []string{protocolVal, protocolTestMax}
	x := &experiment{
		Experiment: paper.Experiment{
			Data:    cli.Data{NodeFeatures: dataset.FeaturesBoth},
			Methods: paper.Methods{Choices: methods},
			Recipe: cli.Recipe{
				Epochs: 100,
				Batch:  128,
				LR:     0.001,
				Seeds:  5,
			},
			Protocol: cli.Protocol{Protocols: protocols, Choices: protocols},
			Settings: training.Settings{OwnRecipes: true},
		},
		fine: fine{paper.Finetuning{Epochs: 100, LR: 0.001}, 0.1, "paper"},
	}
	flags := cli.NewFlagSet("semisupervised", synopsis, "",
		"-dataset NCI1,PROTEINS -data DIR -label-rate 0.1 -seeds 5",
		"-dataset NCI1 -data DIR -label-rate 0.01 -method none,infonce,specmatch")
	flags.Add(&x.fine)
	x.Register(flags, method.SemiSupervised)
	x.RegisterProtocol(flags)
	flags.Small("without -dataset", func() bool { return len(x.Data.Datasets) == 0 }, small)
	if err := flags.Parse(args, stdout); err != nil {
		return err
	}
	if err := x.open(ctx, stderr, flags.Collecting()); err != nil {
		return err
	}
	jobs := x.jobs()
	var runs []*training.Run
	for _, j := range jobs {
		runs = append(runs, j.pretraining())
	}
	if err := x.fine.Check(flags, runs, "label-rate", "protocol", "folds"); err != nil {
		return err
	}
	plan, err := x.Plan(flags, runs, false)
	if err != nil {
		return err
	}
	defer x.Dir.Close()
	trained, tuned := x.units(plan, jobs)
	return plan.Run(ctx, stdout, stderr, func() error {
		x.sort(jobs, *trained, *tuned)
		return x.report(stdout, jobs)
	})
}

// labelledSet is a data set with degrees among its features, and its folds by
// protocol.
type labelledSet struct {
	data   *dataset.Dataset
	splits map[string][]dataset.Split
}

// open reads the data sets with the features of the regime, and divides them, which
// collecting takes no more than their names for.
func (x *experiment) open(ctx context.Context, stderr io.Writer, collecting bool) error {
	sets, err := x.Data.Open(ctx, stderr)
	if err != nil {
		return err
	}
	for _, ds := range sets {
		s := &labelledSet{data: ds}
		x.sets = append(x.sets, s)
		if collecting {
			continue
		}
		s.data = ds.WithDegrees(dataset.DegreeCap(ds.Name))
		s.splits = map[string][]dataset.Split{}
		if ds.Classes < 2 {
			return fmt.Errorf("%s: all of its graphs have class %d; there is nothing to tell apart",
				ds.Name, ds.ClassValues[0])
		}
		for _, protocol := range x.Protocol.Protocols {
			s.splits[protocol], err = dataset.FewLabels(
				s.data, x.Protocol.Folds, x.fine.LabelRate, protocol == protocolVal, splitSeed,
			)
			if err != nil {
				return cli.Usagef("-label-rate %v -folds %d: %w",
					x.fine.LabelRate, x.Protocol.Folds, err)
			}
		}
	}
	return nil
}

type job struct {
	x      *experiment
	set    *labelledSet
	method string
	seed   int

	pretrained training.Trained
	tuned      map[string][]finetune.Result // by protocol and fold
}

// jobs lists the jobs, seed by seed: what an interrupted run has finished can then
// be compared.
func (x *experiment) jobs() []*job {
	var jobs []*job
	for _, set := range x.sets {
		for s := range x.Recipe.Seeds {
			for _, method := range x.Methods.Names {
				jobs = append(jobs, &job{
					x:      x,
					set:    set,
					method: method,
					seed:   x.Recipe.FirstSeed + s,
					tuned:  map[string][]finetune.Result{},
				})
			}
		}
	}
	return jobs
}

func (j *job) name() string { return j.pretraining().Name() }

// pretraining describes the first half of the run.
func (j *job) pretraining() *training.Run {
	encoder := gnn.Architecture{
		Kind:     gnn.KindResGCN,
		In:       j.set.data.FeatureWidth,
		Hidden:   128,
		Layers:   5,
		Residual: true,
	}
	if j.x.fine.Encoder == "reference" {
		encoder.Layers = 3
		encoder.Residual = false
	}
	return &training.Run{
		Dataset:  j.set.data,
		Regime:   method.SemiSupervised,
		Encoder:  encoder,
		Method:   j.method,
		Seed:     j.seed,
		Recipe:   j.x.Recipe,
		Settings: j.x.Settings,
	}
}

// units adds the two halves of the experiment to the plan: every method that has a
// pre-training trains without labels and leaves its model, and every job is fine-tuned
// on every fold, under every protocol.
func (x *experiment) units(plan *run.Plan, jobs []*job) (*[]training.Trained, *[]finetune.Result) {
	var train []run.Unit[training.Trained]
	var tune []run.Unit[finetune.Result]
	for _, j := range jobs {
		if x.fine.PretrainsHere(j.method) {
			train = append(train, j.pretraining().Unit(j.name(), x.Engine, x.Dir))
		}
		for _, protocol := range x.Protocol.Protocols {
			for fold := range x.Protocol.Folds {
				tune = append(tune, j.unit(protocol, fold))
			}
		}
	}
	return run.Add(plan, train), run.Add(plan, tune)
}

func (x *experiment) sort(jobs []*job, trained []training.Trained, tuned []finetune.Result) {
	for _, j := range jobs {
		if x.fine.PretrainsHere(j.method) {
			j.pretrained = trained[0]
			trained = trained[1:]
		}
		for _, protocol := range x.Protocol.Protocols {
			j.tuned[protocol] = tuned[:x.Protocol.Folds]
			tuned = tuned[x.Protocol.Folds:]
		}
	}
}
