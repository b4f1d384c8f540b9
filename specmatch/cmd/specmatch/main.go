// Command specmatch is for people with graphs and molecules of their own: it trains
// encoders without labels, turns records into vectors, and fits and uses models that
// predict.
//
//	specmatch train    -in FILE -out RUN
//	specmatch embed    -in FILE -out vectors.npy
//	specmatch check    -in FILE -target COLUMN
//	specmatch finetune -in FILE -target COLUMN -out RUN
//	specmatch predict  -in FILE -model MODEL -out predictions.csv
//	specmatch search   -in FILE -query SMILES -out hits.csv
//	specmatch cluster  -in FILE -out clusters.csv
//	specmatch pick     -in FILE -out picks.csv
//	specmatch map      -in FILE -out map.csv -page map.html
//	specmatch convert  -in WEIGHTS -out MODEL
//	specmatch inspect  -model MODEL
//	specmatch report   -in RUN,RUN -out report.html
//	specmatch compare  -in RUN,RUN
//	specmatch sweep    -in FILE -out DIR
//	specmatch datasets list -data DIR
//	specmatch doctor
//
// Package gnn/dataset documents the input files. The exit status is 1 for failures, 2 for mistakes
// in the flags and 130 for Ctrl-C. The same command resumes an interrupted one.
package main

import (
	"context"
	"io"

	_ "github.com/specmatch/specmatch/backend/cpu"
	"github.com/specmatch/specmatch/specmatch/cli"
	"github.com/specmatch/specmatch/specmatch/cmd/specmatch/datasets"
	"github.com/specmatch/specmatch/specmatch/cmd/specmatch/doctor"
)

func main() { cli.Main(execute) }

func execute(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	const synopsis = "Trains encoders on your graphs and molecules, embeds, fine-tunes and predicts."
	return commands.Run(ctx, "specmatch", synopsis, args, stdout, stderr)
}

var commands = append(cli.Commands{
	{
		Name:  "train",
		Setup: setupTrain,
		Synopsis: "Trains an encoder on graphs or molecules without labels. Writes a model file for embed\n" +
			"and finetune, RUN/model.safetensors.",
		Examples: []string{
			"-in molecules.csv -out RUN", "-in graphs.jsonl -method graphcl -epochs 40 -out RUN",
		},
	},
	{
		Name:  "embed",
		Setup: setupEmbed,
		Synopsis: "Turns graphs or molecules into vectors. Streams the input, so a file may be larger\n" +
			"than memory. Lists records that cannot be read in OUT.rejected.csv.",
		Examples: []string{
			"-in molecules.csv -out vectors.npy", "-in graphs.jsonl -model RUN/model.safetensors -out -",
		},
	},
	{
		Name:  "check",
		Setup: setupCheck,
		Synopsis: "Lists what is odd in a table of molecules before a fit: salts, duplicates and their labels,\n" +
			"twins, outliers, rare classes and leakage. Writes a cleaned table with canonical SMILES.",
		Examples: []string{
			"-in molecules.csv -target solubility", "-in molecules.csv -target y -merge mean -out clean.csv",
		},
	},
	{
		Name:  "finetune",
		Setup: setupFinetune,
		Synopsis: "Fits a predictive model to records with targets: classes, binary tasks or regression.\n" +
			"Writes the models RUN/model-SEED.safetensors, predictions for the test records\n" +
			"RUN/test-SEED.csv, and RUN/results.md.",
		Examples: []string{
			"-in molecules.csv -target solubility -out RUN",
			"-in graphs.jsonl -target class -kind classes -model MODEL -out RUN",
		},
	},
	{
		Name:  "predict",
		Setup: setupPredict,
		Synopsis: "Predicts the targets of new records with a model from finetune, or with several:\n" +
			"their mean and standard deviation.",
		Examples: []string{"-in new.csv -model RUN/model-0.safetensors -out predictions.csv"},
	},
	{
		Name:  "search",
		Setup: setupSearch,
		Synopsis: "Finds the molecules of a file that are most similar to some others, by Tanimoto's similarity\n" +
			"of Morgan bits or counts, or by the vectors of an encoder, or those with a substructure\n" +
			"(SMARTS). Streams the file.",
		Examples: []string{
			`-in library.csv -query "CC(=O)Oc1ccccc1C(=O)O" -out hits.csv`,
			"-in library.smi.gz -queries actives.csv -least 0.6 -out hits.csv -page hits.html",
			"-in library.csv -smarts [CX3](=O)[OX2H1] -out acids.csv",
		},
	},
	{
		Name:  "cluster",
		Setup: setupClusters,
		Synopsis: "Divides the molecules of a file into clusters: by Butina's method, of similar molecules, or\n" +
			"by scaffold.",
		Examples: []string{
			"-in library.csv -least 0.6 -out clusters.csv", "-in library.csv -scaffold -out scaffolds.csv",
		},
	},
	{
		Name:     "pick",
		Setup:    setupPick,
		Synopsis: "Picks molecules of a file that are as different as possible (MaxMin).",
		Examples: []string{
			"-in library.csv -count 96 -out picks.csv", "-in library.csv -id name -first a7,b12 -out picks.csv",
		},
	},
	{
		Name:  "map",
		Setup: setupMap,
		Synopsis: "Gives every molecule of a file two coordinates, by t-SNE or principal components. Writes a\n" +
			"table, and a page with the map and the drawings.",
		Examples: []string{
			"-in library.csv -out map.csv -page map.html -colour activity",
			"-in library.csv -by vectors -method pca -out map.csv",
		},
	},
	{
		Name:  "convert",
		Setup: setupConvert,
		Synopsis: "Converts PyTorch weights to a model file: a GNN of Hu et al. or GraphCL, or any model\n" +
			"that -like names. Never runs a pickle. PyTorch reads model files without conversion:\n" +
			"they are state_dicts. Packs the models of a run of finetune into one file, an ensemble.",
		Examples: []string{
			"-in weights.pth -out model.safetensors",
			"-in weights.safetensors -like RUN/model.safetensors -out model.safetensors",
			"-in RUN -out ensemble.zip",
		},
	},
	{
		Name:     "inspect",
		Setup:    setupInspect,
		Synopsis: "Describes a model file: its architecture, training data and expected input.",
		Examples: []string{"", "-model RUN/model.safetensors"},
	},
	{
		Name:  "report",
		Setup: setupReport,
		Synopsis: "Summarises run directories, of this tool or of the experiments, on one page: tables\n" +
			"with paired differences, seeds, curves, settings and costs.",
		Examples: []string{
			"-in runs/a,runs/b -out report.html", "-in runs/a -against graphcl -out tables.tex",
		},
	},
	{
		Name:     "compare",
		Setup:    setupCompare,
		Synopsis: "Compares two runs: settings, paired differences and units that changed.",
		Examples: []string{"-in runs/a,runs/b"},
	},
	{
		Name:     "sweep",
		Setup:    setupSweep,
		Synopsis: "Runs an experiment with many settings, on this machine or as a Slurm job array.",
		Examples: []string{
			"-in sweep.txt -out runs/sweep", "-in sweep.txt -out runs/sweep -slurm -time 60 -memory 2G",
		},
	},
	{
		Name:     "sweep status",
		Setup:    setupStatus,
		Synopsis: "Prints the progress of a sweep.",
		Examples: []string{"-out runs/sweep"},
	},
	{
		Name:     "doctor",
		Setup:    doctor.Setup,
		Synopsis: doctor.Synopsis,
		Examples: []string{"-backend cuda"},
	},
}, datasets.Commands.Under("datasets")...)
