/* libcuda: contexts, memory, modules and work.
 *
 * Nothing is computed. Work is a number of operations that takes as long as the card's present rate says; while it
 * runs, the process stands in the load folder, so that the physics knows of it. Big allocations are addresses without
 * memory behind them; small ones are real, since programs read their results from them.
 */
#include "libcuda.h"
#include "simulated.h"

#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { SMALL_BYTES = 65536, PATH_SIZE = 512, SLICE_MS = 50 };
/* A card to which nothing was given for so many looks, SLICE_MS apart, rests again. Counted in looks and not in time:
 * a process that waits for a CPU looks as seldom as it works. */
enum { LOOKS_AT_REST = 4 };
/* No real address is this high. */
#define FAKE_BASE (1ULL << 60)

struct CUctx_st { CUdevice device; };
struct CUmod_st { int loaded; };
struct CUfunc_st { int compare; };

static struct CUctx_st context;
static struct CUmod_st the_module;
static struct CUfunc_st the_function;
static int have_context, working, looks;
static char uuid[64];
static pthread_mutex_t announcing = PTHREAD_MUTEX_INITIALIZER;
static size_t allocated;
static double queued_s_at_one_gflops, errors_due, last_s;

static double now_s(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static CUresult enter_context(void) {
    if (!have_context) return CUDA_ERROR_INVALID_CONTEXT;
    CUresult result = enter_device(context.device);
    if (result != CUDA_SUCCESS) return result;
    return card_number(context.device, "lost", 0) ? CUDA_ERROR_LAUNCH_FAILED : CUDA_SUCCESS;
}

static void load_path(char *path, size_t size, const char *suffix) {
    snprintf(path, size, "%s/load/%ld%s", run_folder(), (long)getpid(), suffix);
}

/* Tell the hardware what this process does; the entry disappears with the context or the process. */
static CUresult announce(double util) {
    char fresh[PATH_SIZE], path[PATH_SIZE];
    load_path(fresh, sizeof fresh, ".new");
    load_path(path, sizeof path, "");
    FILE *file = fopen(fresh, "we");
    if (file == NULL) return CUDA_ERROR_UNKNOWN;
    fprintf(file, "gpu %s compute %.2f %zu\n", uuid, util, allocated >> 20);
    if (fclose(file) != 0 || rename(fresh, path) != 0) return CUDA_ERROR_UNKNOWN;
    return CUDA_SUCCESS;
}

/* Queued work that nobody waits for is no rest: only a drained queue that stays empty is. */
static void *notice_rest(void *unused) {
    (void)unused;
    for (;;) {
        struct timespec pause = {0, SLICE_MS * 1000000L};
        nanosleep(&pause, NULL);
        pthread_mutex_lock(&announcing);
        int rests = have_context && working && queued_s_at_one_gflops <= 0.0 && ++looks >= LOOKS_AT_REST;
        if (rests) {
            working = 0;
            announce(0.0);
        }
        pthread_mutex_unlock(&announcing);
    }
    return NULL;
}

static void watch(void) {
    static int watched;
    pthread_t watcher;
    if (!watched && pthread_create(&watcher, NULL, notice_rest, NULL) == 0) watched = pthread_detach(watcher) == 0;
}

EXPORT CUresult cuCtxCreate_v2(CUcontext *created, unsigned int flags, CUdevice device) {
    (void)flags;
    CUresult result = enter_device(device);
    if (result != CUDA_SUCCESS) return result;
    context.device = device;
    snprintf(uuid, sizeof uuid, "%s", card_text(device, "uuid"));
    have_context = 1;
    *created = &context;
    allocated = 256UL << 20; /* what a context itself takes */
    result = enter_context();
    return result == CUDA_SUCCESS ? announce(0.0) : result;
}

EXPORT CUresult cuCtxDestroy_v2(CUcontext destroyed) {
    char path[PATH_SIZE];
    if (destroyed != &context || !have_context) return CUDA_ERROR_INVALID_CONTEXT;
    load_path(path, sizeof path, "");
    pthread_mutex_lock(&announcing);
    unlink(path);
    have_context = working = 0;
    pthread_mutex_unlock(&announcing);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemGetInfo_v2(size_t *free_bytes, size_t *total_bytes) {
    CUresult result = enter_context();
    if (result != CUDA_SUCCESS) return result;
    *total_bytes = (size_t)card_number(context.device, "memory_mib", 0) << 20;
    size_t taken = ((size_t)card_number(context.device, "reserved_mib", 0) << 20) + allocated;
    *free_bytes = *total_bytes > taken ? *total_bytes - taken : 0;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemAlloc_v2(CUdeviceptr *pointer, size_t bytes) {
    size_t free_bytes, total_bytes;
    CUresult result = cuMemGetInfo_v2(&free_bytes, &total_bytes);
    if (result != CUDA_SUCCESS) return result;
    if (bytes > free_bytes) return CUDA_ERROR_OUT_OF_MEMORY;
    allocated += bytes;
    *pointer = bytes <= SMALL_BYTES ? (CUdeviceptr)(uintptr_t)calloc(1, bytes) : FAKE_BASE + allocated;
    pthread_mutex_lock(&announcing);
    CUresult announced = announce(working ? 1.0 : 0.0);
    pthread_mutex_unlock(&announcing);
    return announced;
}

static int is_small(CUdeviceptr pointer) { return pointer < FAKE_BASE; }

EXPORT CUresult cuMemFree_v2(CUdeviceptr pointer) {
    if (is_small(pointer)) free((void *)(uintptr_t)pointer);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t bytes) {
    if (is_small(to)) memcpy((void *)(uintptr_t)to, from, bytes);
    return enter_context();
}

EXPORT CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t bytes) {
    if (is_small(from)) memcpy(to, (const void *)(uintptr_t)from, bytes);
    return enter_context();
}

EXPORT CUresult cuMemsetD32_v2(CUdeviceptr to, unsigned int value, size_t count) {
    for (size_t i = 0; is_small(to) && i < count; i++) ((unsigned int *)(uintptr_t)to)[i] = value;
    return enter_context();
}

/* Machine code runs on a card of its own major number and the same or a higher minor one; PTX is compiled by the
 * driver, if its toolkit is not newer than the driver's CUDA and its capability not higher than the card's. */
static CUresult judge_image(FILE *file) {
    char line[128];
    int major = 0, minor = 0, toolkit = 0, ptx_fits = 0;
    if (fgets(line, sizeof line, file) == NULL || strncmp(line, "rigsim-fatbin 1", 15) != 0) return CUDA_ERROR_INVALID_IMAGE;
    sscanf(card_text(context.device, "compute_capability"), "%d.%d", &major, &minor);
    int card = 10 * major + minor, code, toolkit_major, toolkit_minor;
    while (fgets(line, sizeof line, file) != NULL) {
        if (sscanf(line, "toolkit %d.%d", &toolkit_major, &toolkit_minor) == 2)
            toolkit = 1000 * toolkit_major + 10 * toolkit_minor;
        if (sscanf(line, "sass %d", &code) == 1 && code / 10 == major && code <= card) return CUDA_SUCCESS;
        if (sscanf(line, "ptx %d", &code) == 1 && code <= card) ptx_fits = 1;
    }
    if (!ptx_fits) return CUDA_ERROR_NO_BINARY_FOR_GPU;
    return toolkit <= RIGSIM_CUDA ? CUDA_SUCCESS : CUDA_ERROR_UNSUPPORTED_PTX_VERSION;
}

EXPORT CUresult cuModuleLoad(CUmodule *module, const char *path) {
    CUresult result = enter_context();
    if (result != CUDA_SUCCESS) return result;
    FILE *file = fopen(path, "re");
    if (file == NULL) return CUDA_ERROR_FILE_NOT_FOUND;
    result = judge_image(file);
    fclose(file);
    the_module.loaded = result == CUDA_SUCCESS;
    *module = &the_module;
    return result;
}

EXPORT CUresult cuModuleUnload(CUmodule module) {
    module->loaded = 0;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name) {
    if (module == NULL || !module->loaded) return CUDA_ERROR_INVALID_VALUE;
    the_function.compare = strncmp(name, "compare", 7) == 0;
    *function = &the_function;
    return the_function.compare ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

EXPORT int rigsimQueue(double flops, double share) {
    CUresult result = enter_context();
    if (result != CUDA_SUCCESS || share <= 0.0) return result != CUDA_SUCCESS ? result : CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&announcing);
    queued_s_at_one_gflops += flops / 1e9 / share;
    looks = 0;
    if (!working) {
        working = 1;
        last_s = now_s();
        result = announce(1.0);
    }
    pthread_mutex_unlock(&announcing);
    watch();
    return result;
}

/* The one kernel that exists: it counts wrong elements since it last ran into its second argument. */
EXPORT CUresult cuLaunchKernel(CUfunction function, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx,
                               unsigned int by, unsigned int bz, unsigned int shared_bytes, CUstream stream,
                               void **parameters, void **extra) {
    (void)gx, (void)gy, (void)gz, (void)bx, (void)by, (void)bz, (void)shared_bytes, (void)stream, (void)extra;
    CUresult result = enter_context();
    if (result != CUDA_SUCCESS) return result;
    if (function == NULL || parameters == NULL) return CUDA_ERROR_INVALID_VALUE;
    int *faulty = (int *)(uintptr_t) * (CUdeviceptr *)parameters[1];
    int whole = (int)errors_due;
    errors_due -= whole;
    *faulty += whole;
    return CUDA_SUCCESS;
}

/* A card that computes wrongly does so as long as it works, at the rate that its state says now. */
static void pass_time(void) {
    double now = now_s();
    errors_due += (now - last_s) * (double)card_number(context.device, "compute_errors_per_s", 0);
    last_s = now;
}

EXPORT CUresult cuCtxSynchronize(void) {
    CUresult result = enter_context();
    while (result == CUDA_SUCCESS && queued_s_at_one_gflops > 0.0) {
        const char *text = card_text(context.device, "gflops");
        double gflops = text != NULL ? strtod(text, NULL) : 0.0;
        if (gflops <= 0.0) return CUDA_ERROR_LAUNCH_FAILED;
        double wait_s = queued_s_at_one_gflops / gflops, before_s = now_s();
        if (wait_s > SLICE_MS / 1e3) wait_s = SLICE_MS / 1e3;
        struct timespec pause = {(time_t)wait_s, (long)((wait_s - (double)(time_t)wait_s) * 1e9)};
        nanosleep(&pause, NULL);
        queued_s_at_one_gflops -= (now_s() - before_s) * gflops;
        result = enter_context();
        if (result == CUDA_SUCCESS) pass_time();
    }
    /* What ran over is the next work's start, so that rates come out exact. */
    return result;
}
