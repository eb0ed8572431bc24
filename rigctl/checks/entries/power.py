"""Power: limits, rest, and the wall."""

from __future__ import annotations

from rigctl.checks.info import BASELINE, CARD, GPU, GPU_BURN, IDLE, LOADS, CheckInfo
from rigctl.checks.load import STEP_LOAD, WAKES

_METER = ("a wall meter",)

ENTRIES = (
    CheckInfo(
        "power.brake",
        "no supply or board signals power brake",
        LOADS,
        nvml=True,
        limit_from=("none at all: NVML's throttle reason HwPowerBrakeSlowdown",),
        fix="power supply or its cables to the card, one cable per connector; then the supply's own alarms",
    ),
    CheckInfo(
        "power.limit",
        "each card's power limit",
        nvml=True,
        limit_from=("the role variable `nvidia_driver_power_limit_w`", CARD),
        fix="rigctl provision RIG --tags nvidia_driver",
    ),
    CheckInfo(
        "power.idle",
        "what each card draws at rest",
        IDLE,
        nvml=True,
        limit_from=("limits.max_idle_power_w", BASELINE),
        fix="nvidia-smi: who uses the card, does its memory clock come down, is persistence on; a display on it",
    ),
    CheckInfo(
        "power.share_of_limit",
        "each card draws its limit, and no more",
        GPU_BURN,
        nvml=True,
        limit_from=("limits.min_power_share_of_limit", "limits.max_power_share_of_limit"),
        fix="throttle reasons and temperature first, then power cables, then gpu-burn's own rate",
    ),
    CheckInfo(
        "power.wall",
        "power at the wall under each load",
        GPU,
        nvml=True,
        requires=_METER,
        limit_from=(
            "limits.wall_power_gpu_burn_w",
            "limits.wall_power_all_burn_w",
            "limits.wall_power_tolerance_share",
        ),
        fix="too little: compare each card's power and rate; too much: supply losses, or another device on the meter",
    ),
    CheckInfo(
        "power.residual",
        "wall power reconciled with cards and CPU",
        GPU,
        nvml=True,
        requires=(*_METER, "the CPU's own power meter"),
        limit_from=("limits.max_wall_residual_share",),
        fix="the supply: its temperature and age; pump, fans and disks; another device on the meter",
    ),
    CheckInfo(
        "power.step_load",
        "the supply bears cards and CPU when they are switched together",
        (STEP_LOAD,),
        nvml=True,
        requires=("cuBLAS", "`allow_step_load: true`", "nobody logged in"),
        limit_from=("no reboot, no power brake",),
        fix="the power supply: its rating and age, one cable per connector; then the circuit",
    ),
    CheckInfo(
        "power.idle_to_load",
        "each card wakes from minutes of rest, and works as fast as ever",
        (WAKES,),
        nvml=True,
        requires=("cuBLAS",),
        limit_from=("ours: 70 % of its best wake",),
        fix="kernel.xid first; then ASPM and power management of the slot in the BIOS, riser and power cables",
    ),
)
