package report

import (
	"cmp"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"github.com/specmatch/specmatch/specmatch/report/plot"
	"github.com/specmatch/specmatch/specmatch/run"
	"github.com/specmatch/specmatch/specmatch/table"
)

// Case is a prediction that a report shows, as a unit of a fine-tuning notes it.
type Case struct {
	ID, SMILES string
	Error      float64
	Of         string  // the column that Predicted and Values are of
	Predicted  float64 // a number or a probability
	Observed   string
	Nodes      []string  `json:",omitempty"` // symbols of the atoms; of a graph none
	Edges      [][3]int  `json:",omitempty"` // nodes, and the order of the bond, 4 for an aromatic one
	Values     []float64 `json:",omitempty"` // what each node contributes
}

// LargestDrawing is how many nodes a graph may have that is drawn.
const LargestDrawing = 120

type tuned struct {
	run     *run.Run
	kind    string
	targets []string
	outputs []string // columns of predictions
	rows    []testRow
	results []tunedResult
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

// newTuned reads what a fine-tuning leaves, and is nil for other runs.
func newTuned(r *run.Run) (*tuned, error) {
	if r.Experiment != "specmatch finetune" || len(r.Rows) == 0 {
		return nil, nil
	}
	t := &tuned{run: r, kind: r.Rows[0].Method}
	for _, u := range r.Units {
		result := tunedResult{unit: u.Name}
		if err := json.Unmarshal(u.Result, &result); err != nil {
			return nil, fmt.Errorf("%s: unit %s: %w", r.Path, u.Name, err)
		}
		t.results = append(t.results, result)
	}
	paths, err := filepath.Glob(filepath.Join(r.Path, "test-*.csv"))
	if err != nil {
		return nil, err
	}
	for _, path := range paths {
		if err := t.readTest(path); err != nil {
			return nil, err
		}
	}
	return t, nil
}

func (t *tuned) readTest(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	lines, err := csv.NewReader(f).ReadAll()
	if err != nil || len(lines) == 0 {
		return fmt.Errorf("%s: no table of predictions: %w", path, err)
	}
	header := lines[0]
	first := slices.IndexFunc(header, func(s string) bool {
		return strings.HasSuffix(s, "_observed")
	})
	if first < 2 {
		return fmt.Errorf("%s: no column ends in _observed", path)
	}
	end := len(header)
	hasDistance := header[end-1] == "distance"
	if hasDistance {
		end--
	}
	t.outputs = header[1:first]
	t.targets = nil
	for _, name := range header[first:end] {
		t.targets = append(t.targets, strings.TrimSuffix(name, "_observed"))
	}
	for _, line := range lines[1:] {
		row := testRow{observed: line[first:end], distance: math.NaN()}
		for _, text := range line[1:first] {
			v, err := strconv.ParseFloat(text, 64)
			if err != nil {
				return fmt.Errorf("%s: %q is not a number", path, text)
			}
			row.predicted = append(row.predicted, v)
		}
		if hasDistance {
			row.distance, _ = strconv.ParseFloat(line[end], 64)
		}
		t.rows = append(t.rows, row)
	}
	return nil
}

// sections are the parts of the page that a fine-tuning has and other runs have not.
func (t *tuned) sections() []section {
	notes := map[string]string{
		"regression": "On the line, predicted and observed are equal. Dots with bars are tenths of the " +
			"records, with the standard error of their mean; a distance of 1 to the " +
			"training part is usual.",
		"binary": "Curves are over the predictions of all test parts. A model that is calibrated lies " +
			"on the diagonal: of the records with a probability of 0.7, 70 % are a yes. Dots stand for " +
			"tenths of the records.",
		"classes": "A model that is calibrated lies on the diagonal: of the records whose likeliest " +
			"class has a probability of 0.7, 70 % are of that class. Dots stand for tenths of the " +
			"records.",
	}
	note := notes[t.kind]
	if n := len(t.rows); n > mostPoints {
		note += fmt.Sprintf(
			" Of %d records some are drawn, evenly chosen; curves and tenths are of all.",
			n,
		)
	}
	return []section{
		{
			title: "Learning",
			note: "The mean over divisions ± its standard deviation. The weights of the epoch that is " +
				"best on the validation part are kept; the test part decides nothing.",
			blocks: t.learning(),
		},
		{title: "Predictions", note: note, blocks: t.predictions()},
		{
			title:  "Confusion",
			note:   "Records of all test parts: rows are what is observed, columns what is predicted.",
			blocks: t.confusion(),
		},
		{
			title: "Worst",
			note: "The ten predictions of the test parts that are most wrong. Discs say what an atom or " +
				"node contributes to the prediction by its being there: vermillion raises it, blue " +
				"lowers it; carbon has no letter.",
			blocks: t.worst(),
		},
		{
			title: "Data",
			note: "Records in the parts, molecules of a part that the training part has, too, and what " +
				"could not be used.",
			blocks: t.data(),
		},
		{
			title:  "Command",
			note:   "It repeats the run, given the same files.",
			blocks: []block{{text: t.command()}},
		},
	}
}

// summary is a table of all metrics, each beside the baseline.
func (c *collection) summary() []block {
	t := table.New("metric", table.Names("model", "baseline")...)
	for _, p := range c.panels {
		var cells [2]table.Cell
		for _, r := range p.distinct() {
			column := 0
			if r.Method == "baseline" {
				column = 1
			}
			cells[column] = table.MeanStd(r.Mean, r.Std, p.decimals())
		}
		t.Add(p.quantity(), cells[:]...)
	}
	return []block{{table: t}}
}

// mostPoints bounds the points of a page's clouds, over all of them.
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

// pairs returns the predictions of one output and the numbers that are observed for a target,
// without gaps and bounds, and the distances.
func (t *tuned) pairs(output, target int) (p, y, far []float64) {
	for _, r := range t.rows {
		if v, err := strconv.ParseFloat(strings.TrimSpace(r.observed[target]), 64); err == nil &&
			!math.IsNaN(v) && !math.IsInf(v, 0) {
			p, y, far = append(p, r.predicted[output]), append(y, v), append(far, r.distance)
		}
	}
	return p, y, far
}

const mostTargets = 12

func (t *tuned) predictions() (blocks []block) {
	if t.kind == "classes" {
		return t.likeliest()
	}
	for k, name := range t.targets[:min(len(t.targets), mostTargets)] {
		p, y, distances := t.pairs(k, k)
		if len(p) == 0 {
			continue
		}
		b := block{title: name, folded: k > 2}
		axes := func(title, x, y string) plot.Axes {
			return plot.Axes{Title: title, XLabel: x, YLabel: y}
		}
		errs := make([]float64, len(p))
		for i := range p {
			errs[i] = y[i] - p[i]
		}
		if t.kind == "binary" {
			for i := range errs {
				errs[i] = math.Abs(errs[i])
			}
			b.charts = append(
				b.charts,
				rocOf(p, y),
				precisionRecall(p, y),
				calibration(p, y, "probability", "share of yes"),
			)
		} else {
			keep := thinned(len(p), max(60, mostPoints/3/min(len(t.targets), mostTargets)))
			choose := func(all []float64) (some []float64) {
				for _, i := range keep {
					some = append(some, all[i])
				}
				return some
			}
			cloud := func(a plot.Axes, x, y []float64, g plot.Guide) {
				b.charts = append(b.charts, plot.Scatter{
					Axes:  a,
					X:     choose(x),
					Y:     choose(y),
					Class: make([]int, len(keep)),
					Names: []string{"a record"},
					Guide: g,
				})
			}
			cloud(axes("predicted against observed", "observed", "predicted"), y, p, plot.Identity)
			cloud(axes("residuals", "predicted", "observed less predicted"), p, errs, plot.Zero)
			for i := range errs {
				errs[i] = math.Abs(errs[i])
			}
		}
		if c, ok := tenths(distances, errs); ok {
			b.charts = append(b.charts, plot.Lines{
				Axes:   axes("error by distance", "distance to the training part", "size of the error"),
				Series: []plot.Series{c},
			})
		}
		blocks = append(blocks, b)
	}
	return blocks
}

// likeliest is the calibration of classes, by the likeliest one.
func (t *tuned) likeliest() []block {
	var p, right, wrong, far []float64
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
		p, right, wrong, far = append(p, r.predicted[best]), append(right, hit),
			append(wrong, 1-r.predicted[k]), append(far, r.distance)
	}
	if len(p) == 0 {
		return nil
	}
	b := block{charts: []plot.Panel{calibration(
		p, right, "probability of the likeliest class", "share that is right",
	)}}
	if c, ok := tenths(far, wrong); ok {
		b.charts = append(b.charts, plot.Lines{
			Axes: plot.Axes{
				Title:  "error by distance",
				XLabel: "distance to the training part",
				YLabel: "1 − probability of the class",
			},
			Series: []plot.Series{c},
		})
	}
	return []block{b}
}

