#pragma once
#include <cuda.h>
#include <stddef.h>

// Functions that the binding lacks: recording, pinned memory and cuBLAS. They return
// CUresult, those of cuBLAS cublasStatus_t; 0 is success.

int table_begin_capture(CUstream stream);
int table_end_capture(CUstream stream, CUgraphExec *exec);
int table_launch_graph(CUgraphExec exec, CUstream stream);
int table_destroy_graph(CUgraphExec exec);

int table_pinned(void **mem, size_t bytes);
int table_free_pinned(void *mem);

// table_blas_open opens cuBLAS; on failure it returns null and writes the reason.
typedef struct blas blas;
blas *table_blas_open(char *why, size_t size);
const char *table_blas_path(const blas *b);
int table_blas_version(const blas *b);
// table_blas_start makes the handle, on a stream and with a workspace of its own. So
// nothing is allocated while recording, and results do not depend on other work. tf32
// lets products round their inputs to 10 bits.
int table_blas_start(blas *b, CUstream stream, CUdeviceptr workspace, size_t bytes, int tf32);
int table_blas_round(blas *b, int tf32);
int table_blas_close(blas *b);

// table_gemm is the product of row-major matrices, see driver.gemm.
int table_gemm(blas *b, int is_double, int trans_a, int trans_b, int m, int n, int k, double alpha,
               CUdeviceptr a, int lda, CUdeviceptr x, int ldx, double beta, CUdeviceptr c);
// table_gemm_parts is many products of adjacent matrices, see driver.gemmParts.
int table_gemm_parts(blas *b, int is_double, int parts, int m, int n, int k, double alpha,
                     CUdeviceptr a, CUdeviceptr x, CUdeviceptr c);
