package dataset

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/specmatch/specmatch/gnn/graph"
)

// readTU builds a data set from an opened source. The order of the files is
// that of the checks: the number of graphs is known before the nodes, and the
// number of nodes before everything that lists nodes.
func readTU(s *source, opts Options) (*Dataset, error) {
	ds := &Dataset{Name: s.name}
	label, targets, err := readTargets(s)
	if err != nil {
		return nil, err
	}
	graphs := len(label)
	if graphs == 0 {
		graphs = len(targets[0].Values)
	}
	nodes, err := readIndicator(s, graphs)
	if err != nil {
		return nil, err
	}
	class := ds.classify(nodes, label, targets)
	data, err := readNodes(s, ds, nodes, opts)
	if err != nil {
		return nil, err
	}
	edges, err := readEdges(s, nodes)
	if err != nil {
		return nil, err
	}
	if s.has("edge_labels") {
		edges.label, err = readEdgeLabels(s, ds, edges.count)
		if err != nil {
			return nil, err
		}
	}
	csr := edges.csr(len(nodes.graph)) // what comes now takes a tenth of the time of reading
	if err := s.ctx.Err(); err != nil {
		return nil, err
	}
	ds.SelfLoops, ds.Duplicates = csr.simplify()
	ds.Graphs, err = ds.cut(csr, nodes, data, class)
	return ds, err
}

// readTargets reads what graphs have: the column of _graph_labels.txt, or, where it has
// several, these as targets, and the columns of _graph_attributes.txt. There are either labels or targets.
func readTargets(s *source) (label []int32, targets []Target, err error) {
	graphs := -1
	add := func(kind string, v []float64, cols int) {
		for k := range cols {
			t := Target{Name: kind}
			if cols > 1 {
				t.Name += strconv.Itoa(k + 1)
			}
			for i := k; i < len(v); i += cols {
				t.Values = append(t.Values, v[i])
			}
			targets = append(targets, t)
		}
	}
	if s.has("graph_labels") || !s.has("graph_attributes") {
		cols := 0
		label, cols, err = readTable(s, "graph_labels", parseInt, -1, "graph")
		if err != nil {
			return nil, nil, err
		}
		if len(label) == 0 {
			return nil, nil, s.bad("graph_labels", 1, "", "the file is empty")
		}
		graphs = len(label) / cols
		if cols > 1 {
			values := make([]float64, len(label))
			for i, v := range label {
				values[i] = float64(v)
			}
			add("class", values, cols)
			label = nil
		}
	}
	if s.has("graph_attributes") {
		v, cols, err := readTable(s, "graph_attributes", parseFloat64, graphs, "graph")
		if err == nil && len(v) == 0 {
			err = s.bad("graph_attributes", 1, "", "the file is empty")
		}
		if err != nil {
			return nil, nil, err
		}
		add("attribute", v, cols)
	}
	return label, targets, nil
}

// classify notes which graphs have no nodes and so are left out, the classes and the targets of the
// others, and returns the class of every graph of the files.
func (d *Dataset) classify(nodes *nodeTable, label []int32, targets []Target) (class []int) {
	graphs := len(nodes.start) - 1
	class = make([]int, graphs)
	for g := range graphs {
		if nodes.start[g] == nodes.start[g+1] {
			d.Empty = append(d.Empty, g)
		}
	}
	d.Classes = 1
	d.ClassValues = []int{0}
	if label != nil {
		values := without(label, d.Empty)
		slices.Sort(values)
		values = slices.Compact(values)
		d.Classes = len(values)
		d.ClassValues = make([]int, len(values))
		for c, v := range values {
			d.ClassValues[c] = int(v)
		}
		for g, v := range label {
			class[g], _ = slices.BinarySearch(values, v)
		}
	}
	for _, t := range targets {
		d.Targets = append(d.Targets, Target{t.Name, without(t.Values, d.Empty)})
	}
	return class
}

// without returns the values but for those at the places out, which ascend.
func without[T any](values []T, out []int) (remaining []T) {
	for i, v := range values {
		if len(out) > 0 && out[0] == i {
			out = out[1:]
		} else {
			remaining = append(remaining, v)
		}
	}
	return remaining
}

