package theory

import (
	"context"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/autodiff/nn"
	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/gnn/augment"
	"github.com/specmatch/specmatch/specmatch"
	"github.com/specmatch/specmatch/specmatch/train"
)

// Draws returns the embeddings z [n×d] of the n graphs of a loader of two views, in pairs of draws of the
// augmentations: the loader's epochs 0 to pairs-1. In training mode, batch normalisation uses the statistics
// of each batch, as for the loss; the model's running statistics do not change.
func Draws(
	ctx context.Context,
	be backend.Backend,
	model *specmatch.Model,
	l *augment.Loader,
	pairs int,
	mode nn.Mode,
) (z [][]float64, d int, err error) {
	buffers := train.Keep(model)
	defer buffers.Free()
	defer buffers.Restore()
	tape := autodiff.NewInference(be)
	for k := range pairs {
		var first, second []float64
		for _, batch := range l.Epoch(ctx, k) {
			_, out := model.Forward(gnn.NewBatch(tape, batch), mode)
			d = out.Cols()
			data := out.Data()
			half := out.Rows() / 2 * d
			first, second = append(first, data[:half]...), append(second, data[half:]...)
			tape.Reset()
		}
		if err := ctx.Err(); err != nil {
			return nil, 0, err
		}
		z = append(z, first, second)
	}
	return z, d, nil
}
