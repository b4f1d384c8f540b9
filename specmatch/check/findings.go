package check

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat"
)

// Finding is something odd in a table.
type Finding struct {
	Name string // what it is, in a word or two
	Text string // what was found, with lines of the file, and what can be done
}

// linesShown bounds the lines that a finding names.
const linesShown = 3

// Findings lists what is odd; none for a clean table.
func (t *Table) Findings() (found []Finding) {
	add := func(name, format string, args ...any) {
		found = append(found, Finding{name, fmt.Sprintf(format, args...)})
	}
	if n := len(t.Rejected); n > 0 {
		add("unreadable", "%d of %d records, such as line %d: %s", n, n+len(t.Rows),
			t.Rejected[0].Line, t.Rejected[0].Reason)
	}
	count := func(name string, holds func(r *Row) bool, format string) {
		var rows []int
		for i := range t.Rows {
			if holds(&t.Rows[i]) {
				rows = append(rows, i)
			}
		}
		if len(rows) > 0 {
			add(name, format, len(rows), t.lines(rows))
		}
	}
	count("salts", func(r *Row) bool { return r.salted },
		"%d molecules have several fragments (%s): -largest-fragment keeps one")
	count("charges", func(r *Row) bool { return r.charged },
		"%d molecules have charges that hydrogens can balance (%s): -neutralise removes them")
	count("map numbers", func(r *Row) bool { return r.mapped },
		"%d molecules have atom map numbers (%s), which are ignored")
	found = append(found, t.copies()...)
	for task := range t.Targets {
		found = append(found, t.target(task)...)
	}
	found = append(found, t.parts()...)
	return append(found, t.leaks()...)
}

// lines names the lines of some rows.
func (t *Table) lines(rows []int) string {
	var numbers []string
	for _, i := range rows[:min(linesShown, len(rows))] {
		numbers = append(numbers, fmt.Sprint(t.Rows[i].Line))
	}
	if len(rows) > linesShown {
		numbers = append(numbers, "…")
	}
	return "lines " + strings.Join(numbers, ", ")
}

// copies finds molecules that are there more than once, or that differ in little.
func (t *Table) copies() (found []Finding) {
	describe := func(name string, groups [][]int, what string) {
		if len(groups) == 0 {
			return
		}
		rows := 0
		for _, g := range groups {
			rows += len(g)
		}
		text := fmt.Sprintf("%d %s, in %d records (%s)", len(groups), what, rows, t.lines(groups[0]))
		found = append(found, Finding{name, text})
	}
	smiles := func(r *Row) string { return r.SMILES }
	describe("duplicates", t.groups(smiles), "molecules are there more than once")
	describe("stereo twins", t.twins(func(r *Row) string { return r.flat }),
		"groups of molecules differ in their configuration only")
	describe("salt twins", t.twins(func(r *Row) string { return r.bare }),
		"groups of molecules differ in their counter-ions or charges only")
	return found
}

// twins returns the groups by a key whose rows are not all one molecule.
func (t *Table) twins(key func(r *Row) string) [][]int {
	return slices.DeleteFunc(t.groups(key), func(group []int) bool {
		first := t.Rows[group[0]].SMILES
		return !slices.ContainsFunc(group, func(i int) bool { return t.Rows[i].SMILES != first })
	})
}

