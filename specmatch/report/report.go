// Package report summarises run directories on a page: results with their differences, curves,
// settings and costs.
//
// The mental model: [New] turns the runs from [Read] into a [Page], a list of sections of tables and
// charts. A page is written as a self-contained HTML file, or its tables as Markdown, LaTeX or text:
//
//	runs, err := report.Read([]string{"runs/a", "runs/b"})
//	…
//	page, err := report.New(runs, report.Options{Against: "infonce"})
//	…
//	err = page.Save("report.html")
//
// Only results with equal experiment, data set, protocol and metric are compared. Rows are methods. If
// runs differ in a flag that results depend on, rows are methods with that flag.
//
// The charts are SVG in the page, drawn by package plot: two hundred of them are smaller than the
// script of a charting library, and need none.
package report

import (
	"cmp"
	"encoding/json"
	"fmt"
	"html/template"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/specmatch/specmatch/specmatch/cli"
	"github.com/specmatch/specmatch/specmatch/method"
	"github.com/specmatch/specmatch/specmatch/report/plot"
	"github.com/specmatch/specmatch/specmatch/run"
	"github.com/specmatch/specmatch/specmatch/table"
)

// Page is a report.
type Page struct {
	Title string

	sections []section
	series   []string // names that have a look, in its order
}

// section is a section of a page. It is skipped if it has no tables and charts.
type section struct {
	title  string
	note   string
	blocks []block
	curves func(points int) []block // instead of blocks, if it is set
}

type block struct {
	title  string // of charts
	folded bool
	table  *table.Table
	charts []plot.Panel

	figures []figure
	text    string // in letters of one width
}

type figure struct {
	SVG           template.HTML
	Caption, More string
}

// Options select the content of a report.
type Options struct {
	// Against is the row to take differences from, by its label or its method. "" is InfoNCE, or else
	// the simplest row.
	Against string
	// Oracle adds rows with the setting that is best on the test data.
	Oracle bool
}

// New returns the report of runs.
func New(runs []*run.Run, o Options) (*Page, error) {
	c := collate(runs, o.Oracle)
	p := &Page{Title: title(runs)}
	if o.Oracle {
		p.Title += ", oracle"
	}
	differences, err := c.differences(o.Against)
	if err != nil {
		return nil, err
	}
	p.sections = c.sections(differences)
	if len(runs) == 1 {
		t, err := newTuned(runs[0])
		if err != nil {
			return nil, err
		}
		if t != nil {
			p.sections[0].note = t.scoreNote() + " The baseline ignores the " +
				"molecule or graph: it predicts the mean, or the class frequencies, of the training set. " +
				"Selecting a model by these figures is selection on the test data."
			p.sections[0].blocks = c.summary()
			p.sections = slices.Insert(p.sections, 1, t.sections()...)
		}
	}
	return p, nil
}

// sections returns the sections that the page of any runs has.
func (c *collection) sections(differences []block) []section {
	note := "Mean ± standard deviation (n-1) over seeds; the best value of a column is bold. Selecting " +
		"a setting by these figures is selection on the test data. Rows \"chosen per fold\" select " +
		"the setting on validation data from the training set."
	if !slices.ContainsFunc(c.runs, func(r *run.Run) bool { return r.Experiment != finetuning }) {
		note = "Mean ± standard deviation (n-1) over models; the best value of a column is bold. " +
			"Rows \"together\" are scores of the models' mean prediction on one test set. The baseline ignores the " +
			"molecule or graph. Selecting a setting by these figures is selection on the test data."
	}
	return []section{
		{
			title:  "Results",
			note:   note,
			blocks: c.results(),
		},
		{
			title:  "Runs",
			note:   "Rows of the tables below name the flags in which the runs differ.",
			blocks: c.list(),
		},
		{
			title: "Differences",
			note: "Difference of the means over the n common seeds of both rows, its standard error, and the " +
				"p value of Student's paired t-test, without and with Holm's correction for all rows of the " +
				"table. Intervals are uncorrected 95 % intervals of single rows. Common folds make a " +
				"difference fair, not more precise.",
			blocks: differences,
		},
		{title: "Seeds", note: "A dot is a seed, the bar is their mean.", blocks: c.seeds()},
		{
			title:  "Flags",
			note:   "Mean over seeds ± standard deviation, by each flag in which the runs differ.",
			blocks: c.flags(),
		},
		{title: "Curves", note: "Mean over seeds ± standard deviation, by epoch.", curves: c.curves()},
		{title: "Settings", blocks: c.settings()},
		{
			title:  "Cost",
			note:   "Wall time of training and evaluation; units that share cores take longer.",
			blocks: c.cost(),
		},
	}
}

