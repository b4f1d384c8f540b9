// Package motifs embeds the synthetic data set "motifs" in TUDataset format, so
// that every program of this module runs without any file. It is not an API:
// use dataset.Default, or read this folder with dataset.Open("testdata", "motifs").
//
// The files are what dataset.WriteTU makes of dataset.Motifs with its default
// configuration. To make them anew after changing the generator:
//
//	go test ./gnn/dataset -run 'TestDefault$' -update
package motifs

import "embed"

// Files are motifs_A.txt, motifs_graph_indicator.txt, motifs_graph_labels.txt
// and motifs_node_labels.txt.
//
//go:embed motifs_*.txt
var Files embed.FS
