package report

import (
	"cmp"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/gnn/molecule"
	"github.com/specmatch/specmatch/gnn/molecule/depict"
	"github.com/specmatch/specmatch/gnn/molecule/feature"
	"github.com/specmatch/specmatch/specmatch/model"
	"github.com/specmatch/specmatch/specmatch/report/plot"
	"github.com/specmatch/specmatch/specmatch/run"
	"github.com/specmatch/specmatch/specmatch/table"
)

// Case is a prediction shown in a report, as a unit of a fine-tuning records it.
type Case struct {
	ID, SMILES string
	Error      float64
	Of         string  // the column of Predicted and Values
	Predicted  float64 // a number or a probability
	Observed   string
	// Standard says how the molecule of SMILES was standardised.
	Standard feature.Standardisation `json:",omitzero"`
	Edges    [][2]int                `json:",omitempty"` // of a graph that is no molecule
	Values   []float64               `json:",omitempty"` // contributions of the nodes or atoms

	unit string // whose model predicts
}

// LargestDrawing is the largest number of nodes of a graph that is drawn.
const LargestDrawing = 120

type tuned struct {
	run      *run.Run
	kind     string
	positive string // text of -positive; "" if positive targets are 1
	targets  []string
	outputs  []string // columns of predictions
	rows     []testRow
	results  []tunedResult
	shared   bool // all models have one test set, and rows are their mean predictions
}

type tunedResult struct {
	Confusion [][][]float64
	Parts     [3]int
	Shared    [2]int
	Worst     []Case
	unit      string
}

type testRow struct {
	predicted []float64 // by output
	observed  []string  // by target
	distance  float64
}

// finetuning is the experiment of a run of the command finetune.
const finetuning = "specmatch finetune"

// newTuned reads the results and test predictions of a fine-tuning. It returns nil for other runs.
func newTuned(r *run.Run) (*tuned, error) {
	if r.Experiment != finetuning || len(r.Rows) == 0 {
		return nil, nil
	}
	t := &tuned{run: r, kind: r.Rows[0].Method}
	json.Unmarshal(r.Flags["positive"], &t.positive) // absent in runs of earlier versions
	for _, u := range fits(r) {
		result := tunedResult{unit: u.Name}
		if err := json.Unmarshal(u.Result, &result); err != nil {
			return nil, fmt.Errorf("%s: unit %s: %w", r.Path, u.Name, err)
		}
		t.results = append(t.results, result)
	}
	tables, err := t.readTests()
	if err != nil {
		return nil, err
	}
	t.join(tables)
	return t, nil
}

// readTests reads the predictions of the test sets that are there. The units say which files they are, since a user
// may have put others next to them, such as predictions for a file test-new.csv.
func (t *tuned) readTests() (tables []testTable, err error) {
	for _, u := range fits(t.run) {
		for _, name := range slices.Sorted(maps.Keys(u.Files)) {
			if !strings.HasPrefix(name, "test-") {
				continue
			}
			table, err := t.readTest(filepath.Join(t.run.Path, name))
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				return nil, err
			}
			tables = append(tables, table)
		}
	}
	return tables, nil
}

// isShare reports whether a unit fits a share of a training set, for the learning curve of -curve.
func isShare(unit string) bool { return strings.Contains(unit, "/share=") }

// fits returns the units of a fine-tuning that fit a whole training set: those with a model.
func fits(r *run.Run) []run.Record {
	return slices.DeleteFunc(slices.Clone(r.Units), func(u run.Record) bool { return isShare(u.Name) })
}

