"""Simulated rigs: real SSH, real systemd, real apt; only the hardware is not real.

`up` and `down` are the Python side of `rigctl sim up` and `rigctl sim down`. Nothing else in rigctl knows that
simulated rigs exist, but the commands `sim` and `demo`.
"""

from __future__ import annotations

from rigctl.sim.options import UpOptions
from rigctl.sim.rigs import Listed, down, down_all, list_rigs, up
from rigctl.sim.state import SimulatedRig, State

__all__ = ["Listed", "SimulatedRig", "State", "UpOptions", "down", "down_all", "list_rigs", "up"]
