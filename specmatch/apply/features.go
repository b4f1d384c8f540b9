package apply

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/specmatch/specmatch/gnn/dataset/records"
	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/gnn/molecule"
	"github.com/specmatch/specmatch/gnn/molecule/descriptor"
	"github.com/specmatch/specmatch/gnn/molecule/feature"
	"github.com/specmatch/specmatch/gnn/molecule/fingerprint"
	"github.com/specmatch/specmatch/specmatch/model"
	"github.com/specmatch/specmatch/specmatch/pretrained"
	"github.com/specmatch/specmatch/tensor/files"
)

// Feature is a part of a molecule's vector.
type Feature struct {
	kind         string
	radius, size int    // of a fingerprint
	sum          string // of an encoder of package pretrained
}

// The kinds of features.
const (
	encoder     = "encoder"
	frozen      = "pretrained"
	descriptors = "descriptors"
	rdkit       = "rdkit"
	crippen     = "crippen"
	morgan      = "morgan"
	bits        = "bits"
)

// Encoder is the vector that a model computes.
var Encoder = Feature{kind: encoder}

// FeatureWords lists the values of [ParseFeature].
const FeatureWords = "encoder, pretrained[:NAME], descriptors, rdkit, crippen, morgan[:RADIUS[:SIZE]] or " +
	"bits[:RADIUS[:SIZE]]"

// maxColumns bounds the size of a fingerprint; a batch holds more than a thousand of them.
const maxColumns = 1 << 13

// ParseFeature parses the name of a feature:
//
//	encoder                    the vector of a model
//	pretrained[:NAME]          the vector of the built-in encoder, or of another one of package pretrained by
//	                           its name or sum
//	descriptors                the 52 of [descriptor.Calculator]
//	rdkit                      all 217 of RDKit, by [descriptor.RDKit]
//	crippen                    logP and MR
//	morgan[:RADIUS[:COLUMNS]]  the counts of a Morgan fingerprint, with a radius from 0 to 10 (2) and
//	                           1 to 8,192 columns (2,048)
//	bits[:RADIUS[:COLUMNS]]    the bits of one
func ParseFeature(s string) (f Feature, err error) {
	kind, parameters, sized := strings.Cut(s, ":")
	f = Feature{kind: kind}
	unknown := fmt.Errorf("feature %q: want %s", s, FeatureWords)
	switch kind {
	case frozen:
		e, err := pretrained.Find(parameters)
		if err != nil {
			return f, fmt.Errorf("feature %q: %w", s, err)
		}
		// A model that learned from the vectors of an encoder must not see those of another.
		f.sum = e.Sum()
		return f, nil
	case encoder, descriptors, rdkit, crippen:
		if sized {
			return f, unknown
		}
		return f, nil
	case morgan, bits:
		f.radius = 2
		f.size = 2048
	default:
		return f, unknown
	}
	if !sized {
		return f, nil
	}
	radius, size, sized := strings.Cut(parameters, ":")
	f.radius, err = strconv.Atoi(radius)
	if err != nil || f.radius < 0 || f.radius > 10 {
		return f, fmt.Errorf("feature %q: radius %q: want 0 to 10", s, radius)
	}
	if !sized {
		return f, nil
	}
	f.size, err = strconv.Atoi(size)
	if err != nil || f.size < 1 || f.size > maxColumns {
		return f, fmt.Errorf("feature %q: size %q: want 1 to %d", s, size, maxColumns)
	}
	return f, nil
}

// frozenColumns returns the names of the numbers of the encoders of package pretrained, by their sums.
var frozenColumns = sync.OnceValue(func() map[string][]string {
	columns := map[string][]string{}
	for _, e := range pretrained.Encoders {
		var names []string
		for _, name := range openFrozen(e.Sum()).Card.Encoder.Columns() {
			names = append(names, frozen+"_"+name)
		}
		columns[e.Sum()] = slices.Clip(names)
	}
	return columns
})

// String returns the name that [ParseFeature] parses.
func (f Feature) String() string {
	switch {
	case f.kind == frozen:
		return f.kind + ":" + f.sum
	case f.size == 0:
		return f.kind
	}
	return fmt.Sprintf("%s:%d:%d", f.kind, f.radius, f.size)
}

// MarshalText returns the name that [ParseFeature] parses; a run directory records it.
func (f Feature) MarshalText() ([]byte, error) { return []byte(f.String()), nil }

// isAmong reports whether features have f already, or the vector of another encoder of package pretrained.
func (f Feature) isAmong(features []Feature) bool {
	return slices.ContainsFunc(features, func(g Feature) bool {
		return f == g || f.kind == frozen && g.kind == frozen
	})
}

// Size returns how many numbers a feature of [Numbers] has.
func (f Feature) Size() int { return len(f.columns(nil)) }

// Learned reports whether a trained model computes the feature.
func (f Feature) Learned() bool { return f.kind == encoder || f.kind == frozen }

// columns returns the names of a feature's numbers. m is the model of [Encoder].
func (f Feature) columns(m *model.Trained) (names []string) {
	switch f.kind {
	case encoder:
		return m.Card.Encoder.Columns()
	case frozen:
		return frozenColumns()[f.sum]
	case descriptors:
		return descriptor.Names()
	case rdkit:
		return descriptor.RDKitNames()
	case crippen:
		return descriptor.CrippenNames()
	}
	for i := range f.size {
		names = append(names, fmt.Sprintf("%s_%d", f.kind, i))
	}
	return names
}

