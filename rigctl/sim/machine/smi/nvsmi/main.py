"""The command line of `nvidia-smi`: exit status as NVML's codes, messages on stdout as the real one's."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from . import details, links, query, sections, settings, table
from .card import Card, lost_bus_id
from .nvml import DRIVER_NOT_LOADED, GPU_IS_LOST, LIBRARY_NOT_FOUND, MISMATCH, Nvml, NvmlError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

NO_DRIVER = (
    "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. "
    "Make sure that the latest NVIDIA driver is installed and running.\n"
)
NO_LIBRARY = (
    "NVIDIA-SMI couldn't find libnvidia-ml.so library in your system. "
    "Please make sure that the NVIDIA Display Driver is properly installed and present in your system.\n"
    "Please also try adding directory that contains libnvidia-ml.so to your system PATH.\n"
)
INVALID = "Invalid combination of input arguments. Please run 'nvidia-smi -h' for help.\n"
INVALID_STATUS, NOT_FOUND_STATUS, UNKNOWN_STATUS = 2, 6, 255
LIBRARY_VERSION_FROM = 535
"""From this branch on the mismatch message has a second line with the library's version."""
HELP = """NVIDIA System Management Interface (simulated)

nvidia-smi [-i ID] [-l SEC] [-L] [-q [-x] [-d LIST]] [-pl W] [-pm 0|1]
           [--query-gpu=FIELDS|--query-compute-apps=FIELDS --format=csv[,noheader][,nounits]]
nvidia-smi topo -m | nvlink -s [-i ID]
"""


@dataclass
class Asked:
    """The options of one call."""

    action: str = "table"
    ids: list[str] = field(default_factory=list)
    loop_s: float | None = None
    sections: list[str] = field(default_factory=list)
    fields: list[str] = field(default_factory=list)
    formats: set[str] = field(default_factory=set)
    value: float = 0.0


class UsageError(Exception):
    """Arguments that nvidia-smi refuses; the text is what it says."""


def main(arguments: Sequence[str]) -> int:
    """Run one call; returns the exit status."""
    try:
        text, status, loop_s = _call(arguments)
    except UsageError as refused:
        return _say(str(refused), INVALID_STATUS)
    except NvmlError as failed:
        return _say(*_failure(failed))
    while loop_s is not None and status == 0:
        _say(text, status)
        time.sleep(loop_s)
        try:
            text, status, _ = _call(arguments)
        except NvmlError as failed:
            return _say(*_failure(failed))
    return _say(text, status)


def _say(text: str, status: int) -> int:
    sys.stdout.write(text)
    sys.stdout.flush()
    return status


def _call(arguments: Sequence[str]) -> tuple[str, int, float | None]:
    # The real one looks for the driver before it looks at its arguments.
    nvml = Nvml()
    nvml.call("nvmlInit_v2")
    try:
        asked = parse(list(arguments))
        text, status = _answer(nvml, asked)
        return text, status, asked.loop_s
    finally:
        nvml.call("nvmlShutdown")


def _failure(failed: NvmlError) -> tuple[str, int]:
    if failed.code == DRIVER_NOT_LOADED:
        return NO_DRIVER, failed.code
    if failed.code == LIBRARY_NOT_FOUND:
        return NO_LIBRARY, failed.code
    status = min(UNKNOWN_STATUS, failed.code)
    text = f"Failed to initialize NVML: {failed}\n"
    if failed.code == MISMATCH:
        version = Nvml().text("nvmlSystemGetNVMLVersion").partition(".")[2]
        if table.branch_of(version) >= LIBRARY_VERSION_FROM:
            text += f"NVML library version: {'.'.join(version.split('.')[:2])}\n"
    return text, status


def parse(arguments: list[str]) -> Asked:
    """Read the arguments; UsageError as the real one refuses them."""
    asked = Asked()
    words: list[str] = []
    for argument in arguments:  # `--id=0` and `--id 0` are the same
        key, equals, value = argument.partition("=")
        words += [key, value] if equals and key.startswith("--") else [argument]
    if words[:1] in (["topo"], ["nvlink"]):
        asked.action = words.pop(0)
    while words:
        _take(words, asked)
    if asked.action in {"query-gpu", "query-compute-apps"} and "csv" not in asked.formats:
        raise UsageError(INVALID)
    return asked


