// Package datasets is the tool's subcommand that gets the data sets of the experiments and
// checks them.
//
//	specmatch datasets list   -data DIR
//	specmatch datasets fetch  -data DIR -dataset MUTAG,NCI1
//	specmatch datasets verify -data DIR
//	specmatch datasets stats  -data DIR
//	specmatch datasets export -dataset motifs -out DIR
//
// Without flags a command works on the synthetic set that needs no files. An interrupted
// download continues where it stopped.
package datasets

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/gnn/dataset/fetch"
	"github.com/specmatch/specmatch/gnn/dataset/moleculenet"
	"github.com/specmatch/specmatch/gnn/dataset/records"
	"github.com/specmatch/specmatch/specmatch/cli"
	"github.com/specmatch/specmatch/specmatch/run/progress"
	"github.com/specmatch/specmatch/specmatch/setting"
	"github.com/specmatch/specmatch/specmatch/table"
)

// Commands are list, fetch, verify, stats and export.
var Commands = cli.Commands{
	{
		Name:     "list",
		Setup:    setup(list),
		Examples: []string{"", "-data DIR"},
		Synopsis: "Lists the data sets of the paper and those in the -data folder: archives of the\n" +
			"TUDataset collection, and tables of MoleculeNet.",
	},
	{
		Name:  "fetch",
		Setup: setup(fetchAll),
		Examples: []string{
			"-data DIR -dataset MUTAG,PROTEINS", "-data DIR -dataset bbbp,hiv", "-data DIR",
		},
		Synopsis: "Downloads archives of the TUDataset collection to the -data folder, or tables of\n" +
			"MoleculeNet (bbbp, tox21, toxcast, sider, clintox, muv, hiv, bace). Without\n" +
			"-dataset it gets all sets that `list` knows (about 90 MB). What is there already\n" +
			"is only checked; what was interrupted continues.",
	},
	{
		Name:     "verify",
		Setup:    setup(verify),
		Examples: []string{"-data DIR", "-data DIR -dataset MUTAG"},
		Synopsis: "Checks archives and tables against their SHA-256 sums, where there are any:\n" +
			"NAME.zip.sha256, which fetch writes, or a SHA256SUMS beside the archive or one\n" +
			"folder up. Then reads them completely.",
	},
	{
		Name:     "stats",
		Setup:    setup(stats),
		Examples: []string{"", "-data DIR", "-data DIR -dataset MUTAG,DD", "-data DIR -dataset bbbp"},
		Synopsis: "Prints measured statistics beside the official ones. A set that disagrees with\n" +
			"them makes the command fail.",
	},
	{
		Name:  "export",
		Setup: setup(export),
		Examples: []string{
			"", "-data DIR -dataset MUTAG -out OTHER", "-data DIR -dataset lipo -column lipo -out OTHER",
		},
		Synopsis: "Writes data sets in TUDataset format, one folder each, as they are after loading:\n" +
			"without self-loops and repeated edges, edges in order. With -column the sets are\n" +
			"tables of molecules, DIR/name.csv[.gz], whose halves below and from the median of\n" +
			"that column become the classes, and elements the labels of nodes.",
	},
}

type call struct {
	data    cli.Data
	out     string
	column  string
	baseURL string

	stdout, stderr io.Writer
}

// Run is the program of these commands alone; without a command it lists.
func Run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	if len(args) == 0 ||
		strings.HasPrefix(args[0], "-") && !slices.Contains([]string{"-h", "-help", "--help"}, args[0]) {
		args = append([]string{"list"}, args...)
	}
	return Commands.Run(
		ctx,
		"datasets",
		"Gets the data sets of the experiments and checks them.\n"+
			"Without a command it lists, and without flags a command works on the synthetic set\n"+
			"that needs no files.",
		args,
		stdout,
		stderr,
	)
}

