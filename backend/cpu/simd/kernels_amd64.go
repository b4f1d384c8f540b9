//go:build amd64 && !noasm

package simd

import (
	"unsafe"

	"golang.org/x/sys/cpu"
)

var (
	avx512Tiles32 = &tileSet{
		mr:    14,
		lanes: 16,
		nv:    2,
		kern:  sgemmAVX512[:],
	}
	avx512Tiles64 = &tileSet{
		mr:    14,
		lanes: 8,
		nv:    2,
		kern:  dgemmAVX512[:],
	}
	avx2Tiles32 = &tileSet{
		mr:    6,
		lanes: 8,
		nv:    2,
		kern:  sgemmAVX2[:],
	}
	avx2Tiles64 = &tileSet{
		mr:    6,
		lanes: 4,
		nv:    2,
		kern:  dgemmAVX2[:],
	}
)

func tiles32() *tileSet {
	return [...]*tileSet{goTiles32, avx2Tiles32, avx512Tiles32}[level]
}
func tiles64() *tileSet {
	return [...]*tileSet{goTiles64, avx2Tiles64, avx512Tiles64}[level]
}

// tilesBF16 is nil on a processor without AVX512_BF16. Its numbers are pairs.
var tilesBF16 = func() *tileSet {
	if !cpu.X86.HasAVX512BF16 {
		return nil
	}
	return &tileSet{
		mr:    14,
		lanes: 16,
		nv:    2,
		kern:  bgemmAVX512[:],
		pairs: pairsAVX512,
	}
}()

// maskTable holds 32 bytes of ones, then 32 of zeros: an unaligned load of 32
// bytes gives a vector mask for any number of lanes.
var maskTable = [16]uint32{
	0: 1<<32 - 1,
	1: 1<<32 - 1,
	2: 1<<32 - 1,
	3: 1<<32 - 1,
	4: 1<<32 - 1,
	5: 1<<32 - 1,
	6: 1<<32 - 1,
	7: 1<<32 - 1,
}

// setMask describes the last vector of a panel, of which w lanes are valid.
func setMask(p *gemmArgs, w, lanes, size int) {
	if level == AVX512 {
		p.mask = 1<<w - 1
		return
	}
	p.mask = uint64(lanes - w)
	p.maskVec = unsafe.Add(unsafe.Pointer(&maskTable), 32-w*size)
}

// strips returns the strip kernels of the level in use, which is not Generic.
func strips() *stripSet {
	if level == AVX512 {
		return stripsAVX512
	}
	return stripsAVX2
}

// smoLanes returns the lanes of the solver's kernels, 0 without any.
func smoLanes() int {
	return [...]int{0, 4, 8}[level]
}
