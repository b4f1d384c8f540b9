// Package augment makes the random views of graphs that contrastive learning
// compares.
//
// The mental model: an [Augmentation] reads one graph and writes one random
// view of it, as the next graph of a batch under construction. There is nothing
// in between: no copy of the graph, no dense adjacency, no relabelling of the
// batch afterwards. A [Collator] does this for all graphs and all views of a
// mini-batch, and a [Loader] prepares the next mini-batch while the current one is
// in use.
//
//	view := augment.Choice{augment.NodeDropping{Ratio: 0.2}, augment.Subgraph{Ratio: 0.2}}
//	loader := augment.Loader{
//		Graphs:   set.Graphs,
//		Batch:    128,
//		Collator: augment.Collator{Views: []augment.Augmentation{view, view}, Seed: 1},
//	}
//	for samples, batch := range loader.Epoch(ctx, epoch) {
//		…  // graphs 0..B-1 of batch are view 1 of samples, graphs B..2B-1 view 2
//	}
//
// # The augmentations
//
// These are the four of GraphCL (You et al., Graph Contrastive Learning with
// Augmentations, NeurIPS 2020, section 3.1), for a graph of n nodes and E
// edges, with ratio r = 0.2 unless said otherwise. ⌊r·n⌋ is [Share].
//
//   - [NodeDropping] ("dropN"): ⌊r·n⌋ nodes are removed, with all their edges.
//   - [EdgePerturbation] ("permE"): ⌊r·E⌋ edges are replaced by new ones.
//   - [AttributeMasking] ("maskN"): the features of ⌊r·n⌋ nodes become noise.
//   - [Subgraph] ("subgraph"): ⌊(1-r)·n⌋+1 nodes stay, connected where possible.
//
// [Identity] leaves a graph as it is, and [Choice] draws one of several
// augmentations for every graph. The choice depends on the kind of data
// ([PolicyFor], [ParsePolicy]).
//
// Invariants of every view, for every graph with a node: it has a node; nodes
// keep their order (except in the subgraph of [GraphCLSemi]); the batch passes
// [graph.Batch.Validate]. Edges keep their labels.
//
// # GraphCL as published and GraphCL as run
//
// The code that GraphCL's results come from does not do what the paper says, and
// its folders differ from one another. [Impl] selects between
// [ImplIntended], the text above, and the two that were run:
// [ImplUnsupervised] ([GraphCLUnsupervised]) and [ImplSemi] ([GraphCLSemi]),
// faithful to the bugs. They exist to reproduce numbers, not to be recommended.
//
// GraphCL's unsupervised runs compare the graph itself with one view of it:
//
//	raw, _ := augment.ParsePolicy("none", augment.ImplUnsupervised, 0)
//	view, _ := augment.ParsePolicy("random2", augment.ImplUnsupervised, 0)
//	augment.Collator{Views: []augment.Augmentation{raw, view}, …}
//
// and evaluate on raw, which has self-loops that the view lacks: see [Identity].
//
// # Randomness
//
// Every view of every graph in every epoch has a random stream of its own
// ([Stream]), derived from (seed, view, epoch, index of the graph in the data
// set) and nothing else. So results do not depend on the number of workers, on
// the size or order of batches or on what was drawn before, and two views never
// share a generator. Sharing one is a real danger: where data loaders fork with
// the same generator state, as in GraphCL's transfer code, both views of a graph
// are equal and there is nothing to learn.
//
// # Cost
//
// Time is linear in nodes and entries, and nothing is allocated once the
// buffers of [Workspace] and batch have grown. Two views (dropN and subgraph)
// of 512 molecules of 30 nodes take less than a millisecond on one core of a
// server: BenchmarkCollate512.
package augment
