package finetune

import (
	"cmp"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"

	"github.com/specmatch/specmatch/specmatch/eval/roc"
	"github.com/specmatch/specmatch/specmatch/model"
	"github.com/specmatch/specmatch/specmatch/train"
)

// Metric is a measure of the predictions for one task.
type Metric struct {
	Name    string // in [train.Metrics], behind valid_ or test_ where it is an epoch's
	Title   string // in tables
	Percent bool
	InUnits bool // is in the unit of the targets

	// of is the metric of predictions p, all of a row's for classes, for targets y without
	// gaps; NaN where it is undefined.
	of func(p, y []float64) float64
}

// metrics are those of each kind, the first one first. They are scikit-learn's (of
// classes, F1 is the macro mean over those that occur or are predicted) and, for Spearman,
// SciPy's; but R² and the average precision are undefined where the targets are all equal
// or none is positive, rather than 0 or 1.
var metrics = map[model.Kind][]Metric{
	model.Classes: {
		{"accuracy", "accuracy", true, false, classAccuracy}, {"f1", "F1", true, false, classF1},
		{"mcc", "MCC", false, false, classMCC}, {"loss", "loss", false, false, logLoss},
	},
	model.Binary: {
		{"roc_auc", "ROC-AUC", true, false, area}, {"average_precision", "AP", true, false, averagePrecision},
		{"accuracy", "accuracy", true, false, yesOrNo(classAccuracy)}, {"f1", "F1", true, false, positiveF1},
		{"mcc", "MCC", false, false, yesOrNo(classMCC)},
	},
	model.Regression: {
		{"rmse", "RMSE", false, true, rmse}, {"mae", "MAE", false, true, mae},
		{"r2", "R²", false, false, rSquared}, {"spearman", "Spearman", false, false, spearman},
	},
}

// Metrics lists those that targets of a kind are judged by, the first one first.
func Metrics(k model.Kind) []Metric { return metrics[k] }

// TaskMetric is the name of a metric of a task: of several tasks it ends in the task's.
func TaskMetric(h model.Head, metric string, task int) string {
	if columns(h) == 1 {
		return metric
	}
	return metric + " " + h.Columns()[task]
}

// Score returns the [Metrics] of each task, given predictions [n×Outputs] such as
// [model.Trained.Predict] makes, and the targets as in [Data]; a metric that is
// undefined is left out. Classes are one task.
func Score(h model.Head, predicted, y []float64) []train.Metrics {
	all := make([]train.Metrics, columns(h))
	for t := range all {
		p, known := ofTask(h, predicted, y, t)
		all[t] = train.Metrics{}
		for _, m := range metrics[h.Kind] {
			if len(known) == 0 {
				break
			}
			v := m.of(p, known)
			if m.Percent {
				v *= 100
			}
			if !math.IsNaN(v) && !math.IsInf(v, 0) {
				all[t][m.Name] = v
			}
		}
	}
	return all
}

// Baseline returns what Score takes for a prediction that looks at no graph: the mean of the
// targets of some samples, or the frequencies of the classes, or of a yes, among them.
func (d Data) Baseline(h model.Head, samples []int) []float64 {
	row := make([]float64, h.Outputs)
	tasks := columns(h)
	if h.Kind != model.Classes {
		row, _ = moments(d.Y, samples, tasks)
		return row
	}
	for _, i := range samples {
		row[int(d.Y[i])] += 1 / float64(len(samples))
	}
	return row
}

// Confusion counts, for each task, how often each class is predicted for each,
// [true][predicted]; yes-or-no tasks have the classes no and yes, and numbers none.
func Confusion(h model.Head, predicted, y []float64) (all [][][]float64) {
	for t := range columns(h) {
		switch p, known := ofTask(h, predicted, y, t); {
		case h.Kind == model.Regression || len(known) == 0:
			all = append(all, nil)
		case h.Kind == model.Binary:
			all = append(all, confusion(twoClasses(p), known))
		default:
			all = append(all, confusion(p, known))
		}
	}
	return all
}

// ofTask returns the predictions for one task and its targets, without gaps.
func ofTask(h model.Head, predicted, y []float64, t int) (p, known []float64) {
	tasks := columns(h)
	width := h.Outputs / tasks // of a task's predictions
	for i := t; i < len(y); i += tasks {
		if !math.IsNaN(y[i]) {
			p, known = append(p, predicted[i*width:(i+1)*width]...), append(known, y[i])
		}
	}
	return p, known
}

// tie is how far two outputs, of the order of 1, may differ by the rounding of float32.
const tie = 1e-5

// settle makes those values [n×Outputs] of a task equal that differ by rounding only, by
// less than the tolerance at the lesser one: ranks would be noise otherwise.
func settle(h model.Head, values []float64, tolerance func(v float64) float64) {
	for t := range h.Outputs {
		var order []int
		for i := t; i < len(values); i += h.Outputs {
			order = append(order, i)
		}
		slices.SortFunc(order, func(a, b int) int { return cmp.Compare(values[a], values[b]) })
		for k, i := range order {
			if k == 0 {
				continue
			}
			if first := values[order[k-1]]; values[i]-first <= tolerance(first) {
				values[i] = first
			}
		}
	}
}

// Settle makes those predictions [n×Outputs] of a task equal that differ by rounding only: ranks would be
// noise otherwise. They are rounded to float32 as files have them.
func Settle(h model.Head, p []float64) {
	for i, v := range p {
		p[i] = float64(float32(v))
	}
	for t := range h.Outputs {
		one := model.Head{Outputs: 1}
		column := []float64(nil)
		for i := t; i < len(p); i += h.Outputs {
			column = append(column, p[i])
		}
		switch h.Kind {
		case model.Binary:
			settle(one, column, func(v float64) float64 { return max(tie*v*(1-v), v*0x1p-22) })
		case model.Regression:
			settle(one, column, func(v float64) float64 {
				return max(tie*h.Std[t], math.Abs(v)*0x1p-22)
			})
		}
		for k, v := range column {
			p[k*h.Outputs+t] = v
		}
	}
}

