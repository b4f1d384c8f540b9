// Package dataset reads, splits and generates sets of labelled graphs, the input of
// everything else.
//
// The mental model: a [Dataset] is a slice of [graph.Graph] with the facts that
// all of them share, such as the number of classes and the width of the features:
//
//   - [Open] and [LoadTU] read the text files of the TUDataset collection, from
//     an archive or a folder;
//   - [Motifs] makes graphs from a seed; [Default] is a small set of them, with
//     which everything runs without any file.
//
// The packages below read other files: records reads the users' own files of molecules
// and graphs, moleculenet the sets of that benchmark, network large graphs whose ego
// networks are the samples. Package fetch downloads and verifies data sets.
//
// The next step is the same for all: [StratifiedKFold] splits the graphs for evaluation,
// and the training loop collates them into batches. [FindCopies] finds graphs that occur
// more than once, in one set or across the parts of a split.
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
//     every edge twice). A repeated edge keeps its first label.
//   - Node labels are shifted by the smallest, and the one-hot encoding has as
//     many columns as the range of values: DD has 82 labels among 1..89, and
//     width 89. Each column of labels is encoded by itself.
//   - Attributes are not read unless [Options] ask for them; then the features
//     are [attributes | one-hot labels].
//   - Nodes with neither have the constant feature 1.
//   - Classes are numbered by sorted label: -1, 1 become 0, 1.
//
// Blanks may follow commas; CRLF, a missing last newline and blank lines at the end
// are accepted. The indicator need not be sorted: a graph's nodes keep their order.
//
// # The columns of another set
//
// The files that were read determine the width of the features, and the label that a
// column stands for. A model needs the columns that it was trained on: [Dataset.Columns]
// describes those of a set, and [Dataset.WithColumns] gives them to another set, where a
// label that the first set never had is an error.
//
// # What is refused
//
// A file that breaks the format is refused with a [SyntaxError] that names file, line and
// value: too few or too many lines, something that is no number or is out of range, an edge
// between two graphs. Archives with members outside of them, links out of a folder, and data
// beyond fixed bounds ([ErrTooLarge]) are refused, too. Graphs without nodes are dropped. No
// input makes this package panic, and nothing is ever unpacked to disk.
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
