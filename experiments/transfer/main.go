// Command transfer reproduces the transfer learning of the paper (its Table 3):
// pre-train an encoder of molecules or of protein networks on a large corpus
// without labels, then fine-tune it on other sets with few.
//
//	go run ./experiments/transfer
//	go run ./experiments/transfer -corpus zinc250k.csv.gz -corpus-size 50000 -epochs 10 -dataset bbbp,bace -data DIR
//	go run ./experiments/transfer -domain bio -corpus shs27k -dataset homo_sapiens -data DIR
//
// One row per method: no pre-training; edge prediction, attribute masking,
// Infomax and context prediction as Hu et al. (2020) have them; GraphCL's loss;
// JOAO, JOAOv2 and SimGRACE; the paper's L_C alone; and SpecMatch-CL, L_C + β·L_G. A
// method is pre-trained
// once, on the same batches as the others, and then fine-tuned with every seed.
//
// Molecules are divided by scaffold, proteins at random; an epoch's quality is the
// ROC-AUC averaged over tasks. Both readings of the literature are reported: the
// last epoch's, and that of the epoch that is best on the validation set.
//
// Pre-training and fine-tuning keep checkpoints; after an interruption they go on
// from there, and end with the same weights as without it.
package main

import (
	"context"
	"fmt"
	"io"
	"slices"

	_ "github.com/specmatch/specmatch/backend/cpu"
	"github.com/specmatch/specmatch/experiments/internal/paper"
	"github.com/specmatch/specmatch/specmatch/cli"
	"github.com/specmatch/specmatch/specmatch/method"
	"github.com/specmatch/specmatch/specmatch/run"
	"github.com/specmatch/specmatch/specmatch/run/training"
	"github.com/specmatch/specmatch/specmatch/setting"
	"github.com/specmatch/specmatch/specmatch/train"
)

func main() { cli.Main(execute) }

const synopsis = `Pre-trains encoders of molecules or proteins without labels and fine-tunes them
on other sets: the transfer learning of SpecMatch-CL.`

const (
	protocolLast   = "last"
	protocolBest   = "best-val"
	domainChem     = "chem"
	domainBio      = "bio"
	smallMolecules = 2000 // of the corpus of a run without -corpus
)

var (
	methods   = append([]string{paper.None}, withoutLabels(method.Names(method.Transfer))...)
	tableRows = append([]string{paper.None}, method.Rows(method.Transfer)...)
	protocols = []string{protocolLast, protocolBest}
)

// withoutLabels drops the methods that need tables of labels, which this experiment does not read.
func withoutLabels(names []string) []string {
	return slices.DeleteFunc(names, func(name string) bool {
		m, err := method.Get(name)
		return err == nil && m.Labels
	})
}

type experiment struct {
	paper.Experiment // its Recipe is that of pre-training, except for the seeds, which are of fine-tuning
	source           source
	model            architecture
	fine             paper.Finetuning

	domain     domain
	corpusSums map[string]string // of the files of domain.corpus
}

type source struct {
	Domain string
	Corpus string
	Size   int
}

func (s *source) Register(f *cli.FlagSet) {
	cli.Var(f, &s.Domain, "domain", setting.OneOf(domainChem, domainBio),
		"`domain` of the graphs: chem for molecules, bio for proteins and their networks")
	cli.Var(f, &s.Corpus, "corpus", setting.Text,
		"`file` of SMILES to pre-train on (.csv with a column smiles, or one per line; also .gz), or for\n"+
			"bio the name of a network in -data; by default a small synthetic set")
	cli.Var(f, &s.Size, "corpus-size", setting.Int(0),
		"`number` of random graphs of the corpus to use; 0 is all")
}

type architecture struct {
	Hidden, Layers int
	Dropout        float64
}

func (m *architecture) Register(f *cli.FlagSet) {
	cli.Var(f, &m.Hidden, "hidden", setting.Int(1), "hidden `width` of the encoder")
	cli.Var(f, &m.Layers, "layers", setting.Int(1), "`number` of the encoder's layers")
	cli.Var(f, &m.Dropout, "dropout", setting.Float(0, 0.99),
		"`probability` of dropout in fine-tuning")
}

