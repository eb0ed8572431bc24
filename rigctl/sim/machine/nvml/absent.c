/* What these cards or this driver do not offer: the symbol is there, as in the real library, and says so. */
#include "nvml_abi.h"

/* Arguments are left unread, so one form serves all of them (System V ABI: the caller cleans up). */
#define ABSENT(name) \
    EXPORT nvmlReturn_t name(void) { return NVML_ERROR_NOT_SUPPORTED; }

ABSENT(nvmlDeviceGetApplicationsClock)
ABSENT(nvmlDeviceGetViolationStatus)
ABSENT(nvmlDeviceGetDetailedEccErrors)
ABSENT(nvmlDeviceGetMemoryErrorCounter)
ABSENT(nvmlDeviceGetRetiredPages)
ABSENT(nvmlDeviceGetRetiredPages_v2)
ABSENT(nvmlDeviceGetRetiredPagesPendingStatus)
ABSENT(nvmlDeviceGetTopologyNearestGpus)
ABSENT(nvmlSystemGetTopologyGpuSet)
ABSENT(nvmlDeviceGetMigMode)
ABSENT(nvmlDeviceGetSupportedMemoryClocks)
ABSENT(nvmlDeviceGetMaxCustomerBoostClock)
ABSENT(nvmlDeviceGetBridgeChipInfo)
ABSENT(nvmlEventSetCreate)
ABSENT(nvmlDeviceRegisterEvents)
ABSENT(nvmlEventSetWait_v2)
#if RIGSIM_BRANCH >= 515
ABSENT(nvmlDeviceGetPcieSpeed)
ABSENT(nvmlDeviceGetPcieLinkMaxSpeed)
ABSENT(nvmlDeviceGetThermalSettings)
ABSENT(nvmlDeviceGetGspFirmwareVersion)
#endif
#if RIGSIM_BRANCH >= 525
ABSENT(nvmlDeviceGetTargetFanSpeed)
ABSENT(nvmlDeviceGetGpuFabricInfo)
#endif
#if RIGSIM_BRANCH >= 535
ABSENT(nvmlDeviceGetSramEccErrorStatus)
ABSENT(nvmlDeviceGetRunningProcessDetailList)
#endif
