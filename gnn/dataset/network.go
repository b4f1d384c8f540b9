package dataset

import (
	"bufio"
	"compress/gzip"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/specmatch/specmatch/gnn/graph"
)

// Network is one large undirected graph, such as the protein interactions of a
// species, whose ego networks ([Network.Ego]) are the samples to learn from.
type Network struct {
	Name string
	// Ptr and Adj are the adjacency, as in [graph.Graph].
	Ptr, Adj []int32
	// Channels names the kinds of evidence for edges, in the order of the bits of
	// EdgeBits; there are at most [MaxChannels].
	Channels []string
	// EdgeBits has, for every entry of Adj, bit k set if channel k speaks for it.
	EdgeBits []int32
	// Tasks names the columns of Labels; there may be none.
	Tasks []string
	// Labels [nodes×tasks] are 1 for yes, -1 for no, and 0 where it is not known.
	Labels []int8
	// SelfLoops and Duplicates count the lines that loading left out.
	SelfLoops, Duplicates int
}

// MaxChannels is how many channels edges can have, as in the data of Hu et al.
// (2020).
const MaxChannels = 7

// maxNetworkNodes bounds the node numbers of a network, so that one wrong line
// does not ask for all of the memory.
const maxNetworkNodes = 1 << 24

// Nodes returns the number of nodes.
func (n *Network) Nodes() int { return len(n.Ptr) - 1 }

// OpenNetwork reads NAME_edges.csv and, if it is there, NAME_labels.csv from dir;
// either may be compressed and end in .csv.gz (NAME_edges.csv comes first).
//
// The edges have the columns u and v, node numbers from 0, each undirected edge
// once, and may have more, one for each channel, with 0 or 1. A column "score" is
// left out. The labels have the column node and one for each task, with 1, 0 for
// no, or nothing for not known; nodes that are not listed have no labels.
// Self-loops are left out, and an edge that is listed again adds its channels.
//
// Errors about the contents are of type *[SyntaxError].
func OpenNetwork(ctx context.Context, dir, name string) (*Network, error) {
	paths, err := NetworkFiles(dir, name)
	if err != nil {
		return nil, err
	}
	n := &Network{Name: name}
	read := []func(*csvRows) error{n.readEdges, n.readLabels}
	for i, path := range paths {
		if err := readCSV(ctx, path, read[i]); err != nil {
			return nil, err
		}
	}
	return n, nil
}

// NetworkFiles returns the files that [OpenNetwork] reads: of the edges and, if it
// is there, of the labels.
func NetworkFiles(dir, name string) ([]string, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	edges, err := find(dir, name+"_edges.csv", name+"_edges.csv.gz")
	if err != nil {
		return nil, err
	}
	labels, err := find(dir, name+"_labels.csv", name+"_labels.csv.gz")
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return []string{edges}, nil
	case err != nil:
		return nil, err
	}
	return []string{edges, labels}, nil
}

// find returns the path of the first of the names that is in dir. If none is,
// the error wraps [fs.ErrNotExist].
func find(dir string, names ...string) (string, error) {
	for _, name := range names {
		path := filepath.Join(dir, name)
		if _, err := os.Lstat(path); err == nil {
			return path, nil
		} else if !errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("dataset: %w", err)
		}
	}
	return "", fmt.Errorf("dataset: none of %s is in %s: %w", strings.Join(names, ", "), dir, fs.ErrNotExist)
}

// csvRows reads the rows of a file one by one.
type csvRows struct {
	file   string
	r      *csv.Reader
	header []string
	row    []string
}

// readCSV opens a file, reads its first line as the header, and calls f for the
// others.
func readCSV(ctx context.Context, path string, f func(rows *csvRows) error) (err error) {
	file, err := openText(ctx, path)
	if err != nil {
		return err
	}
	defer file.Close()
	var r io.Reader = file
	if isGzip(path) {
		r = &limitedReader{r: r, left: Limits{}.withDefaults().FileBytes, file: path}
	}
	rows, err := newCSV(path, r)
	if err != nil {
		return err
	}
	return f(rows)
}

// newCSV reads the first line of a text as the header.
func newCSV(file string, r io.Reader) (*csvRows, error) {
	rows := &csvRows{file: file, r: csv.NewReader(r)}
	rows.r.ReuseRecord = true
	if ok, err := rows.next(); err != nil {
		return nil, err
	} else if !ok {
		return nil, &SyntaxError{File: file, Line: 1, Reason: "want a header, have an empty file"}
	}
	rows.header = slices.Clone(rows.row)
	return rows, nil
}

// text is the contents of a file, unpacked, without a byte-order mark.
type text struct {
	io.Reader
	io.Closer
}

func openText(ctx context.Context, path string) (*text, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("dataset: %w", err)
	}
	r, err := plainText(ctx, path, file)
	if err != nil {
		file.Close()
		return nil, err
	}
	return &text{r, file}, nil
}

