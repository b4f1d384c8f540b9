package main

import (
	"math/rand/v2"
	"testing"

	"github.com/specmatch/specmatch/backend/cpu"
	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/specmatch"
	"github.com/specmatch/specmatch/tensor"
)

func BenchmarkStep(b *testing.B) {
	gs := nci1Like.generate(rand.New(rand.NewPCG(1, 1)))
	be := cpu.New(tensor.Float32)
	m := specmatch.NewGINModel(be, 37, rand.New(rand.NewPCG(1, 2)))
	tr := specmatch.NewTrainer(be, m, specmatch.Objective{Contrast: specmatch.InfoNCE{Temperature: .2}, Match: specmatch.DefaultLaplacianMatch(), Beta: specmatch.BetaSchedule{Beta: .05}}, .01)
	var bt graph.Batch
	bt.Reset(37)
	for v := 0; v < 2; v++ {
		for i := range 512 {
			bt.Append(gs[i*2+v])
		}
		bt.EndView()
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := tr.Step(&bt, false); err != nil {
			b.Fatal(err)
		}
	}
}
