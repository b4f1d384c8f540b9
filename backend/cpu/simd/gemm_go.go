package simd

import (
	"math"
	"unsafe"
)

// bits returns x's bits in its own type.
func bits[T Float](x T) uint64 {
	if unsafe.Sizeof(x) == 4 {
		return uint64(math.Float32bits(float32(x)))
	}
	return math.Float64bits(float64(x))
}

func fromBits[T Float](b uint64) T {
	var x T
	if unsafe.Sizeof(x) == 4 {
		return T(math.Float32frombits(uint32(b)))
	}
	return T(math.Float64frombits(b))
}

// The plain tiles are 2×4: more sums at a time do not fit in the registers that
// the compiler uses.
var (
	goTiles32 = &tileSet{
		mr:    2,
		lanes: 4,
		nv:    1,
		pack:  true,
		kern:  [][2]func(*gemmArgs){{}, {goTile1[float32]}, {goTile2[float32]}},
	}
	goTiles64 = &tileSet{
		mr:    2,
		lanes: 4,
		nv:    1,
		pack:  true,
		kern:  [][2]func(*gemmArgs){{}, {goTile1[float64]}, {goTile2[float64]}},
	}
)

func goTile1[T Float](p *gemmArgs) {
	for t := range p.tiles {
		a := unsafe.Slice((*T)(unsafe.Add(p.a, uintptr(t)*p.aStep)), p.k)
		b := unsafe.Slice((*T)(p.b), 4*p.k)
		var s [4]T
		for len(a) >= 1 && len(b) >= 4 {
			x := a[0]
			s[0] += x * b[0]
			s[1] += x * b[1]
			s[2] += x * b[2]
			s[3] += x * b[3]
			a, b = a[1:], b[4:]
		}
		goWriteBack(p, t, &s)
	}
}

func goTile2[T Float](p *gemmArgs) {
	for t := range p.tiles {
		a := unsafe.Slice((*T)(unsafe.Add(p.a, uintptr(t)*p.aStep)), 2*p.k)
		b := unsafe.Slice((*T)(p.b), 4*p.k)
		var s0, s1, s2, s3, r0, r1, r2, r3 T
		for len(a) >= 6 && len(b) >= 12 { // three steps, whose bounds are checked once
			u := (*[6]T)(a)
			v := (*[12]T)(b)
			x := u[0]
			y := u[1]
			s0 += x * v[0]
			r0 += y * v[0]
			s1 += x * v[1]
			r1 += y * v[1]
			s2 += x * v[2]
			r2 += y * v[2]
			s3 += x * v[3]
			r3 += y * v[3]
			x = u[2]
			y = u[3]
			s0 += x * v[4]
			r0 += y * v[4]
			s1 += x * v[5]
			r1 += y * v[5]
			s2 += x * v[6]
			r2 += y * v[6]
			s3 += x * v[7]
			r3 += y * v[7]
			x = u[4]
			y = u[5]
			s0 += x * v[8]
			r0 += y * v[8]
			s1 += x * v[9]
			r1 += y * v[9]
			s2 += x * v[10]
			r2 += y * v[10]
			s3 += x * v[11]
			r3 += y * v[11]
			a = a[6:]
			b = b[12:]
		}
		for len(a) >= 2 && len(b) >= 4 {
			x, y := a[0], a[1]
			s0 += x * b[0]
			r0 += y * b[0]
			s1 += x * b[1]
			r1 += y * b[1]
			s2 += x * b[2]
			r2 += y * b[2]
			s3 += x * b[3]
			r3 += y * b[3]
			a, b = a[2:], b[4:]
		}
		goWriteBack(p, 2*t, &[4]T{s0, s1, s2, s3})
		goWriteBack(p, 2*t+1, &[4]T{r0, r1, r2, r3})
	}
}

func goWriteBack[T Float](p *gemmArgs, r int, s *[4]T) {
	c := unsafe.Slice((*T)(unsafe.Add(p.c, uintptr(r)*p.ldc)), p.cols)
	alpha := fromBits[T](p.alpha)
	beta := fromBits[T](p.beta)
	for j := range c {
		if p.mode == gemmUpdate {
			c[j] = beta*c[j] + alpha*s[j]
		} else {
			c[j] = alpha * s[j]
		}
	}
}
