package simd

// rowsOf returns the number of rows of a matrix of n elements, cols wide. It
// panics if n is not a multiple of cols.
func rowsOf(op string, n, cols int) int {
	if cols == 0 {
		if n == 0 {
			return 0
		}
	} else if n%cols == 0 {
		return n / cols
	}
	badLength(op, "whole rows of the row's length", n, cols)
	return 0
}

// rowBlock returns the number of rows of a matrix that one assembly call may process.
func rowBlock(cols int) int {
	return max(1, chunk/cols)
}

// eachBlock cuts a matrix into blocks of at most chunk elements: several whole rows, or
// a part of one. It calls f with the row and the column where a block starts, and its size.
func eachBlock(rows, cols int, f func(i, j, rows, cols int)) {
	step := rowBlock(cols)
	for i := 0; i < rows; i += step {
		for j := 0; j < cols; j += chunk {
			f(i, j, min(step, rows-i), min(chunk, cols-j))
		}
	}
}

type rowKernel func(dst, a, b *float32, rows, cols int)

// byRow computes dst_ij = f(a_ij, row_j), by asm where it can.
func byRow[T Float](
	op string, dst, a, row []T, asm rowKernel, f func(a, b T) T,
) {
	rows := rowsOf(op, len(dst), len(row))
	if inBlocks(op, dst, a, row, rows, len(row), false, asm) {
		return
	}
	for i := range rows {
		d := dst[i*len(row):][:len(row)]
		x := a[i*len(row):][:len(row)]
		for j, b := range row {
			d[j] = f(x[j], b)
		}
	}
}

// byCol computes dst_ij = f(a_ij, col_i), by asm where it can.
func byCol[T Float](
	op string, dst, a, col []T, asm rowKernel, f func(a, b T) T,
) {
	cols := rowsOf(op, len(dst), len(col))
	if inBlocks(op, dst, a, col, len(col), cols, true, asm) {
		return
	}
	for k, b := range col {
		for i := k * cols; i < (k+1)*cols; i++ {
			dst[i] = f(a[i], b)
		}
	}
}

// inBlocks runs asm in blocks of rows for a row b, or a column, and returns true, or
// returns false if the caller must loop.
func inBlocks[T Float](
	op string, dst, a, b []T, rows, cols int, column bool, asm rowKernel,
) bool {
	if len(a) != len(dst) {
		badLength(op, "dst and a equal", len(dst), len(a))
	}
	if !fast[T]() {
		return false
	}
	if len(dst) == 0 {
		return true
	}
	eachBlock(rows, cols, func(i, j, r, c int) {
		k := j
		if column {
			k = i
		}
		asm(at(dst, i*cols+j), at(a, i*cols+j), at(b, k), r, c)
	})
	return true
}

func plainAdd[T Float](a, b T) T { return a + b }
func plainSub[T Float](a, b T) T { return a - b }
func plainMul[T Float](a, b T) T { return a * b }
func plainDiv[T Float](a, b T) T { return a / b }

// AddRow computes dst_ij = a_ij + row_j on matrices of len(row) columns. It
// panics unless dst and a are equally long and whole rows.
func AddRow[T Float](dst, a, row []T) {
	byRow("AddRow", dst, a, row, addRow, plainAdd[T])
}

// SubRow computes dst_ij = a_ij - row_j; otherwise as [AddRow].
func SubRow[T Float](dst, a, row []T) {
	byRow("SubRow", dst, a, row, subRow, plainSub[T])
}

// MulRow computes dst_ij = a_ij·row_j; otherwise as [AddRow].
func MulRow[T Float](dst, a, row []T) {
	byRow("MulRow", dst, a, row, mulRow, plainMul[T])
}

// DivRow computes dst_ij = a_ij/row_j; otherwise as [AddRow].
func DivRow[T Float](dst, a, row []T) {
	byRow("DivRow", dst, a, row, divRow, plainDiv[T])
}

// AddRowReLU computes dst_ij = max(a_ij + row_j, 0), NaN staying NaN: the bias
// and activation of a linear layer in one pass. Otherwise as [AddRow].
func AddRowReLU[T Float](dst, a, row []T) {
	byRow("AddRowReLU", dst, a, row, addRowReLU, func(a, b T) T {
		return plainReLU(a + b)
	})
}

// AddCol computes dst_ij = a_ij + col_i on matrices of len(col) rows. It panics
// unless dst and a are equally long and a multiple of len(col).
func AddCol[T Float](dst, a, col []T) {
	byCol("AddCol", dst, a, col, addCol, plainAdd[T])
}

// SubCol computes dst_ij = a_ij - col_i; otherwise as [AddCol].
func SubCol[T Float](dst, a, col []T) {
	byCol("SubCol", dst, a, col, subCol, plainSub[T])
}

// MulCol computes dst_ij = a_ij·col_i; otherwise as [AddCol].
func MulCol[T Float](dst, a, col []T) {
	byCol("MulCol", dst, a, col, mulCol, plainMul[T])
}

// DivCol computes dst_ij = a_ij/col_i; otherwise as [AddCol].
func DivCol[T Float](dst, a, col []T) {
	byCol("DivCol", dst, a, col, divCol, plainDiv[T])
}

// AffineRow computes dst_ij = a_ij·scale_j + shift_j with one rounding: batch norm
// with given statistics. It panics unless scale and shift are equally long and dst and
// a are equally long and whole rows.
func AffineRow[T Float](dst, a, scale, shift []T) {
	if len(a) != len(dst) || len(scale) != len(shift) {
		const want = "dst and a equal, scale and shift equal"
		badLength("AffineRow", want, len(dst), len(a), len(scale), len(shift))
	}
	cols := len(scale)
	rows := rowsOf("AffineRow", len(dst), cols)
	if len(dst) == 0 {
		return
	}
	if fast[T]() {
		eachBlock(rows, cols, func(i, j, r, c int) {
			k := i*cols + j
			affineRow(at(dst, k), at(a, k), at(scale, j), at(shift, j), r, c)
		})
		return
	}
	for i := range rows {
		d := dst[i*cols:][:cols]
		x := a[i*cols:][:cols]
		for j := range d {
			d[j] = x[j]*scale[j] + shift[j]
		}
	}
}

// CombineRow computes dst_ij = p_j·a_ij + (q_j·b_ij + r_j) with two roundings. The
// gradient of batch norm is such a combination of the output's gradient and the
// input. It panics unless p, q and r are equally long and dst, a and b are
// equally long and whole rows.
func CombineRow[T Float](dst, a, p, b, q, r []T) {
	if len(a) != len(dst) || len(b) != len(dst) || len(p) != len(r) ||
		len(q) != len(r) {
		const want = "dst, a and b equal, p, q and r equal"
		badLength(
			"CombineRow", want, len(dst), len(a),
			len(b), len(p), len(q), len(r),
		)
	}
	cols := len(p)
	rows := rowsOf("CombineRow", len(dst), cols)
	if len(dst) == 0 {
		return
	}
	if fast[T]() {
		eachBlock(rows, cols, func(i, j, n, c int) {
			k := i*cols + j
			combineRow(
				at(dst, k), at(a, k), at(b, k),
				at(p, j), at(q, j), at(r, j), n, c,
			)
		})
		return
	}
	for i := range rows {
		d := dst[i*cols:][:cols]
		x := a[i*cols:][:cols]
		y := b[i*cols:][:cols]
		for j := range d {
			d[j] = x[j]*p[j] + (y[j]*q[j] + r[j])
		}
	}
}