// readTest reads the predictions of a test set, and the columns of its file.
func (t *tuned) readTest(path string) (test testTable, err error) {
	f, err := os.Open(path)
	if err != nil {
		return test, err
	}
	defer f.Close()
	lines, err := csv.NewReader(f).ReadAll()
	switch {
	case err != nil:
		return test, fmt.Errorf("%s: no table of predictions: %w", path, err)
	case len(lines) == 0:
		return test, fmt.Errorf("%s: the file is empty; want a table of predictions", path)
	}
	header := lines[0]
	first, end := t.targetColumns(header)
	if first < 2 || !strings.Contains(header[first], observed) {
		return test, fmt.Errorf("%s: want an id, predictions, and targets that end in %s", path, observed)
	}
	hasDistance := end < len(header)
	t.outputs = header[1:first]
	t.targets = t.outputs
	if t.kind == string(model.Classes) {
		t.targets = []string{strings.TrimSuffix(header[first], observed)}
	}
	for _, line := range lines[1:] {
		row := testRow{observed: line[first:end], distance: math.NaN()}
		for _, text := range line[1:first] {
			v, err := strconv.ParseFloat(text, 64)
			if err != nil {
				return test, fmt.Errorf("%s: %q is not a number", path, text)
			}
			row.predicted = append(row.predicted, v)
		}
		if hasDistance {
			row.distance, _ = strconv.ParseFloat(line[end], 64)
		}
		test.ids = append(test.ids, line[0])
		test.rows = append(test.rows, row)
	}
	return test, nil
}

// observed is the ending of a column of targets. Where a column of another target has that name, a number
// follows.
const observed = "_observed"

// targetColumns returns the range of the columns with targets. It goes by their number, since a target
// may be called distance or y_observed.
func (t *tuned) targetColumns(header []string) (first, end int) {
	end = len(header)
	if t.kind == string(model.Classes) { // one target
		if header[end-1] == "distance" {
			end--
		}
		return end - 1, end
	}
	targets := (end - 1) / 2 // each has a prediction, too
	return 1 + targets, 1 + 2*targets
}

// sections returns the sections of the page that only a fine-tuning has.
func (t *tuned) sections() []section {
	notes := map[string]string{
		"regression": "On the line, prediction and observation are equal. Dots with bars are deciles of the " +
			"records, with the standard error of their mean. A distance of 1 to the training set is typical.",
		"binary": "Curves cover the predictions of all test sets. A calibrated model lies on the diagonal: " +
			"of the records with a probability of 0.7, 70 % are positive. Dots are deciles of the records.",
		"classes": "A calibrated model lies on the diagonal: if the most probable class has a probability of " +
			"0.7, it is correct for 70 % of the records. Dots are deciles of the records.",
	}
	note := notes[t.kind]
	if n := len(t.rows); n > mostPoints {
		note += fmt.Sprintf(" The plots show an even selection of the %d records; curves and deciles use all.", n)
	}
	fits := "splits"
	confusionNote := "Records of all test sets: rows are observed classes, columns predicted ones."
	if t.shared {
		fits = "models"
		note += " All models have one test set: predictions are their means, and a record counts once."
		confusionNote = "Records of the test set by the models' mean prediction: rows are observed classes, " +
			"columns predicted ones."
	}
	return []section{
		{
			title: "Learning",
			note: "Mean over " + fits + " ± standard deviation. The weights of the epoch that is best on the " +
				"validation set are kept; the test set is not used for any choice.",
			blocks: t.learning(),
		},
		{title: "Predictions", note: note, blocks: t.predictions()},
		{
			title:  "Confusion",
			note:   confusionNote,
			blocks: t.confusion(),
		},
		{
			title: "Worst",
			note: "The ten test records with the largest errors of a model. Discs show the contribution of an atom " +
				"or node to the prediction: vermillion raises it, blue lowers it. Carbon has no letter.",
			blocks: t.worst(),
		},
		{
			title: "Data",
			note: "Sizes of the sets, validation and test records that also occur in the training set (the same " +
				"molecule, or an isomorphic graph), and " +
				"rejected records.",
			blocks: t.data(),
		},
		{
			title:  "Command",
			note:   "This command repeats the run on the same files.",
			blocks: []block{{text: t.command()}},
		},
	}
}

