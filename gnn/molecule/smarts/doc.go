// Package smarts finds substructures in molecules. A [Pattern] is a compiled SMARTS string, and a
// [Matcher] holds the molecule in which patterns are looked for:
//
//	acid, err := smarts.Compile("[CX3](=O)[OX2H1]")
//	...
//	var m smarts.Matcher
//	m.Reset(mol) // a *molecule.Molecule
//	m.Has(acid)
//	m.Count(acid)
//	m.Matches(acid)
//
// A pattern never changes, so goroutines may share it. A matcher keeps its memory: after some
// molecules, Reset, Has and Count allocate nothing. Has first compares what the pattern needs with
// the elements of the molecule, which rejects most molecules of a library.
//
// # The language
//
// Atoms: the elements, aromatic ones in small letters, *, A and a; #n; D and d (neighbours, and
// those that are not hydrogen), X (neighbours and hydrogens), H and h (hydrogens, and those that are
// not atoms of the graph), v (valence), R and r (number of rings, size of the smallest ring), k (the
// size of any ring), x (ring bonds), z and Z (neighbours that are heteroatoms, and aliphatic ones),
// ^n (hybridisation), charges, isotopes, @ and @@; ranges such as D{2-3}; environments $(…);
// all with !, &, the comma and the semicolon. Bonds: - = # $ : ~ @ / \ -> <- with the same logic. A
// bond that is not written is single or aromatic. Atom map numbers are read and ignored. Parts
// behind a dot may lie anywhere, on atoms of their own.
//
// All of them mean what they mean to RDKit (release 2026.09.1): rings are those of
// [molecule.Molecule.Ring], [H] and [2H+] are hydrogen atoms, and H in any other bracket counts
// hydrogens. Configurations are honoured, as by RDKit with useChirality: an atom with @ or @@ and
// three neighbours or more matches a centre of this configuration only, and a double bond between
// bonds with / or \ matches one of this configuration only. The H in [C@H](F)Cl is the third
// neighbour, so this pattern has a configuration, which RDKit ignores.
//
// 640 patterns of RDKit's data match the same atoms of 20,105 molecules of ZINC250k and of eight sets of
// MoleculeNet, without an exception, in 14 s of processor time with reading; RDKit's matches alone took
// 118 s (testdata/rdkit_matches.py, every 20th molecule; TestRDKit with -matches).
//
// Refused, with the column: reactions, groups of components such as (C).(C), @ below a comma or an
// exclamation mark, and what is no SMARTS.
package smarts
