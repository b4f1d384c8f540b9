// Package records reads users' own files of molecules and graphs, record by record.
//
// [Read] streams the records of a file, and [ReadAll] holds all of them. The name tells
// the format; .gz may follow:
//
//   - .csv with a header, of molecules: a column of SMILES, and any other columns, of
//     which one may be the ID and others targets.
//   - .csv with the columns graph, source and target: an edge a row, undirected. Nodes
//     have any names. A row without a target describes a node, before its edges: its
//     whole-numbered label in the column label, and its attributes in the
//     columns that Options.Attributes names, or whose name begins with "attribute". Rows of a graph stand together.
//   - .smi or .txt: a SMILES a line, which a blank and a name may follow.
//   - .sdf, .sd or .mol: molfiles, V2000 or V3000, of which each may have properties and ends
//     with a line $$$$. The ID and the fields are properties; "_Name" is the title line.
//   - .jsonl or .ndjson: a graph a line, as in
//     {"id": "g1", "nodes": 3, "edges": [[0, 1], [1, 2]], "labels": [6, 6, 8], "y": 0.5}.
//     Nodes are numbered from 0. "edges" are undirected unless "directed" is true;
//     "labels" are whole numbers, and "attributes" a list of numbers for each node.
//     "nodes" may be left out where there are either. Other keys may be an ID or
//     targets.
//     A graph as networkx.node_link_data writes it, with "links" or "edges", does as well.
//   - .graphml: one graph or more, as networkx.write_graphml writes one. Nodes may have a key "label", a
//     whole number, and keys that are attributes, as the columns of a table of edges. Fields are the keys of graphs,
//     and "id". Keys stand before the first graph.
//   - .zip or a folder: a set in TUDataset's format, with its attributes. The fields are "class", or
//     "class1", "class2" … where graphs have several labels, and "attribute" or "attribute1" … for numbers of regression.
//
// A record that cannot be used is reported with its line and the reason, and the next
// one is read. A row of a table of edges that is damaged as such spoils the graphs to which it may
// belong. XML that is damaged ends the file.
//
// A format is a value in one table and a file of this package, which takes the text
// apart into records. What is the same for all is done once, in [Read]: records are
// numbered and skipped, their graphs are built on all processors, and they come in the
// order of the file.
package records

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/gnn/dataset/internal/textfile"
	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/gnn/molecule"
	"github.com/specmatch/specmatch/gnn/molecule/feature"
)

// Record is an item of a file: a graph and what stands beside it.
type Record struct {
	Number int      // of the record, from 1
	Line   int      // where it begins; of a set in TUDataset's format, Number
	ID     string   // the field that Options.ID names, otherwise Number
	Fields []string // those that Options.Fields names; empty where one is missing
	// Graph is nil if the record cannot be used. Err says why.
	Graph    *graph.Graph
	SMILES   string // of a molecule; of one in an SD file by [ReadAll] only
	Scaffold string // of a molecule, if Options.Scaffolds asks for it
	// Identity is the same for the same molecule, however it is written, and 0 for graphs, if
	// Options.Identities asks for it.
	Identity [16]byte
	Err      *dataset.SyntaxError

	body body // until the graph is built
	size int  // of the body, in bytes or numbers

	loops, repeats int // edges that the graph lacks
}

// A body is what a record's graph is built from. An error that is no
// [*dataset.SyntaxError] is the reason in one.
type body interface {
	build(w *worker, rec *Record) (*graph.Graph, error)
}

// Content is what the records of a file are.
type Content string

// The contents.
const (
	Molecules Content = "molecules"
	Graphs    Content = "graphs"
)

// Options say how a file is read. The zero value reads whatever the name of the file
// tells.
type Options struct {
	// Format is one of [Formats]; "" goes by the name.
	Format string
	// Input, if set, is read in place of the file, whose name then stands in errors
	// alone. The file "-" needs it.
	Input io.Reader
	// Want makes a file of other content an error. "" takes both.
	Want Content
	// SMILES is the column of molecules; "" is "smiles", in upper or lower case, or else the
	// only column whose name contains that, such as canonical_smiles.
	SMILES string
	// ID and Fields are columns of a table, properties in an SD file, keys of a JSON object, or
	// what graphs of a set in TUDataset's format have.
	ID     string
	Fields []string
	// Scaffolds and Identities ask for those of molecules.
	Scaffolds, Identities bool
	// Vector, if set, makes the function, one for each goroutine, that computes the numbers of
	// a molecule in Graph.Globals.
	Vector func() func(*molecule.Molecule) []float32
	// Hu2020 takes the molecules that Hu et al. take: valences as RDKit 2022.09 allows them,
	// and no wildcards.
	Hu2020 bool
	// Atoms names the categories that molecules get, see [feature.ByName], and Standard is
	// what is done to them before.
	Atoms    string
	Standard feature.Standardisation
	// Columns are the features that graphs get. Without them, [Read] gives a graph
	// those of its own attributes and labels, and [ReadAll] those of all graphs.
	Columns *graph.Columns
	// Attributes are the columns of a table of edges that are attributes of nodes. Without
	// them it is those of Columns.Names, or else those whose name begins with "attribute".
	Attributes []string
	// Ignore are columns and keys that are left out though their names sound like parts of a
	// graph, such as weight.
	Ignore []string
	// Reading, if set, is filled with what is used of the file.
	Reading *Reading
	// Skip is how many records are passed over.
	Skip int

	table *Table // of [ReadAll], which gets the content and the set of the file
}

