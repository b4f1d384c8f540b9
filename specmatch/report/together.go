package report

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/specmatch/specmatch/gnn/molecule"
	"github.com/specmatch/specmatch/specmatch/check"
	"github.com/specmatch/specmatch/specmatch/finetune"
	"github.com/specmatch/specmatch/specmatch/model"
	"github.com/specmatch/specmatch/specmatch/run"
	"github.com/specmatch/specmatch/tensor/files"
)

// together is the method of rows of the models' mean prediction. A fine-tuning has them if all its models
// share one test set.
const together = "together"

// tunedTitle names the targets, the data set and the score of a fine-tuning: that of the mean prediction, if
// there is one. Without a score, as of a fit to all records, the set is all.
func tunedTitle(r *run.Run) string {
	row := r.Rows[0]
	metric := row.Metric
	models := ""
	for _, other := range r.Rows {
		if other.Method == together && other.Metric == metric {
			row = other
			models = fmt.Sprintf(", %d models together", len(fits(r)))
		}
	}
	if math.IsNaN(row.Mean) { // without a test set
		return tunedSet(r)
	}
	p := panel{metric: metric}
	score := fmt.Sprintf("%s %.4g", metricTitle(metric), row.Mean)
	if !math.IsNaN(row.Std) {
		score += fmt.Sprintf(" ± %.2g", row.Std)
	}
	if p.percent() {
		score += " %"
	}
	return fmt.Sprintf("%s: %s%s", tunedSet(r), score, models)
}

// tunedSet names the targets and the data set of a fine-tuning.
func tunedSet(r *run.Run) string {
	var targets []string
	json.Unmarshal(r.Flags["target"], &targets) // absent in runs of a set with targets of its own
	if len(targets) == 0 {
		return r.Rows[0].Dataset
	}
	return fmt.Sprintf("%s of %s", strings.Join(targets, ", "), r.Rows[0].Dataset)
}

// metricTitle returns the title of a metric in tables, with the name of its task, if it has one.
func metricTitle(metric string) string {
	name, task, _ := strings.Cut(metric, " ")
	for _, kind := range []model.Kind{model.Regression, model.Binary, model.Classes} {
		for _, m := range finetune.Metrics(model.Head{Kind: kind, Outputs: 2}) {
			if m.Name == name {
				return strings.TrimSpace(m.Title + " " + task)
			}
		}
	}
	return metric
}

// testTable is the predictions of a test set.
type testTable struct {
	ids  []string
	rows []testRow
}

// sameRecords returns whether two tables have the same records in the same order. Tables of earlier versions have
// escapes for tabs and line breaks.
func sameRecords(a, b testTable) bool {
	sameText := func(x, y string) bool { return files.Printable(x) == files.Printable(y) }
	sameTargets := func(x, y testRow) bool { return slices.EqualFunc(x.observed, y.observed, sameText) }
	return slices.EqualFunc(a.ids, b.ids, sameText) && slices.EqualFunc(a.rows, b.rows, sameTargets)
}

// join sets the rows of a fine-tuning: those of all test sets, or the mean predictions of its models if they
// share one.
func (t *tuned) join(tables []testTable) {
	isMean := func(r run.Row) bool { return r.Method == together }
	t.shared = len(tables) > 1 && slices.ContainsFunc(t.run.Rows, isMean)
	for _, table := range tables {
		t.shared = t.shared && sameRecords(table, tables[0])
	}
	if !t.shared {
		for _, table := range tables {
			t.rows = append(t.rows, table.rows...)
		}
		return
	}
	n := float64(len(tables))
	for k, first := range tables[0].rows {
		mean := testRow{
			predicted: make([]float64, len(first.predicted)),
			observed:  first.observed,
		}
		for _, table := range tables {
			mean.distance += table.rows[k].distance / n
			for i, v := range table.rows[k].predicted {
				mean.predicted[i] += v / n
			}
		}
		t.rows = append(t.rows, mean)
	}
}

// matrices returns the confusion matrices by target: those of the mean predictions, or sums over all test sets.
func (t *tuned) matrices() [][][]float64 {
	if !t.shared {
		var sets [][][][]float64
		for _, r := range t.results {
			sets = append(sets, r.Confusion)
		}
		return finetune.SumConfusion(sets)
	}
	head := model.Head{
		Kind:    model.Kind(t.kind),
		Outputs: len(t.outputs),
	}
	var predicted, observed []float64
	for _, r := range t.rows {
		predicted = append(predicted, r.predicted...)
		for _, text := range r.observed {
			observed = append(observed, t.label(text))
		}
	}
	return finetune.Confusion(head, predicted, observed)
}

// label returns an observed class as its index, 1 for the text of -positive and 0 for the other one, and an
// observed number; NaN for other texts.
func (t *tuned) label(text string) float64 {
	text = files.Printable(strings.TrimSpace(text)) // as tables of earlier versions have it, and columns are named
	switch {
	case t.positive == "":
	case text == files.Printable(strings.TrimSpace(t.positive)):
		return 1
	case !check.IsGap(text):
		return 0
	}
	if t.kind == string(model.Classes) {
		if k := slices.Index(t.outputs, "class_"+text); k >= 0 {
			return float64(k)
		}
		return math.NaN()
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return math.NaN()
	}
	return v
}

// identity returns what tells a case's molecule or graph from others: its canonical SMILES, or its id.
func (c Case) identity() string {
	parser := molecule.Parser{}
	if m, err := parser.Parse(c.SMILES); c.SMILES != "" && err == nil {
		return parser.CanonicalSMILES(m)
	}
	return cmp.Or(c.SMILES, c.ID)
}

// Different returns the positions of the first n cases of different molecules or graphs.
func Different(cases []Case, n int) (positions []int) {
	shown := map[string]bool{}
	for k, c := range cases {
		if len(positions) == n {
			break
		}
		if key := c.identity(); !shown[key] {
			shown[key] = true
			positions = append(positions, k)
		}
	}
	return positions
}

// scoreNote says what the columns of the summary are.
func (t *tuned) scoreNote() string {
	if !t.shared {
		return "Mean over splits ± standard deviation (n-1)."
	}
	return fmt.Sprintf("All models have one test set. The column model has the mean over the %d models ± standard "+
		"deviation (n-1). The column together has the score of their mean prediction, which predict writes.",
		len(t.results))
}
