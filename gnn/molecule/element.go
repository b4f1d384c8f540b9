package molecule

// anyValence in a list of valences allows every larger one too.
const anyValence = -1

type element struct {
	symbol   string
	outer    int8   // electrons of the outer shell
	isotope  int16  // most common isotope
	early    bool   // left in the periodic table: a positive charge removes a bond
	valences []int8 // allowed valences, ascending; anyValence means no bound
}

// maxValence returns the largest allowed valence, or 0 or less for no bound.
func (e *element) maxValence() int32 { return int32(e.valences[len(e.valences)-1]) }

// defaultValence returns the smallest allowed valence, or anyValence.
func (e *element) defaultValence() int32 { return int32(e.valences[0]) }

const maxZ = 118

// elements is the periodic table, by atomic number; 0 is the wildcard. The
// valences, and the shells of elements far from organic chemistry, are model
// parameters rather than facts. They are RDKit's (release 2026.09), because
// this package accepts what RDKit accepts.
var elements = makeElements()

// Symbol returns the symbol of the element with an atomic number; that of 0 is *.
func Symbol(z int8) string { return elements[z].symbol }

// bySymbol has the atomic numbers of "X" and "Xy" at [X][0] and [X][y], and 0 if there
// is no such element. Letters count from 'A', second letters from 'a' = 1.
var bySymbol = indexSymbols()

// symbols has the symbols of the elements by atomic number; number 0 is a wildcard.
var symbols = [...]string{
	"*", "H", "He", "Li", "Be", "B", "C", "N", "O", "F", "Ne", "Na", "Mg", "Al", "Si", "P", "S",
	"Cl", "Ar", "K", "Ca", "Sc", "Ti", "V", "Cr", "Mn", "Fe", "Co", "Ni", "Cu", "Zn", "Ga",
	"Ge", "As", "Se", "Br", "Kr", "Rb", "Sr", "Y", "Zr", "Nb", "Mo", "Tc", "Ru", "Rh", "Pd",
	"Ag", "Cd", "In", "Sn", "Sb", "Te", "I", "Xe", "Cs", "Ba", "La", "Ce", "Pr", "Nd", "Pm",
	"Sm", "Eu", "Gd", "Tb", "Dy", "Ho", "Er", "Tm", "Yb", "Lu", "Hf", "Ta", "W", "Re", "Os",
	"Ir", "Pt", "Au", "Hg", "Tl", "Pb", "Bi", "Po", "At", "Rn", "Fr", "Ra", "Ac", "Th", "Pa",
	"U", "Np", "Pu", "Am", "Cm", "Bk", "Cf", "Es", "Fm", "Md", "No", "Lr", "Rf", "Db", "Sg",
	"Bh", "Hs", "Mt", "Ds", "Rg", "Cn", "Nh", "Fl", "Mc", "Lv", "Ts", "Og",
}

// isotopes has the mass number of the most common isotope of every element.
var isotopes = [maxZ + 1]int16{0,
	1, 4,
	7, 9, 11, 12, 14, 16, 19, 20,
	23, 24, 27, 28, 31, 32, 35, 40,
	39, 40, 45, 48, 51, 52, 55, 56, 59, 58, 63, 64, 69, 74, 75, 80, 79, 84,
	85, 88, 89, 90, 93, 98, 97, 102, 103, 106, 107, 114, 115, 120, 121, 130, 127, 132,
	133, 138, 139, 140, 141, 142, 145, 152, 153, 158, 159, 164, 165, 166, 169, 174, 175,
	180, 181, 184, 187, 192, 193, 195, 197, 202, 205, 208, 209, 209, 210, 222,
	223, 226, 227, 232, 231, 238, 236, 238, 241, 243, 247, 249, 252, 257, 258, 259, 262,
	267, 268, 271, 270, 269, 278, 281, 281, 285, 284, 289, 288, 293, 292, 294}

func makeElements() (table [maxZ + 1]element) {
	for z := range table {
		table[z] = element{symbol: symbols[z], isotope: isotopes[z], valences: []int8{anyValence}}
	}
	// Outer electrons count up in each period. The shells of the transition metals
	// are full, and start again at 2, with zinc, cadmium and mercury.
	for _, row := range [...]struct{ from, to, electrons int8 }{
		{1, 2, 1}, {3, 10, 1}, {11, 18, 1}, {19, 29, 1}, {30, 36, 2}, {37, 47, 1}, {48, 54, 2},
		{55, 58, 1}, {59, 71, 3}, {72, 79, 4}, {80, 86, 2}, {87, 90, 1}, {91, 103, 3},
	} {
		for z := row.from; z <= row.to; z++ {
			table[z].outer = row.electrons + z - row.from
		}
	}
	for z := 104; z <= maxZ; z++ {
		table[z].outer = 2
		table[z].early = true
	}
	for _, row := range [...]struct{ from, to int }{
		{3, 5}, {11, 13}, {19, 22}, {30, 32}, {37, 41}, {48, 51}, {55, 61}, {72, 73}, {80, 83}, {87, 93},
	} {
		for z := row.from; z <= row.to; z++ {
			table[z].early = true
		}
	}
	allow := func(valences []int8, zs ...int) {
		for _, z := range zs {
			table[z].valences = valences
		}
	}
	allow([]int8{0}, 2, 10, 18, 36, 86)
	allow([]int8{1}, 1, 9, 17, 35, 55, 87)
	allow([]int8{1, anyValence}, 3, 11, 19, 37)
	allow([]int8{2}, 4, 8)
	allow([]int8{2, anyValence}, 12, 20, 38, 56, 88)
	allow([]int8{3}, 5, 7, 13, 31, 49)
	allow([]int8{4}, 6, 14, 32)
	allow([]int8{3, 5}, 15, 33, 51, 83)
	allow([]int8{2, 4, 6}, 16, 34, 52, 84)
	allow([]int8{2, 4}, 50, 82)
	allow([]int8{1, 3, 5}, 53, 85)
	allow([]int8{0, 2, 4, 6}, 54)
	return table
}

func indexSymbols() (index [26][27]int8) {
	for z := 1; z <= maxZ; z++ {
		s := elements[z].symbol
		second := 0
		if len(s) == 2 {
			second = int(s[1]-'a') + 1
		}
		index[s[0]-'A'][second] = int8(z)
	}
	return index
}

// symbol returns the atomic number of a capital and a small letter, where 0 stands for no small
// letter. It returns 0 if there is no such element.
func symbol(first, second byte) int8 {
	switch {
	case second == 0:
		return bySymbol[first-'A'][0]
	case second < 'a' || second > 'z':
		return 0
	}
	return bySymbol[first-'A'][second-'a'+1]
}

// metal reports whether an element may accept electrons in a dative bond.
func metal(z int8) bool {
	return z > 2 && (z < 5 || z > 10) && (z < 14 || z > 18) && (z < 33 || z > 36) &&
		(z < 52 || z > 54) && z != 85 && z != 86
}

// moreElectronegative reports whether z1 is more electronegative than z2, by RDKit's approximation:
// more outer electrons, or as many and a lighter atom.
func moreElectronegative(z1, z2 int8) bool {
	o1 := elements[z1].outer
	o2 := elements[z2].outer
	return o1 > o2 || o1 == o2 && z1 < z2
}
