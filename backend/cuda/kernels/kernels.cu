// The kernels of package cuda. This source compiles for float and for double: REAL is
// the type of the elements.
//
// Matrices are row-major and dense, indices are 32-bit, sizes are below 2^31.
// Floating-point scalars are passed as double. A pointer may be null only where the
// kernel's comment says so.
//
// Rules for all kernels:
//
//   - One thread, or one fixed tree of threads, computes an element of a
//     result. Trees depend on shapes and on the grid, which the host chooses
//     from shapes; nothing depends on the order of blocks. Floats are never
//     added by atomics; integers may be, since their order does not matter.
//   - Sums along a row or a chunk are in REAL, sums of partial sums and of
//     whole matrices in double.
//   - Four elements move as one where the width and the addresses allow it. The
//     order of the arithmetic is the same where they do not.
//   - Denormal numbers are kept, and products may be fused into sums: the
//     compiler's defaults.
//
// Kinds of grids: "flat" has blocks of 256 threads that stride over n elements,
// so any number of blocks works. "rows" has a warp for each row. "tile" has blocks
// of 32×8 threads, 32 columns wide. "block" has 256 threads for each item.
//
// "Moves" is the least that a kernel must read and write, in elements of REAL unless
// stated otherwise.
//
// A C++ compiler compiles the same source against emulate.h.

#ifdef __CUDACC_RTC__
#define KERNEL(name, ...) extern "C" __global__ void __launch_bounds__(256, 1) name(__VA_ARGS__)
// Limits registers so that a multiprocessor can run this many blocks at a time, in float
// and in double.
#define KERNEL_BLOCKS(name, floats, doubles, ...) extern "C" __global__ void __launch_bounds__(256, sizeof(REAL) == 4 ? floats : doubles) name(__VA_ARGS__)
#define SHARED(type, name, n) __shared__ __align__(16) type name[n]
typedef unsigned long long uint64;
typedef unsigned long long pointer_bits;
#else
#include "emulate.h"
#endif

typedef REAL real;

#define METHOD __device__ __forceinline__
#define INLINE static METHOD
#define ALL 0xffffffffu

struct alignas(16) real4 {
	real v[4];
};

INLINE bool aligned(const void *p) { return ((pointer_bits)p & 15) == 0; }

// load4 and store4 move four adjacent elements; fast says that their addresses are
// multiples of 16 bytes.
INLINE real4 load4(const real *p, bool fast) {
	if (fast) {
		return *(const real4 *)p;
	}
	real4 x;
	for (int k = 0; k < 4; k++) {
		x.v[k] = p[k];
	}
	return x;
}

INLINE void store4(real *p, const real4 &x, bool fast) {
	if (fast) {
		*(real4 *)p = x;
		return;
	}
	for (int k = 0; k < 4; k++) {
		p[k] = x.v[k];
	}
}

INLINE unsigned flat_first() { return blockIdx.x * blockDim.x + threadIdx.x; }
INLINE unsigned flat_step() { return gridDim.x * blockDim.x; }

// thread_in_block numbers the threads of a 32×8 or 256×1 block.
INLINE int thread_in_block() { return threadIdx.y * blockDim.x + threadIdx.x; }

// warp_sum returns, in every lane, the sum over lanes that are multiples of
// `from` apart: with 1 over the warp.
template <class T> INLINE T warp_sum(T v, int from = 1) {
	for (int d = from; d < 32; d *= 2) {
		v += __shfl_xor_sync(ALL, v, d, 32);
	}
	return v;
}

// block_sum returns, in every thread of a block of 256, the sum over the block.
INLINE double block_sum(double v) {
	SHARED(double, block_part, 8);
	const int t = thread_in_block();
	v = warp_sum(v);
	__syncthreads(); // the last sum may still be read
	if (t % 32 == 0) {
		block_part[t / 32] = v;
	}
	__syncthreads();
	double sum = 0;
	for (int w = 0; w < 8; w++) {
		sum += block_part[w];
	}
	return sum;
}

// Columns assigns the columns of a tile, 32 or fewer, to the threads of a 32×8 block: as
// many lanes as there are columns, rounded up to a power of two. The rest of the block
// takes other rows.
struct Columns {
	int col;           // of this thread
	int width;         // of the matrix
	int lanes;         // columns side by side
	int group, groups; // this thread's share of the rows

	INLINE Columns of_tile(int tile, int cols, int across = 32) {
		Columns c;
		const int t = thread_in_block(), first = across * tile, here = min(across, cols - first);
		c.lanes = 1;
		while (c.lanes < here) {
			c.lanes *= 2;
		}
		c.width = cols;
		c.col = first + t % c.lanes;
		c.group = t / c.lanes;
		c.groups = 256 / c.lanes;
		return c;
	}
	METHOD bool inside() const { return col < width; }
	METHOD bool first() const { return group == 0 && inside(); }
};

// The columns of a tile that merges the sums of chunks. Narrow tiles leave many groups
// of lanes, so each has few chunks to add.
enum { MERGED = 8 };

// column_sum returns, in the first group, the sum over the groups of a block.
template <class T> INLINE T column_sum(const Columns &c, T v) {
	SHARED(T, column_part, 256);
	const int t = thread_in_block();
	v = warp_sum(v, c.lanes);
	__syncthreads();
	if (t % 32 < c.lanes) {
		column_part[t] = v;
	}
	__syncthreads();
	T sum = 0;
	if (c.group == 0) {
		for (int w = 0; w < 8; w++) {
			sum += column_part[32 * w + t];
		}
	}
	return sum;
}

// segment_of returns the last g with ptr[g] ≤ i: the segment of i if the
// segments cover it, else -1 or segments.
INLINE int segment_of(const int *ptr, int segments, int i) {
	int lo = -1, hi = segments + 1; // ptr[lo] ≤ i < ptr[hi], as it were
	while (hi - lo > 1) {
		const int mid = (lo + hi) / 2;
		if (ptr[mid] <= i) {
			lo = mid;
		} else {
			hi = mid;
		}
	}
	return lo;
}

// view_of returns the view of a graph that starts at node i. An empty graph at
// the end gets the last.
INLINE int view_of(const int *views, int nviews, int i) {
	return max(0, min(nviews - 1, segment_of(views, nviews, i)));
}

// reciprocal returns 1/n, in double by Newton's method from the float's: the division of
// doubles is a subroutine, which would make a thread spill.
INLINE real reciprocal(int n) {
	real x = 1 / (float)n;
	for (int k = 0; k < (sizeof(real) == 8 ? 2 : 0); k++) {
		x *= 2 - n * x;
	}
	return x;
}

// chunk_bound returns the first row of chunk k of n rows in the given number of chunks.
INLINE int chunk_bound(int n, int k, int chunks) { return (int)((long long)n * k / chunks); }

// ChunkRows counts the rows of chunk k, of chunk k+step, and so on, without a division for
// each. chunks·chunks must be less than 2^31.
struct ChunkRows {
	int each, left; // n = each·chunks + left
	int chunks;
	int at, by; // left·k and left·step, modulo chunks

	INLINE ChunkRows from(int n, int chunks, int k, int step) {
		const int left = n % chunks;
		return {n / chunks, left, chunks, left * k % chunks, left * (step % chunks) % chunks};
	}
	METHOD int next() {
		const int rows = each + (at + left >= chunks ? 1 : 0);
		at += by;
		at -= at >= chunks ? chunks : 0;
		return rows;
	}
};

// in_batches calls use(load(i), true) for i = first, first+step, … below end, in this
// order, with N loads in flight: a simple loop that adds what it loads would wait for
// each. Past the end of a short last batch, use gets another value and false: a
// selection takes less time than a branch.
template <int N, class Load, class Use> INLINE void in_batches(int first, int end, int step, Load load, Use use) {
	for (int i = first; i < end; i += N * step) {
		decltype(load(0)) v[N];
#pragma unroll
		for (int k = 0; k < N; k++) {
			v[k] = load(min(i + k * step, end - 1));
		}
#pragma unroll
		for (int k = 0; k < N; k++) {
			use(v[k], i + k * step < end);
		}
	}
}

// segment_of_warp is segment_of computed by a whole warp for one i: it compares 32
// pointers at a time.
INLINE int segment_of_warp(const int *ptr, int segments, int i) {
	int lo = -1, hi = segments + 1;
	while (hi - lo > 1) {
		const int step = (hi - lo + 31) / 32, at = lo + step * (thread_in_block() % 32 + 1);
		lo += step * __popc(__ballot_sync(ALL, at < hi && ptr[min(at, segments)] <= i));
		hi = min(hi, lo + step);
	}
	return lo;
}

// load_wide and store_wide move four adjacent elements if that is fast, else one.
INLINE real4 load_wide(const real *p, bool fast) {
	if (fast) {
		return load4(p, true);
	}
	return {{p[0], 0, 0, 0}};
}

INLINE void store_wide(real *p, const real4 &x, bool fast) {
	if (fast) {
		store4(p, x, true);
	} else {
		p[0] = x.v[0];
	}
}

// ---------------------------------------------------------------- elementwise

// Fill: d = v. flat. Moves n.
KERNEL(fill, real *d, double v, unsigned n) {
	const real x = (real)v;
	unsigned i = flat_first();
	if (aligned(d)) {
		const real4 x4 = {{x, x, x, x}};
		for (unsigned q = i; q < n / 4; q += flat_step()) {
			store4(d + 4 * q, x4, true);
		}
		i += n & ~3u;
	}
	for (; i < n; i += flat_step()) {
		d[i] = x;
	}
}

// backend.LeastDegree.
#define LEAST_DEGREE (sizeof(real) == 4 ? (real)0x1p-100 : (real)0x1p-1000)

enum { EXP, LOG, SQRT, SIGMOID, SOFTPLUS, TANH, RELU, ABS, SIGN, RECIPROCAL, INV_SQRT };

INLINE real sigmoid(real x) {
	const real e = exp(-fabs(x)); // at most 1, so nothing overflows
	return (x < 0 ? e : (real)1) / (1 + e);
}

INLINE real unary_op(int op, real x) {
	switch (op) {
	case EXP:
		return exp(x);
	case LOG:
		return log(x);
	case SQRT:
		return sqrt(x);
	case SIGMOID:
		return sigmoid(x);
	case SOFTPLUS:
		return (x > 0 ? x : (real)0) + log1p(exp(-fabs(x)));
	case TANH:
		return tanh(x);
	case RELU:
		return x <= 0 ? (real)0 : x; // NaN is not ≤ 0
	case ABS:
		return fabs(x);
	case SIGN:
		return x > 0 ? (real)1 : x < 0 ? (real)-1 : x;
	case RECIPROCAL:
		return 1 / x;
	case INV_SQRT:
		return x >= LEAST_DEGREE ? 1 / sqrt(x) : (real)0;
	}
	return 0;
}

// Unary: d = op(a); d may be a. flat. Moves 2n.
KERNEL(unary, real *d, const real *a, int op, unsigned n) {
	unsigned i = flat_first();
	if (aligned(d) && aligned(a)) {
		for (unsigned q = i; q < n / 4; q += flat_step()) {
			real4 x = load4(a + 4 * q, true);
			for (int k = 0; k < 4; k++) {
				x.v[k] = unary_op(op, x.v[k]);
			}
			store4(d + 4 * q, x, true);
		}
		i += n & ~3u;
	}
	for (; i < n; i += flat_step()) {
		d[i] = unary_op(op, a[i]);
	}
}

enum { ADD, SUB, MUL, DIV, MAX, GREATER, GATE };

INLINE real binary_op(int op, real a, real b) {
	switch (op) {
	case ADD:
		return a + b;
	case SUB:
		return a - b;
	case MUL:
		return a * b;
	case DIV:
		return a / b;
	case MAX:
		return a > b || a != a ? a : b;
	case GREATER:
		return a > b ? (real)1 : (real)0;
	case GATE:
		return b > 0 ? a : (real)0;
	}
	return 0;
}

enum { SAME, ROW, COL, SCALAR };

// Binary: d_ij = op(a_ij, b), b the element, b_j, b_i or b_0 by mode; d may be a
// or b. flat over n = rows·cols. Moves 3n, or 2n where b is a row, column or
// scalar.
KERNEL(binary, real *d, const real *a, const real *b, int op, int mode, int cols, unsigned n) {
	unsigned i = flat_first();
	if (aligned(d) && aligned(a) && aligned(b) && (mode == SAME || mode == SCALAR || cols % 4 == 0)) {
		for (unsigned q = i; q < n / 4; q += flat_step()) {
			real4 x = load4(a + 4 * q, true), y;
			if (mode == SAME) {
				y = load4(b + 4 * q, true);
			} else if (mode == ROW) {
				y = load4(b + 4 * q % cols, true);
			} else {
				const real v = b[mode == COL ? 4 * q / cols : 0];
				y = {{v, v, v, v}};
			}
			for (int k = 0; k < 4; k++) {
				x.v[k] = binary_op(op, x.v[k], y.v[k]);
			}
			store4(d + 4 * q, x, true);
		}
		i += n & ~3u;
	}
	for (; i < n; i += flat_step()) {
		const unsigned at = mode == SAME ? i : mode == ROW ? i % cols : mode == COL ? i / cols : 0;
		d[i] = binary_op(op, a[i], b[at]);
	}
}

