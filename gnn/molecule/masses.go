package molecule

import (
	_ "embed"
	"fmt"
	"strings"
	"sync"
)

//go:embed elements.txt
var elementsText string

// Element has properties of an element beyond its symbol and valences. The Element of a wildcard is
// zero.
type Element struct {
	Outer  int     // electrons of the outer shell
	Weight float64 // standard atomic weight, daltons
	Exact  float64 // mass of the most common isotope, daltons
	Radius float64 // bond radius, Å

	isotopes map[uint16]float64
}

// ElementOf returns the element of an atomic number from 0 to 118.
func ElementOf(z int8) *Element { return &readElements()[z] }

var readElements = sync.OnceValue(func() *[maxZ + 1]Element {
	table := new([maxZ + 1]Element)
	z := 0
	for line := range strings.Lines(elementsText) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		z++
		e := Element{Outer: int(elements[z].outer), isotopes: map[uint16]float64{}}
		var symbol string
		if _, err := fmt.Sscan(line, &symbol, &e.Weight, &e.Exact, &e.Radius); err != nil ||
			symbol != elements[z].symbol {
			panic(fmt.Sprintf("molecule: elements.txt: element %d: %q: %v", z, line, err))
		}
		for _, isotope := range strings.Fields(line)[4:] {
			var number uint16
			var mass float64
			if _, err := fmt.Sscanf(isotope, "%d:%g", &number, &mass); err != nil {
				panic(fmt.Sprintf("molecule: elements.txt: element %d: %q: %v", z, isotope, err))
			}
			e.isotopes[number] = mass
		}
		table[z] = e
	}
	return table
})

// Mass returns the mass of an atom without its hydrogens, in daltons: the mass of its isotope, or the
// mass number if the isotope is not listed. Without an isotope, it is the standard atomic weight.
func (a *Atom) Mass() float64 {
	e := ElementOf(a.Z)
	if a.Isotope == 0 || a.Z == 0 {
		return e.Weight
	}
	if mass, ok := e.isotopes[a.Isotope]; ok {
		return mass
	}
	return float64(a.Isotope)
}
