// Command program trains an encoder on the edge lists of graphs.json, saves
// it, opens the file, and compares the embeddings before and after.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"math/rand/v2"
	"os"
	"slices"

	"github.com/specmatch/specmatch/backend/cpu"
	"github.com/specmatch/specmatch/gnn/augment"
	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/specmatch"
	"github.com/specmatch/specmatch/tensor"
)

func main() {
	var lists []struct {
		Nodes int
		Edges [][2]int
	}
	check(json.Unmarshal(must(os.ReadFile("graphs.json")), &lists))
	var graphs []*graph.Graph
	for _, l := range lists {
		graphs = append(graphs, must(graph.FromEdges(l.Nodes, l.Edges, graph.Features{})))
	}
	ctx, be := context.Background(), cpu.New(tensor.Float32)
	view := must(augment.ParsePolicy(augment.Random2, augment.ImplIntended, 0))
	loader := augment.Loader{Graphs: graphs, Batch: 16, Collator: augment.Collator{Views: []augment.Augmentation{view, view}, Seed: 1}}
	model := specmatch.NewGINModel(be, 1, rand.New(rand.NewPCG(1, 1)))
	trainer := specmatch.NewTrainer(be, model, specmatch.Objective{Contrast: specmatch.InfoNCE{Temperature: 0.2}}, 0.01)
	for epoch := range 3 {
		for _, batch := range loader.Epoch(ctx, epoch) {
			must(trainer.Step(batch, false))
		}
	}
	trained := specmatch.Trained{Encoder: model.Encoder, Card: specmatch.Card{Features: new(graph.Columns)}}
	before := must(trained.Embed(ctx, graphs))
	check(trained.Save("model.safetensors"))
	opened := must(specmatch.Open("model.safetensors", be))
	after := must(opened.Embed(ctx, graphs))
	fmt.Printf("%d graphs, width %d, equal: %v\n", len(graphs), opened.Width(), slices.Equal(before, after))
}

func must[T any](v T, err error) T {
	check(err)
	return v
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
