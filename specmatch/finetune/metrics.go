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
	Name    string // in [train.Metrics], after valid_ or test_ if it is an epoch's
	Title   string // in tables
	Percent bool
	InUnits bool // in the unit of the targets
	log     bool // of targets on the logarithmic scale only

	// value returns the metric of predictions p, [n×classes] for classes and [n] otherwise, for
	// targets y without missing ones. It is NaN where the metric is undefined.
	value func(p, y []float64) float64
}

// The metrics of each kind, the most important first. They are those of scikit-learn (F1 of classes
// is the macro mean over the classes that occur or are predicted) and, for Spearman, of SciPy. But
// R² and the average precision are undefined if all targets are equal or none is positive, rather
// than 0 or 1.
var (
	classMetrics = []Metric{
		{Name: "accuracy", Title: "accuracy", Percent: true, value: classAccuracy},
		{Name: "f1", Title: "F1", Percent: true, value: classF1},
		{Name: "mcc", Title: "MCC", value: classMCC},
		{Name: "loss", Title: "loss", value: logLoss},
	}
	binaryMetrics = []Metric{
		{Name: "roc_auc", Title: "ROC-AUC", Percent: true, value: area},
		{Name: "average_precision", Title: "AP", Percent: true, value: averagePrecision},
		{Name: "accuracy", Title: "accuracy", Percent: true, value: ofTwoClasses(classAccuracy)},
		{Name: "f1", Title: "F1", Percent: true, value: positiveF1},
		{Name: "mcc", Title: "MCC", value: ofTwoClasses(classMCC)},
	}
	regressionMetrics = []Metric{
		{Name: "rmse", Title: "RMSE", InUnits: true, value: rmse},
		{Name: "mae", Title: "MAE", InUnits: true, value: mae},
		{Name: "r2", Title: "R²", value: rSquared},
		{Name: "spearman", Title: "Spearman", value: spearman},
	}
	logMetrics = []Metric{
		{Name: "rmse_log10", Title: "RMSE of log10", log: true, value: ofLogarithms(rmse)},
		{Name: "r2_log10", Title: "R² of log10", log: true, value: ofLogarithms(rSquared)},
	}
	twoClassMetrics = slices.Insert(slices.Clone(classMetrics), 1,
		Metric{
			Name:    "roc_auc",
			Title:   "ROC-AUC",
			Percent: true,
			value:   secondClassArea,
		})
)

// Metrics returns the metrics of a head's predictions, the most important first.
func Metrics(h model.Head) []Metric {
	switch {
	case h.Kind == model.Binary:
		return binaryMetrics
	case h.Kind == model.Regression:
		isLog := func(s model.Scale) bool { return s.Log }
		if slices.ContainsFunc(h.Scales, isLog) {
			return slices.Concat(regressionMetrics, logMetrics)
		}
		return regressionMetrics
	case h.Outputs == 2:
		return twoClassMetrics
	}
	return classMetrics
}

// TaskMetric returns the name of a metric of a task: if there are several tasks, it ends in the task's name.
func TaskMetric(h model.Head, metric string, task int) string {
	if taskCount(h) == 1 {
		return metric
	}
	return metric + " " + h.Columns()[task]
}

// Score returns the [Metrics] of each task for predictions [n×Outputs], such as
// [model.Trained.Predict] makes, and targets as in [Data]. An undefined metric is missing. Classes
// are one task.
func Score(h model.Head, predicted, y []float64) []train.Metrics {
	scores := make([]train.Metrics, taskCount(h))
	for task := range scores {
		scores[task] = train.Metrics{}
		p, labels := taskColumn(h, predicted, y, task)
		if len(labels) == 0 {
			continue
		}
		for _, m := range Metrics(h) {
			if m.log && !h.Scale(task).Log {
				continue
			}
			v := m.value(p, labels)
			if m.Percent {
				v *= 100
			}
			if !math.IsNaN(v) && !math.IsInf(v, 0) {
				scores[task][m.Name] = v
			}
		}
	}
	return scores
}

// Baseline returns the predictions [Outputs] of a model that ignores the graph: the mean of the
// targets of some samples on their scale, or the frequencies of their classes, or of 1.
func (d Data) Baseline(h model.Head, samples []int) []float64 {
	if h.Kind != model.Classes {
		mean, _ := d.moments(h, samples)
		for task := range mean {
			mean[task] = h.Scale(task).Value(mean[task])
		}
		return mean
	}
	frequencies := make([]float64, h.Outputs)
	total := 0.0
	for _, i := range samples {
		total += d.weight(i)
	}
	for _, i := range samples {
		frequencies[int(d.Y[i])] += d.weight(i) / total
	}
	return frequencies
}

