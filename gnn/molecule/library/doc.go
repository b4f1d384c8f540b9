// Package library searches, clusters, samples and maps libraries of molecules by how similar they are.
//
// The mental model: a [Set] holds one fingerprint or vector per molecule, and knows the similarity
// of each two. [Bits] has Tanimoto's similarity of Morgan bits, and [Counts] that of Morgan counts,
// from 0 to 1. [Vectors] has the cosine of vectors of an encoder, from -1 to 1. The other functions
// take any of them:
//
//   - [Set.Search] adds the molecules that are similar to a query to a [Best], which keeps the
//     nearest ones. A library that is larger than memory is searched part by part, into the same
//     Best.
//   - [Butina] divides a set into clusters around molecules with many neighbours, and [Group] by a
//     text, such as a scaffold.
//   - [MaxMin] picks molecules that are as different as possible.
//   - [PCA] and [TSNE] give every molecule two coordinates.
//
// Similarities, clusters and picks equal those of RDKit (release 2026.09) for the same fingerprints.
//
// Results do not depend on the number of processors.
package library