func title(runs []*run.Run) string {
	var names []string
	for _, r := range runs {
		if !slices.Contains(names, r.Experiment) {
			names = append(names, r.Experiment)
		}
	}
	s := strings.Join(names, ", ")
	switch {
	case len(runs) > 1:
		if s == finetuning {
			s = setsOf(runs)
		}
		s += fmt.Sprintf(": %d runs", len(runs))
	case s == finetuning && len(runs[0].Rows) > 0:
		s = tunedTitle(runs[0])
	}
	return s
}

// setsOf names the targets and data sets of fine-tunings, at most three of them.
func setsOf(runs []*run.Run) string {
	var sets []string
	for _, r := range runs {
		if len(r.Rows) > 0 && !slices.Contains(sets, tunedSet(r)) {
			sets = append(sets, tunedSet(r))
		}
	}
	switch {
	case len(sets) == 0:
		return finetuning
	case len(sets) > 3:
		return fmt.Sprintf("%s and %d other sets", strings.Join(sets[:3], "; "), len(sets)-3)
	}
	return strings.Join(sets, "; ")
}

// list returns a table of the runs: where each lies, its data sets, and what it is called in the tables.
func (c *collection) list() []block {
	if len(c.runs) < 2 {
		return nil
	}
	t := table.New("run", table.Names("data sets", "differs in", "finished units")...)
	for i, r := range c.runs {
		var sets []string
		for _, row := range r.Rows {
			if name := column(r, row); !slices.Contains(sets, name) {
				sets = append(sets, name)
			}
		}
		cells := texts(strings.Join(sets, "; "), cmp.Or(c.labels[i], "–"))
		t.Add(filepath.ToSlash(r.Path), append(cells, table.Number(float64(len(r.Units)), 0))...)
	}
	return []block{{
		title:  fmt.Sprintf("%d runs", len(c.runs)),
		folded: len(c.runs) > mostListed,
		table:  t,
	}}
}

// mostListed is the largest number of runs whose list is open.
const mostListed = 20

// groups groups the panels by experiment, protocol and metric. A group becomes a table with a column
// per data set, each of which may have files of its own to validate and test on.
func (c *collection) groups() (groups [][]panel) {
	for _, p := range c.panels {
		g := findOrAdd(&groups, func(g []panel) bool {
			return g[0].experiment == p.experiment && g[0].rule() == p.rule() &&
				g[0].metric == p.metric && !slices.ContainsFunc(g, p.sameDataset)
		}, nil)
		*g = append(*g, p)
	}
	return groups
}

func (p panel) sameDataset(q panel) bool { return p.dataset == q.dataset }

// rule returns the protocol without the names of files.
func (p panel) rule() string {
	parts := strings.Split(p.protocol, " -")
	for i, part := range parts {
		flag, _, _ := strings.Cut(strings.TrimPrefix(part, "-"), " ")
		if flag == "valid" || flag == "test" {
			parts[i] = part[:strings.Index(part, flag)] + flag
		}
	}
	return strings.Join(parts, " -")
}

// captionOf describes what the panels of a group have in common.
func captionOf(g []panel) string {
	p := g[0]
	if len(g) > 1 {
		p.protocol = p.rule()
	}
	return p.caption()
}

func (p panel) caption() string {
	return strings.Join(slices.DeleteFunc([]string{p.experiment, p.protocol, p.quantity()},
		func(s string) bool {
			return s == ""
		}), ", ")
}

func (p panel) quantity() string {
	if p.percent() {
		return p.metric + " (%)"
	}
	return p.metric
}

func (p panel) measure() string {
	name, _, _ := strings.Cut(p.metric, " ")
	return name
}

func (p panel) percent() bool {
	return slices.Contains([]string{"accuracy", "roc-auc", "roc_auc", "average_precision", "f1"}, p.measure())
}

func (p panel) decimals() int {
	if p.percent() {
		return 2
	}
	return 4
}

// best returns whether large or small values of the panel's metric are good.
func (p panel) best() table.Best {
	switch {
	case p.percent() || slices.Contains([]string{"r2", "mcc", "spearman"}, p.measure()):
		return table.Max
	case slices.Contains([]string{"loss", "rmse", "mae"}, p.measure()):
		return table.Min
	}
	return table.None
}

func (c *collection) results() (blocks []block) {
	for _, g := range c.groups() {
		var columns []table.Column
		var labels []string
		for _, p := range g {
			columns = append(columns, table.Column{Name: p.dataset, Best: p.best()})
			for _, r := range p.distinct() {
				if !slices.Contains(labels, r.label) {
					labels = append(labels, r.label)
				}
			}
		}
		t := table.New("method", columns...)
		t.Caption = captionOf(g)
		for _, label := range labels {
			var cells []table.Cell
			for _, p := range g {
				cell := table.Text("")
				if r, ok := find(p.results, label); ok {
					cell = table.MeanStd(r.Mean, r.Std, p.decimals())
				}
				cells = append(cells, cell)
			}
			t.Add(label, cells...)
		}
		blocks = append(blocks, block{table: t})
	}
	return blocks
}

