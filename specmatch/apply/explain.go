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

// Explanation says what each node of a record contributes to its predictions; see [Explainer.Explain].
// It is a line of JSON. The keys of its maps are the columns of the predictions.
type Explanation struct {
	ID     string `json:"id"`
	SMILES string `json:"smiles,omitempty"` // of a molecule, as in the file
	// Nodes has a value for each node of the graph. The nodes of a molecule are its atoms in the order of
	// the SMILES, without hydrogens. If fragments are explained, each of their atoms has an equal share. Atoms of
	// parts of a salt that the model does not see ([feature.Standardisation]) have 0.
	Nodes map[string][]float64 `json:"nodes"`
	// Fragments are those of [Explainer.ByFragments].
	Fragments []Fragment `json:"fragments,omitempty"`
	// Scale names the scale of all values of a column; see [model.Head.Additive].
	Scale map[string]string `json:"scale"`
	// prediction = mean + Σ nodes. Models of earlier versions have no mean.
	Prediction map[string]float64 `json:"prediction"`
	Mean       map[string]float64 `json:"mean,omitempty"`
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
	shared := new(model.Shared)
	for _, m := range models {
		e.models = append(e.models, withCache(m, len(models)).Sharing(shared))
	}
	return e, err
}

// Explain explains the predictions for a graph by its nodes. If it is of a molecule, mol, atoms are removed from
// the molecule, so that the features of what is left are its own. Otherwise mol is nil.
//
// The atoms of a group such as a carbonyl or a nitrile ([molecule.Molecule.Units]) leave together, and have equal
// contributions. Removing its outer atom alone would turn it into another group.
func (e *Explainer) Explain(
	ctx context.Context, g *graph.Graph, mol *molecule.Molecule,
) (model.Contributions, error) {
	if mol == nil {
		return model.Explain(ctx, e.models, g, model.NodesOf(g))
	}
	parts := e.partsOf(mol, mol.Units())
	parts.Groups = fragmentsOf(mol, parts.Nodes)
	c, err := model.Explain(ctx, e.models, g, parts)
	c.Parts = shares(c.Parts, parts.Nodes, len(mol.Atoms))
	return c, err
}

// fragmentsOf returns the fragment of each unit of a molecule's atoms.
func fragmentsOf(mol *molecule.Molecule, units [][]int) []int {
	fragment := make([]int, len(units))
	for number, atoms := range mol.Fragments() {
		for k, unit := range units {
			if slices.Contains(atoms, unit[0]) {
				fragment[k] = number
			}
		}
	}
	return fragment
}

// shares gives each node an equal share of the contributions of its part: [nodes×outputs] from [parts×outputs].
func shares(contributions []float64, parts [][]int, nodes int) []float64 {
	outputs := len(contributions) / max(1, len(parts))
	values := make([]float64, nodes*outputs)
	for k, part := range parts {
		for _, v := range part {
			for output := range outputs {
				whole := contributions[k*outputs+output]
				values[v*outputs+output] = whole / float64(len(part))
			}
		}
	}
	return values
}

// partsOf returns groups of the atoms of a molecule as its parts.
func (e *Explainer) partsOf(mol *molecule.Molecule, atoms [][]int) model.Parts {
	parts := model.Parts{Nodes: atoms}
	parts.Without = func(atoms []int) *graph.Graph {
		piece, err := e.parser.Without(mol, atoms...)
		if err != nil {
			return nil
		}
		g, err := piece.GraphOf(e.categories)
		if err != nil {
			return nil
		}
		if e.vectors != nil {
			g.Globals = e.vectors.Vector(piece)
		}
		return g
	}
	if e.vectors != nil {
		parts.Complete = e.vectors.Complete
	}
	return parts
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
		c, err = model.Explain(ctx, e.models, r.Graph, e.partsOf(r.Molecule, fragments))
	} else {
		c, err = e.Explain(ctx, r.Graph, r.Molecule)
	}
	if err != nil {
		return nil, err
	}
	if nonFinite(c.Parts) >= 0 || nonFinite(c.Prediction) >= 0 { // the predictions are not finite, either
		return nil, nil
	}
	columns := e.models[0].Card.Head.Columns()
	line := &Explanation{
		ID:         r.ID,
		SMILES:     r.SMILES,
		Nodes:      map[string][]float64{},
		Scale:      map[string]string{},
		Prediction: named(columns, c.Prediction),
		Mean:       named(columns, c.Mean),
	}
	places := placesOf(r)
	nodes := c.Parts
	if fragments != nil {
		nodes = shares(c.Parts, fragments, r.Graph.Nodes())
	}
	for k, name := range columns {
		line.Scale[name] = e.models[0].Card.Head.Additive(k)
		values := make([]float64, places.count)
		for v, place := range places.of {
			values[place] = float64(float32(nodes[v*len(columns)+k]))
		}
		line.Nodes[name] = values
	}
	for k, atoms := range fragments {
		line.Fragments = append(line.Fragments, Fragment{
			Atoms:        gather(places.of, atoms),
			SMILES:       e.smiles(r.Molecule, atoms),
			Contribution: named(columns, c.Parts[k*len(columns):(k+1)*len(columns)]),
		})
	}
	return line, nil
}

// Drawn returns what the nodes of the record's graph, and so the atoms of its molecule, contribute to a column: the
// Nodes without atoms that the model does not see.
func (x *Explanation) Drawn(r *records.Record, column string) []float64 {
	return gather(x.Nodes[column], placesOf(r).of)
}

// places are the positions of the nodes of a record.
type places struct {
	of    []int // each node's position among those that are given
	count int   // of those that are given
}

// placesOf returns the positions of the nodes of a record. Those of a molecule are among the atoms of its SMILES,
// some of which may be of fragments that were dropped.
func placesOf(r *records.Record) places {
	p := places{count: r.Graph.Nodes()}
	if r.Molecule != nil && len(r.Molecule.Kept) > 0 {
		p.count = len(r.Molecule.Kept)
	}
	for place := range p.count {
		if p.count == r.Graph.Nodes() || r.Molecule.Kept[place] {
			p.of = append(p.of, place)
		}
	}
	return p
}

// gather returns the values at some positions.
func gather[T any](values []T, positions []int) []T {
	gathered := make([]T, len(positions))
	for k, position := range positions {
		gathered[k] = values[position]
	}
	return gathered
}

// named returns values by their columns; none without values.
func named(columns []string, values []float64) map[string]float64 {
	byName := map[string]float64{}
	for k, v := range values {
		byName[columns[k]] = float64(float32(v))
	}
	return byName
}
