// Counts the elements in which any of the results differs from the first one.
extern "C" __global__ void compare(float *results, int *faulty, size_t count) {
    size_t elements = size_t(blockDim.x) * blockDim.y * gridDim.x * gridDim.y;
    size_t mine = (blockIdx.y * blockDim.y + threadIdx.y) * gridDim.x * blockDim.x + blockIdx.x * blockDim.x + threadIdx.x;
    int wrong = 0;
    for (size_t other = 1; other < count; ++other)
        if (results[mine] != results[mine + other * elements]) wrong++;
    atomicAdd(faulty, wrong);
}

extern "C" __global__ void compareD(double *results, int *faulty, size_t count) {
    size_t elements = size_t(blockDim.x) * blockDim.y * gridDim.x * gridDim.y;
    size_t mine = (blockIdx.y * blockDim.y + threadIdx.y) * gridDim.x * blockDim.x + blockIdx.x * blockDim.x + threadIdx.x;
    int wrong = 0;
    for (size_t other = 1; other < count; ++other)
        if (results[mine] != results[mine + other * elements]) wrong++;
    atomicAdd(faulty, wrong);
}
