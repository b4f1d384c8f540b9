// Package finetuning runs the fine-tuning of experiments: package finetune's
// learner with progress and checkpoints in the run directory.
package finetuning

import (
	"cmp"
	"context"

	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/specmatch/cli"
	"github.com/specmatch/specmatch/specmatch/finetune"
	"github.com/specmatch/specmatch/specmatch/method"
	"github.com/specmatch/specmatch/specmatch/run"
	"github.com/specmatch/specmatch/specmatch/run/pretrain"
	"github.com/specmatch/specmatch/specmatch/setting"
	"github.com/specmatch/specmatch/specmatch/train"
)

// The rows of tables besides the methods of package method.
const (
	None         = "none"         // no pre-training
	Augmentation = "augmentation" // no pre-training; the labelled graphs are augmented
)

// Title is the title of a row.
func Title(name string) string {
	own := map[string]string{None: "no pre-training", Augmentation: "augmentation only"}
	return cmp.Or(own[name], method.Title(name))
}

// Pretrains reports whether a row has a pre-training.
func Pretrains(name string) bool { return name != None && name != Augmentation }

// Recipe is how to fine-tune: -finetune-epochs, -finetune-batch, -finetune-lr and
// -pretrained.
type Recipe struct {
	Epochs int
	Batch  int // 0 registers no flag: batches are those of pre-training
	LR     float64
	// Pretrained is the run directory whose pre-trained weights are fine-tuned;
	// "" pre-trains.
	Pretrained string
}

func (r *Recipe) Register(f *cli.FlagSet) {
	cli.Var(f, &r.Epochs, "finetune-epochs", setting.Int(1), "`epochs` to fine-tune")
	if r.Batch > 0 {
		cli.Var(f, &r.Batch, "finetune-batch", setting.Int(2), "graphs in a `batch` while fine-tuning")
	}
	cli.Var(f, &r.LR, "finetune-lr", setting.Positive, "learning `rate` of Adam while fine-tuning")
	cli.Var(f, &r.Pretrained, "pretrained", setting.Text, "run `directory` to take the pre-trained weights from, as for other sets or label rates;\nnone pre-trains")
}

// PretrainsHere reports whether the pre-training of a row is part of this run.
func (r *Recipe) PretrainsHere(name string) bool { return Pretrains(name) && r.Pretrained == "" }

// Check returns an error unless the directory of -pretrained, if it is given, has the weights
// of all runs, trained with the same flags but for those that may differ.
func (r *Recipe) Check(f *cli.FlagSet, runs []*pretrain.Run, mayDiffer ...string) error {
	var weights []string
	for _, run := range runs {
		if Pretrains(run.Method) {
			weights = append(weights, run.Weights(r.Pretrained))
		}
	}
	return run.CheckPretrained(r.Pretrained, f, mayDiffer, weights)
}

// Load reads what the run has pre-trained, here or elsewhere, into its encoder; a row without
// a pre-training keeps its initial weights.
func (r *Recipe) Load(run *pretrain.Run, dir *run.Dir, e gnn.Encoder) error {
	if !Pretrains(run.Method) {
		return nil
	}
	return run.Load(cmp.Or(r.Pretrained, dir.Path), e)
}

// Unit is the fine-tuning of a method under a name, after the unit that pre-trains it; the
// learner is made when it runs, and continues from the checkpoint of a run that was interrupted.
func (r *Recipe) Unit(name, method, pretraining string, e cli.Engine, dir *run.Dir, learner func(be backend.Backend) (*finetune.Learner, error)) run.Unit[finetune.Result] {
	if !r.PretrainsHere(method) {
		pretraining = ""
	}
	compute := func(ctx context.Context, be backend.Backend, status run.Status) (out finetune.Result, err error) {
		l, err := learner(be)
		if err != nil {
			return out, err
		}
		options, err := dir.Training(name, r.Epochs)
		if err != nil {
			return out, err
		}
		return l.Fit(ctx, options, func(p train.Progress) error {
			status("fine-tuning, epoch %d of %d, loss %.3f", p.Epoch, p.Epochs, p.Metrics["loss"])
			return nil
		})
	}
	return run.Unit[finetune.Result]{Name: name, With: pretraining, Run: run.OnEngine(e, compute)}
}
