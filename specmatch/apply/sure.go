package apply

import (
	"context"
	"errors"

	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/specmatch/model"
)

// Sure returns a model of predictions like that of [Predictor], with columns that say how far to
// trust them: the intervals or sets of a level ([model.Head.Sets]), unless it is 0, and the
// distance to the training records ([model.Calibration.Distances]). It is an error if the model is
// not calibrated for the level.
func Sure(m *model.Trained, level float64, distance bool) (Model, error) {
	c := m.Card.Calibration
	if m.Card.Head == nil || c == nil {
		return Model{}, errors.New("apply: the model is not calibrated; models that finetune writes are")
	}
	h := *m.Card.Head
	names, _, err := sets(h, c, level, nil)
	if err != nil {
		return Model{}, err
	}
	columns := append(h.Columns(), names...)
	if distance {
		columns = append(columns, "distance")
	}
	cached := withCache(m, 1)
	rows := func(ctx context.Context, graphs []*graph.Graph) (values []float64, err error) {
		embeddings, err := cached.Embed(ctx, graphs)
		if err != nil {
			return nil, err
		}
		predictions, err := m.Apply(embeddings, graphs)
		if err != nil {
			return nil, err
		}
		_, ends, err := sets(h, c, level, predictions)
		if err != nil {
			return nil, err
		}
		var distances []float64
		if distance {
			distances = c.Distances(embeddings)
		}
		for i := range graphs {
			values = append(values, predictions[i*h.Outputs:(i+1)*h.Outputs]...)
			values = append(values, ends[i*len(names):(i+1)*len(names)]...)
			if distance {
				values = append(values, distances[i])
			}
		}
		return values, nil
	}
	return newModel(Model{Columns: columns, Rows: rows}, m)
}

// sets is [model.Head.Sets]; there are none at level 0.
func sets(h model.Head, c *model.Calibration, level float64, p []float64) ([]string, []float64, error) {
	if level == 0 {
		return nil, nil, nil
	}
	return h.Sets(c, level, p)
}
