package depict

import (
	"math"
	"math/cmplx"
)

// point is a place in the plane, or a vector. Multiplication by a point of length 1 turns a vector.
type point = complex128

// heading returns the vector of length 1 at an angle, in radians.
func heading(angle float64) point { return cmplx.Rect(1, angle) }

// cross returns the area that b spans with a; it is positive if b is to the left of a.
func cross(a, b point) float64 { return real(a)*imag(b) - imag(a)*real(b) }

func dot(a, b point) float64 { return real(a)*real(b) + imag(a)*imag(b) }

// lower returns the lower left corner of the rectangle around two points.
func lower(a, b point) point {
	x := min(real(a), real(b))
	y := min(imag(a), imag(b))
	return complex(x, y)
}

// upper returns the upper right corner of the rectangle around two points.
func upper(a, b point) point {
	x := max(real(a), real(b))
	y := max(imag(a), imag(b))
	return complex(x, y)
}

// meet reports whether two rectangles have a common point.
func meet(low, high, low2, high2 point) bool {
	if real(high) < real(low2) || real(high2) < real(low) {
		return false
	}
	return imag(high) >= imag(low2) && imag(high2) >= imag(low)
}

// isNear reports whether two points are nearer than a distance.
func isNear(a, b point, distance float64) bool {
	offset := a - b
	return dot(offset, offset) < distance*distance
}

// reflected returns p on the other side of the line through a and b.
func reflected(p, a, b point) point {
	axis := b - a
	return a + axis*cmplx.Conj((p-a)/axis)
}

// segmentsCross reports whether the lines from a to b and from c to d cross within both.
func segmentsCross(a, b, c, d point) bool {
	if !meet(lower(a, b), upper(a, b), lower(c, d), upper(c, d)) {
		return false
	}
	const tolerance = 1e-9 // lines that lie on one another are found by the distances of their ends
	first := cross(b-a, c-a) * cross(b-a, d-a)
	second := cross(d-c, a-c) * cross(d-c, b-c)
	return first < -tolerance && second < -tolerance
}

// nearest returns the point of the line from a to b that is nearest to p.
func nearest(p, a, b point) point {
	axis := b - a
	length := dot(axis, axis)
	if length == 0 {
		return a
	}
	share := min(max(dot(p-a, axis)/length, 0), 1)
	return a + axis*complex(share, 0)
}

// distanceToSegment returns the distance of p from the line from a to b.
func distanceToSegment(p, a, b point) float64 { return cmplx.Abs(p - nearest(p, a, b)) }

// isInside reports whether p is inside of a polygon.
func isInside(p point, polygon []point) bool {
	inside := false
	for k, a := range polygon {
		b := polygon[(k+1)%len(polygon)]
		height := imag(p)
		if imag(a) > height == (imag(b) > height) {
			continue
		}
		share := (height - imag(a)) / imag(b-a)
		if real(p) < real(a)+share*real(b-a) {
			inside = !inside
		}
	}
	return inside
}

// mean returns the centre of some points.
func mean(points []point) point {
	var sum point
	for _, p := range points {
		sum += p
	}
	return sum / complex(float64(len(points)), 0)
}

// chord returns the distance of two corners of a regular polygon with n sides of length 1, that many steps
// apart.
func chord(n, steps int) float64 {
	turn := math.Pi / float64(n)
	return math.Sin(turn*float64(steps)) / math.Sin(turn)
}

// positive returns an angle between 0 and 2π.
func positive(angle float64) float64 {
	angle = math.Mod(angle, 2*math.Pi)
	if angle < 0 {
		angle += 2 * math.Pi
	}
	return angle
}

// polygon returns the corners of a regular polygon with n sides of length 1.
func polygon(n int) []point {
	corners := make([]point, n)
	radius := 0.5 / math.Sin(math.Pi/float64(n))
	for k := range corners {
		corners[k] = cmplx.Rect(radius, 2*math.Pi*float64(k)/float64(n))
	}
	return corners
}
