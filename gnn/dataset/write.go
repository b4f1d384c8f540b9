package dataset

import (
	"bufio"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

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

	write := func(part string, body func(w *bufio.Writer)) {
		if err == nil {
			err = writeFile(filepath.Join(tmp, ds.Name+"_"+part+".txt"), body)
		}
	}
	write("A", func(w *bufio.Writer) {
		base := 1
		for _, g := range ds.Graphs {
			for i := range g.Nodes() {
				for _, j := range g.Neighbors(i) {
					writeInt(w, base+int(j))
					w.WriteString(", ")
					writeInt(w, base+i)
					w.WriteByte('\n')
				}
			}
			base += g.Nodes()
		}
	})
	write("graph_indicator", func(w *bufio.Writer) {
		for k, g := range ds.Graphs {
			for range g.Nodes() {
				writeInt(w, k+1)
				w.WriteByte('\n')
			}
		}
	})
	write("graph_labels", func(w *bufio.Writer) {
		for _, g := range ds.Graphs {
			writeInt(w, ds.ClassValues[g.Class])
			w.WriteByte('\n')
		}
	})
	if len(ds.NodeLabels) > 0 {
		write("node_labels", func(w *bufio.Writer) {
			for _, g := range ds.Graphs {
				for i := range g.Nodes() {
					ds.writeNodeLabels(w, g, i)
				}
			}
		})
	}
	if ds.NodeAttributes > 0 {
		write("node_attributes", func(w *bufio.Writer) {
			for _, g := range ds.Graphs {
				for i := range g.Nodes() {
					for k, v := range g.X.Dense[i*g.X.Width:][:ds.NodeAttributes] {
						if k > 0 {
							w.WriteString(", ")
						}
						w.Write(strconv.AppendFloat(w.AvailableBuffer(), float64(v), 'g', -1, 32))
					}
					w.WriteByte('\n')
				}
			}
		})
	}
	if len(ds.EdgeLabels) > 0 {
		write("edge_labels", func(w *bufio.Writer) {
			for _, g := range ds.Graphs {
				for _, v := range g.EdgeLabel {
					ds.writeEdgeLabels(w, v)
				}
			}
		})
	}
	if err != nil {
		return err
	}
	if err := os.Rename(tmp, final); err != nil {
		return fmt.Errorf("dataset: %w", err)
	}
	return nil
}

// checkLayout reports whether the graphs are as the set describes them, which
// the set of a caller's own making might not be.
func (d *Dataset) checkLayout() error {
	width := d.NodeAttributes
	for _, c := range d.NodeLabels {
		width += c.Width
	}
	dense := d.NodeAttributes > 0 || len(d.NodeLabels) > 1
	if width == 0 {
		width = 1
	}
	if width != d.FeatureWidth {
		return fmt.Errorf("dataset: %s: FeatureWidth is %d, but NodeAttributes and NodeLabels make %d", d.Name, d.FeatureWidth, width)
	}
	if len(d.ClassValues) != d.Classes {
		return fmt.Errorf("dataset: %s: %d ClassValues of %d classes", d.Name, len(d.ClassValues), d.Classes)
	}
	for k, g := range d.Graphs {
		bad := func(format string, args ...any) error {
			return fmt.Errorf("dataset: %s: graph %d: "+format, append([]any{d.Name, k}, args...)...)
		}
		if err := g.Validate(); err != nil {
			return bad("%w", err)
		}
		switch {
		case g.Nodes() == 0:
			return bad("has no nodes")
		case g.Class >= d.Classes:
			return bad("class %d of %d", g.Class, d.Classes)
		case g.X.Width != width:
			return bad("feature width %d, want %d", g.X.Width, width)
		case g.X.OneHot() == dense:
			return bad("features are dense (%t), but by NodeAttributes and NodeLabels they should not be (%t)", !g.X.OneHot(), !dense)
		case len(d.EdgeLabels) > 0 && len(g.EdgeLabel) != g.Entries():
			return bad("%d edge labels for %d entries", len(g.EdgeLabel), g.Entries())
		}
		for _, v := range g.EdgeLabel {
			if n := d.EdgeCategories(); n > 0 && (v < 0 || int(v) >= n) {
				return bad("edge label %d of %d categories", v, n)
			}
		}
	}
	return nil
}

// writeNodeLabels writes the line of node i: of each column the original label.
func (d *Dataset) writeNodeLabels(w *bufio.Writer, g *graph.Graph, i int) {
	for k, c := range d.NodeLabels {
		if k > 0 {
			w.WriteString(", ")
		}
		writeInt(w, c.Min+d.category(g, i, k))
	}
	w.WriteByte('\n')
}

// writeEdgeLabels takes the category v apart again.
func (d *Dataset) writeEdgeLabels(w *bufio.Writer, v int32) {
	radix := int32(1)
	for _, c := range d.EdgeLabels {
		radix *= int32(c.Width)
	}
	for k, c := range d.EdgeLabels {
		if k > 0 {
			w.WriteString(", ")
		}
		radix /= int32(c.Width)
		writeInt(w, c.Min+int(v/radix))
		v %= radix
	}
	w.WriteByte('\n')
}

func writeInt(w *bufio.Writer, v int) {
	w.Write(strconv.AppendInt(w.AvailableBuffer(), int64(v), 10))
}

// writeFile writes a new file; body need not look at the writer's errors, which
// stick.
func writeFile(path string, body func(w *bufio.Writer)) error {
	f, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("dataset: %w", err)
	}
	w := bufio.NewWriterSize(f, 64<<10)
	body(w)
	if err := w.Flush(); err != nil {
		f.Close()
		return fmt.Errorf("dataset: %w", err)
	}
	if err := f.Close(); err != nil {
		return fmt.Errorf("dataset: %w", err)
	}
	return nil
}
