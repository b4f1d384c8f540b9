package published

import "github.com/specmatch/specmatch/experiments/internal/grid"

// Table3 holds figures of the paper's Table 3: mean and standard deviation of
// the ROC-AUC in per cent. The paper pre-trains on 2 million molecules of ZINC15.
// JOAO's own paper has other figures for clintox (81.32), bbbp (70.22) and bace
// (77.34), GraphCL's for all sets.
var Table3 = []grid.Published{
	{Row: "no pre-training, published", Values: Figures{{74.6, .4}, {61.7, .5}, {58.2, 1.7}, {58.4, 6.4}, {70.7, 1.8}, {75.5, .8}, {65.7, 3.3}, {72.4, 3.8}}.Of(molecules)},
	{Row: "EdgePred, published", Values: Figures{{76.0, .6}, {64.1, .6}, {60.4, .7}, {64.1, 3.7}, {75.1, 1.2}, {76.3, 1.0}, {67.3, 2.4}, {77.3, 3.5}}.Of(molecules)},
	{Row: "AttrMasking, published", Values: Figures{{75.1, .9}, {63.3, .9}, {60.5, .9}, {73.5, 4.3}, {75.8, 1.0}, {75.3, 1.5}, {65.2, 1.4}, {77.8, 1.8}}.Of(molecules)},
	{Row: "ContextPred, published", Values: Figures{{73.6, .3}, {62.6, .6}, {59.7, 1.8}, {74.0, 3.4}, {72.5, 1.5}, {75.6, 1.0}, {70.6, 1.5}, {78.8, 1.2}}.Of(molecules)},
	{Row: "GraphCL, published", Values: Figures{{75.1, .7}, {63.0, .4}, {59.8, 1.3}, {77.5, 3.8}, {76.4, .4}, {75.1, .7}, {67.8, 2.4}, {74.6, 2.1}}.Of(molecules)},
	{Row: "JOAO, published", Values: Figures{{74.8, .6}, {62.8, .7}, {60.4, 1.5}, {66.6, 3.1}, {76.6, 1.7}, {76.9, .7}, {66.4, 1.0}, {73.2, 1.6}}.Of(molecules)},
	{Row: "SimGRACE, published", Values: Figures{{75.6, .5}, {63.4, .5}, {60.6, 1.0}, {75.6, 3.0}, {76.9, 1.3}, {75.2, .9}, {71.3, .9}, {75.0, 1.7}}.Of(molecules)},
	{Row: "SpecMatch-CL, published", Values: Figures{{76.97, .45}, {64.22, .45}, {62.44, 1.22}, {77.78, 3.2}, {78.86, 1.37}, {76.25, .8}, {72.88, 1.2}, {76.93, 1.8}}.Of(molecules)},
}

var molecules = []string{"tox21", "toxcast", "sider", "clintox", "muv", "hiv", "bbbp", "bace"}
