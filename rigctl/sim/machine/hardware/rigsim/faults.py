"""Faults of the hardware, as they happen to people: each changes the physics or the machine's state, never a check.

The book of applied faults is a file that survives a reboot. A fault is `active`, or waits for the next boot or for
the next load on a card. Faults that are no hardware (packages, network) are in the book too while they wait for a
load; the daemon then starts them through their own program.
"""

from __future__ import annotations

import fcntl
import json
import time
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from .changes import IDENTITY_FAULTS
from .memory import MEMORY_FAULTS
from .state import write_atomically

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

When = Literal["now", "boot", "load"]
Status = Literal["active", "waiting for a boot", "waiting for a load"]
MOMENTS: tuple[When, ...] = ("now", "boot", "load")


@dataclass(frozen=True)
class Parameter:
    """One `key=value` of a fault: whole numbers within `low` to `high`."""

    name: str
    default: int
    low: int
    high: int
    summary: str


@dataclass(frozen=True)
class FaultInfo:
    """One entry of the catalogue. `found_by` are the checks that must name it, with the exit code of `accept`."""

    name: str
    summary: str
    found_by: tuple[str, ...]
    exit_code: int
    parameters: tuple[Parameter, ...] = ()


EVERY = Parameter("every", default=3, low=1, high=1000, summary="at each so many-th time that it wakes")
SLOT = Parameter("slot", default=2, low=1, high=16, summary="the card's slot, counted from 1 in PCI bus order")

