//go:build emulate

package kernels_test

import (
	"bytes"
	"math"
	"slices"
	"syscall"
	"testing"

	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/tensor"
)

// These tests run every kernel by itself against plain loops in float64, at the
// edges of its blocks, on memory that faults on either side, with the blocks and
// threads in several orders. Package backendtest holds the engine against the
// contract; what it cannot see is here: a read beyond a matrix, a missing
// barrier, an order that matters.

func generate(n int, f func(i int) float64) []float64 {
	x := make([]float64, n)
	for i := range x {
		x[i] = f(i)
	}
	return x
}

func add(x []float64, i int, v float64) { x[i] += v }

func TestElementwise(t *testing.T) {
	precisions(t, func(b *bench) {
		for _, n := range edges {
			a, c := b.random(n), b.random(n)
			a[n/2], c[n/3] = math.NaN(), 0
			b.flat("fill", n, out(repeat(n, 1.5)).exact(), 1.5, n)
			b.flat("axpby", n, out(generate(n, func(i int) float64 { return 0.5*a[i] - 2*c[i] })), input(a), input(c), 0.5, -2.0, 9.0, n)
			b.flat("axpby", n, out(generate(n, func(i int) float64 { return 0.5*a[i] + 9 })), input(a), null, 0.5, -2.0, 9.0, n)
			for op, f := range []func(x float64) float64{math.Exp, nil, nil, func(x float64) float64 { return 1 / (1 + math.Exp(-x)) },
				func(x float64) float64 { return math.Log1p(math.Exp(x)) }, math.Tanh, func(x float64) float64 { return max(x, 0) }, math.Abs} {
				if f != nil {
					b.flat("unary", n, out(generate(n, func(i int) float64 { return f(a[i]) })), input(a), op, n)
				}
			}
		}
	})
}

func TestBinary(t *testing.T) {
	ops := []func(x, y float64) float64{
		func(x, y float64) float64 { return x + y }, func(x, y float64) float64 { return x - y },
		func(x, y float64) float64 { return x * y }, func(x, y float64) float64 { return x / y },
		func(x, y float64) float64 { return max(x, y) },
	}
	precisions(t, func(b *bench) {
		for _, shape := range [][2]int{{1, 1}, {3, 4}, {5, 7}, {33, 32}, {9, 129}, {257, 3}, {40, 300}} {
			rows, cols := shape[0], shape[1]
			n := rows * cols
			a := b.random(n)
			a[n/2] = math.NaN()
			for mode, at := range []func(i int) int{
				func(i int) int { return i }, func(i int) int { return i % cols }, func(i int) int { return i / cols }, func(int) int { return 0 },
			} {
				c := b.random([]int{n, cols, rows, 1}[mode])
				for op, f := range ops {
					b.flat("binary", n, out(generate(n, func(i int) float64 { return b.round(f(a[i], c[at(i)])) })), input(a), input(c), op, mode, cols, n)
				}
			}
			row := b.random(cols)
			for relu := range 2 {
				biased := generate(n, func(i int) float64 {
					if x := a[i] + row[i%cols]; relu == 0 || !(x <= 0) { // NaN stays
						return x
					}
					return 0
				})
				b.flat("bias_relu", n, out(biased), input(a), input(row), relu, cols, n)
			}
			y := b.random(n)
			for _, chunks := range []int{1, 3} {
				gated, sums := make([]float64, n), make([]float64, chunks*cols)
				for k := range chunks {
					for e := bound(rows, k, chunks) * cols; e < bound(rows, k+1, chunks)*cols; e++ {
						if y[e] > 0 {
							gated[e] = y[e] - 1 // a gradient
							add(sums, k*cols+e%cols, gated[e])
						}
					}
				}
				dy := generate(n, func(e int) float64 { return b.round(y[e] - 1) })
				gated, sums = rounded(b, gated), rounded(b, sums)
				b.run("bias_relu_grad", tiles(chunks, cols), lanes, out(gated).exact(), out(sums), input(dy), input(y), rows, chunks, cols)
			}
		}
	})
}

// roundTF32 is the function tf32 of kernels.cu, by arithmetic.
func roundTF32(x float64) float64 {
	f := float64(float32(x))
	if f == 0 || math.IsInf(f, 0) || math.IsNaN(f) {
		return f
	}
	_, exponent := math.Frexp(f)
	unit := math.Ldexp(1, max(exponent, -125)-11)
	rounded := math.RoundToEven(f/unit) * unit
	if math.Abs(rounded) > math.MaxFloat32 {
		return math.Trunc(f/unit) * unit
	}
	return rounded
}

func TestSplit(t *testing.T) {
	special := []float64{
		0, 1, -1, 1 + 0x1p-11, 1 + 0x3p-11, 1 + 0x1p-11 + 0x1p-23, math.Pi, -math.E, 1e-30, 1e30, 0x1p-126, 0x1p-149, -0x1p-140 - 0x1p-149,
		math.MaxFloat32, -math.MaxFloat32, math.Inf(1), math.Inf(-1), math.NaN(),
	}
	precisions(t, func(b *bench) {
		for _, shape := range [][2]int{{1, 1}, {3, 4}, {33, 32}, {7, 300}} {
			rows, cols := shape[0], shape[1]
			x := b.random(rows * cols)
			for i := range min(len(special), len(x)-1) {
				x[len(x)-1-i] = float64(float32(special[i]))
			}
			for rest := range 2 {
				beside, below := make([]float64, 3*len(x)), make([]float64, 3*len(x))
				for i, v := range x {
					head := roundTF32(v)
					parts := [3]float64{2: head}
					if v-v == 0 {
						parts[rest], parts[1-rest] = roundTF32(float64(float32(v))-head), head
					}
					for p, y := range parts {
						beside[i/cols*3*cols+p*cols+i%cols], below[p*len(x)+i] = y, y
					}
				}
				b.flat("split", len(x), out(beside).exact(), input(x), cols, 3*cols, rest, len(x), cols)
				b.flat("split", len(x), out(below).exact(), input(x), len(x), cols, rest, len(x), cols)
			}
		}
	})
}

// TestCopyBlocks: as copy_block, block for block, with one that is empty.
func TestCopyBlocks(t *testing.T) {
	precisions(t, func(b *bench) {
		table := &array{kind: words}
		var many, one []region
		shapes := [][4]int{{1, 1, 1, 1}, {5, 8, 8, 16}, {0, 3, 3, 3}, {33, 7, 9, 12}, {70, 300, 900, 300}} // rows, cols, ldd, lds
		for _, shape := range shapes {
			rows, cols, ldd, lds := shape[0], shape[1], shape[2], shape[3]
			source := place(t, max(1, rows*lds)*b.p.Bytes(), true)
			defer syscall.Munmap(source.all)
			b.load(input(b.random(max(1, rows*lds))), source.data)
			b.more = append(b.more, source)
			before := b.random(max(1, rows*ldd))
			for _, list := range []*[]region{&many, &one} {
				r := place(t, len(before)*b.p.Bytes(), true)
				defer syscall.Munmap(r.all)
				b.load(input(before), r.data)
				b.more = append(b.more, r)
				*list = append(*list, r)
			}
			table.bits = append(table.bits, address(many[len(many)-1]), address(source), uint64(ldd), uint64(lds), uint64(rows), uint64(cols))
			args := []any{address(one[len(one)-1]), address(source), ldd, lds, rows, cols}
			b.launch("copy_block", "copy_block", blocks(2), threads, args, true)
		}
		b.launch("copy_blocks", "copy_blocks", [3]uint32{3, uint32(len(shapes)), 1}, threads, []any{table, len(shapes)}, true)
		for k := range shapes {
			if !bytes.Equal(one[k].data, many[k].data) {
				t.Errorf("block %d differs from copy_block's", k)
			}
		}
	})
}

