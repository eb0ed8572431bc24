"""Faults of simulated rigs: the catalogue, and applying them to a rig.

A fault is what really happens to people, never a flag that a check reads: it changes the physics, the packages, the
network or a process of a rig, and the checks must find it by measuring.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from rigctl.errors import RigctlError, UsageError
from rigctl.sim import podman, state
from rigctl.sim.machine.hardware.rigsim import faults as hardware
from rigctl.sim.machine.hardware.rigsim.faults import MOMENTS, FaultInfo, Parameter
from rigctl.sim.provisioning_faults import PROVISIONING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_ENTRY = "/usr/local/lib/rigsim/fault"
_TIMEOUT_S = 400
"""A package transaction is the slowest fault."""


@dataclass(frozen=True)
class Fault:
    """One entry of the catalogue."""

    name: str
    summary: str
    in_the_field: str
    """What it looks like to people with real rigs, and where that was reported."""
    found_by: tuple[str, ...]
    """The checks that must name it; empty where acceptance must pass and note it."""
    exit_code: int
    """What `rigctl accept` exits with when this is the only fault."""
    parameters: tuple[Parameter, ...] = ()
    needs: str = ""
    """What the rig must be before the fault can happen."""
    met: str = ""
    """How provisioning meets it; empty for a fault of rigs in use."""

    def as_json(self) -> dict[str, Any]:
        """Return the entry as plain data."""
        return asdict(self)


_IN_THE_FIELD = {
    "card_missing": "A card is gone after transport: a riser has slipped, a power plug is loose.",
    "nv3": "One lane of a bridge that is not pressed down has no signal; nothing crashes, it is slower.",
    "links_inactive": "The bridge was left off after a repair, or sits on one card only.",
    "link_errors": "Dust or a worn contact in the bridge; transfers are slower now and then, and nothing else is seen.",
    "no_p2p": "A driver option that somebody set against hangs, or a driver that no longer allows P2P on these cards.",
    "pcie_narrow": "A card that is not fully seated, or a neighbouring slot that takes lanes away.",
    "pcie_slow": "A riser made for generation 3, or the slot's generation in the BIOS after an update.",
    "pcie_replays": "A riser that is bent or too long: packets are damaged and sent again.",
    "aer_root_port": "A riser damages what the card sends: only the port above can see that.",
    "falls_off_bus": "`GPU has fallen off the bus` in the middle of a burn: power, riser, or a dying card.",
    "slow_topo": "Without persistence every call starts the driver anew; or a card is about to hang.",
    "pump_dead": "The pump of a water loop stops; at rest all looks well, under load the cards get hot.",
    "pump_weak": "A pump ages, or the loop has air or a clogged block in it; nothing is said, the cards get warmer.",
    "plate_badly_seated": "After a card was repasted or moved: one card is much warmer than its twin.",
    "air_blocked": "Dust in the radiator, or a filter that nobody has cleaned for a year.",
    "room_warm": "The first hot day of the year, and every rig is late with its work.",
    "fan_stuck": "A cable touches a blade, or a bearing has gone.",
    "tachometer_lies": "A fan controller reports what it asks for, and not what the fan does.",
    "sensors_invalid": "A sensor says N/A, an error, or zero, after a while of work or from the start.",
    "card_swapped": "A colleague lent the card to another rig and put a twin of it in; its history is another one's.",
    "card_moved": "After cleaning, the cards went back in another order; bridges, lanes and cooling differ by slot.",
    "wrong_card": "Two rigs were open at once, and a card went back into the wrong one.",
    "vbios_changed": "A card was used for mining before, or an update tool offered itself: limits and fans differ.",
    "bios_defaults": "The board's battery is flat, or a BIOS update forgot the profile; five things are odd at once.",
    "foreign_module": "A tool for lights, fans or virtual cameras brought a kernel module of its own.",
    "ecc_errors": "A memory chip of a data-centre card is failing: programs die, and the card counts it.",
    "row_remap_pending": "A row of the card's memory failed in the last job; the card waits for a reset to replace it.",
    "xid_13": "A card computes wrong addresses; with user programs it is most often their own mistake.",
    "xid_31": "A card reads memory that nobody gave it; with user programs it is most often their own mistake.",
    "xid_48": "`An uncorrectable double bit error (DBE) has been detected`: the card's memory is failing.",
    "xid_74": "`NVLink: fatal error detected`: a bridge that is loose, or a link of the card that has died.",
    "xid_119": "`Timeout after 6s of waiting for RPC response from GPU GSP`: the card's own processor hangs "
    "(open-gpu-kernel-modules#446).",
    "fabric_manager_off": "The driver was upgraded and its fabric manager was not: neither it nor CUDA starts.",
    "time_sync_off": "Somebody switched the time service off for a test, or an image came without one.",
    "nvme_added": "A second disk goes in, and every card has another bus number the next day.",
    "burn_errors": "Memory or core of a card is unstable; gpu-burn says FAULTY at its end and still exits 0.",
    "power_limit_low": "A power cable's sense pins tell the card that less may be drawn, or a limit was set by hand.",
    "cards_slow": "After a change of driver the same work takes longer: clocks, power and logs show nothing.",
    "power_brake": "The supply is overloaded or too warm, or a power cable to the card is loose.",
    "psu_trip": "A rig that burns for hours goes off when a training's batches begin on all cards at once.",
    "lost_at_wake": "A rig works all day, rests over night, and one morning a card is gone: `fallen off the bus`.",
    "slow_at_wake": "After a break one card is at a third of its pace until the next reboot, and nothing is logged.",
    "idle_power_high": "The memory clock does not come down: a display, a driver fault, or somebody's process.",
    "cpu_throttled": "Voltage regulators without air, or a power limit from the BIOS: all is cool, and slow.",
    "memory_slow": "The memory profile was lost with the BIOS settings: 2133 MT/s instead of what was paid for.",
    "slow_disk": "The disk is in a slot with one lane, too hot, or its cache is full and its cells are worn.",
    "nvme_worn": "A disk that held check points for two years: soon it will take no more writes.",
    "nic_slow": "A pair of wires of the cable has no contact: gigabit becomes 100 Mbit/s, and everything still works.",
    "wall_meter_stuck": "The plug's metering chip hangs while its network still answers.",
    "wall_meter_absurd": "The plug's calibration is lost, or it counts in other units after an upgrade.",
    "wall_meter_offline": "The meter has lost its wireless network, or somebody unplugged it.",
}

_OTHERS = (
    FaultInfo(
        "driver_library_mismatch",
        "apt has upgraded the driver's user space, nobody has rebooted: the loaded module is older than the library.",
        found_by=("software.driver_version",),
        exit_code=1,
    ),
    FaultInfo(
        "disk_full",
        "The disk that readings go to is full but for a few megabytes.",
        found_by=("disk.space",),
        exit_code=1,
        parameters=(Parameter("free_mb", default=20, low=8, high=4000, summary="what is left, MB"),),
    ),
    FaultInfo(
        "old_module_boots",
        "The initial RAM disk keeps the module that is loaded now: a start loads that one, whatever is installed.",
        found_by=("software.driver_version",),
        exit_code=1,
    ),
    FaultInfo(
        "boot_hangs",
        "At its next start the machine stops before anything runs, and waits for somebody at its console.",
        found_by=("measure.reached",),
        exit_code=3,
    ),
    FaultInfo(
        "host_memory_errors",
        "The rig's memory forgets: a bit in what a memory test has written turns round.",
        found_by=("memory.host",),
        exit_code=1,
    ),
    FaultInfo(
        "clock_drift",
        "The rig's clock goes fast: it is seconds ahead.",
        found_by=("kernel.clock",),
        exit_code=1,
        parameters=(
            Parameter(
                "seconds", default=30, low=-86_400, high=86_400, summary="how far ahead, seconds; -3600: an hour behind"
            ),
        ),
    ),
    FaultInfo(
        "ssh_down",
        "The SSH server stops, every session breaks, and it comes back by itself.",
        found_by=(),
        exit_code=0,
        parameters=(Parameter("seconds", default=20, low=1, high=3600, summary="how long"),),
    ),
)
_OTHERS_IN_THE_FIELD = {
    "disk_full": "Check points and data sets of half a year: one day training ends with `No space left on device`.",
    "driver_library_mismatch": "Unattended upgrades; `Failed to initialize NVML: Driver/library version mismatch` "
    "(canonical/nvidia-graphics-drivers#78, NVIDIA/deepops#1186).",
    "old_module_boots": "`update-initramfs` was not run, or failed: the driver is new on disk, old after a restart.",
    "boot_hangs": "The firmware asks for a key, or for a keyboard, after the first restart in a year.",
    "host_memory_errors": "A module that was overclocked, or sits badly: programs crash at random, files are damaged.",
    "clock_drift": "A board whose clock runs fast, after months in a network without a time server.",
    "ssh_down": "The server is restarted by an upgrade, or a switch port flaps, in the middle of a burn.",
}
_ACCEPTED = "an accepted run of the rig to compare with (`rigctl accept`)"
_NEEDS = {
    **dict.fromkeys(
        ("card_swapped", "card_moved", "vbios_changed", "bios_defaults", "foreign_module", "memory_slow"), _ACCEPTED
    ),
    "driver_library_mismatch": "a driver from apt, loaded (provision the rig first)",
    **dict.fromkeys(("ecc_errors", "row_remap_pending"), "cards with ECC: the classes octo_a100 and octo_h100"),
    "old_module_boots": "another driver that is installed afterwards, and a restart",
    "boot_hangs": "a restart",
    "fabric_manager_off": "cards on NVSwitches: the classes octo_a100 and octo_h100",
    "host_memory_errors": "a profile with the workload `host_memory`, and a spec that asks for it",
}
_MET = {
    "driver_library_mismatch": "goes back to the asked branch in one transaction; where no source has it any more, "
    "refuses and says who has",
    **{fault.name: fault.met for fault in PROVISIONING},
}


def catalogue() -> tuple[Fault, ...]:
    """Return every fault, by name."""
    words = {**_IN_THE_FIELD, **_OTHERS_IN_THE_FIELD, **{fault.name: fault.in_the_field for fault in PROVISIONING}}
    needs = {**_NEEDS, **{fault.name: fault.needs for fault in PROVISIONING}}
    entries = (*hardware.CATALOGUE, *_OTHERS, *(fault.info for fault in PROVISIONING))
    found = (
        Fault(
            name=info.name,
            summary=info.summary,
            in_the_field=words[info.name],
            found_by=info.found_by,
            exit_code=info.exit_code,
            parameters=info.parameters,
            needs=needs.get(info.name, ""),
            met=_MET.get(info.name, ""),
        )
        for info in entries
    )
    return tuple(sorted(found, key=lambda fault: fault.name))


def apply(directory: Path, rig: str, name: str, parameters: Mapping[str, str]) -> dict[str, Any]:
    """Apply the fault `name` to a rig and return what was applied.

    Args:
        directory: The state folder of the rig.
        rig: Its name.
        name: The fault's name in the catalogue.
        parameters: The fault's own, and `when`: `now` (default), `boot` (at the next one) or `load` (of a card).

    Raises:
        UsageError: no such rig, fault or parameter, or a value out of range.
        RigctlError: the fault could not happen on this rig as it is.
    """
    found = state.require(directory).rig(rig)
    check(name, parameters)
    reply = _on_rig(found, "apply", name, *(f"{key}={value}" for key, value in parameters.items()))
    applied: dict[str, Any] = reply["applied"]
    return applied


def clear(directory: Path, rig: str, name: str | None = None) -> list[str]:
    """Take back one fault of a rig, or all of them; return their names. What is not applied is no error.

    Raises:
        UsageError: no such rig or fault.
        RigctlError: a fault could not be taken back.
    """
    found = state.require(directory).rig(rig)
    if name is not None:
        _named(name)
    cleared: list[str] = _on_rig(found, "clear", *([name] if name is not None else []))["cleared"]
    return cleared


def applied(directory: Path, rig: str) -> list[dict[str, Any]]:
    """Return the faults of a rig, those that wait for a boot or a load included."""
    found: list[dict[str, Any]] = _on_rig(state.require(directory).rig(rig), "list")["faults"]
    return found


def check(name: str, parameters: Mapping[str, str]) -> None:
    """Check a fault's name and parameters before any rig is touched.

    Raises:
        UsageError: there is no such fault or parameter, or a value is out of range.
    """
    fault = _named(name)
    when = parameters.get("when", "now")
    if when not in MOMENTS:
        raise UsageError(f"{name}: when={when}: must be one of {', '.join(MOMENTS)}", "now is the default")
    own = {key: value for key, value in parameters.items() if key != "when"}
    info = FaultInfo(fault.name, fault.summary, fault.found_by, fault.exit_code, fault.parameters)
    try:
        hardware.check_parameters(info, own)
    except hardware.FaultError as error:
        raise UsageError(str(error), "see: rigctl sim faults") from error


def _named(name: str) -> Fault:
    known = {fault.name: fault for fault in catalogue()}
    if name not in known:
        raise UsageError(f"no fault is called {name}", f"choose one of: {', '.join(known)}")
    return known[name]


def _on_rig(rig: state.SimulatedRig, *arguments: str) -> dict[str, Any]:
    """Run the rig-side entry, past SSH, so that a fault of SSH can be taken back."""
    try:
        reply = podman.find().execute(rig.container, _ENTRY, *arguments, timeout_s=_TIMEOUT_S)
    except podman.PodmanFailed as error:
        hint = (
            f"is the rig running? rigctl sim list; its log: podman exec {rig.container} journalctl -u rigsim-hardware"
        )
        raise RigctlError(f"{rig.name}: {_refusal(error)}", hint) from error
    answer: dict[str, Any] = json.loads(reply)
    return answer


def _refusal(error: podman.PodmanFailed) -> str:
    """Return the rig's own words for why it refused; podman's where it did not come to speak."""
    try:
        refused: dict[str, str] = json.loads(error.stderr)
    except json.JSONDecodeError:
        return error.message
    return refused["error"]