// plainText unpacks what the name says is compressed.
func plainText(ctx context.Context, name string, r io.Reader) (_ io.Reader, err error) {
	r = bufio.NewReaderSize(cancelled{ctx, r}, scanBuffer)
	if isGzip(name) {
		if r, err = gzip.NewReader(r); err != nil {
			return nil, fmt.Errorf("dataset: %s: %w", name, err)
		}
	}
	return withoutMark(r), nil
}

// withoutMark returns r without the byte-order mark with which some programs begin
// text.
func withoutMark(r io.Reader) io.Reader {
	b := bufio.NewReader(r)
	if mark := "\uFEFF"; peeked(b, len(mark)) == mark {
		b.Discard(len(mark))
	}
	return b
}

// peeked returns the next n bytes, or fewer at the end.
func peeked(b *bufio.Reader, n int) string {
	p, _ := b.Peek(n) // an error comes again with the next read
	return string(p)
}

// isGzip reports whether a file is compressed, by its name.
func isGzip(path string) bool { return strings.EqualFold(filepath.Ext(path), ".gz") }

// limitedReader is an error beyond a number of bytes.
type limitedReader struct {
	r    io.Reader
	left int64
	file string
}

func (l *limitedReader) Read(p []byte) (int, error) {
	n, err := l.r.Read(p)
	if l.left -= int64(n); l.left < 0 {
		return 0, fmt.Errorf("dataset: %s: %w", l.file, ErrTooLarge)
	}
	return n, err
}

// next reads the next row and reports whether there is one.
func (c *csvRows) next() (bool, error) {
	var err error
	c.row, err = c.r.Read()
	var syntax *csv.ParseError
	switch {
	case err == io.EOF:
		return false, nil
	case errors.As(err, &syntax):
		return false, &SyntaxError{File: c.file, Line: syntax.Line, Reason: syntax.Err.Error()}
	case err != nil:
		if errors.Is(err, ErrTooLarge) {
			return false, err
		}
		return false, fmt.Errorf("dataset: %s: %w", c.file, err)
	}
	return true, nil
}

// bad returns an error about a field of the row.
func (c *csvRows) bad(field int, reason string) error {
	line, _ := c.r.FieldPos(field)
	return &SyntaxError{File: c.file, Line: line, Value: shorten(c.row[field]), Reason: reason}
}

// node returns a field as a node number.
func (c *csvRows) node(field int) (int32, error) {
	v, err := strconv.ParseInt(c.row[field], 10, 32)
	if err != nil || v < 0 || v >= maxNetworkNodes {
		return 0, c.bad(field, fmt.Sprintf("want a node, 0 to %d", maxNetworkNodes-1))
	}
	return int32(v), nil
}

// columns checks the first names of the header and that no name occurs twice.
func (c *csvRows) columns(first ...string) error {
	if len(c.header) < len(first) || !slices.Equal(c.header[:len(first)], first) {
		return &SyntaxError{File: c.file, Line: 1, Reason: fmt.Sprintf("want a header that begins with %s", strings.Join(first, ","))}
	}
	return c.distinct()
}

// distinct checks that no name occurs twice in the header.
func (c *csvRows) distinct() error {
	sorted := slices.Sorted(slices.Values(c.header))
	for i, name := range sorted[1:] {
		if name == sorted[i] {
			return &SyntaxError{File: c.file, Line: 1, Reason: fmt.Sprintf("two columns named %q", name)}
		}
	}
	return nil
}

// readEdges fills the adjacency.
func (n *Network) readEdges(c *csvRows) error {
	if err := c.columns("u", "v"); err != nil {
		return err
	}
	var channel []int // of every column after the second, or -1
	for k, name := range c.header[2:] {
		if name == "score" {
			channel = append(channel, -1)
			continue
		}
		if len(n.Channels) == MaxChannels {
			return &SyntaxError{File: c.file, Line: 1, Value: shorten(c.header[2+k]), Reason: fmt.Sprintf("more than %d channels", MaxChannels)}
		}
		channel = append(channel, len(n.Channels))
		n.Channels = append(n.Channels, name)
	}
	type edge struct{ i, j, bits int32 }
	var edges []edge
	nodes := int32(0)
	for {
		ok, err := c.next()
		if err != nil {
			return err
		}
		if !ok {
			break
		}
		e := edge{}
		if e.i, err = c.node(0); err != nil {
			return err
		}
		if e.j, err = c.node(1); err != nil {
			return err
		}
		for k, ch := range channel {
			switch {
			case ch < 0 || c.row[2+k] == "0":
			case c.row[2+k] == "1":
				e.bits |= 1 << ch
			default:
				return c.bad(2+k, "want 0 or 1")
			}
		}
		nodes = max(nodes, e.i+1, e.j+1)
		if e.i == e.j {
			n.SelfLoops++
			continue
		}
		edges = append(edges, e, edge{e.j, e.i, e.bits})
	}
	slices.SortFunc(edges, func(a, b edge) int {
		if a.i != b.i {
			return int(a.i) - int(b.i)
		}
		return int(a.j) - int(b.j)
	})
	n.Ptr = make([]int32, nodes+1)
	last := edge{i: -1}
	for _, e := range edges {
		if e.i == last.i && e.j == last.j {
			n.EdgeBits[len(n.EdgeBits)-1] |= e.bits
			if e.i < e.j {
				n.Duplicates++
			}
			continue
		}
		n.Adj, n.EdgeBits = append(n.Adj, e.j), append(n.EdgeBits, e.bits)
		n.Ptr[e.i+1]++
		last = e
	}
	for i := range nodes {
		n.Ptr[i+1] += n.Ptr[i]
	}
	return nil
}