// summary returns a table of all metrics: of the models, and where there are such rows, of their mean
// prediction, of a forest and of the baseline.
func (c *collection) summary() []block {
	var columns []string
	for _, name := range []string{"model", together, "forest", "baseline"} {
		hasColumn := func(p panel) bool {
			return slices.ContainsFunc(p.distinct(), func(r result) bool { return columnOf(r) == name })
		}
		if slices.ContainsFunc(c.panels, hasColumn) {
			columns = append(columns, name)
		}
	}
	t := table.New("metric", table.Names(columns...)...)
	for _, p := range c.panels {
		cells := make([]table.Cell, len(columns))
		for _, r := range p.distinct() {
			cells[slices.Index(columns, columnOf(r))] = table.MeanStd(r.Mean, r.Std, p.decimals())
		}
		t.Add(p.quantity(), cells...)
	}
	return []block{{table: t}}
}

// columnOf returns the column of a result in the summary: its method, or model for a kind of targets.
func columnOf(r result) string {
	switch r.Method {
	case together, "forest", "baseline":
		return r.Method
	}
	return "model"
}

// mostPoints is the largest number of points in all scatter plots of a page.
const mostPoints = 3000

func (t *tuned) learning() (blocks []block) {
	b := block{}
	headline := map[string]string{
		"regression": "rmse",
		"binary":     "roc_auc",
		"classes":    "accuracy",
	}[t.kind]
	if t.kind == "regression" && len(t.targets) > 1 {
		headline += " " + t.targets[0]
	}
	for _, metric := range []string{"loss", headline} {
		chart := plot.Lines{Axes: plot.Axes{Title: metric, XLabel: "epoch", YLabel: metric}}
		for _, part := range [][2]string{
			{"training", metric},
			{"validation", "valid_" + metric},
			{"test", "test_" + metric},
		} {
			c := curve{name: part[0], epochs: map[int][]float64{}}
			for _, e := range t.run.Metrics {
				if isShare(e.Unit) {
					continue
				}
				if v, err := strconv.ParseFloat(e.Values[part[1]], 64); err == nil {
					c.epochs[e.Epoch] = append(c.epochs[e.Epoch], v)
				}
			}
			if s := c.series(60); len(s.X) > 1 {
				chart.Series = append(chart.Series, s)
			}
		}
		if chart.Series != nil {
			b.charts = append(b.charts, chart)
		}
	}
	return []block{b}
}

// pairs returns the predictions of a target, its observed numbers, and the distances. It skips records
// whose target is missing or a bound.
func (t *tuned) pairs(target int) (p, y, distances []float64) {
	for _, r := range t.rows {
		v := t.label(r.observed[target])
		if !math.IsNaN(v) && !math.IsInf(v, 0) {
			p = append(p, r.predicted[target])
			y = append(y, v)
			distances = append(distances, r.distance)
		}
	}
	return p, y, distances
}

const mostTargets = 12

func (t *tuned) predictions() (blocks []block) {
	if t.kind == "classes" {
		return t.classes()
	}
	for k, name := range t.targets[:min(len(t.targets), mostTargets)] {
		p, y, distances := t.pairs(k)
		if len(p) == 0 {
			continue
		}
		b := block{title: name, folded: k > 2}
		if t.kind == "binary" {
			b.charts = []plot.Panel{
				rocOf(p, y),
				precisionRecall(p, y),
				calibration(p, y, "probability", "fraction of positives"),
			}
		} else {
			b.charts = clouds(p, y, max(60, mostPoints/3/min(len(t.targets), mostTargets)))
		}
		errs := make([]float64, len(p))
		for i := range p {
			errs[i] = math.Abs(y[i] - p[i])
		}
		if c, ok := deciles(distances, errs); ok {
			b.charts = append(b.charts, plot.Lines{
				Axes: plot.Axes{
					Title:  "error by distance",
					XLabel: "distance to the training set",
					YLabel: "absolute error",
				},
				Series: []plot.Series{c},
			})
		}
		blocks = append(blocks, b)
	}
	return blocks
}

