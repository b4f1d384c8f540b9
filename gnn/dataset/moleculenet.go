package dataset

import (
	"bufio"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/specmatch/specmatch/gnn/graph"
)

// Molecules is a set of molecules with labels for several tasks.
type Molecules struct {
	// Name is the set's name, such as "tox21".
	Name string
	// Graphs are the molecules in the order of the file, as [molecule.Molecule.Graph]
	// makes them; Class is 0. Their slices are parts of common arrays.
	Graphs []*graph.Graph
	// SMILES are the molecules as they are written in the file.
	SMILES []string
	// Tasks are the names of the label columns.
	Tasks []string
	// Labels is the row-major matrix [molecules×tasks] of labels: 1 for yes, -1
	// for no and 0 for a missing one.
	Labels []int8
	// Scaffolds[i] is the number of molecule i's scaffold, by first appearance:
	// molecules with equal numbers have the same Bemis–Murcko scaffold with
	// chirality.
	Scaffolds []int
	// Dropped are the rows whose molecule could not be used, with the reasons.
	Dropped []*SyntaxError
}

// Label returns the label of molecule i for a task.
func (m *Molecules) Label(i, task int) int8 { return m.Labels[i*len(m.Tasks)+task] }

// MoleculeNetSet describes a set of the MoleculeNet benchmark.
type MoleculeNetSet struct {
	Name   string // such as "tox21"
	File   string // name of the official file
	SMILES string // name of the column of SMILES
	// Labels are the columns of labels; if nil, all but Others and the SMILES.
	Labels []string
	Others []string
	Tasks  int // number of label columns
	Rows   int // number of molecules in the official file
}

// moleculeNet are the sets that Hu et al. fine-tune on, in the order of their
// table.
var moleculeNet = []MoleculeNetSet{
	{Name: "bbbp", File: "BBBP.csv", SMILES: "smiles", Labels: []string{"p_np"}, Tasks: 1, Rows: 2050},
	{Name: "tox21", File: "tox21.csv.gz", SMILES: "smiles", Others: []string{"mol_id"}, Tasks: 12, Rows: 7831},
	{Name: "toxcast", File: "toxcast_data.csv.gz", SMILES: "smiles", Tasks: 617, Rows: 8576},
	{Name: "sider", File: "sider.csv.gz", SMILES: "smiles", Tasks: 27, Rows: 1427},
	{Name: "clintox", File: "clintox.csv.gz", SMILES: "smiles", Labels: []string{"FDA_APPROVED", "CT_TOX"}, Tasks: 2, Rows: 1484},
	{Name: "muv", File: "muv.csv.gz", SMILES: "smiles", Others: []string{"mol_id"}, Tasks: 17, Rows: 93087},
	{Name: "hiv", File: "HIV.csv", SMILES: "smiles", Labels: []string{"HIV_active"}, Tasks: 1, Rows: 41127},
	{Name: "bace", File: "bace.csv", SMILES: "mol", Labels: []string{"Class"}, Tasks: 1, Rows: 1513},
}

// MoleculeNet returns the sets that [OpenMoleculeNet] knows, in the order of
// the literature's tables.
func MoleculeNet() []MoleculeNetSet { return slices.Clone(moleculeNet) }

// MoleculeNetByName returns the description of a set.
func MoleculeNetByName(name string) (MoleculeNetSet, error) {
	var names []string
	for _, s := range moleculeNet {
		if s.Name == name {
			return s, nil
		}
		names = append(names, s.Name)
	}
	return MoleculeNetSet{}, fmt.Errorf("dataset: no MoleculeNet set %q; there are %s", name, strings.Join(names, ", "))
}

// numbers are the columns that may have the target of MoleculeNet's sets of one
// number, which are no [MoleculeNetSet]: those of the official files, and of others.
var numbers = map[string][]string{
	"esol":     {"measured log solubility in mols per litre", "logp", "logS"},
	"freesolv": {"expt", "freesolv"},
	"lipo":     {"exp", "lipo"},
}

