// Command program trains an encoder on the edge lists of graphs.json, saves
// it, opens the file, and compares the embeddings before and after.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"slices"

	"github.com/specmatch/specmatch/backend/cpu"
	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/specmatch/method"
	"github.com/specmatch/specmatch/specmatch/model"
	"github.com/specmatch/specmatch/specmatch/train"
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
	l := must(method.New("specmatch", method.Setup{
		Backend: be, Graphs: graphs, Batch: 16,
		Encoder: gnn.Architecture{Kind: gnn.KindGIN, In: 1, Hidden: 32, Layers: 3},
	}))
	must(train.Run(ctx, l, train.Options{Epochs: 3}, func(train.Progress) error { return nil }))
	card := model.Card{Features: new(graph.Columns), SelfLoops: l.SelfLoops}
	trained := model.Trained{Encoder: l.Model.Encoder, Card: card}
	before := must(trained.Embed(ctx, graphs))
	check(trained.Save("model.safetensors"))
	opened := must(model.Open("model.safetensors", be))
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