// thinned are at most that many of n places, evenly chosen.
func thinned(n, most int) (all []int) {
	for i := range min(n, most) {
		all = append(all, i*n/min(n, most))
	}
	return all
}

// down returns the places of the values from the largest to the least.
func down(v []float64) []int {
	order := thinned(len(v), len(v))
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(v[b], v[a]) })
	return order
}

// thresholds calls f with the counts of yes and no above each threshold.
func thresholds(p, y []float64, f func(yes, no float64)) (yes, no float64) {
	order := down(p)
	for k, i := range order {
		if y[i] == 1 {
			yes++
		} else {
			no++
		}
		if k+1 == len(order) || p[order[k+1]] != p[i] {
			f(yes, no)
		}
	}
	return yes, no
}

func line(name string, x, y []float64) plot.Series {
	keep := thinned(len(x), 80)
	s := plot.Series{Name: name}
	for _, i := range keep {
		s.X, s.Y = append(s.X, x[i]), append(s.Y, y[i])
	}
	if n := len(x); n > 0 && keep[len(keep)-1] != n-1 {
		s.X, s.Y = append(s.X, x[n-1]), append(s.Y, y[n-1])
	}
	return s
}

func rocOf(p, y []float64) plot.Panel {
	tpr := []float64{0}
	fpr := []float64{0}
	yes, no := thresholds(p, y, func(yes, no float64) {
		tpr = append(tpr, yes)
		fpr = append(fpr, no)
	})
	for i := range tpr {
		tpr[i], fpr[i] = tpr[i]/max(yes, 1), fpr[i]/max(no, 1)
	}
	return plot.Lines{Axes: plot.Axes{
		Title:  "ROC",
		XLabel: "share of no that are taken for yes",
		YLabel: "share of yes that are found",
	},
		Series: []plot.Series{
			line("model", fpr, tpr), line("baseline", []float64{0, 1}, []float64{0, 1}),
		}}
}

