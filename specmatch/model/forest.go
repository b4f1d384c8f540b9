package model

import (
	"fmt"
	"math"

	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/specmatch/eval/forest"
)

// Forest is a random forest of a graph's global numbers that takes part in the predictions. Package finetune
// fits it.
type Forest struct {
	// Share is its share in the predictions, from 0 to 1, of all tasks that have none in [Card.Shares]; see
	// [Head.Mix].
	Share float64 `json:"share"`
	// Columns are the ranges of Graph.Globals that it sees, from the first to before the last.
	Columns [][2]int `json:"columns"`
	// Tasks has a forest for each task, or one for all classes. They predict standardised numbers, or
	// probabilities.
	Tasks []*forest.Forest `json:"tasks"`
	// Shift is added to the log-odds of each output, if the loss is balanced.
	Shift []float64 `json:"shift,omitempty"`
}

// check returns an error unless the forest fits the head and the numbers that it sees.
func (f *Forest) check(h Head, n *Numbers) error {
	if !(f.Share >= 0 && f.Share <= 1) || n == nil {
		return fmt.Errorf("a forest with the share %v, of the numbers %v", f.Share, n)
	}
	width := 0
	for _, c := range f.Columns {
		if c[0] < 0 || c[0] >= c[1] || c[1] > n.Size {
			return fmt.Errorf("a forest sees the columns %d to %d of %d", c[0], c[1], n.Size)
		}
		width += c[1] - c[0]
	}
	outputs := 0
	for _, task := range f.Tasks {
		if task == nil {
			return fmt.Errorf("a task without its forest")
		}
		dim, values := task.Size()
		if dim != width {
			return fmt.Errorf("a forest of %d columns for %d", dim, width)
		}
		outputs += values
	}
	if outputs != h.Outputs || len(f.Shift) != 0 && len(f.Shift) != h.Outputs {
		return fmt.Errorf("a forest of %d outputs with %d shifts for %d", outputs, len(f.Shift), h.Outputs)
	}
	return nil
}

// Numbers returns the numbers of some graphs that the forest sees, row by row.
func (f *Forest) Numbers(graphs []*graph.Graph) (numbers []float32) {
	for _, g := range graphs {
		numbers = f.appendNumbers(numbers, g)
	}
	return numbers
}

func (f *Forest) appendNumbers(numbers []float32, g *graph.Graph) []float32 {
	for _, c := range f.Columns {
		numbers = append(numbers, g.Globals[c[0]:c[1]]...)
	}
	return numbers
}

// isRange reports whether the columns follow each other.
func (f *Forest) isRange() bool {
	for i, c := range f.Columns {
		if i > 0 && c[0] != f.Columns[i-1][1] {
			return false
		}
	}
	return len(f.Columns) > 0
}

// Outputs returns what the forest predicts for n graphs [n×Outputs], as [Head.Mix] takes it: standardised
// numbers, or the log-odds of 1 or of each class against the others. One tree more is as good as said to vote
// for each answer, so that log-odds are finite.
func (f *Forest) Outputs(h Head, graphs []*graph.Graph) []float64 {
	outputs := make([]float64, len(graphs)*h.Outputs)
	var numbers []float32
	isRange := f.isRange()
	for i, g := range graphs {
		if isRange {
			numbers = g.Globals[f.Columns[0][0]:f.Columns[len(f.Columns)-1][1]]
		} else {
			numbers = f.appendNumbers(numbers[:0], g)
		}
		row := outputs[i*h.Outputs : (i+1)*h.Outputs]
		first := 0 // output of the task
		for _, task := range f.Tasks {
			_, width := task.Size()
			task.Add(row[first:first+width], numbers)
			first += width
		}
		if h.Kind != Regression {
			f.setLogOdds(row)
		}
	}
	return outputs
}

// setLogOdds replaces the probabilities of a graph by log-odds.
func (f *Forest) setLogOdds(row []float64) {
	first := 0 // output of the task
	for _, task := range f.Tasks {
		_, width := task.Size()
		trees := float64(task.Trees())
		for k := first; k < first+width; k++ {
			row[k] = math.Log(row[k]*trees+1) - math.Log((1-row[k])*trees+1)
			if f.Shift != nil {
				row[k] += f.Shift[k]
			}
		}
		first += width
	}
}