// target finds what is odd about the labels of a target.
func (t *Table) target(task int) (found []Finding) {
	name := t.Targets[task]
	add := func(what, format string, args ...any) {
		found = append(found, Finding{what, name + ": " + fmt.Sprintf(format, args...)})
	}
	c := t.column(task)
	given := c.given
	if n := len(t.Rows) - len(given); n > 0 {
		add("missing labels", "%d of %d", n, len(t.Rows))
	}
	classes := slices.Compact(slices.Sorted(slices.Values(given)))
	switch {
	case len(classes) == 1:
		add("constant", "all labels are %q: there is nothing to learn", classes[0])
	case c.isNumeric() && len(c.numbers) < len(given):
		advice := map[string]string{
			"approximations": "have a sign or a unit (%s): write the number alone, or leave the label empty",
			"bounds":         "are bounds (%s): finetune -bounds takes them",
			"decimal commas": "have a decimal comma (%s): write a point",
			"texts":          "are no numbers (%s): correct them, or leave a missing label empty",
		}
		for _, kind := range slices.Sorted(maps.Keys(c.almost)) {
			rows := c.almost[kind]
			where := fmt.Sprintf("such as %q, %s", t.Rows[rows[0]].Labels[task], t.lines(rows))
			add(kind, "%d of %d labels "+advice[kind], len(rows), len(given), where)
		}
	case !c.isNumeric() && len(classes) > len(t.Rows)/2: // more than finetune takes
		add("texts", "%d different texts in %d labels, such as %q, are neither numbers nor classes",
			len(classes), len(given), classes[0])
	case !c.isMeasured():
		if text := imbalance(given, classes); text != "" {
			add("imbalance", "%s", text)
		}
		if text := spellings(classes); text != "" {
			add("spellings", "%s", text)
		}
	default:
		for _, f := range t.spread(task, c.numbers) {
			add(f.Name, "%s", f.Text)
		}
	}
	if text := t.replicates(task, c.isMeasured()); text != "" {
		add("replicates", "%s", text)
	}
	return found
}

// column is what a target has.
type column struct {
	given   []string // labels that are not missing
	numbers []float64
	almost  map[string][]int // see almostNumbers
}

// column returns the labels of a target.
func (t *Table) column(task int) column {
	every := make([]int, len(t.Rows))
	for i := range every {
		every[i] = i
	}
	given, numbers := labelsOf(t.rowsOf(every), task)
	return column{given, numbers, t.almostNumbers(task)}
}

// isNumeric reports whether the labels are numbers but for mistakes, as finetune guesses.
func (c column) isNumeric() bool {
	texts := len(c.almost["texts"])
	numbers := len(c.numbers) - texts
	for _, rows := range c.almost {
		numbers += len(rows)
	}
	return numbers >= texts && (numbers > 0 || len(c.given) == 0)
}

// isMeasured reports whether the labels are measurements, which have a mean: numbers that are not only 0 and 1.
func (c column) isMeasured() bool {
	meant := len(c.almost["bounds"]) + len(c.almost["approximations"]) + len(c.almost["decimal commas"])
	return c.isNumeric() && (meant > 0 || !isBinary(c.numbers))
}

// almostNumbers returns the rows whose label is no number, by what it is instead, with the names of findings.
func (t *Table) almostNumbers(task int) map[string][]int {
	rows := map[string][]int{}
	for i := range t.Rows {
		text := strings.TrimSpace(t.Rows[i].Labels[task])
		_, ok := Number(text)
		kind := "texts"
		switch {
		case ok || IsNumberGap(text):
			continue
		case isBound(text):
			kind = "bounds"
		case IsAlmostBound(text):
			kind = "approximations"
		case HasDecimalComma(text):
			kind = "decimal commas"
		}
		rows[kind] = append(rows[kind], i)
	}
	return rows
}

// spellings describes two classes whose names differ by upper case only, which a fit would keep apart.
func spellings(classes []string) string {
	spelt := map[string]string{}
	for _, class := range classes {
		lower := strings.ToLower(class)
		if first, ok := spelt[lower]; ok {
			return fmt.Sprintf("the classes %q and %q differ in upper case only", first, class)
		}
		spelt[lower] = class
	}
	return ""
}

// imbalance describes classes of which the rarest has less than a tenth of the labels.
func imbalance(labels, classes []string) string {
	if len(classes) > 20 || len(classes) < 2 {
		return ""
	}
	counts := map[string]int{}
	for _, label := range labels {
		counts[label]++
	}
	rarest := slices.MinFunc(classes, func(a, b string) int { return counts[a] - counts[b] })
	share := 100 * float64(counts[rarest]) / float64(len(labels))
	if share >= 10 {
		return ""
	}
	return fmt.Sprintf("%d of %d labels are %s (%.1f %%): -balanced weighs classes alike, and average precision "+
		"says more than accuracy", counts[rarest], len(labels), rarest, share)
}

