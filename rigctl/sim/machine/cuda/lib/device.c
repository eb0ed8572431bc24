/* libcuda: devices and versions. */
#include "libcuda.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int initialised;

static CUresult check_driver(void) {
    char version[64] = "", path[512] = "/sys/module/nvidia/version";
    if (getenv("RIGSIM_RUN") != NULL) snprintf(path, sizeof path, "%s/sys/module/nvidia/version", run_folder());
    FILE *file = fopen(path, "re");
    if (file == NULL) return CUDA_ERROR_NO_DEVICE;
    char *line = fgets(version, sizeof version, file);
    fclose(file);
    if (line == NULL) return CUDA_ERROR_NO_DEVICE;
    version[strcspn(version, "\n")] = '\0';
    return strcmp(version, RIGSIM_VERSION) == 0 ? CUDA_SUCCESS : CUDA_ERROR_SYSTEM_DRIVER_MISMATCH;
}

EXPORT CUresult cuInit(unsigned int flags) {
    (void)flags;
    CUresult result = check_driver();
    if (result != CUDA_SUCCESS) return result;
    if (state_refresh() != 0) return CUDA_ERROR_UNKNOWN;
    if (state_number("gpu.count", 0) == 0) return CUDA_ERROR_NO_DEVICE;
    initialised = 1;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDriverGetVersion(int *version) {
    *version = RIGSIM_CUDA;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuGetErrorString(CUresult error, const char **text) {
    static const struct { CUresult error; const char *text; } texts[] = {
        {CUDA_SUCCESS, "no error"},
        {CUDA_ERROR_INVALID_VALUE, "invalid argument"},
        {CUDA_ERROR_OUT_OF_MEMORY, "out of memory"},
        {CUDA_ERROR_NOT_INITIALIZED, "initialization error"},
        {CUDA_ERROR_NO_DEVICE, "no CUDA-capable device is detected"},
        {CUDA_ERROR_INVALID_DEVICE, "invalid device ordinal"},
        {CUDA_ERROR_INVALID_IMAGE, "device kernel image is invalid"},
        {CUDA_ERROR_INVALID_CONTEXT, "invalid device context"},
        {CUDA_ERROR_NO_BINARY_FOR_GPU, "no kernel image is available for execution on the device"},
        {CUDA_ERROR_UNSUPPORTED_PTX_VERSION, "the provided PTX was compiled with an unsupported toolchain."},
        {CUDA_ERROR_FILE_NOT_FOUND, "file not found"},
        {CUDA_ERROR_NOT_FOUND, "named symbol not found"},
        {CUDA_ERROR_LAUNCH_FAILED, "unspecified launch failure"},
        {CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, "system has unsupported display driver / cuda driver combination"},
    };
    *text = "unknown error";
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        if (texts[i].error == error) *text = texts[i].text;
    return CUDA_SUCCESS;
}

CUresult enter_device(CUdevice device) {
    if (!initialised) return CUDA_ERROR_NOT_INITIALIZED;
    if (state_refresh() != 0) return CUDA_ERROR_UNKNOWN;
    return device >= 0 && device < state_number("gpu.count", 0) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

EXPORT CUresult cuDeviceGetCount(int *count) {
    if (!initialised) return CUDA_ERROR_NOT_INITIALIZED;
    *count = (int)state_number("gpu.count", 0);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGet(CUdevice *device, int ordinal) {
    CUresult result = enter_device(ordinal);
    if (result == CUDA_SUCCESS) *device = ordinal;
    return result;
}

EXPORT CUresult cuDeviceGetName(char *name, int length, CUdevice device) {
    CUresult result = enter_device(device);
    if (result == CUDA_SUCCESS) snprintf(name, (size_t)length, "%s", card_text(device, "name"));
    return result;
}

EXPORT CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice device) {
    CUresult result = enter_device(device);
    if (result != CUDA_SUCCESS) return result;
    const char *text = card_text(device, "uuid");
    int taken = 0;
    for (text += strlen("GPU-"); *text != '\0' && taken < 16; text++) {
        unsigned int byte;
        if (*text == '-') continue;
        if (sscanf(text++, "%2x", &byte) != 1) return CUDA_ERROR_UNKNOWN;
        uuid->bytes[taken++] = (char)byte;
    }
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device) {
    CUresult result = enter_device(device);
    if (result == CUDA_SUCCESS) *bytes = (size_t)card_number(device, "memory_mib", 0) << 20;
    return result;
}