// clouds returns the charts of numbers p that are predicted for y: each with about the given number of points.
func clouds(p, y []float64, points int) (charts []plot.Panel) {
	indices := thinned(len(p), points)
	choose := func(values []float64) (chosen []float64) {
		for _, i := range indices {
			chosen = append(chosen, values[i])
		}
		return chosen
	}
	cloud := func(a plot.Axes, x, y []float64, g plot.Guide) {
		charts = append(charts, plot.Scatter{
			Axes:  a,
			X:     choose(x),
			Y:     choose(y),
			Class: make([]int, len(indices)),
			Names: []string{"record"},
			Guide: g,
		})
	}
	residuals := slices.Clone(y)
	floats.Sub(residuals, p)
	cloud(
		plot.Axes{Title: "predicted against observed", XLabel: "observed", YLabel: "predicted"}, y, p, plot.Identity,
	)
	cloud(
		plot.Axes{Title: "residuals", XLabel: "predicted", YLabel: "observed − predicted"}, p, residuals, plot.Zero,
	)
	return charts
}

// classes returns the calibration of the most probable class, and the errors by distance.
func (t *tuned) classes() []block {
	var p, hits, errs, distances []float64
	for _, r := range t.rows {
		k := slices.Index(t.outputs, "class_"+strings.TrimSpace(r.observed[0]))
		if k < 0 {
			continue
		}
		best := floats.MaxIdx(r.predicted)
		hit := 0.0
		if best == k {
			hit = 1
		}
		p = append(p, r.predicted[best])
		hits = append(hits, hit)
		errs = append(errs, 1-r.predicted[k])
		distances = append(distances, r.distance)
	}
	if len(p) == 0 {
		return nil
	}
	b := block{charts: []plot.Panel{
		calibration(p, hits, "probability of the most probable class", "accuracy"),
	}}
	if c, ok := deciles(distances, errs); ok {
		b.charts = append(b.charts, plot.Lines{
			Axes: plot.Axes{
				Title:  "error by distance",
				XLabel: "distance to the training set",
				YLabel: "1 − probability of the class",
			},
			Series: []plot.Series{c},
		})
	}
	return []block{b}
}

// thinned returns evenly spaced indices below n, at most limit of them.
func thinned(n, limit int) (indices []int) {
	for i := range min(n, limit) {
		indices = append(indices, i*n/min(n, limit))
	}
	return indices
}

// descending returns the indices of the values from the largest to the smallest.
func descending(v []float64) []int {
	order := thinned(len(v), len(v))
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(v[b], v[a]) })
	return order
}

// thresholds calls f with the numbers of positives and negatives above each threshold, and returns
// the total numbers.
func thresholds(p, y []float64, f func(positives, negatives float64)) (positives, negatives float64) {
	order := descending(p)
	for k, i := range order {
		if y[i] == 1 {
			positives++
		} else {
			negatives++
		}
		if k+1 == len(order) || p[order[k+1]] != p[i] {
			f(positives, negatives)
		}
	}
	return positives, negatives
}

func line(name string, x, y []float64) plot.Series {
	keep := thinned(len(x), 80)
	s := plot.Series{Name: name}
	if n := len(x); n > 0 && keep[len(keep)-1] != n-1 {
		keep = append(keep, n-1)
	}
	for _, i := range keep {
		s.X = append(s.X, x[i])
		s.Y = append(s.Y, y[i])
	}
	return s
}

func rocOf(p, y []float64) plot.Panel {
	tpr := []float64{0}
	fpr := []float64{0}
	positives, negatives := thresholds(p, y, func(positives, negatives float64) {
		tpr = append(tpr, positives)
		fpr = append(fpr, negatives)
	})
	for i := range tpr {
		tpr[i] /= max(positives, 1)
		fpr[i] /= max(negatives, 1)
	}
	return plot.Lines{
		Axes:   plot.Axes{Title: "ROC", XLabel: "false positive rate", YLabel: "true positive rate"},
		Series: []plot.Series{line("model", fpr, tpr), baseline(0, 1)},
	}
}

