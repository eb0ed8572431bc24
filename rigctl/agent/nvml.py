"""The cards through NVML: the only importer of pynvml.

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
_LINK_SPEED_FIELDS = tuple(getattr(pynvml, f"NVML_FI_DEV_NVLINK_SPEED_MBPS_L{link}") for link in range(12))


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
            bus_id = _text(pynvml.nvmlDeviceGetPciInfo(handle).busId)
            return index, bus_id, handle, _text(pynvml.nvmlDeviceGetUUID(handle))
        except NVML_ERRORS as error:
            self.problems.append(f"NVML index {index}: {words_of(error)}")
            return None

    def _card(self, slot: int, index: int, bus_id: str, handle: Any, uuid: str) -> Card:
        try:
            slowdown = _threshold(Asker(handle), "slowdown_temp_c", pynvml.NVML_TEMPERATURE_THRESHOLD_SLOWDOWN)
        except NVML_ERRORS as error:
            self.problems.append(f"slot {slot}: {words_of(error)}")
            slowdown = None
        return Card(handle, index, slot, uuid, bus_id, slowdown)

    def close(self) -> None:
        """Shut NVML down."""
        pynvml.nvmlShutdown()


def _text(value: Any) -> str:
    return value.decode("ascii", "replace") if isinstance(value, bytes) else str(value)


def _threshold(asker: Asker, name: str, which: int) -> float | None:
    degrees = asker.ask(name, pynvml.nvmlDeviceGetTemperatureThreshold, which)
    return None if degrees is None else float(degrees)


def sample_card(card: Card) -> dict[str, Any]:
    """One card at this moment, as a GpuSample; a card that fails says so in `error` and in nothing else."""
    named = {"uuid": card.uuid, "slot": card.slot}
    try:
        return named | _sample(Asker(card.handle))
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
        "links_active": list(_links_active(asker)),
    }


def _throttle(asker: Asker) -> int | None:
    """The mask of throttle reasons; called event reasons since branch 535, and only so some day."""
    mask = asker.ask("throttle", pynvml.nvmlDeviceGetCurrentClocksThrottleReasons)
    if mask is None:
        mask = asker.ask("throttle", pynvml.nvmlDeviceGetCurrentClocksEventReasons)
        if mask is not None:
            del asker.missing["throttle"]
    return None if mask is None else int(mask)


def _links_active(asker: Asker) -> tuple[bool, ...]:
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


def card_facts(card: Card, faults: list[str]) -> dict[str, Any]:
    """Identity of one card, as GpuFacts; faults are noted, so that a failing card is still listed."""
    asker = Asker(card.handle, faults=faults)
    ask = asker.ask
    memory = ask("memory_mib", pynvml.nvmlDeviceGetMemoryInfo)
    capability = ask("compute_capability", pynvml.nvmlDeviceGetCudaComputeCapability)
    power_range = ask("power_min_w", pynvml.nvmlDeviceGetPowerManagementLimitConstraints)
    return {
        "index": card.index,
        "slot": card.slot,
        "uuid": card.uuid,
        "pci_bus_id": card.pci_bus_id,
        "name": ask("name", pynvml.nvmlDeviceGetName) or "",
        "serial": ask("serial", pynvml.nvmlDeviceGetSerial),
        "vbios": ask("vbios", pynvml.nvmlDeviceGetVbiosVersion),
        "memory_mib": None if memory is None else int(memory.total) // MIB,
        "compute_capability": None if capability is None else f"{capability[0]}.{capability[1]}",
        "power_limit_w": asker.watts("power_limit_w", pynvml.nvmlDeviceGetPowerManagementLimit),
        "power_default_w": asker.watts("power_default_w", pynvml.nvmlDeviceGetPowerManagementDefaultLimit),
        "power_min_w": None if power_range is None else power_range[0] / 1000,
        "power_max_w": None if power_range is None else power_range[1] / 1000,
        "slowdown_temp_c": _threshold(asker, "slowdown_temp_c", pynvml.NVML_TEMPERATURE_THRESHOLD_SLOWDOWN),
        "shutdown_temp_c": _threshold(asker, "shutdown_temp_c", pynvml.NVML_TEMPERATURE_THRESHOLD_SHUTDOWN),
        "max_pcie_gen": ask("max_pcie_gen", pynvml.nvmlDeviceGetMaxPcieLinkGeneration),
        "max_pcie_width": ask("max_pcie_width", pynvml.nvmlDeviceGetMaxPcieLinkWidth),
        "links": [_link_facts(asker, link, active=active) for link, active in enumerate(_links_active(asker))],
        "missing": asker.missing,
    }


def _link_facts(asker: Asker, link: int, *, active: bool) -> dict[str, Any]:
    known: dict[str, Any] = {"link": link, "active": active, "remote_pci_bus_id": None, "speed_gb_per_s": None}
    if active:
        remote = asker.ask(f"link{link}.remote_pci_bus_id", pynvml.nvmlDeviceGetNvLinkRemotePciInfo, link)
        known["remote_pci_bus_id"] = None if remote is None else _text(remote.busId)
        known["speed_gb_per_s"] = _link_speed(asker, link)
    return known


def _link_speed(asker: Asker, link: int) -> float | None:
    """Speed of one link in one direction, GB/s; NVML says MB/s."""
    name = f"link{link}.speed_gb_per_s"
    if link >= len(_LINK_SPEED_FIELDS):
        asker.missing[name] = "NVML has no field for the speed of this link"
        return None
    values = asker.ask(name, pynvml.nvmlDeviceGetFieldValues, [_LINK_SPEED_FIELDS[link]])
    if values is None:
        return None
    if values[0].nvmlReturn != pynvml.NVML_SUCCESS:
        asker.missing[name] = words_of(pynvml.NVMLError(values[0].nvmlReturn))
        return None
    by_type = {
        pynvml.NVML_VALUE_TYPE_DOUBLE: "dVal",
        pynvml.NVML_VALUE_TYPE_UNSIGNED_INT: "uiVal",
        pynvml.NVML_VALUE_TYPE_UNSIGNED_LONG: "ulVal",
        pynvml.NVML_VALUE_TYPE_UNSIGNED_LONG_LONG: "ullVal",
    }
    member = by_type.get(values[0].valueType)
    if member is None:
        asker.missing[name] = f"NVML answered in an unknown type ({values[0].valueType})"
        return None
    return float(getattr(values[0].value, member)) / 1000


def compute_processes(cards: tuple[Card, ...]) -> list[str]:
    """Processes that compute on a card: `PID NAME on slotN`. Raises NVMLError when a card fails."""
    found: list[str] = []
    for card in cards:
        asker = Asker(card.handle)
        # Branch 470 has _v2 only; the unsuffixed call insists on the newest.
        processes = asker.ask("processes", pynvml.nvmlDeviceGetComputeRunningProcesses_v3)
        if processes is None:
            processes = asker.ask("processes", pynvml.nvmlDeviceGetComputeRunningProcesses_v2)
        found += [f"{process.pid} {_process_name(process.pid)} on slot{card.slot}" for process in processes or ()]
    return found


def _process_name(pid: int) -> str:
    try:
        return _text(pynvml.nvmlSystemGetProcessName(pid))
    except NVML_ERRORS as error:
        return f"({words_of(error)})"


def cuda_driver() -> str | None:
    """Newest CUDA that the driver can run, such as `11.7`; None where NVML does not say."""
    try:
        version = int(pynvml.nvmlSystemGetCudaDriverVersion_v2())
    except NVML_ERRORS:
        return None
    return f"{version // 1000}.{version % 1000 // 10}"


def library_version() -> str | None:
    """Version of the driver as the open library says it."""
    try:
        return _text(pynvml.nvmlSystemGetDriverVersion())
    except NVML_ERRORS:
        return None
