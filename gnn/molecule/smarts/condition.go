package smarts

// A field is a property of an atom that tests compare with a range.
type field int8

const (
	element field = iota
	aromatic
	charge
	isotope
	degree      // D
	heavyDegree // d
	neighbours  // X
	valence     // v
	hydrogens   // H
	implicit    // h
	rings       // R
	smallest    // r
	ringBonds   // x
	hetero      // z
	aliphatic   // Z: aliphatic heteroatoms
	orbitals    // ^
	fields
)

const maxValue = 1<<15 - 1

// An operator says how a test is made.
type operator int8

const (
	anything operator = iota
	within            // the field lies from low to high
	not               // the only part fails
	both              // all parts hold
	either            // some part holds
	ringOf            // the atom is in a ring of a size from low to high
	inside            // the atom is the first of an environment
)

// A test is a condition on an atom.
type test struct {
	op        operator
	field     field
	low, high int16
	graph     int32 // of an environment
	parts     []test
}

// classes returns the classes in which the test may hold and those in which it always holds.
func (t *test) classes() (possible, certain classes) {
	every := classes{^uint64(0), ^uint64(0), ^uint64(0), ^uint64(0)}
	switch t.op {
	case anything:
		return every, every
	case within:
		if t.field != element && t.field != aromatic {
			return every, classes{}
		}
		for class := range uint(256) {
			value := int16(class / 2)
			if t.field == aromatic {
				value = int16(class % 2)
			}
			if t.low <= value && value <= t.high {
				possible.add(class)
			}
		}
		return possible, possible
	case not:
		possible, certain = t.parts[0].classes()
		for w := range possible {
			possible[w], certain[w] = ^certain[w], ^possible[w]
		}
		return possible, certain
	case both:
		possible = every
		certain = every
		for i := range t.parts {
			p, c := t.parts[i].classes()
			for w := range p {
				possible[w] &= p[w]
				certain[w] &= c[w]
			}
		}
		return possible, certain
	case either:
		for i := range t.parts {
			p, c := t.parts[i].classes()
			for w := range p {
				possible[w] |= p[w]
				certain[w] |= c[w]
			}
		}
		return possible, certain
	}
	return every, classes{}
}

// join returns the test that combines parts.
func join(op operator, parts []test) test {
	if len(parts) == 1 {
		return parts[0]
	}
	return test{op: op, parts: parts}
}

func equal(f field, value int) test {
	return test{
		op:    within,
		field: f,
		low:   int16(value),
		high:  int16(value),
	}
}

func atLeast(f field, value int) test {
	return test{
		op:    within,
		field: f,
		low:   int16(value),
		high:  maxValue,
	}
}

// typed returns the test for an element that is aromatic or aliphatic.
func typed(z int, isAromatic int) test {
	return join(both, []test{equal(element, z), equal(aromatic, isAromatic)})
}