// baseline returns the line of the baseline from x = 0 to 1.
func baseline(left, right float64) plot.Series {
	return line("baseline", []float64{0, 1}, []float64{left, right})
}

func precisionRecall(p, y []float64) plot.Panel {
	var precision, recall []float64
	positives := floats.Sum(y)
	thresholds(p, y, func(tp, fp float64) {
		precision = append(precision, tp/(tp+fp))
		recall = append(recall, tp/max(positives, 1))
	})
	base := positives / float64(len(y))
	return plot.Lines{
		Axes:   plot.Axes{Title: "precision and recall", XLabel: "recall", YLabel: "precision"},
		Series: []plot.Series{line("model", recall, precision), baseline(base, base)},
	}
}

// deciles returns the mean of y with its standard error for each decile of x. ok is false if x has no
// spread.
func deciles(x, y []float64) (s plot.Series, ok bool) {
	order := descending(x)
	slices.Reverse(order)
	order = slices.DeleteFunc(order, func(i int) bool {
		return math.IsNaN(x[i]) || math.IsInf(x[i], 0)
	})
	n := len(order)
	s = plot.Series{Name: "model", Bars: true}
	parts := min(10, n)
	for k := range parts {
		var px, py []float64
		for _, i := range order[k*n/parts : (k+1)*n/parts] {
			px = append(px, x[i])
			py = append(py, y[i])
		}
		mean, std := stat.MeanStdDev(py, nil)
		s.X = append(s.X, stat.Mean(px, nil))
		s.Y = append(s.Y, mean)
		s.Err = append(s.Err, std/math.Sqrt(float64(len(py))))
	}
	return s, n > 1 && s.X[0] != s.X[len(s.X)-1]
}

func calibration(p, y []float64, xLabel, yLabel string) plot.Panel {
	c := plot.Lines{Axes: plot.Axes{Title: "calibration", XLabel: xLabel, YLabel: yLabel}}
	if s, ok := deciles(p, y); ok || len(s.X) > 0 {
		c.Series = append(c.Series, s)
	}
	c.Series = append(c.Series, baseline(0, 1))
	return c
}

func (t *tuned) confusion() (blocks []block) {
	names := []string{"no", "yes"}
	if t.kind == "classes" {
		names = nil
		for _, c := range t.outputs {
			names = append(names, strings.TrimPrefix(c, "class_"))
		}
	}
	for task, counts := range t.matrices() {
		if counts == nil { // of a regression, or of a task without targets
			continue
		}
		c := table.New("observed", table.Names(names...)...)
		c.Caption = t.targets[task]
		for i, row := range counts {
			var cells []table.Cell
			for _, n := range row {
				cells = append(cells, table.Number(n, 0))
			}
			c.Add(names[i], cells...)
		}
		blocks = append(blocks, block{table: c})
	}
	return blocks
}

// MostCases is how many cases a report draws.
const MostCases = 10

// shortNumber returns a number with at most five digits, such as -5.839 of -5.8389999999999995, and
// other texts as they are.
func shortNumber(text string) string {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return text
	}
	return strconv.FormatFloat(v, 'g', 5, 64)
}

// worst draws the cases with the largest errors over all splits.
func (t *tuned) worst() []block {
	var cases []Case
	for _, r := range t.results {
		for _, c := range r.Worst {
			c.unit = r.unit
			cases = append(cases, c)
		}
	}
	slices.SortStableFunc(cases, func(a, b Case) int {
		return cmp.Compare(b.Error, a.Error)
	})
	b := block{}
	for _, k := range Different(cases, MostCases) {
		c := cases[k]
		f := figure{
			Caption: fmt.Sprintf("%s (%s): %s %.3g, observed %s",
				c.ID, strings.ReplaceAll(c.unit, "=", " "), c.Of, c.Predicted, shortNumber(c.Observed)),
			More: c.SMILES,
		}
		if len(c.Values) > 0 {
			f.SVG = template.HTML(c.draw())
		}
		b.figures = append(b.figures, f)
	}
	return []block{b}
}

