package apply

import (
	"context"
	"encoding/json"
	"io"

	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/specmatch/model"
)

// Explanation is what a model sees in a record, as a line of JSON.
type Explanation struct {
	ID     string `json:"id"`
	SMILES string `json:"smiles,omitempty"` // of a molecule, as it is written
	// Nodes has for each output, by its column, a value for each node of the graph, of a
	// molecule each atom in the order of the SMILES, hydrogens left out: see
	// [model.Trained.Explain].
	Nodes map[string][]float64 `json:"nodes"`
}

// Explain writes an [Explanation] for each record that can be used, a line each, which takes
// a prediction for each node. Rows of j.Model are not computed.
func (j Job) Explain(ctx context.Context, m *model.Trained, w io.Writer) error {
	e := json.NewEncoder(w)
	j.Model.Columns = nil
	j.Model.Rows = func(context.Context, []*graph.Graph) ([]float64, error) { return nil, nil }
	return j.Stream(ctx, func(b Batch) error {
		for _, r := range b.Records {
			if r.Err != nil {
				continue
			}
			values, err := m.Explain(ctx, r.Graph)
			if err != nil {
				return err
			}
			line := Explanation{ID: r.ID, SMILES: r.SMILES, Nodes: map[string][]float64{}}
			columns := m.Card.Head.Columns()
			for i, v := range values {
				name := columns[i%len(columns)]
				line.Nodes[name] = append(line.Nodes[name], float64(float32(v)))
			}
			if err := e.Encode(line); err != nil {
				return err
			}
		}
		return nil
	})
}
