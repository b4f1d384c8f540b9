package backendtest

import (
	"fmt"
	"math"

	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/tensor"
)

// unaryTolerance returns the tolerance of a unary function; see the package comment.
func (s *suite) unaryTolerance(op backend.UnaryOp) tolerance {
	switch op {
	case backend.ReLU, backend.Abs, backend.Sign:
		return tolerance{}
	case backend.Sqrt, backend.Reciprocal:
		return tolerance{ulps: 2}
	case backend.Exp, backend.Sigmoid, backend.Softplus, backend.Tanh:
		return tolerance{ulps: 4, slack: s.normal}
	}
	return tolerance{ulps: 4}
}

func checkUnary(s *suite) {
	for i, op := range backend.UnaryOps() {
		tol := s.unaryTolerance(op)
		unary := func(a matrix, alias int, note string, large bool) {
			s.Helper()
			if op == backend.InvSqrt { // ref has another least degree; see below
				a = a.mapped(func(v float64) float64 {
					if 0 < v && v < backend.LeastDegree(s.b.Precision()) {
						return 0
					}
					return v
				})
			}
			s.try(trial{
				op:    "Unary " + op.String(),
				note:  note,
				alias: alias,
				large: large,
				in:    []matrix{a},
				out:   []output{{before(a, alias), tol}},
				call: func(o operands) {
					o.Unary(o.out[0], op, o.in[0])
				},
			})
		}
		smallShapes(func(rows, cols int, large bool) {
			unary(s.random(rows, cols), 0, "", large)
			unary(s.random(rows, cols), 1, "", large)
		})
		aLargeShape(i, func(rows, cols int, large bool) {
			unary(s.random(rows, cols), i/3%2, "", large)
		})
		// Every special value at every place of a vector: a vector loop and its
		// tail must agree.
		special := s.special()
		for shift := range 5 {
			m := constant(1, len(special)+shift, 1)
			copy(m.v[shift:], special)
			unary(m, 0, "special values", false)
		}
		sweep := constant(401, 10, 0)
		for i := range sweep.v {
			magnitude := math.Exp2(float64(i-2005) / 50)
			sweep.v[i] = math.Copysign(magnitude, float64(i%2)-0.5) // ±2^-40 to ±2^40
		}
		unary(sweep, 0, "from ±2^-40 to ±2^40", false)
		for i := range sweep.v {
			sweep.v[i] = float64(i-2005) / 20 // about -100 to 100
		}
		unary(sweep, 0, "from -100 to 100", false)
		for i := range sweep.v {
			sweep.v[i] = 1 + float64(i-2005)/1e4
		}
		unary(sweep, 0, "around 1", false)
	}
	s.checkLeastDegree()
}

// checkLeastDegree checks InvSqrt around the least degree of the engine, which ref lacks.
func (s *suite) checkLeastDegree() {
	least := backend.LeastDegree(s.b.Precision())
	a := s.upload(row(
		s.smallest, s.normal, least/2, least*(1-s.eps/2), least, 4*least,
	))
	dst := s.upload(constant(1, 6, 0))
	s.b.Unary(dst, backend.InvSqrt, a)
	roots := row(0, 0, 0, 0, 1/math.Sqrt(least), 0.5/math.Sqrt(least))
	s.wantSame("InvSqrt around the least degree", download(s.b, dst), roots)
}

// before returns the contents of the destination of an elementwise primitive: those of
// the input if it is one, or else NaN.
func before(input matrix, alias int) matrix {
	if alias > 0 {
		return input
	}
	return poison(input.rows, input.cols)
}

// binaryCall is a form of the binary functions, as a method expression.
type binaryCall func(
	b backend.Backend,
	dst *tensor.Tensor,
	op backend.BinaryOp,
	x, y *tensor.Tensor,
)

func checkBinary(s *suite) {
	s.checkBinary("Binary", backend.Backend.Binary,
		func(rows, cols int) (int, int) {
			return rows, cols
		})
	// Both arguments may be one tensor.
	for _, op := range backend.BinaryOps() {
		s.try(trial{
			op:   "Binary " + op.String(),
			note: "of a tensor with itself",
			in:   []matrix{s.random(9, 13)},
			out:  []output{within(9, 13, 2)},
			call: func(o operands) {
				o.Binary(o.out[0], op, o.in[0], o.in[0])
			},
		})
	}
}

func checkBinaryRow(s *suite) {
	s.checkBinary("BinaryRow", backend.Backend.BinaryRow,
		func(_, cols int) (int, int) {
			return 1, cols
		})
}

func checkBinaryCol(s *suite) {
	s.checkBinary("BinaryCol", backend.Backend.BinaryCol,
		func(rows, _ int) (int, int) {
			return rows, 1
		})
}

func checkBinaryScalar(s *suite) {
	s.checkBinary(
		"BinaryScalar",
		backend.Backend.BinaryScalar,
		func(_, _ int) (int, int) { return 1, 1 },
	)
}

