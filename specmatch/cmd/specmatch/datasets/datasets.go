// Package datasets is the tool's subcommand that downloads and checks the data sets of the
// experiments.
//
//	specmatch datasets list   -data DIR
//	specmatch datasets fetch  -data DIR -dataset MUTAG,NCI1
//	specmatch datasets verify -data DIR
//	specmatch datasets stats  -data DIR
//	specmatch datasets export -dataset motifs -out DIR
//
// Without flags a command uses the built-in synthetic set. An interrupted download resumes.
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
			"TUDataset collection and tables of MoleculeNet.",
	},
	{
		Name:  "fetch",
		Setup: setup(fetchAll),
		Examples: []string{
			"-data DIR -dataset MUTAG,PROTEINS", "-data DIR -dataset bbbp,hiv", "-data DIR",
		},
		Synopsis: "Downloads archives of the TUDataset collection, or tables of MoleculeNet (bbbp,\n" +
			"tox21, toxcast, sider, clintox, muv, hiv, bace), to the -data folder. Without\n" +
			"-dataset it fetches the sets of the TUDataset collection that `list` shows by\n" +
			"default (about 90 MB). Existing files are only checked; interrupted downloads resume.",
	},
	{
		Name:     "verify",
		Setup:    setup(verify),
		Examples: []string{"-data DIR", "-data DIR -dataset MUTAG"},
		Synopsis: "Checks archives and tables against their SHA-256 sums, if they have any:\n" +
			"NAME.zip.sha256 from fetch, or SHA256SUMS in the same folder or the one above.\n" +
			"Then reads them completely.",
	},
	{
		Name:     "stats",
		Setup:    setup(stats),
		Examples: []string{"", "-data DIR", "-data DIR -dataset MUTAG,DD", "-data DIR -dataset bbbp"},
		Synopsis: "Prints measured statistics next to the official ones. Fails if a set disagrees\n" +
			"with them.",
	},
	{
		Name:  "export",
		Setup: setup(export),
		Examples: []string{
			"", "-data DIR -dataset MUTAG -out OTHER", "-data DIR -dataset lipo -column lipo -out OTHER",
		},
		Synopsis: "Writes data sets in TUDataset format, one folder each, as they are after loading:\n" +
			"edges sorted, without self-loops and repeated edges. Texts become numbers, which are\n" +
			"listed; weights of edges are refused. With -column, the sets are\n" +
			"tables of molecules, DIR/name.csv[.gz]: the two classes are below the median of\n" +
			"that column and from it on, and node labels are the elements.",
	},
}

type call struct {
	data    cli.Data
	out     string
	column  string
	baseURL string

	stdout, stderr io.Writer
}

// Run runs these commands as a program of their own; without a command it runs list.
func Run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	if len(args) == 0 ||
		strings.HasPrefix(args[0], "-") && !slices.Contains([]string{"-h", "-help", "--help"}, args[0]) {
		args = append([]string{"list"}, args...)
	}
	return Commands.Run(ctx, "datasets", "Downloads and checks the data sets of the experiments.\n"+
		"Without a command it lists them; without flags a command uses the built-in synthetic set.",
		args, stdout, stderr)
}