func TestMoves(t *testing.T) {
	precisions(t, func(b *bench) {
		for _, shape := range [][2]int{{1, 1}, {3, 4}, {33, 32}, {31, 33}, {64, 65}, {7, 300}, {257, 5}} {
			rows, cols := shape[0], shape[1]
			n := rows * cols
			a := b.random(n)
			b.run("transpose", blocks(int(ceil(cols, 32)*ceil(rows, 32))), lanes,
				out(generate(n, func(i int) float64 { return a[i%rows*cols+i/rows] })).exact(), input(a), rows, cols)
			wide := b.random((rows-1)*(cols+4) + cols)
			b.flat("copy_block", n, inOut(wide, generate(len(wide), func(i int) float64 {
				if i%(cols+4) < cols {
					return a[i/(cols+4)*cols+i%(cols+4)]
				}
				return wide[i]
			})).exact(), input(a), cols+4, cols, rows, cols)
			b.flat("copy_block", n, out(generate(n, func(i int) float64 { return wide[i/cols*(cols+4)+i%cols] })).exact(), input(wide), cols, cols+4, rows, cols)
			idx := make([]int32, 2*rows+1)
			for i := range idx {
				idx[i] = int32(b.rng.IntN(rows))
			}
			b.flat("gather_rows", len(idx)*cols, out(generate(len(idx)*cols, func(i int) float64 { return a[int(idx[i/cols])*cols+i%cols] })).exact(),
				input(a), indices(idx), len(idx), cols)
		}
		for _, n := range []int{1, 2, 33, 300} {
			a := b.random(n * n)
			b.flat("fill_diagonal", n, inOut(a, generate(n*n, func(i int) float64 {
				if i/n == i%n {
					return -2
				}
				return a[i]
			})).exact(), -2.0, n)
		}
	})
}

// segmentations are divisions of rows into segments, some of them empty.
func segmentations(b *bench) [][]int32 {
	list := [][]int32{{0, 1}, {0, 0}, {0, 0, 3, 3, 3, 40, 41, 41}, {0, 700}, {0, 300, 611}}
	random := []int32{0}
	for range 60 {
		random = append(random, random[len(random)-1]+int32(b.rng.IntN(40)))
	}
	return append(list, random)
}

var widths = []int{1, 3, 8, 16, 31, 32, 33, 64, 100}

func last(ptr []int32) int { return int(ptr[len(ptr)-1]) }

func bound(n, k, chunks int) int { return n * k / chunks }

// TestReciprocal: the mean of n ones is 1 to the last digits, also in double, where the
// reciprocal of n is refined from the float's.
func TestReciprocal(t *testing.T) {
	precisions(t, func(b *bench) {
		digit := map[tensor.Precision]float64{tensor.Float32: 0x1p-23, tensor.Float64: 0x1p-52}[b.p]
		for n := 3; n <= 24; n++ {
			ones := make([]float64, n)
			for i := range ones {
				ones[i] = 1
			}
			mean := out([]float64{1, 0})
			mean.ulps = 4 * digit / b.eps
			b.run("segment_moments", tiles(1, 1), lanes, mean, input(ones), indices([]int32{0, int32(n)}), 1, 1, 1)
		}
	})
}

func TestSegments(t *testing.T) {
	precisions(t, func(b *bench) {
		for k, ptr := range segmentations(b) {
			for l, cols := range widths {
				if (k+l)%2 == 1 {
					continue
				}
				rows, segments := last(ptr), len(ptr)-1
				x := b.random(rows * cols)
				for _, chunks := range []int{1, 3} {
					part := segments * chunks
					sum := func(f func(r, j int) float64, limits []int32) []float64 {
						d := make([]float64, (len(limits)-1)*chunks*cols)
						for g := range len(limits) - 1 {
							lo, n := int(limits[g]), int(limits[g+1]-limits[g])
							for k := range chunks {
								for i := lo + bound(n, k, chunks); i < lo+bound(n, k+1, chunks); i++ {
									for j := range cols {
										add(d, (g*chunks+k)*cols+j, f(i, j))
									}
								}
							}
						}
						return d
					}
					plain := sum(func(r, j int) float64 { return x[r*cols+j] }, ptr)
					b.run("segment_sum", tiles(part, cols), lanes, out(plain), input(x), indices(ptr), rows, chunks, cols)
					b.run("segment_sum", tiles(chunks, cols), lanes, out(sum(func(r, j int) float64 { return x[r*cols+j] }, []int32{0, int32(rows)})),
						input(x), null, rows, chunks, cols)
					merged := make([]float64, segments*cols)
					for i, v := range plain {
						add(merged, i/(chunks*cols)*cols+i%cols, v)
					}
					b.run("merge_partials", [3]uint32{uint32(segments), uint32(ceil(cols, 8)), 1}, lanes, out(merged), input(plain), null, chunks, 8, cols)

					moments := make([]float64, 2*part*cols)
					for k := range part {
						g, lo := k/chunks, int(ptr[k/chunks])
						n := int(ptr[g+1]) - lo
						from, to := lo+bound(n, k%chunks, chunks), lo+bound(n, k%chunks+1, chunks)
						for j := range cols {
							mean, m2 := 0.0, 0.0
							for i := from; i < to; i++ {
								mean += x[i*cols+j] / float64(to-from)
							}
							for i := from; i < to; i++ {
								m2 += (x[i*cols+j] - mean) * (x[i*cols+j] - mean)
							}
							moments[2*k*cols+j], moments[(2*k+1)*cols+j] = mean, m2
						}
					}
					b.run("segment_moments", tiles(part, cols), lanes, out(moments), input(x), indices(ptr), segments, chunks, cols)
				}
				g := b.random(segments * cols)
				expanded := make([]float64, (rows+5)*cols) // zeros behind the segments
				for s := range segments {
					for i := ptr[s]; i < ptr[s+1]; i++ {
						copy(expanded[int(i)*cols:(int(i)+1)*cols], g[s*cols:])
					}
				}
				b.run("segment_expand", tiles(max(segments, 1), cols), lanes, out(expanded).exact(), input(g), indices(ptr), segments, rows+5, cols)
			}
		}
	})
}

