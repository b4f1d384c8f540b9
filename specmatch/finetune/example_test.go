package finetune_test

import (
	"context"
	"fmt"
	"log"
	"strings"

	"github.com/specmatch/specmatch/backend/cpu"
	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/gnn/dataset/records"
	"github.com/specmatch/specmatch/specmatch/finetune"
	"github.com/specmatch/specmatch/specmatch/train"
	"github.com/specmatch/specmatch/tensor"
)

// alcohols is a table of chains with their lengths and with whether they are alcohols.
func alcohols() *strings.Reader {
	var b strings.Builder
	b.WriteString("smiles,length,alcohol\n")
	for i := range 120 {
		fmt.Fprintf(&b, "%s%s,%d,%d\n", strings.Repeat("C", 1+i/2%20), []string{"", "O"}[i%2], 1+i/2%20, i%2)
	}
	return strings.NewReader(b.String())
}

// Fit a model to a column of a file by the program's recipe.
func ExampleFitFile() {
	be := cpu.New(tensor.Float32)
	model, result, err := finetune.FitFile(context.Background(), "../../testdata/molecules.csv", be, "logS")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(model.Card.Head.Kind, model.Card.Head.Tasks, result.Kept()["test_r2"] > 0)
	// Output: regression [logS] true
}

// Fit a model to a column of a table, step by step. What kind of target it is, its values tell.
func ExampleRead() {
	examples, err := finetune.Read(context.Background(), "alcohols.csv",
		finetune.Task{Targets: []string{"alcohol"}}, records.Options{Input: alcohols()})
	if err != nil {
		log.Fatal(err)
	}
	split, err := examples.Divide(0)
	if err != nil {
		log.Fatal(err)
	}
	encoder := gnn.Architecture{Kind: gnn.KindChemGIN, Hidden: 16, Layers: 2}
	model, err := examples.NewModel(cpu.New(tensor.Float32), encoder, nil, 0)
	if err != nil {
		log.Fatal(err)
	}
	learner, err := finetune.New(model, examples.Data(split), finetune.Options{Batch: 16, Rate: 0.01, Patience: 5})
	if err != nil {
		log.Fatal(err)
	}
	result, err := learner.Fit(context.Background(), train.Options{Epochs: 20}, nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s on %d to train, %d to validate, %d to test: ROC-AUC %.0f %%\n",
		examples.Kind, len(split.Train), len(split.Valid), len(split.Test), result.Kept()["test_roc_auc"])
	// Output: binary on 96 to train, 12 to validate, 12 to test: ROC-AUC 100 %
}
