package check

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Loss is a label of a molecule that merging lost.
type Loss struct {
	Target int      // its position
	Values []string // the molecule's labels that are not missing
	Lines  string   // their lines, for messages; [MergeLabels] does not know them

	why loss
}

// loss says why labels are lost: what molecules have, and what can be done.
type loss string

const (
	noLoss        loss = ""
	contradiction loss = "have no label, as their bounds contradict each other: correct them, or take -merge drop"
	bothSides     loss = "have no label, as no single one is a bound on both sides: leave one of the bounds empty"
	unread        loss = "have labels that are no numbers, which do not count: write the number alone"
	unreadAll     loss = "have no label, as theirs are no numbers: write the number alone"
	tie           loss = "have no label, as several classes are the most frequent: correct them, or take -merge drop"
)

// lossesShown bounds the molecules that a message about losses names, and the labels of each.
const lossesShown = 3

// DescribeLosses describes losses, in a line for each target and reason.
func DescribeLosses(targets []string, losses []Loss) (lines []string) {
	for target, name := range targets {
		for _, why := range []loss{contradiction, bothSides, unread, unreadAll, tie} {
			var molecules []string
			for _, l := range losses {
				if l.Target == target && l.why == why {
					molecules = append(molecules, fmt.Sprintf("[%s] (%s)", l.labels(), l.Lines))
				}
			}
			count := len(molecules)
			if count == 0 {
				continue
			}
			if count > lossesShown {
				molecules = append(molecules[:lossesShown], "…")
			}
			line := fmt.Sprintf("%s: %d molecules %s: %s", name, count, why, strings.Join(molecules, ", "))
			lines = append(lines, line)
		}
	}
	return lines
}

// labels names the lost labels, of which there may be one for each row of a file.
func (l *Loss) labels() string {
	var names []string
	for _, label := range l.Values[:min(lossesShown, len(l.Values))] {
		names = append(names, strconv.Quote(label))
	}
	if len(l.Values) > lossesShown {
		names = append(names, "…")
	}
	return strings.Join(names, " ")
}

// MergeLabels returns the labels that stand for some rows of labels of one molecule, which has at least one row,
// and those that are lost; ok is false if the molecule is dropped. measured says of each target whether its labels
// are measurements, which have a mean, and not classes. Missing labels do not count, and bounds count with Drop only,
// or where there is no number: there, the tightest one stands for all.
func MergeLabels(rows [][]string, measured []bool, merge Merge) (labels []string, losses []Loss, ok bool) {
	for target := range rows[0] {
		given, numbers := labelsOf(rows, target)
		label := strings.Join(given[:min(1, len(given))], "")
		why := noLoss
		switch {
		case merge == Drop:
			if !agree(given, numbers) {
				return nil, nil, false
			}
		case measured[target]:
			label, why = mergeMeasured(given, numbers, merge)
		default:
			label, why = mergeClasses(given, numbers)
		}
		labels = append(labels, label)
		if why != noLoss {
			losses = append(losses, Loss{Target: target, Values: given, why: why})
		}
	}
	return labels, losses, true
}

// mergeMeasured returns the label that stands for labels of one molecule, of which some are numbers.
func mergeMeasured(given []string, numbers []float64, merge Merge) (label string, why loss) {
	var exact, bounds, texts []string
	for _, text := range given {
		_, isNumber := Number(text)
		switch {
		case isNumber:
			exact = append(exact, text)
		case isBound(text):
			bounds = append(bounds, text)
		case !IsNumberGap(text):
			texts = append(texts, text)
		}
	}
	switch {
	case len(exact) > 0 && agree(exact, numbers):
		label = exact[0]
	case len(exact) > 0: // which say more than bounds
		label = strconv.FormatFloat(centre(numbers, merge), 'g', -1, 64)
	case len(bounds) > 0:
		label, why = tightest(bounds)
	case agree(given, nil):
		return strings.Join(given[:min(1, len(given))], ""), noLoss
	}
	switch {
	case why != noLoss || len(texts) == 0:
		return label, why
	case label == "":
		return label, unreadAll
	}
	return label, unread
}

// tightest returns the bound that implies all others, if they are on one side.
func tightest(bounds []string) (label string, why loss) {
	var lower, upper float64
	var least, most string // labels that say so
	for _, text := range bounds {
		side, y, _ := Bound(text)
		switch {
		case side > 0 && (least == "" || y > lower):
			lower = y
			least = text
		case side < 0 && (most == "" || y < upper):
			upper = y
			most = text
		}
	}
	switch {
	case most == "":
		return least, noLoss
	case least == "":
		return most, noLoss
	case lower > upper:
		return "", contradiction
	}
	return "", bothSides
}

// mergeClasses returns the most frequent label.
func mergeClasses(given []string, numbers []float64) (label string, why loss) {
	if len(numbers) > 0 {
		given = slices.DeleteFunc(slices.Clone(given), IsAlmostBound)
	}
	switch {
	case len(given) == 0:
		return "", noLoss
	case agree(given, numbers):
		return given[0], noLoss
	}
	label = majority(given)
	if label == "" {
		why = tie
	}
	return label, why
}

// agree reports whether labels, of which some are numbers, are the same one, however it is written.
func agree(given []string, numbers []float64) bool {
	if len(given) == 0 {
		return true
	}
	if len(numbers) == len(given) {
		return slices.Min(numbers) == slices.Max(numbers)
	}
	isOther := func(label string) bool { return label != given[0] }
	return !slices.ContainsFunc(given, isOther)
}

func isBinary(numbers []float64) bool {
	return !slices.ContainsFunc(numbers, func(y float64) bool { return y != 0 && y != 1 })
}

// majority returns the most frequent label, or "" if several are.
func majority(labels []string) (winner string) {
	counts := map[string]int{}
	for _, label := range labels {
		counts[label]++
	}
	largest := 0
	for _, label := range labels {
		switch n := counts[label]; {
		case n > largest:
			largest = n
			winner = label
		case n == largest && label != winner:
			winner = ""
		}
	}
	return winner
}

// centre returns the mean or the median.
func centre(numbers []float64, merge Merge) float64 {
	if merge == Median {
		sorted := slices.Sorted(slices.Values(numbers))
		return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
	}
	sum := 0.0
	for _, y := range numbers {
		sum += y
	}
	return sum / float64(len(numbers))
}
