/* Versions, counting, and finding cards. */
#include "nvml_abi.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

EXPORT nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned int length) {
    nvmlReturn_t result = enter();
    return result == NVML_SUCCESS ? give_text(RIGSIM_VERSION, version, length) : result;
}

EXPORT nvmlReturn_t nvmlSystemGetNVMLVersion(char *version, unsigned int length) {
    char whole[80];
    snprintf(whole, sizeof whole, "%d.%s", RIGSIM_CUDA / 1000, RIGSIM_VERSION);
    return give_text(whole, version, length);
}

EXPORT nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *version) {
    if (version == NULL) return NVML_ERROR_INVALID_ARGUMENT;
    *version = RIGSIM_CUDA;
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlSystemGetCudaDriverVersion(int *version) { return nvmlSystemGetCudaDriverVersion_v2(version); }

EXPORT nvmlReturn_t nvmlSystemGetProcessName(unsigned int pid, char *name, unsigned int length) {
    char path[64], text[256];
    nvmlReturn_t result = enter();
    if (result != NVML_SUCCESS) return result;
    snprintf(path, sizeof path, "/proc/%u/cmdline", pid);
    FILE *file = fopen(path, "re");
    if (file == NULL) return NVML_ERROR_NOT_FOUND;
    size_t count = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[count] = '\0';
    return count > 0 ? give_text(text, name, length) : NVML_ERROR_NOT_FOUND;
}

EXPORT nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *count) {
    nvmlReturn_t result = enter();
    if (result == NVML_SUCCESS) *count = (unsigned int)state_number("gpu.count", 0);
    return result;
}

static nvmlReturn_t give_handle(int index, nvmlDevice_t *device) {
    if (device == NULL) return NVML_ERROR_INVALID_ARGUMENT;
    *device = handle_of(index);
    if (*device == NULL) return NVML_ERROR_UNKNOWN;
    return card_number(index, "lost", 0) ? NVML_ERROR_GPU_IS_LOST : NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *device) {
    nvmlReturn_t result = enter();
    if (result != NVML_SUCCESS) return result;
    if ((long long)index >= state_number("gpu.count", 0)) return NVML_ERROR_INVALID_ARGUMENT;
    return give_handle((int)index, device);
}

static nvmlReturn_t find(const char *key, const char *wanted, nvmlDevice_t *device) {
    nvmlReturn_t result = enter();
    if (result != NVML_SUCCESS) return result;
    if (wanted == NULL) return NVML_ERROR_INVALID_ARGUMENT;
    int count = (int)state_number("gpu.count", 0);
    for (int index = 0; index < count; index++) {
        const char *value = card_text(index, key);
        if (value != NULL && strcasecmp(value, wanted) == 0) return give_handle(index, device);
    }
    return NVML_ERROR_NOT_FOUND;
}

EXPORT nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device) { return find("uuid", uuid, device); }

/* Both forms are taken: a domain of eight digits, and of four as the kernel writes it. */
EXPORT nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, nvmlDevice_t *device) {
    unsigned int domain, bus, slot, function;
    char whole[32];
    if (bus_id == NULL) return NVML_ERROR_INVALID_ARGUMENT;
    if (sscanf(bus_id, "%x:%x:%x.%x", &domain, &bus, &slot, &function) != 4) {
        domain = function = 0;
        if (sscanf(bus_id, "%x:%x", &bus, &slot) != 2) return NVML_ERROR_INVALID_ARGUMENT;
    }
    snprintf(whole, sizeof whole, "%08X:%02X:%02X.%X", domain & 0xffffffff, bus & 0xff, slot & 0xff, function & 0xf);
    return find("pci_bus_id", whole, device);
}

EXPORT nvmlReturn_t nvmlDeviceGetHandleBySerial(const char *serial, nvmlDevice_t *device) {
    (void)serial, (void)device;
    nvmlReturn_t result = enter();
    return result == NVML_SUCCESS ? NVML_ERROR_NOT_FOUND : result;
}