CATALOGUE: tuple[FaultInfo, ...] = (
    FaultInfo(
        "card_missing",
        "A card is not seen on the PCI bus, as after a loose riser or a missing power cable.",
        found_by=("topology.gpu_count",),
        exit_code=1,
        parameters=(SLOT,),
    ),
    FaultInfo(
        "nv3",
        "One link of the NVLink bridge has no signal: NV3 instead of NV4.",
        found_by=("topology.nvlink",),
        exit_code=1,
        parameters=(Parameter("link", default=3, low=0, high=3, summary="the dead link"),),
    ),
    FaultInfo(
        "links_inactive",
        "No link of any NVLink bridge has a signal.",
        found_by=("topology.nvlink",),
        exit_code=1,
    ),
    FaultInfo(
        "link_errors",
        "Packets on one NVLink of a card arrive damaged under load and are sent again.",
        found_by=("topology.nvlink_errors",),
        exit_code=1,
        parameters=(
            SLOT,
            Parameter("link", default=0, low=0, high=17, summary="the link"),
            Parameter("per_s", default=60, low=1, high=1_000_000, summary="damaged packets a second"),
        ),
    ),
    FaultInfo(
        "no_p2p",
        "The driver refuses peer access between the cards.",
        found_by=("topology.p2p_access",),
        exit_code=1,
    ),
    FaultInfo(
        "pcie_narrow",
        "A card's PCIe link has only some of its lanes under load.",
        found_by=("topology.pcie_width",),
        exit_code=1,
        parameters=(SLOT, Parameter("lanes", default=4, low=1, high=16, summary="lanes that are left")),
    ),
    FaultInfo(
        "pcie_slow",
        "A card's PCIe link trains to a lower generation under load.",
        found_by=("topology.pcie_gen",),
        exit_code=1,
        parameters=(SLOT, Parameter("generation", default=3, low=1, high=6, summary="the generation")),
    ),
    FaultInfo(
        "pcie_replays",
        "A card has to send packets over PCIe again under load.",
        found_by=("topology.pcie_replays",),
        exit_code=1,
        parameters=(SLOT, Parameter("per_s", default=40, low=1, high=1_000_000, summary="packets a second")),
    ),
    FaultInfo(
        "aer_root_port",
        "The root port above a card reports corrected errors under load; the card itself reports none.",
        found_by=("topology.aer_port",),
        exit_code=1,
        parameters=(SLOT, Parameter("per_s", default=40, low=1, high=1_000_000, summary="errors a second")),
    ),
    FaultInfo(
        "falls_off_bus",
        "A card falls off the bus: Xid 79, and nvidia-smi hangs from then on.",
        found_by=("kernel.xid", "measure.probes"),
        exit_code=1,
        parameters=(SLOT,),
    ),
    FaultInfo(
        "slow_topo",
        "`nvidia-smi topo -m` takes very long.",
        found_by=("measure.probes",),
        exit_code=1,
        parameters=(Parameter("seconds", default=14, low=1, high=600, summary="how long"),),
    ),
    FaultInfo(
        "pump_dead",
        "The pump of the cooling loop stands still; the cards run into their thermal slowdown under load.",
        found_by=("thermals.settled_gpu_temp", "thermals.throttle", "thermals.guard"),
        exit_code=1,
    ),
    FaultInfo(
        "pump_weak",
        "The pump of the cooling loop moves only a part of the water that it should.",
        found_by=("thermals.resistance",),
        exit_code=1,
        parameters=(Parameter("pct", default=45, low=1, high=100, summary="how much of its flow is left, %"),),
    ),
    FaultInfo(
        "plate_badly_seated",
        "The cold plate or heat sink of a card sits badly: heat leaves the die through a part of it only.",
        found_by=("thermals.resistance",),
        exit_code=1,
        parameters=(
            SLOT,
            Parameter("pct", default=45, low=1, high=100, summary="how much of the heat path is left, %"),
        ),
    ),
    FaultInfo(
        "air_blocked",
        "Dust or a cable in front of radiator or case fans: little air gets through.",
        found_by=("thermals.resistance",),
        exit_code=1,
        parameters=(Parameter("pct", default=15, low=1, high=100, summary="how much of the air is left, %"),),
    ),
    FaultInfo(
        "room_warm",
        "The room is warm: a summer day, or an air conditioning that has failed.",
        found_by=("thermals.rest_temp",),
        exit_code=1,
        parameters=(Parameter("celsius", default=38, low=0, high=60, summary="temperature of the room, °C"),),
    ),
    FaultInfo(
        "fan_stuck",
        "A fan of the radiator, or the fans of an air-cooled card, stand still.",
        found_by=("thermals.fans", "thermals.resistance"),
        exit_code=1,
        parameters=(SLOT,),
    ),
    FaultInfo(
        "tachometer_lies",
        "The radiator's fan stands still, and its tachometer goes on saying what it said.",
        found_by=("thermals.fans", "thermals.resistance"),
        exit_code=1,
    ),
    FaultInfo(
        "sensors_invalid",
        "A card's temperature sensor says 0 °C.",
        found_by=("thermals.guard",),
        exit_code=3,
        parameters=(SLOT,),
    ),
    FaultInfo(
        "burn_errors",
        "A card computes wrongly under load; gpu-burn counts errors and calls it FAULTY.",
        found_by=("throughput.gpu_burn",),
        exit_code=1,
        parameters=(
            SLOT,
            Parameter("per_s", default=40_000, low=1, high=100_000_000, summary="wrong elements a second"),
        ),
    ),
    FaultInfo(
        "power_limit_low",
        "A card keeps to a lower power limit than the asked one.",
        found_by=("power.limit",),
        exit_code=1,
        parameters=(SLOT, Parameter("watts", default=300, low=50, high=2000, summary="the limit, W")),
    ),
    FaultInfo(
        "power_brake",
        "Supply or board signal power brake to a card, which halves its clock under load.",
        found_by=("power.brake",),
        exit_code=1,
        parameters=(SLOT,),
    ),
    FaultInfo(
        "cards_slow",
        "The cards get less done at the same clock and power, with every driver or with newer branches only.",
        found_by=("throughput.burn_gflops",),
        exit_code=1,
        parameters=(
            Parameter("pct", default=85, low=1, high=100, summary="what is left of their rate, %"),
            Parameter("since", default=0, low=0, high=999, summary="the first driver branch with which it is so"),
        ),
    ),
    FaultInfo(
        "psu_trip",
        "The power supply goes off when its load rises at once, and the rig comes back by itself.",
        found_by=("power.step_load",),
        exit_code=1,
        parameters=(
            Parameter(
                "watts", default=600, low=1, high=20_000, summary="the rise at the wall that it does not bear, W"
            ),
        ),
    ),
    FaultInfo(
        "lost_at_wake",
        "A card that has rested falls off the bus when it is to work again, not each time.",
        found_by=("kernel.xid", "power.idle_to_load"),
        exit_code=1,
        parameters=(SLOT, EVERY),
    ),
    FaultInfo(
        "slow_at_wake",
        "A card that has rested keeps its clock low when it works again, not each time.",
        found_by=("power.idle_to_load",),
        exit_code=1,
        parameters=(SLOT, EVERY),
    ),
    FaultInfo(
        "idle_power_high",
        "A card does not rest: it draws far more than its standby power while it has nothing to do.",
        found_by=("power.idle",),
        exit_code=1,
        parameters=(SLOT, Parameter("watts", default=80, low=1, high=500, summary="how much more, W")),
    ),
    FaultInfo(
        "wall_meter_stuck",
        "The wall meter goes on showing what it showed when it got stuck.",
        found_by=("power.wall",),
        exit_code=3,
    ),
    FaultInfo(
        "wall_meter_absurd",
        "The wall meter shows a tenth of the power, or another wrong share of it.",
        found_by=("power.wall",),
        exit_code=3,
        parameters=(Parameter("pct", default=10, low=0, high=10_000, summary="what it shows of the power, %"),),
    ),
    FaultInfo(
        "wall_meter_offline",
        "The wall meter does not answer; its port is closed.",
        found_by=("power.wall",),
        exit_code=3,
    ),
    FaultInfo(
        "cpu_throttled",
        "The processor is held at a low clock, cool as it is.",
        found_by=("throughput.cpu_clock",),
        exit_code=1,
        parameters=(Parameter("pct", default=40, low=1, high=100, summary="what is left of its clock under load, %"),),
    ),
    FaultInfo(
        "memory_slow",
        "The memory runs slower than its modules can.",
        found_by=("identity.settings",),
        exit_code=1,
        parameters=(Parameter("mt_per_s", default=2133, low=800, high=9999, summary="what it runs at, MT/s"),),
    ),
    FaultInfo(
        "slow_disk",
        "The disk is much slower than it was.",
        found_by=("disk.speed",),
        exit_code=1,
        parameters=(Parameter("pct", default=5, low=1, high=100, summary="what is left of its speed, %"),),
    ),
    FaultInfo(
        "nvme_worn",
        "The NVMe disk has used its endurance up, and hardly any spare blocks are left.",
        found_by=("disk.health",),
        exit_code=1,
        parameters=(Parameter("used_pct", default=104, low=0, high=255, summary="endurance used, %"),),
    ),
    FaultInfo(
        "nic_slow",
        "The network card's link runs at 100 Mbit/s.",
        found_by=("network.link",),
        exit_code=1,
        parameters=(Parameter("mbit_per_s", default=100, low=10, high=400_000, summary="the link's speed, Mbit/s"),),
    ),
    *(
        FaultInfo(name, summary, found_by, int(bool(found_by)), (SLOT,) if of_card else ())
        for name, summary, found_by, of_card in IDENTITY_FAULTS
    ),
    *(
        FaultInfo(name, summary, found_by, 1, tuple(Parameter(*one) for one in parameters))
        for name, summary, found_by, parameters in MEMORY_FAULTS
    ),
)
HARDWARE_FAULTS: dict[str, FaultInfo] = {info.name: info for info in CATALOGUE}


