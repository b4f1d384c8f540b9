// Package dataset reads, fetches, divides and generates sets of labelled
// graphs, the input of everything else.
//
// The mental model: a [Dataset] is a slice of [graph.Graph] and the facts
// common to all of them (how many classes, how wide the features). It comes
// from one of three places:
//
//   - [Open] and [LoadTU] read the text files of the TUDataset collection, from
//     an archive or a folder, and Open also files of graphs with a class each;
//   - [Fetch] downloads such an archive first;
//   - [Motifs] makes graphs from a seed; [Default] is a small set of them, with
//     which everything runs without any file.
//
// A [Network] is something else: one large graph, read by [OpenNetwork], whose ego
// networks are the samples. Molecules come with their own types: [Molecules] is a
// set of MoleculeNet with labels for several tasks, read by [OpenMoleculeNet] and
// divided by [ScaffoldSplit], and a [Corpus] is a long list of molecules without
// labels, read by [OpenCorpus].
//
// What happens then is the same for all: [StratifiedKFold] divides the graphs
// for evaluation, and the training loop collates them into batches.
//
// # The TUDataset format
//
// A set NAME is a handful of text files, in a folder NAME or an archive
// NAME.zip. Numbering starts at 1, and there is one line per item:
//
//	NAME_A.txt               "i, j" for every edge i→j; both directions are listed
//	NAME_graph_indicator.txt the graph of node n on line n
//	NAME_graph_labels.txt    the class of graph g on line g
//	NAME_node_labels.txt     optional: integer labels of node n
//	NAME_node_attributes.txt optional: real attributes of node n
//	NAME_edge_labels.txt     optional: integer labels of the edge on the same line of NAME_A.txt
//
// Other files are ignored. The files are read as PyTorch Geometric reads them,
// so that results can be compared with published ones:
//
//   - Self-loops are removed and repeated edges count once (IMDB-BINARY lists
//     every edge twice). Of the labels of a repeated edge the first is kept.
//   - Node labels are shifted by the smallest, and the one-hot encoding has as
//     many columns as the range of values: DD has 82 labels among 1..89, and
//     width 89. Several columns are encoded each by itself.
//   - Attributes are left out unless [Options] ask for them; then the features
//     are [attributes | one-hot labels].
//   - Nodes with neither have the constant feature 1.
//   - Classes are numbered by sorted label: -1, 1 become 0, 1.
//
// Commas may or may not be followed by blanks; CRLF, a missing last newline
// and blank lines at the end are accepted. The indicator need not be sorted:
// a graph's nodes keep their order.
//
// # The columns of another set
//
// The width of the features, and the label that a column stands for, are those of
// the files that were read. A model wants the columns that it was trained on:
// [Dataset.Columns] describes a set's, and [Dataset.WithColumns] gives them to
// another set, where a label that the first one never had is an error.
//
// # Users' files
//
// [ReadRecords] streams the records of a user's own file, and [ReadTable] reads all of
// them. The name tells the format; .gz may follow:
//
//   - .csv with a header, of molecules: a column of SMILES, and any other columns, of
//     which one may be the ID and others targets.
//   - .csv with the columns graph, source and target: an edge a row, undirected. Nodes
//     have any names. A row without a target describes a node, before its edges: its
//     whole-numbered label in the column label, and its attributes in all other columns
//     that are not targets. Rows of a graph stand together.
//   - .smi or .txt: a SMILES a line, which a blank and a name may follow.
//   - .jsonl or .ndjson: a graph a line, as in
//     {"id": "g1", "nodes": 3, "edges": [[0, 1], [1, 2]], "labels": [6, 6, 8], "y": 0.5}.
//     Nodes are numbered from 0. "edges" are undirected unless "directed" is true;
//     "labels" are whole numbers, and "attributes" a list of numbers for each node.
//     "nodes" may be left out where there are either. Other keys may be an ID or
//     targets.
//   - .zip or a folder: a set in TUDataset's format, with its attributes.
//
// A record that cannot be used is reported with its line and the reason, and the next
// one is read; only a table of edges whose rows are damaged as such ends there.
//
// # What is refused
//
// A file that breaks the format is refused with a [SyntaxError] that names
// file, line and value: too few or too many lines, a number that is not one or
// is out of range, an edge between two graphs, a graph without nodes, which has
// nothing to embed. So are
// archives that lead out of themselves, links out of a folder, and data beyond
// [Limits]. No input makes this package panic, and nothing is ever unpacked to
// disk.
//
// # Memory
//
// The loader streams: it holds 8 bytes per line of NAME_A.txt while reading and
// 4 per edge afterwards. COLLAB, 24.6 million lines, takes about 0.3 GB and
// 2.5 seconds on one core.
//
// # References
//
// C. Morris et al., TUDataset: A collection of benchmark datasets for learning
// with graphs, ICML 2020 workshop on graph representation learning.
package dataset
