// Package molecule reads SMILES, the line notation of molecules, and molfiles. It makes the graphs
// that Hu et al. feed to networks.
//
// The mental model: a [Parser] turns a string into a [Molecule], a list of
// atoms and a list of bonds, in three steps:
//
//  1. Syntax. A single pass over the string gives atoms, bonds, branches and
//     rings as they are written.
//  2. Perception. SMILES leaves much to the reader: CCO has nine bonds, six of
//     them to hydrogens; C1=CC=CC=C1 and c1ccccc1 are the same molecule; the @
//     of CC[C@H](C)CC says nothing. Perception checks valences, finds rings,
//     replaces aromatic bonds by single and double ones and perceives them anew
//     (Hückel's rule), finds the true stereocentres, and removes hydrogens that
//     are written as atoms. The results are in the fields and methods of [Atom],
//     [Bond] and [Molecule].
//  3. Features. [Molecule.Graph] keeps what the network sees: an atomic number
//     and a chirality tag for every atom, a type and a direction for every bond.
//     [Molecule.GraphOf] keeps more, such as charges.
//
// Between the first two steps, [Parser.Standard] may remove counter-ions and charges.
//
// [Parser.Scaffold] identifies the Bemis–Murcko scaffold, by which data sets of
// molecules are split.
//
// # The syntax
//
// All of OpenSMILES is read: brackets with isotopes, chirality (@, @@ and the
// classes TH, AL, SP, TB, OH), hydrogens, charges and atom map numbers; the
// aromatic b, c, n, o, p, s, as, se, si and te; the wildcard; the bonds - = # $
// : / \; ring numbers up to %(99999); dots. These extensions of RDKit are read, too: ++ and -- for
// charges, two backslashes for one, a class of chirality without a permutation, [#6] for [C], dative
// bonds, N->[Pt] or [Pt]<-N, and ~, the bond of any order. SMARTS is refused.
//
// [Parser.ParseMolfile] reads molfiles. From there on, their molecules are treated alike.
//
// # Perception
//
// There is no standard for what is aromatic, which valences exist or what is a stereocentre, so
// this package follows one implementation: RDKit's MolFromSmiles, which Hu et al. use (release
// 2022.09, with its legacy stereo perception). It follows release 2026.09 in the valences, which
// admit more metal complexes and fewer hypervalent ions; in dative bonds to metals; in hydrides,
// which stay atoms; in rings, hybridisation and conjugation; and in rings of more than eight atoms
// with O or S, which are not aromatic. [Parser.Release2022] restores the older valences and
// aromaticity. What RDKit refuses is refused, with the reason. The rules are described where they
// are implemented. Known differences:
//
//   - RDKit accepts the empty string. It reads extensions of CXSMILES behind a blank, which are
//     ignored here: radicals (^1:0), coordinate bonds (C:0.0) and wedges. A bond ~ that closes a
//     ring becomes a single bond there. Of 10,000 odd strings, five in six from the tables and
//     tests of other programs and the rest made up, two have another verdict than RDKit's (release
//     2026.09.1), for damaged extensions. Three of 8,446 that both read are another molecule, two
//     of them because of their extension. None of 69,691 further structures of PubChem is another
//     molecule. Reactions are refused here and there.
//   - Where two metals could get a dative bond, RDKit chooses by canonical ranks. This package
//     chooses the last. A centre with a bond to a metal may keep a tag there that it loses here.
//   - A molecule may have [MaxAtoms] atoms. Ring systems that are too large to be searched are
//     refused. A macrocycle with very many shortest ways around it counts as one ring.
//   - Where alternative Kekulé structures differ in what is aromatic, RDKit's choice depends on the
//     order of the atoms. In rare ring systems, the choice here depends on it, too, and may differ.
//   - Wildcards in rings that are written as aromatic may get double bonds where
//     RDKit's do not, or the other way round. A ring may be refused that
//     RDKit accepts: *1ccc[OH+]1.
//   - Scaffolds that differ only in the permutation of a square planar, trigonal
//     bipyramidal or octahedral centre, such as [Pt@SP1] and [Pt@SP2], are the
//     same here. Only the presence of such a centre is kept.
//   - Scaffolds differ where RDKit writes the same for an atom that has
//     lost substituents: one in superfluous brackets, such as C[C](C)=C1CCCCC1
//     and CC(C)=C1CCCCC1, and aromatic boron.
//
// On the eight MoleculeNet sets of Hu et al. and 20,000 molecules of ZINC250k, 177,095 in all,
// RDKit (release 2026.09.1) and this package accept the same molecules. Atoms and bonds are equal
// except for seven molecules (TestParity): three have several bonds to metals, and four are
// phthalocyanines in another Kekulé structure. Scaffolds are those of release 2022.09. Hydrogens,
// valences, hybridisation, conjugation, ring membership, configurations, stereocentres and Morgan
// fingerprints of 691,299 molecules are those of release 2026.09.1, with three exceptions
// (TestDigests): two oxides of tin and lead have conjugated bonds here, and a complex of iron has
// another dative bond. The rings of 7,113 molecules are RDKit's in two orders of their atoms
// (TestRings), and so are the standard forms of 130,458 salts and ions except for 36
// (TestStandardTable). The 36 are complexes of metals and forms that RDKit itself does not read.
// Packages fingerprint and descriptor build on them, and
// package depict draws molecules.
//
// # Molfiles
//
// Molfiles are read as RDKit's MolFromMolBlock reads them (release 2026.09). RDKit wrote 4,000
// molecules of public sets as V2000 and V3000; 3,998 are read as the molecule of the SMILES
// (TestMolfiles). The other two had a double bond without a configuration, which the drawing has.
// Known differences:
//
//   - RDKit reads queries, bonds of type 0 and aromatic bonds outside of rings as special kinds of
//     atoms and bonds. They are refused here.
//   - Where the neighbours of a stereocentre are drawn close to one line, RDKit may find its
//     wedges ambiguous. Here they count, unless those of an atom with three neighbours
//     contradict each other.
//   - In a chain of double bonds, all directions may be reversed, which means the same.
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
