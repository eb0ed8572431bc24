"""Simulated hardware of one rig: physics, wall meter, sensors, kernel log and faults.

Runs on the simulated rig with its own Python (3.10 or newer), standard library only. Everything here is about what
the machine *does*; how programs see it is the business of the NVML library, `nvidia-smi` and the sysfs files.
"""

from __future__ import annotations