// checkBinary checks one of the forms of the binary functions; second returns the
// shape of its second argument.
func (s *suite) checkBinary(
	name string, call binaryCall, second func(rows, cols int) (int, int),
) {
	for i, op := range backend.BinaryOps() {
		var tol tolerance
		if op == backend.Div {
			tol.ulps = 2
		}
		binary := func(x, y matrix, alias int, note string, large bool) {
			s.Helper()
			dst := x
			if alias == 2 {
				dst = y
			}
			s.try(trial{
				op:    name + " " + op.String(),
				note:  note,
				alias: alias,
				large: large,
				in:    []matrix{x, y},
				out:   []output{{before(dst, alias), tol}},
				call: func(o operands) {
					call(o.Backend, o.out[0], op, o.in[0], o.in[1])
				},
			})
		}
		// data returns random matrices with ties, for the comparisons.
		data := func(rows, cols int) (x, y matrix) {
			x = s.random(rows, cols)
			y = s.random(second(rows, cols))
			for i := range y.v {
				if i < len(x.v) && i%5 == 0 {
					y.v[i] = x.v[i]
				}
			}
			return x, y
		}
		smallShapes(func(rows, cols int, large bool) {
			for alias := range 3 {
				x, y := data(rows, cols)
				if alias < 2 || x.rows == y.rows && x.cols == y.cols {
					binary(x, y, alias, "", large)
				}
			}
		})
		aLargeShape(i, func(rows, cols int, large bool) {
			x, y := data(rows, cols)
			binary(x, y, i/3%2, "", large)
		})
		s.specialPairs(second, func(x, y matrix, note string) {
			binary(x, y, 0, note, false)
		})
	}
}

// specialPairs calls try with arguments that have every pair of special values.
func (s *suite) specialPairs(
	second func(rows, cols int) (int, int), try func(x, y matrix, note string),
) {
	special := s.special()
	n := len(special)
	byRow := constant(n, n, 0)
	byCol := constant(n, n, 0)
	for i := range byRow.v {
		byRow.v[i] = special[i/n]
		byCol.v[i] = special[i%n]
	}
	switch rows, cols := second(n, n); {
	case rows == n && cols == n:
		try(byRow, byCol, "special values")
	case rows == 1 && cols == n:
		try(byRow, row(special...), "special values")
	case rows == n && cols == 1:
		try(byCol, matrix{n, 1, special}, "special values")
	default:
		for _, v := range special {
			try(
				row(special...),
				row(v),
				fmt.Sprintf("special values and %v", v),
			)
		}
	}
}

// factors are the constants of the linear primitives.
var factors = []float64{0, 1, -1, 0.5, -1.3}

func checkAffine(s *suite) {
	affine := func(
		a matrix, alpha, c float64, alias int, note string, large bool,
	) {
		s.Helper()
		t := trial{
			op:    "Affine",
			note:  fmt.Sprintf("alpha=%v c=%v%s", alpha, c, note),
			alias: alias,
			large: large,
			in:    []matrix{a},
			out:   []output{{before: before(a, alias)}},
			call: func(o operands) {
				o.Affine(o.out[0], alpha, o.in[0], c)
			},
		}
		scale := a.mapped(func(v float64) float64 {
			return math.Abs(alpha*v) + math.Abs(c)
		})
		t.out[0].tol = tolerance{ulps: 2, scale: &scale}
		s.try(t)
	}
	for _, alpha := range factors {
		for _, c := range factors {
			affine(s.random(7, 19), alpha, c, 0, "", false)
			affine(s.random(7, 19), alpha, c, 1, "", false)
		}
	}
	smallShapes(func(rows, cols int, large bool) {
		affine(s.random(rows, cols), 0.7, -0.2, 0, "", large)
		affine(s.random(rows, cols), -2.5, 0, 1, "", large)
	})
	for alias := range 2 {
		aLargeShape(alias, func(rows, cols int, large bool) {
			affine(s.random(rows, cols), 0.7, -0.2, alias, "", large)
		})
	}
	affine(row(s.special()...), 1, 0, 0, ", special values", false)
	affine(row(s.special()...), -1, 1, 0, ", special values", false)
}

// axpby tries one call of Axpby. The result overwrites nothing, x or y for alias 0, 1 or 2.
func (s *suite) axpby(
	x, y matrix, alpha, beta float64, alias int, note string, large bool,
) {
	s.Helper()
	dst := x
	if alias == 2 {
		dst = y
	}
	t := trial{
		op:    "Axpby",
		note:  fmt.Sprintf("alpha=%v beta=%v%s", alpha, beta, note),
		alias: alias,
		large: large,
		in:    []matrix{x, y},
		out:   []output{{before: before(dst, alias)}},
		call: func(o operands) {
			o.Axpby(o.out[0], alpha, o.in[0], beta, o.in[1])
		},
	}
	scale := x.mapped(math.Abs)
	for i := range scale.v {
		scale.v[i] = math.Abs(alpha*x.v[i]) + math.Abs(beta*y.v[i])
	}
	t.out[0].tol = tolerance{ulps: 2, scale: &scale}
	s.try(t)
}

func checkAxpby(s *suite) {
	for _, alpha := range factors {
		for _, beta := range factors {
			for alias := range 3 {
				x := s.random(7, 19)
				y := s.random(7, 19)
				s.axpby(x, y, alpha, beta, alias, "", false)
			}
		}
	}
	smallShapes(func(rows, cols int, large bool) {
		for alias := range 3 {
			x := s.random(rows, cols)
			y := s.random(rows, cols)
			s.axpby(x, y, 0.7, -0.2, alias, "", large)
		}
	})
	for alias := range 3 {
		aLargeShape(alias, func(rows, cols int, large bool) {
			x := s.random(rows, cols)
			y := s.random(rows, cols)
			s.axpby(x, y, 0.7, -0.2, alias, "", large)
		})
	}
	special := row(s.special()...)
	ones := constant(1, special.cols, 1)
	s.axpby(special, ones, 1, 1, 0, ", special values", false)
	s.axpby(ones, special, 1, -1, 0, ", special values", false)
	s.try(trial{
		op:   "Axpby",
		note: "of a tensor with itself",
		in:   []matrix{s.random(9, 13)},
		out:  []output{within(9, 13, 2)},
		call: func(o operands) {
			o.Axpby(o.out[0], 2, o.in[0], 0.5, o.in[0])
		},
	})
}