// setup returns a function that adds the flags of a command and returns its action.
func setup(do func(ctx context.Context, c *call) error) func(f *cli.FlagSet) cli.Action {
	return func(f *cli.FlagSet) cli.Action {
		c := new(call)
		f.Add(&c.data)
		none := "every set in the -data folder, or without -data the built-in synthetic one"
		switch f.Name()[strings.LastIndex(f.Name(), " ")+1:] {
		case "fetch":
			none = "the TUDataset sets of the paper, and AIDS"
			cli.Var(f, &c.baseURL, "url", setting.Text,
				"`URL` of the folder with NAME.zip or with the official MoleculeNet files;\n"+
					"the default is "+fetch.TUDatasetURL+"\nor "+fetch.MoleculeNetURL)
		case "export":
			c.out = "."
			cli.Var(f, &c.out, "out", setting.Text, "output folder `DIR`, for the folders DIR/NAME")
			cli.Var(f, &c.column, "column", setting.Text,
				"`name` of the numeric column whose median divides molecules into two classes")
		}
		f.Lookup("dataset").Usage = "data sets `A,B`: names of TUDataset or MoleculeNet, such as MUTAG,NCI1;\n" +
			"the default is " + none
		f.Lookup("data").Usage = "folder `DIR` with the data sets: DIR/NAME.zip, DIR/NAME/ or DIR/name.csv[.gz]"
		f.Check(func() error {
			for _, d := range c.data.Datasets {
				if d != embedded && c.data.Dir == "" {
					return cli.Usagef("-dataset %s needs -data: the folder with %s.zip or %[1]s/",
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

// names returns the sets to process: those of -dataset, or all in the folder, or the built-in one.
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
		err = fmt.Errorf("%s: this folder holds no data sets", c.data.Dir)
	}
	return names, err
}

// find returns the path of a set in the folder. If there is none, the error wraps [fs.ErrNotExist].
func (c *call) find(name string) (string, error) {
	if c.data.Dir == "" {
		return "", fs.ErrNotExist
	}
	return fetch.Find(c.data.Dir, name)
}

// open reads a set from the folder. If the folder lacks a set of that name, it returns the built-in one.
func (c *call) open(ctx context.Context, name string) (*dataset.Dataset, error) {
	if _, err := c.find(name); name == embedded && errors.Is(err, fs.ErrNotExist) {
		return dataset.Default(), nil
	}
	return records.Open(ctx, c.data.Dir, name, dataset.Options{NodeAttributes: true})
}

// each calls do for every set and shows progress. It continues after a failure, and returns an
// error with the number of failures.
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
	graphs := table.New("set", table.Names("graphs", "classes", "nodes", "edges", "path")...)
	graphs.Caption = "Data sets with their official statistics (nodes and edges are means) and paths."
	molecules := table.New("set", table.Names("molecules", "tasks", "path")...)
	molecules.Caption = "MoleculeNet data sets, for transfer learning."
	official := officialStats()
	names := c.data.Datasets
	var foreign []string // folders that hold no data set
	if len(names) == 0 {
		found, skipped, err := c.listFolder()
		if err != nil {
			return err
		}
		foreign = skipped
		for _, o := range official {
			names = append(names, o.Name)
		}
		for _, set := range moleculenet.Sets() {
			names = append(names, set.Name)
		}
		for _, name := range found {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	for _, name := range names {
		path, err := c.find(name)
		switch {
		case err == nil:
		case !errors.Is(err, fs.ErrNotExist):
			return err
		case name == embedded:
			path = "built in"
		default:
			path = "-"
		}
		if set, err := moleculenet.ByName(name); err == nil {
			molecules.Add(name, integer(set.Rows), integer(set.Tasks), table.Text(path))
			continue
		}
		cells := slices.Repeat([]table.Cell{table.Text("?")}, 4)
		for _, o := range official {
			if o.Name == name {
				cells = []table.Cell{
					integer(o.Graphs), integer(o.Classes), table.Number(o.MeanNodes, 2),
					table.Number(o.MeanEdges, 2),
				}
			}
		}
		graphs.Add(name, append(cells, table.Text(path))...)
	}
	if err := write(c.stdout, graphs, molecules); err != nil || foreign == nil {
		return err
	}
	_, err := fmt.Fprintf(c.stdout, "\nskipped folders, which hold no data set (NAME/NAME_A.txt): %s\n",
		strings.Join(foreign, ", "))
	return err
}

// officialStats returns the official statistics of the paper's sets, after the built-in one's.
func officialStats() []dataset.Official {
	s := dataset.Stats(dataset.Default())
	builtin := dataset.Official{
		Name:      embedded,
		Graphs:    s.Graphs,
		Classes:   s.Classes,
		MeanNodes: s.MeanNodes(),
		MeanEdges: s.MeanEdges(),
	}
	return append([]dataset.Official{builtin}, dataset.Known()...)
}

// listFolder returns the names of the sets in the folder, and its other folders, quoted.
func (c *call) listFolder() (sets, foreign []string, err error) {
	if c.data.Dir == "" {
		return nil, nil, nil
	}
	entries, err := os.ReadDir(c.data.Dir)
	if err == nil {
		sets, err = fetch.List(c.data.Dir)
	}
	for _, e := range entries {
		if name := e.Name(); e.IsDir() && !slices.Contains(sets, name) {
			foreign = append(foreign, fmt.Sprintf("%q", name))
		}
	}
	return sets, foreign, err
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
			fmt.Fprintln(c.stderr, err) // says what is kept for a resumed download
			return err
		case err != nil:
			fmt.Fprintln(c.stderr, err)
			failed++
		case path == before:
			fmt.Fprintf(c.stdout, "%s: already there and intact\n", path)
		default:
			fmt.Fprintf(c.stdout, "%s: fetched\n", path)
		}
	}
	if failed > 0 {
		return fmt.Errorf("fetch: %d of %d data sets failed", failed, len(c.data.Datasets))
	}
	return nil
}

// download shows the progress of one file, in KiB. There is no bar if the server does not send the size.
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
	count := int(done >> 10)
	size := int((total + 1023) >> 10)
	if d.bar == nil {
		d.bar = progress.Start(d.w, progress.Options{Label: d.label, Unit: "KiB", Total: size})
		d.bar.Skip(count) // from an earlier download
		d.shown = count
	}
	if done == total {
		count = size
	}
	d.bar.Add(count - d.shown) // negative when the download restarts
	d.shown = count
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
			t.Footnotes = []string{"readable: complete and well-formed, but without a sum to check"}
		}
		t.Add(name, table.Text(sum), table.Text(cmp.Or(v.Source, "-")), table.Text(graphs), table.Text(result))
		return err
	})
	return errors.Join(t.WriteText(c.stdout), err)
}

