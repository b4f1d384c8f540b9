package published

import "github.com/specmatch/specmatch/experiments/internal/grid"

// Table2 holds figures of the paper's Table 2, by label rate: mean and standard
// deviation in per cent. It repeats most from the tables of GraphCL and MSSGCL, whose rows come
// from the systems' own papers; no code for GAE's, Infomax's and ContextPred's
// pre-training on these sets was ever published.
var Table2 = map[float64][]grid.Published{
	0.1: {
		{Row: "no pre-training, published", Values: Figures{{73.72, .24}, {70.40, 1.54}, {73.56, .41}, {73.71, .27}, {86.63, .27}, {51.33, .44}}.Of(manyLabels)},
		{Row: "augmentation only, published", Values: Figures{{73.59, .32}, {70.29, .64}, {74.30, .81}, {74.19, .13}, {87.74, .39}, {52.01, .20}}.Of(manyLabels)},
		{Row: "GraphCL, published", Values: Figures{{74.63, .25}, {74.17, .34}, {76.17, 1.37}, {74.23, .21}, {89.11, .19}, {52.55, .45}}.Of(manyLabels)},
		{Row: "GAE, published", Values: Figures{{74.36, .24}, {70.51, .17}, {74.54, .68}, {75.09, .19}, {87.69, .40}, {33.58, .13}}.Of(manyLabels)},
		{Row: "Infomax, published", Values: Figures{{74.86, .26}, {72.27, .40}, {75.78, .34}, {73.76, .29}, {88.66, .95}, {53.61, .31}}.Of(manyLabels)},
		{Row: "ContextPred, published", Values: Figures{{73.00, .30}, {70.23, .63}, {74.66, .51}, {73.69, .37}, {84.76, .52}, {51.23, .84}}.Of(manyLabels)},
		{Row: "JOAO, published", Values: Figures{{74.48, .27}, {72.13, .92}, {75.69, .67}, {75.30, .32}, {88.14, .25}, {52.83, .54}}.Of(manyLabels)},
		{Row: "JOAOv2, published", Values: Figures{{74.86, .39}, {73.31, .48}, {75.81, .73}, {75.53, .18}, {88.79, .65}, {52.71, .28}}.Of(manyLabels)},
		{Row: "SimGRACE, published", Values: Figures{{74.60, .41}, {74.03, .51}, {76.48, .52}, {74.74, .28}, {88.86, .62}, {53.97, .64}}.Of(manyLabels)},
		{Row: "MSSGCL, published", Values: Figures{{74.77, .31}, {75.76, .52}, {78.89, .18}, {76.02, .13}, {90.58, .34}, {54.36, .24}}.Of(manyLabels)},
		{Row: "SpecMatch-CL, published", Values: Figures{{75.67, .31}, {75.06, .68}, {79.21, 1.12}, {76.55, .34}, {91.86, .42}, {55.26, .35}}.Of(manyLabels)},
	},
	0.01: {
		{Row: "no pre-training, published", Values: Figures{{60.72, .45}, {57.46, .25}}.Of(fewLabels)},
		{Row: "augmentation only, published", Values: Figures{{60.49, .46}, {58.40, .97}}.Of(fewLabels)},
		{Row: "GraphCL, published", Values: Figures{{62.55, .86}, {64.57, 1.15}}.Of(fewLabels)},
		{Row: "GAE, published", Values: Figures{{61.63, .84}, {63.20, .67}}.Of(fewLabels)},
		{Row: "Infomax, published", Values: Figures{{62.72, .65}, {61.70, .77}}.Of(fewLabels)},
		{Row: "ContextPred, published", Values: Figures{{61.21, .77}, {57.60, 2.07}}.Of(fewLabels)},
		{Row: "JOAO, published", Values: Figures{{61.97, .72}, {63.71, .84}}.Of(fewLabels)},
		{Row: "JOAOv2, published", Values: Figures{{62.52, 1.16}, {64.51, 2.21}}.Of(fewLabels)},
		{Row: "SimGRACE, published", Values: Figures{{64.21, .65}, {64.28, .98}}.Of(fewLabels)},
		{Row: "MSSGCL, published", Values: Figures{{64.63, .75}, {65.02, .78}}.Of(fewLabels)},
		{Row: "SpecMatch-CL, published", Values: Figures{{65.12, .65}, {65.86, .98}}.Of(fewLabels)},
	},
}

// The columns of the table at a tenth of the labels, and at a hundredth.
var (
	manyLabels = []string{"NCI1", "PROTEINS", "DD", "COLLAB", "REDDIT-BINARY", "REDDIT-MULTI-5K"}
	fewLabels  = []string{"NCI1", "COLLAB"}
)
