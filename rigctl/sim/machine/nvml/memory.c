/* Errors of a card's memory and rows that it replaced; cards without error correction answer `Not Supported`. */
#include "nvml_abi.h"

#include <stdio.h>
#include <stddef.h>

enum { KINDS = 2, SINCE = 2 };

typedef struct { unsigned int max, high, partial, low, none; } nvmlRowRemapperHistogramValues_t;

static nvmlReturn_t enter_ecc(nvmlDevice_t device, int *index) {
    nvmlReturn_t result = enter_card(device, index);
    if (result != NVML_SUCCESS) return result;
    return card_text(*index, "ecc.on") != NULL ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
}

EXPORT nvmlReturn_t nvmlDeviceGetEccMode(nvmlDevice_t device, unsigned int *current, unsigned int *pending) {
    int index;
    nvmlReturn_t result = enter_ecc(device, &index);
    if (result == NVML_SUCCESS) *current = *pending = (unsigned int)card_number(index, "ecc.on", 0);
    return result;
}

/* Kind: corrected, uncorrected. Since: the driver was loaded (volatile), ever (aggregate). */
EXPORT nvmlReturn_t nvmlDeviceGetTotalEccErrors(nvmlDevice_t device, unsigned int kind, unsigned int since,
                                                unsigned long long *count) {
    int index;
    char key[32];
    nvmlReturn_t result = enter_ecc(device, &index);
    if (result != NVML_SUCCESS) return result;
    if (kind >= KINDS || since >= SINCE || count == NULL) return NVML_ERROR_INVALID_ARGUMENT;
    snprintf(key, sizeof key, "ecc.%u.%u", kind, since);
    *count = (unsigned long long)card_number(index, key, 0);
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetRemappedRows(nvmlDevice_t device, unsigned int *corrected, unsigned int *uncorrected,
                                              unsigned int *pending, unsigned int *failed) {
    int index;
    nvmlReturn_t result = enter_ecc(device, &index);
    if (result != NVML_SUCCESS) return result;
    *corrected = (unsigned int)card_number(index, "rows.corrected", 0);
    *uncorrected = (unsigned int)card_number(index, "rows.uncorrected", 0);
    *pending = (unsigned int)card_number(index, "rows.pending", 0);
    *failed = (unsigned int)card_number(index, "rows.failed", 0);
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetRowRemapperHistogram(nvmlDevice_t device, nvmlRowRemapperHistogramValues_t *banks) {
    int index;
    nvmlReturn_t result = enter_ecc(device, &index);
    if (result != NVML_SUCCESS) return result;
    *banks = (nvmlRowRemapperHistogramValues_t){(unsigned int)card_number(index, "rows.bank.0", 0),
                                                (unsigned int)card_number(index, "rows.bank.1", 0), 0, 0, 0};
    return NVML_SUCCESS;
}
