/* Start, end, errors, handles, and what the driver was told. */
#include "nvml_abi.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_CARDS = 16, PATH_SIZE = 512, HANG_US = 100000 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int users;
static struct card cards[MAX_CARDS];
static int card_count;

/* Where the loaded module says its version; a test's simulation has it in its own folder. */
static nvmlReturn_t loaded_version(char *version, size_t size) {
    char path[PATH_SIZE] = "/sys/module/nvidia/version";
    if (getenv("RIGSIM_RUN") != NULL) snprintf(path, sizeof path, "%s/sys/module/nvidia/version", run_folder());
    FILE *file = fopen(path, "re");
    if (file == NULL) return NVML_ERROR_DRIVER_NOT_LOADED;
    char *line = fgets(version, (int)size, file);
    fclose(file);
    if (line == NULL) return NVML_ERROR_DRIVER_NOT_LOADED;
    version[strcspn(version, "\n")] = '\0';
    return NVML_SUCCESS;
}

/* A handle stands for a card, not for a place: it stays the same card's when another one disappears. */
static void learn_cards(void) {
    int count = (int)state_number("gpu.count", 0);
    for (int index = 0; index < count; index++) {
        const char *uuid = card_text(index, "uuid");
        int known = 0;
        while (known < card_count && uuid != NULL && strcmp(cards[known].uuid, uuid) != 0) known++;
        if (uuid != NULL && known == card_count && card_count < MAX_CARDS)
            snprintf(cards[card_count++].uuid, sizeof cards[0].uuid, "%s", uuid);
    }
}

static nvmlReturn_t start(void) {
    char version[64];
    nvmlReturn_t found = loaded_version(version, sizeof version);
    if (found != NVML_SUCCESS) return found;
    if (strcmp(version, RIGSIM_VERSION) != 0) return NVML_ERROR_LIB_RM_VERSION_MISMATCH;
    found = state_refresh();
    /* The driver of a card that is gone answers nobody new; who has it open already goes on. */
    while (found == NVML_SUCCESS && users == 0 && state_number("driver.hangs", 0)) {
        usleep(HANG_US);
        found = state_refresh();
    }
    if (found == NVML_SUCCESS) {
        learn_cards();
        users++;
    }
    return found;
}

EXPORT nvmlReturn_t nvmlInitWithFlags(unsigned int flags) {
    (void)flags;
    pthread_mutex_lock(&lock);
    nvmlReturn_t result = start();
    pthread_mutex_unlock(&lock);
    return result;
}

EXPORT nvmlReturn_t nvmlInit(void) { return nvmlInitWithFlags(0); }
EXPORT nvmlReturn_t nvmlInit_v2(void) { return nvmlInitWithFlags(0); }

EXPORT nvmlReturn_t nvmlShutdown(void) {
    pthread_mutex_lock(&lock);
    nvmlReturn_t result = users > 0 ? NVML_SUCCESS : NVML_ERROR_UNINITIALIZED;
    if (users > 0) users--;
    pthread_mutex_unlock(&lock);
    return result;
}

EXPORT const char *nvmlErrorString(nvmlReturn_t result) {
    static const char *const texts[] = {
        "The operation was successful", "Uninitialized", "Invalid Argument", "Not Supported",
        "Insufficient Permissions", "Already Initialized", "Not Found", "Insufficient Size",
        "Insufficient External Power", "Driver Not Loaded", "Timeout", "Interrupt Request Issue",
        "NVML Shared Library Not Found", "Function Not Found", "Corrupted infoROM", "GPU is lost",
        "GPU requires reset", "The operating system has blocked the request.", "Driver/library version mismatch",
    };
    int known = (int)(sizeof texts / sizeof texts[0]);
    return result >= 0 && result < known ? texts[result] : "Unknown Error";
}

/* The list of cards is shared between threads and only ever grows; the state is each thread's own. */
nvmlReturn_t enter(void) {
    pthread_mutex_lock(&lock);
    nvmlReturn_t result = users > 0 ? state_refresh() : NVML_ERROR_UNINITIALIZED;
    if (result == NVML_SUCCESS) learn_cards();
    pthread_mutex_unlock(&lock);
    return result;
}

nvmlReturn_t enter_card(nvmlDevice_t device, int *index) {
    nvmlReturn_t result = enter();
    if (result != NVML_SUCCESS) return result;
    if (device < cards || device >= cards + card_count) return NVML_ERROR_INVALID_ARGUMENT;
    int count = (int)state_number("gpu.count", 0);
    for (*index = 0; *index < count; (*index)++) {
        const char *uuid = card_text(*index, "uuid");
        if (uuid != NULL && strcmp(uuid, device->uuid) == 0)
            return card_number(*index, "lost", 0) ? NVML_ERROR_GPU_IS_LOST : NVML_SUCCESS;
    }
    return NVML_ERROR_GPU_IS_LOST;
}

nvmlDevice_t handle_of(int index) {
    const char *uuid = card_text(index, "uuid");
    for (int known = 0; uuid != NULL && known < card_count; known++)
        if (strcmp(cards[known].uuid, uuid) == 0) return &cards[known];
    return NULL;
}

nvmlReturn_t give_text(const char *text, char *buffer, unsigned int length) {
    if (text == NULL) return NVML_ERROR_NOT_SUPPORTED;
    if (buffer == NULL) return NVML_ERROR_INVALID_ARGUMENT;
    if (strlen(text) >= length) return NVML_ERROR_INSUFFICIENT_SIZE;
    strcpy(buffer, text);
    return NVML_SUCCESS;
}

static void control_path(int index, const char *name, char *path, size_t size) {
    snprintf(path, size, "%s/control/slot.%lld.%s", run_folder(), card_number(index, "slot", 0), name);
}

long long control_number(int index, const char *name, long long otherwise) {
    char path[PATH_SIZE], line[64];
    control_path(index, name, path, sizeof path);
    FILE *file = fopen(path, "re");
    if (file == NULL) return otherwise;
    char *read = fgets(line, sizeof line, file);
    fclose(file);
    return read != NULL ? strtoll(line, NULL, 10) : otherwise;
}

/* Written whole and renamed: the daemon and other readers never see half a number. */
nvmlReturn_t control_write(int index, const char *name, long long value) {
    char path[PATH_SIZE], fresh[PATH_SIZE + 32];
    control_path(index, name, path, sizeof path);
    snprintf(fresh, sizeof fresh, "%s.%ld.new", path, (long)getpid());
    FILE *file = geteuid() == 0 ? fopen(fresh, "we") : NULL;
    if (file == NULL) return geteuid() != 0 || errno == EACCES ? NVML_ERROR_NO_PERMISSION : NVML_ERROR_UNKNOWN;
    int written = fprintf(file, "%lld\n", value) > 0;
    written = fclose(file) == 0 && written;
    return written && rename(fresh, path) == 0 ? NVML_SUCCESS : NVML_ERROR_UNKNOWN;
}
