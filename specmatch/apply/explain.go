package apply

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/specmatch/specmatch/gnn/dataset/records"
	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/gnn/molecule"
	"github.com/specmatch/specmatch/gnn/molecule/feature"
	"github.com/specmatch/specmatch/specmatch/model"
)

// Explanation says what each node of a record contributes to its predictions; see [model.Contributions].
// It is a line of JSON. The keys of its maps are the columns of the predictions.
type Explanation struct {
	ID     string `json:"id"`
	SMILES string `json:"smiles,omitempty"` // of a molecule, as in the file
	// Nodes has a value for each node of the graph. The nodes of a molecule are its atoms in the order of
	// the SMILES, without hydrogens. If fragments are explained, each of their atoms has an equal share.
	Nodes map[string][]float64 `json:"nodes"`
	// Fragments are those of [Explainer.ByFragments].
	Fragments []Fragment `json:"fragments,omitempty"`
	// prediction = mean + Σ nodes + rest. Models of earlier versions have no mean.
	Prediction map[string]float64 `json:"prediction"`
	Mean       map[string]float64 `json:"mean,omitempty"`
	Rest       map[string]float64 `json:"rest,omitempty"`
}

// Fragment is a piece of a molecule that is removed as a whole.
type Fragment struct {
	Atoms        []int              `json:"atoms"`  // in the order of the SMILES, from 0
	SMILES       string             `json:"smiles"` // of the piece, with hydrogens in place of what it was bound to
	Contribution map[string]float64 `json:"contribution"`
}

// Explainer explains the mean prediction of models that are alike. It is for one goroutine.
type Explainer struct {
	// ByFragments explains what the [molecule.Molecule.Fragments] of a molecule contribute, rather than single
	// atoms. Graphs have no fragments, and are explained by nodes.
	ByFragments bool

	models []*model.Trained
	// For molecules:
	categories *feature.Set
	parser     molecule.Parser
	writer     molecule.Parser // of SMILES of what parser holds
	vectors    records.Vectors // nil without features
}

// NewExplainer returns an explainer of some models with a head.
func NewExplainer(models ...*model.Trained) (*Explainer, error) {
	if len(models) == 0 || models[0].Card.Head == nil {
		return nil, errors.New("apply: there is no model with a head to explain")
	}
	if err := models[0].Complete(); err != nil {
		return nil, err
	}
	reads, err := Reads(models[0].Card)
	if err != nil {
		return nil, err
	}
	e := new(Explainer)
	e.categories, err = feature.ByName(reads.Atoms)
	if reads.Vector != nil {
		e.vectors = reads.Vector()
	}
	for _, m := range models {
		e.models = append(e.models, withCache(m, len(models)))
	}
	return e, err
}

// Explain explains the predictions for a graph. If it is of a molecule, mol, atoms are removed from the
// molecule, so that the features of the rest are its own. Otherwise mol is nil.
//
// An atom with neighbours that have no other neighbour, such as the carbon of CF3, is removed twice: from
// the molecule, and from what is left without these neighbours. The mean of both drops keeps a model's
// opinion of small molecules such as HF from counting as the atom's.
func (e *Explainer) Explain(
	ctx context.Context, g *graph.Graph, mol *molecule.Molecule,
) (model.Contributions, error) {
	removals := model.WithoutNodes(g)
	for v := range removals {
		if mol == nil {
			break
		}
		if part := e.without(mol, v); part != nil {
			removals[v][0].After = part
		}
		leaves := leavesOf(g, v)
		if len(leaves) == 0 {
			continue
		}
		before := e.without(mol, leaves...)
		after := e.without(mol, append(leaves, v)...)
		if before != nil && after != nil {
			removals[v] = append(removals[v], model.Removal{Before: before, After: after})
		}
	}
	return e.explain(ctx, g, removals)
}

// explainFragments explains the predictions for the graph of a molecule by its fragments: the rows of
// Contributions.Nodes are theirs. A molecule of one fragment has no contributions but the rest.
func (e *Explainer) explainFragments(
	ctx context.Context, g *graph.Graph, mol *molecule.Molecule, fragments [][]int,
) (model.Contributions, error) {
	removals := make([][]model.Removal, len(fragments))
	for k, atoms := range fragments {
		if after := e.without(mol, atoms...); after != nil {
			removals[k] = []model.Removal{{After: after}}
		}
	}
	return e.explain(ctx, g, removals)
}

// explain is [model.Explain], after the vectors of what is left are complete.
func (e *Explainer) explain(
	ctx context.Context, g *graph.Graph, removals [][]model.Removal,
) (model.Contributions, error) {
	if e.vectors != nil {
		e.vectors.Complete()
	}
	return model.Explain(ctx, e.models, g, removals)
}

// smiles returns the SMILES of some atoms of a molecule, "" if perception refuses them.
func (e *Explainer) smiles(mol *molecule.Molecule, atoms []int) string {
	var others []int
	for i := range mol.Atoms {
		if !slices.Contains(atoms, i) {
			others = append(others, i)
		}
	}
	if len(others) == 0 {
		return e.writer.CanonicalSMILES(mol)
	}
	part, err := e.parser.Without(mol, others...)
	if err != nil {
		return ""
	}
	return e.writer.CanonicalSMILES(part)
}