// Axpby and Affine: d = alpha·a + beta·b, or alpha·a + c where b is null; d may
// be a or b. flat. Moves 3n or 2n.
KERNEL(axpby, real *d, const real *a, const real *b, double alpha, double beta, double c, unsigned n) {
	const real p = (real)alpha, r = (real)beta, s = (real)c;
	unsigned i = flat_first();
	if (aligned(d) && aligned(a) && aligned(b)) {
		for (unsigned q = i; q < n / 4; q += flat_step()) {
			real4 x = load4(a + 4 * q, true);
			if (b) {
				const real4 y = load4(b + 4 * q, true);
				for (int k = 0; k < 4; k++) {
					x.v[k] = p * x.v[k] + r * y.v[k];
				}
			} else {
				for (int k = 0; k < 4; k++) {
					x.v[k] = p * x.v[k] + s;
				}
			}
			store4(d + 4 * q, x, true);
		}
		i += n & ~3u;
	}
	for (; i < n; i += flat_step()) {
		d[i] = b ? p * a[i] + r * b[i] : p * a[i] + s;
	}
}

// Bias and ReLU of a wide layer, after cuBLAS: d_ij = a_ij + bias_j, then ReLU if the
// flag is set. flat over n = rows·cols; d may be a. Moves 2n.
KERNEL(bias_relu, real *d, const real *a, const real *bias, int relu, int cols, unsigned n) {
	unsigned i = flat_first();
	if (aligned(d) && aligned(a) && aligned(bias) && cols % 4 == 0) {
		for (unsigned q = i; q < n / 4; q += flat_step()) {
			real4 x = load4(a + 4 * q, true);
			const real4 y = load4(bias + 4 * q % cols, true);
			for (int k = 0; k < 4; k++) {
				x.v[k] += y.v[k];
				x.v[k] = relu ? unary_op(RELU, x.v[k]) : x.v[k];
			}
			store4(d + 4 * q, x, true);
		}
		i += n & ~3u;
	}
	for (; i < n; i += flat_step()) {
		const real x = a[i] + bias[i % cols];
		d[i] = relu ? unary_op(RELU, x) : x;
	}
}

// ---------------------------------------------------------------------- moves

// move_rows sets row i of d to row at(i) of s, or to zeros where at(i) is
// negative. The next three kernels share it.
template <class At> INLINE void move_rows(real *d, const real *s, int ldd, int lds, int rows, int cols, At at) {
	const unsigned n = rows * cols;
	const bool fast = cols % 4 == 0 && ldd % 4 == 0 && lds % 4 == 0 && aligned(d) && aligned(s);
	const unsigned width = fast ? 4 : 1;
	for (unsigned e = width * flat_first(); e < n; e += width * flat_step()) {
		const int i = e / cols, j = e % cols, from = at(i);
		if (fast) {
			real4 x = {{0, 0, 0, 0}};
			if (from >= 0) {
				x = load4(s + (long long)from * lds + j, true);
			}
			store4(d + (long long)i * ldd + j, x, true);
		} else {
			d[(long long)i * ldd + j] = from >= 0 ? s[(long long)from * lds + j] : (real)0;
		}
	}
}

// CopyBlock: d and s are the block's first elements, ldd and lds the widths of
// their matrices. flat over rows·cols. Moves 2·rows·cols.
KERNEL(copy_block, real *d, const real *s, int ldd, int lds, int rows, int cols) {
	move_rows(d, s, ldd, lds, rows, cols, [](int i) { return i; });
}

// CopyBlocks: words 6k..6k+5 of the table are d, s, ldd, lds, rows and cols of block k, as
// copy_block has them. Grid (any, count) of blocks of 256 threads. Moves the elements twice.
KERNEL(copy_blocks, const uint64 *table, int count) {
	const uint64 *t = table + 6 * blockIdx.y;
	move_rows((real *)t[0], (const real *)t[1], (int)t[2], (int)t[3], (int)t[4], (int)t[5], [](int i) { return i; });
}

// tf32 rounds to the 11 significant bits of TF32, ties to even. A number that would become infinite
// is truncated, and a NaN stays one without its last bits.
INLINE float tf32(float x) {
	union {
		float number;
		unsigned word;
	} v;
	v.number = x;
	const unsigned infinite = 0x7f800000u, lost = 0x1fffu;
	const unsigned truncated = v.word & ~lost;
	if ((v.word & infinite) == infinite) {
		v.word = x != x ? truncated | 0x400000u : v.word;
		return v.number;
	}
	v.word = (v.word + 0xfffu + (v.word >> 13 & 1)) & ~lost;
	if ((v.word & infinite) == infinite) {
		v.word = truncated;
	}
	return v.number;
}

// Split: d gets three matrices in TF32, part elements apart, with rows of ldd: the rest of s [rows×cols]
// at place rest (0 or 1), the finite heads at the other, and the heads last. A rest is s minus its head,
// and 0 if s is not finite, where the finite head is 0, too. For float. flat over rows·cols. Moves
// 4·rows·cols.
KERNEL(split, real *d, const real *s, int part, int ldd, int rest, unsigned n, int cols) {
	for (unsigned e = flat_first(); e < n; e += flat_step()) {
		const float x = (float)s[e], head = tf32(x);
		const bool finite = x - x == 0;
		real *to = d + (long long)(e / cols) * ldd + e % cols;
		to[(long long)rest * part] = finite ? tf32(x - head) : 0;
		to[(long long)(1 - rest) * part] = finite ? head : 0;
		to[2ll * part] = head;
	}
}

// GatherRows: row i of d is row idx[i] of s. flat over rows·cols of d. Moves
// 2·rows·cols and the indices.
KERNEL(gather_rows, real *d, const real *s, const int *idx, int rows, int cols) {
	move_rows(d, s, cols, cols, rows, cols, [=](int i) { return idx[i]; });
}

// FillDiagonal: d_ii = v on d [n×n]. flat over n. Moves n.
KERNEL(fill_diagonal, real *d, double v, unsigned n) {
	for (unsigned i = flat_first(); i < n; i += flat_step()) {
		d[i * (n + 1ll)] = (real)v;
	}
}

// Transpose: d [cols×rows] of s [rows×cols]. tile, grid ⌈cols/32⌉·⌈rows/32⌉: a tile
// of 32×32 goes through shared memory, so both sides move whole lines. Moves
// 2·rows·cols.
KERNEL(transpose, real *__restrict__ d, const real *__restrict__ s, int rows, int cols) {
	SHARED(real, tile, 32 * 33);
	const int tx = threadIdx.x, ty = threadIdx.y, across = (cols + 31) / 32;
	const int top = 32 * (blockIdx.x / across), left = 32 * (blockIdx.x % across);
	for (int i = ty; i < 32; i += 8) {
		const int r = top + i, c = left + tx;
		if (r < rows && c < cols) {
			tile[33 * i + tx] = s[(long long)r * cols + c];
		}
	}
	__syncthreads();
	for (int i = ty; i < 32; i += 8) {
		const int r = top + tx, c = left + i;
		if (r < rows && c < cols) {
			d[(long long)c * rows + r] = tile[33 * tx + i];
		}
	}
}

// ------------------------------------------------------------------- training

INLINE uint64 mix(uint64 x) {
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return x ^ x >> 31;
}

// DropoutMask: backend.DropoutKeep, bit for bit. flat. Moves n.
KERNEL(dropout_mask, real *d, const real *step, double keep, uint64 seed, unsigned n) {
	const uint64 key = seed ^ mix((uint64)step[0] + 0x9e3779b97f4a7c15ull);
	const uint64 limit = (uint64)ceil(keep * 9007199254740992.0); // 2^53
	const real kept = (real)(1 / keep);
	for (unsigned i = flat_first(); i < n; i += flat_step()) {
		d[i] = mix(key ^ mix(i * 0xd1342543de82ef95ull + 1)) >> 11 < limit ? kept : (real)0;
	}
}

// adam_range updates every step-th element from first. All threads of the block
// must call it.
INLINE void adam_range(real *p, const real *g, real *m, real *v, const real *rate, const real *step,
	double beta1, double beta2, double eps, double wd, unsigned n) {
	SHARED(double, corrected, 2); // the expensive constants, computed once a block
	const double t = step[0];
	if (t != t) {
		return; // the same in all threads
	}
	if (thread_in_block() == 0) {
		corrected[0] = rate[0] / (1 - pow(beta1, t));
		corrected[1] = sqrt(1 - pow(beta2, t));
	}
	__syncthreads();
	const real size = (real)corrected[0], root2 = (real)corrected[1], decay = (real)wd, e = (real)eps;
	const real b1 = (real)beta1, gain1 = (real)(1 - beta1), b2 = (real)beta2, gain2 = (real)(1 - beta2);
	for (unsigned i = flat_first(); i < n; i += flat_step()) {
		const real x = g[i] + decay * p[i];
		m[i] = b1 * m[i] + gain1 * x;
		v[i] = b2 * v[i] + gain2 * x * x;
		p[i] -= size * m[i] / (sqrt(v[i]) / root2 + e);
	}
}

// Adam, as backend.Backend defines it. The factors are computed in double and rounded
// once. A step of NaN changes nothing. flat. Moves 7n.
KERNEL(adam, real *p, const real *g, real *m, real *v, const real *rate, const real *step,
	double beta1, double beta2, double eps, double wd, unsigned n) {
	adam_range(p, g, m, v, rate, step, beta1, beta2, eps, wd, n);
}

// Squares of many tensors, first part: part[B·k+b] = Σ g² over part b of B of
// tensor k, in double; words 5k+1 and 5k+4 of the table are g and n. Grid
// (B, count) of blocks of 256 threads. Moves the elements once.
KERNEL(square_sums_many, double *part, const uint64 *table, int count) {
	const uint64 *t = table + 5 * blockIdx.y;
	const real *g = (const real *)t[1];
	const int end = chunk_bound((int)t[4], blockIdx.x + 1, gridDim.x);
	double sum = 0;
	for (int i = chunk_bound((int)t[4], blockIdx.x, gridDim.x) + threadIdx.x; i < end; i += 256) {
		sum += (double)g[i] * g[i];
	}
	sum = block_sum(sum);
	if (threadIdx.x == 0) {
		part[gridDim.x * blockIdx.y + blockIdx.x] = sum;
	}
}

// Adam on many tensors: words 5k..5k+4 of the table are p, g, m, v and n of
// tensor k. Grid (any, count) of blocks of 256 threads; bits as adam's. Moves 7
// times the elements.
KERNEL(adam_many, const uint64 *table, const real *rate, const real *step,
	double beta1, double beta2, double eps, double wd, int count) {
	const uint64 *t = table + 5 * blockIdx.y;
	adam_range((real *)t[0], (const real *)t[1], (real *)t[2], (real *)t[3], rate, step, beta1, beta2, eps, wd, (unsigned)t[4]);
}

// ----------------------------------------------------------------- reductions

// ReduceRows. rows: a warp strides over its row, four columns at a time where
// the row is long, and folds its lanes. Moves rows·cols.
enum { ROW_SUM, ROW_MAX, ROW_LOG_SUM_EXP };

// Running has the maximum and Σ e^(x-max) of the elements so far.
struct Running {
	real top, sum;

	METHOD void take(real x, real weight) { // weight is Σ e^(·-x) of what x stands for
		if (x > top || x != x) {
			sum = sum * (top == x ? (real)1 : exp(top - x)) + weight; // NaN from here on if x is
			top = x;
		} else if (x == top) { // infinities too, whose difference is NaN
			sum += weight;
		} else {
			sum += weight * exp(x - top); // NaN if top is
		}
	}
};

KERNEL(reduce_rows, real *d, const real *a, int op, int rows, int cols) {
	const int lane = threadIdx.x % 32, row = blockIdx.x * 8 + threadIdx.x / 32;
	if (row >= rows) {
		return; // the whole warp
	}
	a += (long long)row * cols;
	Running r = {log((real)0), 0}; // -∞
	real sum = 0;
	const bool wide = cols % 4 == 0 && cols >= 128, fast = aligned(a);
	const int width = wide ? 4 : 1;
	for (int j = width * lane; j < cols; j += width * 32) {
		real4 x;
		if (wide) {
			x = load4(a + j, fast);
		} else {
			x.v[0] = a[j];
		}
		for (int k = 0; k < 4; k++) { // with a constant bound x stays in registers
			if (!wide && k > 0) {
				break;
			}
			if (op == ROW_SUM) {
				sum += x.v[k];
			} else if (op == ROW_MAX) {
				r.top = binary_op(MAX, r.top, x.v[k]);
			} else {
				r.take(x.v[k], 1);
			}
		}
	}
	if (op == ROW_SUM) {
		sum = warp_sum(sum);
	} else {
		for (int step = 1; step < 32; step *= 2) {
			const real top = __shfl_xor_sync(ALL, r.top, step, 32), other = __shfl_xor_sync(ALL, r.sum, step, 32);
			if (op == ROW_MAX) {
				r.top = binary_op(MAX, r.top, top);
			} else {
				r.take(top, other);
			}
		}
	}
	if (lane == 0) {
		d[row] = op == ROW_SUM ? sum : op == ROW_MAX || isinf(r.top) ? r.top : r.top + log(r.sum);
	}
}