// readTable reads a file of the set as a table; see [scanTable].
func readTable[T number](
	s *source, part string, parse func([]byte) (T, string), items int, item string,
) (v []T, cols int, err error) {
	err = s.scan(part, func(sc *scanner) (err error) {
		v, cols, err = scanTable(sc, parse, items, item)
		return err
	})
	return v, cols, err
}

func readColumn(s *source, part, item string) ([]int32, error) {
	v, cols, err := readTable(s, part, parseInt, -1, item)
	if err == nil && cols > 1 {
		err = s.bad(part, 1, "", "%d columns, want one number per %s", cols, item)
	}
	return v, err
}

// nodeTable says which nodes belong to which graph. Nodes are numbered so that
// those of graph g are start[g]..start[g+1]-1.
type nodeTable struct {
	graph []int32 // graph of every node, by number in the file (0-based)
	start []int32
	// number maps a node's number in the file to its number in the table; nil
	// if they agree, as they do whenever the indicator is sorted.
	number []int32
}

// renumber returns the number in the table of a node of the file.
func (t *nodeTable) renumber(i int32) int32 {
	if t.number == nil {
		return i
	}
	return t.number[i]
}

// readIndicator reads _graph_indicator.txt. It need not be sorted: the nodes of
// a graph keep the order in which they are listed. A graph may have no nodes, but not all.
func readIndicator(s *source, graphs int) (*nodeTable, error) {
	const part = "graph_indicator"
	number, err := readColumn(s, part, "node")
	if err != nil {
		return nil, err
	}
	t := &nodeTable{graph: number, start: make([]int32, graphs+1)}
	for i, g := range number {
		if g < 1 || int(g) > graphs {
			return nil, s.bad(part, i+1, strconv.Itoa(int(g)), "graphs are numbered 1 to %d", graphs)
		}
		t.start[g]++
		t.graph[i]--
	}
	if len(number) == 0 {
		return nil, s.bad(part, 1, "", "none of the %d graphs has nodes", graphs)
	}
	for g := range graphs {
		t.start[g+1] += t.start[g]
	}
	if !slices.IsSorted(t.graph) {
		next := slices.Clone(t.start)
		t.number = make([]int32, len(t.graph))
		for i, g := range t.graph {
			t.number[i] = next[g]
			next[g]++
		}
	}
	return t, nil
}

// maxWidth bounds the range of a label column, which is how many columns its
// one-hot encoding has.
const maxWidth = 1 << 20

// maxDense bounds the numbers of a dense feature matrix (1 GiB of float32).
const maxDense = 1 << 28

// readLabels reads a table of labels, shifts each column to start at 0, and describes
// them.
func readLabels(
	s *source, part string, items int, item string,
) (label []int32, columns []LabelColumn, err error) {
	label, cols, err := readTable(s, part, parseInt, items, item)
	if err != nil || len(label) == 0 {
		return nil, nil, err
	}
	for k := range cols {
		lo, hi := label[k], label[k]
		for i := k; i < len(label); i += cols {
			lo, hi = min(lo, label[i]), max(hi, label[i])
		}
		if int64(hi)-int64(lo) >= maxWidth {
			return nil, nil,
				fmt.Errorf("dataset: %s: labels of column %d run from %d to %d; a one-hot encoding "+
					"has at most %d columns",
					s.path(part), k+1, lo, hi, maxWidth)
		}
		c := LabelColumn{Min: int(lo), Width: int(hi-lo) + 1}
		occurs := make([]bool, c.Width)
		for i := k; i < len(label); i += cols {
			label[i] -= lo
			if !occurs[label[i]] {
				occurs[label[i]] = true
				c.Distinct++
			}
		}
		columns = append(columns, c)
	}
	return label, columns, nil
}

// nodeData is what the nodes have, in the order of the table.
type nodeData struct {
	attributes []float32
	labels     []int32 // shifted to start at 0
}

