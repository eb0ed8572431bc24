"""A simulated `nvidia-smi`: asks the NVML library as the real one does, and prints the forms of the driver's branch.

The forms are those of public captures of the real program; nothing of its text was taken over that is not output.
"""

from __future__ import annotations
