package finetune

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/gnn/dataset/records"
	"github.com/specmatch/specmatch/specmatch/check"
	"github.com/specmatch/specmatch/specmatch/model"
)

// findCopies groups the records of equal molecules, however their SMILES are written, or of
// graphs that are isomorphic for the model, which may not read the labels of their edges.
func (x *Examples) findCopies(ctx context.Context) error {
	if x.Content == records.Graphs {
		graphs := x.Set.Graphs
		if x.Features.Edges == nil {
			graphs = dataset.WithoutEdgeLabels(graphs)
		}
		found, err := dataset.FindCopies(ctx, graphs)
		if err != nil {
			return err
		}
		x.copies = found.Groups
	} else {
		members := map[[16]byte][]int{}
		for i, r := range x.Records {
			members[r.Identity] = append(members[r.Identity], i)
		}
		for i, r := range x.Records {
			if group := members[r.Identity]; len(group) > 1 && group[0] == i {
				x.copies = append(x.copies, group)
			}
		}
	}
	x.copiesOf = slices.Repeat([]int{-1}, len(x.Records))
	for g, group := range x.copies {
		for _, i := range group {
			x.copiesOf[i] = g
		}
	}
	return nil
}

// mergeCopies merges the records of equal molecules or graphs within a part, as Task.Merge says: the first one
// gets the labels, and the others are dropped.
func (x *Examples) mergeCopies(ctx context.Context) error {
	if x.Merge == "" || x.Merge == check.Keep || x.copies == nil {
		return nil
	}
	dropped := map[int]bool{}
	measured := slices.Repeat([]bool{x.Kind == model.Regression}, len(x.Targets))
	for _, group := range x.copies {
		for _, part := range x.byPart(group) {
			var labels [][]string
			for _, i := range part {
				labels = append(labels, x.Records[i].Fields[:len(x.Targets)])
				dropped[i] = true
			}
			x.meanWeight(part)
			merged, losses, ok := check.MergeLabels(labels, measured, x.Merge)
			for _, loss := range losses {
				loss.Lines = x.lines(part)
				x.lost = append(x.lost, loss)
			}
			if ok {
				copy(x.Records[part[0]].Fields, merged)
				delete(dropped, part[0])
			}
		}
	}
	var kept []int
	var table []*records.Record
	for i, r := range x.Records {
		if !dropped[i] {
			kept = append(kept, i)
			table = append(table, r)
		}
	}
	for name, first := range x.first {
		x.first[name], _ = slices.BinarySearch(kept, first)
	}
	x.Set.Graphs = pick(x.Set.Graphs, kept)
	x.pickWeights(kept)
	x.Records = table
	x.merged = len(dropped)
	x.copies = nil
	return x.findCopies(ctx)
}

// byPart divides a group of records into those of each file and, if a column splits the records, of each part.
func (x *Examples) byPart(group []int) (parts [][]int) {
	places := map[string]int{}
	for _, i := range group {
		key := x.filePart(i)
		if x.Split != "" && !isSplit(x.Split) {
			text := x.Records[i].Fields[len(x.Targets)]
			part, _ := check.Part(text) // others are refused later
			key += part
		}
		place, ok := places[key]
		if !ok {
			place = len(parts)
			places[key] = place
			parts = append(parts, nil)
		}
		parts[place] = append(parts[place], i)
	}
	return parts
}

// Overlap counts the validation and test records that also occur in the training set: as the same molecule,
// however its SMILES is written, or as an isomorphic graph.
func (x *Examples) Overlap(s dataset.Split) (valid, test int) {
	trained := map[int]bool{}
	for _, i := range s.Train {
		trained[x.copiesOf[i]] = true
	}
	trained[-1] = false // records without a copy
	count := func(part []int) (n int) {
		for _, i := range part {
			if trained[x.copiesOf[i]] {
				n++
			}
		}
		return n
	}
	return count(s.Valid), count(s.Test)
}

// CountSalts counts the molecules of several fragments, unless only the largest fragment is seen.
func (x *Examples) CountSalts() (n int) {
	if x.Set.Standard.LargestFragment {
		return 0
	}
	for _, r := range x.Records {
		if strings.Contains(r.SMILES, ".") {
			n++
		}
	}
	return n
}

