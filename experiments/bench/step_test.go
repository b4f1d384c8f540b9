//go:build unix

package main

import (
	"syscall"
	"testing"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/backend/cpu"
	"github.com/specmatch/specmatch/gnn/augment"
	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/gnn/random"
	"github.com/specmatch/specmatch/specmatch"
	"github.com/specmatch/specmatch/tensor"
)

// BenchmarkStep times the forward pass, the losses, the backward pass and the
// update of each workload, on views prepared beforehand. cpu-ms/op is processor
// time, which other programs on the machine disturb less.
//
//	go test -run '^$' -bench Step/unsupervised/fused -cpu 1 -cpuprofile step.prof ./experiments/bench
func BenchmarkStep(b *testing.B) {
	for name, w := range workloads {
		for form, opts := range map[string][]autodiff.Option{"fused": nil, "composed": {autodiff.Composed()}} {
			b.Run(name+"/"+form, func(b *testing.B) { benchmarkStep(b, w, opts) })
		}
	}
}

func benchmarkStep(b *testing.B, w workload, opts []autodiff.Option) {
	graphs := w.stats.Generate(random.Stream(0, purposeData, 0, 0))
	collator := augment.Collator{Views: views}
	batches := make([]*graph.Batch, 4)
	samples := make([]int, w.batch)
	for k := range batches {
		for i := range samples {
			samples[i] = k*w.batch + i
		}
		batches[k] = new(graph.Batch)
		collator.Collate(batches[k], graphs, samples, k)
	}
	o := specmatch.Objective{
		Contrast: specmatch.InfoNCE{Tau: 0.2}, Match: specmatch.DefaultLaplacianMatch(),
		Beta: specmatch.Beta{Weight: 0.01},
	}
	be := cpu.New(tensor.Float32)
	tr := specmatch.NewTrainer(be, w.model(be), o, learningRate, opts...)
	k := 0
	step := func() {
		if _, err := tr.Step(batches[k%len(batches)], false); err != nil {
			b.Fatal(err)
		}
		k++
	}
	for range batches {
		step()
	}
	b.ReportAllocs()
	before := processorTime()
	for b.Loop() {
		step()
	}
	b.ReportMetric((processorTime()-before)/float64(b.N), "cpu-ms/op")
}

// processorTime is the user time of this process in milliseconds.
func processorTime() float64 {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return float64(u.Utime.Sec)*1e3 + float64(u.Utime.Usec)/1e3
}
