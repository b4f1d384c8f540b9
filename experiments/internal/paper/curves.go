package paper

import (
	"maps"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"github.com/specmatch/specmatch/specmatch/method"
	"github.com/specmatch/specmatch/specmatch/report/plot"
	"github.com/specmatch/specmatch/specmatch/train"
)

// SharesPanels draw how often each augmentation is drawn, a panel for each of the
// methods that learn it: for JOAO, after every epoch. Histories are the metrics of a
// method's runs, epoch by epoch.
func SharesPanels(
	set string, methods []string, histories func(method string) [][]train.Metrics,
) (panels []plot.Panel) {
	for _, name := range methods {
		if bands := Shares(histories(name), "p_"); len(bands) > 0 {
			axes := plot.Axes{Title: set, XLabel: "epoch", YLabel: "shares in " + method.Title(name)}
			panels = append(panels, plot.Lines{Axes: axes, Series: bands})
		}
	}
	return panels
}

// Shares is a distribution that changes from epoch to epoch: a band for each of the
// metrics that begin with prefix, one upon the other, as means over runs. The share of
// a pair, "prefix a_b", counts by halves for a and b. It is empty if there are none.
func Shares(runs [][]train.Metrics, prefix string) (bands []plot.Series) {
	metrics := train.Metrics{}
	for _, m := range slices.Concat(runs...) {
		maps.Copy(metrics, m)
	}
	shares := map[string][]float64{}
	var epochs []float64
	for _, name := range slices.Sorted(maps.Keys(metrics)) {
		label, ok := strings.CutPrefix(name, prefix)
		if !ok {
			continue
		}
		s := Curve(label, runs, name)
		epochs = s.X
		for _, part := range strings.Split(label, "_") {
			shares[part] = append(shares[part], make([]float64, len(s.Y)-len(shares[part]))...)
			floats.AddScaled(shares[part], 1/float64(1+strings.Count(label, "_")), s.Y)
		}
	}
	below := make([]float64, len(epochs))
	for _, label := range slices.Sorted(maps.Keys(shares)) {
		half := shares[label]
		floats.Scale(.5, half)
		floats.Add(below, half)
		bands = append(bands, plot.Series{
			Name: label,
			X:    epochs,
			Y:    slices.Clone(below),
			Err:  half,
		})
		floats.Add(below, half)
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
		s.X = append(s.X, float64(e+1))
		s.Y = append(s.Y, mean)
		if len(values) > 1 {
			s.Err = append(s.Err, std)
		}
	}
	return s
}