// Rows of length 1: y_i = x_i/r_i, where r_i is the length of x_i, but at least floor. rows.
// Moves 2·rows·cols.
KERNEL(normalize_rows, real *y, real *r, const real *x, double floor, int rows, int cols) {
	const int lane = threadIdx.x % 32, row = blockIdx.x * 8 + threadIdx.x / 32;
	if (row >= rows) {
		return; // the whole warp
	}
	x += (long long)row * cols;
	y += (long long)row * cols;
	real sum = 0;
	for (int j = lane; j < cols; j += 32) {
		sum += x[j] * x[j];
	}
	const real length = binary_op(MAX, unary_op(SQRT, warp_sum(sum)), (real)floor);
	for (int j = lane; j < cols; j += 32) {
		y[j] = x[j] / length;
	}
	if (lane == 0) {
		r[row] = length;
	}
}

// The gradient of normalize_rows: dx_i = (dy_i - (dy_i·y_i)·y_i)/r_i, without the second term
// where r_i is the floor, a constant. rows. Moves 3·rows·cols.
KERNEL(normalize_rows_grad, real *dx, const real *dy, const real *y, const real *r, double floor, int rows, int cols) {
	const int lane = threadIdx.x % 32, row = blockIdx.x * 8 + threadIdx.x / 32;
	if (row >= rows) {
		return; // the whole warp
	}
	const long long first = (long long)row * cols;
	real along = 0;
	for (int j = lane; j < cols; j += 32) {
		along += dy[first + j] * y[first + j];
	}
	along = warp_sum(along);
	const real length = r[row];
	along *= length > (real)floor ? (real)1 : (real)0;
	for (int j = lane; j < cols; j += 32) {
		dx[first + j] = (dy[first + j] - along * y[first + j]) / length;
	}
}

// Column sums of the chunks of segments of rows: row g·chunks+k of d is the sum
// of chunk k of rows ptr[g]..ptr[g+1]-1 of x. If ptr is null, all rows are one
// segment. tile, grid (segments·chunks, ⌈cols/32⌉). Moves rows·cols. If chunks > 1,
// merge_partials follows.
KERNEL(segment_sum, real *__restrict__ d, const real *__restrict__ x, const int *__restrict__ ptr, int rows, int chunks, int cols) {
	const Columns c = Columns::of_tile(blockIdx.y, cols);
	const int g = blockIdx.x / chunks, k = blockIdx.x % chunks;
	const int first = ptr ? ptr[g] : 0, n = (ptr ? ptr[g + 1] : rows) - first;
	const int end = first + chunk_bound(n, k + 1, chunks);
	real sum = 0;
	if (c.inside()) {
		in_batches<8>(first + chunk_bound(n, k, chunks) + c.group, end, c.groups, [=](int i) { return x[(long long)i * cols + c.col]; },
			[&](real v, bool inside) { sum += inside ? v : (real)0; });
	}
	sum = column_sum(c, sum);
	if (c.first()) {
		d[(long long)blockIdx.x * cols + c.col] = sum;
	}
}

// The gradient of bias_relu: dx = dy where y > 0, else 0. In the same pass, row k of part
// gets the column sums of dx over chunk k of the rows. tile, grid (chunks, ⌈cols/32⌉).
// Moves 3·rows·cols. If chunks > 1, merge_partials follows.
KERNEL(bias_relu_grad, real *__restrict__ dx, real *__restrict__ part, const real *__restrict__ dy, const real *__restrict__ y, int rows, int chunks, int cols) {
	struct Element {
		real d;
		int at;
	};
	const Columns c = Columns::of_tile(blockIdx.y, cols);
	real sum = 0;
	if (c.inside()) {
		const int first = chunk_bound(rows, blockIdx.x, chunks) + c.group, end = chunk_bound(rows, blockIdx.x + 1, chunks);
		in_batches<8>(first, end, c.groups, [=](int i) -> Element {
			const int at = i * cols + c.col;
			return {binary_op(GATE, dy[at], y[at]), at};
		}, [&](Element e, bool inside) {
			if (inside) {
				dx[e.at] = e.d;
				sum += e.d;
			}
		});
	}
	sum = column_sum(c, sum);
	if (c.first()) {
		part[(long long)blockIdx.x * cols + c.col] = sum;
	}
}

// The number of places (entries) in a part of spmm_places.
enum { PLACES = 32 };

// Row g of d is the sum of its parts, in double: of its chunks or, if ptr is not null, of
// the parts of spmm_places. Blocks of 32×8 threads, grid (segments, ⌈cols/across⌉). Moves
// the parts and segments·cols.
KERNEL(merge_partials, real *__restrict__ d, const real *__restrict__ part, const int *__restrict__ ptr, int chunks, int across, int cols) {
	const Columns c = Columns::of_tile(blockIdx.y, cols, across);
	const int g = blockIdx.x;
	int first = g * chunks, n = chunks;
	if (ptr) {
		const int from = ptr[g], to = ptr[g + 1];
		first = from / PLACES + g;
		n = to > from ? (to - 1) / PLACES - from / PLACES + 1 : 0;
	}
	part += (long long)first * cols + c.col;
	double sum = 0;
	if (c.inside()) {
		in_batches<8>(c.group, n, c.groups, [=](int k) { return part[(long long)k * cols]; },
			[&](real v, bool inside) { sum += inside ? v : (real)0; });
	}
	sum = column_sum(c, sum);
	if (c.first()) {
		d[(long long)g * cols + c.col] = (real)sum;
	}
}

// Dot, first part: part[k] = Σ a·b over chunk k, in double; if b is null, it is all
// ones. block, as many chunks as blocks. Moves 2n or n.
KERNEL(dot_partials, double *part, const real *__restrict__ a, const real *__restrict__ b, int n) {
	const int end = chunk_bound(n, blockIdx.x + 1, gridDim.x);
	double sum = 0;
#pragma unroll 4
	for (int i = chunk_bound(n, blockIdx.x, gridDim.x) + threadIdx.x; i < end; i += 256) {
		sum += b ? (double)a[i] * b[i] : (double)a[i];
	}
	sum = block_sum(sum);
	if (threadIdx.x == 0) {
		part[blockIdx.x] = sum;
	}
}

// d[0] = scale·Σ part, in double. One block. Moves n doubles.
KERNEL(sum_partials, real *d, const double *part, double scale, int n) {
	double sum = 0;
	for (int i = threadIdx.x; i < n; i += 256) {
		sum += part[i];
	}
	sum = block_sum(sum);
	if (threadIdx.x == 0) {
		d[0] = (real)(scale * sum);
	}
}

// --------------------------------------------------------------------- sparse

// The whole block sums a row with more neighbours than this, in chunks of this size.
enum { HUB = 256 };

// gather_as adds the rows of x for the neighbours from..to-1 (index gives their numbers)
// to four columns, or one, from j on, N neighbours at a time.
template <int N, bool WIDE, class Index> INLINE void gather_as(real4 &acc, const real *__restrict__ val, const real *__restrict__ x,
	int from, int to, int cols, int j, Index index) {
	struct Neighbour {
		real4 x;
		real w;
	};
	in_batches<N>(from, to, 1, [=](int k) -> Neighbour {
		const real w = *(val ? val + k : x); // avoids a branch
		return {load_wide(x + (long long)index(k) * cols + j, WIDE), val ? w : (real)1};
	}, [&](Neighbour y, bool inside) {
		for (int e = 0; e < (WIDE ? 4 : 1); e++) {
			acc.v[e] = inside ? acc.v[e] + y.w * y.x.v[e] : acc.v[e];
		}
	});
}

template <int N> INLINE void gather_row(real4 &acc, const int *__restrict__ col, const real *__restrict__ val, const real *__restrict__ x,
	const int *__restrict__ gather, int from, int to, int cols, int j, bool wide) {
	auto chosen = [=](int k) { return gather[col[k]]; };
	auto own = [=](int k) { return col[k]; };
	if (wide && gather) {
		gather_as<N, true>(acc, val, x, from, to, cols, j, chosen);
	} else if (wide) {
		gather_as<N, true>(acc, val, x, from, to, cols, j, own);
	} else if (gather) {
		gather_as<N, false>(acc, val, x, from, to, cols, j, chosen);
	} else {
		gather_as<N, false>(acc, val, x, from, to, cols, j, own);
	}
}

// The messages of edges: tables has the addresses of the rows of w [kinds×cols], and
// counts [rows×kinds] says how many times a row receives each. kinds is at most KINDS.
enum { KINDS = 16 };

// The body of spmm and of messages, which adds counts·w. A block has `across` columns.
template <bool EDGES> INLINE void spmm_rows(real *__restrict__ d, const int *__restrict__ ptr, const int *__restrict__ col, const real *__restrict__ val,
	const real *__restrict__ x, const int *__restrict__ gather, const real *__restrict__ counts, const uint64 *__restrict__ tables, int kinds,
	double self, int lanes, int rows, int cols) {
	enum { ACROSS = 128, STAGED = 4 };
	SHARED(real, part, 4 * 256);
	SHARED(unsigned, hubs, 8);
	SHARED(real, table, EDGES ? KINDS * ACROSS : 1);
	SHARED(real, count, EDGES ? KINDS * 32 : 1);
	const int t = threadIdx.x, group = t / lanes, groups = 256 / lanes, lane = t % lanes;
	const bool wide = cols % 4 == 0;
	const int width = wide ? 4 : 1, across = width * lanes;
	const int top = blockIdx.x * groups, row = top + group;
	const int from = row < rows ? ptr[row] : 0, to = row < rows ? ptr[row + 1] : 0;
	const bool hub = to - from > HUB;
	// The part of the table's columns and of the rows' counts that this thread loads.
	const int kind = t / across, kinds_at_once = 256 / across, here = min(groups, rows - top) * kinds;
	const int j = across * blockIdx.y + width * lane, column = across * blockIdx.y + t % across;
	const auto itself = [=](int i) -> real4 {
		if (self == 0) {
			return {{0, 0, 0, 0}};
		}
		return load_wide(x + (long long)(gather ? gather[i] : i) * cols + j, wide);
	};
	const auto finish = [&](real4 acc, const real4 &own, int i, int g) {
		for (int e = 0; e < 4; e++) {
			acc.v[e] += (real)self * own.v[e];
		}
		if (EDGES) {
#pragma unroll 4
			for (int k = 0; k < kinds; k++) {
				const real by = count[kinds * g + k];
				for (int e = 0; e < 4; e++) {
					acc.v[e] += wide || e == 0 ? by * table[ACROSS * k + width * lane + e] : (real)0;
				}
			}
		}
		store_wide(d + (long long)i * cols + j, acc, wide);
	};
	// Load what does not depend on the neighbours first: the row itself, and what the block
	// shares.
	const auto entry = [=](int k) { return ((const real *)tables[min(k, kinds - 1)])[min(column, cols - 1)]; };
	real staged[STAGED], counted[2];
	if (EDGES) {
#pragma unroll
		for (int n = 0; n < STAGED; n++) {
			staged[n] = entry(kind + n * kinds_at_once);
		}
#pragma unroll
		for (int n = 0; n < 2; n++) {
			counted[n] = counts[(long long)top * kinds + min(t + 256 * n, here - 1)];
		}
	}
	real4 acc = {{0, 0, 0, 0}}, own = acc;
	const bool mine = row < rows && !hub && j < cols;
	if (mine) {
		own = itself(row);
		gather_row<4>(acc, col, val, x, gather, from, to, cols, j, wide);
		if (!EDGES) {
			finish(acc, own, row, group);
		}
	}
	if (EDGES) {
#pragma unroll
		for (int n = 0; n < STAGED; n++) {
			if (kind + n * kinds_at_once < kinds) {
				table[ACROSS * (kind + n * kinds_at_once) + t % across] = staged[n];
			}
		}
		for (int k = kind + STAGED * kinds_at_once; k < kinds; k += kinds_at_once) {
			table[ACROSS * k + t % across] = entry(k);
		}
#pragma unroll
		for (int n = 0; n < 2; n++) {
			if (t + 256 * n < here) {
				count[t + 256 * n] = counted[n];
			}
		}
	}
	const unsigned of_warp = __ballot_sync(ALL, hub && lane == 0);
	if (t % 32 == 0) {
		hubs[t / 32] = of_warp;
	}
	__syncthreads();
	if (EDGES && mine) {
		finish(acc, own, row, group);
	}
	unsigned any = 0;
	for (int w = 0; w < 8; w++) {
		any |= hubs[w];
	}
	for (int g = 0; any != 0 && g < groups; g++) {
		if ((hubs[g * lanes / 32] >> (g * lanes % 32) & 1) == 0) {
			continue;
		}
		const int i = top + g, first = ptr[i], last = ptr[i + 1];
		acc = {{0, 0, 0, 0}};
		if (j < cols) {
			for (int k = first + group * HUB; k < last; k += groups * HUB) {
				gather_row<8>(acc, col, val, x, gather, k, min(k + HUB, last), cols, j, wide);
			}
		}
		for (int e = 0; e < 4; e++) {
			part[4 * t + e] = acc.v[e];
		}
		__syncthreads();
		if (group == 0 && j < cols) {
			for (int o = 1; o < groups; o++) {
				for (int e = 0; e < 4; e++) {
					acc.v[e] += part[4 * (o * lanes + lane) + e];
				}
			}
			finish(acc, itself(i), i, g);
		}
		__syncthreads();
	}
}