def _take(words: list[str], asked: Asked) -> None:
    word = words.pop(0)
    flags = {"-L": "list", "--list-gpus": "list", "-h": "help", "--help": "help", "-x": "xml", "--xml-format": "xml"}
    flags |= {"-m": "topo", "--matrix": "topo", "-s": "nvlink", "--status": "nvlink"}
    if word in flags:
        asked.action = flags[word]
    elif word in {"-q", "--query"}:
        asked.action = "xml" if asked.action == "xml" else "query"
    elif word in {"-i", "--id"}:
        asked.ids = _value(words).split(",")
    elif word in {"-l", "--loop"}:
        asked.loop_s = float(words.pop(0)) if words and words[0].isdigit() else 5.0
    elif word in {"-d", "--display"}:
        asked.sections = _value(words).upper().split(",")
    elif word in {"--query-gpu", "--query-compute-apps"}:
        asked.action, asked.fields = word[2:], _value(words).split(",")
    elif word == "--format":
        asked.formats = set(_value(words).split(","))
    elif word in {"-pl", "--power-limit", "-pm", "--persistence-mode"}:
        asked.action, asked.value = ("pl" if word in {"-pl", "--power-limit"} else "pm"), _number(_value(words))
    else:
        raise UsageError(INVALID)


def _value(words: list[str]) -> str:
    if not words:
        raise UsageError(INVALID)
    return words.pop(0)


def _number(text: str) -> float:
    try:
        return float({"ENABLED": "1", "DISABLED": "0"}.get(text.upper(), text))
    except ValueError:
        raise UsageError(INVALID) from None


def _answer(nvml: Nvml, asked: Asked) -> tuple[str, int]:
    if asked.action == "help":
        return HELP, 0
    count = nvml.number("nvmlDeviceGetCount_v2")
    if count == 0:
        return "No devices were found\n", NOT_FOUND_STATUS
    cards: list[Card] = []
    for index in range(count):
        try:
            cards.append(Card(nvml, index))
        except NvmlError as failed:
            return _no_handle(nvml, index, failed)
    chosen = [card for card in cards if not asked.ids or {str(card.index), card.uuid, card.bus_id} & set(asked.ids)]
    if not chosen:
        return "No devices were found\n", NOT_FOUND_STATUS
    return _print(nvml, asked, cards, chosen)


def _print(nvml: Nvml, asked: Asked, cards: list[Card], chosen: list[Card]) -> tuple[str, int]:
    version = nvml.text("nvmlSystemGetDriverVersion")
    number = nvml.number("nvmlSystemGetCudaDriverVersion_v2")
    cuda, branch = f"{number // 1000}.{number % 1000 // 10}", table.branch_of(version)
    actions: dict[str, Callable[[], tuple[str, int]]] = {
        "table": lambda: (table.render(chosen, version, cuda), 0),
        "list": lambda: ("".join(f"GPU {one.index}: {one.name} (UUID: {one.uuid})\n" for one in chosen), 0),
        "topo": lambda: (links.matrix(cards, branch), 0),
        "nvlink": lambda: (links.status(chosen, branch), 0),
        "xml": lambda: (sections.render(chosen, version, cuda, branch), 0),
        "query": lambda: _details(chosen, version, cuda, branch, asked.sections),
        "pl": lambda: settings.set_power_limit(chosen, asked.value),
        "pm": lambda: settings.set_persistence(chosen, int(asked.value)),
        "query-gpu": lambda: _query(chosen, asked, query.System(version, len(cards)), branch),
        "query-compute-apps": lambda: _query_processes(chosen, asked),
    }
    return actions[asked.action]()


def _query_processes(cards: list[Card], asked: Asked) -> tuple[str, int]:
    try:
        return query.render_processes(cards, asked.fields, asked.formats), 0
    except KeyError as unknown:
        return _no_field(unknown.args[0])


def _details(cards: list[Card], version: str, cuda: str, branch: int, wanted: list[str]) -> tuple[str, int]:
    unknown = [name for name in wanted if name not in details.SECTIONS]
    if unknown:
        return f"Invalid display option: {unknown[0]}\n", INVALID_STATUS
    return details.render(cards, version, cuda, branch, wanted), 0


def _query(cards: list[Card], asked: Asked, system: query.System, branch: int) -> tuple[str, int]:
    known = query.columns(system, branch)
    unknown = [name for name in asked.fields if name not in known]
    if unknown:  # one unknown field fails the whole query
        return _no_field(unknown[0])
    return query.render(cards, [known[name] for name in asked.fields], asked.formats), 0


def _no_field(name: str) -> tuple[str, int]:
    return f'Field "{name}" is not a valid field to query.\n\n', INVALID_STATUS


def _no_handle(nvml: Nvml, index: int, failed: NvmlError) -> tuple[str, int]:
    reason = "GPU is lost.  Reboot the system to recover this GPU" if failed.code == GPU_IS_LOST else str(failed)
    return f"Unable to determine the device handle for GPU {lost_bus_id(nvml, index)}: {reason}\n", failed.code
