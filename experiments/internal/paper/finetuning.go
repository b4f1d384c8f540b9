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

// Finetuning holds the flags -finetune-epochs, -finetune-batch, -finetune-lr and -pretrained.
type Finetuning struct {
	Epochs int
	Batch  int // 0 registers no flag, and uses the batch size of pre-training
	LR     float64
	// Pretrained is the run directory with the pre-trained weights; "" pre-trains here.
	Pretrained string
}

// Register implements [cli.Group].
func (r *Finetuning) Register(f *cli.FlagSet) {
	cli.Var(f, &r.Epochs, "finetune-epochs", setting.Int(1), "number of fine-tuning `epochs`")
	if r.Batch > 0 {
		cli.Var(f, &r.Batch, "finetune-batch", setting.Int(2), "batch `size` in fine-tuning")
	}
	cli.Var(f, &r.LR, "finetune-lr", setting.Positive, "learning `rate` of Adam in fine-tuning")
	cli.Var(f, &r.Pretrained, "pretrained", setting.Text,
		"run `directory` with pre-trained weights, for example to fine-tune on other sets or label rates;\n"+
			"by default the program pre-trains")
}

// PretrainsHere reports whether the pre-training of a row is part of this run.
func (r *Finetuning) PretrainsHere(name string) bool {
	return Pretrains(name) && r.Pretrained == ""
}

// Check returns an error if -pretrained is given and the directory lacks the weights of a run, or if they
// were trained with other flags, except for those in mayDiffer.
func (r *Finetuning) Check(f *cli.FlagSet, runs []*training.Run, mayDiffer ...string) error {
	var weights []string
	for _, run := range runs {
		if Pretrains(run.Method) {
			weights = append(weights, run.Weights(r.Pretrained))
		}
	}
	return run.CheckPretrained(r.Pretrained, f, mayDiffer, weights)
}

// Load reads the run's pre-trained weights, from this run or from -pretrained, into the encoder. A row
// without pre-training keeps its initial weights.
func (r *Finetuning) Load(run *training.Run, dir *run.Dir, e gnn.Encoder) error {
	if !Pretrains(run.Method) {
		return nil
	}
	return run.Load(cmp.Or(r.Pretrained, dir.Path), e)
}

// Unit returns the unit that fine-tunes a method, after the unit that pre-trains it. The unit creates the
// learner, and resumes from its checkpoint.
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
