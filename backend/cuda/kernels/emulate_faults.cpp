//go:build emulate

// Kernels with deliberate faults, which the emulation must report.

#include "emulate.h"

#define REAL float
namespace emu_faults {

// Each thread reads what its neighbour wrote before a barrier.
KERNEL(fault_race, float *d) {
	SHARED(float, s, 64);
	const int t = threadIdx.x;
	s[t] = 0;
	__syncthreads();
	s[t] = t;
	d[t] = s[(t + 1) % 64];
}

// The correct form.
KERNEL(fault_none, float *d) {
	SHARED(float, s, 64);
	const int t = threadIdx.x;
	s[t] = t;
	__syncthreads();
	d[t] = s[(t + 1) % 64];
}

// Written by two threads.
KERNEL(fault_twice, float *d) {
	SHARED(float, s, 64);
	s[threadIdx.x / 2] = 1;
	d[threadIdx.x] = 0;
}

KERNEL(fault_unwritten, float *d) {
	SHARED(float, s, 64);
	const int t = threadIdx.x;
	if (t > 0) {
		s[t] = 1;
	}
	__syncthreads();
	d[t] = s[t];
}

KERNEL(fault_index, float *d) {
	SHARED(float, s, 64);
	const int t = threadIdx.x;
	s[t + 1] = 1;
	d[t] = 0;
}

// A barrier that the last thread does not reach.
KERNEL(fault_barrier, float *d) {
	if (threadIdx.x < 63) {
		__syncthreads();
	}
	d[threadIdx.x] = 0;
}

// A warp's exchange without its last lane.
KERNEL(fault_lane, float *d) {
	const int t = threadIdx.x;
	d[t] = t % 32 < 31 ? __shfl_xor_sync(0xffffffffu, 1.0f, 1, 32) : 0;
}

// Two barriers, one for each half of the block.
KERNEL(fault_halves, float *d) {
	if (threadIdx.x < 32) {
		__syncthreads();
	} else {
		__syncthreads();
	}
	d[threadIdx.x] = 0;
}

// Beyond the end of its 64 numbers.
KERNEL(fault_address, float *d) { d[threadIdx.x + (threadIdx.x == 63)] = 0; }

// Depends on which thread comes last.
KERNEL(fault_order, float *d) { d[0] = threadIdx.x; }

} // namespace emu_faults
