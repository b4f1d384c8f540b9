// Package theory computes both sides of the paper's Theorems 4.2 and 4.3 for
// embeddings, on the host in float64, so that one can see where they hold and
// what they say.
package theory
