/* The words of the CUDA language, so that a C++ compiler can check a .cu file; and the runtime's version. */
#ifndef RIGSIM_CUDA_RUNTIME_H
#define RIGSIM_CUDA_RUNTIME_H

#include <stddef.h>

#define __global__
#define __device__
#define __host__
#define __shared__ static

typedef int cudaError_t;
struct rigsim_dim3 { unsigned int x, y, z; };

#ifdef __cplusplus
extern const rigsim_dim3 blockIdx, blockDim, threadIdx, gridDim;
int atomicAdd(int *address, int value);
extern "C"
#endif
cudaError_t cudaRuntimeGetVersion(int *version);

#endif
