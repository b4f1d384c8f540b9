package specmatch_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing/fstest"

	"github.com/specmatch/specmatch/backend/cpu"
	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/gnn/augment"
	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/specmatch"
	"github.com/specmatch/specmatch/specmatch/model"
	"github.com/specmatch/specmatch/tensor"
)

// Pretrain on the embedded data set and embed its graphs. This is the whole
// pipeline: graphs, two augmented views of every batch, model, objective, steps.
func ExampleTrainer() {
	be := cpu.New(tensor.Float64)
	set := dataset.Default()
	view, err := augment.ParsePolicy(augment.Random2, augment.ImplIntended, 0)
	if err != nil {
		fmt.Println(err)
		return
	}
	loader := augment.Loader{
		Graphs:   set.Graphs,
		Batch:    120,
		Collator: augment.Collator{Views: []augment.Augmentation{view, view}, Seed: 1},
	}
	model := specmatch.NewGINModel(be, set.FeatureWidth, rand.New(rand.NewPCG(1, 1)))
	trainer := specmatch.NewTrainer(be, model, specmatch.Objective{
		Contrast: specmatch.InfoNCE{Tau: 0.2},
		Match:    specmatch.DefaultLaplacianMatch(),
		Beta:     specmatch.Beta{Weight: 0.05},
	}, 0.01)

	for epoch := range 2 {
		for samples, batch := range loader.Epoch(context.Background(), epoch) {
			stats, err := trainer.Step(batch, false)
			if err != nil {
				fmt.Println(err)
				return
			}
			fmt.Printf("epoch %d, %d graphs: loss %.2f (L_C %.2f, L_G %.2f)\n",
				epoch, len(samples), stats.Loss, stats.Main, stats.Aux)
		}
	}
	h, err := gnn.Embed(context.Background(), be, model.Encoder, set.Graphs, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%d embeddings of width %d\n", len(h)/model.Encoder.Width(), model.Encoder.Width())
	// Output:
	// epoch 0, 120 graphs: loss 4.60 (L_C 4.52, L_G 1.60)
	// epoch 0, 120 graphs: loss 4.16 (L_C 4.06, L_G 1.88)
	// epoch 1, 120 graphs: loss 3.96 (L_C 3.85, L_G 2.24)
	// epoch 1, 120 graphs: loss 3.94 (L_C 3.81, L_G 2.45)
	// 240 embeddings of width 96
}

// A model file is all that embedding other graphs takes. Here they come from another
// data set, whose features are made as the model's were; one has a label that the
// model has not seen.
func ExampleOpen() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "motifs.safetensors")

	be := cpu.New(tensor.Float32)
	set := dataset.Default()
	columns, err := set.Columns()
	if err != nil {
		fmt.Println(err)
		return
	}
	trained := model.Trained{ // or it would be, had it seen a batch
		Encoder: gnn.NewGIN(be, gnn.GINConfig{In: columns.Width(), Hidden: 32, Layers: 3}, rand.New(rand.NewPCG(1, 1))),
		Card:    model.Card{Features: &columns},
	}
	if err := trained.Save(path); err != nil {
		fmt.Println(err)
		return
	}

	m, err := model.Open(path, be)
	if err != nil {
		fmt.Println(err)
		return
	}
	other := fstest.MapFS{
		"PAIRS_A.txt":               {Data: []byte("1,2\n2,1\n3,4\n4,3\n")},
		"PAIRS_graph_indicator.txt": {Data: []byte("1\n1\n2\n2\n")},
		"PAIRS_graph_labels.txt":    {Data: []byte("0\n1\n")},
	}
	for _, labels := range []string{"2\n3\n3\n4\n", "2\n3\n3\n7\n"} {
		other["PAIRS_node_labels.txt"] = &fstest.MapFile{Data: []byte(labels)}
		dir, err := os.MkdirTemp("", "")
		if err != nil {
			fmt.Println(err)
			return
		}
		defer os.RemoveAll(dir)
		path := filepath.Join(dir, "PAIRS")
		if err := os.CopyFS(path, other); err != nil {
			fmt.Println(err)
			return
		}
		pairs, err := dataset.LoadTU(context.Background(), path, dataset.Options{})
		if err != nil {
			fmt.Println(err)
			return
		}
		if pairs, err = pairs.WithColumns(*m.Card.Features); err != nil {
			fmt.Println(err)
			return
		}
		h, err := m.Embed(context.Background(), pairs.Graphs)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%d embeddings of width %d\n", len(h)/m.Width(), m.Width())
	}
	// Output:
	// 2 embeddings of width 96
	// dataset: PAIRS: graph 1: node 1 has the label 7, which the model has not seen; it has seen 0 to 4
}
