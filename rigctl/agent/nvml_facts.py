"""Identity of the cards through NVML, and what the driver says of itself."""

from __future__ import annotations

from typing import Any

import pynvml

from .ecc import memory_health
from .nvml import MIB, NVML_ERRORS, Asker, Card, links_active, text_of, threshold, words_of

_LINK_SPEED_FIELDS = tuple(getattr(pynvml, f"NVML_FI_DEV_NVLINK_SPEED_MBPS_L{link}") for link in range(12))


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
        "slowdown_temp_c": threshold(asker, "slowdown_temp_c", pynvml.NVML_TEMPERATURE_THRESHOLD_SLOWDOWN),
        "shutdown_temp_c": threshold(asker, "shutdown_temp_c", pynvml.NVML_TEMPERATURE_THRESHOLD_SHUTDOWN),
        "memory_max_temp_c": threshold(asker, "memory_max_temp_c", pynvml.NVML_TEMPERATURE_THRESHOLD_MEM_MAX),
        "max_pcie_gen": ask("max_pcie_gen", pynvml.nvmlDeviceGetMaxPcieLinkGeneration),
        "max_pcie_width": ask("max_pcie_width", pynvml.nvmlDeviceGetMaxPcieLinkWidth),
        "links": [_link_facts(asker, link, active=active) for link, active in enumerate(links_active(asker))],
        **memory_health(asker),
        "missing": asker.missing,
    }


def _link_facts(asker: Asker, link: int, *, active: bool) -> dict[str, Any]:
    known: dict[str, Any] = {"link": link, "active": active, "remote_pci_bus_id": None, "speed_gb_per_s": None}
    if active:
        remote = asker.ask(f"link{link}.remote_pci_bus_id", pynvml.nvmlDeviceGetNvLinkRemotePciInfo, link)
        known["remote_pci_bus_id"] = None if remote is None else text_of(remote.busId)
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
        return text_of(pynvml.nvmlSystemGetDriverVersion())
    except NVML_ERRORS:
        return None