// The formats.
const (
	CSV     = "csv"     // a table with a header: of molecules, or of edges
	SMI     = "smi"     // a SMILES a line, which a name may follow
	SDF     = "sdf"     // molfiles with properties
	JSONL   = "jsonl"   // a graph a line, as a JSON object
	GraphML = "graphml" // graphs in XML
	TU      = "tu"      // TUDataset's archive or folder
)

// A format is a way to write records into a file.
type format struct {
	name    string
	endings []string // of files
	// open returns the function that gives the records one by one, and io.EOF at the
	// end. A record that cannot be read has an Err, others a body.
	open func(r *reader) (next func() (*Record, error), err error)
}

var formats = []format{
	{CSV, []string{".csv", ".tsv"}, (*reader).openCSV},
	{SMI, []string{".smi", ".txt"}, (*reader).openSMI},
	{SDF, []string{".sdf", ".sd", ".mol"}, (*reader).openSDF},
	{JSONL, []string{".jsonl", ".ndjson"}, (*reader).openJSONL},
	{GraphML, []string{".graphml"}, (*reader).openGraphML},
	{TU, []string{".zip"}, (*reader).openTU},
}

// Formats lists them.
var Formats = []string{CSV, SMI, SDF, JSONL, GraphML, TU}

// others are formats that are not read, by their endings, with what to do.
var others = map[string]string{
	".gexf":   "GEXF",
	".gml":    "GML",
	".net":    "Pajek's format",
	".dot":    "DOT",
	".graph6": "graph6",
	".g6":     "graph6",
	".xlsx":   "Excel",
	".xls":    "Excel",
	".json":   "JSON",
	".pkl":    "a pickle",
	".pickle": "a pickle",
	".pt":     "a pickle of PyTorch",
	".tar":    "a tar archive",
	".tgz":    "a tar archive",
	".bz2":    "bzip2",
	".xz":     "xz",
	".mol2":   "MOL2",
	".inchi":  "InChI",
}

// FormatOf returns the format of a file by its name: .csv, .smi, .txt, .sdf, .jsonl or
// .ndjson and the like, each of which .gz may follow, .zip, or a folder.
func FormatOf(path string) (string, error) {
	if name := formatByName(path); name != "" {
		return name, nil
	}
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return "", fmt.Errorf("dataset: %w", err)
	case info.IsDir():
		return TU, nil
	}
	if language, ok := others[strings.ToLower(filepath.Ext(path))]; ok {
		remedy := "write it as .csv or .jsonl"
		switch language {
		case "GEXF", "GML", "Pajek's format", "DOT", "graph6", "JSON":
			remedy = "write it as .graphml, in Python by networkx.write_graphml, or a graph a line into a " +
				".jsonl, by json.dumps(networkx.node_link_data(g))"
		case "MOL2", "InChI":
			remedy = "write a SMILES a line into a .smi, in Python by rdkit.Chem.MolToSmiles(m)"
		case "bzip2", "xz", "a tar archive":
			remedy = "unpack it, or pack it by gzip or zstd"
		}
		return "", fmt.Errorf("dataset: %s: is %s by its name, which is not read: %s", path, language, remedy)
	}
	return "", fmt.Errorf(
		"dataset: %s: the name does not tell the format; want .csv, .smi, .sdf, .jsonl, .graphml, each "+
			"with .gz or without, .zip or a folder",
		path,
	)
}

// formatByName returns the format that the ending of a name stands for, "" if none.
func formatByName(path string) string {
	ending := filepath.Ext(strings.TrimSuffix(strings.TrimSuffix(strings.ToLower(path), ".gz"), ".zst"))
	for _, f := range formats {
		if slices.Contains(f.endings, ending) {
			return f.name
		}
	}
	return ""
}

