package pretrain

import (
	"log/slog"
	"math"

	"gonum.org/v1/gonum/stat"

	"github.com/specmatch/specmatch/experiments/internal/plot"
	"github.com/specmatch/specmatch/experiments/internal/rundir"
	"github.com/specmatch/specmatch/specmatch"
)

// Epoch is what an epoch left behind: means of Loss and LossC over its batches,
// and the probe of its first batch for the rest.
type Epoch struct {
	Loss, LossC, LossG rundir.Float // LossG is the trained one
	Beta               rundir.Float
	LossHard           rundir.Float // L_G with the hard threshold
	Ratio, Cosine      rundir.Float // of the gradients β∇L_G and ∇L_C
	Spread, Density    rundir.Float
	Isolated           rundir.Float
	Align, Uniform     rundir.Float
}

// WithoutProbe is an epoch, before its first step, of a training that is not
// contrastive: it gets a Loss, and all else is not a number.
func WithoutProbe() Epoch {
	nan := rundir.Float(math.NaN())
	return Epoch{
		LossC: nan, LossG: nan, Beta: nan, LossHard: nan, Ratio: nan, Cosine: nan,
		Spread: nan, Density: nan, Isolated: nan, Align: nan, Uniform: nan,
	}
}

// Add adds a step's losses, and takes its probe if it has one.
func (e *Epoch) Add(s specmatch.Stats) {
	e.Loss += rundir.Float(s.Loss)
	e.LossC += rundir.Float(s.LossC)
	if p := s.Probe; p != nil {
		// L_G is not computed at every step of a method that does not train
		// it, so the first batch stands for the epoch.
		e.LossG, e.Beta = rundir.Float(s.LossG), rundir.Float(s.Beta)
		e.LossHard = rundir.Float(p.LossHard)
		e.Ratio, e.Cosine = rundir.Float(p.Ratio), rundir.Float(p.Cosine)
		e.Spread, e.Density, e.Isolated = rundir.Float(p.Spread), rundir.Float(p.Density), rundir.Float(p.Isolated)
		e.Align, e.Uniform = rundir.Float(p.Alignment), rundir.Float(p.Uniformity)
	}
}

// Mean returns the epoch of so many steps.
func (e Epoch) Mean(batches int) Epoch {
	e.Loss /= rundir.Float(batches)
	e.LossC /= rundir.Float(batches)
	return e
}

// Columns are the epoch's columns of metrics.csv.
func (e Epoch) Columns() []slog.Attr {
	col := func(name string, v rundir.Float) slog.Attr { return slog.Float64(name, float64(v)) }
	return []slog.Attr{
		col("loss", e.Loss), col("loss_c", e.LossC), col("loss_g", e.LossG), col("loss_g_hard", e.LossHard),
		col("beta", e.Beta), col("gradient_ratio", e.Ratio), col("gradient_cosine", e.Cosine),
		col("similarity_std", e.Spread), col("edge_density", e.Density), col("isolated", e.Isolated),
		col("align", e.Align), col("uniform", e.Uniform),
	}
}

// Curve averages a quantity over runs, epoch by epoch, with the standard
// deviation as its error. It has no points if none of the runs trained.
func Curve(name string, runs [][]Epoch, of func(Epoch) rundir.Float) plot.Series {
	var byEpoch [][]float64
	for _, history := range runs {
		for e, stats := range history {
			if e == len(byEpoch) {
				byEpoch = append(byEpoch, nil)
			}
			byEpoch[e] = append(byEpoch[e], float64(of(stats)))
		}
	}
	s := plot.Series{Name: name}
	for e, values := range byEpoch {
		mean, std := stat.MeanStdDev(values, nil)
		s.X, s.Y = append(s.X, float64(e+1)), append(s.Y, mean)
		if len(values) > 1 {
			s.Err = append(s.Err, std)
		}
	}
	return s
}