// reference returns the name of the row to compare the others of a group with.
func reference(g []panel, against string) string {
	count := map[string]int{}
	common := ""
	for _, p := range g {
		for _, r := range p.distinct() {
			count[r.label]++
			if count[r.label] > count[common] {
				common = r.label
			}
		}
	}
	for _, name := range []string{
		against, method.InfoNCE, "none", method.Untrained, "majority", "baseline",
	} {
		if slices.ContainsFunc(g, func(p panel) bool {
			_, ok := find(p.results, name)
			return ok
		}) || name == against && name != "" {
			return name
		}
	}
	return common
}

func (c *collection) differences(against string) (blocks []block, err error) {
	found := against == ""
	for _, g := range c.groups() {
		var comparisons []comparison
		charts := block{}
		name := reference(g, against)
		for _, p := range g {
			results := p.distinct()
			base, ok := find(results, name)
			if !ok {
				continue
			}
			found = true
			chart := plot.Dots{
				Axes: plot.Axes{Title: p.dataset, XLabel: "difference from " + base.label},
				Zero: true,
			}
			for _, r := range results {
				d := c.minus(r, base)
				if r.label == base.label || d.N == 0 {
					continue
				}
				comparisons = append(comparisons, comparison{
					r.label, texts(p.dataset), p.decimals(), d, texts(base.label),
				})
				chart.Rows = append(chart.Rows, plot.DotRow{Name: r.label, Mean: d.Mean, Half: half(d)})
			}
			if len(chart.Rows) > 0 {
				charts.charts = append(charts.charts, chart)
			}
		}
		if len(comparisons) == 0 {
			continue
		}
		t := compared([]string{"data set"}, comparisons, "from")
		t.Caption = fmt.Sprintf("%s; rows compared: %d", captionOf(g), len(comparisons))
		blocks = append(blocks, block{table: t}, charts)
	}
	if !found {
		return nil, fmt.Errorf("no row %q to compare with", against)
	}
	return blocks, nil
}

func (c *collection) seeds() (blocks []block) {
	for _, g := range c.groups() {
		b := block{title: captionOf(g)}
		for _, p := range g {
			chart := plot.Dots{Axes: plot.Axes{Title: p.dataset, XLabel: p.quantity()}}
			for _, r := range p.distinct() {
				chart.Rows = append(chart.Rows, plot.DotRow{
					Name:   r.label,
					Points: r.PerSeed,
					Mean:   r.Mean,
					Half:   math.NaN(),
				})
			}
			b.charts = append(b.charts, chart)
		}
		blocks = append(blocks, b)
	}
	return blocks
}

func (c *collection) flags() (blocks []block) {
	for _, flag := range c.swept {
		for _, g := range c.groups() {
			b := block{title: captionOf(g) + ", against -" + flag}
			for _, p := range g {
				if chart, ok := c.against(flag, p); ok {
					b.charts = append(b.charts, chart)
				}
			}
			blocks = append(blocks, b)
		}
	}
	return blocks
}

// against plots the results of a panel against a flag, with a line for each method and setting of the
// other flags. It returns false if the flag has fewer than two values.
func (c *collection) against(flag string, p panel) (plot.Lines, bool) {
	chart := plot.Lines{Axes: plot.Axes{Title: p.dataset, XLabel: "-" + flag, YLabel: p.quantity()}}
	var values []string
	numbers := true
	results := slices.DeleteFunc(slices.Clone(p.results), func(r result) bool {
		return r.run == chosen
	})
	for _, r := range results {
		v := c.runs[r.run].Flags[flag]
		if !slices.Contains(values, show(v)) {
			values = append(values, show(v))
		}
		numbers = numbers && !math.IsNaN(number(v))
	}
	if len(values) < 2 {
		return chart, false
	}
	if !numbers {
		for _, v := range values {
			chart.XNames = append(chart.XNames, cli.Shorten(v))
		}
	}
	for _, r := range results {
		run := c.runs[r.run]
		name := []string{method.Title(r.Method)}
		for _, other := range c.swept {
			if other != flag && r.label != name[0] { // results that no flag changes form one line
				name = append(name, other+"="+cli.Shorten(show(run.Flags[other])))
			}
		}
		x := number(run.Flags[flag])
		if !numbers {
			x = float64(slices.Index(values, show(run.Flags[flag])))
		}
		label := strings.Join(name, ", ")
		s := findOrAdd(&chart.Series, func(s plot.Series) bool { return s.Name == label },
			plot.Series{Name: label, Bars: true})
		if slices.Contains(s.X, x) {
			continue
		}
		i, _ := slices.BinarySearch(s.X, x)
		s.X = slices.Insert(s.X, i, x)
		s.Y = slices.Insert(s.Y, i, r.Mean)
		s.Err = slices.Insert(s.Err, i, r.Std)
	}
	return chart, true
}

