// Package check looks through a table of molecules before a model is fitted to it: what a fit would silently
// take as it is, such as salts, molecules that are there twice with other labels, or test molecules that also
// stand in the training set.
//
// [Read] reads a file into a [Table]. [Table.Findings] lists what is odd, and [Table.Write] writes a cleaned
// table with canonical SMILES, in which replicates may be merged.
package check

import (
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/gnn/dataset/records"
	"github.com/specmatch/specmatch/gnn/molecule"
	"github.com/specmatch/specmatch/gnn/molecule/feature"
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
	table.Write(header) // table.Error returns the first error
	write := func(r *Row, labels []string) {
		line := append([]string{r.ID, r.SMILES}, labels...)
		if t.Split != "" {
			line = append(line, r.Part)
		}
		table.Write(line)
		rows++
	}
	written := map[string]bool{}
	members := map[string][]int{}
	key := func(r *Row) string { return r.Part + "\x00" + r.SMILES }
	var measured []bool
	for task := range t.Targets {
		measured = append(measured, t.column(task).isMeasured())
	}
	for i := range t.Rows {
		members[key(&t.Rows[i])] = append(members[key(&t.Rows[i])], i)
	}
	for i := range t.Rows {
		r := &t.Rows[i]
		if merge == Keep {
			write(r, r.Labels)
			continue
		}
		if written[key(r)] {
			continue
		}
		written[key(r)] = true
		if labels, ok := MergeLabels(t.rowsOf(members[key(r)]), measured, merge); ok {
			write(r, labels)
		}
	}
	table.Flush()
	return rows, table.Error()
}

// rowsOf returns the labels of some rows.
func (t *Table) rowsOf(group []int) (rows [][]string) {
	for _, i := range group {
		rows = append(rows, t.Rows[i].Labels)
	}
	return rows
}

// MergeLabels returns the labels that stand for some rows of labels of one molecule, which has at least one row;
// ok is false if the molecule is dropped. measured says of each target whether its labels are measurements, which
// have a mean, and not classes. Missing labels do not count, and bounds count with Drop only, or where there is no
// number.
func MergeLabels(rows [][]string, measured []bool, merge Merge) (labels []string, ok bool) {
	for task := range rows[0] {
		given, numbers := labelsOf(rows, task)
		if len(numbers) > 0 && merge != Drop {
			given = slices.DeleteFunc(given, IsAlmostBound) // a number says more than a bound
		}
		switch {
		case agree(given, numbers):
			labels = append(labels, strings.Join(given[:min(1, len(given))], ""))
		case merge == Drop:
			return nil, false
		case len(numbers) < len(given) || !measured[task]:
			labels = append(labels, majority(given))
		default:
			labels = append(labels, strconv.FormatFloat(centre(numbers, merge), 'g', -1, 64))
		}
	}
	return labels, true
}

// agree reports whether labels, of which some are numbers, are the same one, however it is written.
func agree(given []string, numbers []float64) bool {
	if len(given) == 0 {
		return true
	}
	if len(numbers) == len(given) {
		return slices.Min(numbers) == slices.Max(numbers)
	}
	isOther := func(label string) bool { return label != given[0] }
	return !slices.ContainsFunc(given, isOther)
}

func isBinary(numbers []float64) bool {
	return !slices.ContainsFunc(numbers, func(y float64) bool { return y != 0 && y != 1 })
}

// majority returns the most frequent label, or "" if several are.
func majority(labels []string) (winner string) {
	counts := map[string]int{}
	for _, label := range labels {
		counts[label]++
	}
	largest := 0
	for _, label := range labels {
		switch n := counts[label]; {
		case n > largest:
			largest = n
			winner = label
		case n == largest && label != winner:
			winner = ""
		}
	}
	return winner
}

// centre returns the mean or the median.
func centre(numbers []float64, merge Merge) float64 {
	if merge == Median {
		sorted := slices.Sorted(slices.Values(numbers))
		return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
	}
	sum := 0.0
	for _, y := range numbers {
		sum += y
	}
	return sum / float64(len(numbers))
}
