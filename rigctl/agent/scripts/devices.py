"""What the other programs here share: the devices that were named, and how their answers are written.

A program names its device in its arguments: `{"device": "cuda", "cards": N}`, cards in slot order, or
`{"device": "cpu", "threads": N}`. That device is used or none at all.
"""

from __future__ import annotations

import argparse
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

# Cards counted in PCI bus order, as slots are; must be set before CUDA starts.
os.environ.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")

TORCH_MISSING = ""
try:
    import torch
except (ImportError, OSError) as broken:  # OSError: a shared library of the wheel that does not load
    TORCH_MISSING = str(broken)


class ScriptError(Exception):
    """Nothing could be measured; carries the remedy."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


@dataclass(frozen=True)
class Opened:
    """One device that was named and is there."""

    slot: int | None
    """From 1; None for the processor."""
    device: Any
    name: str
    uuid: str | None
    """None where this torch does not tell it (before 2.3)."""

    @property
    def identity(self) -> dict[str, Any]:
        """What the answer says of it."""
        return {"slot": self.slot, "name": self.name, "uuid": self.uuid}

    def finish(self) -> None:
        """Wait until everything that was begun on it is done."""
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)


def torch_version() -> str:
    """Version of torch, as text."""
    return "" if TORCH_MISSING else str(torch.__version__)


def open_devices(arguments: dict[str, Any]) -> list[Opened]:
    """The devices that the arguments name; ScriptError when one of them is not there."""
    if TORCH_MISSING:
        raise ScriptError(f"torch cannot be imported: {TORCH_MISSING}", "rigctl provision RIG --tags pytorch")
    wanted = arguments["device"]
    if wanted == "cpu":
        if arguments.get("threads"):
            torch.set_num_threads(int(arguments["threads"]))
        return [Opened(None, torch.device("cpu"), cpu_name(), None)]
    if wanted != "cuda":
        raise ScriptError(f"unknown device {wanted!r}", "set compute.device to cuda or cpu in the spec")
    if not torch.cuda.is_available():
        hint = "check the driver (nvidia-smi) and that pytorch_build is a CUDA build that this driver can run"
        raise ScriptError(f"the workload asks for device cuda, and torch {torch.__version__} sees none", hint)
    count, asked = int(torch.cuda.device_count()), int(arguments["cards"])
    if count < asked:
        raise ScriptError(f"torch sees {count} of {asked} cards", "see topology.gpu_count; CUDA_VISIBLE_DEVICES?")
    return [_card(index) for index in range(asked)]


def _card(index: int) -> Opened:
    card = torch.cuda.get_device_properties(index)
    uuid = getattr(card, "uuid", None)  # torch 2.3 and later
    return Opened(index + 1, torch.device("cuda", index), str(card.name), f"GPU-{uuid}" if uuid else None)


def cpu_name(cpuinfo: Path = Path("/proc/cpuinfo")) -> str:
    """The processor's name as Linux says it."""
    try:
        lines = cpuinfo.read_text(encoding="utf-8").splitlines()
    except OSError:
        return "unknown"
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else "unknown"


def write(path: Path, answer: dict[str, Any]) -> None:
    """Write the answer whole, or not at all."""
    part = path.with_name(path.name + ".part")
    part.write_text(json.dumps(answer) + "\n", encoding="utf-8")
    part.replace(path)


def told(measure: Callable[[dict[str, Any]], dict[str, Any]], arguments: dict[str, Any]) -> dict[str, Any]:
    """What `measure` says, or the error with its remedy in the same form."""
    try:
        return measure(arguments)
    except ScriptError as error:
        return {"error": str(error), "hint": error.hint}
    except KeyError as error:
        return {"error": f"the arguments have no {error}", "hint": "controller and agent are of different versions?"}
    except RuntimeError as error:  # torch: out of memory, a kernel that this card cannot run, a card that is gone
        lines = str(error).strip().splitlines() or [type(error).__name__]
        return {"error": f"torch: {lines[0]}", "hint": "see kernel.xid; is somebody else's work on the cards?"}


def run(measure: Callable[[dict[str, Any]], dict[str, Any]], about: str) -> int:
    """Parse, measure, write; exit status 0, or 1 with an error in FILE."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--arguments", required=True, type=json.loads, help="the workload as JSON")
    parser.add_argument("--out", required=True, type=Path, help="where to write what was measured")
    asked = parser.parse_args()
    answer = told(measure, asked.arguments)
    write(asked.out, answer)
    if "error" in answer:
        say(f"error: {answer['error']}\nhint: {answer['hint']}")
        return 1
    return 0


def say(text: str) -> None:
    """One line of the step's log."""
    print(text, flush=True)  # noqa: T201 - the step's log