// small holds the defaults of a run without -corpus and -dataset, a demonstration of about a minute.
var small = map[string]string{
	"hidden":          "32",
	"layers":          "3",
	"batch":           "128",
	"epochs":          "5",
	"finetune-epochs": "10",
	"seeds":           "2",
	"own-recipes":     "false",
}

// flags returns the flags of the program.
func (x *experiment) flags() *cli.FlagSet {
	f := cli.NewFlagSet("transfer", synopsis, "",
		"-corpus zinc250k.csv.gz -corpus-size 50000 -epochs 10 -method none,graphcl,specmatch -dataset "+
			"bbbp,bace -data DIR -seeds 3",
		"-domain bio -corpus shs27k -dataset homo_sapiens -data DIR")
	x.Register(f, method.Transfer, method.Policy)
	f.Add(&x.source, &x.model, &x.fine)
	f.Lookup("dataset").Usage = "data sets `A,B`: names of MoleculeNet, such as bbbp,bace, or for bio of networks;\n" +
		"by default the program only pre-trains or, without -corpus, uses the synthetic set"
	f.Lookup("data").Usage = "folder `DIR` with the data sets: DIR/name.csv[.gz], or for bio\n" +
		"DIR/NAME_edges.csv[.gz] and NAME_labels.csv[.gz]"
	f.Small(
		"without -corpus and -dataset",
		func() bool { return x.source.Corpus == "" && len(x.Data.Datasets) == 0 },
		small,
	)
	return f
}

func execute(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	x := &experiment{
		Experiment: paper.Experiment{
			Methods: paper.Methods{Names: tableRows, Choices: methods},
			Recipe: cli.Recipe{
				Epochs: 80,
				Batch:  256,
				LR:     0.001,
				Seeds:  10,
			},
			Settings: training.Settings{OwnRecipes: true},
		},
		source: source{Domain: domainChem},
		model:  architecture{Hidden: 300, Layers: 5, Dropout: 0.5},
		fine:   paper.Finetuning{Epochs: 100, Batch: 32, LR: 0.001},
	}
	flags := x.flags()
	if err := flags.Parse(args, stdout); err != nil {
		return err
	}
	sizes := fmt.Sprintf("-hidden %d -layers %d", x.model.Hidden, x.model.Layers)
	if err := train.Fits(x.Engine.Backend, x.Engine.Precision, x.encoder(), nil, 0); err != nil {
		return cli.Usagef("%s: %w", sizes, err)
	}
	if err := x.noteInputs(ctx, flags); err != nil {
		return err
	}
	var runs []*training.Run
	for _, name := range x.Methods.Names {
		runs = append(runs, x.pretraining(name))
	}
	if err := x.fine.Check(flags, runs, "finetune-batch", "dropout"); err != nil {
		return err
	}
	var err error
	x.domain, err = x.openDomain(ctx, stderr)
	if err != nil {
		return err
	}
	if err := x.fits(sizes); err != nil {
		return err
	}
	names := x.Data.Datasets
	if len(names) == 0 {
		names = []string{x.source.Domain}
	}
	x.Dir, err = run.Start(flags.Name(), flags, names, x.Recipe, x.Engine, x.Output)
	if err != nil {
		return err
	}
	defer x.Dir.Close()
	plan := run.NewPlan(x.Dir)
	trained := run.Add(plan, x.pretrainings())
	tunings, list := x.tunings()
	tuned := run.Add(plan, list)
	return plan.Run(ctx, stdout, stderr, func() error {
		if len(x.domain.sets) == 0 {
			fmt.Fprintf(stdout, "pre-trained only, without -dataset; weights and metrics: %s\n", x.Dir.Path)
			return nil
		}
		for i, t := range *tuned {
			tunings[i].result = t
		}
		return x.report(stdout, *trained, tunings)
	})
}
