package method

import (
	"context"

	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/gnn/augment"
	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/specmatch"
	"github.com/specmatch/specmatch/specmatch/model"
	"github.com/specmatch/specmatch/specmatch/train"
)

// Learner is a method that has been set up, for package train.
type Learner struct {
	train.Learner
	// Model holds the encoder and, for methods with a projection, its head.
	Model *specmatch.Model
	// SelfLoops says that the encoder needs graphs with the self-loops of [augment.Identity].
	SelfLoops bool

	method *Method
	setup  Setup
}

// Embed returns the embeddings of n graphs, row-major [n×Width]. The encoder sees the graphs in the same
// form as in training. The error is that of ctx or of a failed device.
func (l *Learner) Embed(ctx context.Context, graphs []*graph.Graph) ([]float64, error) {
	identity := augment.Identity{SelfLoops: l.SelfLoops}
	ws := new(augment.Workspace)
	collate := func(b *graph.Batch, g *graph.Graph) { identity.Append(b, g, nil, ws) }
	return gnn.Embed(ctx, l.setup.Backend, l.Model.Encoder, graphs, collate)
}

// Trained returns the encoder as a model that can be saved and can embed graphs; it shares the learner's
// weights. set is the data set of the setup, on which the learner has trained for a number of epochs.
// Trained returns an error if the set's fields do not describe its features.
func (l *Learner) Trained(set *dataset.Dataset, epochs int) (*model.Trained, error) {
	record, err := l.method.Used(l.setup)
	if err != nil {
		return nil, err
	}
	card := model.Card{SelfLoops: l.SelfLoops, Provenance: model.Provenance{
		Method:  l.method.Name,
		Options: record,
		Data:    model.Sources(set.Name, set.Sums),
		Seed:    int(l.setup.Seed),
		Epochs:  epochs,
		Reads:   set.Reads,
	}}
	if l.setup.Encoder.Kind == gnn.KindChemGIN {
		card.Standard = set.Standard
	}
	if l.setup.Encoder.In > 0 {
		columns, err := set.Columns()
		if err != nil {
			return nil, err
		}
		card.Features = &columns
	}
	return &model.Trained{Card: card, Encoder: l.Model.Encoder}, nil
}
