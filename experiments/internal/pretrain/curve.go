package pretrain

import (
	"math"

	"gonum.org/v1/gonum/stat"

	"github.com/specmatch/specmatch/experiments/internal/plot"
	"github.com/specmatch/specmatch/specmatch/train"
)

// Curve averages a metric over runs, epoch by epoch, with the standard deviation as
// its error; NaN where a run lacks it. It has no points if none of the runs trained.
func Curve(name string, runs [][]train.Metrics, metric string) plot.Series {
	var byEpoch [][]float64
	for _, history := range runs {
		for e, m := range history {
			if e == len(byEpoch) {
				byEpoch = append(byEpoch, nil)
			}
			byEpoch[e] = append(byEpoch[e], m.Get(metric))
		}
	}
	s := plot.Series{Name: name}
	for e, values := range byEpoch {
		mean, std := stat.MeanStdDev(values, nil)
		if math.IsNaN(mean) {
			continue
		}
		s.X, s.Y = append(s.X, float64(e+1)), append(s.Y, mean)
		if len(values) > 1 {
			s.Err = append(s.Err, std)
		}
	}
	return s
}
