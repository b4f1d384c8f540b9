package main

import (
	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/gnn/augment"
	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/specmatch/method"
	"github.com/specmatch/specmatch/specmatch/run"
	"github.com/specmatch/specmatch/specmatch/run/training"
)

func (x *experiment) encoder() gnn.Architecture {
	a := gnn.Architecture{Kind: gnn.KindChemGIN, Hidden: x.model.Hidden, Layers: x.model.Layers}
	if x.source.Domain == domainBio {
		a.Kind = gnn.KindBioGIN
	}
	return a
}

// pretraining describes the pre-training of a method, which all seeds share.
func (x *experiment) pretraining(name string) *training.Run {
	policy := augment.Random2
	if x.source.Domain == domainBio {
		policy = "dropN,subgraph,permE"
	}
	settings := x.Settings
	settings.Options = settings.Options.With(method.Options{"policy": policy})
	corpus := &dataset.Dataset{
		Name:   "pretrained",
		Graphs: x.domain.corpus,
		SMILES: x.domain.smiles,
		Sums:   x.corpusSums,
	}
	return &training.Run{
		Dataset:  corpus,
		Regime:   method.Transfer,
		Encoder:  x.encoder(),
		Method:   name,
		Recipe:   x.Recipe,
		Settings: settings,
	}
}

// pretrainings are the units of the first half of the experiment; there are none with
// -pretrained.
func (x *experiment) pretrainings() (list []run.Unit[training.Trained]) {
	for _, name := range x.Methods.Names {
		if x.fine.PretrainsHere(name) {
			list = append(list, x.pretraining(name).Unit("pretrain/"+name, x.Engine, x.Dir))
		}
	}
	return list
}
