// Package moleculenet knows the sets of molecules of the MoleculeNet benchmark.
//
// # References
//
// Z. Wu et al., MoleculeNet: a benchmark for molecular machine learning, Chemical
// Science 2018. Splits and labels are those of W. Hu et al., Strategies for pre-training
// graph neural networks, ICLR 2020.
package moleculenet

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/gnn/dataset/internal/textfile"
	"github.com/specmatch/specmatch/gnn/dataset/records"
	"github.com/specmatch/specmatch/gnn/graph"
)

// Data is a set of molecules with labels for several tasks.
type Data struct {
	// Graphs are the molecules in the order of the file, as [molecule.Molecule.Graph]
	// makes them; Class is 0.
	Graphs []*graph.Graph
	SMILES []string // of the molecules
	// Tasks are the names of the label columns.
	Tasks []string
	// Labels is the row-major matrix [molecules×tasks] of labels: 1 for yes, -1 for no
	// and 0 if missing.
	Labels []int8
	// Scaffolds[i] identifies the Bemis–Murcko scaffold with chirality of molecule i.
	Scaffolds []string
	// Dropped are the rows whose molecule could not be used, with the reasons.
	Dropped []*dataset.SyntaxError
}

// Set describes a set of the benchmark.
type Set struct {
	Name   string // such as "tox21"
	File   string // name of the official file
	SMILES string // name of the column of SMILES
	// Labels are the columns of labels; if nil, all but Others and the SMILES.
	Labels []string
	Others []string
	Tasks  int // number of label columns
	Rows   int // number of molecules in the official file
}

// sets are the sets that Hu et al. fine-tune on, in the order of their table.
var sets = []Set{
	{
		Name:   "bbbp",
		File:   "BBBP.csv",
		SMILES: "smiles",
		Labels: []string{"p_np"},
		Tasks:  1,
		Rows:   2050,
	},
	{
		Name:   "tox21",
		File:   "tox21.csv.gz",
		SMILES: "smiles",
		Others: []string{"mol_id"},
		Tasks:  12,
		Rows:   7831,
	},
	{
		Name:   "toxcast",
		File:   "toxcast_data.csv.gz",
		SMILES: "smiles",
		Tasks:  617,
		Rows:   8576,
	},
	{
		Name:   "sider",
		File:   "sider.csv.gz",
		SMILES: "smiles",
		Tasks:  27,
		Rows:   1427,
	},
	{
		Name:   "clintox",
		File:   "clintox.csv.gz",
		SMILES: "smiles",
		Labels: []string{"FDA_APPROVED", "CT_TOX"},
		Tasks:  2,
		Rows:   1484,
	},
	{
		Name:   "muv",
		File:   "muv.csv.gz",
		SMILES: "smiles",
		Others: []string{"mol_id"},
		Tasks:  17,
		Rows:   93087,
	},
	{
		Name:   "hiv",
		File:   "HIV.csv",
		SMILES: "smiles",
		Labels: []string{"HIV_active"},
		Tasks:  1,
		Rows:   41127,
	},
	{
		Name:   "bace",
		File:   "bace.csv",
		SMILES: "mol",
		Labels: []string{"Class"},
		Tasks:  1,
		Rows:   1513,
	},
}

// Sets returns the sets that [Open] knows, in the order of the literature's tables.
func Sets() []Set { return slices.Clone(sets) }

// ByName returns the description of a set.
func ByName(name string) (Set, error) {
	var names []string
	for _, s := range sets {
		if s.Name == name {
			return s, nil
		}
		names = append(names, s.Name)
	}
	return Set{}, fmt.Errorf("dataset: no MoleculeNet set %q; there are %s",
		name, strings.Join(names, ", "))
}

// regression lists, for MoleculeNet's sets with one regression target, which are no [Set],
// the columns that may have it: that of the official file and those of others.
var regression = map[string][]string{
	"esol":     {"measured log solubility in mols per litre", "logp", "logS"},
	"freesolv": {"expt", "freesolv"},
	"lipo":     {"exp", "lipo"},
}

// Columns returns the columns of SMILES and of targets in the table of a set of
// MoleculeNet, by the table's name and header: one of [Sets], or esol, freesolv or lipo,
// which have a regression target. It returns an error for other names and for missing
// columns.
func Columns(ctx context.Context, path string) (smiles string, targets []string, err error) {
	name, _, _ := strings.Cut(filepath.Base(path), ".")
	set, err := ByName(name)
	columns, ok := regression[name]
	if err != nil && !ok {
		return "", nil, err
	}
	err = textfile.ReadRows(ctx, path, nil, func(rows *textfile.Rows) (err error) {
		if ok {
			set = Set{
				Name:   name,
				SMILES: "smiles",
				Tasks:  1,
				Labels: columns[:1], // which the error names if there is none
			}
			exists := func(name string) bool { return slices.Contains(rows.Header, name) }
			if i := slices.IndexFunc(columns, exists); i >= 0 {
				set.Labels = columns[i : i+1]
			}
		}
		targets, err = set.tasks(rows)
		return err
	}, nil)
	if err != nil {
		return "", nil, err
	}
	return set.SMILES, targets, nil
}