// TestMomentsFarFromZero: deviations that are small beside the mean are not lost,
// nor if the first row says nothing of the others.
func TestMomentsFarFromZero(t *testing.T) {
	precisions(t, func(b *bench) {
		const n, cols = 1000, 33
		for _, first := range []float64{1000, 0} {
			x := generate(n*cols, func(i int) float64 {
				if i < cols {
					return first
				}
				return b.round(1000 + b.rng.NormFloat64()/10)
			})
			want := make([]float64, 2*cols)
			for j := range cols {
				for i := range n {
					want[j] += x[i*cols+j] / n
				}
				for i := range n {
					want[cols+j] += (x[i*cols+j] - want[j]) * (x[i*cols+j] - want[j])
				}
			}
			part := out(want)
			if first != 0 { // the deviations sum to about 10
				part.ulps = 0.01 / (b.eps * 1000)
			}
			b.run("segment_moments", tiles(1, cols), lanes, part, input(x), indices([]int32{0, n}), 1, 1, cols)
		}
	})
}

// TestCoefficientsFarFromZero: the variance of chunks whose means are large beside their
// differences, also where there are fewer rows than chunks.
func TestCoefficientsFarFromZero(t *testing.T) {
	const eps, chunks, cols, far = 1e-5, 4, 9, 1 << 20
	precisions(t, func(b *bench) {
		for _, n := range []int{3, 40} {
			gamma, beta := b.random(cols), b.random(cols)
			part, coef := make([]float64, 2*chunks*cols), make([]float64, 2*cols)
			mean, variance := make([]float64, cols), make([]float64, cols)
			bias, shifted := b.random(cols), make([]float64, cols)
			rows := func(k int) float64 { return float64(bound(n, k+1, chunks) - bound(n, k, chunks)) }
			for j := range cols {
				for k := range chunks {
					if rows(k) > 0 {
						part[2*k*cols+j], part[(2*k+1)*cols+j] = float64(far+b.rng.IntN(4)), b.round(rows(k)*b.rng.Float64())
					}
					mean[j] += rows(k) * part[2*k*cols+j] / float64(n)
				}
				for k := range chunks {
					variance[j] += (part[(2*k+1)*cols+j] + rows(k)*math.Pow(part[2*k*cols+j]-mean[j], 2)) / float64(n)
				}
				coef[j] = gamma[j] / math.Sqrt(variance[j]+eps)
				coef[cols+j] = beta[j] - coef[j]*b.round(mean[j])
				shifted[j] = mean[j] + bias[j]
			}
			b.run("norm_coefficients", blocks(2), threads, out(mean), out(variance), out(coef), out(shifted), input(part), input(gamma), input(beta),
				input(bias), indices([]int32{0, int32(n)}), eps, 1, chunks, cols)
		}
	})
}

func TestReductions(t *testing.T) {
	precisions(t, func(b *bench) {
		for _, n := range append(edges, 70001) {
			a, c := b.random(n), b.random(n)
			for _, parts := range []int{1, 3, 7} {
				dot, sum := make([]float64, parts), make([]float64, parts)
				for k := range parts {
					for i := bound(n, k, parts); i < bound(n, k+1, parts); i++ {
						dot[k] += a[i] * c[i]
						sum[k] += a[i]
					}
				}
				b.run("dot_partials", blocks(parts), threads, out(dot).as(doubles), input(a), input(c), n)
				b.run("dot_partials", blocks(parts), threads, out(sum).as(doubles), input(a), null, n)
			}
			total := 0.0
			for _, v := range a {
				total += v
			}
			b.run("sum_partials", blocks(1), threads, out([]float64{b.round(-3 * total)}), input(a).as(doubles), -3.0, n)
		}
		for _, shape := range [][2]int{{1, 1}, {9, 3}, {8, 33}, {17, 127}, {7, 128}, {9, 300}, {3, 1000}, {2, 5003}} {
			rows, cols := shape[0], shape[1]
			a := b.random(rows * cols)
			a[len(a)/2] = math.Inf(-1)
			if rows > 1 {
				a[0], a[2*cols-1] = math.NaN(), math.Inf(1)
			}
			for op := range 3 {
				want := generate(rows, func(i int) float64 {
					sum, top, exps := 0.0, math.Inf(-1), 0.0
					for _, v := range a[i*cols : (i+1)*cols] {
						sum += v
						top = max(top, v)
						exps += math.Exp(v)
					}
					return []float64{sum, top, math.Log(exps)}[op]
				})
				b.run("reduce_rows", blocks(int(ceil(rows, 8))), threads, out(want), input(a), op, rows, cols)
			}
		}
	})
}

// TestNormalizeRows: rows of length 1, and the gradient, with a row of zeros, one below the floor, one with NaN and
// one at the floor exactly.
func TestNormalizeRows(t *testing.T) {
	const floor = 0.25
	precisions(t, func(b *bench) {
		for _, shape := range [][2]int{{1, 1}, {9, 3}, {8, 33}, {17, 128}, {5, 300}} {
			rows, cols := shape[0], shape[1]
			x, dy := b.random(rows*cols), b.random(rows*cols)
			if rows >= 5 {
				clear(x[cols : 4*cols])
				x[2*cols] = floor / 2
				x[3*cols] = floor
				x[4*cols] = math.NaN()
			}
			r := generate(rows, func(i int) float64 {
				squares := 0.0
				for _, v := range x[i*cols : (i+1)*cols] {
					squares += v * v
				}
				return b.round(max(math.Sqrt(squares), floor))
			})
			y := generate(len(x), func(e int) float64 { return b.round(x[e] / r[e/cols]) })
			dx := generate(len(x), func(e int) float64 {
				row := e / cols
				along := 0.0
				for j := range cols {
					along += dy[row*cols+j] * y[row*cols+j]
				}
				if !(r[row] > floor) {
					along *= 0
				}
				return (dy[e] - along*y[e]) / r[row]
			})
			grid := blocks(int(ceil(rows, 8)))
			b.run("normalize_rows", grid, threads, out(y), out(r), input(x), floor, rows, cols)
			b.run("normalize_rows_grad", grid, threads, out(dx), input(dy), input(y), input(r), floor, rows, cols)
		}
	})
}

