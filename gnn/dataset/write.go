package dataset

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/specmatch/specmatch/gnn/graph"
)

// WriteTU writes the data set in TUDataset format to the new folder dir/NAME, for other
// programs and for [Open]. Edges are listed by target, and node and class labels have
// their original values; texts are numbers, those of [LabelColumn] and ClassValues. Weights of edges have
// no place in the format, and are an error. The folder appears when it is complete; it is an error if it
// exists already.
func WriteTU(dir string, ds *Dataset) (err error) {
	if err := CheckName(ds.Name); err != nil {
		return err
	}
	if err := ds.checkLayout(); err != nil {
		return err
	}
	final := filepath.Join(dir, ds.Name)
	if _, err := os.Lstat(final); err == nil {
		return fmt.Errorf("dataset: %s: %w", final, fs.ErrExist)
	}
	tmp := filepath.Join(dir, fmt.Sprintf(".%s-%d.tmp", ds.Name, os.Getpid()))
	if err := os.Mkdir(tmp, 0o777); err != nil {
		return fmt.Errorf("dataset: %w", err)
	}
	defer func() {
		if err != nil {
			os.RemoveAll(tmp)
		}
	}()
	for name, write := range ds.parts() {
		f, err := os.Create(filepath.Join(tmp, ds.Name+"_"+name+".txt"))
		if err != nil {
			return fmt.Errorf("dataset: %w", err)
		}
		w := bufio.NewWriterSize(f, 64<<10)
		for k, g := range ds.Graphs {
			write(w, k, g)
		}
		if err := errors.Join(w.Flush(), f.Close()); err != nil {
			return fmt.Errorf("dataset: %w", err)
		}
	}
	if err := os.Rename(tmp, final); err != nil {
		return fmt.Errorf("dataset: %w", err)
	}
	return nil
}

// parts returns the files of the set: for each part of a name, the function that writes the lines of
// graph k. It is called for one graph after the other.
func (d *Dataset) parts() map[string]func(w *bufio.Writer, k int, g *graph.Graph) {
	base := 1 // number of the graph's first node
	parts := map[string]func(w *bufio.Writer, k int, g *graph.Graph){
		"A": func(w *bufio.Writer, _ int, g *graph.Graph) {
			for i := range g.Nodes() {
				for _, j := range g.Neighbors(i) {
					writeInts(w, base+int(j), base+i)
				}
			}
			base += g.Nodes()
		},
		"graph_indicator": func(w *bufio.Writer, k int, g *graph.Graph) {
			for range g.Nodes() {
				writeInts(w, k+1)
			}
		},
	}
	// Several classes, and targets, are columns of graph_labels or graph_attributes.
	if d.Classes > 1 || len(d.Targets) == 0 {
		parts["graph_labels"] = func(w *bufio.Writer, _ int, g *graph.Graph) {
			writeInts(w, d.ClassValues[g.Class])
		}
	}
	columns := map[string][]Target{}
	for _, t := range d.Targets {
		part := "graph_attributes"
		if strings.HasPrefix(t.Name, "class") {
			part = "graph_labels"
		}
		columns[part] = append(columns[part], t)
	}
	for part, targets := range columns {
		format := byte('g')
		if part == "graph_labels" {
			format = 'f' // whole numbers, which are read without an exponent
		}
		parts[part] = func(w *bufio.Writer, k int, _ *graph.Graph) {
			writeTargets(w, targets, k, format)
		}
	}
	if len(d.NodeLabels) > 0 {
		parts["node_labels"] = d.writeNodeLabels
	}
	if d.NodeAttributes > 0 {
		parts["node_attributes"] = d.writeNodeAttributes
	}
	if len(d.EdgeLabels) > 0 {
		parts["edge_labels"] = d.writeEdgeLabels
	}
	return parts
}

func writeTargets(w *bufio.Writer, targets []Target, k int, format byte) {
	for i, t := range targets {
		if i > 0 {
			w.WriteString(", ")
		}
		w.Write(strconv.AppendFloat(w.AvailableBuffer(), t.Values[k], format, -1, 64))
	}
	w.WriteByte('\n')
}