// leavesOf returns the neighbours of a node that have no other neighbour.
func leavesOf(g *graph.Graph, v int) (leaves []int) {
	for _, j := range g.Neighbors(v) {
		if len(g.Neighbors(int(j))) == 1 {
			leaves = append(leaves, int(j))
		}
	}
	return leaves
}

// without returns the graph of a molecule without some atoms, or nil if perception refuses the rest.
func (e *Explainer) without(mol *molecule.Molecule, atoms ...int) *graph.Graph {
	part, err := e.parser.Without(mol, atoms...)
	if err != nil {
		return nil
	}
	g, err := part.GraphOf(e.categories)
	if err != nil {
		return nil
	}
	if e.vectors != nil {
		g.Globals = e.vectors.Vector(part)
	}
	return g
}

// Explain writes an [Explanation] as a line for each record that [Job.EachExplanation] gives.
func (j *Job) Explain(ctx context.Context, w io.Writer, explainers ...*Explainer) error {
	encoder := json.NewEncoder(w)
	return j.EachExplanation(ctx, func(_ *records.Record, x *Explanation) error {
		return encoder.Encode(x)
	}, explainers...)
}

// EachExplanation calls use for each record that can be used and whose values are finite, in their order. The
// explainers work at the same time. EachExplanation takes a prediction for each node, but does not compute the
// rows of j.Model.
func (j *Job) EachExplanation(
	ctx context.Context, use func(*records.Record, *Explanation) error, explainers ...*Explainer,
) error {
	j.Model.Columns = nil
	j.Model.Rows = func(context.Context, []*graph.Graph) ([]float64, error) {
		return nil, nil
	}
	j.Records.Molecules = true
	return j.Stream(ctx, func(b Batch) error {
		explanations, err := explainAll(ctx, b.Records, explainers)
		for i, x := range explanations {
			if err == nil && x != nil {
				err = use(b.Records[i], x)
			}
		}
		return err
	})
}

// explainAll explains some records; nil stands for those that cannot be.
func explainAll(
	ctx context.Context, batch []*records.Record, explainers []*Explainer,
) ([]*Explanation, error) {
	explanations := make([]*Explanation, len(batch))
	errs := make([]error, len(explainers))
	var next atomic.Int64
	var wg sync.WaitGroup
	for k, e := range explainers {
		wg.Go(func() {
			for errs[k] == nil {
				i := int(next.Add(1)) - 1
				if i >= len(batch) {
					return
				}
				explanations[i], errs[k] = e.record(ctx, batch[i])
			}
		})
	}
	wg.Wait()
	return explanations, errors.Join(errs...)
}

// record explains a record; nil if it cannot be used, or if its values are not finite.
func (e *Explainer) record(ctx context.Context, r *records.Record) (*Explanation, error) {
	if r.Err != nil {
		return nil, nil
	}
	var fragments [][]int
	var c model.Contributions
	var err error
	if e.ByFragments && r.Molecule != nil {
		fragments = r.Molecule.Fragments()
		c, err = e.explainFragments(ctx, r.Graph, r.Molecule, fragments)
	} else {
		c, err = e.Explain(ctx, r.Graph, r.Molecule)
	}
	if err != nil {
		return nil, err
	}
	if nonFinite(c.Nodes) >= 0 || nonFinite(c.Prediction) >= 0 { // the predictions are not finite, either
		return nil, nil
	}
	columns := e.models[0].Card.Head.Columns()
	line := &Explanation{
		ID:         r.ID,
		SMILES:     r.SMILES,
		Nodes:      map[string][]float64{},
		Prediction: named(columns, c.Prediction),
		Mean:       named(columns, c.Mean),
		Rest:       named(columns, c.Rest),
	}
	if fragments == nil {
		for i, v := range c.Nodes {
			name := columns[i%len(columns)]
			line.Nodes[name] = append(line.Nodes[name], float64(float32(v)))
		}
		return line, nil
	}
	for _, name := range columns {
		line.Nodes[name] = make([]float64, r.Graph.Nodes())
	}
	for k, atoms := range fragments {
		values := named(columns, c.Nodes[k*len(columns):(k+1)*len(columns)])
		line.Fragments = append(line.Fragments, Fragment{
			Atoms:        atoms,
			SMILES:       e.smiles(r.Molecule, atoms),
			Contribution: values,
		})
		for name, v := range values {
			for _, i := range atoms {
				line.Nodes[name][i] = float64(float32(v / float64(len(atoms))))
			}
		}
	}
	return line, nil
}

// named returns values by their columns; none without values.
func named(columns []string, values []float64) map[string]float64 {
	byName := map[string]float64{}
	for k, v := range values {
		byName[columns[k]] = float64(float32(v))
	}
	return byName
}
