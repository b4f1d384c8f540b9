//go:build arm64 && !noasm

package simd

const haveAsm = true

// Every arm64 machine that Go runs on has NEON.
func detect() []ISA {
	return []ISA{Generic, NEON}
}

// A vector of these tiles is two registers: 8 columns of float32.
var (
	neonTiles32 = &tileSet{
		mr:    6,
		lanes: 8,
		nv:    2,
		whole: true,
		kern:  sgemmNEON[:],
	}
	neonTiles64 = &tileSet{
		mr:    6,
		lanes: 4,
		nv:    2,
		whole: true,
		kern:  dgemmNEON[:],
	}
)

func tiles32() *tileSet {
	if level == NEON {
		return neonTiles32
	}
	return goTiles32
}

func tiles64() *tileSet {
	if level == NEON {
		return neonTiles64
	}
	return goTiles64
}

// setMask records how many lanes of the last vector are not valid.
func setMask(p *gemmArgs, w, lanes, size int) {
	p.mask = uint64(lanes - w)
}

func strips() *stripSet {
	return stripsNEON
}
