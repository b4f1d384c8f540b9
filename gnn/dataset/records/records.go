// Package records reads users' own files of molecules and graphs, record by record.
//
// [Read] streams the records of a file, and [ReadAll] holds all of them. The ending of the
// name tells the format; .gz may follow:
//
//   - .csv, molecules: a table with a header, a column of SMILES and any other columns. One
//     of these may be the ID, others targets.
//   - .csv with the columns graph, source and target: one undirected edge a row. Nodes have
//     any names. A row without a target describes a node, before its edges: its label in the
//     column label, and its attributes in the columns that Options.Attributes names or whose
//     names begin with "attribute". Where there are such columns, NA is no target, unless a node
//     of this name has been described. Other rows may have a label or a number of the edge, in
//     the column edge_label or weight. The rows of a graph stand together. A field may stand
//     in any of them, with one value, next to blank ones and those such as NA.
//   - .smi or .txt: one SMILES a line; a blank and a name may follow.
//   - .sdf, .sd or .mol: molfiles, V2000 or V3000. Each may have properties and ends with a
//     line $$$$. The ID and the fields are properties; "_Name" is the title line.
//   - .jsonl or .ndjson: one graph a line, such as
//     {"id": "g1", "nodes": 3, "edges": [[0, 1], [1, 2]], "labels": [6, 6, 8], "y": 0.5}.
//     Nodes are numbered from 0. "edges" are undirected unless "directed" is true. "labels"
//     are whole numbers or texts, and "attributes" a list of numbers for each node; either
//     makes "nodes" unnecessary. "edge_labels" are whole numbers or texts for the edges, in their
//     order, and "edge_weights" numbers. Other keys may be an ID or targets. Graphs as
//     networkx.node_link_data writes them, or in the layout of Hugging Face's data sets
//     ("edge_index", "num_nodes", "node_feat"), are read as well.
//   - .graphml: one graph or more, as networkx.write_graphml or Neo4j's apoc.export.graphml
//     writes one. Nodes may have a key "label" or "labels", a whole number or a text, and
//     keys that are attributes, named like those of a table of edges, and edges a key "label" or
//     "weight". Fields are the keys of graphs, and "id". Keys stand before the first graph.
//   - a folder with raw/num-node-list.csv.gz: a set of the Open Graph Benchmark. Fields are
//     "y", or "y1", "y2" … for several tasks, and "split".
//   - .zip or another folder: a set in TUDataset's format, with its attributes. Fields are "class",
//     or "class1", "class2" … where graphs have several labels, and "attribute" or
//     "attribute1" … for regression targets.
//
// Text is in UTF-8 or UTF-16. A record that cannot be used is reported with its line and
// the reason, and the next one is read. A damaged row of a table of edges spoils the graphs
// to which it may belong. Damaged XML ends the reading.
//
// A format is a value in one table and a file of this package, which splits the text into
// records. [Read] does what all formats have in common: it numbers and skips records, builds
// their graphs on all processors, and gives them in the order of the file.
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

// Record is an item of a file: a graph with its ID and fields.
type Record struct {
	Number int      // from 1
	Line   int      // where the record begins; in TUDataset's format, Number
	ID     string   // the field that Options.ID names, otherwise Number
	Fields []string // those that Options.Fields names; empty where one is missing
	// Graph is nil if the record cannot be used. Err says why.
	Graph    *graph.Graph
	SMILES   string // of a molecule; for an SD file, only [ReadAll] gives it
	Scaffold string // of a molecule, if Options.Scaffolds is set
	// Identity identifies a molecule, however it is written, if Options.Identities is set. It
	// is 0 for graphs.
	Identity [16]byte
	Molecule *molecule.Molecule // if Options.Molecules is set
	Err      *dataset.SyntaxError

	body body // until the graph is built
	size int  // of the body, in bytes or numbers

	loops, repeats int // edges that the graph lacks
}

