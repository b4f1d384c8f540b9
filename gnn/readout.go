package gnn

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/specmatch/specmatch/autodiff"
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
		ok = ok && slices.Contains([]string{readSum, readMean, readMax}, k) &&
			!slices.Contains(kinds[:i], k)
	}
	switch numbers {
	case "all":
		numbered = make([]int, layers)
		for l := range numbered {
			numbered[l] = l + 1
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

// maxSize bounds the sizes of an architecture, so that their products do not overflow. Larger
// encoders would not fit into memory.
const maxSize = 1 << 20

// hasMax reports whether the readout has maxima.
func (r Readout) hasMax() bool { return strings.Contains(string(r), readMax) }

// GlobalMaxPool is the max readout [B×F], the largest of each column; a graph without nodes
// gets zeros.
func GlobalMaxPool(x *autodiff.Var, b *Batch) *autodiff.Var {
	return x.SegmentMax(b.GraphPtr)
}