func TestSpMM(t *testing.T) {
	precisions(t, func(b *bench) {
		for _, rows := range []int{1, 7, 8, 33, 70} {
			for _, hub := range []int{0, 256, 257, 1500, 9000} {
				if hub > 257 && rows != 33 {
					continue
				}
				ptr, col := []int32{0}, []int32{}
				for i := range rows {
					n := b.rng.IntN(5)
					if i == rows/2 || i == rows-1 && hub == 257 {
						n = hub
					}
					for range n {
						col = append(col, int32(b.rng.IntN(rows)))
					}
					ptr = append(ptr, int32(len(col)))
				}
				classes := 5
				gather := make([]int32, rows)
				for i := range gather {
					gather[i] = int32(b.rng.IntN(classes))
				}
				val := b.random(len(col))
				for _, cols := range []int{1, 3, 32, 33, 64, 100, 300} {
					x := b.random(max(rows, classes) * cols)
					for k, self := range []float64{0, 1.5} {
						want := func(val []float64, at func(i int32) int) []float64 {
							d := make([]float64, rows*cols)
							for i := range rows {
								for j := range cols {
									for e := ptr[i]; e < ptr[i+1]; e++ {
										w := 1.0
										if val != nil {
											w = val[e]
										}
										add(d, i*cols+j, w*x[at(col[e])*cols+j])
									}
									add(d, i*cols+j, self*x[at(int32(i))*cols+j])
								}
							}
							return d
						}
						if self == 0 {
							b.places(ptr, col, val, x, cols)
						}
						lanes := []int{8, 16, 32}[(cols+k+rows)%3]
						width := 1
						if cols%4 == 0 {
							width = 4
						}
						grid := [3]uint32{ceil(rows, 256/lanes), ceil(cols, lanes*width), 1}
						sums := func(want []float64) *array {
							a := out(want)
							a.ulps = 64
							return a
						}
						b.run("spmm", grid, threads, sums(want(nil, func(i int32) int { return int(i) })),
							indices(ptr), indices(col), null, input(x), null, self, lanes, rows, cols)
						if hub < 300 {
							b.run("spmm", grid, threads, sums(want(val, func(i int32) int { return int(gather[i]) })),
								indices(ptr), indices(col), input(val), input(x), indices(gather), self, lanes, rows, cols)
						}
						if kinds := 1 + (cols+k+rows)%16; hub < 300 { // and what edges send
							d, counts := want(nil, func(i int32) int { return int(i) }), b.random(rows*kinds)
							tables := &array{kind: words}
							for k := range kinds {
								w := b.random(cols)
								r := place(b.T, cols*b.p.Bytes(), true)
								b.load(input(w), r.data)
								b.more, tables.bits = append(b.more, r), append(tables.bits, address(r))
								for e := range d {
									add(d, e, counts[e/cols*kinds+k]*w[e%cols])
								}
							}
							b.run("messages", grid, threads, sums(d), indices(ptr), indices(col), null, input(x), input(counts), tables, self, kinds, lanes, rows, cols)
							for _, r := range b.more {
								syscall.Munmap(r.all)
							}
							b.more = nil
						}
					}
				}
			}
		}
	})
}

// places tests the kernels for few long rows: a part for every row and 32 places, and
// their sums.
func (b *bench) places(ptr, col []int32, val, x []float64, cols int) {
	rows, nnz := len(ptr)-1, last(ptr)
	part, sums := poison((int(ceil(nnz, 32))+rows)*cols), make([]float64, rows*cols)
	for i := range rows {
		for e := ptr[i]; e < ptr[i+1]; e++ {
			for j := range cols {
				at := (int(e)/32+i)*cols + j
				if math.IsNaN(part[at]) {
					part[at] = 0 // others nobody writes
				}
				add(part, at, val[e]*x[int(col[e])*cols+j])
			}
		}
	}
	across := 32
	if cols%4 == 0 {
		across = 128
	}
	if nnz > 0 {
		b.run("spmm_places", [3]uint32{ceil(nnz, 256), ceil(cols, across), 1}, threads,
			out(part), indices(ptr), indices(col), input(val), input(x), rows, cols)
	}
	for i, v := range rounded(b, part) {
		if !math.IsNaN(v) {
			row := 0
			for int(ptr[row+1]+31)/32+row <= i/cols || ptr[row+1] == ptr[row] {
				row++
			}
			add(sums, row*cols+i%cols, v)
		}
	}
	b.run("merge_partials", [3]uint32{uint32(rows), ceil(cols, 32), 1}, [3]uint32{32, 8, 1},
		out(sums), input(part), indices(ptr), 0, 32, cols)
}

