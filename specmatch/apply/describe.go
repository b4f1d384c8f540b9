package apply

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/gnn/molecule/feature"
	"github.com/specmatch/specmatch/specmatch/model"
	"github.com/specmatch/specmatch/tensor/files"
)

// Describe returns lines that say what a model is, what it expects and what it was trained on. Text
// from the model is made [files.Printable].
func Describe(c model.Card) string {
	var b strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-11s %s\n", name, files.Printable(fmt.Sprintf(format, args...)))
	}
	_, values := c.Encoder.Size()
	line("encoder", "%s, %d layers of width %d, %d values; vectors of width %d",
		c.Encoder.Kind, c.Encoder.Layers, c.Encoder.Hidden, values, c.Encoder.Width())
	switch input, err := Reads(c); {
	case err != nil:
		line("reads", "%v", err)
	case input.Features == nil:
		line("reads", "%s: .csv with a column of SMILES, .smi, .sdf", input.Content)
		line("atoms", "%s", cmp.Or(input.Atoms, feature.Hu.Name))
		if input.Standard.LargestFragment {
			line("", "of the largest fragment")
		}
		if input.Standard.Neutralise {
			line("", "of a neutral form")
		}
	default:
		line("reads", "%s: .jsonl, .graphml, .csv of edges, TUDataset's .zip or folder", input.Content)
		line("features", "%s", describeColumns(*input.Features))
		if reads := c.Provenance.Reads; reads != "" {
			line("", "from %s", reads)
		}
	}
	if r := c.Encoder.Readout; r != "" {
		line("", "read out as %s", r)
	}
	if c.Encoder.Sum {
		line("", "the sum over the atoms, not their mean")
	}
	if c.SelfLoops {
		line("", "graphs are seen with self-loops")
	}
	describePredictions(c, line)
	p := c.Provenance
	for _, d := range p.Data {
		line("trained on", "%s %s", d.Name, d.SHA256)
	}
	if p.Method != "" {
		line("by", "%s, seed %d, %d epochs", p.Method, p.Seed, p.Epochs)
	}
	for _, name := range slices.Sorted(maps.Keys(p.Options)) {
		line("", "%s %s", name, p.Options[name])
	}
	line("software", "%s", p.Software)
	return b.String()
}

// describePredictions adds the lines on what a model predicts.
func describePredictions(c model.Card, line func(name, format string, args ...any)) {
	h := c.Head
	if h == nil {
		line("predicts", "nothing: it embeds")
		return
	}
	line("predicts", "%s: %s", h.Kind, strings.Join(h.Columns(), ", "))
	if c.Beside == nil {
		return
	}
	line("", "from the encoder's vector and %s", strings.Join(c.Beside.Features, ", "))
	if c.Beside.Linear {
		line("", "mixed with a linear model of these")
	}
	if s := c.Shares; s != nil {
		line("", "share of the linear model: %s", describeShares(h.Columns(), s.Linear))
		line("", "share of the forest: %s", describeShares(h.Columns(), s.Forest))
	}
}

// describeShares names the share of each task.
func describeShares(tasks []string, shares []float64) string {
	if len(shares) == 0 {
		return "the same for all"
	}
	var parts []string
	for k, share := range shares {
		parts = append(parts, fmt.Sprintf("%s %.2f", tasks[k], share))
	}
	return strings.Join(parts, ", ")
}

func describeColumns(c graph.Columns) string {
	var parts []string
	if c.Attributes > 0 {
		parts = append(parts, fmt.Sprintf("%d attributes of nodes", c.Attributes))
		if c.Names != nil {
			parts[0] += fmt.Sprintf(" (%q)", c.Names)
		}
	}
	for _, l := range c.Labels {
		parts = append(parts, fmt.Sprintf("labels %v", l))
	}
	if c.Degrees > 0 {
		parts = append(parts, fmt.Sprintf("degrees up to %d", c.Degrees-1))
	}
	if c.DegreeColumns > 0 {
		parts = append(parts, fmt.Sprintf("%d columns of the degree", c.DegreeColumns))
	}
	if parts == nil {
		parts = []string{"none: every node is alike"}
	}
	switch {
	case c.EdgeLabels() > 0:
		parts = append(parts, fmt.Sprintf("labels of edges %v", *c.Edges.Labels))
	case c.EdgeWeights():
		parts = append(parts, "weights of edges")
	}
	return strings.Join(parts, ", ")
}
