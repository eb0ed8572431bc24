/* Identity, memory, clocks, temperatures and power of one card. */
#include "nvml_abi.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIB (1024ULL * 1024ULL)

/* `nvmlDeviceGetX(device, &value)` that reads one number of the state. */
#define NUMBER(name, type, key)                                                              \
    EXPORT nvmlReturn_t name(nvmlDevice_t device, type *value) {                             \
        int index;                                                                           \
        nvmlReturn_t result = enter_card(device, &index);                                    \
        if (result != NVML_SUCCESS) return result;                                           \
        if (value == NULL) return NVML_ERROR_INVALID_ARGUMENT;                               \
        if (card_text(index, key) == NULL) return NVML_ERROR_NOT_SUPPORTED;                  \
        *value = (type)card_number(index, key, 0);                                           \
        return NVML_SUCCESS;                                                                 \
    }
/* As NUMBER, for what is the same on every card that we simulate. */
#define CONSTANT(name, type, constant)                                                       \
    EXPORT nvmlReturn_t name(nvmlDevice_t device, type *value) {                             \
        int index;                                                                           \
        nvmlReturn_t result = enter_card(device, &index);                                    \
        if (result == NVML_SUCCESS) *value = (constant);                                     \
        return result;                                                                       \
    }
#define TEXT(name, key)                                                                      \
    EXPORT nvmlReturn_t name(nvmlDevice_t device, char *buffer, unsigned int length) {       \
        int index;                                                                           \
        nvmlReturn_t result = enter_card(device, &index);                                    \
        return result == NVML_SUCCESS ? give_text(card_text(index, key), buffer, length) : result; \
    }

TEXT(nvmlDeviceGetName, "name")
TEXT(nvmlDeviceGetUUID, "uuid")
TEXT(nvmlDeviceGetVbiosVersion, "vbios")
TEXT(nvmlDeviceGetSerial, "serial") /* GeForce cards have none */
TEXT(nvmlDeviceGetBoardPartNumber, "board_part_number")
TEXT(nvmlDeviceGetInforomImageVersion, "inforom_image")
NUMBER(nvmlDeviceGetBrand, unsigned int, "brand")
NUMBER(nvmlDeviceGetArchitecture, unsigned int, "architecture")
NUMBER(nvmlDeviceGetCurrPcieLinkGeneration, unsigned int, "pcie_gen")
NUMBER(nvmlDeviceGetMaxPcieLinkGeneration, unsigned int, "pcie_gen_max")
NUMBER(nvmlDeviceGetCurrPcieLinkWidth, unsigned int, "pcie_width")
NUMBER(nvmlDeviceGetMaxPcieLinkWidth, unsigned int, "pcie_width_max")
NUMBER(nvmlDeviceGetPcieReplayCounter, unsigned int, "pcie_replay")
NUMBER(nvmlDeviceGetPowerUsage, unsigned int, "power_mw")
NUMBER(nvmlDeviceGetPowerManagementDefaultLimit, unsigned int, "power_default_mw")
NUMBER(nvmlDeviceGetTotalEnergyConsumption, unsigned long long, "energy_mj")
NUMBER(nvmlDeviceGetPerformanceState, unsigned int, "pstate")
NUMBER(nvmlDeviceGetCurrentClocksThrottleReasons, unsigned long long, "throttle")
NUMBER(nvmlDeviceGetFanSpeed, unsigned int, "fan_pct")
CONSTANT(nvmlDeviceGetSupportedClocksThrottleReasons, unsigned long long, 0x1ffULL)
CONSTANT(nvmlDeviceGetPowerManagementMode, unsigned int, 1)
CONSTANT(nvmlDeviceGetDisplayActive, unsigned int, 0)
CONSTANT(nvmlDeviceGetDisplayMode, unsigned int, 0)
CONSTANT(nvmlDeviceGetComputeMode, unsigned int, 0)
#if RIGSIM_BRANCH >= 515
NUMBER(nvmlDeviceGetNumFans, unsigned int, "fans")
NUMBER(nvmlDeviceGetMemoryBusWidth, unsigned int, "bus_width")
NUMBER(nvmlDeviceGetNumGpuCores, unsigned int, "cores")
#endif
#if RIGSIM_BRANCH >= 525
NUMBER(nvmlDeviceGetGpuMaxPcieLinkGeneration, unsigned int, "pcie_gen_max")
#endif
#if RIGSIM_BRANCH >= 535
NUMBER(nvmlDeviceGetCurrentClocksEventReasons, unsigned long long, "throttle")
CONSTANT(nvmlDeviceGetSupportedClocksEventReasons, unsigned long long, 0x1ffULL)
#endif