// setup returns what adds the flags of a command.
func setup(do func(ctx context.Context, c *call) error) func(f *cli.FlagSet) cli.Action {
	return func(f *cli.FlagSet) cli.Action {
		c := new(call)
		f.Add(&c.data)
		none := "every set of -data, or without that the synthetic one"
		switch f.Name()[strings.LastIndex(f.Name(), " ")+1:] {
		case "fetch":
			none = "every TUDataset of the paper, and AIDS"
			cli.Var(f, &c.baseURL, "url", setting.Text,
				"`URL` of the folder that holds NAME.zip, or the official files of MoleculeNet;\n"+
					"none is "+fetch.TUDatasetURL+"\nor "+fetch.MoleculeNetURL)
		case "export":
			c.out = "."
			cli.Var(f, &c.out, "out", setting.Text, "`DIR` that gets the folders DIR/NAME")
			cli.Var(f, &c.column, "column", setting.Text,
				"`name` of the column of numbers that makes the classes of molecules")
		}
		f.Lookup("dataset").Usage = "data sets `A,B`, spelled as TUDataset or MoleculeNet do, as in " +
			"MUTAG,NCI1;\n" +
			"none is " + none
		f.Lookup("data").Usage = "`DIR` with the data sets: DIR/NAME.zip, DIR/NAME/ or DIR/name.csv[.gz]"
		f.Check(func() error {
			for _, d := range c.data.Datasets {
				if d != embedded && c.data.Dir == "" {
					return cli.Usagef("-dataset %s needs -data: the folder that holds %s.zip or %[1]s/",
						d, d)
				}
			}
			return nil
		})
		return func(ctx context.Context, stdout, stderr io.Writer) error {
			c.stdout, c.stderr = stdout, stderr
			return do(ctx, c)
		}
	}
}

// embedded is the name of the set that needs no files.
const embedded = "motifs"

// names returns what to work on: the sets asked for, or else all of the folder,
// or else the embedded one.
func (c *call) names() ([]string, error) {
	if len(c.data.Datasets) > 0 {
		return c.data.Datasets, nil
	}
	if c.data.Dir == "" {
		return []string{embedded}, nil
	}
	names, err := fetch.List(c.data.Dir)
	if c.out != "" { // export
		names = slices.DeleteFunc(names, isTable)
	}
	if err == nil && len(names) == 0 {
		err = fmt.Errorf("%s: no data sets in this folder", c.data.Dir)
	}
	return names, err
}

// find returns the path of a set in the folder. If it is not there, the error wraps
// [fs.ErrNotExist].
func (c *call) find(name string) (string, error) {
	if c.data.Dir == "" {
		return "", fs.ErrNotExist
	}
	return fetch.Find(c.data.Dir, name)
}

// open reads a set from the folder, or the embedded one if that is asked for
// and the folder has no set of the name.
func (c *call) open(ctx context.Context, name string) (*dataset.Dataset, error) {
	if _, err := c.find(name); name == embedded && errors.Is(err, fs.ErrNotExist) {
		return dataset.Default(), nil
	}
	return records.Open(ctx, c.data.Dir, name, dataset.Options{NodeAttributes: true})
}

// each does something for every set, showing how far it has come. It goes on
// after a failure, and returns the number of failures as an error.
func (c *call) each(ctx context.Context, label string, do func(name string) error) error {
	names, err := c.names()
	if err != nil {
		return err
	}
	bar := progress.Start(c.stderr, progress.Options{Label: label, Unit: "set", Total: len(names)})
	defer bar.Stop()
	failed := 0
	for _, name := range names {
		if err := ctx.Err(); err != nil {
			return err
		}
		bar.Message("%s", name)
		if err := do(name); err != nil {
			fmt.Fprintf(bar, "%s: %v\n", name, err)
			failed++
		}
		bar.Add(1)
	}
	if failed > 0 {
		return fmt.Errorf("%s: %d of %d data sets failed", label, failed, len(names))
	}
	return nil
}

