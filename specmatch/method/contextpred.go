package method

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/autodiff/nn"
	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/gnn/graph"
)

// ContextLayers is the depth of Hu et al.'s encoders of contexts.
const ContextLayers = 3

// contextPred is context prediction as in Hu et al., who define neighbourhoods
// differently for molecules and for protein networks. For the semi-supervised regime, where
// GraphCL's table has a row, no code was ever published; it is as for molecules there,
// but with nodes exactly two steps from the root as the anchors, which most graphs
// have.
var contextPred = &Method{
	Name:    "contextpred",
	Title:   "ContextPred",
	Regimes: []Regime{SemiSupervised, Transfer},
	Recipe:  map[Regime]Recipe{Transfer: {Epochs: 100}},
	new: func(s Setup) (*Learner, error) {
		return newPretext(s, func(s Setup, e gnn.Encoder, rng *rand.Rand) (Task, error) {
			shallow := s.Encoder
			shallow.Layers = ContextLayers
			shallow.Readout = "" // its nodes are read, one by one
			c, err := shallow.New(s.Backend, rng)
			if err != nil {
				return nil, err
			}
			switch s.Encoder.Kind {
			case gnn.KindChemGIN:
				return NewMoleculeContext(e, c, s.Encoder.Layers), nil
			case gnn.KindResGCN:
				return newContextPrediction(e, c, ContextPrediction{
					Hops:  2,
					Inner: 1,
					Outer: 1 + ContextLayers,
				}), nil
			case gnn.KindBioGIN:
				return NewProteinContext(e, c), nil
			}
			return nil, errNoDomain("contextpred", s)
		})
	},
}

// ContextPrediction asks whether a neighbourhood and a context belong to the same
// node. A root is drawn in every graph. Its neighbourhood is the nodes within Hops
// steps, its context those more than Inner and at most Outer steps away; nodes in
// both are the anchors. With h_g the main encoder's embedding of the root (or, with
// First, of the graph's first node) in the neighbourhood, and c_g the mean of the
// context encoder's embeddings of the anchors in the context,
//
//	loss = mean_g -ln σ(h_g·c_g) + mean_g -ln(1 - σ(h_g·c_g')),
//
// over the graphs g that have anchors, with g' the next of them.
type ContextPrediction struct {
	gnn.NodeEncoder
	Context            gnn.NodeEncoder // of the contexts; it has [ContextLayers] layers for Hu et al.
	Hops, Inner, Outer int
	First              bool

	near, far graph.Batch
}

// NewMoleculeContext returns the task as in Hu et al. for molecules: the
// neighbourhood is what an encoder of that many layers (1 or more) sees from the
// root, and the context begins at its border and is [ContextLayers] steps wide.
func NewMoleculeContext(e, context gnn.NodeEncoder, layers int) *ContextPrediction {
	return newContextPrediction(e, context, ContextPrediction{
		Hops:  layers,
		Inner: layers - 1,
		Outer: layers - 1 + ContextLayers,
	})
}

// NewProteinContext returns the task as in Hu et al. for ego networks, whose first
// node is the centre: the neighbourhood is the whole network, with the embedding of
// the centre; the context is all that is more than one step away from the root.
func NewProteinContext(e, context gnn.NodeEncoder) *ContextPrediction {
	return newContextPrediction(e, context, ContextPrediction{
		Hops:  math.MaxInt,
		Inner: 1,
		Outer: math.MaxInt,
		First: true,
	})
}

// newContextPrediction returns p with its encoders. It puts "context." before the
// names of the context's parameters and buffers, so that they differ from the
// encoder's.
func newContextPrediction(e, context gnn.NodeEncoder, p ContextPrediction) *ContextPrediction {
	for _, p := range context.Parameters() {
		p.Name = "context." + p.Name
	}
	for _, b := range context.Buffers() {
		b.Name = "context." + b.Name
	}
	p.NodeEncoder = e
	p.Context = context
	return &p
}

