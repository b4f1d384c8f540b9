// Package domain says how far a molecule lies from those that a model was trained on: the applicability
// domain of the model, in terms that a chemist reads.
//
// A [model.Domain] stands in a model file. It holds the training molecules as SMILES with their targets, packed, and
// the similarity that most new molecules of the training data reach. [Open] makes an [Index] of it, which
// finds the nearest training molecules of another molecule, and the elements and atom environments that none
// of them has. Similarities are those of Tanimoto, of counts of Morgan environments up to radius 2.
package domain

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/specmatch/specmatch/gnn/molecule"
	"github.com/specmatch/specmatch/gnn/molecule/feature"
	"github.com/specmatch/specmatch/gnn/molecule/fingerprint"
	"github.com/specmatch/specmatch/specmatch/model"
)

const (
	// MaxMolecules is how many molecules a model file holds; of more, they are evenly chosen.
	MaxMolecules = 1 << 16

	maxTable  = 1 << 28 // bytes of an unpacked table
	radius    = 2       // of the similarity
	maxFresh  = 500     // molecules that Least is computed from
	typical   = 0.975   // of them are as similar as Least
	mostFound = 100     // neighbours of a molecule
	hydrogen  = 1       // its atoms are listed as isotopes or alone only, and do not count
)

// New returns the domain of a model. Rows have a SMILES and the targets as texts; fresh are SMILES of
// molecules that are not among them. SMILES that cannot be read are dropped.
func New(targets []string, rows [][]string, fresh []string, standard feature.Standardisation) (*model.Domain, error) {
	rows = evenly(rows, MaxMolecules)
	var packed bytes.Buffer
	compressor := gzip.NewWriter(&packed)
	w := csv.NewWriter(compressor)
	w.Write(append([]string{"smiles"}, targets...)) // w.Error returns the first error
	w.WriteAll(rows)
	if err := errors.Join(w.Error(), compressor.Close()); err != nil {
		return nil, err
	}
	s := &model.Domain{Table: packed.Bytes()}
	index, err := Open(standard, s)
	if err != nil {
		return nil, err
	}
	var similarities []float64
	parser := molecule.Parser{Standard: standard}
	for _, smiles := range evenly(fresh, maxFresh) {
		if m, err := parser.Parse(smiles); err == nil {
			similarities = append(similarities, index.Look(m, 1).Similarity())
		}
	}
	if len(similarities) > 0 {
		slices.Sort(similarities)
		s.Least = similarities[int((1-typical)*float64(len(similarities)))]
	}
	return s, nil
}

// evenly returns n of the items, evenly chosen, or all if they are fewer.
func evenly[T any](items []T, n int) []T {
	if len(items) <= n {
		return items
	}
	chosen := make([]T, n)
	for i := range chosen {
		chosen[i] = items[i*len(items)/n]
	}
	return chosen
}

// Index finds the nearest training molecules of one or several models. [Index.Look] is for one goroutine;
// [Index.Fork] serves others.
type Index struct {
	Targets []string
	Least   float64

	members      []member
	elements     map[int8]bool
	environments map[uint32]bool
	largest      int // number of heavy atoms of a member
	morgan       fingerprint.Morgan
	near         fingerprint.Morgan // of environments: radius 1
}

// member is a training molecule.
type member struct {
	row    []string
	counts []fingerprint.Count
	total  int32
}

// Open returns the index of a domain, whose molecules are standardised, or of several with the same targets,
// such as those of an ensemble: of all their molecules, each once, and the mean of Least.
func Open(standard feature.Standardisation, domains ...*model.Domain) (*Index, error) {
	x := &Index{elements: map[int8]bool{}, environments: map[uint32]bool{}}
	x.morgan.Radius = radius
	x.near.Radius = 1
	parser := molecule.Parser{Standard: standard}
	listed := map[string]bool{}
	for _, s := range domains {
		rows, err := unpack(s.Table)
		if err != nil {
			return nil, fmt.Errorf("domain: the training molecules of the model: %w", err)
		}
		x.Targets = rows[0][1:]
		x.Least += s.Least / float64(len(domains))
		for _, row := range rows[1:] {
			key := strings.Join(row, "\x00")
			m, err := parser.Parse(row[0])
			if listed[key] || err != nil {
				continue
			}
			listed[key] = true
			x.add(m, row)
		}
	}
	return x, nil
}