func list(_ context.Context, c *call) error {
	graphs := table.New("set", table.Names("graphs", "classes", "nodes", "edges", "where")...)
	graphs.Caption = "Data sets with their official statistics (nodes and edges are means), and where " +
		"they are."
	molecules := table.New("set", table.Names("molecules", "tasks", "where")...)
	molecules.Caption = "Sets of MoleculeNet, for transfer learning."
	s := dataset.Stats(dataset.Default())
	known := []dataset.Official{{
		Name:      embedded,
		Graphs:    s.Graphs,
		Classes:   s.Classes,
		MeanNodes: s.MeanNodes(),
		MeanEdges: s.MeanEdges(),
	}}
	known = append(known, dataset.Known()...)
	names, others := c.data.Datasets, []string(nil)
	if len(names) == 0 {
		var there []string
		if c.data.Dir != "" {
			entries, err := os.ReadDir(c.data.Dir)
			if err == nil {
				there, err = fetch.List(c.data.Dir)
			}
			if err != nil {
				return err
			}
			for _, e := range entries {
				if name := e.Name(); e.IsDir() && !slices.Contains(there, name) {
					others = append(others, fmt.Sprintf("%q", name))
				}
			}
		}
		for _, o := range known {
			names = append(names, o.Name)
		}
		for _, set := range moleculenet.Sets() {
			names = append(names, set.Name)
		}
		names = append(names, slices.DeleteFunc(there, func(name string) bool {
			return slices.Contains(names, name)
		})...)
	}
	for _, name := range names {
		where, err := c.find(name)
		switch {
		case err == nil:
		case !errors.Is(err, fs.ErrNotExist):
			return err
		case name == embedded:
			where = "built in"
		default:
			where = "-"
		}
		if set, err := moleculenet.ByName(name); err == nil {
			molecules.Add(name, integer(set.Rows), integer(set.Tasks), table.Text(where))
			continue
		}
		cells := slices.Repeat([]table.Cell{table.Text("?")}, 4)
		if i := slices.IndexFunc(
			known, func(o dataset.Official) bool { return o.Name == name },
		); i >= 0 {
			o := known[i]
			cells = []table.Cell{
				integer(o.Graphs), integer(o.Classes), table.Number(o.MeanNodes, 2),
				table.Number(o.MeanEdges, 2),
			}
		}
		graphs.Add(name, append(cells, table.Text(where))...)
	}
	if err := write(c.stdout, graphs, molecules); err != nil || others == nil {
		return err
	}
	_, err := fmt.Fprintf(
		c.stdout,
		"\nNo sets, as they have no file NAME_A.txt of their own name: the folders %s\n",
		strings.Join(others, ", "),
	)
	return err
}

func write(w io.Writer, tables ...*table.Table) error {
	between := ""
	for _, t := range tables {
		if t.Rows() == 0 {
			continue
		}
		io.WriteString(w, between)
		between = "\n"
		if err := t.WriteText(w); err != nil {
			return err
		}
	}
	return nil
}

func integer(n int) table.Cell { return table.Number(float64(n), 0) }

func fetchAll(ctx context.Context, c *call) error {
	if c.data.Dir == "" {
		return cli.Usagef("fetch needs -data: the folder to download to")
	}
	if len(c.data.Datasets) == 0 {
		for _, o := range dataset.Known() {
			c.data.Datasets = append(c.data.Datasets, o.Name)
		}
	}
	failed := 0
	for _, name := range c.data.Datasets {
		d := &download{label: name, w: c.stderr}
		before, _ := c.find(name)
		err := fetch.Dataset(ctx, c.data.Dir, name, fetch.Options{
			BaseURL:  c.baseURL,
			Progress: d.progress,
		})
		path, _ := c.find(name)
		d.stop()
		switch {
		case err != nil && ctx.Err() != nil:
			fmt.Fprintln(c.stderr, err) // says what is kept for the next time
			return err
		case err != nil:
			fmt.Fprintln(c.stderr, err)
			failed++
		case path == before:
			fmt.Fprintf(c.stdout, "%s: there already, and intact\n", path)
		default:
			fmt.Fprintf(c.stdout, "%s: fetched\n", path)
		}
	}
	if failed > 0 {
		return fmt.Errorf("fetch: %d of %d data sets failed", failed, len(c.data.Datasets))
	}
	return nil
}

// A download shows the progress of one file, in KiB. A server that does not
// say how large it is gets no bar.
type download struct {
	label string
	w     io.Writer
	bar   *progress.Bar
	shown int
}

