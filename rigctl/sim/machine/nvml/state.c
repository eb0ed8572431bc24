/* Reads the state file of the simulated hardware: `key value` lines, replaced as a whole by its daemon. */
#include "nvml_abi.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

enum { MAX_ENTRIES = 4096, PATH_SIZE = 512 };

struct entry {
    const char *key, *value;
};

/* Each thread has its own copy, so that no thread's values move while another one reads the file again. */
static _Thread_local struct entry entries[MAX_ENTRIES];
static _Thread_local int entry_count;
static _Thread_local char *text;
static _Thread_local ino_t seen_inode;
static _Thread_local struct timespec seen_time;

const char *run_folder(void) {
    const char *folder = getenv("RIGSIM_RUN");
    return folder != NULL && folder[0] != '\0' ? folder : "/run/rigsim";
}

static int by_key(const void *a, const void *b) {
    return strcmp(((const struct entry *)a)->key, ((const struct entry *)b)->key);
}

static void parse(void) {
    entry_count = 0;
    for (char *line = text; line != NULL && *line != '\0' && entry_count < MAX_ENTRIES;) {
        char *end = strchr(line, '\n');
        if (end != NULL) *end = '\0';
        char *blank = strchr(line, ' ');
        if (blank != NULL) {
            *blank = '\0';
            entries[entry_count].key = line;
            entries[entry_count++].value = blank + 1;
        }
        line = end != NULL ? end + 1 : NULL;
    }
    qsort(entries, (size_t)entry_count, sizeof entries[0], by_key);
}

static int load(const char *path) {
    FILE *file = fopen(path, "re");
    if (file == NULL) return 0;
    struct stat status;
    if (fstat(fileno(file), &status) != 0) {
        fclose(file);
        return 0;
    }
    if (text != NULL && status.st_ino == seen_inode && status.st_mtim.tv_sec == seen_time.tv_sec &&
        status.st_mtim.tv_nsec == seen_time.tv_nsec) {
        fclose(file);
        return 1;
    }
    char *fresh = malloc((size_t)status.st_size + 1);
    if (fresh == NULL) {
        fclose(file);
        return 0;
    }
    size_t length = fread(fresh, 1, (size_t)status.st_size, file);
    fclose(file);
    fresh[length] = '\0';
    free(text);
    text = fresh;
    seen_inode = status.st_ino;
    seen_time = status.st_mtim;
    parse();
    return 1;
}

nvmlReturn_t state_refresh(void) {
    char path[PATH_SIZE];
    snprintf(path, sizeof path, "%s/state", run_folder());
    if (!load(path)) return NVML_ERROR_UNKNOWN;
    double stale_after_s = state_real("sim.stale_after_s", 5.0);
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    double age_s = (double)now.tv_sec + (double)now.tv_nsec / 1e9 - state_real("sim.t_mono_s", 0.0);
    return stale_after_s > 0.0 && age_s > stale_after_s ? NVML_ERROR_UNKNOWN : NVML_SUCCESS;
}

const char *state_text(const char *key) {
    struct entry wanted = {key, NULL};
    const struct entry *found = bsearch(&wanted, entries, (size_t)entry_count, sizeof entries[0], by_key);
    return found != NULL ? found->value : NULL;
}

long long state_number(const char *key, long long otherwise) {
    const char *value = state_text(key);
    return value != NULL ? strtoll(value, NULL, 0) : otherwise;
}

double state_real(const char *key, double otherwise) {
    const char *value = state_text(key);
    return value != NULL ? strtod(value, NULL) : otherwise;
}

const char *card_text(int index, const char *key) {
    char whole[128];
    snprintf(whole, sizeof whole, "gpu.%d.%s", index, key);
    return state_text(whole);
}

long long card_number(int index, const char *key, long long otherwise) {
    const char *value = card_text(index, key);
    return value != NULL ? strtoll(value, NULL, 0) : otherwise;
}
