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
	}
	joined.Columns = files.Distinct("id", joined.Columns...)[1:]
	joined.Rows = func(ctx context.Context, graphs []*graph.Graph) ([]float64, error) {
		rows := make([]float64, len(graphs)*len(joined.Columns))
		first := 0
		for _, m := range models {
			part, err := m.Rows(ctx, graphs)
			if err != nil {
				return nil, err
			}
			width := len(m.Columns)
			for i := range graphs {
				copy(rows[i*len(joined.Columns)+first:], part[i*width:(i+1)*width])
			}
			first += width
		}
		return rows, nil
	}
	return joined, nil
}

// features returns the names of the features that the head of a model sees.
func features(c model.Card) []string {
	if c.Beside == nil {
		return nil
	}
	return c.Beside.Features
}