// MoleculeNetColumns returns the names of the columns of SMILES and of targets in the
// table of a set of MoleculeNet, by the table's name and header: one of
// [MoleculeNet], or of the sets of one number, esol, freesolv and lipo. If the name
// is of none of them, or a column is missing, it is an error.
func MoleculeNetColumns(ctx context.Context, path string) (smiles string, targets []string, err error) {
	name, _, _ := strings.Cut(filepath.Base(path), ".")
	set, err := MoleculeNetByName(name)
	columns, ok := numbers[name]
	if err != nil && !ok {
		return "", nil, err
	}
	err = readCSV(ctx, path, func(c *csvRows) error {
		if ok {
			set = MoleculeNetSet{Name: name, SMILES: "smiles", Tasks: 1}
			if i := slices.IndexFunc(columns, func(name string) bool { return slices.Contains(c.header, name) }); i >= 0 {
				set.Labels = columns[i : i+1]
			} else {
				set.Labels = columns[:1] // which the error names
			}
		}
		at, labels, err := set.columns(c)
		if err != nil {
			return err
		}
		smiles = c.header[at]
		for _, l := range labels {
			targets = append(targets, c.header[l])
		}
		return nil
	})
	return smiles, targets, err
}

// Path returns where [FetchMoleculeNet] puts the set: dir/NAME.csv or
// dir/NAME.csv.gz, as the official file is compressed or not.
func (s MoleculeNetSet) Path(dir string) string {
	return filepath.Join(dir, s.Name+s.File[strings.IndexByte(s.File, '.'):])
}

// FindMoleculeNet returns the path of a set that is in dir: the first of NAME.csv,
// NAME.csv.gz and a file of the official name. If there is none, the error wraps
// [fs.ErrNotExist].
func FindMoleculeNet(dir, name string) (string, error) {
	set, err := MoleculeNetByName(name)
	if err != nil {
		return "", err
	}
	names := []string{name + ".csv", name + ".csv.gz"}
	if !slices.Contains(names, set.File) {
		names = append(names, set.File)
	}
	return find(dir, names...)
}

// OpenMoleculeNet reads a set of MoleculeNet from dir, where [FetchMoleculeNet]
// puts it. Molecules that cannot be read or have no category for one of their
// atoms are dropped, as in the literature, and reported in Molecules.Dropped. A
// label must be 0, 1 or empty.
//
// Scaffolds are those of the molecules as they are written in the file. Hu et al.
// first write those of bbbp, toxcast and clintox anew; since what RDKit takes for
// the scaffold of some double bonds depends on the spelling, 4, 5 and 2 molecules
// are in another part of the split then (RDKit 2022.09).
func OpenMoleculeNet(ctx context.Context, dir, name string) (*Molecules, error) {
	set, err := MoleculeNetByName(name)
	if err != nil {
		return nil, err
	}
	path, err := FindMoleculeNet(dir, name)
	if err != nil {
		return nil, err
	}
	return loadMolecules(ctx, path, set)
}

func loadMolecules(ctx context.Context, path string, set MoleculeNetSet) (*Molecules, error) {
	m := &Molecules{Name: set.Name}
	err := readCSV(ctx, path, func(c *csvRows) error { return m.read(ctx, c, set) })
	if err != nil {
		return nil, err
	}
	return m, nil
}

func (m *Molecules) read(ctx context.Context, c *csvRows, set MoleculeNetSet) error {
	smiles, labels, err := set.columns(c)
	if err != nil {
		return err
	}
	for _, l := range labels {
		m.Tasks = append(m.Tasks, c.header[l])
	}
	next := func() (row smilesRow, err error) {
		ok, err := c.next()
		if err != nil || !ok {
			return row, cmp.Or(err, io.EOF)
		}
		row.labels = make([]int8, len(labels))
		for k, l := range labels {
			if row.labels[k], ok = parseLabel(c.row[l]); !ok {
				return row, c.bad(l, fmt.Sprintf("label of %s; want 0, 1 or nothing", c.header[l]))
			}
		}
		row.smiles = strings.TrimSpace(c.row[smiles])
		row.line, _ = c.r.FieldPos(smiles)
		return row, nil
	}
	numbers := make(map[string]int)
	codes := graphCodes{Width: graph.AtomTypes * graph.ChiralityTags}
	err = parseSMILES(ctx, c.file, next, true, func(p *parsed) {
		if p.err != nil {
			m.Dropped = append(m.Dropped, p.err)
			return
		}
		n, ok := numbers[p.scaffold]
		if !ok {
			n = len(numbers)
			numbers[p.scaffold] = n
		}
		m.Scaffolds = append(m.Scaffolds, n)
		m.SMILES = append(m.SMILES, p.row.smiles)
		m.Labels = append(m.Labels, p.row.labels...)
		codes.append(p)
	})
	if err != nil {
		return err
	}
	if len(m.SMILES) == 0 {
		return unusable(c.file, m.Dropped)
	}
	m.Graphs, err = codes.decode()
	return err
}

