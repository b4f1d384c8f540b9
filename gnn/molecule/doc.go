// Package molecule reads SMILES, the line notation of molecules, and molfiles, and turns them
// into the graphs that Hu et al. feed to networks.
//
// The mental model: a [Parser] turns a string into a [Molecule], a list of
// atoms and a list of bonds, in three steps:
//
//  1. Syntax. A single pass over the string gives atoms, bonds, branches and
//     rings as they are written.
//  2. Perception. Much is left to the reader: CCO has nine bonds, six of them
//     to hydrogens; C1=CC=CC=C1 and c1ccccc1 are the same molecule; the @ of
//     CC[C@H](C)CC says nothing. Perception checks valences, finds rings, takes
//     aromatic bonds apart and puts them together again (Hückel's rule), finds
//     which stereocentres are real, and drops hydrogens written as atoms. What it finds
//     is in the fields and methods of [Atom], [Bond] and [Molecule].
//  3. Categories. [Molecule.Graph] keeps what the network is to see: an
//     atomic number and a chirality tag for every atom, a type and a direction
//     for every bond. [Molecule.GraphOf] keeps more, such as charges.
//
// Between the first two, [Parser.Standard] may leave out counter-ions and take charges off.
//
// [Parser.Scaffold] identifies the Bemis–Murcko scaffold, by which data sets of
// molecules are split.
//
// # The syntax
//
// All of OpenSMILES is read: brackets with isotopes, chirality (@, @@ and the
// classes TH, AL, SP, TB, OH), hydrogens, charges and atom map numbers; the
// aromatic b, c, n, o, p, s, as, se, si and te; the wildcard; the bonds - = # $
// : / \; ring numbers up to %(99999); dots. Extensions of
// RDKit's are ++ and -- for charges, two backslashes for one, a class of chirality without
// a permutation, [#6] for [C], and dative bonds, N->[Pt] or [Pt]<-N. SMARTS is refused,
// and so is ~, the bond of any order, for which there is no category.
//
// [Parser.ParseMolfile] reads molfiles, whose molecules take the same way from there on.
//
// # Perception
//
// There is no standard for what is aromatic, which valences exist or what is a stereocentre, so one
// implementation has to be followed: RDKit's MolFromSmiles, which Hu et al. use (release 2022.09,
// its legacy stereo perception). As in release 2026.09 are the valences, which read more metal
// complexes and fewer hypervalent ions, the dative bonds to metals, hydrides, which stay atoms, and
// rings of more than eight atoms with O or S, which are not aromatic ([Parser.Release2022] turns
// this off). What RDKit refuses is refused, with the reason. The rules are described where they are
// implemented. Differences that are known:
//
//   - RDKit accepts the empty string and ~, the bond of any order, and reads extensions of
//     CXSMILES behind a blank, where nothing is read here: not radicals (^1:0), coordinate bonds
//     (C:0.0) or wedges. Of 10,000 odd strings, five in six from the tables and tests of other
//     programs and the rest made up, 11 have another verdict than RDKit's (release 2026.09.1): nine for ~, two
//     for damaged extensions. Of 8,446 that both read three are another molecule, two of them by their
//     extension, and of 69,691 further structures of PubChem none. A reaction is refused here and there.
//   - Of two metals RDKit chooses by canonical ranks which one gets the dative bond, here it is the
//     last; and a centre with a bond to a metal may keep a tag there that it loses here.
//   - A molecule may have [MaxAtoms] atoms. Ring systems that are too large to
//     be searched are refused, where RDKit does not finish.
//   - Where alternative Kekulé structures differ in what is aromatic, RDKit's
//     choice depends on the order of the atoms. In rare ring systems the choice here
//     depends on it too, and may be another. In cages of many rings, the set of
//     smallest rings is not unique, and the one found here may be another.
//   - Wildcards in rings that are written as aromatic may get double bonds where
//     RDKit's do not, or the other way round, and a ring may be refused that
//     RDKit accepts: *1ccc[OH+]1.
//   - A ring that is written as aromatic and is not, such as that of selenium in
//     C[NH+]1CCN2[se]3c(cccn3)Cc4cbccc4C2C1, may have its double bonds elsewhere.
//   - 17 of 488,593 molecules have another number of stereocentres, because of nitrogens where
//     rings meet; two oxides of tin and lead have conjugated bonds here and not there, and a
//     complex of iron a ring less (TestDigests).
//   - Scaffolds that differ only in the permutation of a square planar, trigonal
//     bipyramidal or octahedral centre, such as [Pt@SP1] and [Pt@SP2], are the
//     same here: of these centres only that there is one is kept.
//   - Scaffolds are told apart where RDKit writes the same for an atom that has
//     lost substituents: one in superfluous brackets, such as C[C](C)=C1CCCCC1
//     and CC(C)=C1CCCCC1, and aromatic boron.
//
// On the eight MoleculeNet sets of Hu et al. and 20,000 molecules of ZINC250k,
// 177,095 in all, RDKit (release 2026.09.1) and this package accept the same, and atoms and
// bonds are equal but for seven molecules (TestParity): three have several bonds to metals, and four
// are phthalocyanines in another Kekulé structure. Scaffolds are those of release 2022.09. Hydrogens,
// valences, hybridisation, conjugation, rings and configurations are those of release 2026.09
// (TestDigests); packages fingerprint and descriptor build on them.
//
// # Molfiles
//
// They are read as RDKit's MolFromMolBlock reads them (release 2026.09), and of 3,998 of 4,000 that
// it wrote of molecules of public sets, V2000 and V3000, the molecule is that of the SMILES
// (TestMolfiles). The other two had a double bond without a configuration, which its drawing has.
// Known differences:
//
//   - RDKit reads queries, bonds of type 0 and aromatic bonds outside of rings as kinds of
//     atoms and bonds of their own; here they are refused.
//   - Where the neighbours of a stereocentre are drawn close to one line, RDKit may find its
//     wedges ambiguous. Here they count, unless those of an atom with three neighbours
//     contradict one another.
//   - Of a chain of double bonds all directions may be turned round, which says the same.
//   - Centres that are not tetrahedral have no configuration.
//
// # References
//
// W. Hu, B. Liu, J. Gomes, M. Zitnik, P. Liang, V. Pande, J. Leskovec,
// Strategies for pre-training graph neural networks, ICLR 2020.
//
// C. A. James et al., OpenSMILES specification, version 1.0, 2016.
//
// G. Landrum et al., RDKit: open-source cheminformatics.
package molecule
