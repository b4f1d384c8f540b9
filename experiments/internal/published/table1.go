// Package published has figures of the literature that more than one experiment prints.
package published

import (
	"slices"

	"github.com/specmatch/specmatch/experiments/internal/grid"
)

// Table1 holds the figures that the literature prints for the unsupervised regime on the same data
// sets: mean and standard deviation in per cent. The rows of the paper are
// those of its Table 1, which repeats nearly all of them from the table of MSSGCL's,
// and that from others: nobody seems to have run the systems anew.
// The protocols are those under which a row was measured, or says it was: the paper
// speaks of a linear SVM, the script it builds on runs an RBF-SVM.
var Table1 = []grid.Published{
	{Row: "GraphCL, published", Note: "GraphCL's own table", Protocols: []string{"graphcl"}, Values: map[string][2]float64{
		"NCI1": {77.87, .41}, "PROTEINS": {74.39, .45}, "DD": {78.62, .40}, "MUTAG": {86.80, 1.34},
		"COLLAB": {71.36, 1.15}, "REDDIT-BINARY": {89.53, .84}, "REDDIT-MULTI-5K": {55.99, .28}, "IMDB-BINARY": {71.14, .44},
	}},
	{Row: "InfoGraph, published", Note: "its own paper on MUTAG, REDDIT and IMDB-BINARY, GraphCL's table on the others; its code evaluates 21 times with four classifiers and does not say which of the figures is printed", Protocols: []string{"graphcl"}, Values: map[string][2]float64{
		"NCI1": {76.20, 1.06}, "PROTEINS": {74.44, .31}, "DD": {72.85, 1.78}, "MUTAG": {89.01, 1.13},
		"COLLAB": {70.65, 1.13}, "REDDIT-BINARY": {82.50, 1.42}, "REDDIT-MULTI-5K": {53.46, 1.03}, "IMDB-BINARY": {73.03, .87},
	}},
	{Row: "JOAO, published", Note: "its own paper; ± 0.38 on IMDB-BINARY is 3.08 in all other copies", Protocols: []string{"graphcl"}, Values: map[string][2]float64{
		"NCI1": {78.07, .47}, "PROTEINS": {74.55, .41}, "DD": {77.32, .54}, "MUTAG": {87.35, 1.02},
		"COLLAB": {69.50, .36}, "REDDIT-BINARY": {85.29, 1.35}, "REDDIT-MULTI-5K": {55.74, .63}, "IMDB-BINARY": {70.21, .38},
	}},
	{Row: "JOAOv2, published", Note: "its own paper, as MSSGCL's table has it", Protocols: []string{"graphcl"}, Values: map[string][2]float64{
		"NCI1": {78.36, .53}, "PROTEINS": {74.07, 1.10}, "DD": {77.40, 1.15}, "MUTAG": {87.67, .79},
		"COLLAB": {69.33, .34}, "REDDIT-BINARY": {86.42, 1.45}, "REDDIT-MULTI-5K": {56.03, .27}, "IMDB-BINARY": {70.83, .25},
	}},
	{Row: "SimGRACE, published", Note: "its own paper, as MSSGCL's table has it but for IMDB-BINARY, where that prints 71.30 ± 0.77", Protocols: []string{"graphcl"}, Values: map[string][2]float64{
		"NCI1": {79.12, .44}, "PROTEINS": {75.35, .09}, "DD": {77.44, 1.11}, "MUTAG": {89.01, 1.31},
		"COLLAB": {71.72, .82}, "REDDIT-BINARY": {89.51, .89}, "REDDIT-MULTI-5K": {55.91, .34}, "IMDB-BINARY": {71.26, .74},
	}},
	{Row: "MSSGCL, published", Note: "its own paper; its code prints the best of 20 looks at the test folds", Protocols: []string{"graphcl"}, Values: map[string][2]float64{
		"NCI1": {81.45, .48}, "PROTEINS": {75.49, .70}, "DD": {79.73, .44}, "MUTAG": {89.68, .57},
		"COLLAB": {73.48, .83}, "REDDIT-BINARY": {91.08, .78}, "REDDIT-MULTI-5K": {56.17, .18}, "IMDB-BINARY": {73.14, .38},
	}},
	{Row: "CuCo, published", Note: "not in MSSGCL's table; presumably its own paper, whose code looks at the test folds after every epoch", Protocols: []string{"graphcl"}, Values: map[string][2]float64{
		"NCI1": {79.24, .56}, "PROTEINS": {75.91, .55}, "DD": {79.20, 1.12}, "MUTAG": {90.55, .98},
		"COLLAB": {72.30, .34}, "REDDIT-BINARY": {88.6, .55}, "REDDIT-MULTI-5K": {56.49, .19}, "IMDB-BINARY": {72.33, .22},
	}},
	{Row: "SpecMatch-CL, published", Note: "the paper's Table 1", Protocols: []string{"graphcl", "linear"}, Values: map[string][2]float64{
		"NCI1": {81.86, .36}, "PROTEINS": {76.69, .50}, "DD": {81.12, 1.04}, "MUTAG": {90.87, .75},
		"COLLAB": {74.26, .94}, "REDDIT-BINARY": {91.31, .79}, "REDDIT-MULTI-5K": {57.22, 1.20}, "IMDB-BINARY": {73.35, .44},
	}},
	{Row: "untrained, PyTorch", Note: "GIN 3×32, Adam 0.01, batch 128, 20 epochs, RBF-SVM at the last epoch, 2 to 15 seeds", Protocols: []string{"graphcl"}, Values: map[string][2]float64{
		"MUTAG": {86.40, 1.28}, "NCI1": {76.00, 1.50}, "PROTEINS": {74.47, .37}, "IMDB-BINARY": {67.76, .38},
	}},
	{Row: "InfoNCE, PyTorch", Note: "GIN 3×32, Adam 0.01, batch 128, 20 epochs, RBF-SVM at the last epoch, 2 to 15 seeds", Protocols: []string{"graphcl"}, Values: map[string][2]float64{
		"MUTAG": {87.95, 1.20}, "NCI1": {79.56, .46}, "PROTEINS": {75.02, 1.07}, "IMDB-BINARY": {70.94, 1.21},
	}},
}

// Rows returns the rows of [Table1] and [Classical] with these names, in that order of names. It
// panics if there is none.
func Rows(names ...string) []grid.Published {
	var rows []grid.Published
	for _, name := range names {
		all := slices.Concat(Table1, Classical)
		rows = append(rows, all[slices.IndexFunc(all, func(p grid.Published) bool { return p.Row == name })])
	}
	return rows
}
