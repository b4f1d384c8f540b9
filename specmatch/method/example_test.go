package method_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/autodiff/nn"
	"github.com/specmatch/specmatch/backend/cpu"
	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/gnn/augment"
	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/specmatch/method"
	"github.com/specmatch/specmatch/specmatch/model"
	"github.com/specmatch/specmatch/specmatch/train"
	"github.com/specmatch/specmatch/tensor"
)

// sizes is a method in a few lines: an encoder and a linear layer learn to tell the
// number of nodes of a graph from a view that has lost some of them.
type sizes struct {
	train.Defaults   // batches from a loader, and nothing to do between epochs
	*train.Minimizer // the step, and what a checkpoint must hold
	gnn.Encoder
	output *nn.Linear // [width×1]
}

func newSizes(s method.Setup) (*sizes, error) {
	e, rng, err := s.NewEncoder()
	if err != nil {
		return nil, err
	}
	m := &sizes{Encoder: e, output: nn.NewLinear(s.Backend, "output", e.Width(), 1, nn.XavierUniform, rng)}
	m.Minimizer = train.NewMinimizer(s.Backend, m, 0.01)
	views := []augment.Augmentation{augment.NodeDropping{Ratio: 0.2}}
	m.Loader = &augment.Loader{Graphs: s.Graphs, Batch: 32, Collator: augment.Collator{Views: views, Seed: s.Seed}}
	return m, nil
}

// Parameters returns all that is trained.
func (m *sizes) Parameters() []*autodiff.Param {
	return append(m.Encoder.Parameters(), m.output.Parameters()...)
}

// Step learns from a batch.
func (m *sizes) Step(b train.Batch) (train.Metrics, error) {
	return m.Minimize(func() *autodiff.Var {
		nodes := make([]float64, len(b.Samples))
		for k, i := range b.Samples {
			nodes[k] = float64(m.Loader.Graphs[i].Nodes())
		}
		y := m.output.Forward(m.Forward(gnn.NewBatch(m.Tape, b.Graphs), nn.Train))
		return y.Sub(m.Tape.Matrix(len(nodes), 1, nodes)).Square().Mean()
	})
}

// A method of one's own: trained through the loop, interrupted in the middle and
// taken up again.
func Example() {
	be := cpu.New(tensor.Float32)
	set := dataset.Default()
	setup := method.Setup{Backend: be, Graphs: set.Graphs, Encoder: gnn.Architecture{Kind: gnn.KindGIN, In: set.FeatureWidth, Hidden: 16, Layers: 2}}
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	options := train.Options{Epochs: 6, Checkpoint: filepath.Join(dir, "checkpoint")}

	for start := range 2 {
		m, err := newSizes(setup)
		if err != nil {
			fmt.Println(err)
			return
		}
		ctx, interrupt := context.WithCancel(context.Background())
		defer interrupt()
		_, err = train.Run(ctx, m, options, func(p train.Progress) error {
			if start == 0 && p.Epoch == 4 {
				interrupt()
			}
			if p.Ended {
				fmt.Printf("epoch %d: loss %.0f\n", p.Epoch, p.Metrics["loss"])
			}
			return nil
		})
		fmt.Println("ended with", err)
	}
	// Output:
	// epoch 1: loss 448
	// epoch 2: loss 61
	// epoch 3: loss 44
	// epoch 4: loss 11
	// ended with context canceled
	// epoch 1: loss 448
	// epoch 2: loss 61
	// epoch 3: loss 44
	// epoch 4: loss 11
	// epoch 5: loss 11
	// epoch 6: loss 3
	// ended with <nil>
}

// Train an encoder without labels and embed the graphs.
func ExampleNew() {
	ctx, be, set := context.Background(), cpu.New(tensor.Float32), dataset.Default()
	l, err := method.New("specmatch", method.Setup{
		Backend: be, Graphs: set.Graphs,
		Encoder: gnn.Architecture{Kind: gnn.KindGIN, In: set.FeatureWidth, Hidden: 32, Layers: 3},
	})
	if err == nil {
		_, err = train.Run(ctx, l, train.Options{Epochs: 20}, nil)
	}
	if err != nil {
		log.Fatal(err)
	}
	h, err := l.Embed(ctx, set.Graphs) // [240×96], row by row
	fmt.Println(len(h)/len(set.Graphs), err)
	// Output: 96 <nil>
}

// Save a trained encoder, which then embeds graphs without its method.
func ExampleLearner_Trained() {
	path := filepath.Join(os.TempDir(), fmt.Sprintf("example-%d.safetensors", os.Getpid()))
	defer os.Remove(path)
	ctx, be, set, epochs := context.Background(), cpu.New(tensor.Float32), dataset.Default(), 1
	l, err := method.New("infonce", method.Setup{
		Backend: be, Graphs: set.Graphs,
		Encoder: gnn.Architecture{Kind: gnn.KindGIN, In: set.FeatureWidth, Hidden: 32, Layers: 3},
	})
	if err == nil {
		_, err = train.Run(ctx, l, train.Options{Epochs: epochs}, func(train.Progress) error { return nil })
	}
	if err != nil {
		log.Fatal(err)
	}
	m, err := l.Trained(set, epochs)
	if err == nil {
		err = m.Save(path)
	}
	if err == nil {
		m, err = model.Open(path, be)
	}
	if err != nil {
		log.Fatal(err)
	}
	h, err := m.Embed(ctx, set.Graphs) // [240×96], row by row
	fmt.Println(m.Card.Provenance.Method, len(h)/len(set.Graphs), err)
	// Output: infonce 96 <nil>
}