// Loss implements [Task].
func (p *ContextPrediction) Loss(b *graph.Batch, t *autodiff.Tape, rng *rand.Rand) *autodiff.Var {
	p.near.Reset(b.X.Width)
	p.far.Reset(b.X.Width)
	roots := []int32{}
	anchors := []int32{}
	anchorPtr := []int32{0}
	place := make([]int32, b.Nodes())
	for g := range b.Graphs() {
		lo, hi := b.GraphPtr[g], b.GraphPtr[g+1]
		if lo == hi {
			continue
		}
		root := lo + rng.Int32N(hi-lo)
		steps := distances(b, lo, hi, root)
		centre := root
		if p.First {
			centre = lo
		}
		isNear := func(d int32) bool { return d >= 0 && int(d) <= p.Hops }
		inContext := func(d int32) bool {
			return d >= 0 && int(d) > p.Inner && int(d) <= p.Outer
		}
		isAnchor := func(d int32) bool { return isNear(d) && inContext(d) }
		if !isNear(steps[centre-lo]) || !slices.ContainsFunc(steps, isAnchor) {
			continue
		}
		induced(&p.near, b, lo, steps, place, isNear)
		roots = append(roots, place[centre])
		induced(&p.far, b, lo, steps, place, inContext)
		for k, d := range steps {
			if isAnchor(d) {
				anchors = append(anchors, place[lo+int32(k)])
			}
		}
		anchorPtr = append(anchorPtr, int32(len(anchors)))
	}
	if len(roots) < 2 {
		return nil
	}
	p.near.EndView()
	p.far.EndView()
	h := p.Nodes(gnn.NewBatch(t, &p.near), nn.Train).GatherRows(roots)
	c := p.Context.Nodes(gnn.NewBatch(t, &p.far), nn.Train).GatherRows(anchors).
		SegmentMean(t.Indices(anchorPtr))
	return isTrue(rowDots(h, c)).Add(isFalse(rowDots(h, c.GatherRows(shifted(len(roots))))))
}

// Parameters returns those of both encoders.
func (p *ContextPrediction) Parameters() []*autodiff.Param {
	return parameters(p.NodeEncoder, p.Context)
}

// Buffers returns those of both encoders.
func (p *ContextPrediction) Buffers() []*nn.Buffer {
	return buffers(p.NodeEncoder, p.Context)
}

// distances returns the number of steps from root to each of the nodes lo..hi-1, -1
// for those that cannot be reached.
func distances(b *graph.Batch, lo, hi, root int32) []int32 {
	d := make([]int32, hi-lo)
	for i := range d {
		d[i] = -1
	}
	d[root-lo] = 0
	for queue := []int32{root}; len(queue) > 0; queue = queue[1:] {
		i := queue[0]
		for _, j := range b.Adj[b.Ptr[i]:b.Ptr[i+1]] {
			if d[j-lo] < 0 {
				d[j-lo] = d[i-lo] + 1
				queue = append(queue, j)
			}
		}
	}
	return d
}

// induced appends the subgraph of the nodes from lo on whose distance is wanted,
// and sets place to their numbers in dst.
func induced(dst, b *graph.Batch, lo int32, steps, place []int32, wanted func(d int32) bool) {
	dst.BeginGraph(b.X.Width)
	dst.Asymmetric = dst.Asymmetric || b.Asymmetric
	dst.Multigraph = dst.Multigraph || b.Multigraph
	if !b.X.OneHot() {
		dst.Densify(dst.Nodes())
	}
	next := int32(dst.Nodes())
	for k, d := range steps {
		place[lo+int32(k)] = -1
		if wanted(d) {
			place[lo+int32(k)] = next
			next++
		}
	}
	for k := range steps {
		i := lo + int32(k)
		if place[i] < 0 {
			continue
		}
		for e := b.Ptr[i]; e < b.Ptr[i+1]; e++ {
			if j := place[b.Adj[e]]; j >= 0 {
				dst.Adj = append(dst.Adj, j)
				if len(b.EdgeLabel) > 0 {
					dst.EdgeLabel = append(dst.EdgeLabel, b.EdgeLabel[e])
				}
			}
		}
		dst.Ptr = append(dst.Ptr, int32(len(dst.Adj)))
		if w := int32(b.X.Width); b.X.OneHot() {
			dst.X.Category = append(dst.X.Category, b.X.Category[i])
		} else {
			dst.X.Dense = append(dst.X.Dense, b.X.Dense[i*w:(i+1)*w]...)
		}
	}
	dst.EndGraph()
}