// prior returns the frequencies of [model.Head.Prior].
func (d Data) prior(h model.Head, balanced bool) []float64 {
	frequencies := d.Baseline(h, d.Train)
	counts := d.labelCounts(h)
	for k, p := range frequencies {
		switch {
		case balanced && h.Kind == model.Classes:
			frequencies[k] = 1 / float64(h.Outputs)
		case balanced || h.Kind == model.Binary && counts[k] == 0:
			frequencies[k] = 0.5
		default:
			frequencies[k] = min(p, 1)
		}
	}
	return frequencies
}

// ClassNames returns the names of the rows of a [Confusion] matrix; there are none for regression.
func ClassNames(h model.Head) []string {
	if h.Kind == model.Binary && len(h.ClassValues) == 0 {
		return []string{"no", "yes"}
	}
	return h.ClassValues
}

// Confusion returns a matrix for each task, [true][predicted], with the number of targets of each
// class for which each class is most probable. Binary tasks have the classes 0 and 1. The matrix of
// a task without targets is nil, and so are those of regression.
func Confusion(h model.Head, predicted, y []float64) (matrices [][][]float64) {
	for task := range taskCount(h) {
		switch p, labels := taskColumn(h, predicted, y, task); {
		case h.Kind == model.Regression || len(labels) == 0:
			matrices = append(matrices, nil)
		case h.Kind == model.Binary:
			matrices = append(matrices, confusion(twoClasses(p), labels))
		default:
			matrices = append(matrices, confusion(p, labels))
		}
	}
	return matrices
}

// SumConfusion adds up the [Confusion] matrices of several test sets, by task. Where all of them
// are nil, so is the sum.
func SumConfusion(sets [][][][]float64) (sums [][][]float64) {
	for _, matrices := range sets {
		if sums == nil {
			sums = make([][][]float64, len(matrices))
		}
		for task, matrix := range matrices {
			for i, row := range matrix {
				if len(sums[task]) <= i {
					sums[task] = append(sums[task], make([]float64, len(row)))
				}
				for j, n := range row {
					sums[task][i][j] += n
				}
			}
		}
	}
	return sums
}

// taskColumn returns the predictions for one task, and its targets, without those that are missing.
func taskColumn(h model.Head, predicted, y []float64, task int) (p, labels []float64) {
	tasks := taskCount(h)
	width := h.Outputs / tasks // of a task's predictions
	for i := task; i < len(y); i += tasks {
		if !math.IsNaN(y[i]) {
			p = append(p, predicted[i*width:(i+1)*width]...)
			labels = append(labels, y[i])
		}
	}
	return p, labels
}

// tie is how far two outputs, of the order of 1, may differ by the rounding of float32.
const tie = 1e-5

// settle makes values [n×outputs] of an output equal if they differ by rounding only: by less than
// the tolerance at the lesser one. Ranks would be noise otherwise.
func settle(values []float64, outputs int, tolerance func(v float64) float64) {
	for k := range outputs {
		var order []int
		for i := k; i < len(values); i += outputs {
			order = append(order, i)
		}
		slices.SortFunc(order, func(a, b int) int {
			return cmp.Compare(values[a], values[b])
		})
		for k, i := range order {
			if k == 0 {
				continue
			}
			if lesser := values[order[k-1]]; values[i]-lesser <= tolerance(lesser) {
				values[i] = lesser
			}
		}
	}
}

// Settle rounds predictions [n×Outputs] to float32, as files have them, and makes those of an
// output equal that differ by rounding only. Ranks would be noise otherwise.
func Settle(h model.Head, p []float64) {
	for i, v := range p {
		p[i] = float64(float32(v))
	}
	if h.Kind == model.Classes {
		return
	}
	for k := range h.Outputs {
		var column []float64
		for i := k; i < len(p); i += h.Outputs {
			column = append(column, p[i])
		}
		settle(column, 1, func(v float64) float64 {
			if h.Kind == model.Binary {
				return max(tie*v*(1-v), v*0x1p-22)
			}
			return max(tie*h.Std[k]*h.Scale(k).Slope(v), math.Abs(v)*0x1p-22)
		})
		for i, v := range column {
			p[i*h.Outputs+k] = v
		}
	}
}

// argmax returns the position of the largest value, the first of equal ones.
func argmax(row []float64) int {
	best := 0
	for k, v := range row {
		if v > row[best] {
			best = k
		}
	}
	return best
}

// confusion returns how often each class is predicted for each: [true][predicted].
func confusion(p, y []float64) [][]float64 {
	classes := len(p) / len(y)
	c := make([][]float64, classes)
	for k := range c {
		c[k] = make([]float64, classes)
	}
	for i, label := range y {
		c[int(label)][argmax(p[i*classes:(i+1)*classes])]++
	}
	return c
}