// TestNorm follows batch norm and readout through its kernels, forward and
// backward.
func TestNorm(t *testing.T) {
	const eps = 1e-5
	precisions(t, func(b *bench) {
		for _, batch := range []struct{ graphs, views []int32 }{
			{[]int32{0, 1}, []int32{0, 1}},
			{[]int32{0, 3, 3, 10, 11, 40}, []int32{0, 10, 40}},
			{[]int32{0, 0, 5, 5, 5, 300, 300}, []int32{0, 5, 300}},
			{[]int32{0, 4, 9, 9}, []int32{0, 0, 9, 9}},
			{[]int32{0, 70, 100, 500, 520, 700}, []int32{0, 700}},
		} {
			for _, cols := range []int{1, 5, 32, 33, 64} {
				graphs, views := batch.graphs, batch.views
				n, ng, nv := last(graphs), len(graphs)-1, len(views)-1
				const behind = 3 // rows of no graph
				h := b.random((n + behind) * cols)
				for i := range h {
					h[i] = max(h[i], 0)
				}
				gamma, beta := b.random(cols), b.random(cols)
				view := make([]int, n)
				graph := make([]int, n)
				for v := range nv {
					for i := views[v]; i < views[v+1]; i++ {
						view[i] = v
					}
				}
				for g := range ng {
					for i := graphs[g]; i < graphs[g+1]; i++ {
						graph[i] = g
					}
				}
				count := generate(nv, func(v int) float64 { return float64(views[v+1] - views[v]) })
				mean, variance := make([]float64, nv*cols), make([]float64, nv*cols)
				for i := range n * cols {
					add(mean, view[i/cols]*cols+i%cols, h[i]/count[view[i/cols]])
				}
				for i := range n * cols {
					v := view[i/cols]
					d := h[i] - mean[v*cols+i%cols]
					add(variance, v*cols+i%cols, d*d/count[v])
				}
				affine := func(mean, variance []float64, at func(v int) int) []float64 {
					coef := make([]float64, 2*nv*cols)
					for v := range nv {
						for j := range cols {
							scale := gamma[j] / math.Sqrt(variance[at(v)+j]+eps)
							coef[2*v*cols+j], coef[(2*v+1)*cols+j] = scale, beta[j]-scale*mean[at(v)+j]
						}
					}
					return coef
				}
				perView := func(v int) int { return v * cols }
				for _, chunks := range []int{1, 4} {
					part := make([]float64, 2*nv*chunks*cols)
					for k := range nv * chunks {
						v := k / chunks
						size := int(count[v])
						lo, hi := int(views[v])+bound(size, k%chunks, chunks), int(views[v])+bound(size, k%chunks+1, chunks)
						for j := range cols {
							m, s := 0.0, 0.0
							for i := lo; i < hi; i++ {
								m += h[i*cols+j] / float64(hi-lo)
							}
							m = b.round(m)
							for i := lo; i < hi; i++ {
								s += (h[i*cols+j] - m) * (h[i*cols+j] - m)
							}
							part[2*k*cols+j], part[(2*k+1)*cols+j] = m, b.round(s)
						}
					}
					coef := out(affine(mean, variance, perView))
					coef.ulps = 2e3 // a variance of one or two numbers may be small
					b.flat("norm_coefficients", nv*cols, out(mean), out(variance), coef, null, input(part), input(gamma), input(beta), null, indices(views), eps, nv, chunks, cols)
				}
				mean, variance = rounded(b, mean), rounded(b, variance)
				running, spread := b.random(cols), generate(cols, func(j int) float64 { return b.round(1 + float64(j)/9) })
				b.flat("norm_coefficients", nv*cols, input(running), input(spread), out(affine(running, spread, func(int) int { return 0 })),
					null, null, input(gamma), input(beta), null, indices(views), eps, nv, 1, cols)

				// Running statistics.
				rm, rv := slices.Clone(running), slices.Clone(spread)
				for v := range nv {
					if count[v] == 0 {
						continue
					}
					u := 1.0
					if count[v] > 1 {
						u = count[v] / (count[v] - 1)
					}
					for j := range cols {
						rm[j] = 0.9*rm[j] + 0.1*mean[v*cols+j]
						rv[j] = 0.9*rv[j] + 0.1*u*variance[v*cols+j]
					}
				}
				b.flat("norm_track", cols, inOut(running, rm), inOut(spread, rv), input(mean), input(variance), indices(views), 0.1, nv, cols)

				// Apply and pool.
				coef := rounded(b, affine(mean, variance, perView))
				y, sums, pooled := make([]float64, len(h)), make([]float64, ng*cols), make([]float64, ng*cols)
				for e := range n * cols {
					i, j := e/cols, e%cols
					y[e] = coef[2*view[i]*cols+j]*h[e] + coef[(2*view[i]+1)*cols+j]
					add(sums, graph[i]*cols+j, h[e])
					add(pooled, graph[i]*cols+j, y[e])
				}
				for _, dst := range []*array{out(y), null} {
					p := out(pooled)
					p.ulps = 4e3 // scale·h and shift may be 300 times their sum
					if dst != null {
						dst.ulps = p.ulps
					}
					b.run("norm_readout", tiles(ng+1, cols), lanes, dst, out(sums), p, input(h), input(coef),
						indices(graphs), indices(views), ng, nv, n+behind, cols)
				}

				// Backward.
				dy, dpooled := b.random(len(h)), b.random(ng*cols)
				k := rounded(b, b.random(3*nv*cols))
				for form := range 3 {
					d := func(i, j int) (v float64) {
						if form != 1 {
							v += dy[i*cols+j]
						}
						if form != 2 {
							v += dpooled[graph[i]*cols+j]
						}
						return v
					}
					given, pool := input(dy), input(dpooled)
					if form == 1 {
						given = null
					}
					if form == 2 {
						pool = null
					}
					for per := range 2 {
						mu := mean
						if per == 0 {
							mu = running
						}
						part := make([]float64, 2*ng*cols)
						for e := range n * cols {
							i, j := e/cols, e%cols
							add(part, 2*graph[i]*cols+j, d(i, j))
							add(part, (2*graph[i]+1)*cols+j, d(i, j)*(h[e]-mu[per*view[i]*cols+j]))
						}
						of := null
						if per == 1 {
							of = out(make([]float64, n)).as(ints).exact()
							for i, g := range graph {
								of.want[i] = float64(g)
							}
						}
						b.run("norm_grad_partials", tiles(ng, cols), lanes, out(part), of, given, pool, input(h), input(mu),
							indices(graphs), indices(views), per, ng, nv, cols)
						if per == 0 || form > 0 {
							continue
						}
						part = rounded(b, part)
						want, dgamma, dbeta := make([]float64, 3*nv*cols), make([]float64, cols), make([]float64, cols)
						for v := range nv {
							for j := range cols {
								sum, proj := 0.0, 0.0
								for g := range ng {
									if graphs[g+1] > graphs[g] && view[graphs[g]] == v {
										sum += part[2*g*cols+j]
										proj += part[(2*g+1)*cols+j]
									}
								}
								rstd := 1 / math.Sqrt(variance[v*cols+j]+eps)
								k1, k2, k3 := gamma[j]*rstd, 0.0, 0.0
								if count[v] > 0 {
									k3 = -k1 * rstd * rstd * proj / count[v]
									k2 = -k1*sum/count[v] - k3*mean[v*cols+j]
								}
								want[3*v*cols+j], want[(3*v+1)*cols+j], want[(3*v+2)*cols+j] = k1, k2, k3
								dgamma[j] += proj * rstd
								dbeta[j] += sum
							}
						}
						b.run("norm_grad_coefficients", blocks(int(ceil(cols, 8))), lanes, out(want), out(dgamma), out(dbeta),
							input(part), input(mean), input(variance), input(gamma), indices(graphs), indices(views), eps, 0, ng, nv, cols)
						for i := range want { // k1 of the running statistics, and nothing else
							want[i] = 0
							if i/cols%3 == 0 {
								want[i] = gamma[i%cols] / math.Sqrt(spread[i%cols]+eps)
							}
						}
						for j := range cols {
							dgamma[j] = 0
							for g := range ng {
								dgamma[j] += part[(2*g+1)*cols+j] / math.Sqrt(spread[j]+eps)
							}
						}
						b.run("norm_grad_coefficients", blocks(int(ceil(cols, 8))), lanes, out(want), out(dgamma), out(dbeta),
							input(part), input(running), input(spread), input(gamma), indices(graphs), indices(views), eps, 1, ng, nv, cols)
					}
					want := make([]float64, len(h))
					for e := range n * cols {
						i, j := e/cols, e%cols
						if h[e] > 0 {
							want[e] = k[3*view[i]*cols+j]*d(i, j) + k[(3*view[i]+1)*cols+j] + k[(3*view[i]+2)*cols+j]*h[e]
						}
					}
					b.run("norm_grad_apply", tiles(ng+1, cols), lanes, out(want), given, pool, input(h), input(k),
						indices(graphs), indices(views), ng, nv, n+behind, cols)
				}
			}
		}
	})
}

func rounded(b *bench, x []float64) []float64 {
	return generate(len(x), func(i int) float64 { return b.round(x[i]) })
}

func TestTraining(t *testing.T) {
	precisions(t, func(b *bench) {
		for _, n := range edges {
			for k, keep := range []float64{0.9, 0.3} {
				step, seed := float64(3+k), uint64(k)<<63+77
				b.flat("dropout_mask", n, out(generate(n, func(i int) float64 {
					if backend.DropoutKeep(keep, seed, uint64(step), uint64(i)) {
						return 1 / keep
					}
					return 0
				})).exact(), input([]float64{step}), keep, seed, n)
			}
			p, g, m, v := b.random(n), b.random(n), b.random(n), generate(n, func(i int) float64 { return b.round(0.1 + float64(i%7)) })
			rate := b.round(0.01)
			const beta1, beta2, eps, decay, t = 0.9, 0.999, 1e-8, 0.1, 5.0
			wp, wm, wv := slices.Clone(p), slices.Clone(m), slices.Clone(v)
			for i := range p {
				x := g[i] + decay*p[i]
				wm[i] = beta1*m[i] + (1-beta1)*x
				wv[i] = beta2*v[i] + (1-beta2)*x*x
				wp[i] -= rate / (1 - math.Pow(beta1, t)) * wm[i] / (math.Sqrt(wv[i])/math.Sqrt(1-math.Pow(beta2, t)) + eps)
			}
			b.flat("adam", n, inOut(p, wp), input(g), inOut(m, wm), inOut(v, wv), input([]float64{rate}), input([]float64{t}), beta1, beta2, eps, decay, n)
			b.flat("adam", n, inOut(p, p).exact(), input(g), inOut(m, m).exact(), inOut(v, v).exact(), input([]float64{rate}), input([]float64{math.NaN()}), beta1, beta2, eps, decay, n)
		}
	})
}

