package model

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
)

// TaskShares are shares for each of several tasks, where one share of all tasks would suit none of them. Package
// finetune chooses them.
type TaskShares struct {
	// Linear are the shares of the linear model, in place of [Linear.Share]; none if that one holds.
	Linear []float64 `json:"linear,omitempty"`
	// Forest are the shares of the forest, in place of [Forest.Share]; none if that one holds.
	Forest []float64 `json:"forest,omitempty"`
}

// check returns an error unless the shares suit the card.
func (s *TaskShares) check(c *Card) error {
	hasLinear := c.Beside != nil && c.Beside.Linear
	if len(s.Linear) > 0 && !hasLinear || len(s.Forest) > 0 && c.Forest == nil {
		return fmt.Errorf("shares of tasks for a linear model or a forest that the model lacks")
	}
	for _, shares := range [][]float64{s.Linear, s.Forest} {
		if len(shares) == 0 {
			continue
		}
		if c.Head.Kind == Classes || len(shares) != c.Head.Outputs {
			return fmt.Errorf("%d shares for %d outputs of kind %s", len(shares), c.Head.Outputs, c.Head.Kind)
		}
		for _, share := range shares {
			if !(share >= 0 && share <= 1) {
				return fmt.Errorf("a share of %v; want 0 to 1", share)
			}
		}
	}
	return nil
}

// linearShares returns the shares of the linear model in the predictions: one for all tasks, or one for each.
func (m *Trained) linearShares() []float64 {
	if m.Beside == nil || m.Beside.Linear == nil {
		return []float64{0}
	}
	if s := m.Card.Shares; s != nil && len(s.Linear) > 0 {
		return s.Linear
	}
	shares := []float64{0}
	m.Head.W.Backend().Download(shares, m.Beside.Linear.Share.Value)
	return shares
}

// forestShares is linearShares of the forest.
func (m *Trained) forestShares() []float64 {
	if m.Card.Forest == nil {
		return []float64{0}
	}
	if s := m.Card.Shares; s != nil && len(s.Forest) > 0 {
		return s.Forest
	}
	return []float64{m.Card.Forest.Share}
}

// areAll reports whether all shares have a value.
func areAll(shares []float64, value float64) bool {
	return !slices.ContainsFunc(shares, func(share float64) bool { return share != value })
}

// Mix returns the outputs of the mixture p = (1-share)·p₁ + share·p₂, where p₁ are the predictions of a network
// with the outputs s, and p₂ those of a linear model or a forest with the outputs member, both [n×Outputs]. shares
// has one share for all outputs or, unless they are classes, one for each. Predictions are numbers or
// probabilities; those of the second model's classes are divided by their sum. The outputs of the mixture are
// numbers, log-odds or logarithms of probabilities.
func (h Head) Mix(shares, s, member []float64) []float64 {
	mixed := make([]float64, len(s))
	switch h.Kind {
	case Regression:
		for i := range s {
			share := shares[i%len(shares)]
			mixed[i] = (1-share)*s[i] + share*member[i]
		}
	case Binary:
		logFirst := make([]float64, len(shares))
		logSecond := make([]float64, len(shares))
		for k, share := range shares {
			logFirst[k] = math.Log1p(-share)
			logSecond[k] = math.Log(share)
		}
		for i := range s {
			first := logFirst[i%len(shares)]
			second := logSecond[i%len(shares)]
			logOne := logSum(first+logSigmoid(s[i]), second+logSigmoid(member[i]))
			logZero := logSum(first+logSigmoid(-s[i]), second+logSigmoid(-member[i]))
			mixed[i] = logOne - logZero
		}
	default:
		h.mixClasses(shares[0], s, member, mixed)
	}
	return mixed
}

// mixClasses is [Head.Mix] of classes.
func (h Head) mixClasses(share float64, s, member, mixed []float64) {
	logFirst := math.Log1p(-share)
	logSecond := math.Log(share)
	for start := 0; start < len(s); start += h.Outputs {
		row := s[start : start+h.Outputs]
		// of the second model's probabilities, before they are divided
		logs := make([]float64, h.Outputs)
		for c, v := range member[start : start+h.Outputs] {
			logs[c] = logSigmoid(v)
		}
		rowSum := floats.LogSumExp(row)
		logsSum := floats.LogSumExp(logs)
		for c := range row {
			mixed[start+c] = logSum(logFirst+row[c]-rowSum, logSecond+logs[c]-logsSum)
		}
	}
}

// logSigmoid returns ln σ(x).
func logSigmoid(x float64) float64 {
	return min(x, 0) - math.Log1p(math.Exp(-math.Abs(x)))
}

// logSum returns ln(e^x + e^y).
func logSum(x, y float64) float64 {
	return max(x, y) + math.Log1p(math.Exp(-math.Abs(x-y)))
}
