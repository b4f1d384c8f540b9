package model

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/specmatch/specmatch/autodiff/nn"
	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/gnn"
)

// ErrNotHu says that the weights are not those of an encoder that [OpenHu] reads.
var ErrNotHu = errors.New(
	"no table x_embedding1.weight or gnns.0.input_node_embeddings.weight of a GNN by Hu et al. (2020)",
)

// OpenHu reads the weights of a GNN of Hu et al. (2020) or GraphCL, for molecules or proteins, onto
// an engine: a state_dict of PyTorch, in safetensors or as torch.save writes it. Its names and
// shapes tell the architecture. The error names the tensors that differ.
func OpenHu(path string, be backend.Backend) (m *Trained, err error) {
	defer backend.Recover(&err)
	f, err := nn.ReadFile(path)
	if err != nil {
		return nil, err
	}
	kind := gnn.KindChemGIN
	table := "x_embedding1.weight"
	shape, ok := f.Shape(table)
	if !ok {
		kind = gnn.KindBioGIN
		table = "gnns.0.input_node_embeddings.weight"
		shape, ok = f.Shape(table)
	}
	if !ok || len(shape) != 2 {
		first := cmp.Or(append(f.Names(), "no tensor")[0], `""`)
		return nil, fmt.Errorf("%s: has %s, but %w", path, first, ErrNotHu)
	}
	a := gnn.Architecture{Kind: kind, Hidden: int(shape[1]), Center: kind == gnn.KindBioGIN}
	for ok {
		a.Layers++
		_, ok = f.Shape(fmt.Sprintf("gnns.%d.mlp.0.weight", a.Layers))
	}
	var tensors, values int
	if err := a.Check(); err == nil {
		tensors, values = a.Size()
	}
	if tensors == 0 || values/4 > f.Values()+1<<12 { // before memory is allocated for it
		return nil, fmt.Errorf("%s: %s is %v, which the other tensors do not fit", path, table, shape)
	}
	e, err := a.New(be, rand.New(rand.NewPCG(0, 0))) // for weights that are replaced
	if err != nil {
		return nil, err
	}
	m = &Trained{Encoder: e, Card: Card{Encoder: a}}
	if err := newState(m).load(f); err != nil {
		return nil, fmt.Errorf("specmatch: load %s: %w", path, err)
	}
	return m, nil
}
