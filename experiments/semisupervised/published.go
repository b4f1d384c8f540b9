package main

// published holds figures of the paper's Table 2: mean and standard deviation in
// per cent.
var published = []struct {
	row       string
	labelRate float64
	values    map[string][2]float64
}{
	{"no pre-training, published", 0.1, map[string][2]float64{
		"NCI1": {73.72, .24}, "PROTEINS": {70.40, 1.54}, "DD": {73.56, .41},
		"COLLAB": {73.71, .27}, "REDDIT-BINARY": {86.63, .27}, "REDDIT-MULTI-5K": {51.33, .44},
	}},
	{"augmentation only, published", 0.1, map[string][2]float64{
		"NCI1": {73.59, .32}, "PROTEINS": {70.29, .64}, "DD": {74.30, .81},
		"COLLAB": {74.19, .13}, "REDDIT-BINARY": {87.74, .39}, "REDDIT-MULTI-5K": {52.01, .20},
	}},
	{"GraphCL, published", 0.1, map[string][2]float64{
		"NCI1": {74.63, .25}, "PROTEINS": {74.17, .34}, "DD": {76.17, 1.37},
		"COLLAB": {74.23, .21}, "REDDIT-BINARY": {89.11, .19}, "REDDIT-MULTI-5K": {52.55, .45},
	}},
	{"SpecMatch-CL, published", 0.1, map[string][2]float64{
		"NCI1": {75.67, .31}, "PROTEINS": {75.06, .68}, "DD": {79.21, 1.12},
		"COLLAB": {76.55, .34}, "REDDIT-BINARY": {91.86, .42}, "REDDIT-MULTI-5K": {55.26, .35},
	}},
	{"no pre-training, published", 0.01, map[string][2]float64{"NCI1": {60.72, .45}, "COLLAB": {57.46, .25}}},
	{"augmentation only, published", 0.01, map[string][2]float64{"NCI1": {60.49, .46}, "COLLAB": {58.40, .97}}},
	{"GraphCL, published", 0.01, map[string][2]float64{"NCI1": {62.55, .86}, "COLLAB": {64.57, 1.15}}},
	{"SpecMatch-CL, published", 0.01, map[string][2]float64{"NCI1": {65.12, .65}, "COLLAB": {65.86, .98}}},
}
