package gnn

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/autodiff/nn"
	"github.com/specmatch/specmatch/gnn/internal/plan"
)

// Readout says how the vector of a graph is pooled from those of its nodes, as LAYERS:KINDS.
// In "1,3:sum,max", the layers are ascending numbers from 1; "last" and "all" name layers
// too. The kinds pool the nodes of each layer: sum (which a ChemGIN divides by [SumUnit]),
// mean, or max, the largest of each column. The vector holds layer after layer and, within a
// layer, the kinds in this order. The zero value is the encoder's own readout.
type Readout string

// ReadoutAll reads out every layer by every kind. It gives the best frozen vectors of
// molecules.
const ReadoutAll Readout = "all:sum,mean,max"

// The kinds of readouts.
const (
	readSum  = "sum"
	readMean = "mean"
	readMax  = "max"
)

// parse returns the numbers of the layers that are read out, of the given number of layers,
// and the kinds.
func (r Readout) parse(layers int) (numbered []int, kinds []string, err error) {
	numbers, names, _ := strings.Cut(string(r), ":")
	kinds = strings.Split(names, ",")
	ok := true
	for i, k := range kinds {
		ok = ok && slices.Contains([]string{readSum, readMean, readMax}, k) && !slices.Contains(kinds[:i], k)
	}
	switch numbers {
	case "all":
		for l := range layers {
			numbered = append(numbered, l+1)
		}
	case "last":
		numbered = []int{layers}
	default:
		for text := range strings.SplitSeq(numbers, ",") {
			l, err := strconv.Atoi(text)
			ok = ok && err == nil && l <= layers && l > slices.Max(append(numbered, 0))
			numbered = append(numbered, l)
		}
	}
	if !ok {
		return nil, nil,
			fmt.Errorf("gnn: readout %q: want layers (all, last, or ascending numbers from 1 to %d) "+
				"and sum, mean or max, as in %s or last:sum", string(r), layers, ReadoutAll)
	}
	return numbered, kinds, nil
}

// ParseReadout returns the readout that a text names. It does not know how many layers the
// encoder has.
func ParseReadout(s string) (Readout, error) {
	_, _, err := Readout(s).parse(maxSize)
	return Readout(s), err
}

// mustParse is parse for a readout that passes [Architecture.Check]; it panics on others.
func (r Readout) mustParse(layers int) (numbers []int, kinds []string) {
	numbers, kinds, err := r.parse(layers)
	if err != nil {
		panic(err)
	}
	return numbers, kinds
}

// hasMax reports whether the readout has maxima.
func (r Readout) hasMax() bool { return strings.Contains(string(r), readMax) }

// readOut returns the embeddings [B×Width] of a batch by the readout of e or, if it has none, by
// own; sums are multiplied by unit.
func readOut(e encoder, b *Batch, mode nn.Mode, own Readout, unit float64) *autodiff.Var {
	return readOutBy(e.plan(b), e, b, mode, own, unit)
}

// readOutBy is readOut with the given plan, which may be nil.
func readOutBy(p plan.Plan, e encoder, b *Batch, mode nn.Mode, own Readout, unit float64) *autodiff.Var {
	a, _ := ArchitectureOf(e)
	wanted, kinds := cmp.Or(a.Readout, own).mustParse(a.Layers)
	// Only the encoder's own readout takes the sums that a plan may offer.
	sums := a.Readout == "" && slices.Equal(kinds, []string{readSum})
	var parts []*autodiff.Var
	for _, layer := range runLayers(e, p, b, mode, wanted, sums) {
		for _, kind := range kinds {
			h := pool(b, layer, kind)
			if kind == readSum && unit != 1 {
				h = h.Scale(unit)
			}
			parts = append(parts, h)
		}
	}
	if len(parts) == 1 {
		return parts[0]
	}
	return autodiff.ConcatCols(parts...)
}

// GlobalMaxPool is the max readout [B×F], the largest of each column; a graph without nodes
// gets zeros.
func GlobalMaxPool(x *autodiff.Var, b *Batch) *autodiff.Var { return x.SegmentMax(b.GraphPtr) }

// pool returns the features of the nodes after a layer, pooled over each graph [B×F].
func pool(b *Batch, layer plan.Layer, kind string) *autodiff.Var {
	pooled := layer.Max
	global := GlobalMaxPool
	switch kind {
	case readSum:
		pooled = layer.Sum
		global = GlobalAddPool
	case readMean:
		pooled = layer.Mean
		global = GlobalMeanPool
	}
	if pooled != nil {
		return pooled
	}
	return global(layer.Nodes, b)
}

// Columns names the columns of an embedding: h0, h1 and so on or, with a [Readout], by layer
// and kind, as in l2_max_17.
func (a Architecture) Columns() (names []string) {
	if a.Readout == "" {
		for i := range a.Width() {
			names = append(names, fmt.Sprintf("h%d", i))
		}
		return names
	}
	layers, kinds := a.Readout.mustParse(a.Layers)
	for _, l := range layers {
		for _, kind := range kinds {
			for i := range a.Hidden {
				names = append(names, fmt.Sprintf("l%d_%s_%d", l, kind, i))
			}
		}
	}
	return names
}

// WithReadout returns a copy of an encoder of this package with another readout. Both share
// the weights.
func WithReadout(e Encoder, r Readout) (Encoder, error) {
	a, err := ArchitectureOf(e)
	if err != nil {
		return nil, err
	}
	a.Readout = r
	if r != "" {
		a.Sum = false
		a.Center = false
	}
	if err := a.Check(); err != nil {
		return nil, err
	}
	switch e := e.(type) {
	case *GIN:
		g := *e
		g.Config.Readout = r
		return &g, nil
	case *ResGCN:
		g := *e
		g.Config.Readout = r
		return &g, nil
	case *ChemGIN:
		g := *e
		g.Config.Readout = r
		g.Config.Sum = a.Sum
		return &g, nil
	default:
		g := *e.(*BioGIN)
		g.Config.Readout = r
		g.Config.Center = a.Center
		return &g, nil
	}
}