// SpMM: d_i = Σ_k val_k·x_c(col_k) + self·x_c(i) for k from ptr[i] to
// ptr[i+1]-1, with c(j) = gather[j], or j without gather, and ones without val.
// Blocks of 256 threads, `lanes` (8, 16 or 32) for each row, each with four
// columns or one; neighbours are added in their order. Hubs follow: the groups of lanes
// take turns at the chunks of neighbours, and the groups' sums are added in order. A row
// waits for memory most of the time, so a multiprocessor has four blocks at a time. Grid
// (⌈rows/groups⌉, ⌈cols/(lanes·width of a load)⌉). Moves (nnz + 2·rows)·cols, gathered, and
// nnz indices.
KERNEL_BLOCKS(spmm, 4, 2, real *__restrict__ d, const int *__restrict__ ptr, const int *__restrict__ col, const real *__restrict__ val,
	const real *__restrict__ x, const int *__restrict__ gather, double self, int lanes, int rows, int cols) {
	spmm_rows<false>(d, ptr, col, val, x, gather, 0, 0, 0, self, lanes, rows, cols);
}

// Messages: spmm plus the messages of edges. Moves rows·kinds more.
KERNEL_BLOCKS(messages, 4, 2, real *__restrict__ d, const int *__restrict__ ptr, const int *__restrict__ col, const real *__restrict__ val,
	const real *__restrict__ x, const real *__restrict__ counts, const uint64 *__restrict__ tables, double self, int kinds, int lanes, int rows, int cols) {
	spmm_rows<true>(d, ptr, col, val, x, 0, counts, tables, kinds, self, lanes, rows, cols);
}

// SpMM for few, long or uneven rows: warp w has the places (neighbours) from PLACES·w on,
// and row w+r of part gets the sum of val_k·x_col(k) over those in row r; if val is null,
// it is all ones. No two sums have the same w+r, since rows are in the order of places.
// merge_partials follows. Blocks of 256 threads, grid (⌈places/256⌉, ⌈cols/columns of a
// warp⌉). Moves 2·nnz·cols, gathered, and nnz indices.
KERNEL(spmm_places, real *__restrict__ part, const int *__restrict__ ptr, const int *__restrict__ col, const real *__restrict__ val,
	const real *__restrict__ x, int rows, int cols) {
	enum { TOGETHER = 8 };
	const bool wide = cols % 4 == 0 && aligned(x) && aligned(part);
	const int i = flat_first(), lane = i % 32, w = i / 32, n = min((int)PLACES, ptr[rows] - (i - lane));
	if (n <= 0) {
		return; // the whole warp
	}
	const int place = min(i, ptr[rows] - 1), mine = segment_of(ptr, rows, place), from = col[place];
	const real weight = val ? val[place] : (real)1;
	const int width = wide ? 4 : 1, j = width * (32 * blockIdx.y + lane), at = min(j, cols - width);
	real4 acc = {{0, 0, 0, 0}};
	int row = __shfl_sync(ALL, mine, 0, 32);
	const auto finish = [&]() {
		if (j < cols) {
			store_wide(part + (long long)(w + row) * cols + j, acc, wide);
		}
	};
	for (int k = 0; k < n; k += TOGETHER) {
		real4 v[TOGETHER];
#pragma unroll
		for (int e = 0; e < TOGETHER; e++) { // past the end, repeat the last
			v[e] = load_wide(x + (long long)__shfl_sync(ALL, from, k + e, 32) * cols + at, wide);
		}
#pragma unroll
		for (int e = 0; e < TOGETHER; e++) {
			const int next = __shfl_sync(ALL, mine, k + e, 32);
			const real by = k + e < n ? __shfl_sync(ALL, weight, k + e, 32) : (real)0;
			if (next != row) { // the same in all lanes
				finish();
				acc = {{0, 0, 0, 0}};
				row = next;
			}
			for (int i = 0; i < 4; i++) {
				acc.v[i] += by * v[e].v[i];
			}
		}
	}
	finish();
}

// ------------------------------------------------------- batch norm and readout
//
// Views and graphs are segments of the nodes; a view is whole graphs. With the
// names of backend.GINLayer: h is h2.

// Means and squared deviations of the chunks of segments: row g·chunks+k of part
// [·×2·cols] has the mean of the rows of the chunk, followed by the sum of the squared
// deviations from it; zeros for no rows. tile, grid (segments·chunks, ⌈cols/32⌉). A
// thread takes eight rows at a time, and merges their mean and deviations with the
// earlier ones (Chan, Golub and LeVeque 1983): one pass, no cancellation. Moves
// rows·cols.
KERNEL(segment_moments, real *__restrict__ part, const real *__restrict__ x, const int *__restrict__ ptr, int segments, int chunks, int cols) {
	enum { ROWS = 8 };
	SHARED(real, means, 32);
	const Columns c = Columns::of_tile(blockIdx.y, cols);
	const int g = blockIdx.x / chunks, k = blockIdx.x % chunks, n = ptr[g + 1] - ptr[g];
	const int first = ptr[g] + chunk_bound(n, k, chunks), end = ptr[g] + chunk_bound(n, k + 1, chunks);
	real mean = 0, squares = 0;
	int seen = 0;
	if (c.inside()) {
		for (int i = first + c.group; i < end; i += ROWS * c.groups) {
			const int here = min((int)ROWS, (end - i + c.groups - 1) / c.groups);
			const real share = here * reciprocal(seen + here);
			real v[ROWS], m = 0, s = 0;
			for (int r = 0; r < ROWS; r++) {
				v[r] = r < here ? x[(long long)(i + r * c.groups) * cols + c.col] : (real)0;
				m += v[r];
			}
			m *= reciprocal(here);
			for (int r = 0; r < ROWS; r++) {
				s += r < here ? (v[r] - m) * (v[r] - m) : (real)0;
			}
			const real delta = m - mean;
			mean += share * delta;
			squares += s + seen * share * delta * delta;
			seen += here;
		}
	}
	const real sum = column_sum(c, seen * mean);
	if (c.group == 0) {
		means[c.col % 32] = end > first ? sum * reciprocal(end - first) : (real)0;
	}
	__syncthreads();
	const real centre = means[c.col % 32];
	squares = column_sum(c, squares + seen * (mean - centre) * (mean - centre));
	if (c.first()) {
		part += (long long)blockIdx.x * 2 * cols;
		part[c.col] = centre;
		part[cols + c.col] = squares;
	}
}

// The statistics of the views and the affine maps of batch norm: coef [2·nviews×cols]
// has the rows scale = γ/√(σ²+ε) and shift = β - scale·μ of each view. part is the output
// of segment_moments for the views. Its chunks are merged in double, and mean and var
// [nviews×cols] are written, zeros for no nodes. The merge measures the means of the chunks
// from that of the last chunk, which has at least 1/chunks of the rows: so the variance
// loses no more digits than the number of chunks has. If part is null, mean and var [1×cols] are
// read. If shifted [nviews×cols] is not null, it gets the means plus `added`. Blocks of 256
// threads, one for each view and tile of 8 columns, or fewer, which stride; groups of lanes
// share the chunks. Moves 2·nviews·chunks·cols.
KERNEL(norm_coefficients, real *mean, real *var, real *coef, real *shifted, const real *part, const real *gamma, const real *beta, const real *added,
	const int *views, double eps, int nviews, int chunks, int cols) {
	const int tiles = (cols + MERGED - 1) / MERGED;
	for (int item = blockIdx.x; item < nviews * tiles; item += gridDim.x) { // the same in all threads
		const Columns c = Columns::of_tile(item % tiles, cols, MERGED);
		const int v = item / tiles, j = min(c.col, cols - 1);
		const double weight = gamma[j], bias = beta[j];
		double mu = 0, sigma2 = 0;
		if (part) {
			struct Moments {
				real mean, squares;
			};
			const real *p = part + (long long)v * chunks * 2 * cols + c.col;
			const int n = views[v + 1] - views[v];
			const double share = n > 0 ? 1.0 / n : 0;
			double origin = 0, sum = 0, squares = 0;
			if (c.inside()) {
				origin = p[(long long)(chunks - 1) * 2 * cols];
				ChunkRows count = ChunkRows::from(n, chunks, c.group, c.groups);
				in_batches<8>(c.group, chunks, c.groups, [=](int k) -> Moments {
					const real *of = p + (long long)k * 2 * cols;
					return {of[0], of[cols]};
				}, [&](Moments m, bool inside) {
					const double delta = m.mean - origin, rows = inside ? count.next() : 0;
					sum += rows * delta;
					squares += inside ? m.squares + rows * delta * delta : 0;
				});
			}
			sum = column_sum(c, sum);
			squares = column_sum(c, squares);
			if (c.first()) {
				const double shift = sum * share;
				mu = (real)(n > 0 ? origin + shift : 0); // rounded, as all others read it
				sigma2 = (real)fmax(squares * share - shift * shift, 0.0);
				mean[v * cols + c.col] = (real)mu;
				var[v * cols + c.col] = (real)sigma2;
				if (shifted) {
					shifted[v * cols + c.col] = (real)(n > 0 ? mu + added[c.col] : 0);
				}
			}
		} else if (c.inside()) {
			mu = mean[c.col];
			sigma2 = var[c.col];
		}
		if (c.first()) {
			const double scale = weight * rsqrt(sigma2 + eps);
			coef[2 * v * cols + c.col] = (real)scale;
			coef[(2 * v + 1) * cols + c.col] = (real)(bias - scale * mu);
		}
	}
}

// Updates the running statistics with those of the views, one after the other; the
// variance is that of a sample. A view without nodes changes nothing. flat
// over cols. Moves 2·(nviews+2)·cols.
KERNEL(norm_track, real *rmean, real *rvar, const real *mean, const real *var, const int *views, double momentum, int nviews, unsigned cols) {
	for (unsigned j = flat_first(); j < cols; j += flat_step()) {
		real m = rmean[j], s = rvar[j];
		for (int v = 0; v < nviews; v++) {
			const int n = views[v + 1] - views[v];
			if (n > 0) {
				const double unbiased = n > 1 ? (double)n / (n - 1) : 1;
				m = (real)((1 - momentum) * m + momentum * mean[v * cols + j]);
				s = (real)((1 - momentum) * s + momentum * unbiased * var[v * cols + j]);
			}
		}
		rmean[j] = m;
		rvar[j] = s;
	}
}

// zero_behind sets the rows first..rows-1 of y to zero, a part in each block of the grid:
// one block alone would take longer than all others.
INLINE void zero_behind(const Columns &c, real *y, int first, int rows) {
	const int n = rows - first, end = first + chunk_bound(n, blockIdx.x + 1, gridDim.x);
	for (int i = first + chunk_bound(n, blockIdx.x, gridDim.x) + c.group; c.inside() && i < end; i += c.groups) {
		y[(long long)i * c.width + c.col] = 0;
	}
}

// SegmentExpand: row i of d is row g of x, ptr[g] ≤ i < ptr[g+1], and zero before and
// after the segments. tile, grid (segments or 1, ⌈cols/32⌉): a block for each segment, so
// none has to search. Moves rows·cols and x.
KERNEL(segment_expand, real *__restrict__ d, const real *__restrict__ x, const int *__restrict__ ptr, int segments, int rows, int cols) {
	const Columns c = Columns::of_tile(blockIdx.y, cols);
	const int g = blockIdx.x, before = ptr[0];
	zero_behind(c, d, ptr[segments], rows);
	zero_behind(c, d, 0, before);
	if (g < segments && c.inside()) {
		const real v = x[(long long)g * cols + c.col];
		const int end = ptr[g + 1];
#pragma unroll 4
		for (int i = ptr[g] + c.group; i < end; i += c.groups) {
			d[(long long)i * cols + c.col] = v;
		}
	}
}

