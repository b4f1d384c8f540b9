// Package check looks through a table of molecules before a model is fitted to it: what a fit would silently
// take as it is, such as salts, molecules that are there twice with other labels, or test molecules that also
// stand in the training set.
//
// [Read] reads a file into a [Table]. [Table.Findings] lists what is odd, and [Table.Write] writes a cleaned
// table with canonical SMILES, in which replicates may be merged.
package check

import (
	"cmp"
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/gnn/dataset/records"
	"github.com/specmatch/specmatch/gnn/molecule"
	"github.com/specmatch/specmatch/gnn/molecule/feature"
	"github.com/specmatch/specmatch/tensor/files"
)

// Options say what is looked at.
type Options struct {
	Records records.Options // how the file is read; its Fields are set
	Targets []string        // columns with labels
	Split   string          // a column with the part of each record; "" for none
}

// Table is what a file has.
type Table struct {
	Options
	Rows     []Row
	Rejected []*dataset.SyntaxError // records that cannot be used
}

// Row is a molecule with its labels.
type Row struct {
	Line   int
	ID     string
	SMILES string   // canonical
	Labels []string // of Options.Targets
	Part   string   // by Options.Split

	charged bool   // -neutralise changes it
	salted  bool   // -largest-fragment changes it
	mapped  bool   // atoms have map numbers
	flat    string // SMILES without configurations
	bare    string // SMILES of the neutral form of the largest fragment
}

// Read reads a file of molecules.
func Read(ctx context.Context, path string, o Options) (*Table, error) {
	t := &Table{Options: o}
	t.Records.Want = records.Molecules
	t.Records.Molecules = true
	t.Records.Atoms = feature.Rich.Name // it has a category for everything
	t.Records.Fields = slices.Clone(o.Targets)
	if o.Split != "" {
		t.Records.Fields = append(t.Records.Fields, o.Split)
	}
	reading := cmp.Or(t.Records.Reading, new(records.Reading))
	t.Records.Reading = reading
	c := new(cleaner)
	c.fragment.Standard = feature.Standardisation{LargestFragment: true}
	c.neutral.Standard = feature.Standardisation{Neutralise: true}
	c.bare.Standard = feature.Standardisation{LargestFragment: true, Neutralise: true}
	err := records.Read(ctx, path, t.Records, func(r *records.Record) error {
		if r.Err != nil {
			t.Rejected = append(t.Rejected, r.Err)
			return nil
		}
		row := c.row(r.Molecule)
		row.Line = r.Line
		row.ID = r.ID
		row.Labels = r.Fields[:len(o.Targets)]
		if o.Split != "" {
			text := r.Fields[len(o.Targets)]
			row.Part, _ = Part(text)
		}
		t.Rows = append(t.Rows, row)
		return nil
	})
	if err == nil && len(t.Rows) == 0 {
		err = fmt.Errorf("%s: no record can be used", path)
		if len(t.Rejected) > 0 {
			err = fmt.Errorf("%w, such as line %d: %s", err, t.Rejected[0].Line, t.Rejected[0].Reason)
		}
	}
	if err == nil && len(reading.Absent) > 0 {
		err = fmt.Errorf("%s: %s", path, reading.NoValue(reading.Absent[0]))
	}
	return t, err
}

// cleaner writes forms of molecules.
type cleaner struct{ plain, fragment, neutral, bare molecule.Parser }

