package apply

import (
	"context"
	"errors"

	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/specmatch/model"
)

// Sure returns a model of predictions like [Predictor]'s, with what the model knows of their
// errors beside them: the sets of a level ([model.Head.Sets]), unless it is 0, and the
// distance to the records that were trained on ([model.Calibration.Distances]). It is an
// error if the model is not calibrated for the level.
func Sure(m *model.Trained, level float64, distance bool) (Model, error) {
	c := m.Card.Calibration
	if m.Card.Head == nil || c == nil {
		return Model{}, errors.New(
			"apply: the model knows nothing of its errors: finetune leaves models that do",
		)
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
	embed := remembering(m, 1)
	return newModel(Model{
		Columns: columns,
		Rows: func(ctx context.Context, graphs []*graph.Graph) (all []float64, err error) {
			e, err := embed.Embed(ctx, graphs)
			if err != nil {
				return nil, err
			}
			p, err := m.Apply(e, graphs)
			if err != nil {
				return nil, err
			}
			_, in, err := sets(h, c, level, p)
			if err != nil {
				return nil, err
			}
			var far []float64
			if distance {
				far = c.Distances(e)
			}
			for i := range graphs {
				all = append(
					append(all, p[i*h.Outputs:(i+1)*h.Outputs]...), in[i*len(names):(i+1)*len(names)]...,
				)
				if distance {
					all = append(all, far[i])
				}
			}
			return all, nil
		}}, m)
}

func sets(h model.Head, c *model.Calibration, level float64, p []float64) ([]string, []float64, error) {
	if level == 0 {
		return nil, nil, nil
	}
	return h.Sets(c, level, p)
}
