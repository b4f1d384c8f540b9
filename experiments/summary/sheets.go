package main

import (
	"cmp"
	"maps"
	"slices"

	"github.com/specmatch/specmatch/experiments/internal/paper"
	"github.com/specmatch/specmatch/specmatch/eval"
	"github.com/specmatch/specmatch/specmatch/eval/published"
	"github.com/specmatch/specmatch/specmatch/method"
)

// The protocols: that of the table of all methods, and one that fewer have run under.
const (
	protocol = string(eval.GraphCL)
	linear   = string(eval.Linear)
)

// sheet is the form of a table: data sets, methods, and the published figures, by
// protocols that they were measured under.
type sheet struct {
	sets      []string
	rows      []row
	published map[string]published.Table
	decimals  int
}

// row is a method, its title, and the name of its published row.
type row struct {
	method, title, published string
	quoted                   bool // no method of ours
}

// table1 has the sets of the paper's Table 1 in its order, but for MUTAG, which comes first,
// and its methods: without training, with it, with labels.
var table1 = sheet{
	[]string{
		"MUTAG", "NCI1", "PROTEINS", "DD", "COLLAB", "IMDB-BINARY", "REDDIT-BINARY", "REDDIT-MULTI-5K",
	},
	named(
		"majority", "size", "labels", "pairs", method.Untrained, "wl", "wloa", "dgk",
		"node2vec", "sub2vec", "graph2vec", "infograph", method.GraphCL, "joao",
		"joaov2", "simgrace", "mssgcl", "cuco", method.InfoNCE, method.SpecMatch, "gin",
	),
	map[string]published.Table{
		protocol: slices.Concat(published.Table1, published.Classical).Under(protocol),
		linear:   slices.Concat(published.Table1, published.Classical).Under(linear),
	}, 2,
}

// finding is the part of table1 that says what the paper's reader should know first.
var finding = sheet{
	table1.sets,
	named("labels", method.Untrained, "wl", method.GraphCL, method.SpecMatch),
	table1.published,
	2,
}

// since has what graph learning is compared with since the paper, and below it what the paper
// compares, with the same features of nodes: degrees in sets without labels.
var since = sheet{
	[]string{
		"MUTAG", "NCI1", "PROTEINS", "DD", "COLLAB, degrees", "IMDB-BINARY, degrees",
		"REDDIT-BINARY, degrees", "REDDIT-MULTI-5K, degrees",
	},
	named(
		"graphmae", "s2gae", "autogcl", "rgcl", "zs-dm",
		method.Untrained, method.InfoNCE, method.SpecMatch,
	),
	map[string]published.Table{protocol: with(published.Since, published.Since, variant("", degrees))},
	2,
}

var table2 = sheet{
	[]string{
		"NCI1", "PROTEINS", "DD", "COLLAB", "REDDIT-BINARY", "REDDIT-MULTI-5K", "NCI1, 1 %",
		"COLLAB, 1 %",
	},
	named(
		paper.None, paper.Augmentation, "gae", "infomax", "contextpred", method.GraphCL,
		"joao", "joaov2", "simgrace", "mssgcl", method.InfoNCE, method.SpecMatch,
	),
	map[string]published.Table{"test-max": with(
		published.Table2[0.1], published.Table2[0.01], variant("semisupervised", "0.01"),
	)},
	2,
}

var table3 = sheet{
	[]string{"tox21", "toxcast", "sider", "clintox", "muv", "hiv", "bbbp", "bace", "homo_sapiens"},
	named(
		paper.None, "edgepred", "attrmasking", "infomax", "contextpred",
		method.GraphCL, "joao", "joaov2", "simgrace", method.SpecMatch,
	),
	map[string]published.Table{"last": published.Table3}, 1,
}

// What the preregistered analysis is of.
var (
	graphSets     = []string{"NCI1", "lipo"}
	graphProtocol = string(eval.GraphCLC10)
)

// named are the rows of methods: those of package method under its titles.
func named(methods ...string) (rows []row) {
	titles := map[string]string{
		"gin":            "GIN, with labels",
		method.Untrained: "untrained GIN",
		"majority":       "majority class",
		"size":           "(log nodes, log edges)",
		"autogcl":        "AutoGCL",
		"rgcl":           "RGCL",
		"zs-dm":          "ZS-DM",
		"labels":         "labels or degrees, counted",
		"pairs":          "labels along edges, counted",
		"wl":             "WL subtree",
		"wloa":           "WL optimal assignment",
		"dgk":            "deep WL kernel (DGK)",
	}
	classical := map[string]string{
		"wl":        "WL",
		"dgk":       "DGK",
		"node2vec":  "node2vec",
		"sub2vec":   "sub2vec",
		"graph2vec": "graph2vec",
	}
	for _, name := range methods {
		title := cmp.Or(titles[name], paper.Title(name))
		quoted := title + ", published"
		if short, ok := classical[name]; ok {
			quoted = short + ", in the paper's Table 1"
		}
		rows = append(rows, row{
			name, title, quoted, name == "autogcl" || name == "rgcl" || name == "zs-dm",
		})
	}
	return rows
}

// with adds to the figures of a table, under the names of sets with the suffix, those of other
// ones: at another share of the labels, or the same with degrees as features.
func with(table, additions published.Table, suffix string) (merged published.Table) {
	for _, p := range table {
		p.Values = maps.Clone(p.Values)
		if addition := additions.Find(p.Name); addition != nil {
			for set, v := range addition.Values {
				p.Values[set+suffix] = v
			}
		}
		merged = append(merged, p)
	}
	return merged
}
