"""The rig as its kernel and firmware show it: written by the simulation, read by the agent's own code."""

from __future__ import annotations

import contextlib
import io
import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from rigctl.agent import bus, cpu_clock, dmi, network
from rigctl.sim.machine.hardware.rigsim import built_in, changes, pcibus, storage
from rigctl.sim.machine.hardware.rigsim.paths import Paths
from rigctl.sim.machine.hardware.rigsim.state import render, write_atomically

if TYPE_CHECKING:
    from types import TracebackType

    from rigctl.sim.nights.hardware import Hardware

IN_MEMORY = Path("/dev/shm")  # noqa: S108 - the folder is made safely there
"""Where there is such a folder: a night writes a hundred small files."""
SECTOR_BYTES = 512
FIO_BYTES = 64 * 1024 * 1024
FIO_S = 10
WAYS = ("write", "read")
ROOT_GB, FREE_GB = 1900.0, 1400.0
"""Size and room of the file system that everything goes to, GB of 10⁹ bytes."""


class Board:
    """One rig's trees, in a folder of its own that is gone afterwards."""

    def __init__(self, rig: Hardware) -> None:
        self._rig = rig
        self._folder = tempfile.TemporaryDirectory(
            prefix="rigctl-night-", dir=IN_MEMORY if IN_MEMORY.is_dir() else None
        )
        self._home = Path(self._folder.name)
        self._paths = Paths(run=self._home, kept=self._home, machine=self._home)
        self._sys = self._paths.sys

    def __enter__(self) -> Self:
        """Lay the trees out."""
        rig = self._rig
        (self._sys / "module").mkdir(parents=True)
        pcibus.prepare(self._paths, dict(rig.given))
        built_in.prepare(self._paths, rig.given)
        changes.show(self._paths, rig.given, rig.identity, rig.active)
        built_in.show_settings(self._paths, rig.identity, rig.active)
        built_in.show_clocks(self._paths, rig.machine)
        write_atomically(self._paths.state, render(built_in.values(rig.identity, rig.active)))
        self.update()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Remove them."""
        self._folder.cleanup()

    def update(self) -> None:
        """Show what has been counted since."""
        here = [card.parts.slot for card in self._rig.present()]
        pcibus.update(self._paths, self._rig.identity, here, self._rig.wiring.port_errors)

    def facts(self) -> dict[str, Any]:
        """Return what the facts have of it."""
        cards = [self._rig.own(card) for card in self._rig.present()]
        return {
            "places": [{"uuid": one["uuid"], **bus.place(str(one["pci_bus_id"]), self._sys)} for one in cards],
            "numa_nodes": bus.numa_nodes(self._sys),
            "memory_modules": dmi.memory_modules(dmi.read(self._sys)),
            "cpu_nominal_mhz": cpu_clock.nominal_mhz(self._sys),
            "disks": [self._disk()],
            "network": [self._network_card(card) for card in sorted((self._sys / "class/net").iterdir())],
            "filesystems": [
                {"place": "/", "size_gb": ROOT_GB, "free_gb": FREE_GB, "free_inode_share": 0.98},
            ],
        }

    def errors(self, bus_id: str) -> dict[str, Any]:
        """Return AER's counters of a card and of the ports above it."""
        return bus.errors_of(bus_id, self._sys)

    def foreign_modules(self) -> list[dict[str, Any]]:
        """Return modules that taint the kernel, as ModuleFacts; NVIDIA's own are not in this tree."""
        return [
            {"name": one.name, "taint": (one / "taint").read_text(encoding="ascii").strip()}
            for one in sorted((self._sys / "module").iterdir())
        ]

    def disk_speed(self) -> str:
        """Return `disk.json`: fio on a file of the rig's disk."""
        file = self._home / "fio"
        with file.open("wb") as made:
            made.truncate(FIO_BYTES)
        words = [f"--filename={file}", f"--size={FIO_BYTES}", f"--runtime={FIO_S}"]
        for way in WAYS:
            words += [f"--name={way}", f"--rw={way}"]
        report = _said(storage.fio, self._paths, words)
        return json.dumps({"directory": "/var/tmp", "bytes": FIO_BYTES, "report": report})  # noqa: S108 - said, not written

    def _disk(self) -> dict[str, Any]:
        name = built_in.DISK_NAME
        block, controller = self._sys / "block" / name, self._sys / "class/nvme" / built_in.CONTROLLER
        return {
            "name": name,
            "model": _text(block / "device/model"),
            "serial": _text(block / "device/serial"),
            "size_gb": round(int(_text(block / "size")) * SECTOR_BYTES / 1e9, 1),
            "state": _text(controller / "state"),
            "smart_log": _said(storage.nvme, self._paths, ["smart-log", "-o", "json", f"/dev/{name}"]),
        }

    def _network_card(self, card: Path) -> dict[str, Any]:
        full = int(self._rig.identity.get("network", {}).get("mbit_per_s", built_in.NETWORK["mbit_per_s"]))
        both: dict[str, int | None] = {"supported_mbit_per_s": full, "partner_mbit_per_s": full}
        return {
            "name": card.name,
            "address": _text(card / "address"),
            "carries_default_route": True,
            **network.link(card, lambda _name: both),
        }


def _text(path: Path) -> str:
    return path.read_text(encoding="ascii").strip()


def _said(program: Any, paths: Paths, words: list[str]) -> str:
    """Run one of the rig's own programs and return what it prints. Raises RuntimeError where it refuses."""
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as trouble:
        status = program(paths, words)
    if status != 0:
        raise RuntimeError(f"{words}: {trouble.getvalue()}")
    return out.getvalue()
