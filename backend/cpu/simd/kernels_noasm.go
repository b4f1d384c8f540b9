//go:build !amd64 || noasm

package simd

func tiles32() *tileSet { return goTiles32 }
func tiles64() *tileSet { return goTiles64 }

func setMask(*gemmArgs, int, int, int) {}

func strips() *stripSet { panic(noAsm) }

var maskTable [16]uint32