// readNodes reads the attributes and labels of the nodes, and describes the features that
// they make.
func readNodes(s *source, ds *Dataset, t *nodeTable, opts Options) (d nodeData, err error) {
	n := len(t.graph)
	ds.AttributesLeftOut = !opts.NodeAttributes && s.has("node_attributes")
	if opts.NodeAttributes && s.has("node_attributes") {
		d.attributes, ds.NodeAttributes, err = readTable(s, "node_attributes", parseFloat, n, "node")
		if err != nil {
			return d, err
		}
	}
	if s.has("node_labels") {
		d.labels, ds.NodeLabels, err = readLabels(s, "node_labels", n, "node")
		if err != nil {
			return d, err
		}
	}
	ds.FeatureWidth = ds.columns().Width()
	if dense := ds.NodeAttributes > 0 || len(ds.NodeLabels) > 1; dense && n > maxDense/ds.FeatureWidth {
		return d, fmt.Errorf("dataset: %s: %d nodes of %d features each: %w: limit %d numbers",
			s.root, n, ds.FeatureWidth, ErrTooLarge, maxDense)
	}
	return nodeData{reorder(d.attributes, t), reorder(d.labels, t)}, nil
}

func reorder[T number](rows []T, t *nodeTable) []T {
	if t.number == nil {
		return rows
	}
	out := make([]T, len(rows))
	cols := len(rows) / len(t.number)
	for i, p := range t.number {
		copy(out[int(p)*cols:][:cols], rows[i*cols:])
	}
	return out
}

// readEdgeLabels returns the category of every line of _A.txt. Several columns
// become one category, the first the most significant.
func readEdgeLabels(s *source, ds *Dataset, edges int) ([]int32, error) {
	label, columns, err := readLabels(s, "edge_labels", edges, "line of _A.txt")
	if err != nil {
		return nil, err
	}
	ds.EdgeLabels = columns
	if n := ds.EdgeCategories(); n > maxWidth {
		return nil, fmt.Errorf("dataset: %s: the %d columns make %d categories, limit %d",
			s.path("edge_labels"), len(columns), n, maxWidth)
	}
	cols := len(columns)
	if cols <= 1 {
		return label, nil
	}
	for e := range edges {
		v := int32(0)
		for k, c := range columns {
			v = v*int32(c.Width) + label[e*cols+k]
		}
		label[e] = v // e ≤ e·cols: what is overwritten has been read
	}
	return label[:edges], nil
}

// An edge of _A.txt, with nodes numbered as in the table.
type edge struct{ source, target int32 }

// edgeList is _A.txt in blocks, so that growing never copies: COLLAB's 24.6
// million edges take their 8 bytes each and no more.
type edgeList struct {
	block [][]edge
	count int
	label []int32 // category of every edge in the order of the file, or nil
}

const edgeBlock = 1 << 18

// readEdges reads _A.txt. The line "i, j" is the edge i→j.
func readEdges(s *source, t *nodeTable) (*edgeList, error) {
	list := new(edgeList)
	n := int32(len(t.graph))
	err := s.scan("A", func(sc *scanner) error {
		return scanRows(sc, parseInt, func(row []int32) error {
			switch {
			case len(row) < 2:
				return sc.bad(sc.line, "", "one number, want two: the source and the target of an edge")
			case len(row) > 2:
				return sc.bad(sc.line, "",
					"more than two numbers, want the source and the target of an edge")
			}
			for _, v := range row {
				if v < 1 || v > n {
					return sc.bad(sc.line, strconv.Itoa(int(v)), "nodes are numbered 1 to %d", n)
				}
			}
			i, j := row[0]-1, row[1]-1
			gi := t.graph[i]
			gj := t.graph[j]
			if gi != gj {
				return sc.bad(
					sc.line,
					fmt.Sprintf("%d, %d", i+1, j+1),
					"an edge from graph %d to graph %d",
					gi+1,
					gj+1,
				)
			}
			if list.count%edgeBlock == 0 {
				if list.count > 1<<31-1-edgeBlock {
					return fmt.Errorf("dataset: %s: more than %d edges: %w",
						sc.file, list.count, ErrTooLarge)
				}
				list.block = append(list.block, make([]edge, 0, edgeBlock))
			}
			b := &list.block[len(list.block)-1]
			*b = append(*b, edge{t.renumber(i), t.renumber(j)})
			list.count++
			return nil
		})
	})
	return list, err
}