// Read calls emit with the records of a file, in their order. It streams: memory does
// not grow with the file, unless it is in TUDataset's format. A record that cannot be
// read has an Err and does not end the reading; an error of emit does.
func Read(ctx context.Context, path string, o Options, emit func(*Record) error) error {
	name := o.Format
	if name == "" {
		var err error
		name, err = FormatOf(path)
		if err != nil {
			return err
		}
	}
	index := slices.IndexFunc(formats, func(f format) bool { return f.name == name })
	if index < 0 {
		return fmt.Errorf("dataset: %q is not a format of records; want one of %s",
			name, strings.Join(Formats, ", "))
	}
	if o.Columns != nil {
		if err := o.Columns.Check(); err != nil {
			return err
		}
	}
	categories, err := feature.ByName(o.Atoms)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r := &reader{
		ctx:        ctx,
		file:       path,
		o:          o,
		reading:    new(Reading),
		categories: categories,
	}
	r.notes.unused = map[string]bool{}
	if o.Reading != nil {
		r.reading = o.Reading
	}
	*r.reading = Reading{ID: o.ID, Fields: o.Fields}
	next, err := formats[index].open(r)
	if r.text != nil {
		defer r.text.Close()
	}
	if err != nil {
		return err
	}
	if o.table != nil {
		o.table.Content = r.content
		o.table.Set = r.set
	}
	defer func() { r.notes.into(r.reading) }()
	err = r.stream(next, func(rec *Record) {
		r.reading.Records++
		r.reading.SelfLoops += rec.loops
		r.reading.Repeats += rec.repeats
		if rec.Err != nil {
			r.reading.Rejected++
		}
		if err := emit(rec); err != nil {
			cancel(err)
		}
	})
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

type reader struct {
	ctx  context.Context
	file string
	o    Options

	text    *textfile.Text   // if the format is one of text
	set     *dataset.Dataset // if it is TUDataset's
	content Content
	number  int // of the last record
	reading *Reading
	notes   notes

	categories *feature.Set // of molecules
}

// is notes the content, and returns an error unless it is wanted.
func (r *reader) is(c Content) error {
	r.content = c
	r.reading.Content = c
	if c == Graphs && r.o.SMILES != "" {
		return fmt.Errorf("dataset: %s: has graphs, and so no column of SMILES, such as %q",
			r.file, r.o.SMILES)
	}
	if c == Graphs && r.o.Standard != (feature.Standardisation{}) {
		return fmt.Errorf("dataset: %s: has graphs, and so no fragments or charges of molecules", r.file)
	}
	if r.o.Want != "" && r.o.Want != c {
		return fmt.Errorf("dataset: %s: has %s, want %s", r.file, c, r.o.Want)
	}
	return nil
}

func (r *reader) openText() (err error) {
	r.text, err = textfile.Open(r.ctx, r.file, r.o.Input)
	return err
}

// line returns the next line, with the record that it is; one that is too long has an Err.
func (r *reader) line(lines *textfile.Lines) (string, *Record, error) {
	text, err := lines.Next()
	var bad *dataset.SyntaxError
	bad, _ = err.(*dataset.SyntaxError)
	if err != nil && bad == nil { // one that is wrapped ends the reading
		return "", nil, err
	}
	rec := r.record(lines.Line)
	rec.Err = bad
	rec.size = len(text)
	return text, rec, nil
}

func (r *reader) record(line int) *Record {
	r.number++
	return &Record{Number: r.number, Line: line, ID: strconv.Itoa(r.number)}
}

// Workers take so many records at a time, or fewer that are so large together.
const (
	chunkRecords = 1024
	chunkSize    = 1 << 18
)

// stream builds the graphs of the records that next returns, until it returns io.EOF,
// on all processors, and gives them to emit in their order. next and emit are called
// one at a time.
func (r *reader) stream(next func() (*Record, error), emit func(*Record)) error {
	type chunk struct {
		records []*Record
		done    chan struct{}
	}
	workers := runtime.GOMAXPROCS(0)
	work := make(chan *chunk)
	queue := make(chan *chunk, 2*workers) // in order
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			w := &worker{o: &r.o, notes: &r.notes, categories: r.categories}
			w.parser.Release2022 = r.o.Hu2020
			w.parser.Standard = r.o.Standard
			if r.o.Vector != nil {
				w.vector = r.o.Vector()
			}
			for c := range work {
				for _, rec := range c.records {
					w.finish(rec, r.file)
				}
				close(c.done)
			}
		})
	}
	var readErr error
	wg.Go(func() {
		defer close(queue)
		defer close(work)
		for readErr == nil && r.ctx.Err() == nil {
			c := &chunk{done: make(chan struct{})}
			for size := 0; len(c.records) < chunkRecords && size < chunkSize && readErr == nil; {
				var rec *Record
				rec, readErr = next()
				if readErr == nil && rec.Number > r.o.Skip {
					c.records = append(c.records, rec)
					size += rec.size
				}
			}
			select {
			case queue <- c:
				work <- c
			case <-r.ctx.Done():
			}
		}
	})
	for c := range queue {
		<-c.done
		for _, rec := range c.records {
			if r.ctx.Err() == nil {
				emit(rec)
			}
		}
	}
	wg.Wait()
	if readErr == io.EOF {
		return nil
	}
	return readErr
}

type worker struct {
	o      *Options
	notes  *notes
	parser molecule.Parser
	vector func(*molecule.Molecule) []float32

	categories *feature.Set
}

func (w *worker) finish(rec *Record, file string) {
	if rec.Err != nil {
		return
	}
	g, err := rec.body.build(w, rec)
	if err == nil {
		rec.Graph = g
		return
	}
	if !errors.As(err, &rec.Err) {
		rec.Err = &dataset.SyntaxError{Reason: err.Error()}
	}
	rec.Err.File = file
	rec.Err.Line = cmp.Or(rec.Err.Line, rec.Line)
}
