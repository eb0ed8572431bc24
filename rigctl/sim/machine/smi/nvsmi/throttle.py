"""Throttle reasons, by the names that nvidia-smi gives them."""

from __future__ import annotations

EVENT_NAMES_FROM = 535
"""From this branch on the reasons are called events."""
REASONS = {
    "gpu_idle": 0x1,
    "applications_clocks_setting": 0x2,
    "sw_power_cap": 0x4,
    "hw_slowdown": 0x8,
    "hw_thermal_slowdown": 0x40,
    "hw_power_brake_slowdown": 0x80,
    "sync_boost": 0x10,
    "sw_thermal_slowdown": 0x20,
    "display_clocks_setting": 0x100,
}