func stats(ctx context.Context, c *call) error {
	t := table.New("set", table.Names(
		"graphs", "classes", "nodes", "official", "edges", "official",
		"sizes", "node labels", "edge labels", "attributes", "isolated",
		"self-loops", "repeated", "copies", "edge labels too", "contradictory", "twins, %",
	)...)
	t.Caption = "Measured statistics; nodes and edges are means, next to the official ones."
	t.Footnotes = []string{
		"edges: distinct undirected edges, including self-loops in the files, as in the official table",
		"node labels: number of distinct labels (width of their one-hot encoding)",
		"copies: graphs that repeat an earlier one: equal edges and node labels in some order of the nodes; " +
			"next to it, " +
			"those with equal labels or weights of edges, too",
		"contradictory: groups of copies, whatever their edge labels, with several classes",
		fmt.Sprintf("twins: test graphs with a copy in the training part; stratified %d-fold cross-validation, "+
			"mean over seeds 0 to %d", folds, seeds-1),
	}
	molecules := table.New("set", table.Names(
		"rows", "official", "dropped", "atoms", "bonds",
		"sizes", "tasks", "yes", "no", "missing", "scaffolds",
	)...)
	molecules.Caption = "Measured statistics of molecules; atoms and bonds are means; yes, no and missing count labels."
	err := c.each(ctx, "stats", func(name string) error {
		if set, err := moleculenet.ByName(name); err == nil {
			return addMolecules(ctx, molecules, c.data.Dir, set)
		}
		ds, err := c.open(ctx, name)
		if err != nil {
			return err
		}
		s := dataset.Stats(ds)
		copies, exact, err := findCopies(ctx, ds)
		if err != nil {
			return err
		}
		officialNodes, officialEdges := table.Text("-"), table.Text("-")
		var wrong []string
		if o, ok := dataset.OfficialStats(name); ok {
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
			integer(copies.Graphs()), integer(exact.Graphs()), integer(copies.Conflicts(ds.Labels())),
			twins(copies, ds.Labels()))
		return err
	})
	return errors.Join(write(c.stdout, t, molecules), err)
}