// columns returns the positions of the SMILES and the labels.
func (s *MoleculeNetSet) columns(c *csvRows) (smiles int, labels []int, err error) {
	if smiles, err = position(c, s.SMILES); err != nil {
		return 0, nil, err
	}
	if err := c.distinct(); err != nil {
		return 0, nil, err
	}
	if s.Labels == nil {
		for i, h := range c.header {
			if i != smiles && !slices.Contains(s.Others, h) {
				labels = append(labels, i)
			}
		}
	}
	for _, name := range s.Labels {
		l, err := position(c, name)
		if err != nil {
			return 0, nil, err
		}
		labels = append(labels, l)
	}
	if len(labels) != s.Tasks {
		return 0, nil, &SyntaxError{File: c.file, Line: 1, Reason: fmt.Sprintf("%d columns of labels; %s has %d", len(labels), s.Name, s.Tasks)}
	}
	return smiles, labels, nil
}

// position returns the position of a column.
func position(c *csvRows, name string) (int, error) {
	i := slices.Index(c.header, name)
	if i < 0 {
		reason := fmt.Sprintf("no column %q", name)
		if len(c.header) == 1 && strings.ContainsAny(c.header[0], ";\t") {
			reason += "; columns are separated by commas"
		}
		return 0, &SyntaxError{c.file, 1, shorten(strings.Join(c.header, ",")), reason}
	}
	return i, nil
}

func parseLabel(s string) (int8, bool) {
	switch strings.TrimSpace(s) {
	case "":
		return 0, true
	case "0", "0.0":
		return -1, true
	case "1", "1.0":
		return 1, true
	}
	return 0, false
}

// DefaultMoleculeNetURL is the official home of the MoleculeNet files.
const DefaultMoleculeNetURL = "https://deepchemdata.s3-us-west-1.amazonaws.com/datasets"

// FetchMoleculeNet downloads a set of MoleculeNet to [MoleculeNetSet.Path] in the
// manner of [Fetch]: it resumes, retries, checks and records. opts.BaseURL defaults to
// [DefaultMoleculeNetURL]. What arrives must be a table with the set's columns.
func FetchMoleculeNet(ctx context.Context, name, dir string, opts FetchOptions) error {
	set, err := MoleculeNetByName(name)
	if err != nil {
		return err
	}
	if opts.BaseURL == "" {
		opts.BaseURL = DefaultMoleculeNetURL
	}
	return fetch(ctx, name, set.File, set.Path(dir), func(path string) error { return set.check(ctx, path, set.File) }, opts)
}

// VerifyMoleculeNet checks the table of a set that is in dir, as [Verify] checks an
// archive: instead of members, all rows are read.
func VerifyMoleculeNet(ctx context.Context, dir, name string) (Verification, error) {
	set, err := MoleculeNetByName(name)
	if err != nil {
		return Verification{}, err
	}
	path, err := FindMoleculeNet(dir, name)
	if err != nil {
		return Verification{}, err
	}
	return verifyFile(ctx, path, func(path string) error { return set.check(ctx, path, filepath.Base(path)) })
}

// check reads a table to its end. It is compressed if the name ends in .gz.
func (s *MoleculeNetSet) check(ctx context.Context, path, name string) error {
	f, _, err := openRegular(path)
	if err != nil {
		return err
	}
	defer f.Close()
	var r io.Reader = bufio.NewReader(cancelled{ctx, f})
	if isGzip(name) {
		if r, err = gzip.NewReader(r); err != nil {
			return err
		}
	}
	c := &csvRows{file: name, r: csv.NewReader(withoutMark(&limitedReader{r: r, left: Limits{}.withDefaults().FileBytes, file: name}))}
	ok, err := c.next()
	c.header = c.row
	if ok {
		_, _, err = s.columns(c)
	} else if err == nil {
		err = io.ErrUnexpectedEOF
	}
	for err == nil && ok {
		ok, err = c.next()
	}
	return err
}