// readLabels fills the labels.
func (n *Network) readLabels(c *csvRows) error {
	if err := c.columns("node"); err != nil {
		return err
	}
	n.Tasks = slices.Clone(c.header[1:])
	n.Labels = make([]int8, n.Nodes()*len(n.Tasks))
	seen := make([]bool, n.Nodes())
	for {
		ok, err := c.next()
		if err != nil || !ok {
			return err
		}
		i, err := c.node(0)
		if err != nil {
			return err
		}
		if int(i) >= n.Nodes() {
			return c.bad(0, fmt.Sprintf("the edges have the nodes 0 to %d only", n.Nodes()-1))
		}
		if seen[i] {
			return c.bad(0, "a node that was listed before")
		}
		seen[i] = true
		for k := range n.Tasks {
			switch c.row[1+k] {
			case "1":
				n.Labels[int(i)*len(n.Tasks)+k] = 1
			case "0":
				n.Labels[int(i)*len(n.Tasks)+k] = -1
			case "":
			default:
				return c.bad(1+k, "want 1, 0 or nothing")
			}
		}
	}
}

// EgoConfig says how much of the surroundings of a node its ego network holds.
type EgoConfig struct {
	// Radius is the largest distance from the centre; 0 means 2.
	Radius int
	// MaxNodes bounds the nodes, the centre included; 0 means 40, about the mean
	// size of the ego networks of Hu et al. (2020).
	MaxNodes int
}

// Ego returns the subgraph that the nodes around a node induce, that node first:
// the nearest come first, and of those at the distance at which MaxNodes is
// reached a random choice, which depends on the seed and the node only. Edges
// keep their bits as labels; every node has the constant feature 1 of flagWidth
// categories.
func (n *Network) Ego(center int, c EgoConfig, seed uint64) *graph.Graph {
	setDefault(&c.Radius, 2)
	setDefault(&c.MaxNodes, 40)
	rng := rand.New(rand.NewPCG(seed, uint64(center)))
	place := map[int32]int32{int32(center): 0}
	nodes := []int32{int32(center)}
	for layer, distance := nodes, 1; distance <= c.Radius && len(nodes) < c.MaxNodes && len(layer) > 0; distance++ {
		var next []int32
		for _, i := range layer {
			for _, j := range n.Adj[n.Ptr[i]:n.Ptr[i+1]] {
				if _, ok := place[j]; !ok {
					place[j] = -1
					next = append(next, j)
				}
			}
		}
		rng.Shuffle(len(next), func(a, b int) { next[a], next[b] = next[b], next[a] })
		kept := min(len(next), c.MaxNodes-len(nodes))
		for _, j := range next[kept:] {
			delete(place, j)
		}
		layer = next[:kept]
		for _, j := range layer {
			place[j] = int32(len(nodes))
			nodes = append(nodes, j)
		}
	}
	g := &graph.Graph{Ptr: make([]int32, 1, len(nodes)+1)}
	type entry struct{ place, bits int32 }
	var row []entry
	for _, i := range nodes {
		row = row[:0]
		for e := n.Ptr[i]; e < n.Ptr[i+1]; e++ {
			if p, ok := place[n.Adj[e]]; ok {
				row = append(row, entry{p, n.EdgeBits[e]})
			}
		}
		slices.SortFunc(row, func(a, b entry) int { return int(a.place) - int(b.place) })
		for _, e := range row {
			g.Adj, g.EdgeLabel = append(g.Adj, e.place), append(g.EdgeLabel, e.bits)
		}
		g.Ptr = append(g.Ptr, int32(len(g.Adj)))
	}
	g.X = graph.Features{Width: flagWidth, Category: make([]int32, len(nodes))}
	for i := range g.X.Category {
		g.X.Category[i] = 1
	}
	return g
}

// flagWidth is the number of categories of the nodes of ego networks: in the data
// of Hu et al. every node has the second.
const flagWidth = 2

// EgoNetworks returns [Network.Ego] of every node.
func (n *Network) EgoNetworks(c EgoConfig, seed uint64) []*graph.Graph {
	out := make([]*graph.Graph, n.Nodes())
	for i := range out {
		out[i] = n.Ego(i, c, seed)
	}
	return out
}

// shorten cuts a value for an error message.
func shorten(s string) string {
	if r := []rune(s); len(r) > maxToken {
		return string(r[:maxToken]) + "…"
	}
	return s
}
