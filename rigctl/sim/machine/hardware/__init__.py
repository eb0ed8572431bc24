"""The simulated hardware of a rig; the package `rigsim` inside runs on the rig itself."""
