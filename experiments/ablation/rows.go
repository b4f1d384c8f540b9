package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/specmatch/specmatch/specmatch"
	"github.com/specmatch/specmatch/specmatch/cli"
	"github.com/specmatch/specmatch/specmatch/method"
	"github.com/specmatch/specmatch/specmatch/setting"
	"github.com/specmatch/specmatch/specmatch/train"
)

// The factors that -vary names.
const (
	factorBeta      = "beta"
	factorP         = "p"
	factorKappa     = "kappa"
	factorAdjacency = "adjacency" // how a similarity becomes an edge
	factorLaplacian = "laplacian" // symmetric or random-walk
	factorInput     = "input"     // L_G on z or on h
	factorReduction = "reduction" // L_C as mean or sum
)

var factors = []string{
	factorBeta, factorP, factorKappa, factorAdjacency, factorLaplacian, factorInput, factorReduction,
}

type vary struct {
	factors []string
	betas   []train.Beta
	ps      []float64
	kappas  []float64
}

func (v *vary) Register(f *cli.FlagSet) {
	cli.Var(f, &v.factors, "vary", setting.List(setting.OneOf(factors...)),
		"`factors` to change, one at a time: "+strings.Join(factors, ","))
	cli.Var(f, &v.betas, "beta-values", setting.List(train.ParseBeta),
		"`values` of β to compare; 0 is always included")
	cli.Var(f, &v.ps, "p-values", setting.List(setting.Float(0, 100)), "`values` of p to compare")
	cli.Var(f, &v.kappas, "kappa-values", setting.List(setting.Positive), "`values` of κ to compare")
	f.Grows("vary", "beta-values", "p-values", "kappa-values")
}

// spreadKappa is the κ of the adjacency "spread", which counts in units of the
// standard deviation of the similarities. That is about 0.3 after training with
// L_C alone, so that 3 units are as sharp as 10 on the similarities themselves.
const spreadKappa = 3.

// row is one setting: the base with one factor changed.
type row struct {
	factor  string
	label   string
	x       float64 // of a factor that is a number: its value
	method  string
	options method.Options
}

// key names the setting in the journal: equal keys, equal runs.
func (r row) key() string {
	if r.method == method.InfoNCE {
		return method.InfoNCE
	}
	o := method.Objective(r.options)
	return fmt.Sprintf(
		"beta=%v,p=%v,kappa=%v,%v,random-walk=%t,on-h=%t,sum=%t",
		o.Beta, o.Match.Percentile, o.Match.Kappa, o.Match.Adjacency,
		o.Match.RandomWalk, o.OnH, o.Contrast.Sum,
	)
}

// rows lists the settings in the order of the table. The first is β = 0, with
// which the others are compared.
func (x *experiment) rows() []row {
	base := x.Settings.Options
	rows := []row{{
		label:   "β = 0",
		method:  method.InfoNCE,
		factor:  factorBeta,
		options: base.With(method.Options{"beta": train.Beta{}}),
	}}
	add := func(factor, label string, value float64, changes method.Options) {
		if slices.Contains(x.vary.factors, factor) {
			rows = append(rows, row{factor, label, value, method.SpecMatch, base.With(changes)})
		}
	}
	for _, b := range x.vary.betas {
		if b != (train.Beta{}) {
			add(factorBeta, fmt.Sprint("β = ", b), b.Weight, method.Options{"beta": b})
		}
	}
	for _, p := range x.vary.ps {
		add(factorP, fmt.Sprint("p = ", p), p, method.Options{"percentile": p})
	}
	for _, k := range x.vary.kappas {
		add(factorKappa, fmt.Sprint("κ = ", k), k, method.Options{"kappa": k})
	}
	add(factorAdjacency, "adjacency sigmoid", 0, method.Options{"adjacency": specmatch.Sigmoid})
	add(factorAdjacency, fmt.Sprintf("adjacency spread, κ = %v", spreadKappa), 0,
		method.Options{"adjacency": specmatch.SpreadSigmoid, "kappa": spreadKappa})
	add(factorAdjacency, "adjacency ste", 0, method.Options{"adjacency": specmatch.StraightThrough})
	add(factorAdjacency, "adjacency hard", 0, method.Options{"adjacency": specmatch.Hard})
	// θ is the largest similarity, no pair is above it: L_G is 0.
	add(
		factorAdjacency,
		"adjacency hard, p = 100",
		0,
		method.Options{"adjacency": specmatch.Hard, "percentile": 100.},
	)
	add(factorLaplacian, "Laplacian symmetric", 0, method.Options{"random-walk": false})
	add(factorLaplacian, "Laplacian random-walk", 0, method.Options{"random-walk": true})
	add(factorInput, "L_G on z", 0, method.Options{"on-h": false})
	add(factorInput, "L_G on h", 0, method.Options{"on-h": true})
	add(factorReduction, "L_C as a mean", 0, method.Options{"sum": false})
	add(factorReduction, "L_C as a sum", 0, method.Options{"sum": true})
	return rows
}