// tasks returns the names of the columns of labels. It returns an error if a column of the
// set is missing.
func (s *Set) tasks(rows *textfile.Rows) ([]string, error) {
	tasks := s.Labels
	for _, name := range append([]string{s.SMILES}, tasks...) {
		if _, err := rows.Column(name); err != nil {
			return nil, err
		}
	}
	if tasks == nil {
		if err := rows.Distinct(); err != nil {
			return nil, err
		}
		for _, h := range rows.Header {
			if h != s.SMILES && !slices.Contains(s.Others, h) {
				tasks = append(tasks, h)
			}
		}
	}
	if len(tasks) != s.Tasks {
		return nil, rows.BadHeader("", fmt.Sprintf("%d columns of labels; %s has %d",
			len(tasks), s.Name, s.Tasks))
	}
	return tasks, nil
}

// Path returns the path to which package fetch downloads the set: dir/NAME.csv or, if the
// official file is compressed, dir/NAME.csv.gz.
func (s Set) Path(dir string) string {
	return filepath.Join(dir, s.Name+s.File[strings.IndexByte(s.File, '.'):])
}

// Find returns the path of a set in dir: the first of NAME.csv, NAME.csv.gz and the
// official name that exists. If none does, the error wraps [fs.ErrNotExist].
func Find(dir, name string) (string, error) {
	set, err := ByName(name)
	if err != nil {
		return "", err
	}
	names := []string{name + ".csv", name + ".csv.gz"}
	if !slices.Contains(names, set.File) {
		names = append(names, set.File)
	}
	return textfile.Find(dir, names...)
}

// Open reads a set of MoleculeNet from dir. Molecules that cannot be read or have no
// category for one of their atoms are dropped, as in the literature, and reported in
// Data.Dropped. A label must be 0, 1 or empty.
//
// Scaffolds are those of the SMILES in the file. Hu et al. first rewrite the SMILES of
// bbbp, toxcast and clintox. Since RDKit's scaffold of some double bonds depends on the
// spelling, 4, 5 and 2 molecules move to another part of the split (RDKit 2022.09).
func Open(ctx context.Context, dir, name string) (*Data, error) {
	set, err := ByName(name)
	if err != nil {
		return nil, err
	}
	path, err := Find(dir, name)
	if err != nil {
		return nil, err
	}
	d := new(Data)
	err = textfile.ReadRows(ctx, path, nil, func(rows *textfile.Rows) (err error) {
		d.Tasks, err = set.tasks(rows)
		return err
	}, nil)
	if err != nil {
		return nil, err
	}
	o := records.Options{
		Format:    records.CSV,
		SMILES:    set.SMILES,
		Fields:    d.Tasks,
		Scaffolds: true,
		Hu2020:    true,
	}
	err = records.Read(ctx, path, o, func(r *records.Record) error {
		if len(r.Fields) == 0 { // the row is damaged
			return r.Err
		}
		for k, text := range r.Fields {
			l, ok := labels[strings.TrimSpace(text)]
			if !ok {
				return &dataset.SyntaxError{
					File:   path,
					Line:   r.Line,
					Value:  textfile.Shorten(text),
					Reason: fmt.Sprintf("label of %s; want 0, 1 or nothing", d.Tasks[k]),
				}
			}
			if r.Err == nil {
				d.Labels = append(d.Labels, l)
			}
		}
		if r.Err != nil {
			d.Dropped = append(d.Dropped, r.Err)
			return nil
		}
		d.Graphs = append(d.Graphs, r.Graph)
		d.SMILES = append(d.SMILES, r.SMILES)
		d.Scaffolds = append(d.Scaffolds, r.Scaffold)
		return nil
	})
	return d.some(path, err)
}

// some returns the data, unless there was an error or no molecule can be used.
func (d *Data) some(path string, err error) (*Data, error) {
	switch {
	case err != nil:
		return nil, err
	case len(d.Graphs) > 0:
		return d, nil
	case len(d.Dropped) > 0:
		return nil, fmt.Errorf("dataset: %s: no molecule of it can be used, such as %w",
			path, d.Dropped[0])
	}
	return nil, fmt.Errorf("dataset: %s: there is no molecule in it", path)
}

// Corpus reads molecules without labels, for pre-training: any file of package records or,
// if its name tells no format, one SMILES a line. Molecules that cannot be used are dropped,
// as by [Open]. It calls progress with the number of rows read from time to time.
func Corpus(ctx context.Context, path string, progress func(rows int)) (*Data, error) {
	o := records.Options{Want: records.Molecules}
	if _, err := records.FormatOf(path); err != nil {
		o.Format = records.SMI
	}
	d := new(Data)
	rows := 0
	err := records.Read(ctx, path, o, func(r *records.Record) error {
		rows++
		if rows%1024 == 0 {
			progress(rows)
		}
		if r.Err != nil {
			d.Dropped = append(d.Dropped, r.Err)
		} else {
			d.Graphs = append(d.Graphs, r.Graph)
			d.SMILES = append(d.SMILES, r.SMILES)
		}
		return nil
	})
	return d.some(path, err)
}

// labels maps the texts of a table to labels.
var labels = map[string]int8{
	"":    0,
	"0":   -1,
	"0.0": -1,
	"1":   1,
	"1.0": 1,
}

// Check reads a table of the set to its end. It returns an error unless the table has the
// set's columns and complete rows. name appears in errors; if it ends in .gz, the file at
// path must be compressed.
func (s Set) Check(ctx context.Context, path, name string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	header := func(rows *textfile.Rows) error {
		_, err := s.tasks(rows)
		return err
	}
	return textfile.ReadRows(ctx, name, f, header, func(*textfile.Rows) error { return nil })
}
