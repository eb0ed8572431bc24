/* Inside the simulated libcuda. */
#ifndef RIGSIM_LIBCUDA_H
#define RIGSIM_LIBCUDA_H

#include "../../nvml/nvml_abi.h"
#include "../include/cuda.h"

/* Whether the driver is up and has this device. */
CUresult enter_device(CUdevice device);

#endif
