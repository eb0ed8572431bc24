// One card's process: products of two matrices, over and over, and a comparison of the results.
#include "gpu_burn.h"

#include <cublas_v2.h>
#include <cuda.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <unistd.h>

static volatile std::sig_atomic_t stopping = 0;
static void stop(int) { stopping = 1; }

static void check_at(int line, CUresult result) {
    if (result == CUDA_SUCCESS) return;
    const char *text = nullptr;
    cuGetErrorString(result, &text);
    throw std::runtime_error("Error (worker.cpp:" + std::to_string(line) + "): " + text);
}
#define CHECK(call) check_at(__LINE__, (call))

static int init_cuda() {
    CUresult result = cuInit(0);
    if (result != CUDA_SUCCESS) {
        const char *text = nullptr;
        cuGetErrorString(result, &text);
        std::fprintf(stderr, "cuInit returned %d (%s)\n", result, text);
    }
    CHECK(result);
    int count = 0;
    CHECK(cuDeviceGetCount(&count));
    if (count == 0) throw std::runtime_error("No CUDA devices");
    return count;
}

namespace {
class Burn {
  public:
    Burn(const Options &options, int device) : doubles_(options.doubles), device_(device) {
        CUdevice handle;
        size_t free_bytes, total_bytes;
        CHECK(cuDeviceGet(&handle, device));
        CHECK(cuCtxCreate(&context_, 0, handle));
        CHECK(cuMemGetInfo(&free_bytes, &total_bytes));
        size_t use = options.use_memory > 0 ? size_t(options.use_memory) << 20
                                            : size_t(double(free_bytes) * double(-options.use_memory) / 100.0);
        std::printf("Initialized device %d with %zu MB of memory (%zu MB available, using %zu MB of it), %s%s\n", device,
                    total_bytes >> 20, free_bytes >> 20, use >> 20, doubles_ ? "using DOUBLES" : "using FLOATS",
                    options.tensor_cores ? ", using Tensor Cores" : "");
        if (cublasCreate(&blas_) != CUBLAS_STATUS_SUCCESS) throw std::runtime_error("Error in \"init\": cublas");
        if (options.tensor_cores) cublasSetMathMode(blas_, CUBLAS_TENSOR_OP_MATH);
        allocate(use);
        CHECK(cuModuleLoad(&module_, options.compare_file.c_str()));
        CHECK(cuModuleGetFunction(&compare_, module_, doubles_ ? "compareD" : "compare"));
    }

    ~Burn() {
        cuMemFree(a_), cuMemFree(b_), cuMemFree(results_), cuMemFree(faulty_);
        cuCtxDestroy(context_);
        std::printf("Freed memory for dev %d\n", device_);
        cublasDestroy(blas_);
        std::printf("Uninitted cublas\n");
    }

    // One round of products; returns how many there were. A request to stop ends it early.
    int compute() {
        static const float one = 1.0f, zero = 0.0f;
        static const double one_d = 1.0, zero_d = 0.0;
        int done = 0;
        for (; done < products_ && !stopping; ++done) {
            cublasStatus_t status =
                doubles_ ? cublasDgemm(blas_, CUBLAS_OP_N, CUBLAS_OP_N, MATRIX, MATRIX, MATRIX, &one_d, nullptr, MATRIX, nullptr,
                                       MATRIX, &zero_d, nullptr, MATRIX)
                         : cublasSgemm(blas_, CUBLAS_OP_N, CUBLAS_OP_N, MATRIX, MATRIX, MATRIX, &one, nullptr, MATRIX, nullptr,
                                       MATRIX, &zero, nullptr, MATRIX);
            if (status != CUBLAS_STATUS_SUCCESS) throw std::runtime_error("Error in \"SGEMM\"");
            CHECK(cuCtxSynchronize());
        }
        return done;
    }

    // Wrong elements since the last comparison.
    int compare() {
        int wrong = 0;
        size_t count = size_t(products_);
        void *parameters[] = {&results_, &faulty_, &count};
        CHECK(cuMemsetD32(faulty_, 0, 1));
        CHECK(cuLaunchKernel(compare_, MATRIX / 16, MATRIX / 16, 1, 16, 16, 1, 0, nullptr, parameters, nullptr));
        CHECK(cuCtxSynchronize());
        CHECK(cuMemcpyDtoH(&wrong, faulty_, sizeof wrong));
        return wrong;
    }

  private:
    void allocate(size_t use) {
        size_t matrix = size_t(MATRIX) * MATRIX * (doubles_ ? sizeof(double) : sizeof(float));
        if (use < 3 * matrix) throw std::runtime_error("Low mem for result. aborting.\n");
        products_ = int((use - 2 * matrix) / matrix);
        CHECK(cuMemAlloc(&a_, matrix));
        CHECK(cuMemAlloc(&b_, matrix));
        CHECK(cuMemAlloc(&results_, products_ * matrix));
        CHECK(cuMemAlloc(&faulty_, sizeof(int)));
        std::printf("Results are %zu bytes each, thus performing %d iterations\n", matrix, products_);
    }

    bool doubles_;
    int device_, products_ = 0;
    CUcontext context_ = nullptr;
    CUmodule module_ = nullptr;
    CUfunction compare_ = nullptr;
    CUdeviceptr a_ = 0, b_ = 0, results_ = 0, faulty_ = 0;
    cublasHandle_t blas_ = nullptr;
};
}  // namespace

static void send(int pipe, int number) {
    if (write(pipe, &number, sizeof number) != sizeof number) std::exit(ECONNREFUSED);
}

void work(const Options &options, int device, int pipe, bool report_count) {
    std::signal(SIGTERM, stop);
    bool counted = false;
    try {
        int count = 0;
        try {
            count = init_cuda();
        } catch (const std::runtime_error &error) {
            std::fprintf(stderr, "Couldn't init CUDA: %s\n", error.what());
            if (report_count) send(pipe, 0);
            throw std::runtime_error("initialization error");
        }
        if (report_count) send(pipe, count);
        counted = true;
        Burn burn(options, device);
        while (!stopping) {
            int done = burn.compute();
            if (stopping) break;
            int wrong = burn.compare();
            send(pipe, done);
            send(pipe, wrong);
        }
    } catch (const std::runtime_error &error) {
        std::fprintf(stderr, counted ? "Failure during compute: %s\n" : "Couldn't init a GPU test: %s\n", error.what());
        std::exit(EMEDIUMTYPE);
    }
    std::exit(0);
}

void list_devices() {
    int count = 0;
    try {
        count = init_cuda();
    } catch (const std::runtime_error &error) {
        std::fprintf(stderr, "Couldn't init CUDA: %s\n", error.what());
        throw std::runtime_error("No CUDA capable GPUs found.\n");
    }
    for (int device = 0; device < count; ++device) {
        char name[256];
        size_t bytes;
        CHECK(cuDeviceGetName(name, sizeof name, device));
        CHECK(cuDeviceTotalMem(&bytes, device));
        std::printf("ID %d: %s, %zuMB\n", device, name, bytes >> 20);
    }
}
