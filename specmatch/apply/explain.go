package apply

import (
	"context"
	"encoding/json"
	"io"

	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/specmatch/model"
)

// Explanation says what each node of a record contributes to its predictions. It is a line of JSON.
type Explanation struct {
	ID     string `json:"id"`
	SMILES string `json:"smiles,omitempty"` // of a molecule, as in the file
	// Nodes has a value of [model.Trained.Explain] for each output, by its column, and each node of the
	// graph. The nodes of a molecule are its atoms in the order of the SMILES, without hydrogens.
	Nodes map[string][]float64 `json:"nodes"`
}

// Explain writes an [Explanation] as a line for each record that can be used and whose values are
// finite. It takes a prediction for each node, but does not compute the rows of j.Model.
func (j Job) Explain(ctx context.Context, m *model.Trained, w io.Writer) error {
	encoder := json.NewEncoder(w)
	columns := m.Card.Head.Columns()
	j.Model.Columns = nil
	j.Model.Rows = func(context.Context, []*graph.Graph) ([]float64, error) {
		return nil, nil
	}
	return j.Stream(ctx, func(b Batch) error {
		for _, r := range b.Records {
			if r.Err != nil {
				continue
			}
			values, err := m.Explain(ctx, r.Graph)
			if err != nil {
				return err
			}
			if nonFinite(values) >= 0 {
				continue // the predictions are not finite, either
			}
			line := Explanation{ID: r.ID, SMILES: r.SMILES, Nodes: map[string][]float64{}}
			for i, v := range values {
				name := columns[i%len(columns)]
				line.Nodes[name] = append(line.Nodes[name], float64(float32(v)))
			}
			if err := encoder.Encode(line); err != nil {
				return err
			}
		}
		return nil
	})
}