// csrTable is the adjacency of all graphs by target, in numbers of the table.
type csrTable struct {
	ptr   []int32
	adj   []int32
	label []int32 // parallel to adj, or nil
}

// csr sorts the edges by target, then source; equal edges stay in the order of
// the file.
func (l *edgeList) csr(n int) *csrTable {
	t := &csrTable{ptr: make([]int32, n+1), adj: make([]int32, l.count)}
	for _, b := range l.block {
		for _, e := range b {
			t.ptr[e.target+1]++
		}
	}
	for i := range n {
		t.ptr[i+1] += t.ptr[i]
	}
	if l.label != nil {
		t.label = make([]int32, l.count)
	}
	next := slices.Clone(t.ptr)
	k := 0
	for _, b := range l.block {
		for _, e := range b {
			p := next[e.target]
			next[e.target]++
			t.adj[p] = e.source
			if l.label != nil {
				t.label[p] = l.label[k]
			}
			k++
		}
	}
	var keys []uint64
	var labels []int32
	for i := range n {
		row := t.adj[t.ptr[i]:t.ptr[i+1]]
		switch {
		case slices.IsSorted(row): // so is every row of a list sorted by source
		case t.label == nil:
			slices.Sort(row)
		default:
			// A key is the source above the position, which both keeps the
			// order of equal sources and says which label goes along.
			label := t.label[t.ptr[i]:t.ptr[i+1]]
			keys = keys[:0]
			labels = append(labels[:0], label...)
			for p, j := range row {
				keys = append(keys, uint64(j)<<32|uint64(p))
			}
			slices.Sort(keys)
			for p, key := range keys {
				row[p], label[p] = int32(key>>32), labels[uint32(key)]
			}
		}
	}
	return t
}

// simplify removes self-loops and, of equal edges, all but the first. It
// returns how many distinct self-loops there were and how many repeated lines.
func (t *csrTable) simplify() (loops, duplicates int) {
	// where row i begins, where the next entry goes
	begin := int32(0)
	w := int32(0)
	for i := range len(t.ptr) - 1 {
		end := t.ptr[i+1]
		previous := int32(-1)
		for p := begin; p < end; p++ {
			j := t.adj[p]
			switch {
			case j == previous:
				duplicates++
			case int(j) == i:
				loops++
			default:
				t.adj[w] = j
				if t.label != nil {
					t.label[w] = t.label[p]
				}
				w++
			}
			previous = j
		}
		begin = end
		t.ptr[i+1] = w
	}
	t.adj = t.adj[:w]
	if t.label != nil {
		t.label = t.label[:w]
	}
	return loops, duplicates
}

// cut makes the graphs that have nodes. Their adjacency is parts of one array for all of them.
func (d *Dataset) cut(
	t *csrTable, nodes *nodeTable, data nodeData, class []int,
) (graphs []*graph.Graph, err error) {
	columns := d.columns()
	cols := len(d.NodeLabels)
	for k := range class {
		lo, hi := nodes.start[k], nodes.start[k+1]
		if lo == hi {
			continue
		}
		a, b := t.ptr[lo], t.ptr[hi]
		g := &graph.Graph{Ptr: make([]int32, hi-lo+1), Adj: t.adj[a:b:b], Class: class[k]}
		for i := range g.Ptr {
			g.Ptr[i] = t.ptr[int(lo)+i] - a
		}
		for p := range g.Adj {
			g.Adj[p] -= lo
		}
		if t.label != nil {
			g.EdgeLabel = t.label[a:b:b]
		}
		g.Directed = !g.Symmetric()
		g, err = columns.Apply(g,
			func(i int) []float32 { return data.attributes[(int(lo)+i)*d.NodeAttributes:] },
			func(i, k int) int {
				return int(data.labels[(int(lo)+i)*cols+k]) + d.NodeLabels[k].Min
			})
		if err != nil {
			return nil, err
		}
		graphs = append(graphs, g)
	}
	return graphs, nil
}
