//go:build cuda && linux && amd64 && cgo

#define _GNU_SOURCE
#include "table.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "delay.h"

// The mode restricts only the calling thread: other threads may use the device.
int table_begin_capture(CUstream stream) { return cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL); }

// table_end_capture ends the recording in any case. A null exec asks for no
// graph.
int table_end_capture(CUstream stream, CUgraphExec *exec) {
	CUgraph graph = NULL;
	int r = cuStreamEndCapture(stream, &graph);
	if (r == 0 && exec) {
		r = cuGraphInstantiateWithFlags(exec, graph, 0);
	}
	if (graph) {
		cuGraphDestroy(graph);
	}
	return r;
}

int table_launch_graph(CUgraphExec exec, CUstream stream) { return cuGraphLaunch(exec, stream); }
int table_destroy_graph(CUgraphExec exec) { return cuGraphExecDestroy(exec); }

int table_pinned(void **mem, size_t bytes) { return cuMemHostAlloc(mem, bytes, 0); }
int table_free_pinned(void *mem) { return cuMemFreeHost(mem); }

// The functions of cuBLAS, whose prototypes are the same from CUDA 11 to 13.
typedef void *handle;
struct blas {
	handle h;
	int (*create)(handle *);
	int (*destroy)(handle);
	int (*set_stream)(handle, CUstream);
	int (*set_workspace)(handle, void *, size_t);
	int (*set_math_mode)(handle, int);
	int (*get_version)(handle, int *);
	int (*sgemm)(handle, int, int, int, int, int, const float *, const float *, int, const float *, int, const float *, float *, int);
	int (*dgemm)(handle, int, int, int, int, int, const double *, const double *, int, const double *, int, const double *, double *, int);
	int (*sgemms)(handle, int, int, int, int, int, const float *, const float *, int, long long, const float *, int, long long, const float *, float *, int, long long, int);
	int (*dgemms)(handle, int, int, int, int, int, const double *, const double *, int, long long, const double *, int, long long, const double *, double *, int, long long, int);
};

blas *table_blas_open(char *why, size_t size) {
	static const char *const sonames[] = {"libcublas.so.13", "libcublas.so.12", NULL};
	void *lib = delay_open("SPECMATCH_LIBCUBLAS", sonames, why, size);
	if (!lib) {
		return NULL;
	}
	blas *b = calloc(1, sizeof *b);
	const struct { const char *name; void **f; } functions[] = {
	    {"cublasCreate_v2", (void **)&b->create},
	    {"cublasDestroy_v2", (void **)&b->destroy},
	    {"cublasSetStream_v2", (void **)&b->set_stream},
	    {"cublasSetWorkspace_v2", (void **)&b->set_workspace},
	    {"cublasSetMathMode", (void **)&b->set_math_mode},
	    {"cublasGetVersion_v2", (void **)&b->get_version},
	    {"cublasSgemm_v2", (void **)&b->sgemm},
	    {"cublasDgemm_v2", (void **)&b->dgemm},
	    {"cublasSgemmStridedBatched", (void **)&b->sgemms},
	    {"cublasDgemmStridedBatched", (void **)&b->dgemms},
	};
	for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
		*functions[i].f = dlsym(lib, functions[i].name);
		if (!*functions[i].f) {
			snprintf(why, size, "%s", dlerror());
			table_blas_close(b);
			return NULL;
		}
	}
	return b;
}

const char *table_blas_path(const blas *b) {
	Dl_info info;
	return dladdr((void *)b->create, &info) && info.dli_fname ? info.dli_fname : "";
}

int table_blas_version(const blas *b) {
	int version = 0;
	b->get_version(b->h, &version);
	return version;
}

enum { default_math = 0, tf32_math = 3 };

int table_blas_start(blas *b, CUstream stream, CUdeviceptr workspace, size_t bytes, int tf32) {
	int r = b->create(&b->h);
	if (r == 0) r = b->set_stream(b->h, stream);
	if (r == 0) r = b->set_workspace(b->h, (void *)workspace, bytes);
	if (r == 0) r = table_blas_round(b, tf32);
	return r;
}

int table_blas_round(blas *b, int tf32) { return b->set_math_mode(b->h, tf32 ? tf32_math : default_math); }

// The library stays loaded: loading takes long, and threads that called it may call
// into it when they end.
int table_blas_close(blas *b) {
	int r = b->h ? b->destroy(b->h) : 0;
	free(b);
	return r;
}

// cuBLAS is column-major: it sees the transposes, so Cᵀ = op(B)ᵀ·op(A)ᵀ.
int table_gemm(blas *b, int is_double, int trans_a, int trans_b, int m, int n, int k, double alpha,
               CUdeviceptr a, int lda, CUdeviceptr x, int ldx, double beta, CUdeviceptr c) {
	if (is_double) {
		return b->dgemm(b->h, trans_b, trans_a, n, m, k, &alpha, (const double *)x, ldx, (const double *)a, lda, &beta, (double *)c, n);
	}
	const float al = (float)alpha, be = (float)beta;
	return b->sgemm(b->h, trans_b, trans_a, n, m, k, &al, (const float *)x, ldx, (const float *)a, lda, &be, (float *)c, n);
}

int table_gemm_parts(blas *b, int is_double, int parts, int m, int n, int k, double alpha,
                     CUdeviceptr a, CUdeviceptr x, CUdeviceptr c) {
	const int as_is = 0, transposed = 1;
	const long long step_x = (long long)k * n, step_a = (long long)k * m, step_c = (long long)m * n;
	if (is_double) {
		const double zero = 0;
		return b->dgemms(b->h, as_is, transposed, n, m, k, &alpha, (const double *)x, n, step_x, (const double *)a, m, step_a, &zero, (double *)c, n, step_c, parts);
	}
	const float al = (float)alpha, zero = 0;
	return b->sgemms(b->h, as_is, transposed, n, m, k, &al, (const float *)x, n, step_x, (const float *)a, m, step_a, &zero, (float *)c, n, step_c, parts);
}
