"""One sample: all sensors of the rig at one moment, as the controller's `Sample` reads it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from . import nvml
from .clock import boot_id, stamp
from .cpu import CpuSensors, fans_rpm
from .errors import NvmlUnavailable
from .people import command_of, unit_of, user_of
from .seeing import Thresholds
from .surroundings import Surroundings

if TYPE_CHECKING:
    from .wall import WallMeter


class Sensors:
    """Cards, processor and wall meter. NVML calls can hang: read in a thread that nothing waits for."""

    def __init__(self, expected_gpus: tuple[str, ...], wall: WallMeter | None) -> None:
        self._expected = expected_gpus
        self._wall = wall
        self._cpu = CpuSensors()
        self._surroundings = Surroundings()
        self._boot_id = boot_id()
        self._nvml: nvml.Nvml | None = None

    def read(self, seq: int, step: str) -> dict[str, Any]:
        """One sample now."""
        sample: dict[str, Any] = {"seq": seq, **stamp(), "boot_id": self._boot_id, "step": step}
        sample["gpus"] = self._cards()
        sample.update(self._cpu.read(time.monotonic()))
        sample["fans_rpm"] = fans_rpm()
        sample.update(self._surroundings.read())
        sample["wall_power_w"], sample["wall_error"] = self._wall.power() if self._wall else (None, None)
        return sample

    def thresholds(self) -> dict[str, Thresholds]:
        """What each card says of its own limits, by UUID."""
        cards = self._nvml.cards if self._nvml else ()
        return {card.uuid: Thresholds(card.slowdown_temp_c, card.memory_max_temp_c) for card in cards}

    def others_work(self) -> dict[int, str]:
        """Processes on the cards that are not in this unit: words by process id.

        A card that fails lists none; that it fails, its samples say. What is no process of this rig any more (or of
        another process namespace) is left out: there is nobody to name.
        """
        try:
            running = nvml.processes_on(self._nvml.cards) if self._nvml else []
        except nvml.NVML_ERRORS:
            return {}
        own, found = unit_of(), dict[int, str]()
        for slot, pid in running:
            user = user_of(pid)
            if user is not None and (own is None or unit_of(pid) != own):
                found[pid] = f"{pid} {command_of(pid)} ({user}) on slot{slot}"
        return found

    def _cards(self) -> list[dict[str, Any]]:
        try:
            self._nvml = self._nvml or nvml.Nvml()
        except NvmlUnavailable as error:
            return [self._absent(uuid, error.message) for uuid in self._expected]
        samples = [nvml.sample_card(card) for card in self._nvml.cards]
        present = {sample["uuid"] for sample in samples}
        why = "; ".join(["NVML does not list this card", *self._nvml.problems])
        return samples + [self._absent(uuid, why) for uuid in self._expected if uuid not in present]

    def _absent(self, uuid: str, why: str) -> dict[str, Any]:
        # The plan names cards in slot order.
        return {"uuid": uuid, "slot": self._expected.index(uuid) + 1, "error": why}
