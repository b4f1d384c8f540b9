package published

import "github.com/specmatch/specmatch/experiments/internal/grid"

// Classical holds the figures that the literature prints for graph kernels and embeddings:
// mean and standard deviation in per cent.
var Classical = []grid.Published{
	{Row: "WL, in the paper's Table 1", Note: "as MSSGCL's Table 2 has it; MUTAG and PROTEINS from the DGK paper, COLLAB and RDT-B weak runs", Values: Figures{
		{80.01, .50}, {72.92, .56}, {74.02, 2.28}, {80.72, 3.00}, {60.30, 3.44}, {68.82, .41}, {46.06, .21}, {72.30, 3.44}}.Of(columns)},
	{Row: "WL, a better run", Note: "Borgwardt et al. 2020 and Morris et al. 2020, as quoted by the TOGL paper", Values: Figures{
		1: {73.1, .5}, 2: {77.7, 2.0}, 5: {78.0, .6}, 7: {71.2, .5}}.Of(columns)},
	{Row: "WL-OA, a better run", Note: "as quoted by the TOGL paper", Values: Figures{
		1: {73.5, .9}, 2: {77.8, 1.2}, 5: {87.6, .3}, 7: {74.0, .7}}.Of(columns)},
	{Row: "DGK, in the paper's Table 1", Note: "a mixture of deep shortest-path, WL and graphlet kernels, as MSSGCL's Table 2 has it", Values: Figures{
		{80.31, .46}, {73.30, .82}, {74.85, .74}, {87.44, 2.72}, {64.66, .50}, {78.04, .39}, {41.27, .18}, {66.96, .56}}.Of(columns)},
	{Row: "sub2vec, in the paper's Table 1", Note: "as MSSGCL's Table 2 has it; one value stands under both COLLAB and IMDB-B", Values: Figures{
		{52.84, 1.47}, {53.03, 5.55}, {54.33, 2.44}, {61.05, 15.80}, {55.26, 1.54}, {71.48, .41}, {36.68, .42}, {55.26, 1.54}}.Of(columns)},
	{Row: "node2vec, in the paper's Table 1", Note: "as MSSGCL's Table 2 has it, which prints 38.60 for IMDB-B", Values: Figures{
		{54.89, 1.61}, {57.49, 3.57}, {74.77, .51}, {72.63, 10.20}, {54.57, .37}, {72.76, .92}, {31.09, .14}, {58.02, 2.30}}.Of(columns)},
	{Row: "graph2vec, in the paper's Table 1", Note: "as MSSGCL's Table 2 has it; one value stands under both COLLAB and IMDB-B", Values: Figures{
		{73.22, 1.81}, {73.30, 2.05}, {70.32, 2.32}, {83.15, 9.25}, {71.10, .54}, {75.48, 1.03}, {47.86, .26}, {71.10, .54}}.Of(columns)},
}
