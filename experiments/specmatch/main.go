// Command specmatch is for people with graphs and molecules of their own: it trains
// encoders without labels, turns records into vectors, and fits and uses models that
// predict.
//
//	go run ./experiments/specmatch train    -in FILE -out RUN
//	go run ./experiments/specmatch embed    -in FILE -out vectors.npy
//	go run ./experiments/specmatch finetune -in FILE -target COLUMN -out RUN
//	go run ./experiments/specmatch predict  -in FILE -model MODEL -out predictions.csv
//	go run ./experiments/specmatch convert  -in WEIGHTS -out MODEL
//	go run ./experiments/specmatch inspect  -model MODEL
//	go run ./experiments/specmatch report   -in RUN,RUN -out report.html
//	go run ./experiments/specmatch compare  -in RUN,RUN
//	go run ./experiments/specmatch sweep    -in FILE -out DIR
//
// The page of package gnn/dataset says which files it reads. Failures end it with
// status 1, mistakes in its flags with 2, Ctrl-C with 130; what was interrupted goes
// on when the same command is given again.
package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"runtime/debug"
	"slices"
	"strings"

	_ "github.com/specmatch/specmatch/backend/cpu"
	"github.com/specmatch/specmatch/experiments/internal/cli"
)

func main() { cli.Main(run) }

// A command is what the first argument names.
type command struct {
	name     string
	synopsis string
	examples []string
	// setup adds the command's flags and returns what it does with them.
	setup func(f *cli.FlagSet) action
}

type action func(ctx context.Context, stdout, stderr io.Writer) error

var commands = []command{
	{"train", "Trains an encoder on graphs or molecules without labels, and leaves a model file,\nRUN/model.safetensors, that embed and finetune read.",
		[]string{"-in molecules.csv -out RUN", "-in graphs.jsonl -method graphcl -epochs 40 -out RUN"}, setupTrain},
	{"embed", "Turns graphs or molecules into vectors. It streams, so that a file may be larger\nthan memory. Records that cannot be read are listed in OUT.rejected.csv.",
		[]string{"-in molecules.csv -out vectors.npy", "-in graphs.jsonl -model RUN/model.safetensors -out -"}, setupEmbed},
	{"finetune", "Fits a model that predicts to records with targets: classes, yes-or-no tasks, or\nnumbers. It leaves RUN/model-SEED.safetensors, RUN/test-SEED.csv with predictions\nof the test records, and RUN/results.md.",
		[]string{"-in molecules.csv -target solubility -out RUN", "-in graphs.jsonl -target class -kind classes -model MODEL -out RUN"}, setupFinetune},
	{"predict", "Predicts for new records by a model that finetune has left; by several, it gives\ntheir mean and standard deviation.",
		[]string{"-in new.csv -model RUN/model-0.safetensors -out predictions.csv"}, setupPredict},
	{"convert", "Makes a model file of weights of PyTorch: of a GNN of Hu et al. or GraphCL, or of the\nmodel of another file. A pickle is never run. A model file needs no converting for\nthe way back: it is a state_dict.",
		[]string{"-in weights.pth -out model.safetensors", "-in weights.safetensors -like RUN/model.safetensors -out model.safetensors"}, setupConvert},
	{"inspect", "Says what a model file is, was trained on, and expects.",
		[]string{"", "-model RUN/model.safetensors"}, setupInspect},
	{"report", "Makes one page of run directories, of this tool or of the experiments: tables with\npaired differences, seeds, curves, settings, costs.",
		[]string{"-in runs/a,runs/b -out report.html", "-in runs/a -against graphcl -out tables.tex"}, setupReport},
	{"compare", "Sets two runs side by side: settings, paired differences, units that changed.",
		[]string{"-in runs/a,runs/b"}, setupCompare},
	{"sweep", "Runs an experiment with many settings, on this machine or as a job array of Slurm.",
		[]string{"-in sweep.txt -out runs/sweep", "-in sweep.txt -out runs/sweep -slurm -time 60 -memory 2G"}, setupSweep},
	{"sweep status", "Says what a sweep has finished.",
		[]string{"-out runs/sweep"}, setupStatus},
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	if len(args) == 0 || slices.Contains([]string{"-h", "-help", "--help", "help"}, args[0]) {
		_, err := io.WriteString(stdout, overview())
		return err
	}
	name, args := args[0], args[1:]
	if len(args) > 0 && slices.Contains(names(), name+" "+args[0]) {
		name, args = name+" "+args[0], args[1:]
	}
	switch name {
	case "version":
		_, err := fmt.Fprintln(stdout, version())
		return err
	case "completion":
		_, err := io.WriteString(stdout, completion())
		return err
	}
	i := slices.IndexFunc(commands, func(c command) bool { return c.name == name })
	if i < 0 {
		return cli.Usagef("unknown command %q: want %s", name, strings.Join(names(), ", "))
	}
	flags, act := commands[i].flags()
	if err := flags.Parse(args, stdout); err != nil {
		return err
	}
	return act(ctx, stdout, stderr)
}

func (c command) flags() (*cli.FlagSet, action) {
	f := cli.NewFlagSet("specmatch "+c.name, c.synopsis, c.examples...)
	return f, c.setup(f)
}

func names() []string {
	var all []string
	for _, c := range commands {
		all = append(all, c.name)
	}
	return append(all, "version", "completion")
}

func overview() string {
	var b strings.Builder
	b.WriteString("Trains, embeds, fine-tunes and predicts on graphs and molecules of your own.\n\nUsage: go run ./experiments/specmatch COMMAND [flags]\n\nCommands:\n")
	for _, c := range commands {
		fmt.Fprintf(&b, "  %s\n\t%s\n", c.name, strings.ReplaceAll(c.synopsis, "\n", "\n\t"))
	}
	b.WriteString("  version\n\tPrints the version.\n  completion\n\tPrints completion for bash: source <(specmatch completion)\n\nCOMMAND -h explains the flags of a command.\n")
	return b.String()
}

// version returns that of the module, as the Go tool has stamped it.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return "specmatch " + info.Main.Version
	}
	return "specmatch (devel)"
}

// completion returns a script for bash.
func completion() string {
	var b strings.Builder
	words := map[string][]string{} // that may follow a first word, "" for the first
	for _, name := range names() {
		first, second, two := strings.Cut(name, " ")
		if !two {
			words[""] = append(words[""], first)
		} else {
			words[first] = append(words[first], second)
		}
	}
	for _, c := range commands {
		f, _ := c.flags()
		first, _, _ := strings.Cut(c.name, " ")
		for _, name := range slices.Sorted(maps.Keys(f.All())) {
			if !slices.Contains(words[first], "-"+name) {
				words[first] = append(words[first], "-"+name)
			}
		}
	}
	fmt.Fprintf(&b, "_specmatch() {\n  local words=%q\n  case ${COMP_WORDS[1]} in\n", strings.Join(words[""], " "))
	delete(words, "")
	for _, first := range slices.Sorted(maps.Keys(words)) {
		fmt.Fprintf(&b, "  %s) [ $COMP_CWORD -gt 1 ] && words=%q ;;\n", first, strings.Join(words[first], " "))
	}
	b.WriteString("  esac\n  COMPREPLY=($(compgen -W \"$words\" -- \"${COMP_WORDS[COMP_CWORD]}\"))\n}\ncomplete -o default -F _specmatch specmatch\n")
	return b.String()
}
