package main

import (
	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/gnn/augment"
	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/specmatch/method"
	"github.com/specmatch/specmatch/specmatch/run"
	"github.com/specmatch/specmatch/specmatch/run/pretrain"
)

func (x *experiment) encoder() gnn.Architecture {
	a := gnn.Architecture{Kind: gnn.KindChemGIN, Hidden: x.model.Hidden, Layers: x.model.Layers}
	if x.source.Domain == domainBio {
		a.Kind = gnn.KindBioGIN
	}
	return a
}

// pretraining describes the pre-training of a method, which all seeds share.
func (x *experiment) pretraining(name string) *pretrain.Run {
	settings := x.Settings
	if x.source.Domain == domainChem {
		settings.Policy = augment.Random2
	} else {
		settings.Policy = "dropN,subgraph,permE"
	}
	return &pretrain.Run{
		Dataset: &dataset.Dataset{Name: "pretrained", Graphs: x.domain.corpus, SMILES: x.domain.smiles, Sums: x.corpusSums},
		Regime:  method.Transfer, Encoder: x.encoder(), Method: name,
		Loss: x.Loss, Recipe: x.Recipe, Settings: settings,
	}
}

// pretrainings are the units of the first half of the experiment; there are none with
// -pretrained.
func (x *experiment) pretrainings() (list []run.Unit[pretrain.Trained]) {
	for _, name := range x.Loss.Methods {
		if x.fine.PretrainsHere(name) {
			list = append(list, x.pretraining(name).Unit("pretrain/"+name, x.Engine, x.Dir))
		}
	}
	return list
}