// Batch norm and readout: sums_g = Σ h_i over the nodes of graph g, y_i =
// scale·h_i + shift with the view's map (if y is not null), pooled_g =
// scale·sums_g + n_g·shift, which is Σ y_i. Rows of y after the last graph are
// zeroed. tile, grid (ngraphs+1, ⌈cols/32⌉). Moves 2·rows·cols (or 1 without y)
// and 2·ngraphs·cols.
KERNEL(norm_readout, real *__restrict__ y, real *__restrict__ sums, real *__restrict__ pooled, const real *__restrict__ h,
	const real *__restrict__ coef, const int *__restrict__ graphs, const int *__restrict__ views,
	int ngraphs, int nviews, int rows, int cols) {
	const Columns c = Columns::of_tile(blockIdx.y, cols);
	const int g = blockIdx.x, first = graphs[g];
	if (y) {
		zero_behind(c, y, graphs[ngraphs], rows);
	}
	if (g == ngraphs) {
		return;
	}
	const int end = graphs[g + 1], v = view_of(views, nviews, first);
	real scale = 0, shift = 0, sum = 0;
	if (c.inside()) {
		scale = coef[2 * v * cols + c.col];
		shift = coef[(2 * v + 1) * cols + c.col];
#pragma unroll 4
		for (int i = first + c.group; i < end; i += c.groups) {
			const long long at = (long long)i * cols + c.col;
			const real x = h[at];
			sum += x;
			if (y) {
				y[at] = scale * x + shift;
			}
		}
	}
	sum = column_sum(c, sum);
	if (c.first()) {
		sums[(long long)g * cols + c.col] = sum;
		pooled[(long long)g * cols + c.col] = scale * sum + (end - first) * shift;
	}
}

// Backward, sums over the graphs: with d_i = dy_i + dpooled_g for the nodes of
// graph g (null stands for zeros), row g of part [ngraphs×2·cols] has Σ d_i,
// followed by Σ d_i·(h_i - μ). μ is the view's or, if mean_per_view is 0, one for
// all. If graph is not null, graph[i] = g, so later kernels need not search. tile, grid
// (ngraphs, ⌈cols/32⌉). Moves 2·rows·cols and 3·ngraphs·cols.
KERNEL(norm_grad_partials, real *__restrict__ part, int *__restrict__ graph, const real *__restrict__ dy, const real *__restrict__ dpooled,
	const real *__restrict__ h, const real *__restrict__ mean, const int *__restrict__ graphs, const int *__restrict__ views,
	int mean_per_view, int ngraphs, int nviews, int cols) {
	const Columns c = Columns::of_tile(blockIdx.y, cols);
	const int g = blockIdx.x, first = graphs[g], end = graphs[g + 1];
	real sum = 0, proj = 0;
	if (c.inside()) {
		const int v = mean_per_view ? view_of(views, nviews, first) : 0;
		if (graph && c.col == 0) {
			for (int i = first + c.group; i < end; i += c.groups) {
				graph[i] = g;
			}
		}
		const real mu = mean[v * cols + c.col], all = dpooled ? dpooled[(long long)g * cols + c.col] : (real)0;
#pragma unroll 4
		for (int i = first + c.group; i < end; i += c.groups) {
			const long long at = (long long)i * cols + c.col;
			const real d = dy ? dy[at] + all : all;
			sum += d;
			proj += d * (h[at] - mu);
		}
	}
	sum = column_sum(c, sum);
	proj = column_sum(c, proj);
	if (c.first()) {
		part += (long long)g * 2 * cols;
		part[c.col] = sum;
		part[cols + c.col] = proj;
	}
}

// sum_pairs adds column col of the first half, and of the second, of the rows first,
// first+groups, … below end of part [·×2·cols].
INLINE void sum_pairs(double &sum, double &proj, const real *__restrict__ part, int first, int end, const Columns &c) {
	struct Sums {
		real sum, proj;
	};
	part += c.col;
	in_batches<8>(first, end, c.groups, [=](int k) -> Sums {
		const real *of = part + (long long)k * 2 * c.width;
		return {of[0], of[c.width]};
	}, [&](Sums s, bool inside) {
		sum += inside ? s.sum : (real)0;
		proj += inside ? s.proj : (real)0;
	});
}

// Backward, the coefficients of d(h) = k1·d + k2 + k3·h: coef [3·nviews×cols] has
// them in rows for each view, from the sums of norm_grad_partials over its
// graphs, in double; dgamma and dbeta [1×cols] are the sums over the views. With
// running statistics mean and var are [1×cols] and constants. Blocks of 32×8 threads,
// grid ⌈cols/8⌉: groups of lanes share the graphs. Moves 2·ngraphs·cols.
KERNEL(norm_grad_coefficients, real *__restrict__ coef, real *__restrict__ dgamma, real *__restrict__ dbeta,
	const real *__restrict__ part, const real *__restrict__ mean, const real *__restrict__ var, const real *__restrict__ gamma,
	const int *__restrict__ graphs, const int *__restrict__ views, double eps, int running, int ngraphs, int nviews, int cols) {
	const Columns c = Columns::of_tile(blockIdx.x, cols, MERGED);
	double gamma_total = 0, beta_total = 0;
	const int j = min(c.col, cols - 1);
	int g = 0;
	for (int v = 0; v < nviews; v++) {
		const int s = running ? j : v * cols + j, n = running ? 0 : views[v + 1] - views[v];
		const double rstd = rsqrt(var[s] + eps), k1 = gamma[j] * rstd, share = n > 0 ? 1.0 / n : 0, mu = mean[s];
		// The graphs of the view: those that start before it ends. An empty graph
		// may count for either view.
		const int end = v == nviews - 1 ? ngraphs : min(ngraphs, segment_of_warp(graphs, ngraphs, views[v + 1] - 1) + 1);
		double sum = 0, proj = 0;
		if (c.inside()) {
			sum_pairs(sum, proj, part, g + c.group, end, c);
		}
		g = end;
		sum = column_sum(c, sum);
		proj = column_sum(c, proj);
		if (c.first()) {
			const double k3 = -k1 * rstd * rstd * proj * share, k2 = -k1 * sum * share - k3 * mu;
			coef[3 * v * cols + j] = (real)k1;
			coef[(3 * v + 1) * cols + j] = (real)k2;
			coef[(3 * v + 2) * cols + j] = (real)k3;
			gamma_total += proj * rstd;
			beta_total += sum;
		}
	}
	if (c.first()) {
		dgamma[c.col] = (real)gamma_total;
		dbeta[c.col] = (real)beta_total;
	}
}

// Backward, the gradient before ReLU: d_i = k1·(dy_i + dpooled_g) + k2 + k3·h_i
// where h_i > 0, else 0, and 0 after the last graph. tile, grid (ngraphs+1,
// ⌈cols/32⌉). Moves 3·rows·cols and ngraphs·cols.
KERNEL(norm_grad_apply, real *__restrict__ d, const real *__restrict__ dy, const real *__restrict__ dpooled,
	const real *__restrict__ h, const real *__restrict__ coef, const int *__restrict__ graphs, const int *__restrict__ views,
	int ngraphs, int nviews, int rows, int cols) {
	const Columns c = Columns::of_tile(blockIdx.y, cols);
	const int g = blockIdx.x, first = graphs[g];
	zero_behind(c, d, graphs[ngraphs], rows);
	if (g == ngraphs || !c.inside()) {
		return;
	}
	const int end = graphs[g + 1], v = view_of(views, nviews, first);
	const real k1 = coef[3 * v * cols + c.col], k3 = coef[(3 * v + 2) * cols + c.col];
	real k2 = coef[(3 * v + 1) * cols + c.col];
	if (dpooled) {
		k2 += k1 * dpooled[(long long)g * cols + c.col];
	}
#pragma unroll 4
	for (int i = first + c.group; i < end; i += c.groups) {
		const long long at = (long long)i * cols + c.col;
		const real x = h[at];
		real v = k3 * x + k2;
		if (dy) {
			v += k1 * dy[at];
		}
		d[at] = x > 0 ? v : (real)0;
	}
}

// normed returns an element of batch norm's result. The gradient computes it again instead
// of reading the output of ReLU: the same expression gives the same bits.
INLINE real normed(real x, real scale, real mu, real shift) { return scale * (x - mu) + shift; }

// Batch norm by itself (backend.Norm): y_i = scale·(x_i - μ) + β with the scale
// (norm_coefficients) and μ of the row's group, then ReLU if the flag is set; 0 after the
// last group. flat over rows·cols. Moves 2·rows·cols.
KERNEL(norm_apply, real *y, const real *x, const real *coef, const real *mean, const real *beta, const int *groups, int relu, int ngroups, int rows, int cols) {
	const bool fast = cols % 4 == 0 && aligned(y) && aligned(x) && aligned(coef) && aligned(mean) && aligned(beta);
	const unsigned width = fast ? 4 : 1;
	for (unsigned e = width * flat_first(); e < (unsigned)rows * cols; e += width * flat_step()) {
		const int g = segment_of(groups, ngroups, e / cols), j = e % cols;
		real4 v = {{0, 0, 0, 0}};
		if (g < ngroups) {
			v = load_wide(x + e, fast);
			const real4 scale = load_wide(coef + 2 * g * cols + j, fast), mu = load_wide(mean + g * cols + j, fast), shift = load_wide(beta + j, fast);
			for (int k = 0; k < 4; k++) {
				v.v[k] = normed(v.v[k], scale.v[k], mu.v[k], shift.v[k]);
				v.v[k] = relu ? unary_op(RELU, v.v[k]) : v.v[k];
			}
		}
		store_wide(y + e, v, fast);
	}
}

// Its gradient, sums over the chunks of the groups: row g·chunks+k of part [·×2·cols]
// has Σ d_i, followed by Σ d_i·(x_i - μ_g). d is dy or, if a ReLU follows, dy where the
// norm is positive and 0 elsewhere. beta is for the ReLU; without one it is null.
// tile, grid (ngroups·chunks, ⌈cols/32⌉). Moves 2·rows·cols.
KERNEL(group_grad_partials, real *__restrict__ part, const real *__restrict__ dy, const real *__restrict__ x, const real *__restrict__ mean,
	const real *__restrict__ var, const real *__restrict__ gamma, const real *__restrict__ beta, const int *__restrict__ groups,
	double eps, int chunks, int cols) {
	const Columns c = Columns::of_tile(blockIdx.y, cols);
	const int g = blockIdx.x / chunks, k = blockIdx.x % chunks, n = groups[g + 1] - groups[g];
	const int first = groups[g] + chunk_bound(n, k, chunks), end = groups[g] + chunk_bound(n, k + 1, chunks);
	real sum = 0, proj = 0;
	if (c.inside()) {
		struct Element {
			real d, x;
		};
		const real mu = mean[g * cols + c.col], shift = beta ? beta[c.col] : (real)0;
		const real scale = beta ? (real)(gamma[c.col] * rsqrt(var[g * cols + c.col] + eps)) : (real)0; // norm_coefficients'
		in_batches<8>(first + c.group, end, c.groups, [=](int i) -> Element {
			const long long at = (long long)i * cols + c.col;
			return {dy[at], x[at]};
		}, [&](Element e, bool inside) {
			real d = inside ? e.d : (real)0;
			d = beta ? binary_op(GATE, d, normed(e.x, scale, mu, shift)) : d;
			sum += d;
			proj += d * (e.x - mu);
		});
	}
	sum = column_sum(c, sum);
	proj = column_sum(c, proj);
	if (c.first()) {
		part += (long long)blockIdx.x * 2 * cols;
		part[c.col] = sum;
		part[cols + c.col] = proj;
	}
}

// The coefficients of dx = k1·d + k2 + k3·(x-μ) from the sums of
// group_grad_partials, in rows for each group; dgamma and dbeta, and zeros for dbias if it
// is not null. Blocks of 32×8 threads, grid ⌈cols/8⌉. Moves 2·ngroups·chunks·cols.
KERNEL(group_grad_coefficients, real *__restrict__ coef, real *__restrict__ dgamma, real *__restrict__ dbeta, real *__restrict__ dbias, const real *__restrict__ part,
	const real *__restrict__ var, const real *__restrict__ gamma, const int *__restrict__ groups, double eps, int ngroups, int chunks, int cols) {
	const Columns c = Columns::of_tile(blockIdx.x, cols, MERGED);
	double gamma_total = 0, beta_total = 0;
	const int j = min(c.col, cols - 1);
	for (int g = 0; g < ngroups; g++) {
		const int n = groups[g + 1] - groups[g];
		const double rstd = rsqrt(var[g * cols + j] + eps), k1 = gamma[j] * rstd, share = n > 0 ? 1.0 / n : 0;
		double sum = 0, proj = 0;
		if (c.inside()) {
			sum_pairs(sum, proj, part, g * chunks + c.group, (g + 1) * chunks, c);
		}
		sum = column_sum(c, sum);
		proj = column_sum(c, proj);
		if (c.first()) {
			coef[3 * g * cols + j] = (real)k1;
			coef[(3 * g + 1) * cols + j] = (real)(-k1 * sum * share);
			coef[(3 * g + 2) * cols + j] = (real)(-k1 * rstd * rstd * proj * share);
			gamma_total += proj * rstd;
			beta_total += sum;
		}
	}
	if (c.first()) {
		dgamma[c.col] = (real)gamma_total;
		dbeta[c.col] = (real)beta_total;
		if (dbias) {
			dbias[c.col] = 0;
		}
	}
}