func TestPercentile(t *testing.T) {
	precisions(t, func(b *bench) {
		passes := b.p.Bytes()
		for _, n := range []int{2, 3, 9, 33, 65} {
			for _, ties := range []bool{false, true} {
				var s [2][]float64
				var sorted [2][]int
				for m := range s {
					s[m] = b.random(n * n)
					if ties {
						s[m] = generate(n*n, func(int) float64 { return []float64{0, math.Copysign(0, -1), -1, 0.5}[b.rng.IntN(4)] })
					}
					for i := range n {
						for j := range n {
							if j > i {
								sorted[m] = append(sorted[m], i*n+j)
							} else {
								s[m][i*n+j] = math.NaN() // must not matter
							}
						}
					}
					slices.SortStableFunc(sorted[m], func(x, y int) int {
						switch {
						case s[m][x] < s[m][y]:
							return -1
						case s[m][x] > s[m][y]:
							return 1
						}
						return 0
					})
				}
				entries := n * (n - 1) / 2
				for _, rank := range []int{0, entries / 3, entries - 1} {
					ranks := [2]int{rank, min(rank+1, entries-1)}
					second := 0.25
					if ranks[1] == rank {
						second = 0
					}
					hist := make([]float64, 2*2*passes*256)
					for pass := range passes {
						before := slices.Clone(hist)
						shift := 8 * (passes - 1 - pass)
						for m := range s {
							for r := range ranks {
								wanted := b.key(s[m][sorted[m][ranks[r]]]) >> shift
								for _, at := range sorted[m] {
									if k := b.key(s[m][at]) >> shift; k>>8 == wanted>>8 {
										hist[((2*m+r)*passes+pass)*256+int(k&255)]++
									}
								}
							}
						}
						b.run("percentile_count", [3]uint32{min(uint32(n), 128), 2, 1}, threads,
							inOut(before, hist).as(ints).exact(), input(s[0]), input(s[1]), n, rank, pass)
					}
					theta := generate(2, func(m int) float64 {
						if second == 0 {
							return s[m][sorted[m][rank]]
						}
						return (1-second)*s[m][sorted[m][rank]] + second*s[m][sorted[m][rank+1]]
					})
					counts := input(hist).as(ints)
					b.run("percentile_value", blocks(2), [3]uint32{32, 1, 1}, out(theta), counts, input(s[0]), input(s[1]), second, n, rank)
					weights := make([]float64, n*n)
					weights[sorted[0][rank]] = 1 - second
					if second != 0 {
						weights[sorted[0][rank+1]] = second
					}
					b.run("percentile_weights", blocks(1), threads, inOut(make([]float64, n*n), weights).exact(), counts, input(s[0]), second, n, rank)
				}
			}
		}
	})
}

// key returns an integer of the order of v, as the precision holds it.
func (b *bench) key(v float64) uint64 {
	const top = 1 << 63
	bits, drop := math.Float64bits(v), 0
	if b.p == tensor.Float32 {
		bits, drop = uint64(math.Float32bits(float32(v)))<<32, 32
	}
	if bits&top != 0 {
		bits = top - bits&^top
	} else {
		bits += top
	}
	return bits >> drop
}

func TestContrast(t *testing.T) {
	const tau, kappa = 0.2, 4.0
	precisions(t, func(b *bench) {
		for _, n := range []int{1, 2, 16, 33, 130, 257} {
			m := 2 * n
			s := make([]float64, m*m)
			for i := range m {
				s[i*m+i] = 1
				for j := range i {
					v := b.round(math.Tanh(b.rng.NormFloat64()))
					s[i*m+j], s[j*m+i] = v, v
				}
			}
			view := func(i int) int { return i / n }
			e, invz, terms := make([]float64, m*m), make([]float64, m), make([]float64, m)
			a := [2][]float64{make([]float64, n*n), make([]float64, n*n)}
			for i := range m {
				z := 0.0
				for j := range m {
					if j != i {
						e[i*m+j] = math.Exp((s[i*m+j] - 1) / tau)
						z += e[i*m+j]
					}
					if view(i) == view(j) {
						a[view(i)][i%n*n+j%n] = s[i*m+j]
					}
				}
				invz[i] = 1 / z
				terms[i] = math.Log(z) + (1-s[i*m+(i+n)%m])/tau
			}
			t64 := func() *array { // summed in double, of numbers of the precision
				x := out(terms).as(doubles)
				x.ulps = 64
				return x
			}
			wide := out(invz)
			wide.ulps = 64
			b.run("contrast_rows", blocks(m), threads, inOut(s, e), wide, t64(), out(a[0]), out(a[1]), tau, n)
			b.run("contrast_rows", blocks(m), threads, inOut(s, e), wide, t64(), null, null, tau, n)
			e, invz = rounded(b, e), rounded(b, invz)

			theta := []float64{0.25, -0.5}
			g := [2][]float64{make([]float64, n*n), make([]float64, n*n)}
			r := make([]float64, m)
			for i := range m {
				v, degree := view(i), 0.0
				for j := range n {
					if j != i%n {
						x := 1 / (1 + math.Exp(-kappa*(b.round(a[v][i%n*n+j])-theta[v])))
						g[v][i%n*n+j] = x
						degree += x
					}
				}
				if degree > 0 {
					r[i] = 1 / math.Sqrt(degree)
				}
			}
			b.run("contrast_graph", blocks(m), threads, inOut(rounded(b, a[0]), g[0]), inOut(rounded(b, a[1]), g[1]), out(r), input(theta), kappa, n)
			g[0], g[1], r = rounded(b, g[0]), rounded(b, g[1]), rounded(b, r)

			squares, w := make([]float64, n), make([]float64, m)
			diff := func(i, j int) (d, m0, m1 float64) {
				m0, m1 = r[i]*g[0][i*n+j]*r[j], r[n+i]*g[1][i*n+j]*r[n+j]
				return m0 - m1, m0, m1
			}
			for i := range n {
				for j := range n {
					d, m0, m1 := diff(i, j)
					squares[i] += d * d
					w[i] += 2 * r[i] * r[i] * d * m0
					w[n+i] -= 2 * r[n+i] * r[n+i] * d * m1
				}
			}
			b.run("contrast_match", blocks(n), threads, out(squares).as(doubles), out(w), input(g[0]), input(g[1]), input(r), n)
			w = rounded(b, w)

			const dc, dg, alphaC, alphaG = 0.75, -2.0, 0.5, 3.0
			for form := range 4 { // which of dc and dg are there
				want := make([]float64, m*m)
				for i := range m {
					for j := range m {
						x := 0.0
						if form&1 != 0 {
							x = e[i*m+j] * (invz[i] + invz[j])
							if j == (i+n)%m {
								x -= 2
							}
							x *= dc * alphaC
						}
						if v := view(i); form&2 != 0 && view(j) == v {
							d, _, _ := diff(i%n, j%n)
							y := g[v][i%n*n+j%n]
							x += dg * alphaG * y * (1 - y) * (float64(4-8*v)*d*r[i]*r[j] - w[i] - w[j])
						}
						want[i*m+j] = x
					}
				}
				pc, pg := null, null
				if form&1 != 0 {
					pc = input([]float64{dc})
				}
				if form&2 != 0 {
					pg = input([]float64{dg})
				}
				b.run("contrast_gradient", blocks(m), threads, out(want), input(e), input(invz), input(g[0]), input(g[1]), input(r), input(w), pc, pg, alphaC, alphaG, n)
				if form&2 == 0 {
					b.run("contrast_gradient", blocks(m), threads, out(want), input(e), input(invz), null, null, null, null, pc, pg, alphaC, alphaG, n)
				}
			}
		}
	})
}

