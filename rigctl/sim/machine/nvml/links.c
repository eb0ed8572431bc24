/* NVLink, topology between cards, and field values. */
#include "nvml_abi.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    FIELD_ECC_CURRENT = 1,
    FIELD_CRC_FLIT_L0 = 32,
    FIELD_RECOVERY_TOTAL = 59,
    FIELD_MEMORY_TEMP = 82,
    FIELD_ENERGY = 83,
    FIELD_LINK_SPEED_L0 = 84,
    FIELD_LINK_SPEED_L5 = 89,
    FIELD_LINK_SPEED_L6 = 132,
    FIELD_LINK_SPEED_L11 = 137,
    FIELD_LINK_SPEED_COMMON = 90,
    FIELD_LINK_COUNT = 91,
    FIELD_PCIE_REPLAY = 94
};
enum { ERROR_COUNTERS = 5, COUNTER_REPLAY = 0, COUNTER_CRC_FLIT = 2, CAPABILITIES = 6 };

static long long link_number(int index, unsigned int link, const char *key, long long otherwise) {
    char whole[64];
    snprintf(whole, sizeof whole, "link.%u.%s", link, key);
    return card_number(index, whole, otherwise);
}

static nvmlReturn_t enter_link(nvmlDevice_t device, unsigned int link, int *index) {
    nvmlReturn_t result = enter_card(device, index);
    if (result != NVML_SUCCESS) return result;
    if (link >= NVML_MAX_LINKS) return NVML_ERROR_INVALID_ARGUMENT;
    return (long long)link < card_number(*index, "links", 0) ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
}

EXPORT nvmlReturn_t nvmlDeviceGetNvLinkState(nvmlDevice_t device, unsigned int link, unsigned int *active) {
    int index;
    nvmlReturn_t result = enter_link(device, link, &index);
    if (result == NVML_SUCCESS) *active = (unsigned int)link_number(index, link, "active", 0);
    return result;
}

EXPORT nvmlReturn_t nvmlDeviceGetNvLinkVersion(nvmlDevice_t device, unsigned int link, unsigned int *version) {
    int index;
    nvmlReturn_t result = enter_link(device, link, &index);
    if (result == NVML_SUCCESS) *version = 3;
    return result;
}