// dx_i = k1·d_i + k2 + k3·(x_i - μ), 0 after the last group; k1 is also the norm's scale.
// flat over rows·cols. Moves 3·rows·cols.
KERNEL(group_grad_apply, real *dx, const real *dy, const real *x, const real *coef, const real *mean, const real *beta, const int *groups, int ngroups, int rows, int cols) {
	const bool fast = cols % 4 == 0 && aligned(dx) && aligned(dy) && aligned(beta) && aligned(x) && aligned(coef) && aligned(mean);
	const unsigned width = fast ? 4 : 1;
	for (unsigned e = width * flat_first(); e < (unsigned)rows * cols; e += width * flat_step()) {
		const int g = segment_of(groups, ngroups, e / cols), j = e % cols;
		real4 v = {{0, 0, 0, 0}};
		if (g < ngroups) {
			const real *k1 = coef + 3 * g * cols + j;
			const real4 a = load_wide(k1, fast), b = load_wide(k1 + cols, fast), c = load_wide(k1 + 2 * cols, fast);
			const real4 at = load_wide(x + e, fast), mu = load_wide(mean + g * cols + j, fast);
			v = load_wide(dy + e, fast);
			if (beta) {
				const real4 shift = load_wide(beta + j, fast);
				for (int k = 0; k < 4; k++) {
					v.v[k] = binary_op(GATE, v.v[k], normed(at.v[k], a.v[k], mu.v[k], shift.v[k]));
				}
			}
			for (int k = 0; k < 4; k++) {
				v.v[k] = a.v[k] * v.v[k] + b.v[k] + c.v[k] * (at.v[k] - mu.v[k]);
			}
		}
		store_wide(dx + e, v, fast);
	}
}

// ------------------------------------------------------------ GIN's dense layers
//
// Both dense layers of a narrow GIN layer (in, hid and out at most 64) as one
// kernel, forward and backward: the values between them stay in shared memory.
// Each view is cut into chunks of about TILE rows; a block computes a chunk, TILE
// rows at a time. The rows after the last view form chunks too, without statistics
// and with gradients of zero.

enum {
	TILE = sizeof(real) == 4 ? 64 : 32,  // rows in shared memory
	SLICE = sizeof(real) == 4 ? 32 : 16, // rows of a weight matrix in shared memory
};

// Chunk is the rows lo..hi-1 of a view; the rows after the last view count as one more.
struct Chunk {
	int view, lo, hi;

	INLINE Chunk of_block(const int *views, int nviews, int chunks, int rows) {
		Chunk c;
		const int k = blockIdx.x % chunks;
		c.view = blockIdx.x / chunks;
		const int first = views[c.view], n = (c.view < nviews ? views[c.view + 1] : rows) - first;
		c.lo = first + chunk_bound(n, k, chunks);
		c.hi = first + chunk_bound(n, k + 1, chunks);
		return c;
	}
};

// Tiles and slices have rows of COLS elements, PITCH apart. A block loads all that it needs
// from global memory before it uses any of it, without branches: loads outside a matrix
// read elements inside, and become zeros.

template <int COLS> struct Tiles {
	enum { PITCH = COLS + 4 };
};

// TilePart is the elements of a tile that a thread moves at a time, W of them adjacent: N
// groups in rows that are STEP apart. All threads together move ROWS rows.
template <int COLS, int W> struct TilePart {
	enum {
		MOST = W == 4 ? 2 : 4, // more would not fit into the registers
		EACH = TILE * COLS / W / 256,
		N = EACH < MOST ? EACH : MOST,
		STEP = 256 * W / COLS,
		ROWS = N * STEP,
		PITCH = Tiles<COLS>::PITCH
	};
	real4 v[N];

	static METHOD int row(int n) { return threadIdx.x / (COLS / W) + n * STEP; }
	static METHOD int col() { return W * (threadIdx.x % (COLS / W)); }
	static METHOD bool inside(int r, int here, int cols) { return r < here && col() < cols; }
	// offset returns the place of the elements in a matrix, or of others inside it.
	static METHOD int offset(int r, int first, int here, int cols) { return (first + min(r, here - 1)) * cols + min(col(), cols - W); }

	METHOD void load(const real *a, int from, int first, int here, int cols) {
#pragma unroll
		for (int n = 0; n < N; n++) {
			v[n] = load_wide(a + offset(from + row(n), first, here, cols), W == 4);
		}
	}
	template <class S> METHOD void keep(S &tile, int from, int here, int cols) const {
#pragma unroll
		for (int n = 0; n < N; n++) {
			const bool in = inside(from + row(n), here, cols);
#pragma unroll
			for (int e = 0; e < W; e++) {
				tile[PITCH * (from + row(n)) + col() + e] = in ? v[n].v[e] : (real)0;
			}
		}
	}
	template <class S> METHOD void take(S &tile, int from) {
#pragma unroll
		for (int n = 0; n < N; n++) {
#pragma unroll
			for (int e = 0; e < W; e++) {
				v[n].v[e] = tile[PITCH * (from + row(n)) + col() + e];
			}
		}
	}
	METHOD void store(real *a, int from, int first, int here, int cols) const {
#pragma unroll
		for (int n = 0; n < N; n++) {
			if (inside(from + row(n), here, cols)) {
				store_wide(a + offset(from + row(n), first, here, cols), v[n], W == 4);
			}
		}
	}
};

// load_tile sets a tile to rows of a matrix, padded with zeros. store_tile is its inverse.
template <int COLS, int W, class S> INLINE void load_tile_as(S &tile, const real *a, int first, int here, int cols) {
#pragma unroll 1
	for (int from = 0; from < TILE; from += TilePart<COLS, W>::ROWS) {
		TilePart<COLS, W> part;
		part.load(a, from, first, here, cols);
		part.keep(tile, from, here, cols);
	}
}

template <int COLS, class S> INLINE void load_tile(S &tile, const real *a, int first, int here, int cols) {
	if (cols % 4 == 0 && aligned(a)) {
		load_tile_as<COLS, 4>(tile, a, first, here, cols);
	} else {
		load_tile_as<COLS, 1>(tile, a, first, here, cols);
	}
}

template <int COLS, int W, class S> INLINE void store_tile_as(real *a, S &tile, int first, int here, int cols) {
#pragma unroll 1
	for (int from = 0; from < here; from += TilePart<COLS, W>::ROWS) {
		TilePart<COLS, W> part;
		part.take(tile, from);
		part.store(a, from, first, here, cols);
	}
}

template <int COLS, class S> INLINE void store_tile(real *a, S &tile, int first, int here, int cols) {
	if (cols % 4 == 0 && aligned(a)) {
		store_tile_as<COLS, 4>(a, tile, first, here, cols);
	} else {
		store_tile_as<COLS, 1>(a, tile, first, here, cols);
	}
}

// Slice is SLICE rows from k0 on of w [in×out], or with TRANS of the transpose of w
// [out×in], in registers on the way to shared memory.
template <int COLS, bool TRANS> struct Slice {
	enum { N = SLICE * COLS / 256 };
	real v[N];

	static METHOD int row(int n) { return TRANS ? (threadIdx.x + 256 * n) % SLICE : (threadIdx.x + 256 * n) / COLS; }
	static METHOD int col(int n) { return TRANS ? (threadIdx.x + 256 * n) / SLICE : (threadIdx.x + 256 * n) % COLS; }

	METHOD void load(const real *w, int k0, int in, int out) {
		for (int n = 0; n < N; n++) {
			const int k = min(k0 + row(n), in - 1), j = min(col(n), out - 1);
			v[n] = w[TRANS ? j * in + k : k * out + j];
		}
	}
	template <class S> METHOD void keep(S &ws, int k0, int in, int out) const {
		for (int n = 0; n < N; n++) {
			ws[Tiles<COLS>::PITCH * row(n) + col(n)] = k0 + row(n) < in && col(n) < out ? v[n] : (real)0;
		}
	}
};

// tile_product sets acc to the thread's elements of tile [TILE×in]·w, w [in×out]
// or with TRANS the transpose of w [out×in]; slice has been loaded from row 0. Thread
// (tx, ty) of 16×16 has the elements with TILE/16·ty ≤ row, COLS/16·tx ≤ column. It
// starts with a barrier.
template <int COLS, bool TRANS, class S, class W>
INLINE void tile_product(real (&acc)[TILE / 16][COLS / 16], S &tile, W &ws, Slice<COLS, TRANS> &slice, const real *w, int in, int out) {
	const int TR = TILE / 16, TC = COLS / 16, PITCH = Tiles<COLS>::PITCH;
	const int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
	for (int i = 0; i < TR; i++) {
		for (int j = 0; j < TC; j++) {
			acc[i][j] = 0;
		}
	}
	for (int k0 = 0; k0 < in; k0 += SLICE) {
		if (k0 > 0) {
			slice.load(w, k0, in, out);
		}
		__syncthreads();
		slice.keep(ws, k0, in, out);
		__syncthreads();
		const int end = min(SLICE, in - k0);
#pragma unroll 4
		for (int k = 0; k < end; k++) {
			real x[TR], y[TC];
			for (int i = 0; i < TR; i++) {
				x[i] = tile[PITCH * (TR * ty + i) + k0 + k];
			}
			for (int j = 0; j < TC; j++) {
				y[j] = ws[PITCH * k + TC * tx + j];
			}
			for (int i = 0; i < TR; i++) {
				for (int j = 0; j < TC; j++) {
					acc[i][j] += x[i] * y[j];
				}
			}
		}
	}
}

// tile_outer adds aᵀ·b of two tiles, whose rows from `here` on are zeros, to the thread's
// COLS/16 × COLS/16 elements, and the column sums of b to those of the threads with
// ty = 0.
template <int COLS, class S>
INLINE void tile_outer(real (&acc)[COLS / 16][COLS / 16], real (&sums)[COLS / 16], S &a, S &b, int here) {
	enum { ROWS = COLS == 32 ? 4 : 2 }; // at a time
	const int TC = COLS / 16, PITCH = Tiles<COLS>::PITCH, tx = threadIdx.x % 16, ty = threadIdx.x / 16;
#pragma unroll 1
	for (int r0 = 0; r0 < here; r0 += ROWS) {
		real x[ROWS][TC], y[ROWS][TC];
		for (int r = 0; r < ROWS; r++) {
			for (int i = 0; i < TC; i++) {
				x[r][i] = a[PITCH * (r0 + r) + TC * ty + i];
				y[r][i] = b[PITCH * (r0 + r) + TC * tx + i];
			}
		}
		for (int r = 0; r < ROWS; r++) {
			for (int i = 0; i < TC; i++) {
				for (int j = 0; j < TC; j++) {
					acc[i][j] += x[r][i] * y[r][j];
				}
				sums[i] += y[r][i];
			}
		}
	}
}

// gin_mlp_chunk has its own shared memory for each COLS, so the common narrow layers do not
// pay for wide ones.
template <int COLS> INLINE void gin_mlp_chunk(real *__restrict__ h1, real *__restrict__ h2,
	real *__restrict__ part, const real *__restrict__ agg, const real *__restrict__ w1, const real *__restrict__ b1,
	const real *__restrict__ w2, const real *__restrict__ b2, const int *views, int nviews, int chunks, int rows, int in, int hid, int out) {
	const int TR = TILE / 16, TC = COLS / 16, PITCH = Tiles<COLS>::PITCH;
	SHARED(real, tile, TILE * Tiles<COLS>::PITCH);
	SHARED(real, ws, SLICE * Tiles<COLS>::PITCH);
	SHARED(real, means, 32);
	const Chunk chunk = Chunk::of_block(views, nviews, chunks, rows);
	part = part && chunk.view < nviews ? part + (long long)blockIdx.x * 2 * out : nullptr;
	const int t = threadIdx.x, tx = t % 16, ty = t / 16;
	real acc[TR][TC], bias[TC];
	real mean[COLS / 32], squares[COLS / 32]; // of the rows so far, in warp 0
	for (int q = 0; q < COLS / 32; q++) {
		mean[q] = squares[q] = 0;
	}
	for (int first = chunk.lo; first < chunk.hi; first += TILE) {
		const int here = min((int)TILE, chunk.hi - first);
		const real before = first - chunk.lo, each = reciprocal(here), share = reciprocal(first - chunk.lo + here);
		Slice<COLS, false> slice;
		for (int j = 0; j < TC; j++) {
			bias[j] = b1[min(TC * tx + j, hid - 1)];
		}
		__syncthreads();
		if (w1) {
			slice.load(w1, 0, in, hid);
			load_tile<COLS>(tile, agg, first, here, in);
			tile_product<COLS, false>(acc, tile, ws, slice, w1, in, hid);
			__syncthreads();
		} else {
			load_tile<COLS>(tile, h1, first, here, hid);
			__syncthreads();
			for (int i = 0; i < TR; i++) {
				for (int j = 0; j < TC; j++) {
					acc[i][j] = tile[PITCH * (TR * ty + i) + TC * tx + j];
				}
			}
		}
		slice.load(w2, 0, hid, out);
		for (int i = 0; i < TR; i++) {
			for (int j = 0; j < TC; j++) {
				const int r = TR * ty + i, c = TC * tx + j;
				tile[PITCH * r + c] = r < here && c < hid ? unary_op(RELU, acc[i][j] + bias[j]) : (real)0;
			}
		}
		for (int j = 0; j < TC; j++) {
			bias[j] = b2[min(TC * tx + j, out - 1)];
		}
		__syncthreads();
		store_tile<COLS>(h1, tile, first, here, hid);
		tile_product<COLS, false>(acc, tile, ws, slice, w2, hid, out);
		__syncthreads();
		for (int i = 0; i < TR; i++) {
			for (int j = 0; j < TC; j++) {
				const int r = TR * ty + i, c = TC * tx + j;
				tile[PITCH * r + c] = r < here && c < out ? unary_op(RELU, acc[i][j] + bias[j]) : (real)0;
			}
		}
		__syncthreads();
		store_tile<COLS>(h2, tile, first, here, out);
		if (!part) {
			continue; // the same in all threads
		}
		for (int q = 0; q < COLS / 32; q++) {
			const Columns c = {32 * q + t % 32, out, 32, t / 32, 8};
			real sum = 0, sq = 0;
			for (int r = c.group; r < TILE; r += 8) {
				sum += tile[PITCH * r + c.col]; // zeros after the rows
			}
			sum = column_sum(c, sum);
			if (c.group == 0) {
				means[t] = sum * each;
			}
			__syncthreads();
			const real m = means[t % 32];
			for (int r = c.group; r < TILE; r += 8) {
				const real v = tile[PITCH * r + c.col] - m;
				sq += r < here ? v * v : (real)0;
			}
			sq = column_sum(c, sq);
			if (c.group == 0) { // merge with the earlier rows
				const real delta = m - mean[q];
				mean[q] += here * share * delta;
				squares[q] += sq + before * here * share * delta * delta;
			}
		}
	}
	for (int q = 0; part && q < COLS / 32; q++) {
		const int c = 32 * q + t;
		if (t < 32 && c < out) {
			part[c] = mean[q];
			part[out + c] = squares[q];
		}
	}
}

