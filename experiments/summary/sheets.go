package main

import (
	"cmp"
	"maps"
	"slices"

	"github.com/specmatch/specmatch/experiments/internal/grid"
	"github.com/specmatch/specmatch/experiments/internal/published"
	"github.com/specmatch/specmatch/specmatch/eval"
	"github.com/specmatch/specmatch/specmatch/method"
)

// sets are the columns of Table 1, in the order of the paper's but for MUTAG, which comes
// first.
var sets = []string{"MUTAG", "NCI1", "PROTEINS", "DD", "COLLAB", "IMDB-BINARY", "REDDIT-BINARY", "REDDIT-MULTI-5K"}

type row struct{ method, title, published string }

// rows are the methods in the order of Table 1: without training, with it, with labels.
var rows = []row{
	{"majority", "majority class", ""},
	{"size", "(log nodes, log edges)", ""},
	{"labels", "labels or degrees, counted", ""},
	{"pairs", "labels along edges, counted", ""},
	{"untrained", "untrained GIN", ""},
	{"wl", "WL subtree", "WL, in the paper's Table 1"},
	{"wloa", "WL optimal assignment", ""},
	{"dgk", "deep WL kernel (DGK)", "DGK, in the paper's Table 1"},
	{"node2vec", "node2vec", "node2vec, in the paper's Table 1"},
	{"sub2vec", "sub2vec", "sub2vec, in the paper's Table 1"},
	{"graph2vec", "graph2vec", "graph2vec, in the paper's Table 1"},
	{"infograph", "InfoGraph", "InfoGraph, published"},
	{"graphcl", "GraphCL", "GraphCL, published"},
	{"joao", "JOAO", "JOAO, published"},
	{"joaov2", "JOAOv2", "JOAOv2, published"},
	{"simgrace", "SimGRACE", "SimGRACE, published"},
	{"mssgcl", "MSSGCL", "MSSGCL, published"},
	{"cuco", "CuCo", "CuCo, published"},
	{method.InfoNCE, "InfoNCE (β = 0)", ""},
	{method.SpecMatch, "SpecMatch-CL", "SpecMatch-CL, published"},
	{"gin", "GIN, with labels", ""},
}

// sheet is the form of a table: data sets, methods, and the published figures, by
// protocols that they were measured under.
type sheet struct {
	sets      []string
	rows      []row
	published map[string][]grid.Published
	decimals  int
}

var table1 = sheet{sets, rows, map[string][]grid.Published{
	protocol: under(protocol, slices.Concat(published.Table1, published.Classical)),
	linear:   under(linear, slices.Concat(published.Table1, published.Classical)),
}, 2}

var table2 = sheet{
	[]string{"NCI1", "PROTEINS", "DD", "COLLAB", "REDDIT-BINARY", "REDDIT-MULTI-5K", "NCI1, 1 %", "COLLAB, 1 %"},
	named("none", "augmentation", "gae", "infomax", "contextpred", "graphcl", "joao", "joaov2", "simgrace", "mssgcl", method.InfoNCE, method.SpecMatch),
	map[string][]grid.Published{"test-max": bothRates()}, 2,
}

var table3 = sheet{
	[]string{"tox21", "toxcast", "sider", "clintox", "muv", "hiv", "bbbp", "bace"},
	named("none", "edgepred", "attrmasking", "infomax", "contextpred", "graphcl", "joao", "joaov2", "simgrace", method.SpecMatch),
	map[string][]grid.Published{"last": published.Table3}, 1,
}

// under keeps the figures that were measured under a protocol, or may have been.
func under(protocol string, all []grid.Published) []grid.Published {
	return slices.DeleteFunc(slices.Clone(all), func(p grid.Published) bool {
		return p.Protocols != nil && !slices.Contains(p.Protocols, protocol)
	})
}

// named are rows that are named and quoted as usual.
func named(methods ...string) (rows []row) {
	titles := map[string]string{"none": "no pre-training", "augmentation": "augmentation only"}
	for _, name := range methods {
		title := cmp.Or(titles[name], method.Title(name))
		rows = append(rows, row{name, title, title + ", published"})
	}
	return rows
}

// bothRates is the paper's Table 2 at a tenth of the labels and, as sets of their own,
// at a hundredth.
func bothRates() (all []grid.Published) {
	for _, p := range published.Table2[0.1] {
		p.Values = maps.Clone(p.Values)
		if few := published.Find(published.Table2[0.01], p.Row); few != nil {
			for set, v := range few.Values {
				p.Values[set+variant("semisupervised", "0.01")] = v
			}
		}
		all = append(all, p)
	}
	return all
}

// The protocols: that of the table of all methods, and one that fewer have run under.
const (
	protocol = string(eval.GraphCL)
	linear   = string(eval.Linear)
)

// What the preregistered analysis is of.
var (
	graphSets     = []string{"NCI1", "lipo"}
	graphArms     = []string{method.InfoNCE, method.EMA, method.EMABatch, method.EMAMemory}
	graphProtocol = string(eval.GraphCLC10)
)

// shown reports whether a table of this program has a place for a figure.
func shown(at cell) bool {
	for _, s := range []struct {
		sheet
		protocols []string
	}{{table1, []string{protocol, linear}}, {table2, []string{"test-max", "val"}}, {table3, []string{"last", "best-val"}}} {
		if slices.Contains(s.protocols, at.protocol) && slices.Contains(s.sets, at.set) && slices.ContainsFunc(s.rows, func(r row) bool { return r.method == at.method }) {
			return true
		}
	}
	return at.protocol == graphProtocol && slices.Contains(graphSets, at.set) && slices.Contains(graphArms, at.method)
}
