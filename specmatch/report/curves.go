package report

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"

	"gonum.org/v1/gonum/stat"

	"github.com/specmatch/specmatch/specmatch/method"
	"github.com/specmatch/specmatch/specmatch/report/plot"
)

// curve is a metric of one method on one data set in one run, by epoch: a value for
// every unit, that is seed or fold.
type curve struct {
	experiment, dataset, metric, name string

	epochs map[int][]float64
}

// curves returns a function that draws the averages of metrics.csv over seeds and
// folds, thinned to about that many points each.
func (c *collection) curves() func(points int) []block {
	averages := sync.OnceValue(c.averages)
	return func(points int) []block { return draw(averages(), points) }
}

func (c *collection) averages() (all []*curve) {
	index := map[[4]string]*curve{}
	for i, r := range c.runs {
		for _, e := range r.Metrics {
			dataset, name := place(e.Unit)
			name = cmp.Or(strings.Trim(name+", "+c.labels[i], ", "), r.Experiment)
			for _, metric := range r.Columns {
				x, err := strconv.ParseFloat(e.Values[metric], 64)
				if err != nil || slices.Contains([]string{"dataset", "method", "seed", "fold"}, metric) {
					continue
				}
				key := [4]string{r.Experiment, dataset, metric, name}
				if index[key] == nil {
					index[key] = &curve{r.Experiment, dataset, metric, name, map[int][]float64{}}
					all = append(all, index[key])
				}
				index[key].epochs[e.Epoch] = append(index[key].epochs[e.Epoch], x)
			}
		}
	}
	return all
}

func draw(all []*curve, points int) (blocks []block) {
	for _, k := range all {
		s := k.series(points)
		if len(s.X) < 2 {
			continue
		}
		title := k.experiment + ", " + k.metric
		b := findOrAdd(&blocks, func(b block) bool { return b.title == title }, block{title: title})
		chart := (*findOrAdd[plot.Panel](
			&b.charts,
			func(p plot.Panel) bool { return p.(*plot.Lines).Title == k.dataset },
			&plot.Lines{Axes: plot.Axes{Title: k.dataset, XLabel: "epoch", YLabel: k.metric}},
		)).(*plot.Lines)
		chart.Series = append(chart.Series, s)
	}
	// The loss first, and open.
	slices.SortStableFunc(blocks, func(a, b block) int {
		return cmp.Compare(rank(a), rank(b))
	})
	for i := range blocks {
		blocks[i].folded = i > 0
	}
	return blocks
}

func rank(b block) int {
	if strings.HasSuffix(b.title, ", loss") {
		return 0
	}
	return 1
}

// series is the mean with its standard deviation, at about that many epochs, the first
// and the last among them.
func (k *curve) series(points int) plot.Series {
	s := plot.Series{Name: k.name}
	epochs := slices.Sorted(maps.Keys(k.epochs))
	step := max(1, (len(epochs)+points-2)/(points-1))
	for i, e := range epochs {
		if i%step != 0 && i != len(epochs)-1 {
			continue
		}
		mean, std := stat.MeanStdDev(k.epochs[e], nil)
		if math.IsNaN(std) {
			std = 0
		}
		s.X = append(s.X, float64(e))
		s.Y = append(s.Y, mean)
		s.Err = append(s.Err, std)
	}
	return s
}

// place splits the name of a unit, such as NCI1/specmatch/seed=3/fold=7, into data set
// and method. What numbers repetitions is left out.
func place(unit string) (dataset, name string) {
	var parts []string
	for _, p := range strings.Split(unit, "/") {
		if key, _, ok := strings.Cut(p, "="); !ok || key != "seed" && key != "fold" {
			parts = append(parts, p)
		}
	}
	if len(parts) > 0 {
		dataset = parts[0]
		parts = parts[1:]
	}
	if len(parts) > 0 {
		parts[0] = method.Title(parts[0])
	}
	return dataset, strings.Join(parts, "/")
}
