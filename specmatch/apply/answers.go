package apply

import (
	"context"
	"errors"
	"slices"

	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/specmatch/model"
	"github.com/specmatch/specmatch/tensor/files"
)

// Answers adds a column NAME_answer for each binary task to the rows of models: 1 if the predicted probability
// is at least the mean of their cuts ([model.Calibration.Cuts]), else 0. rows are those of [Predictor] or
// [Sure] for the same models. It is an error if a model has no cuts.
func Answers(rows Model, models ...*model.Trained) (Model, error) {
	head := models[0].Card.Head
	if head == nil || head.Kind != model.Binary {
		return Model{}, errors.New("apply: answers are of binary tasks, and the model predicts others; of " +
			"classes, the answer is the one with the largest probability")
	}
	cuts := make([]float64, head.Outputs)
	for _, m := range models {
		if m.Card.Calibration == nil || m.Card.Calibration.Cuts == nil {
			return Model{}, errors.New("apply: the model has no cuts of probabilities; fit it again")
		}
		for task, cut := range m.Card.Calibration.Cuts {
			cuts[task] += cut / float64(len(models))
		}
	}
	width := len(rows.Columns)
	for _, name := range head.Columns() {
		rows.Columns = append(rows.Columns, name+"_answer")
	}
	rows.Columns = files.Distinct("id", rows.Columns...)[1:]
	rows.Key += "answers "
	predict := rows.Rows
	rows.Rows = func(ctx context.Context, graphs []*graph.Graph) ([]float64, error) {
		values, err := predict(ctx, graphs)
		if err != nil {
			return nil, err
		}
		var answered []float64
		for row := range slices.Chunk(values, width) {
			answered = append(answered, row...)
			for task, cut := range cuts {
				answer := 0.0
				if row[task] >= cut {
					answer = 1
				}
				answered = append(answered, answer)
			}
		}
		return answered, nil
	}
	return rows, nil
}