// spread finds decades and outliers.
func (t *Table) spread(task int, numbers []float64) (found []Finding) {
	if SpansDecades(numbers) {
		low := slices.Min(numbers)
		high := slices.Max(numbers)
		found = append(found, Finding{"decades", fmt.Sprintf("%.4g to %.4g, %.1f decades: finetune tries the "+
			"logarithm", low, high, math.Log10(high/low))})
	}
	low, high := Fences(numbers)
	var rows []int
	for i := range t.Rows {
		if v, ok := Number(t.Rows[i].Labels[task]); ok && (v < low || v > high) {
			rows = append(rows, i)
		}
	}
	if len(rows) > 0 {
		found = append(found, Finding{"outliers", fmt.Sprintf("%d labels are more than three interquartile ranges "+
			"from the quartiles, such as %s (%s)", len(rows), t.Rows[rows[0]].Labels[task], t.lines(rows))})
	}
	return found
}

// leastNumbers is how many numbers a spread can be told of.
const leastNumbers = 20

// SpansDecades reports whether numbers are positive and have a long tail over decades. There, finetune tries the
// logarithm.
func SpansDecades(numbers []float64) bool {
	y := slices.Sorted(slices.Values(numbers))
	n := len(y)
	return n >= leastNumbers && y[0] > 0 && y[n-1-n/100] >= 10*y[n/100] && isSkewed(y)
}

// isSkewed reports whether values have a long tail at their upper end.
func isSkewed(y []float64) bool {
	mean, std := stat.MeanStdDev(y, nil)
	cubes := 0.0
	for _, v := range y {
		cubes += math.Pow((v-mean)/std, 3)
	}
	return cubes/float64(len(y)) > 1
}

// Fences returns the range beyond which a number is an outlier: Tukey's outer fences, three interquartile ranges from
// the quartiles, of the logarithms where numbers span decades. It is infinite for fewer than twenty numbers, and where
// the quartiles are equal.
func Fences(numbers []float64) (low, high float64) {
	y := slices.Sorted(slices.Values(numbers))
	n := len(y)
	if n < leastNumbers || y[n/4] == y[3*n/4] {
		return math.Inf(-1), math.Inf(1)
	}
	low = y[n/4]
	high = y[3*n/4]
	if SpansDecades(numbers) {
		ratio := math.Pow(high/low, 3)
		return low / ratio, high * ratio
	}
	margin := 3 * (high - low)
	return low - margin, high + margin
}

// replicates are the labels of molecules that have several.
type replicates struct {
	molecules int     // with several labels
	conflicts int     // of which the labels differ
	squares   float64 // of the deviations of numbers from the mean of their molecule
	freedom   int
	widest    float64 // distance of two numbers of a molecule
	farthest  []int   // rows of these numbers
	opposed   []int   // rows of the first molecule with other labels that contradict each other
}

// replicates describes the labels of molecules that have several. Those of measurements are numbers or, without any,
// bounds.
func (t *Table) replicates(task int, measured bool) string {
	var r replicates
	for _, group := range t.groups(func(r *Row) string { return r.SMILES }) {
		if measured {
			r.addMeasured(t, task, group)
		} else {
			given, numbers := labelsOf(t.rowsOf(group), task)
			r.add(group, len(given), agree(given, numbers))
		}
	}
	switch {
	case r.molecules == 0:
		return ""
	case r.conflicts == 0:
		return fmt.Sprintf("%d molecules have several labels, which agree", r.molecules)
	case r.farthest != nil:
		return fmt.Sprintf("those of %d of %d molecules differ, with a standard deviation of %.3g, most for %s "+
			"(%.4g apart): no model errs less than that", r.conflicts, r.molecules,
			math.Sqrt(r.squares/float64(r.freedom)), t.lines(r.farthest), r.widest)
	}
	return fmt.Sprintf("those of %d of %d molecules contradict each other, such as %s", r.conflicts, r.molecules,
		t.lines(r.opposed))
}

// add counts a molecule by labels that have no distance.
func (r *replicates) add(rows []int, labels int, agree bool) {
	if labels < 2 {
		return
	}
	r.molecules++
	if agree {
		return
	}
	r.conflicts++
	if r.opposed == nil {
		r.opposed = rows
	}
}

