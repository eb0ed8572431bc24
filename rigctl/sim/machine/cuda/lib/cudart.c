/* libcudart: programs link it; nothing here is asked for more than its version. */
#define EXPORT __attribute__((visibility("default")))

EXPORT int cudaRuntimeGetVersion(int *version) {
    if (version == 0) return 1;
    *version = RIGSIM_TOOLKIT;
    return 0;
}