// row returns the forms of a molecule.
func (c *cleaner) row(m *molecule.Molecule) (row Row) {
	unmapped := c.plain.Unmapped(m) // numbers of a reaction make no other molecule
	row.mapped = unmapped != m
	m = unmapped
	row.SMILES = c.plain.CanonicalSMILES(m)
	row.flat = row.SMILES
	row.bare = row.SMILES
	if strings.Contains(row.SMILES, ".") {
		row.salted = form(&c.fragment, row.SMILES) != row.SMILES
	}
	isCharged := func(a molecule.Atom) bool { return a.Charge != 0 }
	if slices.ContainsFunc(m.Atoms, isCharged) {
		row.charged = form(&c.neutral, row.SMILES) != row.SMILES
	}
	if row.salted || row.charged {
		row.bare = form(&c.bare, row.SMILES)
	}
	if strings.ContainsAny(row.SMILES, `@/\`) {
		row.flat = form(&c.plain, flatten.Replace(row.SMILES))
	}
	return row
}

// flatten removes the configurations of SMILES.
var flatten = strings.NewReplacer("@", "", "/", "", `\`, "")

// form returns the canonical SMILES of a molecule that a parser reads; the text itself if it refuses that.
func form(p *molecule.Parser, smiles string) string {
	m, err := p.Parse(smiles)
	if err != nil {
		return smiles
	}
	return p.CanonicalSMILES(m.Clone())
}

// groups returns the rows of equal keys, where there are several, in the order of their first row.
func (t *Table) groups(key func(r *Row) string) (groups [][]int) {
	members := map[string][]int{}
	for i := range t.Rows {
		k := key(&t.Rows[i])
		members[k] = append(members[k], i)
	}
	for i := range t.Rows {
		if group := members[key(&t.Rows[i])]; len(group) > 1 && group[0] == i {
			groups = append(groups, group)
		}
	}
	return groups
}

// Merge is how replicates are merged: the rows of a molecule within a part.
type Merge string

// The ways to merge.
const (
	Keep   Merge = "none"   // all rows
	Mean   Merge = "mean"   // of numbers; of classes, the most frequent one, or none if several are
	Median Merge = "median" // likewise
	Drop   Merge = "drop"   // the molecule, if its labels differ
)

// Merges are the names of the ways to merge.
var Merges = []string{string(Keep), string(Mean), string(Median), string(Drop)}

// Write writes the cleaned table: id, smiles, the targets, and the part if there are parts. It returns the
// number of its rows.
func (t *Table) Write(w io.Writer, merge Merge) (rows int, err error) {
	table := csv.NewWriter(w)
	header := append([]string{"id", "smiles"}, t.Targets...)
	if t.Split != "" {
		header = append(header, t.Split)
	}
	table.Write(files.Cells(nil, header)) // table.Error returns the first error
	merged, _ := t.merge(merge)
	for _, r := range merged {
		line := append([]string{r.ID, r.SMILES}, r.Labels...)
		if t.Split != "" {
			line = append(line, r.Part)
		}
		table.Write(files.Cells(nil, line))
	}
	table.Flush()
	return len(merged), table.Error()
}

// Losses lists the labels that [Table.Write] loses when it merges.
func (t *Table) Losses(merge Merge) (found []Finding) {
	_, losses := t.merge(merge)
	for _, text := range DescribeLosses(t.Targets, losses) {
		found = append(found, Finding{"lost labels", text})
	}
	return found
}

// merge returns the rows that stand for those of each molecule within a part, and the labels that were lost.
func (t *Table) merge(merge Merge) (merged []Row, losses []Loss) {
	if merge == Keep {
		return t.Rows, nil
	}
	key := func(r *Row) string { return r.Part + "\x00" + r.SMILES }
	members := map[string][]int{}
	for i := range t.Rows {
		k := key(&t.Rows[i])
		members[k] = append(members[k], i)
	}
	var measured []bool
	for task := range t.Targets {
		measured = append(measured, t.column(task).isMeasured())
	}
	for i := range t.Rows {
		group := members[key(&t.Rows[i])]
		if group[0] != i {
			continue
		}
		labels, lost, ok := MergeLabels(t.rowsOf(group), measured, merge)
		for _, loss := range lost {
			loss.Lines = t.lines(group)
			losses = append(losses, loss)
		}
		if ok {
			row := t.Rows[i]
			row.Labels = labels
			merged = append(merged, row)
		}
	}
	return merged, losses
}

// rowsOf returns the labels of some rows.
func (t *Table) rowsOf(group []int) (rows [][]string) {
	for _, i := range group {
		rows = append(rows, t.Rows[i].Labels)
	}
	return rows
}