EXPORT nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device, unsigned int *value) {
    int index;
    nvmlReturn_t result = enter_card(device, &index);
    if (result == NVML_SUCCESS) *value = (unsigned int)index;
    return result;
}

EXPORT nvmlReturn_t nvmlDeviceGetMinorNumber(nvmlDevice_t device, unsigned int *value) {
    return nvmlDeviceGetIndex(device, value);
}

static void split_bus_id(int index, nvmlPciInfo_t *pci) {
    const char *bus_id = card_text(index, "pci_bus_id");
    snprintf(pci->busId, sizeof pci->busId, "%s", bus_id != NULL ? bus_id : "");
    sscanf(pci->busId, "%x:%x:%x", &pci->domain, &pci->bus, &pci->device);
    snprintf(pci->busIdLegacy, sizeof pci->busIdLegacy, "%04X:%02X:%02X.0", pci->domain & 0xffff, pci->bus & 0xff,
             pci->device & 0xff);
}

/* The driver remembers where a lost card was. */
EXPORT nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *pci) {
    int index;
    nvmlReturn_t result = enter_card(device, &index);
    int remembered = result == NVML_ERROR_GPU_IS_LOST && card_text(index, "pci_bus_id") != NULL;
    if (result != NVML_SUCCESS && !remembered) return result;
    memset(pci, 0, sizeof *pci);
    split_bus_id(index, pci);
    pci->pciDeviceId = (unsigned int)card_number(index, "pci_device_id", 0);
    pci->pciSubSystemId = (unsigned int)card_number(index, "pci_subsystem_id", 0);
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetBoardId(nvmlDevice_t device, unsigned int *board) {
    nvmlPciInfo_t pci;
    nvmlReturn_t result = nvmlDeviceGetPciInfo_v3(device, &pci);
    if (result == NVML_SUCCESS) *board = pci.bus << 8 | pci.device << 3;
    return result;
}

EXPORT nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t device, int *major, int *minor) {
    int index;
    nvmlReturn_t result = enter_card(device, &index);
    if (result != NVML_SUCCESS) return result;
    const char *text = card_text(index, "compute_capability");
    return text != NULL && sscanf(text, "%d.%d", major, minor) == 2 ? NVML_SUCCESS : NVML_ERROR_UNKNOWN;
}

static void read_memory(int index, nvmlMemory_v2_t *memory) {
    memory->total = (unsigned long long)card_number(index, "memory_mib", 0) * MIB;
    memory->reserved = (unsigned long long)card_number(index, "reserved_mib", 0) * MIB;
    memory->used = (unsigned long long)card_number(index, "memory_used_mib", 0) * MIB;
    unsigned long long taken = memory->reserved + memory->used;
    memory->free = memory->total > taken ? memory->total - taken : 0;
}

/* The first form counts what the driver keeps for itself as used. */
EXPORT nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory) {
    int index;
    nvmlMemory_v2_t whole;
    nvmlReturn_t result = enter_card(device, &index);
    if (result != NVML_SUCCESS) return result;
    read_memory(index, &whole);
    *memory = (nvmlMemory_t){whole.total, whole.free, whole.used + whole.reserved};
    return NVML_SUCCESS;
}

#if RIGSIM_BRANCH >= 510
EXPORT nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory) {
    int index;
    nvmlReturn_t result = enter_card(device, &index);
    if (result != NVML_SUCCESS) return result;
    if (memory->version != (sizeof *memory | 2U << 24)) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    read_memory(index, memory);
    return NVML_SUCCESS;
}
#endif

