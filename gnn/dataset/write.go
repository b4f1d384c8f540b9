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

// WriteTU writes the data set in TUDataset format to the new folder dir/NAME,
// for other programs to read and for [Open] to read back. Edges are listed by
// target, and node and class labels have their original values. The folder
// appears when it is complete; it is an error if it exists already.
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

	columns := map[bool][]Target{} // that are of _graph_labels.txt
	for _, t := range ds.Targets {
		label := strings.HasPrefix(t.Name, "class")
		columns[label] = append(columns[label], t)
	}
	targets := func(w *bufio.Writer, k int, list []Target) {
		for i, t := range list {
			if i > 0 {
				w.WriteString(", ")
			}
			w.Write(strconv.AppendFloat(w.AvailableBuffer(), t.Values[k], 'g', -1, 64))
		}
		w.WriteByte('\n')
	}
	base := 1 // number of the graph's first node
	row := make([]int, 0, 8)
	for _, part := range []struct {
		name string
		has  bool
		// write writes the lines of graph k.
		write func(w *bufio.Writer, k int, g *graph.Graph)
	}{
		{"A", true, func(w *bufio.Writer, _ int, g *graph.Graph) {
			for i := range g.Nodes() {
				for _, j := range g.Neighbors(i) {
					writeInts(w, base+int(j), base+i)
				}
			}
			base += g.Nodes()
		}},
		{"graph_indicator", true, func(w *bufio.Writer, k int, g *graph.Graph) {
			for range g.Nodes() {
				writeInts(w, k+1)
			}
		}},
		{
			"graph_labels",
			ds.Classes > 1 || len(ds.Targets) == 0,
			func(w *bufio.Writer, _ int, g *graph.Graph) { writeInts(w, ds.ClassValues[g.Class]) },
		},
		{
			"graph_labels",
			columns[true] != nil,
			func(w *bufio.Writer, k int, _ *graph.Graph) { targets(w, k, columns[true]) },
		},
		{
			"graph_attributes",
			columns[false] != nil,
			func(w *bufio.Writer, k int, _ *graph.Graph) { targets(w, k, columns[false]) },
		},
		{"node_labels", len(ds.NodeLabels) > 0, func(w *bufio.Writer, _ int, g *graph.Graph) {
			for i := range g.Nodes() {
				row = row[:0]
				for k, c := range ds.NodeLabels {
					row = append(row, c.Min+ds.category(g, i, k))
				}
				writeInts(w, row...)
			}
		}},
		{"node_attributes", ds.NodeAttributes > 0, func(w *bufio.Writer, _ int, g *graph.Graph) {
			for i := range g.Nodes() {
				for k, v := range g.X.Dense[i*g.X.Width:][:ds.NodeAttributes] {
					if k > 0 {
						w.WriteString(", ")
					}
					w.Write(strconv.AppendFloat(w.AvailableBuffer(), float64(v), 'g', -1, 32))
				}
				w.WriteByte('\n')
			}
		}},
		{"edge_labels", len(ds.EdgeLabels) > 0, func(w *bufio.Writer, _ int, g *graph.Graph) {
			for _, v := range g.EdgeLabel {
				row = append(row[:0], make([]int, len(ds.EdgeLabels))...)
				for k := len(row) - 1; k >= 0; k-- { // v taken apart again
					c := ds.EdgeLabels[k]
					row[k] = c.Min + int(v)%c.Width
					v /= int32(c.Width)
				}
				writeInts(w, row...)
			}
		}},
	} {
		if !part.has {
			continue
		}
		f, err := os.Create(filepath.Join(tmp, ds.Name+"_"+part.name+".txt"))
		if err != nil {
			return fmt.Errorf("dataset: %w", err)
		}
		w := bufio.NewWriterSize(f, 64<<10)
		for k, g := range ds.Graphs {
			part.write(w, k, g)
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

func writeInts(w *bufio.Writer, values ...int) {
	for k, v := range values {
		if k > 0 {
			w.WriteString(", ")
		}
		w.Write(strconv.AppendInt(w.AvailableBuffer(), int64(v), 10))
	}
	w.WriteByte('\n')
}

// checkLayout reports whether the graphs are as the set describes them, which
// the set of a caller's own making might not be.
func (d *Dataset) checkLayout() error {
	c := d.columns()
	c.DegreeColumns = 0
	if c.Width() != d.FeatureWidth {
		return fmt.Errorf("dataset: %s: FeatureWidth is %d, but NodeAttributes and NodeLabels make %d",
			d.Name, d.FeatureWidth, c.Width())
	}
	if len(d.ClassValues) != d.Classes {
		return fmt.Errorf("dataset: %s: %d ClassValues of %d classes", d.Name, len(d.ClassValues), d.Classes)
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