func (d *download) progress(done, total int64) {
	if total < 0 {
		return
	}
	now, all := int(done>>10), int((total+1023)>>10)
	if d.bar == nil {
		d.bar = progress.Start(d.w, progress.Options{Label: d.label, Unit: "KiB", Total: all})
		d.bar.Skip(now) // of an earlier download
		d.shown = now
	}
	if done == total {
		now = all
	}
	d.bar.Add(now - d.shown) // negative when it starts again
	d.shown = now
}

func (d *download) stop() {
	if d.bar != nil {
		d.bar.Stop()
	}
}

func verify(ctx context.Context, c *call) error {
	t := table.New("set", table.Names("SHA-256", "compared with", "graphs", "result")...)
	err := c.each(ctx, "verify", func(name string) error {
		var v fetch.Verification
		var err error
		built := false
		if _, absent := c.find(name); name == embedded && errors.Is(absent, fs.ErrNotExist) {
			built, v.Graphs = true, len(dataset.Default().Graphs)
		} else {
			v, err = fetch.Verify(ctx, c.data.Dir, name)
		}
		sum, graphs, result := "-", "?", "FAILED"
		if v.Sum != "" {
			sum = v.Sum[:16] + "…"
		}
		if v.Graphs > 0 {
			graphs = fmt.Sprint(v.Graphs)
		}
		switch {
		case err != nil:
		case v.Source != "" || built:
			result = "ok"
		default:
			result = "readable"
			t.Footnotes = []string{"readable: complete and well-formed, but there is no sum to " +
				"compare with"}
		}
		t.Add(
			name,
			table.Text(sum),
			table.Text(cmp.Or(v.Source, "-")),
			table.Text(graphs),
			table.Text(result),
		)
		return err
	})
	return errors.Join(t.WriteText(c.stdout), err)
}

func stats(ctx context.Context, c *call) error {
	t := table.New("set", table.Names(
		"graphs", "classes", "nodes", "official", "edges", "official",
		"sizes", "node labels", "edge labels", "attributes", "isolated",
		"self-loops", "repeated", "copies", "contradictory",
	)...)
	t.Caption = "Measured statistics; nodes and edges are means, beside the official ones."
	t.Footnotes = []string{
		"edges: distinct undirected ones, self-loops of the files included, as the official table counts",
		"node labels: those that occur (width of their one-hot encoding)",
		"copies: graphs that repeat another one, but for the order of nodes and for attributes",
		"contradictory: groups of such graphs that have several classes",
	}
	molecules := table.New("set", table.Names(
		"rows", "official", "dropped", "atoms", "bonds",
		"sizes", "tasks", "yes", "no", "missing", "scaffolds",
	)...)
	molecules.Caption = "Measured statistics of molecules; atoms and bonds are means, yes, no and " +
		"missing count labels."
	err := c.each(ctx, "stats", func(name string) error {
		if set, err := moleculenet.ByName(name); err == nil {
			return addMolecules(ctx, molecules, c.data.Dir, set)
		}
		ds, err := c.open(ctx, name)
		if err != nil {
			return err
		}
		s := dataset.Stats(ds)
		copies, err := findCopies(ctx, ds)
		if err != nil {
			return err
		}
		officialNodes, officialEdges := table.Text("-"), table.Text("-")
		var wrong []string
		o, known := dataset.OfficialStats(name)
		if known {
			officialNodes, officialEdges = table.Number(o.MeanNodes, 2), table.Number(o.MeanEdges, 2)
			wrong = o.Disagreements(s)
		}
		title, err := compared(t, name, wrong)
		size := integer(s.Graphs)
		if s.Empty > 0 {
			size = table.Text(fmt.Sprintf("%d, and %d without nodes", s.Graphs, s.Empty))
		}
		t.Add(title, size, integer(s.Classes),
			table.Number(s.MeanNodes(), 2), officialNodes, table.Number(s.MeanEdges(), 2), officialEdges,
			table.Text(fmt.Sprintf("%d–%d", s.MinNodes, s.MaxNodes)),
			table.Text(nodeLabels(ds)), integer(ds.EdgeCategories()), integer(ds.NodeAttributes),
			integer(s.Isolated), integer(ds.SelfLoops), integer(ds.Duplicates),
			integer(copies.Graphs()), integer(copies.Conflicts(ds.Labels())))
		return err
	})
	return errors.Join(write(c.stdout, t, molecules), err)
}