// Forward: h1 = ReLU(agg·w1 + b1), h2 = ReLU(h1·w2 + b2). If w1 is null, h1 holds
// the product already (one-hot rows). part, if not null, gets the means and
// squared deviations of h2 as segment_moments writes them. block, grid
// (nviews+1)·chunks. Moves rows·(in + hid + out) and the weights once a block;
// 2·rows·hid·(in + out) operations. gin_mlp takes in (with w1), hid and out up to
// 32, and gin_mlp_wide up to 64.
KERNEL_BLOCKS(gin_mlp, 4, 1, real *__restrict__ h1, real *__restrict__ h2, real *__restrict__ part, const real *__restrict__ agg,
	const real *__restrict__ w1, const real *__restrict__ b1, const real *__restrict__ w2, const real *__restrict__ b2,
	const int *__restrict__ views, int nviews, int chunks, int rows, int in, int hid, int out) {
	gin_mlp_chunk<32>(h1, h2, part, agg, w1, b1, w2, b2, views, nviews, chunks, rows, in, hid, out);
}

KERNEL_BLOCKS(gin_mlp_wide, 2, 1, real *__restrict__ h1, real *__restrict__ h2, real *__restrict__ part, const real *__restrict__ agg,
	const real *__restrict__ w1, const real *__restrict__ b1, const real *__restrict__ w2, const real *__restrict__ b2,
	const int *__restrict__ views, int nviews, int chunks, int rows, int in, int hid, int out) {
	gin_mlp_chunk<64>(h1, h2, part, agg, w1, b1, w2, b2, views, nviews, chunks, rows, in, hid, out);
}

// through_norm replaces h2 in ds by its gradient before ReLU, computed from those of batch
// norm and the readout. A thread replaces the elements that it loaded.
template <int COLS, int W, class S> INLINE void through_norm(S &ds, const real *__restrict__ dy, const real *__restrict__ dpooled,
	const real *__restrict__ coef, const int *__restrict__ graph, int first, int here, int out) {
	typedef TilePart<COLS, W> Part;
	const int c = min(Part::col(), out - W);
#pragma unroll 1
	for (int from = 0; from < TILE; from += Part::ROWS) {
		Part x, g;
#pragma unroll
		for (int n = 0; n < Part::N; n++) {
			g.v[n] = {{0, 0, 0, 0}};
		}
		if (dy) {
			g.load(dy, from, first, here, out);
		}
		if (dpooled) {
			int of[Part::N];
#pragma unroll
			for (int n = 0; n < Part::N; n++) {
				of[n] = graph[first + min(from + Part::row(n), here - 1)];
			}
#pragma unroll
			for (int n = 0; n < Part::N; n++) {
				x.v[n] = load_wide(dpooled + of[n] * out + c, W == 4);
			}
#pragma unroll
			for (int n = 0; n < Part::N; n++) {
#pragma unroll
				for (int e = 0; e < W; e++) {
					g.v[n].v[e] += x.v[n].v[e];
				}
			}
		}
		const real4 k1 = load_wide(coef + c, W == 4), k2 = load_wide(coef + out + c, W == 4), k3 = load_wide(coef + 2 * out + c, W == 4);
		x.take(ds, from);
#pragma unroll
		for (int n = 0; n < Part::N; n++) {
#pragma unroll
			for (int e = 0; e < W; e++) {
				const real h = x.v[n].v[e];
				x.v[n].v[e] = h > 0 ? k1.v[e] * g.v[n].v[e] + k2.v[e] + k3.v[e] * h : (real)0;
			}
		}
		x.keep(ds, from, here, out);
	}
}

template <int COLS> INLINE void gin_mlp_grad_chunk(real *__restrict__ dh1, real *__restrict__ dagg,
	real *__restrict__ part, const real *__restrict__ dy, const real *__restrict__ dpooled, const real *__restrict__ h1, const real *__restrict__ h2,
	const real *__restrict__ agg, const real *__restrict__ w1, const real *__restrict__ w2, const real *__restrict__ coef,
	const int *__restrict__ graph, const int *__restrict__ views, int nviews, int chunks, int rows, int in, int hid, int out) {
	const int TR = TILE / 16, TC = COLS / 16, PITCH = Tiles<COLS>::PITCH;
	SHARED(real, ds, TILE * Tiles<COLS>::PITCH);
	SHARED(real, hs, TILE * Tiles<COLS>::PITCH);
	SHARED(real, ws, SLICE * Tiles<COLS>::PITCH);
	const Chunk chunk = Chunk::of_block(views, nviews, chunks, rows);
	if (chunk.view == nviews) {
		for (int e = chunk.lo * hid + threadIdx.x; dh1 && e < chunk.hi * hid; e += 256) {
			dh1[e] = 0;
		}
		for (int e = chunk.lo * in + threadIdx.x; dagg && e < chunk.hi * in; e += 256) {
			dagg[e] = 0;
		}
		return;
	}
	const int t = threadIdx.x, tx = t % 16, ty = t / 16, inner = w1 ? in : 0;
	real acc[TR][TC], dw1[TC][TC], dw2[TC][TC], db1[TC], db2[TC];
	for (int i = 0; i < TC; i++) {
		db1[i] = db2[i] = 0;
		for (int j = 0; j < TC; j++) {
			dw1[i][j] = dw2[i][j] = 0;
		}
	}
	coef += 3 * chunk.view * out;
	for (int first = chunk.lo; first < chunk.hi; first += TILE) {
		const int here = min((int)TILE, chunk.hi - first);
		Slice<COLS, true> slice;
		__syncthreads();
		load_tile<COLS>(hs, h1, first, here, hid);
		if (out % 4 == 0 && aligned(h2) && aligned(coef) && aligned(dy) && aligned(dpooled)) {
			load_tile_as<COLS, 4>(ds, h2, first, here, out);
			through_norm<COLS, 4>(ds, dy, dpooled, coef, graph, first, here, out);
		} else {
			load_tile_as<COLS, 1>(ds, h2, first, here, out);
			through_norm<COLS, 1>(ds, dy, dpooled, coef, graph, first, here, out);
		}
		__syncthreads();
		slice.load(w2, 0, out, hid);
		tile_outer<COLS>(dw2, db2, hs, ds, here);
		tile_product<COLS, true>(acc, ds, ws, slice, w2, out, hid);
		if (dagg) {
			slice.load(w1, 0, hid, in);
		}
		__syncthreads();
		for (int i = 0; i < TR; i++) {
			for (int j = 0; j < TC; j++) {
				const int at = PITCH * (TR * ty + i) + TC * tx + j;
				ds[at] = binary_op(GATE, acc[i][j], hs[at]); // hs is 0 outside
			}
		}
		__syncthreads();
		if (dh1) {
			store_tile<COLS>(dh1, ds, first, here, hid);
		}
		if (w1) {
			load_tile<COLS>(hs, agg, first, here, in);
			__syncthreads();
		}
		tile_outer<COLS>(dw1, db1, hs, ds, here);
		if (dagg) {
			tile_product<COLS, true>(acc, ds, ws, slice, w1, hid, in);
			for (int i = 0; i < TR; i++) { // hs has been read before the product's barrier
				for (int j = 0; j < TC; j++) {
					hs[PITCH * (TR * ty + i) + TC * tx + j] = acc[i][j];
				}
			}
			__syncthreads();
			store_tile<COLS>(dagg, hs, first, here, in);
		}
	}
	real *p1 = part + (long long)blockIdx.x * (inner * hid + hid + hid * out + out), *q1 = p1 + inner * hid, *p2 = q1 + hid, *q2 = p2 + hid * out;
	for (int i = 0; i < TC; i++) {
		for (int j = 0; j < TC; j++) {
			const int r = TC * ty + i, c = TC * tx + j;
			if (r < inner && c < hid) {
				p1[r * hid + c] = dw1[i][j];
			}
			if (r < hid && c < out) {
				p2[r * out + c] = dw2[i][j];
			}
		}
		const int c = TC * tx + i;
		if (ty == 0 && c < hid) {
			q1[c] = db1[i];
		}
		if (ty == 0 && c < out) {
			q2[c] = db2[i];
		}
	}
}

// Backward: d_i = k1·(dy_i + dpooled_g) + k2 + k3·h2_i where h2_i > 0 (dy or
// dpooled null stands for zeros; coef is norm_grad_coefficients'), dh1 = d·w2ᵀ
// where h1 > 0, dagg = dh1·w1ᵀ. dh1 and dagg are written if not null. Row b of
// part, for block b of a view, has the chunk's part of the gradients of w1,
// b1, w2 and b2, in this order; if w1 is null, its gradient is missing. merge_gradients
// follows. graph has the graph of each row. block, grid (nviews+1)·chunks. Moves
// rows·(2·in + hid + 2·out) and the parts; 4·rows·hid·(in + out) operations. Like
// gin_mlp, for widths up to 32 or 64.
KERNEL_BLOCKS(gin_mlp_grad, 3, 1, real *__restrict__ dh1, real *__restrict__ dagg, real *__restrict__ part, const real *__restrict__ dy, const real *__restrict__ dpooled,
	const real *__restrict__ h1, const real *__restrict__ h2, const real *__restrict__ agg, const real *__restrict__ w1, const real *__restrict__ w2,
	const real *__restrict__ coef, const int *__restrict__ graph, const int *__restrict__ views, int nviews, int chunks,
	int rows, int in, int hid, int out) {
	gin_mlp_grad_chunk<32>(dh1, dagg, part, dy, dpooled, h1, h2, agg, w1, w2, coef, graph, views, nviews, chunks, rows, in, hid, out);
}

KERNEL_BLOCKS(gin_mlp_grad_wide, 2, 1, real *__restrict__ dh1, real *__restrict__ dagg, real *__restrict__ part, const real *__restrict__ dy, const real *__restrict__ dpooled,
	const real *__restrict__ h1, const real *__restrict__ h2, const real *__restrict__ agg, const real *__restrict__ w1, const real *__restrict__ w2,
	const real *__restrict__ coef, const int *__restrict__ graph, const int *__restrict__ views, int nviews, int chunks,
	int rows, int in, int hid, int out) {
	gin_mlp_grad_chunk<64>(dh1, dagg, part, dy, dpooled, h1, h2, agg, w1, w2, coef, graph, views, nviews, chunks, rows, in, hid, out);
}

// The gradients of w1 [in×hid] (null for none), b1, w2 [hid×out] and b2 are the
// sums of the chunks, in double. Blocks of 32×8 threads, grid ⌈size/8⌉ for the size of a
// row of part. Moves chunks·size.
KERNEL(merge_gradients, real *__restrict__ dw1, real *__restrict__ db1, real *__restrict__ dw2, real *__restrict__ db2,
	const real *__restrict__ part, int chunks, int in, int hid, int out) {
	const int n1 = dw1 ? in * hid : 0, n2 = n1 + hid, n3 = n2 + hid * out, size = n3 + out;
	const Columns c = Columns::of_tile(blockIdx.x, size, MERGED);
	double sum = 0;
	if (c.inside()) {
		in_batches<8>(c.group, chunks, c.groups, [=](int k) { return part[(long long)k * size + c.col]; },
			[&](real v, bool inside) { sum += inside ? v : (real)0; });
	}
	sum = column_sum(c, sum);
	if (c.first()) {
		const int e = c.col;
		real *d = e < n1 ? dw1 + e : e < n2 ? db1 + (e - n1) : e < n3 ? dw2 + (e - n2) : db2 + (e - n3);
		*d = (real)sum;
	}
}

