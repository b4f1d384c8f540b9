package laboratory

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/specmatch/specmatch/gnn/dataset/records"
	"github.com/specmatch/specmatch/gnn/molecule"
	"github.com/specmatch/specmatch/gnn/molecule/feature"
	"github.com/specmatch/specmatch/gnn/molecule/library"
	"github.com/specmatch/specmatch/gnn/molecule/smarts"
	"github.com/specmatch/specmatch/specmatch/report/gallery"
)

// The fingerprints of the library: those of specmatch search, cluster, pick and map by default.
const (
	radius = 2
	bits   = 2048
)

// collection is the molecules of a file with their fingerprints.
type collection struct {
	set     *library.Bits
	numbers []int // of the records, from 1
}

// each calls use with the records of the open file that can be used.
func (s *Session) each(use func(r *records.Record) error) error {
	if s.file == nil {
		return errors.New("there is no file: drop one, or paste SMILES")
	}
	total := 0
	for _, p := range s.file.parts {
		total += p.Count
	}
	options := s.file.options(s.file.text)
	options.Fields = nil
	options.Atoms = feature.Rich.Name // all elements and configurations: nothing here reads features
	return records.Read(context.Background(), s.file.name, options, func(r *records.Record) error {
		if r.Number%64 == 0 {
			s.report(r.Number, 2*total)
		}
		if r.Err != nil {
			return nil
		}
		return use(r)
	})
}

// collect returns the fingerprints of the open file.
func (s *Session) collect() (*collection, error) {
	if s.file != nil && s.file.library != nil {
		return s.file.library, nil
	}
	c := &collection{set: library.NewBits(radius, bits)}
	err := s.each(func(r *records.Record) error {
		c.set.Add(r.Molecule)
		c.numbers = append(c.numbers, r.Number)
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(c.numbers) == 0 {
		return nil, errors.New("no molecule of the file can be used")
	}
	s.file.library = c
	return c, nil
}

// query is what to search for.
type query struct {
	Text string `json:"text"`
	Kind string `json:"kind"` // similar or substructure
	Top  int    `json:"top"`
}

// hit is a molecule that a search finds.
type hit struct {
	Number     int     `json:"number"`
	Similarity float64 `json:"similarity"`
}

// search finds the molecules that are similar to a molecule, or have a substructure.
func (s *Session) search(q query, _ []byte) (any, error) {
	hits := []hit{}
	text := strings.TrimSpace(q.Text)
	if text == "" {
		return nil, errors.New("write a SMILES or a SMARTS to search for, such as c1ccccc1")
	}
	if q.Kind == "substructure" {
		pattern, err := smarts.Compile(text)
		if err != nil {
			return nil, err
		}
		var matcher smarts.Matcher
		err = s.each(func(r *records.Record) error {
			matcher.Reset(r.Molecule)
			if matcher.Has(pattern) {
				hits = append(hits, hit{r.Number, 1})
			}
			return nil
		})
		return map[string]any{"hits": hits}, err
	}
	m, err := new(molecule.Parser).Parse(text)
	if err != nil {
		return nil, err
	}
	c, err := s.collect()
	if err != nil {
		return nil, err
	}
	queries := library.NewBits(radius, bits)
	queries.Add(m)
	best := library.NewBest(q.Top, 0)
	c.set.Search(best, queries, 0, 0, c.set.Len(), 0)
	for _, h := range best.Hits() {
		hits = append(hits, hit{c.numbers[h.Index], h.Similarity})
	}
	return map[string]any{"hits": hits}, nil
}

// cluster divides the molecules into Butina's clusters.
func (s *Session) cluster(q struct {
	Least float64 `json:"least"`
}, _ []byte) (any, error) {
	c, err := s.collect()
	if err != nil {
		return nil, err
	}
	done := 0
	clusters, err := library.Butina(context.Background(), c.set, q.Least, func(n int) {
		done += n
		s.report(c.set.Len()+done, 2*c.set.Len())
	})
	for _, members := range clusters {
		for k, i := range members {
			members[k] = c.numbers[i]
		}
	}
	return map[string]any{"clusters": clusters}, err
}

// pick picks molecules that are as different as possible.
func (s *Session) pick(q struct {
	Count int    `json:"count"`
	Seed  uint32 `json:"seed"`
}, _ []byte) (any, error) {
	c, err := s.collect()
	if err != nil {
		return nil, err
	}
	if q.Count < 1 {
		return nil, fmt.Errorf("%d picks: want 1 or more", q.Count)
	}
	total := min(q.Count, c.set.Len())
	done := 0
	picks, err := library.MaxMin(context.Background(), c.set, q.Count, nil, q.Seed, func(n int) {
		done += n
		s.report(total+done, 2*total)
	})
	hits := []hit{}
	for _, p := range picks {
		hits = append(hits, hit{c.numbers[p.Index], 1 - p.Distance})
	}
	return map[string]any{"hits": hits}, err
}

// project returns a map of the molecules: their principal components.
func (s *Session) project(struct{}, []byte) (any, error) {
	c, err := s.collect()
	if err != nil {
		return nil, err
	}
	p, err := library.PCA(context.Background(), c.set)
	return map[string]any{"numbers": c.numbers, "xy": p.XY, "ratios": p.Ratios}, err
}

// page returns a page with a table, which needs no other file.
func (s *Session) page(q gallery.Page, _ []byte) (any, error) {
	var text strings.Builder
	err := q.Write(context.Background(), &text)
	return map[string]any{"html": text.String()}, err
}
