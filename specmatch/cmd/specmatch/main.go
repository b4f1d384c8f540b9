// Command specmatch is for people with graphs and molecules of their own: it trains
// encoders without labels, turns records into vectors, and fits and uses models that
// predict.
//
//	specmatch train    -in FILE -out RUN
//	specmatch embed    -in FILE -out vectors.npy
//	specmatch finetune -in FILE -target COLUMN -out RUN
//	specmatch predict  -in FILE -model MODEL -out predictions.csv
//	specmatch convert  -in WEIGHTS -out MODEL
//	specmatch inspect  -model MODEL
//	specmatch report   -in RUN,RUN -out report.html
//	specmatch compare  -in RUN,RUN
//	specmatch sweep    -in FILE -out DIR
//	specmatch datasets list -data DIR
//	specmatch doctor
//
// The page of package gnn/dataset says which files it reads. Failures end it with
// status 1, mistakes in its flags with 2, Ctrl-C with 130; what was interrupted goes
// on when the same command is given again.
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
	return commands.Run(
		ctx,
		"specmatch",
		"Trains, embeds, fine-tunes and predicts on graphs and molecules of your own.",
		args,
		stdout,
		stderr,
	)
}

var commands = append(cli.Commands{
	{
		Name:  "train",
		Setup: setupTrain,
		Synopsis: "Trains an encoder on graphs or molecules without labels, and leaves a model file,\n" +
			"RUN/model.safetensors, that embed and finetune read.",
		Examples: []string{
			"-in molecules.csv -out RUN", "-in graphs.jsonl -method graphcl -epochs 40 -out RUN",
		},
	},
	{
		Name:  "embed",
		Setup: setupEmbed,
		Synopsis: "Turns graphs or molecules into vectors. It streams, so that a file may be larger\n" +
			"than memory. Records that cannot be read are listed in OUT.rejected.csv.",
		Examples: []string{
			"-in molecules.csv -out vectors.npy", "-in graphs.jsonl -model RUN/model.safetensors -out -",
		},
	},
	{
		Name:  "finetune",
		Setup: setupFinetune,
		Synopsis: "Fits a model that predicts to records with targets: classes, yes-or-no tasks, or\n" +
			"numbers. It leaves RUN/model-SEED.safetensors, RUN/test-SEED.csv with predictions\n" +
			"of the test records, and RUN/results.md.",
		Examples: []string{
			"-in molecules.csv -target solubility -out RUN",
			"-in graphs.jsonl -target class -kind classes -model MODEL -out RUN",
		},
	},
	{
		Name:  "predict",
		Setup: setupPredict,
		Synopsis: "Predicts for new records by a model that finetune has left; by several, it gives\n" +
			"their mean and standard deviation.",
		Examples: []string{"-in new.csv -model RUN/model-0.safetensors -out predictions.csv"},
	},
	{
		Name:  "convert",
		Setup: setupConvert,
		Synopsis: "Makes a model file of weights of PyTorch: of a GNN of Hu et al. or GraphCL, or of " +
			"the\n" +
			"model of another file. A pickle is never run. A model file needs no converting for\n" +
			"the way back: it is a state_dict.",
		Examples: []string{
			"-in weights.pth -out model.safetensors",
			"-in weights.safetensors -like RUN/model.safetensors -out model.safetensors",
		},
	},
	{
		Name:     "inspect",
		Setup:    setupInspect,
		Synopsis: "Says what a model file is, was trained on, and expects.",
		Examples: []string{"", "-model RUN/model.safetensors"},
	},
	{
		Name:  "report",
		Setup: setupReport,
		Synopsis: "Makes one page of run directories, of this tool or of the experiments: tables with\n" +
			"paired differences, seeds, curves, settings, costs.",
		Examples: []string{
			"-in runs/a,runs/b -out report.html", "-in runs/a -against graphcl -out tables.tex",
		},
	},
	{
		Name:     "compare",
		Setup:    setupCompare,
		Synopsis: "Sets two runs side by side: settings, paired differences, units that changed.",
		Examples: []string{"-in runs/a,runs/b"},
	},
	{
		Name:     "sweep",
		Setup:    setupSweep,
		Synopsis: "Runs an experiment with many settings, on this machine or as a job array of Slurm.",
		Examples: []string{
			"-in sweep.txt -out runs/sweep", "-in sweep.txt -out runs/sweep -slurm -time 60 -memory 2G",
		},
	},
	{
		Name:     "sweep status",
		Setup:    setupStatus,
		Synopsis: "Says what a sweep has finished.",
		Examples: []string{"-out runs/sweep"},
	},
	{
		Name:     "doctor",
		Setup:    doctor.Setup,
		Synopsis: doctor.Synopsis,
		Examples: []string{"-backend cuda"},
	},
}, datasets.Commands.Under("datasets")...)