// findCopies finds the graphs that are the same by their edges and labels.
func findCopies(ctx context.Context, ds *dataset.Dataset) (*dataset.Copies, error) {
	columns, err := ds.Columns()
	if err != nil {
		return nil, err
	}
	columns.Attributes = 0
	columns.Names = nil
	labelled, err := ds.WithColumns(columns)
	if err != nil {
		return nil, err
	}
	return dataset.FindCopies(ctx, labelled.Graphs)
}

// compared returns the name of a set in a table of statistics, with a mark and an error if
// something is wrong with them.
func compared(t *table.Table, name string, wrong []string) (string, error) {
	if len(wrong) == 0 {
		return name, nil
	}
	reasons := strings.Join(wrong, "; ")
	t.Footnotes = append(t.Footnotes, fmt.Sprintf("† %s disagrees: %s", name, reasons))
	return name + " †", fmt.Errorf("the statistics are not the official ones: %s", reasons)
}

func nodeLabels(ds *dataset.Dataset) string {
	var columns []string
	for _, c := range ds.NodeLabels {
		s := fmt.Sprint(c.Distinct)
		if c.Width != c.Distinct {
			s += fmt.Sprintf(" (%d)", c.Width)
		}
		columns = append(columns, s)
	}
	return cmp.Or(strings.Join(columns, " + "), "-")
}

func export(ctx context.Context, c *call) error {
	if err := os.MkdirAll(c.out, 0o777); err != nil {
		return err
	}
	return c.each(ctx, "export", func(name string) error {
		var ds *dataset.Dataset
		var err error
		switch {
		case c.column != "":
			ds, err = moleculenet.Halves(ctx, c.data.Dir, name, c.column)
		case isTable(name):
			return errors.New("a molecule has labels for several tasks, and the TUDataset format has " +
				"one class for a graph; name one -column")
		default:
			ds, err = c.open(ctx, name)
		}
		if err != nil {
			return err
		}
		if err := dataset.WriteTU(c.out, ds); err != nil {
			return err
		}
		_, err = fmt.Fprintln(c.stdout, filepath.Join(c.out, ds.Name))
		return err
	})
}

// isTable reports whether a set is one of MoleculeNet's, which are tables.
func isTable(name string) bool {
	_, err := moleculenet.ByName(name)
	return err == nil
}

// addMolecules measures a set. The molecules that are dropped are named in footnotes.
func addMolecules(ctx context.Context, t *table.Table, dir string, set moleculenet.Set) error {
	data, err := moleculenet.Open(ctx, dir, set.Name)
	if err != nil {
		return err
	}
	rows := len(data.Graphs) + len(data.Dropped)
	var wrong []string
	if rows != set.Rows {
		wrong = []string{fmt.Sprintf("%d rows, official %d", rows, set.Rows)}
	}
	title, err := compared(t, set.Name, wrong)
	labels := map[int8]int{}
	for _, l := range data.Labels {
		labels[l]++
	}
	scaffolds := len(slices.Compact(slices.Sorted(slices.Values(data.Scaffolds))))
	s := dataset.Stats(&dataset.Dataset{Graphs: data.Graphs, Classes: 1})
	t.Add(
		title, integer(rows), integer(set.Rows), integer(len(data.Dropped)),
		table.Number(s.MeanNodes(), 2), table.Number(s.MeanEdges(), 2),
		table.Text(fmt.Sprintf("%d–%d", s.MinNodes, s.MaxNodes)), integer(len(data.Tasks)),
		integer(labels[1]), integer(labels[-1]), integer(labels[0]), integer(scaffolds),
	)
	for _, d := range data.Dropped {
		t.Footnotes = append(t.Footnotes, fmt.Sprintf("dropped: %v", d))
	}
	return err
}