// TestGroups runs batch norm by itself, forward and backward.
func TestGroups(t *testing.T) {
	const eps = 1e-5
	precisions(t, func(b *bench) {
		for _, groups := range [][]int32{{0, 1}, {0, 10, 40}, {0, 0, 33, 33, 300}} {
			for _, cols := range []int{1, 5, 32, 33} {
				const chunks, behind = 3, 2
				ng, n := len(groups)-1, last(groups)
				x, dy := b.random((n+behind)*cols), b.random((n+behind)*cols)
				mean, beta, coef := b.random(ng*cols), b.random(cols), b.random(2*ng*cols)
				gamma, variance := b.random(cols), generate(ng*cols, func(i int) float64 { return b.round(0.5 + float64(i%5)) })
				k := b.random(3 * ng * cols) // the first of three is the norm's scale
				for i, v := range variance {
					k[i/cols*3*cols+i%cols] = b.round(gamma[i%cols] / math.Sqrt(v+eps))
				}
				group := generate(n, func(i int) float64 {
					g := 0
					for groups[g+1] <= int32(i) {
						g++
					}
					return float64(g)
				})
				for relu := range 2 {
					shift, gated := null, dy
					if relu == 1 {
						shift = input(beta)
						gated = generate(n*cols, func(e int) float64 {
							if g, j := int(group[e/cols]), e%cols; k[3*g*cols+j]*(x[e]-mean[g*cols+j])+beta[j] > 0 {
								return dy[e]
							}
							return 0
						})
					}
					applied, dx := make([]float64, len(x)), make([]float64, len(x))
					part := make([]float64, 2*ng*chunks*cols)
					for e := range n * cols {
						g, j := int(group[e/cols]), e%cols
						centred := x[e] - mean[g*cols+j]
						applied[e] = coef[2*g*cols+j]*centred + beta[j]
						if relu == 1 {
							applied[e] = max(applied[e], 0)
						}
						dx[e] = k[3*g*cols+j]*gated[e] + k[(3*g+1)*cols+j] + k[(3*g+2)*cols+j]*centred
						lo, size, at := int(groups[g]), int(groups[g+1]-groups[g]), 0
						for lo+bound(size, at+1, chunks) <= e/cols {
							at++
						}
						part[2*(g*chunks+at)*cols+j] += gated[e]
						part[(2*(g*chunks+at)+1)*cols+j] += gated[e] * centred
					}
					b.flat("norm_apply", len(x), out(applied), input(x), input(coef), input(mean), input(beta), indices(groups), relu, ng, n+behind, cols)
					b.run("group_grad_partials", tiles(ng*chunks, cols), lanes, out(part), input(dy), input(x), input(mean), input(variance), input(gamma), shift,
						indices(groups), eps, chunks, cols)
					b.flat("group_grad_apply", len(x), out(dx), input(dy), input(x), input(k), input(mean), shift, indices(groups), ng, n+behind, cols)
				}
				part := b.random(2 * ng * chunks * cols)
				want, dgamma, dbeta := make([]float64, 3*ng*cols), make([]float64, cols), make([]float64, cols)
				for g := range ng {
					for j := range cols {
						sum, proj := 0.0, 0.0
						for c := range chunks {
							sum += part[2*(g*chunks+c)*cols+j]
							proj += part[(2*(g*chunks+c)+1)*cols+j]
						}
						rstd, count := 1/math.Sqrt(variance[g*cols+j]+eps), float64(groups[g+1]-groups[g])
						want[3*g*cols+j] = gamma[j] * rstd
						if count > 0 {
							want[(3*g+1)*cols+j] = -gamma[j] * rstd * sum / count
							want[(3*g+2)*cols+j] = -gamma[j] * rstd * rstd * rstd * proj / count
						}
						dgamma[j] += proj * rstd
						dbeta[j] += sum
					}
				}
				b.run("group_grad_coefficients", blocks(int(ceil(cols, 8))), lanes, out(want), out(dgamma), out(dbeta), out(make([]float64, cols)), input(part), input(variance), input(gamma),
					indices(groups), eps, ng, chunks, cols)
			}
		}
	})
}

// TestMany runs what goes over a table of tensors.
func TestMany(t *testing.T) {
	precisions(t, func(b *bench) {
		const rate, step, beta1, beta2, eps, decay = 0.25, 3.0, 0.9, 0.999, 1e-8, 0.1
		sizes := []int{1, 33, 5003}
		table, part := &array{kind: words}, []float64{}
		var mem, alone [][]region
		for _, n := range sizes {
			x := [][]float64{b.random(n), b.random(n), b.random(n), repeat(n, 0.5)} // p, g, m, v
			var many, one []region
			for _, v := range x {
				for _, list := range []*[]region{&many, &one} {
					r := place(t, n*b.p.Bytes(), true)
					defer syscall.Munmap(r.all)
					b.load(input(v), r.data)
					b.more = append(b.more, r)
					*list = append(*list, r)
				}
				table.bits = append(table.bits, address(many[len(many)-1]))
			}
			table.bits = append(table.bits, uint64(n))
			mem, alone = append(mem, many), append(alone, one)
			for k := range 8 {
				sum := 0.0
				for _, v := range x[1][bound(n, k, 8):bound(n, k+1, 8)] {
					sum += v * v
				}
				part = append(part, sum)
			}
		}
		grid := [3]uint32{8, uint32(len(sizes)), 1}
		b.run("square_sums_many", grid, threads, out(part).as(doubles), table, len(sizes))

		args := []any{table, input([]float64{rate}), input([]float64{step}), beta1, beta2, eps, decay, len(sizes)}
		b.launch("adam_many", "adam_many", grid, threads, args, true)
		for k, n := range sizes {
			one := alone[k]
			args := []any{address(one[0]), address(one[1]), address(one[2]), address(one[3]), input([]float64{rate}), input([]float64{step}), beta1, beta2, eps, decay, n}
			b.launch("adam", "adam", blocks(2), threads, args, true)
			for i := range one {
				if !bytes.Equal(one[i].data, mem[k][i].data) {
					t.Errorf("adam_many: tensor %d, array %d of p, g, m, v: not adam's bits", k, i)
				}
			}
		}
	})
}

