// Command table learns to predict a column of train.csv, and predicts it for new.csv.
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/specmatch/specmatch/backend/cpu"
	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/gnn/dataset/records"
	"github.com/specmatch/specmatch/specmatch/apply"
	"github.com/specmatch/specmatch/specmatch/finetune"
	"github.com/specmatch/specmatch/specmatch/model"
	"github.com/specmatch/specmatch/specmatch/train"
	"github.com/specmatch/specmatch/tensor"
)

func main() {
	ctx, be := context.Background(), cpu.New(tensor.Float32)
	task := finetune.Task{Targets: []string{"carbons"}, Split: finetune.Scaffold}
	examples := must(finetune.Read(ctx, "train.csv", task, records.Options{ID: "name"}))
	encoder := gnn.Architecture{Kind: gnn.KindChemGIN, Hidden: 32, Layers: 3, Sum: true}
	predictor := must(examples.NewModel(be, encoder, nil, 0))
	parts := must(examples.Divide(0))
	learner := must(finetune.New(predictor, examples.Data(parts), finetune.Options{Batch: 16, Patience: 10}))
	result := must(learner.Fit(ctx, train.Options{Epochs: 30}, nil))
	fmt.Printf("RMSE %.3f, R² %.3f\n", result.Kept()["test_rmse"], result.Kept()["test_r2"])
	must(0, predictor.Save("model.safetensors"))
	job := apply.Job{Path: "new.csv", Model: must(apply.Predictor(must(model.Open("model.safetensors", be))))}
	done := must(job.WriteFile(ctx, "predictions.csv"))
	fmt.Printf("%d records, %d of them rejected\n", done.Records, done.Rejected)
}

func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}
