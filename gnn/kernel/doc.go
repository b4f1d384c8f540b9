// Package kernel compares graphs by the substructures that they share.
//
// The mental model: the Weisfeiler-Lehman refinement, [Refine], gives every node of
// every graph a color that sees one hop further in every round. Counting its colors
// turns a graph into a sparse row, a bag of words, and a kernel is a product of two
// rows:
//
//	l₀(v) = the node's category, or its degree where nodes have none
//	l_t(v) = a color for (l_{t-1}(v), {{l_{t-1}(u) : u → v}})      t = 1…h
//
//	WL subtree             K(G,G') = Σ_{t≤h} Σ_c n_t(G,c)·n_t(G',c)
//	WL optimal assignment  K(G,G') = Σ_{t≤h} Σ_c min(n_t(G,c), n_t(G',c))
//
// where n_t(G,c) is the number of nodes of G with color c after round t.
//
//	rounds := kernel.Refine(graphs, 5).Counts()  // [graphs×colors] for t = 0…5
//	grams := kernel.Subtree(rounds)              // [graphs×graphs] for h = 0…5
//	for _, k := range grams {
//		k.Normalize()                        // K(G,G')/√(K(G,G)·K(G',G'))
//	}
//
// # Invariants
//
// Colors are shared by all graphs of one call, and no two rounds share any. A node
// without neighbours gets a color of its own in every round, that of (l, {{}}). Colors
// are numbers in the order of their first appearance; nothing depends on the number
// of processors. Counts and their products are whole numbers and exact in float64
// below 2⁵³.
//
// # Cost
//
// A round takes time and memory in proportion to nodes and edges. No color is ever
// spelled out: a node's own color and the multiset around it are hashed to 128 bits,
// and the hash is the key of a map. REDDIT-MULTI-5K, 2.5 million nodes, takes
// 10 MB a round for the colors and as much again for the counts. A Gram matrix is
// 4·n² bytes, 100 MB for 5000 graphs.
//
// # Sources
//
//   - N. Shervashidze, P. Schweitzer, E. J. van Leeuwen, K. Mehlhorn, K. M. Borgwardt:
//     Weisfeiler-Lehman graph kernels. JMLR 12, 2011.
//   - N. M. Kriege, P.-L. Giscard, R. Wilson: On valid optimal assignment kernels and
//     applications to graph classification. NeurIPS 2016.
package kernel