// TestGINLayer follows the dense layers of a GIN layer through the kernels that
// run them in one, forward and backward.
func TestGINLayer(t *testing.T) {
	precisions(t, func(b *bench) {
		for _, batch := range []struct {
			graphs, views []int32
			chunks        int
		}{
			{[]int32{0, 1}, []int32{0, 1}, 1},
			{[]int32{0, 0, 5, 5, 33, 70}, []int32{0, 5, 70}, 2},
			{[]int32{0, 4, 9, 9}, []int32{0, 0, 9, 9}, 1},
			{[]int32{0, 100, 150, 200}, []int32{0, 150, 200}, 1}, // chunks longer than a tile
			{[]int32{0, 64, 128, 300}, []int32{0, 128, 300}, 3},
		} {
			for _, shape := range [][3]int{{3, 5, 4}, {32, 32, 32}, {37, 32, 16}, {64, 64, 64}, {1, 33, 2}} {
				in, hid, width := shape[0], shape[1], shape[2]
				graphs, views, chunks := batch.graphs, batch.views, batch.chunks
				ng, nv, rows := len(graphs)-1, len(views)-1, last(views)
				const behind = 5
				n := rows + behind
				agg, w1, b1 := b.random(n*in), b.random(in*hid), b.random(hid)
				w2, b2 := b.random(hid*width), b.random(width)
				dense := func(x, w, bias []float64, in, out int) (product, activated []float64) {
					product = generate(n*out, func(e int) (sum float64) {
						for k := range in {
							sum += x[e/out*in+k] * w[k*out+e%out]
						}
						return sum
					})
					return product, generate(n*out, func(e int) float64 { return max(product[e]+bias[e%out], 0) })
				}
				product, h1 := dense(agg, w1, b1, in, hid)
				_, h2 := dense(h1, w2, b2, hid, width)
				part := make([]float64, 2*nv*chunks*width)
				for k := range nv * chunks {
					lo, size := int(views[k/chunks]), int(views[k/chunks+1]-views[k/chunks])
					from, to := lo+bound(size, k%chunks, chunks), lo+bound(size, k%chunks+1, chunks)
					for j := range width {
						for i := from; i < to; i++ {
							part[2*k*width+j] += h2[i*width+j] / float64(to-from)
						}
						for i := from; i < to; i++ {
							part[(2*k+1)*width+j] += math.Pow(h2[i*width+j]-part[2*k*width+j], 2)
						}
					}
				}
				grid := blocks((nv + 1) * chunks)
				o := func(v []float64) *array { x := out(v); x.ulps = 64; return x }
				// A kernel for widths of at most 32, and one for others.
				kernel := func(narrow, wide string, widths ...int) string {
					if slices.Max(widths) > 32 {
						return wide
					}
					return narrow
				}
				b.run(kernel("gin_mlp", "gin_mlp_wide", in, hid, width), grid, threads, o(h1), o(h2), o(part), input(agg), input(w1), input(b1), input(w2), input(b2),
					indices(views), nv, chunks, n, in, hid, width)
				given := inOut(rounded(b, product), h1)
				given.ulps = 64
				b.run(kernel("gin_mlp", "gin_mlp_wide", hid, width), grid, threads, given, o(h2), null, null, null, input(b1), input(w2), input(b2),
					indices(views), nv, chunks, n, 9999, hid, width)

				// Backward.
				h1, h2 = rounded(b, h1), rounded(b, h2)
				dy, dpooled, coef := b.random(n*width), b.random(ng*width), b.random(3*nv*width)
				graph := make([]int32, rows)
				for g := range ng {
					for i := graphs[g]; i < graphs[g+1]; i++ {
						graph[i] = int32(g)
					}
				}
				for form := range 4 {
					dense, wanted := form&1 == 0, form&2 == 0 // dense features; dy beside dpooled
					d, dh1 := make([]float64, n*width), make([]float64, n*hid)
					for g := range ng {
						for i := graphs[g]; i < graphs[g+1]; i++ {
							v := 0
							for views[v+1] <= i {
								v++
							}
							for j := range width {
								e := int(i)*width + j
								x := dpooled[g*width+j]
								if wanted {
									x += dy[e]
								}
								if h2[e] > 0 {
									d[e] = coef[3*v*width+j]*x + coef[(3*v+1)*width+j] + coef[(3*v+2)*width+j]*h2[e]
								}
							}
						}
					}
					for e := range dh1 {
						if h1[e] > 0 {
							for k := range width {
								dh1[e] += d[e/hid*width+k] * w2[e%hid*width+k]
							}
						}
					}
					dagg := generate(n*in, func(e int) (sum float64) {
						for k := range hid {
							sum += dh1[e/in*hid+k] * w1[e%in*hid+k]
						}
						return sum
					})
					inner := in
					if !dense {
						inner = 0
					}
					size := inner*hid + hid + hid*width + width
					grads := make([]float64, nv*chunks*size)
					total := make([]float64, size)
					for k := range nv * chunks {
						lo, count := int(views[k/chunks]), int(views[k/chunks+1]-views[k/chunks])
						p := grads[k*size : (k+1)*size]
						for r := lo + bound(count, k%chunks, chunks); r < lo+bound(count, k%chunks+1, chunks); r++ {
							for j := range hid {
								for i := range inner {
									p[i*hid+j] += agg[r*in+i] * dh1[r*hid+j]
								}
								p[inner*hid+j] += dh1[r*hid+j]
							}
							for j := range width {
								for i := range hid {
									p[(inner+1)*hid+i*width+j] += h1[r*hid+i] * d[r*width+j]
								}
								p[(inner+1)*hid+hid*width+j] += d[r*width+j]
							}
						}
						for i, v := range p {
							total[i] += v
						}
					}
					pdy := input(dy)
					if !wanted {
						pdy = null
					}
					if dense {
						b.run(kernel("gin_mlp_grad", "gin_mlp_grad_wide", in, hid, width), grid, threads, null, o(dagg), o(grads), pdy, input(dpooled), input(h1), input(h2), input(agg), input(w1), input(w2), input(coef),
							indices(graph), indices(views), nv, chunks, n, in, hid, width)
					} else {
						b.run(kernel("gin_mlp_grad", "gin_mlp_grad_wide", hid, width), grid, threads, o(dh1), null, o(grads), pdy, input(dpooled), input(h1), input(h2), null, null, input(w2), input(coef),
							indices(graph), indices(views), nv, chunks, n, 9999, hid, width)
					}
					dw1 := o(total[:inner*hid])
					if !dense {
						dw1 = null
					}
					b.run("merge_gradients", blocks(int(ceil(size, 8))), lanes, dw1, o(total[inner*hid:][:hid]), o(total[(inner+1)*hid:][:hid*width]),
						o(total[size-width:]), input(grads), nv*chunks, in, hid, width)
				}
			}
		}
	})
}
