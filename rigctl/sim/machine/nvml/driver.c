/* What the driver does for a card: power limits, persistence, PCIe traffic, processes. */
#include "nvml_abi.h"

#include <stdio.h>
#include <stdlib.h>

#define MIB (1024ULL * 1024ULL)

static unsigned int limit_mw(int index) {
    return (unsigned int)control_number(index, "power_limit_mw", card_number(index, "power_default_mw", 0));
}

EXPORT nvmlReturn_t nvmlDeviceGetPowerManagementLimit(nvmlDevice_t device, unsigned int *limit) {
    int index;
    nvmlReturn_t result = enter_card(device, &index);
    if (result == NVML_SUCCESS) *limit = limit_mw(index);
    return result;
}

EXPORT nvmlReturn_t nvmlDeviceGetEnforcedPowerLimit(nvmlDevice_t device, unsigned int *limit) {
    int index;
    nvmlReturn_t result = enter_card(device, &index);
    if (result != NVML_SUCCESS) return result;
    unsigned int asked = limit_mw(index), most = (unsigned int)card_number(index, "power_most_mw", asked);
    *limit = asked < most ? asked : most;
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetPowerManagementLimitConstraints(nvmlDevice_t device, unsigned int *low, unsigned int *high) {
    int index;
    nvmlReturn_t result = enter_card(device, &index);
    if (result != NVML_SUCCESS) return result;
    *low = (unsigned int)card_number(index, "power_min_mw", 0);
    *high = (unsigned int)card_number(index, "power_max_mw", 0);
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceSetPowerManagementLimit(nvmlDevice_t device, unsigned int limit) {
    int index;
    unsigned int low, high;
    nvmlReturn_t result = enter_card(device, &index);
    if (result == NVML_SUCCESS) result = nvmlDeviceGetPowerManagementLimitConstraints(device, &low, &high);
    if (result != NVML_SUCCESS) return result;
    if (limit < low || limit > high) return NVML_ERROR_INVALID_ARGUMENT;
    return control_write(index, "power_limit_mw", limit);
}

EXPORT nvmlReturn_t nvmlDeviceGetPersistenceMode(nvmlDevice_t device, unsigned int *mode) {
    int index;
    nvmlReturn_t result = enter_card(device, &index);
    if (result == NVML_SUCCESS) *mode = (unsigned int)control_number(index, "persistence", 0);
    return result;
}

EXPORT nvmlReturn_t nvmlDeviceSetPersistenceMode(nvmlDevice_t device, unsigned int mode) {
    int index;
    nvmlReturn_t result = enter_card(device, &index);
    if (result != NVML_SUCCESS) return result;
    return mode <= 1 ? control_write(index, "persistence", mode) : NVML_ERROR_INVALID_ARGUMENT;
}

EXPORT nvmlReturn_t nvmlDeviceGetPcieThroughput(nvmlDevice_t device, unsigned int counter, unsigned int *kib_per_s) {
    int index;
    nvmlReturn_t result = enter_card(device, &index);
    if (result != NVML_SUCCESS) return result;
    if (counter > 1) return NVML_ERROR_INVALID_ARGUMENT;
    *kib_per_s = (unsigned int)card_number(index, "pcie_tx_kib_s", 0);
    return NVML_SUCCESS;
}

/* *count is the room on entry and the number of processes on return. */
static nvmlReturn_t list_processes(nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_t *list) {
    int index;
    nvmlReturn_t result = enter_card(device, &index);
    if (result != NVML_SUCCESS) return result;
    unsigned int room = *count, found = (unsigned int)card_number(index, "procs", 0);
    *count = found;
    if (found == 0) return NVML_SUCCESS;
    if (room < found || list == NULL) return NVML_ERROR_INSUFFICIENT_SIZE;
    for (unsigned int i = 0; i < found; i++) {
        char key[32];
        unsigned int pid = 0;
        unsigned long long memory_mib = 0;
        snprintf(key, sizeof key, "proc.%u", i);
        const char *text = card_text(index, key);
        if (text == NULL || sscanf(text, "%u %llu", &pid, &memory_mib) != 2) return NVML_ERROR_UNKNOWN;
        list[i] = (nvmlProcessInfo_t){pid, memory_mib * MIB, 0xffffffffU, 0xffffffffU};
    }
    return NVML_SUCCESS;
}

/* Nothing draws or shares here: no graphics and no MPS processes. */
static nvmlReturn_t no_processes(nvmlDevice_t device, unsigned int *count) {
    int index;
    nvmlReturn_t result = enter_card(device, &index);
    if (result == NVML_SUCCESS) *count = 0;
    return result;
}

#define COMPUTE(name)                                                                                \
    EXPORT nvmlReturn_t name(nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_t *list) {    \
        return list_processes(device, count, list);                                                  \
    }
#define NO_PROCESSES(name)                                                                           \
    EXPORT nvmlReturn_t name(nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_t *list) {    \
        (void)list;                                                                                  \
        return no_processes(device, count);                                                          \
    }

COMPUTE(nvmlDeviceGetComputeRunningProcesses_v2)
NO_PROCESSES(nvmlDeviceGetGraphicsRunningProcesses_v2)
#if RIGSIM_BRANCH >= 510
COMPUTE(nvmlDeviceGetComputeRunningProcesses_v3)
NO_PROCESSES(nvmlDeviceGetGraphicsRunningProcesses_v3)
NO_PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses_v3)
#endif
