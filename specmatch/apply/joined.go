package apply

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/go-cmp/cmp"

	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/specmatch/model"
	"github.com/specmatch/specmatch/tensor/files"
)

// Joined returns a model with the columns of several models of predictions, such as those of [Sure], one behind the
// other. cards are those of the models. It is an error unless all read the same of a record, which is computed once.
func Joined(models []Model, cards []model.Card) (Model, error) {
	if len(models) == 0 || len(models) != len(cards) {
		return Model{}, errors.New("apply: there is no model to join")
	}
	joined := Model{Reads: models[0].Reads, Trained: models[0].Trained}
	for i, m := range models {
		a := cards[0]
		b := cards[i]
		same := a.Encoder.Kind == b.Encoder.Kind && a.Encoder.Atoms == b.Encoder.Atoms && a.Standard == b.Standard &&
			cmp.Equal(a.Features, b.Features) && cmp.Equal(features(a), features(b))
		if !same {
			return Model{}, fmt.Errorf("apply: models 0 and %d read other features", i)
		}
		joined.Columns = append(joined.Columns, m.Columns...)
		joined.Key += m.Key
		joined.keys = append(joined.keys, m.keys...)
	}
	joined.Columns = files.Distinct("id", joined.Columns...)[1:]
	joined.Rows = func(ctx context.Context, graphs []*graph.Graph) ([]float64, error) {
		width := len(joined.Columns)
		rows := make([]float64, len(graphs)*width)
		for first := 0; first < len(graphs); first += joinedRows {
			end := min(first+joinedRows, len(graphs))
			if err := fillJoined(ctx, rows[first*width:end*width], models, graphs[first:end]); err != nil {
				return nil, err
			}
		}
		return rows, nil
	}
	return joined, nil
}

// joinedRows is how many rows are computed at a time, so that what the models share stays in the processor's cache.
const joinedRows = 128

// fillJoined computes the rows of all models.
func fillJoined(ctx context.Context, rows []float64, models []Model, graphs []*graph.Graph) error {
	width := len(rows) / len(graphs)
	first := 0 // column of the model
	for _, m := range models {
		part, err := m.Rows(ctx, graphs)
		if err != nil {
			return err
		}
		columns := len(m.Columns)
		for i := range graphs {
			copy(rows[i*width+first:], part[i*columns:(i+1)*columns])
		}
		first += columns
	}
	return nil
}

// features returns the names of the features that the head of a model sees.
func features(c model.Card) []string {
	if c.Beside == nil {
		return nil
	}
	return c.Beside.Features
}
