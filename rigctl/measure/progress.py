"""What a person watching a run sees of each rig; written by the rig's thread, read by the live table."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rigctl.model.reading import Sample


@dataclass(frozen=True)
class GpuNow:
    """One card at this moment; None where it is not known."""

    slot: int
    temp_c: float | None = None
    power_w: float | None = None
    gflops: float | None = None


@dataclass(frozen=True)
class RigNow:
    """One rig at this moment."""

    name: str
    step: str = "waiting"
    step_started: float = field(default_factory=time.monotonic)
    step_seconds: float | None = None
    """How long the step is expected to take, seconds."""
    gpus: tuple[GpuNow, ...] = ()
    wall_power_w: float | None = None
    note: str = ""
    done: bool = False

    @property
    def elapsed_s(self) -> float:
        """Seconds since the step began."""
        return time.monotonic() - self.step_started


class Progress:
    """The present state of every rig of a run; safe for many threads."""

    def __init__(self, names: Iterable[str]) -> None:
        self._lock = threading.Lock()
        self._rigs = {name: RigNow(name) for name in names}

    def snapshot(self) -> tuple[RigNow, ...]:
        """Return every rig as it is now, in the order in which they were named."""
        with self._lock:
            return tuple(self._rigs.values())

    def step(self, name: str, step: str, seconds: float | None = None) -> None:
        """Say that a rig is now at `step`, expected to take `seconds`."""
        with self._lock:
            now = self._rigs[name]
            if now.step == step:
                return
            self._rigs[name] = replace(now, step=step, step_started=time.monotonic(), step_seconds=seconds)

    def note(self, name: str, text: str) -> None:
        """Put a remark beside a rig: `reconnecting`, for example; empty to take it away."""
        with self._lock:
            self._rigs[name] = replace(self._rigs[name], note=text)

    def sample(self, name: str, sample: Sample, gflops: dict[str, float]) -> None:
        """Show a rig's newest sample, with Gflop/s by card UUID where a burn reports it."""
        gpus = tuple(GpuNow(gpu.slot, gpu.temp_c, gpu.power_w, gflops.get(gpu.uuid)) for gpu in sample.gpus)
        with self._lock:
            self._rigs[name] = replace(self._rigs[name], gpus=gpus, wall_power_w=sample.wall_power_w)

    def done(self, name: str, step: str) -> None:
        """Say that a rig's measuring has ended."""
        with self._lock:
            now = replace(self._rigs[name], step=step, step_started=time.monotonic(), step_seconds=None, done=True)
            self._rigs[name] = now
