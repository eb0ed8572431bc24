/* libcublas: a matrix product is its number of operations, given to the driver library. */
#include "../include/cublas_v2.h"
#include "simulated.h"

#include <stddef.h>

#define EXPORT __attribute__((visibility("default")))

/* Shares of the FP32 rate. Doubles: GA102 has one FP64 unit for 64. Tensor cores on FP32 data: our choice, no public
 * figure was found. */
#define DOUBLE_SHARE 0.0225
#define TENSOR_SHARE 1.35

struct cublasContext { int tensor; };
static struct cublasContext the_handle;

EXPORT cublasStatus_t cublasCreate_v2(cublasHandle_t *handle) {
    the_handle.tensor = 0;
    *handle = &the_handle;
    return CUBLAS_STATUS_SUCCESS;
}

EXPORT cublasStatus_t cublasDestroy_v2(cublasHandle_t handle) {
    return handle == &the_handle ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_INITIALIZED;
}

EXPORT cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode) {
    if (handle != &the_handle) return CUBLAS_STATUS_NOT_INITIALIZED;
    handle->tensor = mode == CUBLAS_TENSOR_OP_MATH;
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t product(cublasHandle_t handle, int m, int n, int k, double share) {
    if (handle != &the_handle) return CUBLAS_STATUS_NOT_INITIALIZED;
    if (m <= 0 || n <= 0 || k <= 0) return CUBLAS_STATUS_INVALID_VALUE;
    return rigsimQueue(2.0 * m * n * k, share) == 0 ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_INITIALIZED;
}

EXPORT cublasStatus_t cublasSgemm_v2(cublasHandle_t handle, cublasOperation_t a_op, cublasOperation_t b_op, int m, int n,
                                     int k, const float *alpha, const float *a, int lda, const float *b, int ldb,
                                     const float *beta, float *c, int ldc) {
    (void)a_op, (void)b_op, (void)alpha, (void)a, (void)lda, (void)b, (void)ldb, (void)beta, (void)c, (void)ldc;
    return product(handle, m, n, k, handle != NULL && handle->tensor ? TENSOR_SHARE : 1.0);
}

EXPORT cublasStatus_t cublasDgemm_v2(cublasHandle_t handle, cublasOperation_t a_op, cublasOperation_t b_op, int m, int n,
                                     int k, const double *alpha, const double *a, int lda, const double *b, int ldb,
                                     const double *beta, double *c, int ldc) {
    (void)a_op, (void)b_op, (void)alpha, (void)a, (void)lda, (void)b, (void)ldb, (void)beta, (void)c, (void)ldc;
    return product(handle, m, n, k, DOUBLE_SHARE);
}