/* In this order: P2P, system memory access, P2P atomics, system memory atomics, SLI bridge, valid. */
EXPORT nvmlReturn_t nvmlDeviceGetNvLinkCapability(nvmlDevice_t device, unsigned int link, unsigned int which, unsigned int *has) {
    static const unsigned int capabilities[CAPABILITIES] = {1, 1, 1, 0, 0, 0};
    int index;
    nvmlReturn_t result = enter_link(device, link, &index);
    if (result != NVML_SUCCESS) return result;
    if (which >= CAPABILITIES) return NVML_ERROR_INVALID_ARGUMENT;
    *has = capabilities[which];
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetNvLinkRemotePciInfo_v2(nvmlDevice_t device, unsigned int link, nvmlPciInfo_t *pci) {
    int index;
    char key[64];
    nvmlReturn_t result = enter_link(device, link, &index);
    if (result != NVML_SUCCESS) return result;
    snprintf(key, sizeof key, "link.%u.remote_bus_id", link);
    const char *bus_id = card_text(index, key);
    if (bus_id == NULL) return NVML_ERROR_NOT_SUPPORTED; /* nobody answers at the other end */
    memset(pci, 0, sizeof *pci);
    snprintf(pci->busId, sizeof pci->busId, "%s", bus_id);
    sscanf(bus_id, "%x:%x:%x", &pci->domain, &pci->bus, &pci->device);
    snprintf(pci->busIdLegacy, sizeof pci->busIdLegacy, "%.15s", bus_id + 4);
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetNvLinkRemoteDeviceType(nvmlDevice_t device, unsigned int link, unsigned int *type) {
    int index;
    nvmlReturn_t result = enter_link(device, link, &index);
    if (result != NVML_SUCCESS) return result;
    if (link_number(index, link, "active", 0) == 0) return NVML_ERROR_NOT_SUPPORTED;
    *type = link_number(index, link, "switch", 0) ? 2 : 0; /* an NVSwitch, or a GPU */
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetNvLinkErrorCounter(nvmlDevice_t device, unsigned int link, unsigned int counter,
                                                    unsigned long long *value) {
    int index;
    nvmlReturn_t result = enter_link(device, link, &index);
    if (result != NVML_SUCCESS) return result;
    if (counter >= ERROR_COUNTERS) return NVML_ERROR_INVALID_ARGUMENT;
    /* Damaged packets are counted as CRC errors and as replays; nothing here has a link trained anew. */
    int counted = counter == COUNTER_REPLAY || counter == COUNTER_CRC_FLIT;
    *value = counted ? (unsigned long long)link_number(index, link, "errors", 0) : 0;
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceResetNvLinkErrorCounters(nvmlDevice_t device, unsigned int link) {
    int index;
    return enter_link(device, link, &index);
}

/* Links that end at the other card; through switches every active one leads to every card. */
static int active_links_between(int index, const char *bus_id) {
    int found = 0;
    for (unsigned int link = 0; link < NVML_MAX_LINKS; link++) {
        char key[64];
        snprintf(key, sizeof key, "link.%u.remote_bus_id", link);
        const char *remote = card_text(index, key);
        int through = remote != NULL && link_number(index, link, "switch", 0);
        if (through || (remote != NULL && bus_id != NULL && strcmp(remote, bus_id) == 0)) found++;
    }
    return found;
}

static nvmlReturn_t enter_pair(nvmlDevice_t one, nvmlDevice_t other, int *first, int *second) {
    nvmlReturn_t result = enter_card(one, first);
    return result == NVML_SUCCESS ? enter_card(other, second) : result;
}

EXPORT nvmlReturn_t nvmlDeviceGetTopologyCommonAncestor(nvmlDevice_t one, nvmlDevice_t other, unsigned int *level) {
    int first, second;
    nvmlReturn_t result = enter_pair(one, other, &first, &second);
    if (result != NVML_SUCCESS) return result;
    int near = card_number(first, "socket", 0) == card_number(second, "socket", 0);
    *level = first == second ? NVML_TOPOLOGY_INTERNAL
             : near          ? (unsigned int)state_number("topology.common_ancestor", 30)
                             : NVML_TOPOLOGY_SYSTEM;
    return NVML_SUCCESS;
}

/* GeForce cards reach each other over NVLink only; without a link the driver refuses peer access. */
EXPORT nvmlReturn_t nvmlDeviceGetP2PStatus(nvmlDevice_t one, nvmlDevice_t other, unsigned int which, unsigned int *status) {
    int first, second;
    nvmlReturn_t result = enter_pair(one, other, &first, &second);
    if (result != NVML_SUCCESS) return result;
    if (which >= NVML_P2P_CAPS_INDEX_LAST) return NVML_ERROR_INVALID_ARGUMENT;
    int linked = active_links_between(first, card_text(second, "pci_bus_id")) > 0;
    *status = state_number("p2p.disabled", 0) ? NVML_P2P_STATUS_DISABLED_BY_REGKEY
              : linked                        ? NVML_P2P_STATUS_OK
                                              : NVML_P2P_STATUS_CHIPSET_NOT_SUPPORTED;
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetCpuAffinity(nvmlDevice_t device, unsigned int words, unsigned long *set) {
    int index;
    nvmlReturn_t result = enter_card(device, &index);
    if (result != NVML_SUCCESS) return result;
    /* Of all calls, only the matrix of nvidia-smi asks each card for this: a slow matrix is slow here. */
    long long slow_ms = state_number("driver.topology_ms", 0) / (state_number("gpu.count", 1) > 0 ? state_number("gpu.count", 1) : 1);
    struct timespec pause = {.tv_sec = slow_ms / 1000, .tv_nsec = slow_ms % 1000 * 1000000L};
    if (slow_ms > 0) nanosleep(&pause, NULL);
    unsigned int bits = 8 * sizeof *set, threads = (unsigned int)state_number("cpu.threads", 1);
    if (words * bits < threads) return NVML_ERROR_INSUFFICIENT_SIZE;
    memset(set, 0, words * sizeof *set);
    for (unsigned int thread = 0; thread < threads; thread++) set[thread / bits] |= 1UL << thread % bits;
    return NVML_SUCCESS;
}

static nvmlReturn_t link_speed(int index, unsigned int link, unsigned int *mb_per_s) {
    if ((long long)link >= card_number(index, "links", 0)) return NVML_ERROR_NOT_SUPPORTED;
    *mb_per_s = (unsigned int)link_number(index, link, "mb_per_s", 0);
    return NVML_SUCCESS;
}

static nvmlReturn_t common_speed(int index, unsigned int *mb_per_s) {
    for (unsigned int link = 0; link < NVML_MAX_LINKS; link++)
        if (link_number(index, link, "active", 0)) return link_speed(index, link, mb_per_s);
    return NVML_ERROR_NOT_SUPPORTED;
}

static nvmlReturn_t read_field(int index, nvmlFieldValue_t *field) {
    unsigned int id = field->fieldId;
    field->valueType = NVML_VALUE_UNSIGNED_INT;
    if (id >= FIELD_LINK_SPEED_L0 && id <= FIELD_LINK_SPEED_L5)
        return link_speed(index, id - FIELD_LINK_SPEED_L0, &field->value.uiVal);
    if (id >= FIELD_LINK_SPEED_L6 && id <= FIELD_LINK_SPEED_L11)
        return link_speed(index, 6 + id - FIELD_LINK_SPEED_L6, &field->value.uiVal);
    if (id == FIELD_LINK_SPEED_COMMON) return common_speed(index, &field->value.uiVal);
    if (id == FIELD_LINK_COUNT || id == FIELD_PCIE_REPLAY) {
        field->value.uiVal = (unsigned int)card_number(index, id == FIELD_LINK_COUNT ? "links" : "pcie_replay", 0);
        return NVML_SUCCESS;
    }
    if (id == FIELD_ENERGY || (id >= FIELD_CRC_FLIT_L0 && id <= FIELD_RECOVERY_TOTAL)) {
        if (id != FIELD_ENERGY && card_number(index, "links", 0) == 0) return NVML_ERROR_NOT_SUPPORTED;
        field->valueType = NVML_VALUE_UNSIGNED_LONG_LONG;
        field->value.ullVal = id == FIELD_ENERGY ? (unsigned long long)card_number(index, "energy_mj", 0) : 0;
        return NVML_SUCCESS;
    }
    /* GeForce does not expose the memory's temperature. */
    if (id != FIELD_MEMORY_TEMP || card_text(index, "memory_temp_c") == NULL) return NVML_ERROR_NOT_SUPPORTED;
    field->value.uiVal = (unsigned int)lround(strtod(card_text(index, "memory_temp_c"), NULL));
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t device, int count, nvmlFieldValue_t *values) {
    int index;
    struct timespec now;
    nvmlReturn_t result = enter_card(device, &index);
    if (result != NVML_SUCCESS) return result;
    clock_gettime(CLOCK_REALTIME, &now);
    for (int i = 0; i < count; i++) {
        values[i].timestamp = now.tv_sec * 1000000LL + now.tv_nsec / 1000;
        values[i].latencyUsec = 0;
        values[i].value.ullVal = 0;
        values[i].nvmlReturn = read_field(index, &values[i]);
    }
    return NVML_SUCCESS;
}
