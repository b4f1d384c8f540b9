//go:build (!amd64 && !arm64) || noasm

package simd

const haveAsm = false

func detect() []ISA {
	return []ISA{Generic}
}

func tiles32() *tileSet { return goTiles32 }
func tiles64() *tileSet { return goTiles64 }

func strips() *stripSet { panic(noAsm) }

func setMask(*gemmArgs, int, int, int) {}
