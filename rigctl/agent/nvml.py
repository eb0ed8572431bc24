"""The cards through NVML, as they are now; their identity is in nvml_facts.py.

A value that this card or driver does not expose is None, and its name stands in `missing` with NVML's reason; any
other error is the card's. Which calls a driver branch has differs: a missing symbol is `Function Not Found`, and the
binding raises NVMLLibraryMismatchError, which is no NVMLError, where it wants a newer structure than the library has.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pynvml

from .errors import NvmlUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable

NVML_ERRORS = (pynvml.NVMLError, pynvml.NVMLLibraryMismatchError)
_NOT_EXPOSED = (
    pynvml.NVML_ERROR_NOT_SUPPORTED,
    pynvml.NVML_ERROR_NO_PERMISSION,
    pynvml.NVML_ERROR_FUNCTION_NOT_FOUND,
    pynvml.NVML_ERROR_ARGUMENT_VERSION_MISMATCH,
    pynvml.NVML_ERROR_DEPRECATED,
)
MIB = 1024 * 1024
MAX_LINKS = 18
"""Links that are asked for at most; a card with fewer answers `Invalid Argument` before."""


def words_of(error: Exception) -> str:
    """An NVML error in NVML's own words: pynvml has others for some codes (`Driver/library version mismatch`)."""
    code = getattr(error, "value", None)
    if code is not None:
        try:
            return str(pynvml.nvmlErrorString(code))
        except NVML_ERRORS:  # the library is not there to ask
            return str(error)
    return str(error) or type(error).__name__


def is_fault(error: Exception) -> bool:
    """Whether the error says more than `this card or driver does not expose that`."""
    return isinstance(error, pynvml.NVMLError) and getattr(error, "value", None) not in _NOT_EXPOSED


@dataclass
class Asker:
    """Asks one card; remembers what it does not expose."""

    handle: Any
    missing: dict[str, str] = field(default_factory=dict)
    faults: list[str] | None = None
    """Where faults are noted, for those who want whatever else the card says; None: the first fault is raised."""

    def ask(self, name: str, call: Callable[..., Any], *args: Any) -> Any:
        """One value, or None where it is not exposed. Raises NVMLError for a fault, unless faults are noted."""
        try:
            return call(self.handle, *args)
        except NVML_ERRORS as error:
            self.missing[name] = words_of(error)
            if is_fault(error):
                self.note_fault(name, error)
            return None

    def note_fault(self, name: str, error: Exception) -> None:
        """Note a fault where faults are noted, else raise it."""
        if self.faults is None:
            raise error
        self.faults.append(f"{name}: {words_of(error)}")

    def watts(self, name: str, call: Callable[..., Any]) -> float | None:
        """A power in W; NVML says mW."""
        milliwatts = self.ask(name, call)
        return None if milliwatts is None else milliwatts / 1000


@dataclass(frozen=True)
class Card:
    """One card that NVML can open."""

    handle: Any
    index: int
    slot: int
    uuid: str
    pci_bus_id: str
    slowdown_temp_c: float | None
    memory_max_temp_c: float | None = None
    absent: set[str] = field(default_factory=set)
    """What this card was asked for once and does not expose: not asked for at every sample."""


class Nvml:
    """An open NVML: the cards in PCI bus order, and what went wrong with those that cannot be opened."""

    def __init__(self) -> None:
        """Start NVML and open every card; raises NvmlUnavailable with NVML's own words."""
        try:
            pynvml.nvmlInit()
            count = int(pynvml.nvmlDeviceGetCount())
        except NVML_ERRORS as error:
            raise NvmlUnavailable(words_of(error)) from error
        self.problems: list[str] = []
        opened = [found for index in range(count) if (found := self._open(index)) is not None]
        opened.sort(key=lambda found: found[1].upper())
        self.cards = tuple(self._card(slot, *found) for slot, found in enumerate(opened, start=1))

    def _open(self, index: int) -> tuple[int, str, Any, str] | None:
        try:
            handle = pynvml.nvmlDeviceGetHandleByIndex(index)
            bus_id = text_of(pynvml.nvmlDeviceGetPciInfo(handle).busId)
            return index, bus_id, handle, text_of(pynvml.nvmlDeviceGetUUID(handle))
        except NVML_ERRORS as error:
            self.problems.append(f"NVML index {index}: {words_of(error)}")
            return None

    def _card(self, slot: int, index: int, bus_id: str, handle: Any, uuid: str) -> Card:
        asker = Asker(handle)
        try:
            slowdown = threshold(asker, "slowdown_temp_c", pynvml.NVML_TEMPERATURE_THRESHOLD_SLOWDOWN)
            memory = threshold(asker, "memory_max_temp_c", pynvml.NVML_TEMPERATURE_THRESHOLD_MEM_MAX)
        except NVML_ERRORS as error:
            self.problems.append(f"slot {slot}: {words_of(error)}")
            slowdown = memory = None
        return Card(handle, index, slot, uuid, bus_id, slowdown, memory)

    def close(self) -> None:
        """Shut NVML down."""
        pynvml.nvmlShutdown()


def text_of(value: Any) -> str:
    """A text of NVML, whose binding gives bytes in some versions."""
    return value.decode("ascii", "replace") if isinstance(value, bytes) else str(value)


