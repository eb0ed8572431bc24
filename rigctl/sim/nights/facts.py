"""The facts of a rig's night: its parts as the class has them, its cards and bus as the agent reads them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rigctl.model.reading import Facts
from rigctl.sim.machine.hardware.rigsim.memory import clock_values
from rigctl.sim.nights import shown

if TYPE_CHECKING:
    from rigctl.model.spec import RigSpec
    from rigctl.sim.nights.board import Board
    from rigctl.sim.nights.hardware import Hardware

DRIVER = {"515": "515.105.01", "535": "535.183.01", "580": "580.65.06"}
"""A version of each branch that a class may ask for."""
TORCH_BUILD = "cu117"
PROBE_S = 0.4
"""Two cards answer within a second where persistence is on."""


def driver_of(spec: RigSpec) -> str:
    """Return the driver that the class asks for."""
    branch = spec.software.driver_branch
    return DRIVER.get(branch, f"{branch}.0.0")


def torch_of(spec: RigSpec) -> str:
    """Return PyTorch as the class asks for it."""
    asked, build = spec.software.torch_version, spec.software.torch_build
    version = "2.0.1" if asked == "auto" else asked.partition("+")[0]
    return f"{version}+{TORCH_BUILD if build == 'auto' else build}"


def read_facts(rig: Hardware, board: Board, spec: RigSpec, boot_id: str) -> Facts:
    """Return everything that identifies the rig."""
    cards = rig.present()
    gpus = [shown.card_facts(rig, card, index) for index, card in enumerate(cards)]
    identity, version = rig.identity, driver_of(spec)
    machine, cpu = identity["machine"], identity["cpu"]
    ours = {"name": "nvidia", "taint": "POE", "version": version}
    known: dict[str, Any] = {
        "boot_id": boot_id,
        "hostname": identity["rig"],
        "product_name": machine["product_name"],
        "bios_version": machine["bios_version"],
        "board_name": machine["board_name"],
        "board_serial": machine["serial"],
        "kernel": "5.15.0-101-generic",
        "cpu_model": cpu["model"],
        "cpu_threads": cpu["threads"],
        "memory_mib": 64_200,
        "modules": [*board.foreign_modules(), ours],
        "driver": {"loaded": version, "library": version, "cuda_driver": spec.software.cuda_version},
        "gpus": gpus,
        "pairs": shown.pair_facts(rig),
        **board.facts(),
        "probes": [{"name": "NVML", "seconds": PROBE_S, "limit_s": 40, "exit_status": 0}],
        "tools": _tools(rig, spec),
        "time_sync": _time_sync(rig),
        "fabric_manager": _fabric_manager(rig, version),
    }
    return Facts.model_validate(known)


def _fabric_manager(rig: Hardware, version: str) -> dict[str, Any]:
    """Return the service that joins cards through NVSwitches; a board without them has none."""
    if not rig.identity["links"].get("switches"):
        return {"installed": False}
    state = "failed" if rig.fault("fabric_manager_off") is not None else "active (running)"
    return {"installed": True, "state": state, "version": version}


def _time_sync(rig: Hardware) -> dict[str, bool]:
    """Return who keeps the clock, as `timedatectl` shows it."""
    kept = clock_values(rig.active)
    return {"service": bool(kept["clock.service"]), "synchronised": bool(kept["clock.synchronised"])}


def _tools(rig: Hardware, spec: RigSpec) -> dict[str, Any]:
    """Return the tools as the roles installed them: for the cards that the class has."""
    folder = spec.software.gpu_burn_dir
    return {
        "gpu_burn": f"{folder}/gpu_burn",
        "gpu_burn_build": {
            "commit": "3ead140434da9473582b68452f7115967a7a0581",
            "compute_capabilities": str([rig.given["card"]["compute_capability"]]),
        },
        "stress_ng": "/usr/bin/stress-ng",
        "torch_python": f"{spec.software.torch_venv}/bin/python",
        "torch": torch_of(spec),
        "nvcc": spec.software.cuda_version,
    }
