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

// Learner is a method that has been set up: what package train drives.
type Learner struct {
	train.Learner
	// Model has the encoder and, for methods with a projection, its head.
	Model *specmatch.Model
	// SelfLoops says that the encoder must see graphs with the self-loops of
	// [augment.Identity].
	SelfLoops bool

	method *Method
	setup  Setup
}

// Embed returns the embeddings of n graphs, row-major [n×Width], seen by the encoder
// in the form that the method trains it on. The error is that of ctx or of a device
// that failed.
func (l *Learner) Embed(ctx context.Context, graphs []*graph.Graph) ([]float64, error) {
	identity := augment.Identity{SelfLoops: l.SelfLoops}
	ws := new(augment.Workspace)
	collate := func(b *graph.Batch, g *graph.Graph) { identity.Append(b, g, nil, ws) }
	return gnn.Embed(ctx, l.setup.Backend, l.Model.Encoder, graphs, collate)
}

// Trained returns the encoder as a model file has it, which is saved, opened and
// embeds without more ado; it shares its weights. set is what the learner learned
// from for so many epochs: its graphs are those of the setup. The error says that the
// set's fields do not describe its features.
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
