package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/specmatch/specmatch/specmatch"
	"github.com/specmatch/specmatch/specmatch/cli"
	"github.com/specmatch/specmatch/specmatch/method"
	"github.com/specmatch/specmatch/specmatch/run/pretrain"
	"github.com/specmatch/specmatch/specmatch/setting"
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

var factors = []string{factorBeta, factorP, factorKappa, factorAdjacency, factorLaplacian, factorInput, factorReduction}

type vary struct {
	factors []string
	betas   []cli.Beta
	ps      []float64
	kappas  []float64
}

func (v *vary) Register(f *cli.FlagSet) {
	cli.Var(f, &v.factors, "vary", setting.List(setting.OneOf(factors...)), "`factors` to change, one at a time: "+strings.Join(factors, ","))
	cli.Var(f, &v.betas, "beta-values", setting.List(cli.ParseBeta), "`values` of β to compare (0 is always among them)")
	cli.Var(f, &v.ps, "p-values", setting.List(setting.Float(0, 100)), "`values` of p to compare")
	cli.Var(f, &v.kappas, "kappa-values", setting.List(setting.Positive), "`values` of κ to compare")
	f.Grows("vary", "beta-values", "p-values", "kappa-values")
}

// spreadKappa is the κ of the adjacency "spread", which counts in units of the
// standard deviation of the similarities. That is about 0.3 after training with
// L_C alone, so that 3 units are as sharp as 10 on the similarities themselves.
const spreadKappa = 3

// row is one setting: the base with one factor changed.
type row struct {
	factor   string
	label    string
	x        float64 // of a factor that is a number: its value
	method   string
	loss     cli.Loss
	settings pretrain.Settings
}

// key names the setting in the journal: equal keys, equal runs.
func (r row) key() string {
	if r.method == method.InfoNCE {
		return method.InfoNCE
	}
	o := &r.settings.Objective
	return fmt.Sprintf("beta=%v,p=%v,kappa=%v,%v,random-walk=%t,on-h=%t,sum=%t",
		r.loss.Beta, r.loss.Percentile, r.loss.Kappa, o.Match.Adjacency, o.Match.RandomWalk, o.OnH, o.Contrast.Sum)
}

// rows lists the settings in the order of the table. The first is β = 0, with
// which the others are compared.
func (x *experiment) rows() []row {
	base := row{label: "β = 0", method: method.InfoNCE, factor: factorBeta, loss: x.Loss, settings: x.Settings}
	base.loss.Beta = cli.Beta{}
	rows := []row{base}
	add := func(factor, label string, value float64, change func(r *row)) {
		if slices.Contains(x.vary.factors, factor) {
			r := row{factor: factor, label: label, x: value, method: method.SpecMatch, loss: x.Loss, settings: x.Settings}
			change(&r)
			rows = append(rows, r)
		}
	}
	for _, b := range x.vary.betas {
		if b != (cli.Beta{}) {
			add(factorBeta, fmt.Sprint("β = ", b), b.Weight, func(r *row) { r.loss.Beta = b })
		}
	}
	for _, p := range x.vary.ps {
		add(factorP, fmt.Sprint("p = ", p), p, func(r *row) { r.loss.Percentile = p })
	}
	for _, k := range x.vary.kappas {
		add(factorKappa, fmt.Sprint("κ = ", k), k, func(r *row) { r.loss.Kappa = k })
	}
	for _, a := range []specmatch.Adjacency{specmatch.Sigmoid, specmatch.SpreadSigmoid, specmatch.StraightThrough, specmatch.Hard} {
		label := "adjacency " + a.String()
		if a == specmatch.SpreadSigmoid {
			label += fmt.Sprintf(", κ = %d", spreadKappa)
		}
		add(factorAdjacency, label, 0, func(r *row) {
			r.settings.Objective.Match.Adjacency = a
			if a == specmatch.SpreadSigmoid {
				r.loss.Kappa = spreadKappa
			}
		})
	}
	// θ is the largest similarity, no pair is above it: L_G is 0.
	add(factorAdjacency, "adjacency hard, p = 100", 0, func(r *row) { r.settings.Objective.Match.Adjacency, r.loss.Percentile = specmatch.Hard, 100 })
	add(factorLaplacian, "Laplacian symmetric", 0, func(r *row) { r.settings.Objective.Match.RandomWalk = false })
	add(factorLaplacian, "Laplacian random-walk", 0, func(r *row) { r.settings.Objective.Match.RandomWalk = true })
	add(factorInput, "L_G on z", 0, func(r *row) { r.settings.Objective.OnH = false })
	add(factorInput, "L_G on h", 0, func(r *row) { r.settings.Objective.OnH = true })
	add(factorReduction, "L_C as a mean", 0, func(r *row) { r.settings.Objective.Contrast.Sum = false })
	add(factorReduction, "L_C as a sum", 0, func(r *row) { r.settings.Objective.Contrast.Sum = true })
	return rows
}
