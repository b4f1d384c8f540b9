package paper

import (
	"cmp"
	"context"

	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/specmatch/cli"
	"github.com/specmatch/specmatch/specmatch/finetune"
	"github.com/specmatch/specmatch/specmatch/method"
	"github.com/specmatch/specmatch/specmatch/run"
	"github.com/specmatch/specmatch/specmatch/run/training"
	"github.com/specmatch/specmatch/specmatch/setting"
	"github.com/specmatch/specmatch/specmatch/train"
)

// The rows of tables of fine-tuning besides the methods of package method.
const (
	None         = "none"         // no pre-training
	Augmentation = "augmentation" // no pre-training; the labelled graphs are augmented
)

// Title returns the title of a row.
func Title(name string) string {
	switch name {
	case None:
		return "no pre-training"
	case Augmentation:
		return "augmentation only"
	}
	return method.Title(name)
}

// Pretrains reports whether a row has a pre-training.
func Pretrains(name string) bool { return name != None && name != Augmentation }

// Finetuning is how to fine-tune: -finetune-epochs, -finetune-batch, -finetune-lr and -pretrained.
type Finetuning struct {
	Epochs int
	Batch  int // 0 registers no flag: batches are those of pre-training
	LR     float64
	// Pretrained is the run directory whose pre-trained weights are fine-tuned; "" pre-trains.
	Pretrained string
}

// Register implements [cli.Group].
func (r *Finetuning) Register(f *cli.FlagSet) {
	cli.Var(f, &r.Epochs, "finetune-epochs", setting.Int(1), "`epochs` to fine-tune")
	if r.Batch > 0 {
		cli.Var(f, &r.Batch, "finetune-batch", setting.Int(2), "graphs in a `batch` while fine-tuning")
	}
	cli.Var(f, &r.LR, "finetune-lr", setting.Positive, "learning `rate` of Adam while fine-tuning")
	cli.Var(f, &r.Pretrained, "pretrained", setting.Text,
		"run `directory` to take the pre-trained weights from, as for other sets or label rates;\n"+
			"none pre-trains")
}

// PretrainsHere reports whether the pre-training of a row is part of this run.
func (r *Finetuning) PretrainsHere(name string) bool {
	return Pretrains(name) && r.Pretrained == ""
}

// Check returns an error unless the directory of -pretrained, if it is given, has the weights of all
// runs, trained with the same flags but for those that may differ.
func (r *Finetuning) Check(f *cli.FlagSet, runs []*training.Run, mayDiffer ...string) error {
	var weights []string
	for _, run := range runs {
		if Pretrains(run.Method) {
			weights = append(weights, run.Weights(r.Pretrained))
		}
	}
	return run.CheckPretrained(r.Pretrained, f, mayDiffer, weights)
}

// Load reads what the run has pre-trained, here or elsewhere, into its encoder; a row without a
// pre-training keeps its initial weights.
func (r *Finetuning) Load(run *training.Run, dir *run.Dir, e gnn.Encoder) error {
	if !Pretrains(run.Method) {
		return nil
	}
	return run.Load(cmp.Or(r.Pretrained, dir.Path), e)
}

// Unit returns the fine-tuning of a method under a name, after the unit that pre-trains it. The
// learner is made when it runs, and continues from the checkpoint of a run that was interrupted.
func (r *Finetuning) Unit(
	name, method, pretraining string,
	e cli.Engine,
	dir *run.Dir,
	learner func(be backend.Backend) (*finetune.Learner, error),
) run.Unit[finetune.Result] {
	if !r.PretrainsHere(method) {
		pretraining = ""
	}
	compute := func(
		ctx context.Context, be backend.Backend, status run.Status,
	) (out finetune.Result, err error) {
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
	return run.Unit[finetune.Result]{
		Name:   name,
		With:   pretraining,
		Engine: &e,
		Run:    compute,
	}
}
