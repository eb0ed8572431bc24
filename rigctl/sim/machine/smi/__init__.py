"""`nvidia-smi` of a simulated rig; the package `nvsmi` inside runs on the rig itself."""