// A body is what a record's graph is built from. Errors other than [*dataset.SyntaxError]
// become the reason in one.
type body interface {
	build(w *worker, rec *Record) (*graph.Graph, error)
}

// Content is the kind of records that a file has.
type Content string

// The contents.
const (
	Molecules Content = "molecules"
	Graphs    Content = "graphs"
)

// Options say how a file is read. The zero value goes by the name of the file.
type Options struct {
	// Format is one of [Formats]; "" goes by the name of the file.
	Format string
	// Input, if set, is read in place of the file, whose name then only appears in errors.
	// The file "-" needs it.
	Input io.Reader
	// Want makes a file of other content an error. "" accepts both.
	Want Content
	// SMILES is the column of SMILES. "" stands for "smiles", in upper or lower case, or else
	// for the only column whose name contains that, such as canonical_smiles.
	SMILES string
	// ID and Fields name columns of a table, properties in an SD file, keys of a JSON object,
	// or classes and targets of a set in TUDataset's format.
	ID     string
	Fields []string
	// Scaffolds and Identities fill these fields of records for molecules.
	Scaffolds, Identities bool
	// Molecules keeps the molecule of each record.
	Molecules bool
	// Vector, if set, returns for each goroutine what computes Graph.Globals of molecules.
	Vector func() Vectors
	// Hu2020 accepts the molecules that Hu et al. accept: valences as in RDKit 2022.09, and no
	// wildcards.
	Hu2020 bool
	// Atoms names the categories that molecules get, see [feature.ByName]. Standard says how
	// they are standardised before.
	Atoms    string
	Standard feature.Standardisation
	// Columns are the features that graphs get. Without them, [Read] gives a graph the
	// columns of its own attributes and labels, and [ReadAll] those of all graphs.
	Columns *graph.Columns
	// Degrees gives nodes that have neither attributes nor labels their one-hot degrees as features.
	// It is for [ReadAll] without Columns.
	Degrees bool
	// Attributes are the columns of a table of edges that are attributes of nodes. The default
	// is Columns.Names or, without it, the columns whose names begin with "attribute".
	Attributes []string
	// Ignore names columns and keys that are skipped although their names suggest a part of a
	// graph, such as weight. Labels that Columns have are read all the same. That of edges
	// alone is edge_label in GraphML, and edge_labels in JSON.
	Ignore []string
	// Reading, if set, receives what is used of the file.
	Reading *Reading
	// Skip is how many records are skipped.
	Skip int
	// First is how many records of a file are before the input, if that is a part of the file, such as between the
	// lines of [LineEnds]: the numbers of its records begin behind them. It is for molecules.
	First int

	table *Table // set by [ReadAll], to receive the content and the set of the file
}

// The formats.
const (
	CSV     = "csv"     // a table with a header: of molecules, or of edges
	SMI     = "smi"     // a SMILES a line, which a name may follow
	SDF     = "sdf"     // molfiles with properties
	JSONL   = "jsonl"   // a graph a line, as a JSON object
	GraphML = "graphml" // graphs in XML
	TU      = "tu"      // TUDataset's archive or folder
	OGB     = "ogb"     // a folder of the Open Graph Benchmark
)

// A format describes how a kind of file is read.
type format struct {
	name    string
	endings []string // of file names
	// open returns the function that returns the records one by one, and io.EOF at the end.
	// A record that cannot be read has an Err, others have a body.
	open func(r *reader) (next func() (*Record, error), err error)
}

var formats = []format{
	{CSV, []string{".csv", ".tsv"}, (*reader).openCSV},
	{SMI, []string{".smi", ".txt"}, (*reader).openSMI},
	{SDF, []string{".sdf", ".sd", ".mol"}, (*reader).openSDF},
	{JSONL, []string{".jsonl", ".ndjson"}, (*reader).openJSONL},
	{GraphML, []string{".graphml"}, (*reader).openGraphML},
	{TU, []string{".zip"}, (*reader).openTU},
	{OGB, nil, (*reader).openOGB},
}