// setting holds the values of a setting in each run.
type setting struct {
	name   string
	values []string
}

func (s setting) differs() bool {
	return slices.ContainsFunc(s.values, func(v string) bool { return v != s.values[0] })
}

// cells returns the values for a table.
func (s setting) cells() (cells []table.Cell) {
	for _, v := range s.values {
		cells = append(cells, table.Text(cli.Shorten(v)))
	}
	return cells
}

func settingsOf(runs []*run.Run) (settings []setting) {
	add := func(name string, value func(r *run.Run) string) {
		s := setting{name: name}
		for _, r := range runs {
			s.values = append(s.values, value(r))
		}
		settings = append(settings, s)
	}
	add("experiment", func(r *run.Run) string { return r.Experiment })
	add("program", func(r *run.Run) string { return r.Program })
	add("engine", func(r *run.Run) string { return r.Engine })
	add("machine", func(r *run.Run) string { return r.Machine })
	add("started", func(r *run.Run) string {
		return r.Started.Format("2006-01-02 15:04")
	})
	add("finished units", func(r *run.Run) string { return fmt.Sprint(len(r.Units)) })
	for _, flag := range names(runs, func(r *run.Run) map[string]json.RawMessage { return r.Flags }) {
		add("-"+flag, func(r *run.Run) string { return show(r.Flags[flag]) })
	}
	for _, file := range names(runs, func(r *run.Run) map[string]string { return r.Inputs }) {
		add("SHA-256 of "+file, func(r *run.Run) string {
			sum := r.Inputs[file]
			return cmp.Or(sum[:min(12, len(sum))], "–") // a file that was not read
		})
	}
	return settings
}

// settings returns two tables by run: settings that differ, and folded, settings that are equal.
func (c *collection) settings() (blocks []block) {
	columns := make([]table.Column, len(c.runs))
	for i, r := range c.runs {
		columns[i].Name = filepath.Base(r.Path)
		if label := c.labels[i]; label != "" && label != columns[i].Name {
			columns[i].Name += ": " + label
		}
	}
	differ := table.New("setting", columns...)
	same := table.New("setting", columns...)
	for _, s := range settingsOf(c.runs) {
		t := same
		if s.differs() {
			t = differ
		}
		t.Add(s.name, s.cells()...)
	}
	if differ.Rows() > 0 {
		blocks = append(blocks, block{table: differ})
	}
	return append(blocks, block{title: "equal settings", folded: true, table: same})
}

func texts(values ...string) (cells []table.Cell) {
	for _, s := range values {
		cells = append(cells, table.Text(s))
	}
	return cells
}

// names returns the sorted keys of a map of all runs.
func names[V any](runs []*run.Run, get func(r *run.Run) map[string]V) []string {
	distinct := map[string]bool{}
	for _, r := range runs {
		for name := range get(r) {
			distinct[name] = true
		}
	}
	return slices.Sorted(maps.Keys(distinct))
}

func (c *collection) cost() []block {
	t := table.New("method",
		table.Names("data set", "epochs", "seeds", "seconds per seed", "graphs/s in training", "hours")...)
	total := 0.0
	for i, r := range c.runs {
		for _, u := range r.Units {
			total += u.Seconds
		}
		type work struct {
			dataset, method string
			seconds         float64
		}
		counted := map[work]bool{}
		for _, row := range r.Rows {
			if key := (work{row.Dataset, row.Method, row.Seconds}); !counted[key] {
				counted[key] = true // other protocols and metrics of the same work share its cost
				name := strings.TrimSuffix(method.Title(row.Method)+", "+c.labels[i], ", ")
				t.Add(
					name,
					table.Text(row.Dataset),
					table.Number(float64(row.Epochs), 0),
					table.Number(float64(len(row.PerSeed)), 0),
					table.Number(row.Seconds/float64(len(row.PerSeed)), 1),
					table.Number(row.GraphsPerSecond, 0),
					table.Number(row.Seconds/3600, 3),
				)
			}
		}
	}
	if t.Rows() == 0 {
		return nil
	}
	t.Footnotes = []string{fmt.Sprintf("Total: %.2f hours.", total/3600)}
	return []block{{table: t}}
}
