/* Between the simulated libraries: cuBLAS gives its work to the driver library. */
#ifndef RIGSIM_SIMULATED_H
#define RIGSIM_SIMULATED_H

/* Queue `flops` operations that run at `share` of the card's FP32 rate; they take their time in cuCtxSynchronize(). */
int rigsimQueue(double flops, double share);

#endif
