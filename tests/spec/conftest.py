"""The compiled libraries of simulated hardware, for rigs of every class without a container."""

from __future__ import annotations

from tests.sim_hardware.conftest import built

__all__ = ["built"]
