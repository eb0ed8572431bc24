"""What a rig answers to the suite's own questions: nvidia-smi's words, packages, files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from testinfra.backend.base import BaseBackend
from testinfra.host import Host

from rigctl.sim.nights import shown
from rigctl.sim.nights.facts import driver_of, torch_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from testinfra.backend.base import CommandResult

    from rigctl.model.spec import RigSpec
    from rigctl.sim.machine.hardware.rigsim.physics import Card
    from rigctl.sim.nights.hardware import Hardware

WORDS = {0: "X", 10: "PIX", 20: "PXB", 30: "PHB", 40: "NODE", 50: "SYS"}
"""nvidia-smi's words for NVML's levels of topology."""
ALL_DOWN = "NVML: Unable to retrieve NVLink information as all links are inActive"


class Answers(BaseBackend):  # type: ignore[misc] # testinfra carries no types
    """Answers by what a command contains; whatever else is asked succeeds and says nothing."""

    NAME = "rigctl"

    def __init__(self, name: str, known: Mapping[str, str]) -> None:
        super().__init__(name)
        self._known = dict(known)
        self._encoding = "utf-8"

    def run(self, command: str, *args: str, **_kwargs: Any) -> CommandResult:
        """Answer one command."""
        line = self.get_command(command, *args)
        out = next((text for word, text in self._known.items() if word in line), "")
        return self.result(0, line.encode(), out.encode(), b"")


def host_of(rig: Hardware, spec: RigSpec) -> Host:
    """Return testinfra's host of the rig as it is now."""
    version = driver_of(spec)
    branch = spec.software.driver_branch
    known = {
        "dpkg-query": f"libnvidia-compute-{branch}\t{version}-0ubuntu0.22.04.1\tinstalled\n",
        "cat -- /sys/module/nvidia/version": f"{version}\n",
        "m.version(": f"{torch_of(spec)}\n",
        "topo -m": matrix(rig),
        "nvlink -s": status(rig),
        "uname -s": "Linux\n",
    }
    backend = Answers(str(rig.identity["rig"]), known)
    host = Host(backend)
    backend.set_host(host)
    return host


def matrix(rig: Hardware) -> str:
    """Return the cards of `nvidia-smi topo -m`."""
    cards = rig.present()
    names = [f"GPU{index}" for index in range(len(cards))]
    lines = ["\t" + "\t".join([*names, "CPU Affinity", "NUMA Affinity"])]
    for name, card in zip(names, cards, strict=True):
        cells = [" X " if other is card else _between(rig, card, other) for other in cards]
        lines.append("\t".join([name, *cells, f"0-{rig.identity['cpu']['threads'] - 1}", "", "N/A"]))
    return "\n".join(lines) + "\n\nLegend:\n\n  X    = Self\n  NV#  = Connection traversing a bonded set of # NVLinks\n"


def _between(rig: Hardware, card: Card, other: Card) -> str:
    bus_id, switched = str(rig.own(other)["pci_bus_id"]), bool(rig.identity["links"].get("switches"))
    up = [link for link in shown.links(rig, card) if link["active"]]
    count = sum(switched or link["remote_pci_bus_id"] == bus_id for link in up)
    return f"NV{count}" if count else WORDS[rig.identity["topology"]["common_ancestor"]]


def status(rig: Hardware) -> str:
    """Return `nvidia-smi nvlink -s`."""
    lines = []
    for index, card in enumerate(rig.present()):
        lines.append(f"GPU {index}: {rig.common(card)['name']} (UUID: {rig.own(card)['uuid']})")
        known = shown.links(rig, card)
        if not any(link["active"] for link in known):
            lines.append(ALL_DOWN)
            continue
        for link in known:
            speed = f"{link['speed_gb_per_s']:.5g} GB/s" if link["active"] else "<inactive>"
            lines.append(f"\t Link {link['link']}: {speed}")
    return "\n".join(lines) + "\n"
