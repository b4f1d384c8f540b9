package main

// published is the paper's Table 4: accuracy in per cent by p, mean and
// standard deviation, at a β that it does not state.
var published = map[string]map[float64][2]float64{
	"NCI1":            {100: {80.45, .49}, 80: {81.86, .36}, 60: {79.32, .58}},
	"PROTEINS":        {100: {74.97, .56}, 80: {76.69, .50}, 60: {75.39, .43}},
	"DD":              {100: {80.22, .89}, 80: {81.12, 1.04}, 60: {80.45, 1.12}},
	"MUTAG":           {100: {90.14, .87}, 80: {90.87, .75}, 60: {89.39, .78}},
	"COLLAB":          {100: {73.21, .74}, 80: {74.26, .94}, 60: {73.61, .87}},
	"REDDIT-BINARY":   {100: {90.71, 1.07}, 80: {91.31, .79}, 60: {92.48, .52}},
	"REDDIT-MULTI-5K": {100: {56.34, .96}, 80: {57.22, 1.20}, 60: {55.84, 1.12}},
	"IMDB-BINARY":     {100: {74.75, .64}, 80: {73.35, .44}, 60: {72.81, .56}},
}