EXPORT nvmlReturn_t nvmlDeviceGetBAR1MemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory) {
    int index;
    nvmlReturn_t result = enter_card(device, &index);
    if (result != NVML_SUCCESS) return result;
    memory->total = (unsigned long long)card_number(index, "bar1_mib", 0) * MIB;
    memory->used = 2 * MIB;
    memory->free = memory->total - memory->used;
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t *rates) {
    int index;
    nvmlReturn_t result = enter_card(device, &index);
    if (result != NVML_SUCCESS) return result;
    rates->gpu = (unsigned int)card_number(index, "util_gpu_pct", 0);
    rates->memory = (unsigned int)card_number(index, "util_mem_pct", 0);
    return NVML_SUCCESS;
}

static nvmlReturn_t clock_of(nvmlDevice_t device, unsigned int type, const char *core, const char *memory, unsigned int *mhz) {
    int index;
    nvmlReturn_t result = enter_card(device, &index);
    if (result != NVML_SUCCESS) return result;
    if (type > NVML_CLOCK_VIDEO || mhz == NULL) return NVML_ERROR_INVALID_ARGUMENT;
    *mhz = (unsigned int)card_number(index, type == NVML_CLOCK_MEM ? memory : core, 0);
    /* The video clock follows the core at about nine tenths. */
    if (type == NVML_CLOCK_VIDEO) *mhz = *mhz * 9 / 10 / 15 * 15;
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t device, unsigned int type, unsigned int *mhz) {
    return clock_of(device, type, "sm_mhz", "mem_mhz", mhz);
}

EXPORT nvmlReturn_t nvmlDeviceGetMaxClockInfo(nvmlDevice_t device, unsigned int type, unsigned int *mhz) {
    return clock_of(device, type, "sm_max_mhz", "mem_max_mhz", mhz);
}

EXPORT nvmlReturn_t nvmlDeviceGetClock(nvmlDevice_t device, unsigned int type, unsigned int id, unsigned int *mhz) {
    if (id > NVML_CLOCK_ID_CUSTOMER_BOOST_MAX) return NVML_ERROR_INVALID_ARGUMENT;
    if (id != NVML_CLOCK_ID_CURRENT) return NVML_ERROR_NOT_SUPPORTED;
    return nvmlDeviceGetClockInfo(device, type, mhz);
}

/* Sensor 0 is the die, the only one that exists here. The sensor counts whole degrees. */
EXPORT nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t device, unsigned int sensor, unsigned int *temp_c) {
    int index;
    nvmlReturn_t result = enter_card(device, &index);
    if (result != NVML_SUCCESS) return result;
    if (sensor != 0) return NVML_ERROR_INVALID_ARGUMENT;
    const char *text = card_text(index, "temp_c");
    if (text == NULL) return NVML_ERROR_UNKNOWN;
    *temp_c = (unsigned int)lround(strtod(text, NULL));
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetTemperatureThreshold(nvmlDevice_t device, unsigned int which, unsigned int *temp_c) {
    int index;
    nvmlReturn_t result = enter_card(device, &index);
    if (result != NVML_SUCCESS) return result;
    const char *key = which == NVML_THRESHOLD_SHUTDOWN        ? "temp_shutdown_c"
                      : which == NVML_THRESHOLD_SLOWDOWN      ? "temp_slowdown_c"
                      : which == NVML_THRESHOLD_GPU_MAX       ? "temp_max_c"
                      : which == NVML_THRESHOLD_ACOUSTIC_CURR ? "temp_target_c"
                                                              : NULL;
    if (key == NULL) return NVML_ERROR_NOT_SUPPORTED; /* memory: no such sensor on GeForce */
    *temp_c = (unsigned int)card_number(index, key, 0);
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetFanSpeed_v2(nvmlDevice_t device, unsigned int fan, unsigned int *percent) {
    int index;
    nvmlReturn_t result = enter_card(device, &index);
    if (result != NVML_SUCCESS) return result;
    if ((long long)fan >= card_number(index, "fans", 0)) return NVML_ERROR_INVALID_ARGUMENT;
    *percent = (unsigned int)card_number(index, "fan_pct", 0);
    return NVML_SUCCESS;
}
