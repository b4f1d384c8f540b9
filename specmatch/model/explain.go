package model

import (
	"context"
	"errors"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"

	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/gnn/graph"
)

// scoredTogether bounds a batch of graphs, which have megabytes of features.
const scoredTogether = 64

// Contributions say what the parts of a graph contribute to the predictions of models. All values are on the
// scale of [Head.Additive]. For each output,
//
//	Prediction = Mean + Σ Parts
type Contributions struct {
	Prediction []float64 // [Outputs]
	// Mean is the prediction that ignores the graph. It is nil for models of earlier versions, whose
	// contributions do not add up. See [Head.Ignorant].
	Mean []float64
	// Parts is [parts×Outputs]. A positive value says that the part raises the prediction.
	Parts []float64
}

// Explain explains the mean prediction of models that predict the same things. A part contributes by how much it
// changes the prediction when it joins others: the mean over random orders in which the graph grows along its edges
// (see [Parts]). How the prediction for the first part of an order differs from Mean is no part's own doing. All
// parts share it, so that contributions add up.
//
// These are Shapley values of connected pieces (Myerson, Math. Oper. Res. 2 (1977) 225) and of groups (Owen, 1977),
// by samples (Castro et al., Comput. Oper. Res. 36 (2009) 1726). Removing single nodes from the whole graph is
// cheaper. But each atom of a ring then counts for the ring: the sum is several times the difference from Mean.
func Explain(ctx context.Context, models []*Trained, whole *graph.Graph, parts Parts) (c Contributions, err error) {
	graphs, steps := parts.steps(whole)
	if parts.Complete != nil {
		parts.Complete()
	}
	scores, err := meanScores(ctx, models, graphs)
	if err != nil {
		return c, err
	}
	h := *models[0].Card.Head
	h.toScale(scores)
	row := func(place int) []float64 {
		start := place * h.Outputs
		return scores[start : start+h.Outputs]
	}
	c.Prediction = slices.Clone(row(0))
	c.Parts = make([]float64, len(parts.Nodes)*h.Outputs)
	joined := make([]float64, len(parts.Nodes)) // how often
	for _, s := range steps {
		before := row(s.before)
		after := row(s.after)
		for _, part := range s.parts {
			joined[part]++
			for k := range h.Outputs {
				change := after[k] - before[k]
				c.Parts[part*h.Outputs+k] += change / float64(len(s.parts))
			}
		}
	}
	for i := range c.Parts {
		c.Parts[i] /= max(1, joined[i/h.Outputs])
	}
	c.Mean = meanIgnorant(models)
	if c.Mean != nil {
		h.toScale(c.Mean)
		c.share(h.Outputs)
	}
	parts.equalise(whole, c.Parts, h.Outputs)
	return c, nil
}

// share adds what is left of the difference from Mean to all parts.
func (c *Contributions) share(outputs int) {
	difference := slices.Clone(c.Prediction)
	floats.Sub(difference, c.Mean)
	for i, v := range c.Parts {
		difference[i%outputs] -= v
	}
	for i := range c.Parts {
		c.Parts[i] += difference[i%outputs] * float64(outputs) / float64(len(c.Parts))
	}
}

// Additive names the scale on which contributions to an output add up. "" is the unit of the target, and "ln" are
// natural logarithms of a positive target or of the probability of a class. "log-odds" are those of a binary task,
// or of the place of a target in its range. Models are linear there, so that a drop means the same at any height.
func (h Head) Additive(output int) string {
	switch {
	case h.Kind == Binary:
		return "log-odds"
	case h.Kind == Classes || h.Scale(output).Log:
		return "ln"
	case h.Scale(output).bounded():
		return "log-odds"
	}
	return ""
}

// toScale converts scores [n×Outputs], which are in the units of the targets, to the scale of [Head.Additive].
// Those of classes are there already.
func (h Head) toScale(scores []float64) {
	if h.Kind != Regression {
		return
	}
	for i, y := range scores {
		scores[i] = h.Scale(i % h.Outputs).Of(y)
	}
}

// Predicted returns the prediction at a place on the scale of [Head.Additive]: a number in the unit of the target,
// or a probability.
func (h Head) Predicted(output int, place float64) float64 {
	switch h.Kind {
	case Binary:
		return math.Exp(logSigmoid(place))
	case Classes:
		return math.Exp(place)
	}
	return h.Scale(output).Value(place)
}

// meanScores returns the scores of the mean prediction of some models, [n×Outputs]: numbers in the units of the
// targets, log-odds of binary tasks, or logarithms of the probabilities of classes.
func meanScores(ctx context.Context, models []*Trained, graphs []*graph.Graph) (scores []float64, err error) {
	defer backend.Recover(&err)
	for batch := range slices.Chunk(graphs, scoredTogether) {
		var members [][]float64
		for _, m := range models {
			if m.Head == nil {
				return nil, errors.New(
					"specmatch: the model is an encoder without a head: it predicts nothing to explain",
				)
			}
			embeddings, err := m.embedIfUsed(ctx, batch)
			if err != nil {
				return nil, err
			}
			ofModel, err := m.scores(embeddings, batch)
			if err != nil {
				return nil, err
			}
			members = append(members, ofModel)
		}
		scores = append(scores, models[0].Card.Head.meanScores(members)...)
	}
	return scores, nil
}

// meanScores returns the scores of the mean of predictions, from the scores of each.
func (h Head) meanScores(members [][]float64) []float64 {
	if len(members) == 1 {
		return members[0]
	}
	scores := make([]float64, len(members[0]))
	terms := make([]float64, len(members))
	logMean := func(logarithm func(scores []float64) float64) float64 {
		for k, scores := range members {
			terms[k] = logarithm(scores)
		}
		return floats.LogSumExp(terms) - math.Log(float64(len(members)))
	}
	for i := range scores {
		switch h.Kind {
		case Regression:
			for _, values := range members {
				scores[i] += values[i] / float64(len(members))
			}
		case Binary:
			logYes := logMean(func(s []float64) float64 { return logSigmoid(s[i]) })
			logNo := logMean(func(s []float64) float64 { return logSigmoid(-s[i]) })
			scores[i] = logYes - logNo
		default:
			scores[i] = logMean(func(s []float64) float64 { return s[i] })
		}
	}
	return scores
}

// Ignorant returns the scores [Outputs] of the prediction that ignores the graph: the mean of the training
// set on the scale of the target, or the frequencies of its answers. It is nil for a head of earlier versions.
func (h Head) Ignorant() []float64 {
	const least = 1e-6 // of the probabilities
	if h.Kind == Regression {
		if len(h.Mean) == 0 {
			return nil
		}
		return h.InUnits(make([]float64, h.Outputs))
	}
	var scores []float64
	for _, p := range h.Prior {
		p = max(least, min(1-least, p))
		if h.Kind == Binary {
			scores = append(scores, math.Log(p)-math.Log1p(-p))
		} else {
			scores = append(scores, math.Log(p))
		}
	}
	return scores
}

// meanIgnorant returns the scores of the mean of [Head.Ignorant] over some models; nil if one lacks it.
func meanIgnorant(models []*Trained) []float64 {
	var members [][]float64
	for _, m := range models {
		scores := m.Card.Head.Ignorant()
		if scores == nil {
			return nil
		}
		members = append(members, scores)
	}
	return models[0].Card.Head.meanScores(members)
}

// Explain explains the predictions for a graph by its nodes.
func (m *Trained) Explain(ctx context.Context, g *graph.Graph) (Contributions, error) {
	return Explain(ctx, []*Trained{m}, g, NodesOf(g))
}