// unpack returns the rows of a packed table with its header.
func unpack(table []byte) ([][]string, error) {
	reader, err := gzip.NewReader(bytes.NewReader(table))
	if err != nil {
		return nil, err
	}
	rows, err := csv.NewReader(io.LimitReader(reader, maxTable)).ReadAll()
	if err == nil && (len(rows) == 0 || len(rows[0]) == 0) {
		err = errors.New("the table is empty")
	}
	return rows, err
}

// add adds a molecule.
func (x *Index) add(m *molecule.Molecule, row []string) {
	e := member{row: row, counts: slices.Clone(x.morgan.Counts(m))}
	e.total = total(e.counts)
	x.members = append(x.members, e)
	x.largest = max(x.largest, heavyAtoms(m))
	for _, a := range m.Atoms {
		x.elements[a.Z] = true
	}
	for _, c := range x.near.Counts(m) {
		x.environments[c.ID] = true
	}
}

// Fork returns an index of the same molecules for another goroutine.
func (x *Index) Fork() *Index {
	fork := *x
	fork.morgan = fingerprint.Morgan{Radius: radius}
	fork.near = fingerprint.Morgan{Radius: 1}
	return &fork
}

// Len returns the number of training molecules.
func (x *Index) Len() int { return len(x.members) }

// Neighbour is a training molecule.
type Neighbour struct {
	SMILES     string
	Values     []string // of the targets, as in the training file
	Similarity float64  // of Tanimoto, from 0 to 1
}

// Finding is what an index knows of a molecule.
type Finding struct {
	Nearest []Neighbour // by descending similarity
	// Elements are those that no training molecule has; * is a wildcard, as in polymers.
	Elements []string
	// Environments counts the kinds of atoms with their neighbours that no training molecule has.
	Environments int
	// Reasons say why the molecule is outside of the domain; none if it is inside.
	Reasons []string
}

// Similarity returns the similarity to the nearest training molecule.
func (f Finding) Similarity() float64 {
	if len(f.Nearest) == 0 {
		return 0
	}
	return f.Nearest[0].Similarity
}

// Look returns what is known of a molecule, with its n nearest training molecules. It lies outside of the
// domain if it has an element that no training molecule has, or more heavy atoms than each of them, or if it is less
// similar to all of them than Least. Hydrogen is no element here.
func (x *Index) Look(m *molecule.Molecule, n int) Finding {
	counts := x.morgan.Counts(m)
	f := Finding{Nearest: x.nearest(counts, min(n, mostFound))}
	for _, a := range m.Atoms {
		symbol := molecule.Symbol(a.Z)
		if a.Z != hydrogen && !x.elements[a.Z] && !slices.Contains(f.Elements, symbol) {
			f.Elements = append(f.Elements, symbol)
			f.Reasons = append(f.Reasons, "no training molecule has "+symbol)
		}
	}
	for _, c := range x.near.Counts(m) {
		if !x.environments[c.ID] {
			f.Environments++
		}
	}
	if size := heavyAtoms(m); size > x.largest {
		reason := fmt.Sprintf("%d heavy atoms, and no training molecule has more than %d", size, x.largest)
		f.Reasons = append(f.Reasons, reason)
	}
	if s := f.Similarity(); s < x.Least {
		f.Reasons = append(f.Reasons, fmt.Sprintf("similarity %.2f is below %.2f", s, x.Least))
	}
	return f
}

// nearest returns the n training molecules that are most similar to one with these counts; the first of
// equal ones.
func (x *Index) nearest(counts []fingerprint.Count, n int) (found []Neighbour) {
	size := total(counts)
	for i := range x.members {
		e := &x.members[i]
		least := -1.0
		if len(found) == n {
			least = found[n-1].Similarity
		}
		// The smaller total bounds what is common.
		if bound := float64(min(size, e.total)) / math.Max(1, float64(max(size, e.total))); bound <= least {
			continue
		}
		s := fingerprint.Tanimoto(counts, e.counts, size+e.total)
		if s <= least {
			continue
		}
		found = append(found, Neighbour{SMILES: e.row[0], Values: e.row[1:], Similarity: s})
		slices.SortStableFunc(found, func(a, b Neighbour) int { return cmp.Compare(b.Similarity, a.Similarity) })
		found = found[:min(n, len(found))]
	}
	return found
}

// heavyAtoms counts the atoms that are not hydrogen.
func heavyAtoms(m *molecule.Molecule) (n int) {
	for _, a := range m.Atoms {
		if a.Z != hydrogen {
			n++
		}
	}
	return n
}

func total(counts []fingerprint.Count) (sum int32) {
	for _, c := range counts {
		sum += c.N
	}
	return sum
}
