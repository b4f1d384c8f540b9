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
	{Row: "GraphCL, published", Note: "GraphCL's own table", Protocols: []string{"graphcl"}, Values: Figures{
		{77.87, .41}, {74.39, .45}, {78.62, .40}, {86.80, 1.34}, {71.36, 1.15}, {89.53, .84}, {55.99, .28}, {71.14, .44}}.Of(columns)},
	{Row: "InfoGraph, published", Note: "its own paper on MUTAG, REDDIT and IMDB-BINARY, GraphCL's table on the others; its code evaluates 21 times with four classifiers and does not say which of the figures is printed", Protocols: []string{"graphcl"}, Values: Figures{
		{76.20, 1.06}, {74.44, .31}, {72.85, 1.78}, {89.01, 1.13}, {70.65, 1.13}, {82.50, 1.42}, {53.46, 1.03}, {73.03, .87}}.Of(columns)},
	{Row: "JOAO, published", Note: "its own paper; ± 0.38 on IMDB-BINARY is 3.08 in all other copies", Protocols: []string{"graphcl"}, Values: Figures{
		{78.07, .47}, {74.55, .41}, {77.32, .54}, {87.35, 1.02}, {69.50, .36}, {85.29, 1.35}, {55.74, .63}, {70.21, .38}}.Of(columns)},
	{Row: "JOAOv2, published", Note: "its own paper, as MSSGCL's table has it", Protocols: []string{"graphcl"}, Values: Figures{
		{78.36, .53}, {74.07, 1.10}, {77.40, 1.15}, {87.67, .79}, {69.33, .34}, {86.42, 1.45}, {56.03, .27}, {70.83, .25}}.Of(columns)},
	{Row: "SimGRACE, published", Note: "its own paper, as MSSGCL's table has it but for IMDB-BINARY, where that prints 71.30 ± 0.77", Protocols: []string{"graphcl"}, Values: Figures{
		{79.12, .44}, {75.35, .09}, {77.44, 1.11}, {89.01, 1.31}, {71.72, .82}, {89.51, .89}, {55.91, .34}, {71.26, .74}}.Of(columns)},
	{Row: "MSSGCL, published", Note: "its own paper; its code prints the best of 20 looks at the test folds", Protocols: []string{"graphcl"}, Values: Figures{
		{81.45, .48}, {75.49, .70}, {79.73, .44}, {89.68, .57}, {73.48, .83}, {91.08, .78}, {56.17, .18}, {73.14, .38}}.Of(columns)},
	{Row: "CuCo, published", Note: "not in MSSGCL's table; presumably its own paper, whose code looks at the test folds after every epoch", Protocols: []string{"graphcl"}, Values: Figures{
		{79.24, .56}, {75.91, .55}, {79.20, 1.12}, {90.55, .98}, {72.30, .34}, {88.6, .55}, {56.49, .19}, {72.33, .22}}.Of(columns)},
	{Row: "SpecMatch-CL, published", Note: "the paper's Table 1", Protocols: []string{"graphcl", "linear"}, Values: Figures{
		{81.86, .36}, {76.69, .50}, {81.12, 1.04}, {90.87, .75}, {74.26, .94}, {91.31, .79}, {57.22, 1.20}, {73.35, .44}}.Of(columns)},
	{Row: "untrained, PyTorch", Note: "GIN 3×32, Adam 0.01, batch 128, 20 epochs, RBF-SVM at the last epoch, 2 to 15 seeds", Protocols: []string{"graphcl"}, Values: Figures{
		0: {76.00, 1.50}, 1: {74.47, .37}, 3: {86.40, 1.28}, 7: {67.76, .38}}.Of(columns)},
	{Row: "InfoNCE, PyTorch", Note: "GIN 3×32, Adam 0.01, batch 128, 20 epochs, RBF-SVM at the last epoch, 2 to 15 seeds", Protocols: []string{"graphcl"}, Values: Figures{
		0: {79.56, .46}, 1: {75.02, 1.07}, 3: {87.95, 1.20}, 7: {70.94, 1.21}}.Of(columns)},
}

// Figures are a row of a printed table: mean and standard deviation, in the order of the
// columns; zero where there is none.
type Figures [][2]float64

// Of returns the figures by data set, given those that head the columns.
func (f Figures) Of(sets []string) map[string][2]float64 {
	m := map[string][2]float64{}
	for i, v := range f {
		if v[0] != 0 {
			m[sets[i]] = v
		}
	}
	return m
}

// columns are those of the paper's Table 1.
var columns = []string{"NCI1", "PROTEINS", "DD", "MUTAG", "COLLAB", "REDDIT-BINARY", "REDDIT-MULTI-5K", "IMDB-BINARY"}

// Rows returns the rows of [Table1] and [Classical] with these names, in that order of names. It
// panics if there is none.
func Rows(names ...string) []grid.Published {
	var rows []grid.Published
	for _, name := range names {
		rows = append(rows, *Find(slices.Concat(Table1, Classical), name))
	}
	return rows
}

// Find returns the row of a table with a name, nil if there is none.
func Find(rows []grid.Published, name string) *grid.Published {
	for i := range rows {
		if rows[i].Row == name {
			return &rows[i]
		}
	}
	return nil
}
