// Package depict draws molecules: atoms in the plane, and SVG as chemists draw it.
//
// The mental model: a molecule is a tree of rigid pieces. Ring systems are pieces, and so is every bond
// outside of rings. [Layout] makes a [Drawing] of it in four steps:
//
//  1. Ring systems. Rings are regular polygons that share bonds. Rings of twelve and more atoms are folded like
//     the outline of fused hexagons. A system that such polygons cannot draw, such as a cage or a bridged one,
//     is embedded in the plane without crossings (Demoucron, Malgrange and Pertuiset), drawn by barycentres
//     (Tutte) within each of its faces, and relaxed until its faces are as regular as they can be. The face with
//     the least strain becomes the outside.
//  2. Assembly. From the largest ring system on, neighbours are put into the free angles of their atoms: chains
//     in zigzag, triple bonds straight, the neighbours of double bonds on the sides of their configuration.
//  3. Untangling. Where bonds cross or atoms are close, branches are flipped about a bond, exchanged, turned or
//     moved out, whichever is enough.
//  4. Stereo bonds. Each tetrahedral centre gets a wedge or a hash, chosen and oriented so that a reader of the
//     drawing finds the configuration of the molecule.
//
// [Drawing.SVG] writes the drawing. Aromatic rings have alternating double bonds, whose second line is inside of
// the ring. Lines have the page's colour (currentColor), so that a drawing fits light and dark themes. Colours of
// the elements are legible on both.
//
// Invariants. Equal molecules, with atoms in the same order, give equal bytes. Bonds cross only if the graph is
// not planar, a substituent does not fit into a ring, or a molecule of hundreds of atoms has no simple way out. Such
// a molecule takes a second or two, and one of 30 atoms about a millisecond.
//
// References: G. Demoucron, Y. Malgrange, R. Pertuiset, "Graphes planaires", 1964. W. T. Tutte, "How to draw a
// graph", 1963. J. Brecher, "Graphical representation of stereochemical configuration", IUPAC 2006.
package depict