// addMeasured counts a molecule by its numbers or, without any, by its bounds.
func (r *replicates) addMeasured(t *Table, task int, group []int) {
	var numbers []float64
	var numbered []int // rows
	var bounds []string
	var bounded []int // rows
	for _, i := range group {
		text := strings.TrimSpace(t.Rows[i].Labels[task])
		y, ok := Number(text)
		switch {
		case ok:
			numbers = append(numbers, y)
			numbered = append(numbered, i)
		case isBound(text):
			bounds = append(bounds, text)
			bounded = append(bounded, i)
		}
	}
	switch len(numbers) {
	case 0:
		_, why := tightest(bounds)
		r.add(bounded, len(bounds), why != contradiction)
		return
	case 1:
		return
	}
	r.molecules++
	mean := centre(numbers, Mean)
	for _, y := range numbers {
		r.squares += (y - mean) * (y - mean)
	}
	r.freedom += len(numbers) - 1
	spread := slices.Max(numbers) - slices.Min(numbers)
	if spread > 0 {
		r.conflicts++
	}
	if spread > r.widest {
		r.widest = spread
		r.farthest = numbered
	}
}

// parts finds records whose part no fit takes.
func (t *Table) parts() (found []Finding) {
	if t.Split == "" {
		return nil
	}
	var missing []int
	var unknown []int
	for i := range t.Rows {
		part := t.Rows[i].Part
		_, ok := Part(part)
		switch {
		case part == "":
			missing = append(missing, i)
		case !ok:
			unknown = append(unknown, i)
		}
	}
	if len(missing) > 0 {
		found = append(found, Finding{"missing parts", fmt.Sprintf("%s: %d of %d records have none (%s): finetune "+
			"-split %[1]s refuses them; write train, valid or test", t.Split, len(missing), len(t.Rows),
			t.lines(missing))})
	}
	isKnown := len(missing)+len(unknown) < len(t.Rows) // else the parts are of another kind, such as folds
	if len(unknown) > 0 && isKnown {
		found = append(found, Finding{"unknown parts", fmt.Sprintf("%s: %d of %d records are of others, such as %q "+
			"(%s): finetune -split %[1]s takes train, valid and test", t.Split, len(unknown), len(t.Rows),
			t.Rows[unknown[0]].Part, t.lines(unknown))})
	}
	return found
}

// leaks counts the molecules that two parts have in common.
func (t *Table) leaks() (found []Finding) {
	bare := map[string]map[string]bool{}   // parts of molecules without counter-ions and charges
	listed := map[string]map[string]bool{} // parts of molecules
	for i := range t.Rows {
		r := &t.Rows[i]
		addPart(bare, r.bare, r.Part)
		addPart(listed, r.SMILES, r.Part)
	}
	type leak struct {
		rows  []int
		exact int
	}
	leaks := map[[2]string]*leak{}
	for i := range t.Rows {
		r := &t.Rows[i]
		for part := range bare[r.bare] {
			if part >= r.Part || part == "" { // a record without a part is in none
				continue
			}
			pair := [2]string{part, r.Part}
			if leaks[pair] == nil {
				leaks[pair] = new(leak)
			}
			leaks[pair].rows = append(leaks[pair].rows, i)
			if listed[r.SMILES][part] {
				leaks[pair].exact++
			}
		}
	}
	for _, pair := range slices.SortedFunc(maps.Keys(leaks), comparePairs) {
		l := leaks[pair]
		text := fmt.Sprintf("%d records of %s are molecules of %s, too, and %d more but for counter-ions or "+
			"charges (%s)",
			l.exact, pair[1], pair[0], len(l.rows)-l.exact, t.lines(l.rows))
		found = append(found, Finding{"leakage", text})
	}
	return found
}

func comparePairs(a, b [2]string) int { return slices.Compare(a[:], b[:]) }

// addPart notes that a part has a molecule.
func addPart(parts map[string]map[string]bool, molecule, part string) {
	if parts[molecule] == nil {
		parts[molecule] = map[string]bool{}
	}
	parts[molecule][part] = true
}