// margins returns how often each class is predicted, occurs, and is predicted correctly.
func margins(c [][]float64) (predicted, occurs, correct []float64) {
	predicted = make([]float64, len(c))
	occurs = make([]float64, len(c))
	correct = make([]float64, len(c))
	for i, row := range c {
		correct[i] = row[i]
		for j, n := range row {
			occurs[i] += n
			predicted[j] += n
		}
	}
	return predicted, occurs, correct
}

func classAccuracy(p, y []float64) float64 {
	_, _, correct := margins(confusion(p, y))
	sum := 0.0
	for _, n := range correct {
		sum += n
	}
	return sum / float64(len(y))
}

func classF1(p, y []float64) float64 {
	predicted, occurs, correct := margins(confusion(p, y))
	sum := 0.0
	classes := 0.0
	for k := range correct {
		if n := predicted[k] + occurs[k]; n > 0 {
			sum += 2 * correct[k] / n
			classes++
		}
	}
	return sum / classes
}

// classMCC is the correlation coefficient of Gorodkin (2004), which is Matthews' for two classes.
// It is 0 if only one class occurs or is predicted.
func classMCC(p, y []float64) float64 {
	predicted, occurs, correct := margins(confusion(p, y))
	n := float64(len(y))
	covariance := 0.0
	predictedVariance := n * n
	observedVariance := n * n
	for k := range correct {
		covariance += n*correct[k] - predicted[k]*occurs[k]
		predictedVariance -= predicted[k] * predicted[k]
		observedVariance -= occurs[k] * occurs[k]
	}
	if predictedVariance == 0 || observedVariance == 0 {
		return 0
	}
	return covariance / math.Sqrt(predictedVariance*observedVariance)
}

func logLoss(p, y []float64) float64 {
	sum := 0.0
	classes := len(p) / len(y)
	for i, label := range y {
		sum -= math.Log(max(p[i*classes+int(label)], 0x1p-52))
	}
	return sum / float64(len(y))
}

// secondClassArea is the ROC-AUC of two classes.
func secondClassArea(p, y []float64) float64 {
	second := make([]float64, len(y))
	for i := range second {
		second[i] = p[2*i+1]
	}
	return area(second, y)
}

// ofTwoClasses returns a metric of two classes as one of the probabilities of 1; from 0.5 on, 1 is predicted.
func ofTwoClasses(metric func(p, y []float64) float64) func(p, y []float64) float64 {
	return func(p, y []float64) float64 { return metric(twoClasses(p), y) }
}

// twoClasses returns 1 for the predicted class and 0 for the other, [n×2], of the probabilities of 1.
func twoClasses(p []float64) (rows []float64) {
	for _, v := range p {
		if v >= 0.5 {
			rows = append(rows, 0, 1)
		} else {
			rows = append(rows, 1, 0)
		}
	}
	return rows
}

func positiveF1(p, y []float64) float64 {
	predicted, occurs, correct := margins(confusion(twoClasses(p), y))
	return 2 * correct[1] / max(predicted[1]+occurs[1], 1)
}

func area(p, y []float64) float64 {
	v, err := roc.AUC(p, y)
	if err != nil { // a single class, or a prediction that is not finite
		return math.NaN()
	}
	return v
}

// averagePrecision is Σ (R_k − R_{k−1})·P_k over the thresholds, with the precision P and the
// recall R at each.
func averagePrecision(p, y []float64) float64 {
	order := make([]int, len(p))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(p[b], p[a]) })
	sum := 0.0
	positives := 0.0
	counted := 0.0 // positives at the previous threshold
	for k, i := range order {
		positives += y[i]
		if k+1 == len(order) || p[order[k+1]] != p[i] {
			sum += (positives - counted) * positives / float64(k+1)
			counted = positives
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

// ofLogarithms returns a metric of the decimal logarithms. It is undefined unless all are finite.
func ofLogarithms(metric func(p, y []float64) float64) func(p, y []float64) float64 {
	logarithms := func(x []float64) []float64 {
		values := make([]float64, len(x))
		for i, v := range x {
			values[i] = math.Log10(v)
		}
		return values
	}
	return func(p, y []float64) float64 { return metric(logarithms(p), logarithms(y)) }
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

// spearman is the correlation of the ranks.
func spearman(p, y []float64) float64 {
	if constant(p) || constant(y) || slices.ContainsFunc(p, math.IsNaN) {
		return math.NaN()
	}
	return stat.Correlation(ranks(p), ranks(y), nil)
}

// ranks returns the rank of each value; equal values have the mean of theirs. No value may be NaN.
func ranks(x []float64) []float64 {
	order := make([]int, len(x))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(x[a], x[b]) })
	ranks := make([]float64, len(x))
	for first := 0; first < len(order); {
		end := first + 1 // of the group of equal values
		for end < len(order) && x[order[end]] == x[order[first]] {
			end++
		}
		for _, k := range order[first:end] {
			ranks[k] = float64(first+end-1) / 2
		}
		first = end
	}
	return ranks
}