// draw returns the molecule or graph of a case as SVG, with the contributions of its nodes.
func (c *Case) draw() string {
	title := cmp.Or(c.SMILES, c.ID)
	parser := molecule.Parser{Standard: c.Standard}
	if m, err := parser.Parse(c.SMILES); err == nil && len(m.Atoms) == len(c.Values) {
		return depict.Layout(m).SVG(depict.Options{
			Title:   title,
			Width:   360,
			Height:  230,
			Weights: c.Values,
		})
	}
	g := plot.Graph{
		Title:  title,
		Edges:  c.Edges,
		Values: c.Values,
	}
	return g.Inline()
}

func (t *tuned) data() (blocks []block) {
	parts := table.New("split", table.Names(
		"training", "validation", "test", "validation in training", "test in training",
	)...)
	for _, r := range t.results {
		var cells []table.Cell
		for _, n := range append(r.Parts[:], r.Shared[:]...) {
			cells = append(cells, table.Number(float64(n), 0))
		}
		parts.Add(strings.ReplaceAll(r.unit, "=", " "), cells...)
	}
	blocks = append(blocks, block{table: parts})
	f, err := os.Open(filepath.Join(t.run.Path, "rejected.csv"))
	if errors.Is(err, fs.ErrNotExist) {
		return append(blocks, block{text: "All records were used."})
	} else if err != nil {
		return blocks
	}
	defer f.Close()
	lines, _ := csv.NewReader(f).ReadAll()
	count := map[string]int{}
	example := map[string]string{}
	var reasons []string
	for _, l := range lines[min(1, len(lines)):] {
		reason := placeInText.ReplaceAllString(l[2], "")
		count[reason]++
		if count[reason] == 1 {
			reasons = append(reasons, reason)
			example[reason] = fmt.Sprintf("line %s: %s", l[0], l[1])
		}
	}
	slices.SortStableFunc(reasons, func(a, b string) int { return count[b] - count[a] })
	out := table.New("reason", table.Names("records", "first record")...)
	out.Caption = fmt.Sprintf("%d records were rejected", max(len(lines)-1, 0))
	for _, reason := range reasons[:min(20, len(reasons))] {
		out.Add(reason, table.Number(float64(count[reason]), 0), table.Text(brief(example[reason])))
	}
	return append(blocks, block{table: out})
}

// placeInText matches the position in a message, which differs between mistakes of the same kind.
var placeInText = regexp.MustCompile(`^column \d+: `)

func (t *tuned) command() string {
	text := "specmatch finetune"
	for _, name := range slices.Sorted(maps.Keys(t.run.Flags)) {
		value := t.run.Flags[name]
		v := strings.TrimSpace(show(value))
		switch {
		case slices.Contains([]string{"list", "shard", "collect", "mixed"}, name): // of a single start
		case slices.Contains([]string{`""`, "null", "[]"}, string(value)): // not set
		case name == "node-features" && v == string(dataset.FeaturesDegrees):
			// The default, which molecules and -model refuse where it is given.
		case string(value) == "true":
			text += " -" + name
		case string(value) == "false" && name != "network": // the default
		case string(value) == "false":
			text += " -network=false"
		default:
			if !plainWord.MatchString(v) {
				v = "'" + strings.ReplaceAll(v, "'", `'\''`) + "'"
			}
			text += " -" + name + " " + v
		}
	}
	return text
}

var plainWord = regexp.MustCompile(`^[A-Za-z0-9_./:,=+-]+$`)