// largest returns the place of the largest value, the first of equal ones.
func largest(row []float64) int {
	best := 0
	for k, v := range row {
		if v > row[best] {
			best = k
		}
	}
	return best
}

// confusion counts how often each class is predicted for each: [true][predicted].
func confusion(p, y []float64) [][]float64 {
	classes := len(p) / len(y)
	c := make([][]float64, classes)
	for k := range c {
		c[k] = make([]float64, classes)
	}
	for i, want := range y {
		c[int(want)][largest(p[i*classes:(i+1)*classes])]++
	}
	return c
}

// margins returns how often each class is predicted, occurs, and is predicted rightly.
func margins(c [][]float64) (predicted, occurs, right []float64) {
	predicted = make([]float64, len(c))
	occurs = make([]float64, len(c))
	right = make([]float64, len(c))
	for i, row := range c {
		right[i] = row[i]
		for j, n := range row {
			occurs[i] += n
			predicted[j] += n
		}
	}
	return predicted, occurs, right
}

func classAccuracy(p, y []float64) float64 {
	_, _, right := margins(confusion(p, y))
	sum := 0.0
	for _, n := range right {
		sum += n
	}
	return sum / float64(len(y))
}

func classF1(p, y []float64) float64 {
	predicted, occurs, right := margins(confusion(p, y))
	var sum, classes float64
	for k := range right {
		if n := predicted[k] + occurs[k]; n > 0 {
			sum += 2 * right[k] / n
			classes++
		}
	}
	return sum / classes
}

// classMCC is the correlation coefficient of Gorodkin (2004), of two classes that of
// Matthews; 0 if only one class occurs or is predicted.
func classMCC(p, y []float64) float64 {
	predicted, occurs, right := margins(confusion(p, y))
	n := float64(len(y))
	both := 0.0
	pp := n * n
	oo := n * n
	for k := range right {
		both += n*right[k] - predicted[k]*occurs[k]
		pp -= predicted[k] * predicted[k]
		oo -= occurs[k] * occurs[k]
	}
	if pp == 0 || oo == 0 {
		return 0
	}
	return both / math.Sqrt(pp*oo)
}

func logLoss(p, y []float64) float64 {
	sum := 0.0
	classes := len(p) / len(y)
	for i, want := range y {
		sum -= math.Log(max(p[i*classes+int(want)], 0x1p-52))
	}
	return sum / float64(len(y))
}

// yesOrNo is a metric of two classes, of the probabilities of a yes: from 0.5 on it is one.
func yesOrNo(of func(p, y []float64) float64) func(p, y []float64) float64 {
	return func(p, y []float64) float64 { return of(twoClasses(p), y) }
}

func twoClasses(p []float64) (both []float64) {
	for _, v := range p {
		yes := 0.0
		if v >= 0.5 {
			yes = 1
		}
		both = append(both, 1-yes, yes)
	}
	return both
}

func positiveF1(p, y []float64) float64 {
	predicted, occurs, right := margins(confusion(twoClasses(p), y))
	return 2 * right[1] / max(predicted[1]+occurs[1], 1)
}

func area(p, y []float64) float64 {
	v, err := roc.AUC(p, y)
	if err != nil { // only one class
		return math.NaN()
	}
	return v
}

// averagePrecision is Σ (R_k − R_{k−1})·P_k over the thresholds, with the precision and the
// recall at each.
func averagePrecision(p, y []float64) float64 {
	order := make([]int, len(p))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(p[b], p[a]) })
	var sum, positives, before float64
	for k, i := range order {
		positives += y[i]
		if k+1 == len(order) || p[order[k+1]] != p[i] {
			sum += (positives - before) * positives / float64(k+1)
			before = positives
		}
	}
	return sum / positives
}

func rmse(p, y []float64) float64 {
	sum := 0.0
	for i := range y {
		sum += (p[i] - y[i]) * (p[i] - y[i])
	}
	return math.Sqrt(sum / float64(len(y)))
}

func mae(p, y []float64) float64 {
	sum := 0.0
	for i := range y {
		sum += math.Abs(p[i] - y[i])
	}
	return sum / float64(len(y))
}

func constant(x []float64) bool {
	return !slices.ContainsFunc(x, func(v float64) bool { return v != x[0] })
}

func rSquared(p, y []float64) float64 {
	if constant(y) {
		return math.NaN()
	}
	mean := stat.Mean(y, nil)
	squares := 0.0
	total := 0.0
	for i := range y {
		squares += (p[i] - y[i]) * (p[i] - y[i])
		total += (y[i] - mean) * (y[i] - mean)
	}
	return 1 - squares/total
}

// spearman is the correlation of the ranks, of which equal values have the mean.
func spearman(p, y []float64) float64 {
	if constant(p) || constant(y) {
		return math.NaN()
	}
	return stat.Correlation(ranks(p), ranks(y), nil)
}

func ranks(x []float64) []float64 {
	order := make([]int, len(x))
	ranks := make([]float64, len(x))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(x[a], x[b]) })
	for i := 0; i < len(order); {
		j := i
		for ; j < len(order) && x[order[j]] == x[order[i]]; j++ {
		}
		for _, k := range order[i:j] {
			ranks[k] = float64(i+j-1) / 2
		}
		i = j
	}
	return ranks
}
