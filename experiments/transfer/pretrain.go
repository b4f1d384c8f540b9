package main

import (
	"context"
	"io"

	"github.com/specmatch/specmatch/experiments/internal/cli"
	"github.com/specmatch/specmatch/experiments/internal/pretrain"
	"github.com/specmatch/specmatch/experiments/internal/rundir"
	"github.com/specmatch/specmatch/experiments/internal/units"
	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/gnn/augment"
	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/specmatch/method"
)

// encoder describes the encoder that is pre-trained.
func (x *experiment) encoder() gnn.Architecture {
	a := gnn.Architecture{Kind: gnn.KindChemGIN, Hidden: x.model.Hidden, Layers: x.model.Layers}
	if x.source.Domain == domainBio {
		a.Kind = gnn.KindBioGIN
	}
	return a
}

// pretraining describes the pre-training of a method, which all seeds share.
func (x *experiment) pretraining(name string) *pretrain.Run {
	settings := x.settings
	if x.source.Domain == domainChem {
		settings.Policy = augment.Random2
	} else {
		settings.Policy = "dropN,subgraph,permE"
	}
	return &pretrain.Run{
		Dataset: &dataset.Dataset{Name: "pretrained", Graphs: x.domain.corpus},
		Regime:  method.Transfer, Encoder: x.encoder(), Method: name,
		Loss: x.loss, Recipe: x.recipe, Settings: settings,
	}
}

// pretrainedDir is the run directory that has the pre-trained weights.
func (x *experiment) pretrainedDir() string {
	if run := x.source.Pretrained; run != "" {
		return run
	}
	return x.dir.Path
}

// checkPretrained returns an error unless the run of -pretrained, if there is one,
// pre-trained all methods with the settings of this one.
func (x *experiment) checkPretrained(flags *cli.FlagSet) error {
	if x.source.Pretrained == "" {
		return nil
	}
	var weights []string
	for _, name := range x.loss.Methods {
		if name != methodNone {
			weights = append(weights, x.pretraining(name).Weights(x.source.Pretrained))
		}
	}
	return rundir.CheckPretrained(x.source.Pretrained, "transfer", flags, []string{"finetune-batch", "dropout"}, weights)
}

// pretrainAll is the first half of the experiment; what it returns is empty with
// -pretrained.
func (x *experiment) pretrainAll(ctx context.Context, stderr io.Writer) (map[string]pretrain.Trained, error) {
	trained := map[string]pretrain.Trained{}
	if x.source.Pretrained != "" {
		return trained, nil
	}
	var list []units.Unit[pretrain.Trained]
	var names []string
	for _, name := range x.loss.Methods {
		if name != methodNone {
			names = append(names, name)
			list = append(list, units.Unit[pretrain.Trained]{Name: "pretrain/" + name, Files: []string{x.pretraining(name).Weights("")}, Run: func(ctx context.Context, status units.Status) (pretrain.Trained, error) {
				return x.pretrain(ctx, name, status)
			}})
		}
	}
	results, err := units.Run(ctx, x.dir, stderr, list)
	for i, t := range results {
		trained[names[i]] = t
	}
	return trained, err
}

func (x *experiment) pretrain(ctx context.Context, name string, status units.Status) (out pretrain.Trained, err error) {
	be, err := x.engine.Open()
	if err != nil {
		return out, err
	}
	defer be.Close()
	r := x.pretraining(name)
	l, err := r.Learner(be)
	if err != nil {
		return out, err
	}
	defer l.Close()
	if out, err = r.Train(ctx, l, x.dir, "pretrain/"+name, status); err != nil {
		return out, err
	}
	return out, r.Save(x.dir.Path, l, len(out.Epochs))
}