// findCopies finds graphs with equal edges and node labels, and among them those with equal labels
// or weights of edges.
func findCopies(ctx context.Context, ds *dataset.Dataset) (copies, exact *dataset.Copies, err error) {
	columns, err := ds.Columns()
	if err != nil {
		return nil, nil, err
	}
	columns.Attributes = 0
	columns.Names = nil
	labelled, err := ds.WithColumns(columns)
	if err != nil {
		return nil, nil, err
	}
	copies, err = dataset.FindCopies(ctx, dataset.WithoutEdgeLabels(labelled.Graphs))
	if err != nil || len(ds.EdgeLabels) == 0 && ds.Edges == nil {
		return copies, copies, err
	}
	exact, err = dataset.FindCopies(ctx, labelled.Graphs)
	return copies, exact, err
}

// The cross-validation of the unsupervised experiments.
const (
	folds = 10
	seeds = 10
)

// twins returns a cell with the part of test graphs that have a copy in the training part, in %.
func twins(copies *dataset.Copies, labels []int) table.Cell {
	shared := 0
	for seed := range seeds {
		outer, err := dataset.StratifiedKFold(labels, folds, true, uint32(seed))
		if err != nil {
			return table.Text("-") // fewer graphs than folds
		}
		shared += copies.CountShared(outer)
	}
	return table.Number(100*float64(shared)/float64(seeds*len(labels)), 1)
}

// compared returns the name of a set for a table of statistics. If they disagree with the official
// ones, the name has a mark, and it adds a footnote and returns an error.
func compared(t *table.Table, name string, wrong []string) (string, error) {
	if len(wrong) == 0 {
		return name, nil
	}
	reasons := strings.Join(wrong, "; ")
	t.Footnotes = append(t.Footnotes, fmt.Sprintf("† %s disagrees: %s", name, reasons))
	return name + " †", fmt.Errorf("the statistics disagree with the official ones: %s", reasons)
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
	var texts []string
	err := c.each(ctx, "export", func(name string) error {
		var ds *dataset.Dataset
		var err error
		switch {
		case c.column != "":
			ds, err = moleculenet.Halves(ctx, c.data.Dir, name, c.column)
		case isTable(name):
			return errors.New("the molecules have several tasks, but TUDataset allows one class per graph; " +
				"give one -column")
		default:
			ds, err = c.open(ctx, name)
		}
		if err != nil {
			return err
		}
		if err := dataset.WriteTU(c.out, ds); err != nil {
			return err
		}
		texts = append(texts, numberedTexts(ds)...)
		_, err = fmt.Fprintln(c.stdout, filepath.Join(c.out, ds.Name))
		return err
	})
	for _, line := range texts {
		fmt.Fprintln(c.stderr, line)
	}
	return err
}

// numberedTexts says which number stands for which text in the files of an exported set.
func numberedTexts(ds *dataset.Dataset) (lines []string) {
	add := func(part string, texts []string) {
		var pairs []string
		for number, text := range texts {
			pairs = append(pairs, fmt.Sprintf("%d is %q", number, text))
		}
		if pairs != nil {
			lines = append(lines, fmt.Sprintf("%s_%s.txt: %s", ds.Name, part, strings.Join(pairs, ", ")))
		}
	}
	add("graph_labels", ds.ClassNames)
	for _, c := range ds.NodeLabels {
		add("node_labels", c.Names)
	}
	for _, c := range ds.EdgeLabels {
		add("edge_labels", c.Names)
	}
	return lines
}

// isTable reports whether a set is from MoleculeNet, whose sets are tables.
func isTable(name string) bool {
	_, err := moleculenet.ByName(name)
	return err == nil
}

// addMolecules adds the statistics of a set to a table, and a footnote for each dropped molecule.
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
