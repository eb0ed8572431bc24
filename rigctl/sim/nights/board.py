"""The bus and the modules as the kernel shows them: written by the simulation, read by the agent's own code."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from rigctl.agent import bus
from rigctl.sim.machine.hardware.rigsim import changes, pcibus
from rigctl.sim.machine.hardware.rigsim.paths import Paths

if TYPE_CHECKING:
    from types import TracebackType

    from rigctl.sim.nights.hardware import Hardware


class Board:
    """One rig's tree, in a folder of its own that is gone afterwards."""

    def __init__(self, rig: Hardware) -> None:
        self._rig = rig
        self._folder = tempfile.TemporaryDirectory(prefix="rigctl-night-")
        home = Path(self._folder.name)
        self._paths = Paths(run=home, kept=home, machine=home)
        self._sys = self._paths.sys

    def __enter__(self) -> Self:
        """Lay the tree out."""
        (self._sys / "module").mkdir(parents=True)
        pcibus.prepare(self._paths, dict(self._rig.given))
        changes.show(self._paths, self._rig.given, self._rig.identity, self._rig.active)
        self.update()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Remove it."""
        self._folder.cleanup()

    def update(self) -> None:
        """Show what has been counted since."""
        here = [card.parts.slot for card in self._rig.present()]
        pcibus.update(self._paths, self._rig.identity, here, self._rig.wiring.port_errors)

    def places(self) -> list[dict[str, Any]]:
        """Return where each card hangs, as PlaceFacts."""
        cards = [self._rig.own(card) for card in self._rig.present()]
        return [{"uuid": one["uuid"], **bus.place(str(one["pci_bus_id"]), self._sys)} for one in cards]

    def errors(self, bus_id: str) -> dict[str, Any]:
        """Return AER's counters of a card and of the ports above it."""
        return bus.errors_of(bus_id, self._sys)

    def numa_nodes(self) -> list[int]:
        """Return the NUMA nodes that are online."""
        return bus.numa_nodes(self._sys)

    def foreign_modules(self) -> list[dict[str, Any]]:
        """Return modules that taint the kernel, as ModuleFacts; NVIDIA's own are not in this tree."""
        return [
            {"name": one.name, "taint": (one / "taint").read_text(encoding="ascii").strip()}
            for one in sorted((self._sys / "module").iterdir())
        ]
