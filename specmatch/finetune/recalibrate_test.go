package finetune

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/autodiff/nn"
	"github.com/specmatch/specmatch/backend/cpu"
	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/specmatch/model"
	"github.com/specmatch/specmatch/specmatch/train"
	"github.com/specmatch/specmatch/tensor"
)

// TestRecalibrate: after an epoch the batch norms have the statistics of the training set. With moving averages,
// stars among paths without features of nodes have validation losses of thousands.
func TestRecalibrate(t *testing.T) {
	t.Run("one part", func(t *testing.T) { recalibrate(t, 120, 0.01) }) // the unbiased variance is larger by 1/n
	t.Run("several parts", func(t *testing.T) { recalibrate(t, 500, 0.03) })
}

// recalibrate fits a model to some graphs, and compares its outputs by the running statistics with those by the
// statistics of the training set.
func recalibrate(t *testing.T, graphs int, tolerance float64) {
	rng := rand.New(rand.NewPCG(1, 2))
	d := Data{}
	for i := range graphs {
		n := 3 + rng.IntN(6)
		if i%10 == 0 { // few, and in a batch of their own kind
			n = 60
		}
		var edges [][2]int
		for j := 1; j < n; j++ {
			at := j - 1
			if i%10 == 0 {
				at = 0
			}
			edges = append(edges, [2]int{at, j})
		}
		g, err := graph.FromEdges(n, edges, graph.Features{Width: 1, Category: make([]int32, n)})
		if err != nil {
			t.Fatal(err)
		}
		d.Graphs = append(d.Graphs, g)
		d.Y = append(d.Y, float64(rng.IntN(2)))
		if i < graphs*5/6 {
			d.Train = append(d.Train, i)
		} else {
			d.Valid = append(d.Valid, i)
		}
	}
	be := cpu.New(tensor.Float64)
	encoder, err := gnn.Architecture{Kind: gnn.KindGIN, In: 1, Hidden: 16, Layers: 3}.New(be, rng)
	if err != nil {
		t.Fatal(err)
	}
	m := model.NewPredictor(encoder, model.Head{Kind: model.Binary, Outputs: 1}, rng)
	l, err := New(m, d, Options{Batch: 16, Rate: 0.01, Patience: 20, Average: 0.9})
	if err != nil {
		t.Fatal(err)
	}
	for epoch := range 3 {
		for samples, graphs := range l.Epoch(t.Context(), epoch) {
			if _, err := l.Step(train.Batch{Samples: samples, Graphs: graphs}); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := l.End(context.Background(), epoch); err != nil {
			t.Fatal(err)
		}
	}
	for _, norm := range encoder.(*gnn.GIN).Norms {
		if norm.Momentum != 0.1 {
			t.Errorf("momentum %v", norm.Momentum)
		}
	}
	if _, err := l.Best(); err != nil {
		t.Fatal(err)
	}
	var whole graph.Batch
	for _, i := range d.Train {
		whole.Append(d.Graphs[i])
	}
	whole.EndView()
	tape := autodiff.NewInference(be)
	defer tape.Reset()
	batch := gnn.NewBatch(tape, &whole)
	evaluated := encoder.Forward(batch, nn.Eval).Data()
	trained := encoder.Forward(batch, nn.Train).Data()
	largest := 0.0
	for _, v := range trained {
		largest = max(largest, math.Abs(v))
	}
	for i, v := range evaluated {
		if math.Abs(v-trained[i]) > tolerance*largest {
			t.Fatalf("output %d is %g by the running statistics, %g by those of the training set", i, v, trained[i])
		}
	}
}