// ------------------------------------------------------------------- percentiles
//
// The order statistics `rank` and rank+1 of the strict upper triangle of s
// [n×n], exactly, by radix selection. Keys are integers in the order of the numbers. A
// pass finds eight more bits of both: it counts the values of these bits among the
// keys that agree with the bits so far.

template <int BYTES> struct KeyOf;
template <> struct KeyOf<4> { typedef unsigned type; };
template <> struct KeyOf<8> { typedef uint64 type; };
typedef KeyOf<sizeof(real)>::type key;

enum { PASSES = sizeof(real) };

// The same bits as a number and as an integer.
union Bits {
	real number;
	key bits;
};

// key_of maps numbers to integers in the same order, and both zeros to one integer.
INLINE key key_of(real x) {
	const key top = (key)1 << (8 * PASSES - 1);
	Bits b;
	b.number = x;
	return b.bits & top ? top - (b.bits & ~top) : top + b.bits;
}

INLINE real number_of(key k) {
	const key top = (key)1 << (8 * PASSES - 1);
	Bits b;
	b.bits = k >= top ? k - top : (top - k) | top;
	return b.number;
}

// Found has the leading bits of the key of an order statistic, and its place among the
// keys that agree with them.
struct Found {
	key prefix;
	int place;
};

// find reads the counts of the given number of passes. All lanes of a warp must call it.
INLINE Found find(const unsigned *hist, int passes, int rank) {
	const int lane = thread_in_block() % 32;
	Found f = {0, rank};
	for (int pass = 0; pass < passes; pass++, hist += 256) {
		int count[8], sum = 0; // of this lane's eight digits
		for (int k = 0; k < 8; k++) {
			count[k] = (int)hist[8 * lane + k];
			sum += count[k];
		}
		int before = sum; // inclusive prefix sum, and then exclusive
		for (int d = 1; d < 32; d *= 2) {
			const int below = __shfl_up_sync(ALL, before, d, 32);
			before += lane >= d ? below : 0;
		}
		before -= sum;
		// Exactly one lane has the place, unless there are no keys.
		const unsigned here = __ballot_sync(ALL, f.place >= before && f.place < before + sum);
		const int owner = here ? __ffs((int)here) - 1 : 0;
		int digit = 8 * lane, place = f.place - before;
		for (int k = 0; k < 7 && place >= count[k]; k++) {
			place -= count[k];
			digit++;
		}
		f.prefix = f.prefix << 8 | (key)__shfl_sync(ALL, digit, owner, 32);
		f.place = __shfl_sync(ALL, place, owner, 32);
	}
	return f;
}

INLINE const unsigned *rank_counts(const unsigned *hist, int matrix, int second) {
	return hist + (2 * matrix + second) * PASSES * 256;
}

// next_rank returns the place after rank, or rank if it is the last.
INLINE int next_rank(int rank, int n) { return min(rank + 1, (int)((long long)n * (n - 1) / 2 - 1)); }

// One pass: hist [matrices][2][passes][256], zero before pass 0, counts the
// digits of the pass for rank and for the next. block, grid (min(n, 256),
// matrices 1 or 2): a block counts every gridDim.x-th row in shared memory, and adds its
// counts. Moves n²/2 for each matrix.
KERNEL(percentile_count, unsigned *hist, const real *s0, const real *s1, int n, int rank, int pass) {
	SHARED(unsigned, counts, 512);
	SHARED(key, prefixes, 2);
	const int t = threadIdx.x;
	const real *s = blockIdx.y ? s1 : s0;
	if (t < 64) { // a warp for each
		const int second = t / 32;
		const Found f = find(rank_counts(hist, blockIdx.y, second), pass, second ? next_rank(rank, n) : rank);
		if (t % 32 == 0) {
			prefixes[second] = f.prefix;
		}
	}
	counts[t] = 0;
	counts[256 + t] = 0;
	__syncthreads();
	const key a = prefixes[0], b = prefixes[1];
	const int shift = 8 * (PASSES - 1 - pass);
	for (int i = blockIdx.x; i < n; i += gridDim.x) {
		for (int j = i + 1 + t; j < n; j += 256) {
			const key k = key_of(s[(long long)i * n + j]) >> shift;
			if (k >> 8 == a) {
				atomicAdd(&counts[(int)(k & 255)], 1u);
			} else if (k >> 8 == b) {
				atomicAdd(&counts[256 + (int)(k & 255)], 1u);
			}
		}
	}
	__syncthreads();
	unsigned *out = hist + (2 * blockIdx.y * PASSES + pass) * 256 + t;
	const unsigned first = counts[t], second = a == b ? first : counts[256 + t];
	if (first) {
		atomicAdd(out, first);
	}
	if (second) {
		atomicAdd(out + PASSES * 256, second);
	}
}

// theta[m] is the interpolation between both statistics of matrix m with weight
// `second` for the next. A warp for each matrix. Moves a negligible amount.
KERNEL(percentile_value, real *theta, const unsigned *hist, const real *s0, const real *s1, double second, int n, int rank) {
	const int m = blockIdx.x;
	const Found a = find(rank_counts(hist, m, 0), PASSES, rank);
	const Found b = find(rank_counts(hist, m, 1), PASSES, next_rank(rank, n));
	if (threadIdx.x == 0) {
		const real x = number_of(a.prefix), y = number_of(b.prefix);
		theta[m] = second == 0 ? x : (real)((1 - second) * x + second * y);
	}
}

// ∂theta/∂s: among the entries that equal an order statistic, the one at its
// place in row-major order gets the weight; w must be zero before. One block: a
// thread counts the entries in its rows, and the thread whose rows have the
// place searches for it. Moves n²/2, twice.
KERNEL(percentile_weights, real *w, const unsigned *hist, const real *s, double second, int n, int rank) {
	SHARED(int, counts, 256);
	const int t = threadIdx.x;
	const int first = chunk_bound(n, t, 256), end = chunk_bound(n, t + 1, 256);
	for (int r = 0; r < (second == 0 ? 1 : 2); r++) {
		const Found f = find(rank_counts(hist, 0, r), PASSES, rank + r);
		int count = 0;
		for (int i = first; i < end; i++) {
			for (int j = i + 1; j < n; j++) {
				count += key_of(s[(long long)i * n + j]) == f.prefix;
			}
		}
		counts[t] = count;
		__syncthreads();
		int place = f.place;
		for (int k = 0; k < t; k++) {
			place -= counts[k];
		}
		if (place >= 0 && place < count) {
			for (int i = first; i < end; i++) {
				for (int j = i + 1; j < n; j++) {
					if (key_of(s[(long long)i * n + j]) == f.prefix && place-- == 0) {
						w[(long long)i * n + j] = (real)(r ? second : 1 - second);
					}
				}
			}
		}
		__syncthreads();
	}
}

// ---------------------------------------------------------------------- losses
//
// backend.Contrast, with n graphs in each view: rows i < n of the similarities
// are view 1, p(i) is the same graph in the other view.

// NT-Xent, forward: e [2n×2n] holds S = U·Uᵀ and becomes e^((s-1)/τ) with a zero
// diagonal; invz_i is 1/Z_i for the row's sum Z_i, terms_i = ln Z_i + (1 -
// s_ip(i))/τ. The blocks of S within each view, for the Laplacian loss, go to a0
// and a1 [n×n] if they are not null. block, a row each. Moves 8n²,
// and 2n² with a0 and a1.
KERNEL(contrast_rows, real *__restrict__ e, real *__restrict__ invz, double *__restrict__ terms, real *__restrict__ a0, real *__restrict__ a1,
	double tau, int n) {
	const int i = blockIdx.x, m = 2 * n, v = i / n, t = threadIdx.x;
	real *row = e + (long long)i * m;
	real *a = v ? a1 : a0;
	const double positive = row[(i + n) % m];
	const real inverse = (real)(1 / tau);
	__syncthreads(); // all threads have read it
	double z = 0;
	for (int j = t; j < m; j += 256) {
		const real s = row[j];
		if (a && j >= v * n && j < (v + 1) * n) {
			a[(long long)(i - v * n) * n + j - v * n] = s;
		}
		const real x = j == i ? (real)0 : exp((s - 1) * inverse);
		row[j] = x;
		z += x;
	}
	z = block_sum(z);
	if (t == 0) {
		invz[i] = (real)(1 / z);
		terms[i] = log(z) + (1 - positive) / tau;
	}
}

// Similarities become adjacencies: a = σ(κ·(a - θ_v)) with a zero diagonal, and
// r = d^-½ of the row sums d, 0 where d is below LEAST_DEGREE. block, a row of both
// views each. Moves 4n².
KERNEL(contrast_graph, real *__restrict__ a0, real *__restrict__ a1, real *__restrict__ r, const real *__restrict__ theta, double kappa, int n) {
	const int v = blockIdx.x / n, i = blockIdx.x % n;
	real *a = (v ? a1 : a0) + (long long)i * n;
	const real slope = (real)kappa, threshold = theta[v];
	double degree = 0;
	for (int j = threadIdx.x; j < n; j += 256) {
		const real x = j == i ? (real)0 : sigmoid(slope * (a[j] - threshold));
		a[j] = x;
		degree += x;
	}
	degree = block_sum(degree);
	if (threadIdx.x == 0) {
		r[blockIdx.x] = (real)degree < LEAST_DEGREE ? (real)0 : (real)rsqrt(degree);
	}
}

// The Laplacian loss, forward: with M_v = D_v^-½·A_v·D_v^-½ and D = M_1 - M_2,
// terms_i = Σ_j D_ij², w_i = 2·r_i²·Σ_j D_ij·M_1,ij, and w_(n+i) = -2·r_(n+i)²·
// Σ_j D_ij·M_2,ij. block, a row each. Moves 2n².
KERNEL(contrast_match, double *__restrict__ terms, real *__restrict__ w, const real *__restrict__ a0, const real *__restrict__ a1, const real *__restrict__ r, int n) {
	const int i = blockIdx.x;
	const real r0 = r[i], r1 = r[n + i];
	double squares = 0, u0 = 0, u1 = 0;
	for (int j = threadIdx.x; j < n; j += 256) {
		const real m0 = r0 * a0[(long long)i * n + j] * r[j], m1 = r1 * a1[(long long)i * n + j] * r[n + j], diff = m0 - m1;
		squares += (double)diff * diff;
		u0 += (double)diff * m0;
		u1 += (double)diff * m1;
	}
	squares = block_sum(squares);
	u0 = block_sum(u0);
	u1 = block_sum(u1);
	if (threadIdx.x == 0) {
		terms[i] = squares;
		w[i] = (real)(2 * u0 * r0 * r0);
		w[n + i] = (real)(-2 * u1 * r1 * r1);
	}
}

// Backward: g [2n×2n] = G + Gᵀ with G the gradient with respect to S, so that
// the gradient of U is g·U. With c = alpha_c·dc and l = alpha_g·dg (null stands
// for 0; if a0 is null, there is no Laplacian part):
//
//	g_ij = c·(E_ij·(1/Z_i + 1/Z_j) - 2·[j = p(i)])
//	     + l·A(1-A)·(±4·D_ij·r_i·r_j - w_i - w_j)   within the view's own half
//
// block, a row each. Moves 8n², and 4n² for the Laplacian part.
KERNEL(contrast_gradient, real *__restrict__ g, const real *__restrict__ e, const real *__restrict__ invz,
	const real *__restrict__ a0, const real *__restrict__ a1, const real *__restrict__ r, const real *__restrict__ w,
	const real *__restrict__ dc, const real *__restrict__ dg, double alpha_c, double alpha_g, int n) {
	const int i = blockIdx.x, m = 2 * n, v = i / n, k = i - v * n;
	const real c = dc ? (real)(alpha_c * dc[0]) : (real)0;
	const real l = dg && a0 ? (real)(alpha_g * dg[0]) : (real)0;
	const real zi = invz[i];
	real rk0 = 0, rk1 = 0, wi = 0;
	if (l != 0) {
		rk0 = r[k];
		rk1 = r[n + k];
		wi = w[i];
	}
	for (int j = threadIdx.x; j < m; j += 256) {
		real x = 0;
		if (c != 0) {
			x = c * (zi + invz[j]) * e[(long long)i * m + j];
			if (j == (i + n) % m) {
				x -= 2 * c;
			}
		}
		const int q = j - v * n;
		if (l != 0 && q >= 0 && q < n) {
			const real b0 = a0[(long long)k * n + q], b1 = a1[(long long)k * n + q], a = v ? b1 : b0;
			const real diff = rk0 * b0 * r[q] - rk1 * b1 * r[n + q];
			const real both = (v ? -4 : 4) * diff * (v ? rk1 : rk0) * r[v * n + q] - w[j] - wi;
			x += l * (a - a * a) * both;
		}
		g[(long long)i * m + j] = x;
	}
}