// Replicates describes, in a line for each target, the records of one molecule or graph: how many
// are labelled more than once, and how far their labels agree. It returns nothing if there are
// none.
func (x *Examples) Replicates() (lines []string) {
	for task, target := range x.Targets {
		r := x.replicates(task)
		if r.groups == 0 {
			continue
		}
		line := fmt.Sprintf("%d %s have %d labels of %s in all",
			r.groups, x.Content, r.labels, target)
		switch {
		case r.conflicts == 0:
			line += ", which agree"
		case x.Kind == model.Regression:
			line += fmt.Sprintf("; those of %d differ, with a standard deviation of %.3g over all "+
				"replicates, most for the "+
				"%s",
				r.conflicts,
				math.Sqrt(r.squares/float64(r.labels-r.groups)),
				x.lines(r.worst),
			)
		default:
			line += fmt.Sprintf("; those of %d contradict each other, such as the %s",
				r.conflicts, x.lines(r.worst))
		}
		lines = append(lines, line)
	}
	return lines
}

// Losses describes the labels that merging lost, in a line for each target and reason.
func (x *Examples) Losses() []string { return check.DescribeLosses(x.Targets, x.lost) }

// Outliers describes, in a line for each target that is a number, the records beyond [check.Fences]. It returns nothing
// if there are none.
func (x *Examples) Outliers() (lines []string) {
	if x.Kind != model.Regression {
		return nil
	}
	data := x.Data(dataset.Split{})
	for task, target := range x.Targets {
		y := make([]float64, len(x.Records))
		for i := range y {
			y[i] = data.exact(i, len(x.Targets))[task]
		}
		low, high := check.Fences(slices.DeleteFunc(slices.Clone(y), math.IsNaN))
		var beyond []int
		for i, v := range y {
			if v < low || v > high {
				beyond = append(beyond, i)
			}
		}
		if len(beyond) > 0 {
			lines = append(lines, fmt.Sprintf("%d labels of %s are more than three interquartile ranges from the "+
				"quartiles, such as %g (%s)", len(beyond), target, y[beyond[0]], x.lines(beyond)))
		}
	}
	return lines
}

// RepeatedIDs describes ids that several records have: rows of a table of predictions do not tell these apart. It
// returns nothing if each record has one of its own. Records of several files may have the same number.
func (x *Examples) RepeatedIDs() (lines []string) {
	records := map[string][]int{}
	for i, r := range x.Records {
		records[r.ID] = append(records[r.ID], i)
	}
	isNamed := func(i int) bool {
		r := x.Records[i]
		return r.ID != strconv.Itoa(r.Number)
	}
	count := 0
	first := len(x.Records) // of the records of the first such id
	for _, group := range records {
		if len(group) > 1 && slices.ContainsFunc(group, isNamed) {
			count++
			first = min(first, group[0])
		}
	}
	if count == 0 {
		return nil
	}
	id := x.Records[first].ID
	line := fmt.Sprintf(
		"%d ids are there more than once, such as %q (%s)",
		count, id, x.lines(records[id]),
	)
	return []string{line}
}

// replicates are the records of one molecule or graph with a label of a task each.
type replicates struct {
	groups, labels int     // molecules or graphs with two labels or more, and their labels
	conflicts      int     // groups whose labels differ
	squares        float64 // of the deviations from the mean of each group
	worst          []int   // records of the group with the widest range, of classes the first
}

func (x *Examples) replicates(task int) (r replicates) {
	data := x.Data(dataset.Split{})
	widest := 0.0
	for _, group := range x.copies {
		var y []float64
		var labelled []int
		for _, i := range group {
			if v := data.exact(i, len(x.Targets))[task]; !math.IsNaN(v) {
				y = append(y, v)
				labelled = append(labelled, i)
			}
		}
		if len(y) < 2 {
			continue
		}
		r.groups++
		r.labels += len(y)
		mean := 0.0
		for _, v := range y {
			mean += v / float64(len(y))
		}
		for _, v := range y {
			r.squares += (v - mean) * (v - mean)
		}
		spread := slices.Max(y) - slices.Min(y)
		if spread == 0 {
			continue
		}
		r.conflicts++
		if x.Kind != model.Regression {
			spread = 1 // the numbers of classes have no distance
		}
		if spread > widest {
			widest = spread
			r.worst = labelled
		}
	}
	return r
}

// linesShown bounds the lines of a message.
const linesShown = 5

// lines names the lines of some records.
func (x *Examples) lines(group []int) string {
	var numbers []string
	for _, i := range group {
		if len(numbers) == linesShown {
			numbers = append(numbers, "…")
			break
		}
		line := fmt.Sprint(x.Records[i].Line)
		if x.filePart(i) != "" {
			line += " of " + x.file(i)
		}
		numbers = append(numbers, line)
	}
	return "lines " + strings.Join(numbers, ", ")
}
