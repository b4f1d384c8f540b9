package main

import "github.com/specmatch/specmatch/experiments/internal/grid"

// published holds figures of the paper's Table 3: mean and standard deviation of
// the ROC-AUC in per cent. The paper pre-trains on 2 million molecules of ZINC15.
// JOAO's own paper has other figures for clintox (81.32), bbbp (70.22) and bace
// (77.34), GraphCL's for all sets.
var published = []grid.Published{
	{Row: "no pre-training, published", Values: map[string][2]float64{
		"tox21": {74.6, .4}, "toxcast": {61.7, .5}, "sider": {58.2, 1.7}, "clintox": {58.4, 6.4},
		"muv": {70.7, 1.8}, "hiv": {75.5, .8}, "bbbp": {65.7, 3.3}, "bace": {72.4, 3.8},
	}},
	{Row: "EdgePred, published", Values: map[string][2]float64{
		"tox21": {76.0, .6}, "toxcast": {64.1, .6}, "sider": {60.4, .7}, "clintox": {64.1, 3.7},
		"muv": {75.1, 1.2}, "hiv": {76.3, 1.0}, "bbbp": {67.3, 2.4}, "bace": {77.3, 3.5},
	}},
	{Row: "AttrMasking, published", Values: map[string][2]float64{
		"tox21": {75.1, .9}, "toxcast": {63.3, .9}, "sider": {60.5, .9}, "clintox": {73.5, 4.3},
		"muv": {75.8, 1.0}, "hiv": {75.3, 1.5}, "bbbp": {65.2, 1.4}, "bace": {77.8, 1.8},
	}},
	{Row: "ContextPred, published", Values: map[string][2]float64{
		"tox21": {73.6, .3}, "toxcast": {62.6, .6}, "sider": {59.7, 1.8}, "clintox": {74.0, 3.4},
		"muv": {72.5, 1.5}, "hiv": {75.6, 1.0}, "bbbp": {70.6, 1.5}, "bace": {78.8, 1.2},
	}},
	{Row: "GraphCL, published", Values: map[string][2]float64{
		"tox21": {75.1, .7}, "toxcast": {63.0, .4}, "sider": {59.8, 1.3}, "clintox": {77.5, 3.8},
		"muv": {76.4, .4}, "hiv": {75.1, .7}, "bbbp": {67.8, 2.4}, "bace": {74.6, 2.1},
	}},
	{Row: "JOAO, published", Values: map[string][2]float64{
		"tox21": {74.8, .6}, "toxcast": {62.8, .7}, "sider": {60.4, 1.5}, "clintox": {66.6, 3.1},
		"muv": {76.6, 1.7}, "hiv": {76.9, .7}, "bbbp": {66.4, 1.0}, "bace": {73.2, 1.6},
	}},
	{Row: "SimGRACE, published", Values: map[string][2]float64{
		"tox21": {75.6, .5}, "toxcast": {63.4, .5}, "sider": {60.6, 1.0}, "clintox": {75.6, 3.0},
		"muv": {76.9, 1.3}, "hiv": {75.2, .9}, "bbbp": {71.3, .9}, "bace": {75.0, 1.7},
	}},
	{Row: "SpecMatch-CL, published", Values: map[string][2]float64{
		"tox21": {76.97, .45}, "toxcast": {64.22, .45}, "sider": {62.44, 1.22}, "clintox": {77.78, 3.2},
		"muv": {78.86, 1.37}, "hiv": {76.25, .8}, "bbbp": {72.88, 1.2}, "bace": {76.93, 1.8},
	}},
}
