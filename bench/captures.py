"""Outputs of real machines, judged: gpu-burn's logs and kernel logs, where this checkout has them beside it.

They are no part of the project; `RIGCTL_CORPUS` names their folder. What is true of each machine is what its source
says.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bench.early_stop import SPEC
from rigctl.checks import burn, kernel
from rigctl.model.reading import DriverFacts, Facts, GpuFacts, KernelMessage, Readings, RigEvent
from rigctl.model.spec import ProfileSpec
from rigctl.model.verdict import Verdict, worst
from rigctl.parse import gpu_burn

if TYPE_CHECKING:
    from collections.abc import Iterator

FOLDER = Path(os.environ.get("RIGCTL_CORPUS") or Path(__file__).parents[2] / "shared" / "corpus")
BURNS = {
    "k80x2-doubles.log": "pass",
    "rtx-a400-healthy.log": "pass",
    "rtx8000-titanrtx-healthy-cr.log": "pass",
    "v100x8-healthy-cr.log": "pass",
    "t4-faulty.log": "fail",
    "a100-mps-not-ready.log": "error",
}
"""File → what a burn like this is: a good card, a bad one, or nothing that was measured."""
KERNELS = {
    "dmesg-xid79-no-timestamps-940mx.log": "fail",
    "xid62-45-pair.log": "fail",
    "xid74-nvlink-fatal.log": "fail",
    "xid79-and-nvswitch-sxid.log": "fail",
    "xid94-64-ecc.log": "fail",
    "xid119-gsp-timeout.log": "fail",
    "ib-link-flap-syslog.log": "pass",
    "kmsg-raw-no-xid.log": "pass",
}
"""The same of kernel logs: a card that failed, or none that did."""
BOOT = "00000000-0000-4000-8000-000000000000"
BURN_S = 60.0
_ASKED = re.compile(r"Burning for (\d+) seconds")


@dataclass(frozen=True)
class Judged:
    """One capture."""

    file: str
    true: str
    said: str

    @property
    def right(self) -> bool:
        """Whether we said what is true."""
        return self.said == self.true


def judged() -> list[Judged]:
    """Judge every capture that is there."""
    return [*_burns(), *_kernels()]


def _texts(folder: str, known: dict[str, str]) -> Iterator[tuple[str, str, str]]:
    for name, true in known.items():
        path = FOLDER / folder / name
        if path.exists():
            with path.open(encoding="utf-8", newline="") as file:
                yield name, true, file.read()


def _burns() -> Iterator[Judged]:
    for name, true, text in _texts("gpu-burn", BURNS):
        asked = _ASKED.search(text)
        seconds = float(asked[1]) if asked else BURN_S
        log = gpu_burn.parse(text)
        gpus = tuple(
            GpuFacts(index=card.index, slot=card.index + 1, uuid=card.uuid, pci_bus_id=f"{card.index}", name=card.name)
            for card in log.cards
        )
        said = {"load": "gpu", "pid": 1, "exit_status": 0, "seconds": seconds}
        events = tuple(
            RigEvent(seq=seq, t_mono_s=t, t_wall_s=t, event=event, step="gpu_burn", detail=said)
            for seq, (event, t) in enumerate((("load_started", 0.0), ("load_exited", seconds)))
        )
        readings = _readings(gpus, events, {"gpu_burn.log": text})
        profile = ProfileSpec(
            idle_seconds=0, cpu_burn_seconds=0, gpu_burn_seconds=seconds, all_burn_seconds=0, train=False, sample_hz=1
        )
        parts = SPEC.parts.model_copy(update={"gpu_count": max(1, len(gpus))})
        spec = SPEC.model_copy(update={"parts": parts})
        yield Judged(name, true, _word([one.verdict for one in burn.oracle(spec, readings, profile)]))


def _kernels() -> Iterator[Judged]:
    for name, true, text in _texts("kernel-log", KERNELS):
        messages = tuple(KernelMessage(t_wall_s=0, message=line) for line in text.splitlines() if line.strip())
        readings = _readings((), (), {}, messages)
        yield Judged(name, true, _word([one.verdict for one in kernel.no_xid(readings)]))


def _readings(
    gpus: tuple[GpuFacts, ...],
    events: tuple[RigEvent, ...],
    logs: dict[str, str],
    messages: tuple[KernelMessage, ...] = (),
) -> Readings:
    facts = Facts(boot_id=BOOT, hostname="captured", driver=DriverFacts(), gpus=gpus)
    return Readings(
        rig="captured",
        facts=facts,
        events=events,
        logs=logs,
        kernel=messages,
        kernel_read=True,
        boot_id_after=BOOT,
    )


def _word(verdicts: list[Verdict]) -> str:
    return worst(verdicts).value