// Features returns a model of vectors that concatenate these features of molecules, each at most
// once; the encoder is m. Columns are those of [gnn.Architecture.Columns], the names of the
// descriptors, and morgan_0, bits_0 and so on.
func Features(m *model.Trained, features ...Feature) (Model, error) {
	if slices.Equal(features, []Feature{Encoder}) {
		return Embedder(m)
	}
	rows := Model{Key: fmt.Sprintf("%v ", features)}
	for i, f := range features {
		if f.isAmong(features[:i]) {
			return rows, fmt.Errorf("feature %v is there twice", f)
		}
		names := f.columns(m)
		if f == Encoder {
			rows.Rows = withCache(m, 1).Embed
			rows.before = rows.width
		} else {
			rows.width += len(names)
		}
		rows.Columns = append(rows.Columns, names...)
	}
	if rows.width == 0 {
		return rows, errors.New("there are no features")
	}
	encoders := lenderOf(features)
	rows.Reads.Vector = func() records.Vectors { return newVectors(features, rows.width, encoders) }
	rows, err := newModel(rows, m)
	if err == nil && rows.Reads.Content != records.Molecules {
		err = fmt.Errorf("features %s are of molecules, and the model reads %s",
			files.Printable(fmt.Sprint(features)), rows.Reads.Content)
	}
	return rows, err
}

// Numbers describes these features as input of a head, without the width of its layer, and returns
// records.Options.Vector, which computes them. The encoder is not one of them.
func Numbers(features []Feature) (*model.Numbers, func() records.Vectors, error) {
	n := new(model.Numbers)
	for i, f := range features {
		if f == Encoder || f.isAmong(features[:i]) {
			return nil, nil, fmt.Errorf(
				"features %v next to an encoder: want each once, and not the encoder",
				features,
			)
		}
		n.Features = append(n.Features, f.String())
		n.Size += len(f.columns(nil))
	}
	encoders := lenderOf(features)
	return n, func() records.Vectors { return newVectors(features, n.Size, encoders) }, nil
}

// ParseFeatures parses several names by [ParseFeature].
func ParseFeatures(names []string) (features []Feature, err error) {
	for _, name := range names {
		f, err := ParseFeature(name)
		if err != nil {
			return nil, err
		}
		features = append(features, f)
	}
	return features, nil
}

// vectors computes the features of molecules, without those of a model. It implements [records.Vectors].
type vectors struct {
	features []Feature
	width    int

	calculator  descriptor.Calculator
	whole       descriptor.RDKit
	crippen     descriptor.Crippen
	values      []float64            // of calculator
	wholeValues []float64            // of whole
	generators  []fingerprint.Morgan // for each feature

	encoders   *lender        // nil if no feature is a vector of package pretrained
	graphs     []*graph.Graph // that have yet to be embedded
	places     [][]float32    // of their embeddings
	embeddings []float32
}

// lenderOf returns that of the encoder of package pretrained among features, which is one at most; nil without one.
func lenderOf(features []Feature) *lender {
	for _, f := range features {
		if f.kind == frozen {
			return &lender{sum: f.sum}
		}
	}
	return nil
}

// newVectors returns what computes features, [width] numbers of a molecule.
func newVectors(features []Feature, width int, encoders *lender) *vectors {
	return &vectors{
		features:    features,
		width:       width,
		values:      make([]float64, len(descriptor.Names())),
		wholeValues: make([]float64, len(descriptor.RDKitNames())),
		generators:  make([]fingerprint.Morgan, len(features)),
		encoders:    encoders,
	}
}

// Vector implements [records.Vectors].
func (v *vectors) Vector(m *molecule.Molecule) []float32 {
	vector := make([]float32, v.width)
	free := vector // the part that is not yet filled
	for i, f := range v.features {
		switch f.kind {
		case descriptors:
			v.calculator.Compute(v.values, m)
			for k, x := range v.values {
				free[k] = float32(x)
			}
			free = free[len(v.values):]
		case rdkit:
			v.whole.Compute(v.wholeValues, m)
			for k, x := range v.wholeValues { // the information content exceeds float32
				free[k] = float32(max(-math.MaxFloat32, min(math.MaxFloat32, x)))
			}
			free = free[len(v.wholeValues):]
		case crippen:
			logP, refraction := v.crippen.Compute(m)
			free[0], free[1] = float32(logP), float32(refraction)
			free = free[2:]
		case frozen:
			width := len(f.columns(nil))
			if g, err := m.GraphOf(feature.Rich); err == nil { // without a graph, they stay 0
				v.graphs = append(v.graphs, g)
				v.places = append(v.places, free[:width])
			}
			free = free[width:]
		case morgan, bits:
			v.generators[i].Radius = f.radius
			v.generators[i].Fold(free[:f.size], m, f.kind == bits)
			free = free[f.size:]
		}
	}
	return vector
}

// embedded is how many graphs are embedded at a time.
const embedded = 32

// Complete implements [records.Vectors].
func (v *vectors) Complete() {
	if len(v.graphs) == 0 {
		return
	}
	encoder := v.encoders.take()
	defer v.encoders.give(encoder)
	width := encoder.Width()
	for first := 0; first < len(v.graphs); first += embedded {
		graphs := v.graphs[first:min(first+embedded, len(v.graphs))]
		v.embeddings = slices.Grow(v.embeddings[:0], len(graphs)*width)[:len(graphs)*width]
		if err := encoder.Embed32(context.Background(), v.embeddings, graphs); err != nil {
			panic(err) // as it reads graphs that it was made for
		}
		for i := range graphs {
			copy(v.places[first+i], v.embeddings[i*width:])
		}
	}
	clear(v.graphs)
	clear(v.places)
	v.graphs = v.graphs[:0]
	v.places = v.places[:0]
}