class FaultError(ValueError):
    """A fault or a parameter that does not exist, or a value out of range."""


@dataclass
class Applied:
    """One applied fault. `boot_id` is the boot in which it was applied."""

    name: str
    parameters: dict[str, str]
    when: When
    status: Status
    applied_wall_s: float
    boot_id: str
    values: dict[str, int] = field(default_factory=dict)

    @property
    def active(self) -> bool:
        """Whether it has happened."""
        return self.status == "active"


def read_book(path: Path) -> list[Applied]:
    """All applied faults; an empty list when there is no book."""
    try:
        entries: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["faults"]
    except FileNotFoundError:
        return []
    return [Applied(**entry) for entry in entries]


@contextmanager
def locked_book(path: Path) -> Iterator[list[Applied]]:
    """All applied faults, to be changed in place and kept at the end; nobody else writes meanwhile."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        applied = read_book(path)
        yield applied
        write_book(path, applied)


def write_book(path: Path, applied: list[Applied]) -> None:
    """Keep the book."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, json.dumps({"faults": [asdict(one) for one in applied]}, indent=1) + "\n")


def new_fault(name: str, parameters: dict[str, str], when: str, boot_id: str) -> Applied:
    """A checked entry for the book; FaultError names what is wrong. Other faults than ours check their own values."""
    moment = next((one for one in MOMENTS if one == when), None)
    if moment is None:
        raise FaultError(f"when={when}: must be one of {', '.join(MOMENTS)}")
    info = HARDWARE_FAULTS.get(name)
    values = check_parameters(info, parameters) if info is not None else {}
    waits: dict[When, Status] = {"now": "active", "boot": "waiting for a boot", "load": "waiting for a load"}
    return Applied(name, parameters, moment, waits[moment], time.time(), boot_id, values)


def check_parameters(info: FaultInfo, parameters: dict[str, str]) -> dict[str, int]:
    """The values of a fault's parameters, with defaults; FaultError for an unknown name or a bad value."""
    known = {parameter.name: parameter for parameter in info.parameters}
    unknown = sorted(set(parameters) - set(known))
    if unknown:
        allowed = ", ".join(known) or "none"
        raise FaultError(f"{info.name}: no parameter {unknown[0]} (it has: {allowed})")
    values = {}
    for parameter in info.parameters:
        text = parameters.get(parameter.name, str(parameter.default))
        if not text.removeprefix("-").isdigit() or not parameter.low <= int(text) <= parameter.high:
            allowed = f"{parameter.low} to {parameter.high}"
            raise FaultError(f"{info.name}: {parameter.name}={text}: must be a whole number from {allowed}")
        values[parameter.name] = int(text)
    return values