def threshold(asker: Asker, name: str, which: int) -> float | None:
    """One of the card's own temperature limits, °C; None where it is not exposed. Raises NVMLError."""
    degrees = asker.ask(name, pynvml.nvmlDeviceGetTemperatureThreshold, which)
    if degrees is not None and degrees <= 0:
        asker.missing[name] = f"the card says {degrees} °C, which is no limit"
        return None
    return None if degrees is None else float(degrees)


def sample_card(card: Card) -> dict[str, Any]:
    """One card at this moment, as a GpuSample; a card that fails says so in `error` and in nothing else."""
    named = {"uuid": card.uuid, "slot": card.slot}
    try:
        asker = Asker(card.handle)
        return named | _sample(asker) | _some_cards_only(asker, card.absent)
    except NVML_ERRORS as error:
        return named | {"error": words_of(error)}


def _sample(asker: Asker) -> dict[str, Any]:
    ask = asker.ask
    temperature = ask("temp_c", pynvml.nvmlDeviceGetTemperature, pynvml.NVML_TEMPERATURE_GPU)
    utilisation = ask("util_pct", pynvml.nvmlDeviceGetUtilizationRates)
    return {
        "temp_c": None if temperature is None else float(temperature),
        "power_w": asker.watts("power_w", pynvml.nvmlDeviceGetPowerUsage),
        "limit_w": asker.watts("limit_w", pynvml.nvmlDeviceGetEnforcedPowerLimit),
        "sm_mhz": ask("sm_mhz", pynvml.nvmlDeviceGetClockInfo, pynvml.NVML_CLOCK_SM),
        "mem_mhz": ask("mem_mhz", pynvml.nvmlDeviceGetClockInfo, pynvml.NVML_CLOCK_MEM),
        "util_pct": None if utilisation is None else int(utilisation.gpu),
        "fan_pct": ask("fan_pct", pynvml.nvmlDeviceGetFanSpeed),
        "throttle": _throttle(asker),
        "pcie_gen": ask("pcie_gen", pynvml.nvmlDeviceGetCurrPcieLinkGeneration),
        "pcie_width": ask("pcie_width", pynvml.nvmlDeviceGetCurrPcieLinkWidth),
        "links_active": list(links_active(asker)),
    }


def _some_cards_only(asker: Asker, absent: set[str]) -> dict[str, Any]:
    """Memory temperature and thermal margin, °C, and fan speed, rpm: data-centre cards and newer drivers have them."""
    calls = {
        "memory_temp_c": _memory_temp_c,
        "margin_c": pynvml.nvmlDeviceGetMarginTemperature,
        "fan_rpm": pynvml.nvmlDeviceGetFanSpeedRPM,
    }
    found = {name: asker.ask(name, call) for name, call in calls.items() if name not in absent}
    absent.update(name for name, value in found.items() if value is None)
    return {name: found.get(name) for name in calls}


def _memory_temp_c(handle: Any) -> float:
    """Temperature of the card's memory, °C. Raises NVMLError where the card does not say it."""
    (value,) = pynvml.nvmlDeviceGetFieldValues(handle, [pynvml.NVML_FI_DEV_MEMORY_TEMP])
    if value.nvmlReturn != pynvml.NVML_SUCCESS:
        raise pynvml.NVMLError(value.nvmlReturn)
    return float(value.value.uiVal)


def _throttle(asker: Asker) -> int | None:
    """The mask of throttle reasons; called event reasons since branch 535, and only so some day."""
    mask = asker.ask("throttle", pynvml.nvmlDeviceGetCurrentClocksThrottleReasons)
    if mask is None:
        mask = asker.ask("throttle", pynvml.nvmlDeviceGetCurrentClocksEventReasons)
        if mask is not None:
            del asker.missing["throttle"]
    return None if mask is None else int(mask)


def links_active(asker: Asker) -> tuple[bool, ...]:
    """The state of each NVLink that the card has; empty where it has none."""
    states: list[bool] = []
    for link in range(MAX_LINKS):
        try:
            state = pynvml.nvmlDeviceGetNvLinkState(asker.handle, link)
        except NVML_ERRORS as error:
            past_the_last = getattr(error, "value", None) == pynvml.NVML_ERROR_INVALID_ARGUMENT
            if is_fault(error) and not past_the_last:
                asker.note_fault("links", error)
            if link == 0:
                asker.missing["links"] = words_of(error)
            break
        states.append(state == pynvml.NVML_FEATURE_ENABLED)
    return tuple(states)


def compute_processes(cards: tuple[Card, ...]) -> list[str]:
    """Processes that compute on a card: `PID NAME on slotN`. Raises NVMLError when a card fails."""
    return [f"{pid} {_process_name(pid)} on slot{slot}" for slot, pid in processes_on(cards)]


def processes_on(cards: tuple[Card, ...]) -> list[tuple[int, int]]:
    """Slot and process id of all that computes on a card. Raises NVMLError when a card fails."""
    found: list[tuple[int, int]] = []
    for card in cards:
        asker = Asker(card.handle)
        # Branch 470 has _v2 only; the unsuffixed call insists on the newest.
        processes = asker.ask("processes", pynvml.nvmlDeviceGetComputeRunningProcesses_v3)
        if processes is None:
            processes = asker.ask("processes", pynvml.nvmlDeviceGetComputeRunningProcesses_v2)
        found += [(card.slot, int(process.pid)) for process in processes or ()]
    return found


def _process_name(pid: int) -> str:
    try:
        return text_of(pynvml.nvmlSystemGetProcessName(pid))
    except NVML_ERRORS as error:
        return f"({words_of(error)})"