// Formats lists the names of the formats.
var Formats = []string{CSV, SMI, SDF, JSONL, GraphML, OGB, TU}

// unread names the formats that are not read, by the endings of their files.
var unread = map[string]string{
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

// FormatOf returns the format of a file by the ending of its name, which .gz or .zst may follow. A
// folder is one of the Open Graph Benchmark, if it has that layout, or a set in TUDataset's format.
// The error for another format says what to do.
func FormatOf(path string) (string, error) {
	if name := formatByName(path); name != "" {
		return name, nil
	}
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return "", fmt.Errorf("dataset: %w", err)
	case info.IsDir() && isOGB(path):
		return OGB, nil
	case info.IsDir():
		return TU, nil
	}
	if language, ok := unread[strings.ToLower(filepath.Ext(path))]; ok {
		remedy := "write it as .csv or .jsonl"
		switch language {
		case "GEXF", "GML", "Pajek's format", "DOT", "graph6", "JSON":
			remedy = "write it as .graphml, in Python by networkx.write_graphml, or a graph a line " +
				"into a .jsonl, by json.dumps(networkx.node_link_data(g))"
		case "MOL2", "InChI":
			remedy = "write a SMILES a line into a .smi, in Python by rdkit.Chem.MolToSmiles(m)"
		case "bzip2", "xz", "a tar archive":
			remedy = "unpack it, or pack it by gzip or zstd"
		}
		return "", fmt.Errorf("dataset: %s: is %s by its name, which is not read: %s",
			path, language, remedy)
	}
	return "", fmt.Errorf(
		"dataset: %s: the name does not tell the format; want .csv, .smi, .sdf, .jsonl, .graphml, each "+
			"with .gz or without, .zip or a folder",
		path,
	)
}

// formatByName returns the format that the ending of a name stands for, "" if none.
func formatByName(path string) string {
	ending := endingOf(path)
	for _, f := range formats {
		if slices.Contains(f.endings, ending) {
			return f.name
		}
	}
	return ""
}

// endingOf returns the ending of a name in lower case, without that of what is packed.
func endingOf(path string) string {
	return filepath.Ext(strings.TrimSuffix(strings.TrimSuffix(strings.ToLower(path), ".gz"), ".zst"))
}

