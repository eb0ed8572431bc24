"""The plan of a run, as the controller sends it to `start`; checked before anything is started."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from .errors import AgentError
from .wall import asker

if TYPE_CHECKING:
    from collections.abc import Callable

LOAD_KINDS = ("cpu", "gpu", "train", "script")
GPU_BURN_STTS_S = 1
"""gpu-burn always waits so long after it told its children to end (`-stts`), seconds."""
OVERRUN_S = {"gpu": GPU_BURN_STTS_S + 60, "cpu": 30, "train": 0, "script": 0}
"""A load that still runs so long after its time is killed, seconds; the time of a training or a script is its limit."""
FIRST_SAMPLE_S = 30
"""Before the first load the guard waits at most so long for the first valid sample, seconds: NVML's start takes
seconds per card where no persistence daemon holds the driver."""
FINISH_S = 30
"""Last sample, last kernel messages and writing everything out take at most so long, seconds."""


PYTHONS = ("system", "torch")
"""What runs a script: the Python that runs the agent, or the one of the environment that holds PyTorch."""
_SCRIPT_NAME = re.compile(r"[a-z][a-z0-9_]{0,40}")


@dataclass(frozen=True)
class Script:
    """A program that the agent carries: it takes `--arguments JSON --out FILE` and writes one JSON object there."""

    name: str
    """`scripts/NAME.py` in the agent; its readings are `STEP.json`, what it prints `STEP.log`."""
    python: str
    arguments: dict[str, Any]
    needs_cards: bool
    """Whether it puts cards to work: then none is started where no card can be watched."""
    switches: bool = False
    """Whether it switches cards on and off: then their temperatures jump, and none is carried on into the future."""


@dataclass(frozen=True)
class Step:
    """One step of a plan."""

    name: str
    seconds: float
    loads: tuple[str, ...]
    training: dict[str, Any] | None = None
    script: Script | None = None
    only_slot: int | None = None
    """gpu-burn loads this card only, by slot; None: all of them."""

    def limit_s(self, kind: str) -> float:
        """Longest time that a load of this step may run, seconds."""
        return self.seconds + OVERRUN_S[kind]

    @property
    def longest_s(self) -> float:
        """Longest time that the step may take, seconds."""
        return max((self.limit_s(kind) for kind in self.loads), default=self.seconds)


@dataclass(frozen=True)
class Plan:
    """What to run, how fast to sample, and when the guard stops."""

    run_id: str
    sample_hz: float
    controller_lost_s: float
    max_gpu_temp_c: float
    stale_sample_s: float
    expected_gpus: tuple[str, ...]
    wall_meter: dict[str, Any] | None
    gpu_burn_dir: str
    torch_venv: str
    steps: tuple[Step, ...]
    history_max_gpu_temp_c: dict[str, float] = field(default_factory=dict)
    """By UUID: what a card may reach by the rig's own history, °C."""
    max_gpu_memory_temp_c: float | None = None
    max_cpu_temp_c: float | None = None
    ramp_s: float = 0.0
    """A GPU burn's power limit rises for so long, seconds; 0: it begins at its own."""
    asked_by: str = ""
    """Who asked for the run: `user@host` of the controller."""
    evict_users: bool = False
    """Whether who uses the rig is asked to leave it, and made to."""
    ignore_lock: bool = False
    """Whether another run that is under way is stopped for this one, and an upgrade's hold on the rig ignored."""
    upgrade: str = ""
    """The upgrade that the run is a part of: its own hold is no other's."""
    detached: bool = False
    """Whether the run goes on without a word from the controller: then the unit's run-time limit is all that bounds it
    from outside."""

    @property
    def longest_s(self) -> float:
        """Longest time that the whole plan may take, seconds: the unit's RuntimeMaxSec."""
        return FIRST_SAMPLE_S + sum(step.longest_s + 2 for step in self.steps) + FINISH_S


def parse_plan(text: str | bytes) -> Plan:
    """Read a plan; AgentError names what is wrong with it."""
    try:
        raw = json.loads(text)
        return Plan(
            run_id=str(raw["run_id"]),
            sample_hz=_positive(raw, "sample_hz"),
            controller_lost_s=_positive(raw, "controller_lost_s"),
            max_gpu_temp_c=_positive(raw, "max_gpu_temp_c"),
            stale_sample_s=_positive(raw, "stale_sample_s"),
            expected_gpus=tuple(map(str, raw["expected_gpus"])),
            wall_meter=_wall_meter(raw.get("wall_meter")),
            gpu_burn_dir=str(raw["gpu_burn_dir"]),
            torch_venv=str(raw["torch_venv"]),
            steps=tuple(_step(step) for step in raw["steps"]),
            history_max_gpu_temp_c={str(uuid): float(c) for uuid, c in raw.get("history_max_gpu_temp_c", {}).items()},
            max_gpu_memory_temp_c=_positive_or_none(raw, "max_gpu_memory_temp_c"),
            max_cpu_temp_c=_positive_or_none(raw, "max_cpu_temp_c"),
            ramp_s=_number({"ramp_s": 0} | raw, "ramp_s", lambda found: found >= 0),
            asked_by=str(raw.get("asked_by", "")),
            evict_users=raw.get("evict_users") is True,
            ignore_lock=raw.get("ignore_lock") is True,
            upgrade=str(raw.get("upgrade", "")),
            detached=raw.get("detached") is True,
        )
    except (KeyError, TypeError, ValueError) as error:
        told = f"no {error}" if isinstance(error, KeyError) else str(error)
        raise AgentError(
            f"the plan cannot be read: {told}", "controller and agent are of different versions?"
        ) from error


def _positive(raw: dict[str, Any], key: str) -> float:
    return _number(raw, key, lambda found: found > 0)


def _positive_or_none(raw: dict[str, Any], key: str) -> float | None:
    return None if raw.get(key) is None else _positive(raw, key)


def _number(raw: dict[str, Any], key: str, allowed: Callable[[float], bool]) -> float:
    value = float(raw[key])
    if not allowed(value):
        raise ValueError(f"{key} is {value}")
    return value


def _wall_meter(raw: dict[str, Any] | None) -> dict[str, Any] | None:
    if raw is not None:
        asker(raw)  # an unknown form, or one without what it needs, is refused before anything runs
    return raw


def _step(raw: dict[str, Any]) -> Step:
    loads = tuple(map(str, raw["loads"]))
    unknown = [kind for kind in loads if kind not in LOAD_KINDS]
    if unknown:
        raise ValueError(f"step {raw['name']!r} has unknown loads {unknown}")
    if "train" in loads and not isinstance(raw.get("training"), dict):
        raise ValueError(f"step {raw['name']!r} has no training")
    seconds = _number(raw, "seconds", lambda found: found >= 0)
    script = _script(raw["script"]) if "script" in loads else None
    slot = raw.get("only_slot")
    if slot is not None and (not isinstance(slot, int) or slot < 1):
        raise ValueError(f"step {raw['name']!r} names slot {slot!r}")
    return Step(str(raw["name"]), seconds, loads, raw.get("training"), script, slot)


def _script(raw: dict[str, Any]) -> Script:
    name, python = str(raw["name"]), str(raw["python"])
    if not _SCRIPT_NAME.fullmatch(name):
        raise ValueError(f"script is {name!r}, which names no file of the agent")
    if python not in PYTHONS:
        raise ValueError(f"script {name!r} wants Python {python!r}, known are {', '.join(PYTHONS)}")
    switches = raw.get("switches") is True
    return Script(name, python, dict(raw["arguments"]), bool(raw["needs_cards"]), switches)
