/* The part of NVML's binary interface that the simulated library offers.
 *
 * Layouts and numbers as NVIDIA's own Python binding (nvidia-ml-py) declares them: they are facts of the interface.
 */
#ifndef RIGSIM_NVML_ABI_H
#define RIGSIM_NVML_ABI_H

#ifndef RIGSIM_BRANCH
#error "RIGSIM_BRANCH (such as 515) must be given"
#endif
#ifndef RIGSIM_VERSION
#error "RIGSIM_VERSION (such as \"515.105.01\") must be given"
#endif

#define EXPORT __attribute__((visibility("default")))

typedef int nvmlReturn_t;
typedef struct card *nvmlDevice_t;

enum {
    NVML_SUCCESS = 0,
    NVML_ERROR_UNINITIALIZED = 1,
    NVML_ERROR_INVALID_ARGUMENT = 2,
    NVML_ERROR_NOT_SUPPORTED = 3,
    NVML_ERROR_NO_PERMISSION = 4,
    NVML_ERROR_NOT_FOUND = 6,
    NVML_ERROR_INSUFFICIENT_SIZE = 7,
    NVML_ERROR_DRIVER_NOT_LOADED = 9,
    NVML_ERROR_GPU_IS_LOST = 15,
    NVML_ERROR_LIB_RM_VERSION_MISMATCH = 18,
    NVML_ERROR_ARGUMENT_VERSION_MISMATCH = 25,
    NVML_ERROR_UNKNOWN = 999
};

enum { NVML_CLOCK_GRAPHICS = 0, NVML_CLOCK_SM = 1, NVML_CLOCK_MEM = 2, NVML_CLOCK_VIDEO = 3 };
enum { NVML_CLOCK_ID_CURRENT = 0, NVML_CLOCK_ID_CUSTOMER_BOOST_MAX = 3 };
enum { NVML_THRESHOLD_SHUTDOWN = 0, NVML_THRESHOLD_SLOWDOWN = 1, NVML_THRESHOLD_GPU_MAX = 3, NVML_THRESHOLD_ACOUSTIC_CURR = 5 };
enum { NVML_TOPOLOGY_INTERNAL = 0, NVML_TOPOLOGY_SYSTEM = 50 };
enum { NVML_P2P_STATUS_OK = 0, NVML_P2P_STATUS_CHIPSET_NOT_SUPPORTED = 1, NVML_P2P_STATUS_DISABLED_BY_REGKEY = 4 };
enum { NVML_P2P_CAPS_INDEX_NVLINK = 2, NVML_P2P_CAPS_INDEX_LAST = 5 };
enum { NVML_VALUE_UNSIGNED_INT = 1, NVML_VALUE_UNSIGNED_LONG_LONG = 3 };
enum { NVML_MAX_LINKS = 18 };

typedef struct {
    char busIdLegacy[16];
    unsigned int domain, bus, device;
    unsigned int pciDeviceId, pciSubSystemId;
    char busId[32];
} nvmlPciInfo_t;

typedef struct { unsigned long long total, free, used; } nvmlMemory_t;
typedef struct { unsigned int version; unsigned long long total, reserved, free, used; } nvmlMemory_v2_t;
typedef struct { unsigned int gpu, memory; } nvmlUtilization_t;

typedef struct {
    unsigned int pid;
    unsigned long long usedGpuMemory;
    unsigned int gpuInstanceId, computeInstanceId;
} nvmlProcessInfo_t;

typedef struct {
    unsigned int fieldId, scopeId;
    long long timestamp, latencyUsec;
    int valueType;
    nvmlReturn_t nvmlReturn;
    union {
        double dVal;
        unsigned int uiVal;
        unsigned long long ullVal;
        long long sllVal;
    } value;
} nvmlFieldValue_t;

/* The hardware's state (state.c). */
struct card {
    char uuid[64];
};

/* Read the state again where it changed; NVML_ERROR_UNKNOWN where the hardware does not answer. */
nvmlReturn_t state_refresh(void);
/* The value of a key, NULL where there is none. */
const char *state_text(const char *key);
long long state_number(const char *key, long long otherwise);
double state_real(const char *key, double otherwise);
/* Numbers of one card: `gpu.INDEX.KEY`. */
const char *card_text(int index, const char *key);
long long card_number(int index, const char *key, long long otherwise);
/* The directory of the simulation's changing files. */
const char *run_folder(void);

/* Library life and handles (life.c). */
nvmlReturn_t enter(void);
/* As enter(), and find the index of a handle: NVML_ERROR_GPU_IS_LOST where its card is gone. */
nvmlReturn_t enter_card(nvmlDevice_t device, int *index);
nvmlDevice_t handle_of(int index);
/* Copy a text into a caller's buffer: NVML_ERROR_INSUFFICIENT_SIZE where it does not fit. */
nvmlReturn_t give_text(const char *text, char *buffer, unsigned int length);
/* As the driver's registers: control/slot.N.NAME. */
long long control_number(int index, const char *name, long long otherwise);
nvmlReturn_t control_write(int index, const char *name, long long value);

#endif
