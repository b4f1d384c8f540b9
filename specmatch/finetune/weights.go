package finetune

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/specmatch/specmatch/gnn/dataset/records"
	"github.com/specmatch/specmatch/gnn/graph"
)

// readWeights appends the weights of a table, in the last column of its fields, and removes the records of
// weight 0 from the table. Without a column of weights it does nothing.
func (x *Examples) readWeights(t *records.Table, path string) error {
	if x.Weight == "" {
		return nil
	}
	var used []*records.Record
	var graphs []*graph.Graph
	var smiles []string
	for i, r := range t.Records {
		text := strings.TrimSpace(r.Fields[len(r.Fields)-1])
		w, err := strconv.ParseFloat(text, 64)
		if err != nil || !(w >= 0) || w > math.MaxFloat32 {
			return fmt.Errorf("%s:%d: column %s: %q is not a weight; write a number of at least 0",
				path, r.Line, x.Weight, text)
		}
		if w == 0 {
			continue
		}
		used = append(used, r)
		graphs = append(graphs, t.Set.Graphs[i])
		if t.Set.SMILES != nil {
			smiles = append(smiles, t.Set.SMILES[i])
		}
		x.Weights = append(x.Weights, w)
	}
	if len(used) == 0 {
		return fmt.Errorf("%s: column %s: all weights are 0", path, x.Weight)
	}
	t.Records = used
	t.Set.Graphs = graphs
	t.Set.SMILES = smiles
	return nil
}

// noWeights appends n weights of 1, if there is a column of weights.
func (x *Examples) noWeights(n int) {
	if x.Weight != "" {
		x.Weights = append(x.Weights, slices.Repeat([]float64{1}, n)...)
	}
}

// meanWeight gives the first of some records the mean of their weights, as merged records have.
func (x *Examples) meanWeight(samples []int) {
	if x.Weights == nil {
		return
	}
	sum := 0.0
	for _, i := range samples {
		sum += x.Weights[i]
	}
	x.Weights[samples[0]] = sum / float64(len(samples))
}

// pickWeights keeps the weights of some records.
func (x *Examples) pickWeights(samples []int) {
	if x.Weights == nil {
		return
	}
	kept := make([]float64, len(samples))
	for k, i := range samples {
		kept[k] = x.Weights[i]
	}
	x.Weights = kept
}
