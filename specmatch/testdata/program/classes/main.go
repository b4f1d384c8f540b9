// Command classes trains an encoder on the graphs of a set without their classes, and says
// how well a support vector machine tells the classes by its embeddings.
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/specmatch/specmatch/backend/cpu"
	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/specmatch/eval"
	"github.com/specmatch/specmatch/specmatch/method"
	"github.com/specmatch/specmatch/specmatch/train"
	"github.com/specmatch/specmatch/tensor"
)

func main() {
	ctx := context.Background()
	set := must(dataset.Open(ctx, ".", "motifs", dataset.Options{}))
	learner := must(method.New("specmatch", method.Setup{
		Backend: cpu.New(tensor.Float32), Graphs: set.Graphs,
		Encoder: gnn.Architecture{Kind: gnn.KindGIN, In: set.FeatureWidth, Hidden: 32, Layers: 3},
	}))
	must(train.Run(ctx, learner, train.Options{Epochs: 2}, nil))
	embeddings := must(learner.Embed(ctx, set.Graphs))
	result := must(eval.Linear.Accuracy(ctx, embeddings, set.Labels(), 10, 0, eval.Options{}))
	fmt.Printf("accuracy %.2f %% in %d folds\n", 100*result.Mean, len(result.FoldAccuracies))
}

func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}
