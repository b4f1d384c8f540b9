package dataset

import (
	"fmt"
	"math"
)

// Summary holds the statistics of a data set.
type Summary struct {
	Graphs     int
	Classes    int
	ClassSizes []int // graphs of class c
	Nodes      int   // of all graphs
	MinNodes   int   // of the smallest graph
	MaxNodes   int   // of the largest graph
	Isolated   int   // nodes without any edge, after self-loops were removed
	MaxDegree  int   // most edges that end in one node
	// Edges is the number of distinct undirected edges {i, j}, i ≠ j, which for
	// symmetric graphs is half the number of entries.
	Edges int
	// SelfLoops is the number of distinct self-loops in the files.
	SelfLoops int
	// Empty is the number of graphs without nodes, which are not among Graphs.
	Empty int
	// Directed is the number of graphs with an edge that lacks its reverse.
	Directed int
}

// MeanNodes returns the mean number of nodes of a graph.
func (s Summary) MeanNodes() float64 { return mean(s.Nodes, s.Graphs) }

// MeanEdges returns the mean number of distinct undirected edges of a graph, as the
// tables of TUDataset count them: with the self-loops that loading removes.
func (s Summary) MeanEdges() float64 { return mean(s.Edges+s.SelfLoops, s.Graphs) }

func mean(sum, n int) float64 {
	if n == 0 {
		return 0
	}
	return float64(sum) / float64(n)
}

// Stats measures a data set.
func Stats(ds *Dataset) Summary {
	s := Summary{
		Graphs:     len(ds.Graphs),
		Classes:    ds.Classes,
		ClassSizes: make([]int, ds.Classes),
		SelfLoops:  ds.SelfLoops,
		Empty:      len(ds.Empty),
		Directed:   ds.Directed(),
	}
	for k, g := range ds.Graphs {
		n := g.Nodes()
		s.ClassSizes[g.Class]++
		s.Nodes += n
		s.MaxNodes = max(s.MaxNodes, n)
		s.MinNodes = min(s.MinNodes, n)
		if k == 0 {
			s.MinNodes = n
		}
		hasOut := make([]bool, n)
		for i := range n {
			s.MaxDegree = max(s.MaxDegree, len(g.Neighbors(i)))
			for _, j := range g.Neighbors(i) {
				hasOut[j] = true
				// An edge counts once: where its source is the smaller node.
				if int(j) < i || g.Directed && !g.HasEdge(i, int(j)) {
					s.Edges++
				}
			}
		}
		for i := range n {
			if !hasOut[i] && len(g.Neighbors(i)) == 0 {
				s.Isolated++
			}
		}
	}
	return s
}

// Official is a row of the statistics table of the TUDataset site.
type Official struct {
	Name      string
	Graphs    int
	Classes   int
	MeanNodes float64 // to two decimals
	MeanEdges float64 // to two decimals, self-loops included
}

// official is in the order in which papers list the sets; all values are those
// of the TUDataset site. TestOfficialAgree measures them.
var official = []Official{
	{"MUTAG", 188, 2, 17.93, 19.79},
	{"NCI1", 4110, 2, 29.87, 32.30},
	{"PROTEINS", 1113, 2, 39.06, 72.82},
	{"DD", 1178, 2, 284.32, 715.66},
	{"COLLAB", 5000, 3, 74.49, 2457.78},
	{"IMDB-BINARY", 1000, 2, 19.77, 96.53},
	{"REDDIT-BINARY", 2000, 2, 429.63, 497.75},
	{"REDDIT-MULTI-5K", 4999, 5, 508.52, 594.87},
	{"AIDS", 2000, 2, 15.69, 16.20},
}

// Known returns the published statistics of the benchmark sets of the paper, in its
// order, and of AIDS.
func Known() []Official { return append([]Official(nil), official...) }

// OfficialStats returns the published statistics of a data set.
func OfficialStats(name string) (Official, bool) {
	for _, o := range official {
		if o.Name == name {
			return o, true
		}
	}
	return Official{}, false
}

// Disagreements returns one sentence for every published number that the measured
// statistics contradict. Means are compared to two decimals.
func (o Official) Disagreements(s Summary) []string {
	var out []string
	count := func(name string, got, official int) {
		if got != official {
			out = append(out, fmt.Sprintf("%d %s, official %d", got, name, official))
		}
	}
	mean := func(name string, got, official float64) {
		// Half a unit of the last decimal, and a little for means such as
		// AIDS's 16.195, which lie exactly between.
		if math.Abs(got-official) > 0.005+1e-9 {
			out = append(out, fmt.Sprintf("%.4f %s, official %.2f", got, name, official))
		}
	}
	count("graphs", s.Graphs, o.Graphs)
	count("classes", s.Classes, o.Classes)
	mean("mean nodes", s.MeanNodes(), o.MeanNodes)
	mean("mean edges", s.MeanEdges(), o.MeanEdges)
	return out
}