func (d *Dataset) writeNodeLabels(w *bufio.Writer, _ int, g *graph.Graph) {
	row := make([]int, len(d.NodeLabels))
	for i := range g.Nodes() {
		for k, c := range d.NodeLabels {
			row[k] = c.Min + d.category(g, i, k)
		}
		writeInts(w, row...)
	}
}

func (d *Dataset) writeNodeAttributes(w *bufio.Writer, _ int, g *graph.Graph) {
	for i := range g.Nodes() {
		for k, v := range g.X.Dense[i*g.X.Width:][:d.NodeAttributes] {
			if k > 0 {
				w.WriteString(", ")
			}
			w.Write(strconv.AppendFloat(w.AvailableBuffer(), float64(v), 'g', -1, 32))
		}
		w.WriteByte('\n')
	}
}

// writeEdgeLabels splits the categories of edges into their columns.
func (d *Dataset) writeEdgeLabels(w *bufio.Writer, _ int, g *graph.Graph) {
	row := make([]int, len(d.EdgeLabels))
	for _, v := range g.EdgeLabel {
		for k := len(row) - 1; k >= 0; k-- {
			c := d.EdgeLabels[k]
			row[k] = c.Min + int(v)%c.Width
			v /= int32(c.Width)
		}
		writeInts(w, row...)
	}
}

// writeInts writes a line.
func writeInts(w *bufio.Writer, values ...int) {
	for k, v := range values {
		if k > 0 {
			w.WriteString(", ")
		}
		w.Write(strconv.AppendInt(w.AvailableBuffer(), int64(v), 10))
	}
	w.WriteByte('\n')
}

// checkLayout returns an error unless the graphs are as the set describes them, which
// those of a set that a caller made might not be.
func (d *Dataset) checkLayout() error {
	if d.Edges != nil && d.Edges.Weights {
		return fmt.Errorf("dataset: %s: edges have weights, for which TUDataset's format has no file", d.Name)
	}
	c := d.columns()
	c.DegreeColumns = 0
	if c.Width() != d.FeatureWidth {
		return fmt.Errorf("dataset: %s: FeatureWidth is %d, but NodeAttributes and NodeLabels make %d",
			d.Name, d.FeatureWidth, c.Width())
	}
	if len(d.ClassValues) != d.Classes {
		return fmt.Errorf("dataset: %s: %d ClassValues of %d classes",
			d.Name, len(d.ClassValues), d.Classes)
	}
	for _, t := range d.Targets {
		if len(t.Values) != len(d.Graphs) {
			return fmt.Errorf("dataset: %s: %d values of the target %s of %d graphs",
				d.Name, len(t.Values), t.Name, len(d.Graphs))
		}
	}
	dense := d.NodeAttributes > 0 || len(d.NodeLabels) > 1
	categories := d.EdgeCategories()
	for k, g := range d.Graphs {
		err := g.Validate()
		switch {
		case err != nil:
		case g.Nodes() == 0:
			err = errors.New("has no nodes")
		case g.Class >= d.Classes:
			err = fmt.Errorf("class %d of %d", g.Class, d.Classes)
		case g.X.Width != d.FeatureWidth:
			err = fmt.Errorf("feature width %d, want %d", g.X.Width, d.FeatureWidth)
		case g.X.OneHot() == dense:
			err = fmt.Errorf(
				"features are dense (%t), but by NodeAttributes and NodeLabels they should not be (%t)",
				!g.X.OneHot(), !dense,
			)
		case categories > 0 && len(g.EdgeLabel) != g.Entries():
			err = fmt.Errorf("%d edge labels for %d entries", len(g.EdgeLabel), g.Entries())
		case categories > 0:
			if i := slices.IndexFunc(
				g.EdgeLabel, func(v int32) bool { return v < 0 || int(v) >= categories },
			); i >= 0 {
				err = fmt.Errorf("edge label %d of %d categories", g.EdgeLabel[i], categories)
			}
		}
		if err != nil {
			return fmt.Errorf("dataset: %s: graph %d: %w", d.Name, k, err)
		}
	}
	return nil
}
