package pretrain

import (
	"maps"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat"

	"github.com/specmatch/specmatch/experiments/internal/plot"
	"github.com/specmatch/specmatch/specmatch/train"
)

// Shares is a distribution that changes from epoch to epoch: a band for each of the
// metrics that begin with prefix, one upon the other, as means over runs. It is empty
// if there are none.
func Shares(runs [][]train.Metrics, prefix string) (bands []plot.Series) {
	all := train.Metrics{}
	for _, m := range slices.Concat(runs...) {
		maps.Copy(all, m)
	}
	var below []float64
	for _, name := range slices.Sorted(maps.Keys(all)) {
		label, ok := strings.CutPrefix(name, prefix)
		if !ok {
			continue
		}
		s := Curve(label, runs, name)
		s.Err = make([]float64, len(s.Y))
		below = append(below, make([]float64, len(s.Y)-len(below))...)
		for e, share := range s.Y {
			s.Y[e], s.Err[e] = below[e]+share/2, share/2
			below[e] += share
		}
		bands = append(bands, s)
	}
	return bands
}

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
