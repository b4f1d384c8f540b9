package main

import (
	"context"
	"fmt"

	"github.com/specmatch/specmatch/backend/cpu"
	"github.com/specmatch/specmatch/experiments/internal/paper"
	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/gnn/random"
	"github.com/specmatch/specmatch/specmatch/eval"
	"github.com/specmatch/specmatch/specmatch/finetune"
	"github.com/specmatch/specmatch/specmatch/model"
	"github.com/specmatch/specmatch/specmatch/train"
	"github.com/specmatch/specmatch/tensor"
)

// gin trains the encoder of the unsupervised regime with labels: what the methods
// without labels could at best hope for. As Errica et al. do (A fair comparison of graph
// neural networks for graph classification, ICLR 2020), a tenth of each training part
// chooses the epoch, and has no other part in training.
func gin(
	ctx context.Context, s *settings, ds *dataset.Dataset, seed int, outer []dataset.Fold,
) (float64, error) {
	be := cpu.New(tensor.Float32)
	defer be.Close()
	y := make([]float64, len(ds.Graphs))
	for i, c := range ds.Labels() {
		y[i] = float64(c)
	}
	sum := 0.0
	for f, held := range eval.HoldOut(outer, uint32(seed)) {
		rng := random.Stream(uint64(seed), purposeGIN, 0, f)
		encoder, err := paper.GIN(ds).New(be, rng)
		if err != nil {
			return 0, err
		}
		head := model.Head{Kind: model.Classes, Outputs: ds.Classes}
		l, err := finetune.New(model.NewPredictor(encoder, head, rng),
			finetune.Data{
				Graphs: ds.Graphs,
				Y:      y,
				Train:  held.Train,
				Valid:  held.Test,
				Test:   outer[f].Test,
			},
			finetune.Options{Rate: 0.01, Seed: uint64(seed), Patience: 30})
		var r finetune.Result
		if err == nil {
			r, err = l.Fit(ctx, train.Options{Epochs: s.ginEpochs}, nil)
		}
		if err != nil {
			return 0, fmt.Errorf("fold %d: %w", f, err)
		}
		sum += r.Kept().Get("test_accuracy") / 100
	}
	return sum / float64(len(outer)), nil
}

const purposeGIN random.Purpose = 1 << 35
