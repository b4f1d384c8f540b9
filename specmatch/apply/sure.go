package apply

import (
	"context"
	"errors"
	"fmt"

	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/specmatch/model"
	"github.com/specmatch/specmatch/tensor/files"
)

// Sure returns a model of predictions like that of [Predictor], with columns that say how far to
// trust them: the intervals or sets of a level ([model.Head.Sets]), unless it is 0, and the
// distance to the training records ([model.Calibration.Distances]), for several models the mean of
// their distances. It is an error if a model is not calibrated for the level.
func Sure(level float64, distance bool, models ...*model.Trained) (Model, error) {
	x, err := Predictor(models...)
	if err != nil || level == 0 && !distance {
		return x, err
	}
	s := &sure{
		level:    level,
		distance: distance,
		head:     *models[0].Card.Head,
		width:    len(x.Columns),
	}
	for _, m := range models {
		if m.Card.Calibration == nil {
			return Model{}, errors.New("apply: the model is not calibrated; models that finetune writes are")
		}
		s.calibrations = append(s.calibrations, m.Card.Calibration)
		s.ensemble = append(s.ensemble, withCache(m, len(models)))
	}
	if level > 0 {
		s.names, _, err = s.head.Sets(level, nil, s.calibrations...)
		if err != nil {
			return Model{}, err
		}
	}
	x.Columns = append(x.Columns, s.names...)
	if distance {
		x.Columns = append(x.Columns, "distance")
	}
	x.Columns = files.Distinct("id", x.Columns...)[1:]
	x.Rows = s.rows
	x.Key += fmt.Sprintf("level %g, distance %t ", level, distance)
	return x, nil
}

// sure is an ensemble, maybe of one model, with what its predictions are worth.
type sure struct {
	ensemble
	calibrations []*model.Calibration
	head         model.Head
	level        float64
	distance     bool
	width        int      // of the predictions and their standard deviations
	names        []string // of the columns of intervals or sets
}

// rows returns the rows of [Sure].
func (s *sure) rows(ctx context.Context, graphs []*graph.Graph) (values []float64, err error) {
	var members [][]float64
	distances := make([]float64, len(graphs))
	for k, m := range s.ensemble {
		if !s.distance {
			predictions, err := m.Predict(ctx, graphs)
			if err != nil {
				return nil, err
			}
			members = append(members, predictions)
			continue
		}
		embeddings, err := m.Embed(ctx, graphs)
		if err != nil {
			return nil, err
		}
		predictions, err := m.Apply(embeddings, graphs)
		if err != nil {
			return nil, err
		}
		members = append(members, predictions)
		for i, d := range s.calibrations[k].Distances(embeddings) {
			distances[i] += d / float64(len(s.ensemble))
		}
	}
	predictions := s.summarise(members)
	var means []float64
	for i := range graphs {
		means = append(means, predictions[i*s.width:i*s.width+s.head.Outputs]...)
	}
	var ends []float64
	if s.level > 0 {
		_, ends, err = s.head.Sets(s.level, means, s.calibrations...)
		if err != nil {
			return nil, err
		}
	}
	for i := range graphs {
		values = append(values, predictions[i*s.width:(i+1)*s.width]...)
		values = append(values, ends[i*len(s.names):(i+1)*len(s.names)]...)
		if s.distance {
			values = append(values, distances[i])
		}
	}
	return values, nil
}