func precisionRecall(p, y []float64) plot.Panel {
	var precision, recall []float64
	positives := floats.Sum(y)
	thresholds(p, y, func(yes, no float64) {
		precision = append(precision, yes/(yes+no))
		recall = append(recall, yes/max(positives, 1))
	})
	base := positives / float64(len(y))
	return plot.Lines{Axes: plot.Axes{
		Title:  "precision and recall",
		XLabel: "recall: share of yes that are found",
		YLabel: "precision: share of the found that are yes",
	},
		Series: []plot.Series{
			line("model", recall, precision), line("baseline", []float64{0, 1}, []float64{base, base}),
		}}
}

// tenths is the mean of y, with its standard error, by tenths of x; false if x has no spread.
func tenths(x, y []float64) (s plot.Series, ok bool) {
	order := down(x)
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
			px, py = append(px, x[i]), append(py, y[i])
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
	if s, ok := tenths(p, y); ok || len(s.X) > 0 {
		c.Series = append(c.Series, s)
	}
	c.Series = append(c.Series, line("baseline", []float64{0, 1}, []float64{0, 1}))
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
	for task := range t.targets {
		sum := make([][]float64, len(names))
		found := false
		for i := range sum {
			sum[i] = make([]float64, len(names))
			for _, r := range t.results {
				if task < len(r.Confusion) && len(r.Confusion[task]) == len(names) {
					found = true
					for j, n := range r.Confusion[task][i] {
						sum[i][j] += n
					}
				}
			}
		}
		if !found {
			continue
		}
		c := table.New("observed", table.Names(names...)...)
		c.Caption = t.targets[task]
		for i, row := range sum {
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

// worst draws the ten cases that are worst over all divisions.
func (t *tuned) worst() []block {
	type named struct {
		Case
		unit string
	}
	var all []named
	for _, r := range t.results {
		for _, c := range r.Worst {
			all = append(all, named{c, r.unit})
		}
	}
	slices.SortStableFunc(all, func(a, b named) int {
		return cmp.Compare(b.Error, a.Error)
	})
	b := block{}
	for _, c := range all[:min(10, len(all))] {
		d := plot.Graph{
			Title:  cmp.Or(c.SMILES, c.ID),
			Nodes:  c.Nodes,
			Edges:  c.Edges,
			Values: c.Values,
		}
		if d.Nodes == nil {
			d.Nodes = make([]string, len(c.Values))
		}
		f := figure{
			Caption: fmt.Sprintf("%s (%s): %s %.3g, observed %s",
				c.ID, strings.ReplaceAll(c.unit, "=", " "), c.Of, c.Predicted, c.Observed),
			More: c.SMILES,
		}
		if len(d.Nodes) > 0 {
			f.SVG = template.HTML(d.Inline())
		}
		b.figures = append(b.figures, f)
	}
	return []block{b}
}

func (t *tuned) data() (blocks []block) {
	parts := table.New("division", table.Names(
		"train", "validate", "test", "shared: validate", "shared: test",
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
		return append(blocks, block{text: "Every record could be used."})
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
	out := table.New("reason", table.Names("records", "the first")...)
	out.Caption = fmt.Sprintf("%d records were left out", max(len(lines)-1, 0))
	for _, reason := range reasons[:min(20, len(reasons))] {
		out.Add(reason, table.Number(float64(count[reason]), 0), table.Text(brief(example[reason])))
	}
	return append(blocks, block{table: out})
}

// placeInText is what tells one mistake from another of its kind.
var placeInText = regexp.MustCompile(`^column \d+: `)

func (t *tuned) command() string {
	text := "specmatch finetune"
	var flags []string
	for name := range t.run.Flags {
		flags = append(flags, name)
	}
	slices.Sort(flags)
	for _, name := range flags {
		v := strings.TrimSpace(show(t.run.Flags[name]))
		switch {
		case slices.Contains([]string{"", "none", "false", "0", "–"}, v) || name == "list" ||
			name == "shard" || name == "collect":
		case v == "true":
			text += " -" + name
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