// Read calls emit with the records of a file, in their order. It streams: memory does not
// grow with the file, unless that is in TUDataset's format. A record that cannot be read has
// an Err and does not end the reading. An error of emit ends it and is returned.
func Read(ctx context.Context, path string, o Options, emit func(*Record) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r, next, err := open(ctx, path, o)
	if err != nil {
		return err
	}
	defer r.close()
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

// open opens a file, and returns the function of its format that returns the records one by one.
func open(ctx context.Context, path string, o Options) (r *reader, next func() (*Record, error), err error) {
	name := o.Format
	if name == "" {
		name, err = FormatOf(path)
		if err != nil {
			return nil, nil, err
		}
	}
	index := slices.IndexFunc(formats, func(f format) bool { return f.name == name })
	if index < 0 {
		return nil, nil, fmt.Errorf("dataset: %q is not a format of records; want one of %s",
			name, strings.Join(Formats, ", "))
	}
	r, err = newReader(ctx, path, o)
	if err != nil {
		return nil, nil, err
	}
	next, err = formats[index].open(r)
	if r.text != nil {
		r.closers = append(r.closers, r.text)
	}
	if err != nil {
		r.close()
		return nil, nil, err
	}
	return r, next, nil
}

// Vectors computes vectors of molecules on one goroutine. What is faster for many molecules together is computed by
// Complete.
type Vectors interface {
	// Vector returns the vector of a molecule, whose numbers are valid after the next Complete.
	Vector(m *molecule.Molecule) []float32
	// Complete fills in the vectors since the last Complete.
	Complete()
}

// reader reads one file. Its methods open the formats.
type reader struct {
	ctx  context.Context
	file string
	o    Options

	text    *textfile.Text   // of formats of text
	set     *dataset.Dataset // of TUDataset's format
	closers []io.Closer      // of formats of several files
	content Content
	number  int // of the last record
	reading *Reading
	notes   notes

	categories *feature.Set // of molecules
}

// newReader returns a reader of a file whose format has not been opened.
func newReader(ctx context.Context, path string, o Options) (*reader, error) {
	if o.Columns != nil {
		if err := o.Columns.Check(); err != nil {
			return nil, err
		}
	}
	categories, err := feature.ByName(o.Atoms)
	if err != nil {
		return nil, err
	}
	r := &reader{
		ctx:        ctx,
		file:       path,
		o:          o,
		reading:    cmp.Or(o.Reading, new(Reading)),
		number:     o.First,
		categories: categories,
	}
	r.notes.unused = map[string]bool{}
	*r.reading = Reading{ID: o.ID, Fields: o.Fields}
	return r, nil
}

// close closes the files of the reader.
func (r *reader) close() {
	for _, c := range slices.Backward(r.closers) {
		c.Close()
	}
}

// setContent notes the content of the file, and returns an error unless it is wanted.
func (r *reader) setContent(c Content) error {
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

// openText opens a file of text.
func (r *reader) openText() (err error) {
	r.text, err = textfile.Open(r.ctx, r.file, r.o.Input)
	return err
}

// line returns the next line and its record, which has an Err if the line is too long.
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

// record returns a new record that begins at a line.
func (r *reader) record(line int) *Record {
	r.number++
	return &Record{Number: r.number, Line: line, ID: strconv.Itoa(r.number)}
}

// A worker takes as many records at a time, or fewer if they reach this size together. Vectors are thousands of
// numbers, and there are several chunks for each worker.
const (
	chunkRecords = 1024
	chunkVectors = 256
	chunkSize    = 1 << 18
)

// chunk returns the greatest number of records of a chunk.
func (o *Options) chunk() int {
	if o.Vector != nil {
		return chunkVectors
	}
	return chunkRecords
}

// stream builds the graphs of the records that next returns, until io.EOF, on all
// processors, and gives them to emit in their order. Calls of next do not overlap, nor do
// those of emit.
func (r *reader) stream(next func() (*Record, error), emit func(*Record)) error {
	type chunk struct {
		records []*Record
		done    chan struct{}
	}
	// A chunk goes to a worker, and at the same time into the queue, which keeps the order.
	workers := runtime.GOMAXPROCS(0)
	work := make(chan *chunk)
	queue := make(chan *chunk, 2*workers) // in order
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			w := r.newWorker()
			for c := range work {
				for _, rec := range c.records {
					w.finish(rec, r.file)
				}
				if w.vectors != nil {
					w.vectors.Complete()
				}
				close(c.done)
			}
		})
	}
	// One goroutine reads.
	var readErr error
	wg.Go(func() {
		defer close(queue)
		defer close(work)
		for readErr == nil && r.ctx.Err() == nil {
			c := &chunk{done: make(chan struct{})}
			for size := 0; len(c.records) < r.o.chunk() && size < chunkSize && readErr == nil; {
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
	// The caller's goroutine emits.
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

// worker builds the graphs of records on one goroutine.
type worker struct {
	o      *Options
	notes  *notes
	parser molecule.Parser
	// vectors is nil unless graphs get Globals.
	vectors    Vectors
	categories *feature.Set
}

func (r *reader) newWorker() *worker {
	w := &worker{o: &r.o, notes: &r.notes, categories: r.categories}
	w.parser.Release2022 = r.o.Hu2020
	w.parser.Standard = r.o.Standard
	if r.o.Vector != nil {
		w.vectors = r.o.Vector()
	}
	return w
}

// finish builds the graph of a record, or gives it an Err.
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
