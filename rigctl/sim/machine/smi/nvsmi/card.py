"""One card as `nvidia-smi` sees it: each property asks NVML; what the card does not expose is None."""

from __future__ import annotations

import ctypes
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from .nvml import (
    FUNCTION_NOT_FOUND,
    GPU_IS_LOST,
    INSUFFICIENT_SIZE,
    NOT_SUPPORTED,
    Field,
    Memory,
    MemoryV2,
    Nvml,
    NvmlError,
    PciInfo,
    Process,
    Utilization,
)

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")
MIB = 1024 * 1024
MEMORY_V2 = ctypes.sizeof(MemoryV2) | 2 << 24
LINK_SPEED_FIELDS = (*range(84, 90), *range(132, 138))
"""NVML's fields for the links 0 to 5 and 6 to 11; later links have none of their own."""
LINK_SPEED_COMMON = 90
BRANDS = {2: "Tesla", 5: "GeForce", 13: "NVIDIA RTX", 14: "NVIDIA"}
ARCHITECTURES = {7: "Ampere", 8: "Ada Lovelace", 9: "Hopper", 10: "Blackwell"}
MAX_LINKS = 18
REMOTE_SWITCH = 2
NUMBERS = {
    "minor": "MinorNumber",
    "board_id": "BoardId",
    "pcie_gen": "CurrPcieLinkGeneration",
    "pcie_gen_max": "MaxPcieLinkGeneration",
    "pcie_width": "CurrPcieLinkWidth",
    "pcie_width_max": "MaxPcieLinkWidth",
    "pcie_replay": "PcieReplayCounter",
    "power_mw": "PowerUsage",
    "limit_mw": "PowerManagementLimit",
    "enforced_mw": "EnforcedPowerLimit",
    "default_mw": "PowerManagementDefaultLimit",
    "fan": "FanSpeed",
    "pstate": "PerformanceState",
    "persistence": "PersistenceMode",
}
CLOCKS = {"graphics": 0, "sm": 1, "memory": 2, "video": 3}
THRESHOLDS = {"shutdown": 0, "slowdown": 1, "max": 3, "target": 5}


def lost_bus_id(nvml: Nvml, index: int) -> str:
    """The bus id of a card that does not answer any more, with the kernel's four digits of domain."""
    handle = ctypes.c_void_p()
    try:
        nvml.call("nvmlDeviceGetHandleByIndex_v2", ctypes.c_uint(index), ctypes.byref(handle))
    except NvmlError as failed:
        if failed.code != GPU_IS_LOST:
            raise
    pci = nvml.structure("nvmlDeviceGetPciInfo_v3", PciInfo, handle)
    return str(pci.busIdLegacy.decode())


class Card:
    """One card. Raises NvmlError for anything but "not supported" (a lost card, say)."""

    def __init__(self, nvml: Nvml, index: int) -> None:
        self.nvml = nvml
        self.index = index
        self.handle = ctypes.c_void_p()
        nvml.call("nvmlDeviceGetHandleByIndex_v2", ctypes.c_uint(index), ctypes.byref(self.handle))
        self.pci: PciInfo = nvml.structure("nvmlDeviceGetPciInfo_v3", PciInfo, self.handle)
        self.bus_id: str = self.pci.busId.decode()
        self.name = nvml.text("nvmlDeviceGetName", self.handle)
        self.uuid = nvml.text("nvmlDeviceGetUUID", self.handle)

    def number(self, key: str) -> int | None:
        """One of NUMBERS."""
        return self._absent(lambda: self.nvml.number(f"nvmlDeviceGet{NUMBERS[key]}", self.handle))

    def text(self, name: str) -> str | None:
        """A text by the end of its NVML name, such as `VbiosVersion`."""
        return self._absent(lambda: self.nvml.text(f"nvmlDeviceGet{name}", self.handle))

    def clock(self, name: str, *, highest: bool = False) -> int | None:
        """A clock in MHz."""
        call = "nvmlDeviceGetMaxClockInfo" if highest else "nvmlDeviceGetClockInfo"
        return self._absent(lambda: self.nvml.number(call, self.handle, ctypes.c_uint(CLOCKS[name])))

    def temperature(self) -> int | None:
        """Die temperature in whole degrees."""
        return self._absent(lambda: self.nvml.number("nvmlDeviceGetTemperature", self.handle, ctypes.c_uint(0)))

    def threshold(self, name: str) -> int | None:
        """One of THRESHOLDS, in degrees."""
        which = ctypes.c_uint(THRESHOLDS[name])
        return self._absent(lambda: self.nvml.number("nvmlDeviceGetTemperatureThreshold", self.handle, which))

    def power_range(self) -> tuple[int, int]:
        """Lowest and highest power limit in milliwatts."""
        low, high = ctypes.c_uint(), ctypes.c_uint()
        call = "nvmlDeviceGetPowerManagementLimitConstraints"
        self.nvml.call(call, self.handle, ctypes.byref(low), ctypes.byref(high))
        return low.value, high.value

    def throttle(self) -> int:
        """The mask of throttle reasons; the call is named after events from 535 on, the old name stays."""
        call = "nvmlDeviceGetCurrentClocksThrottleReasons"
        return self.nvml.number(call, self.handle, kind=ctypes.c_ulonglong)

    def utilization(self) -> Utilization:
        """Card and memory controller, in percent."""
        rates: Utilization = self.nvml.structure("nvmlDeviceGetUtilizationRates", Utilization, self.handle)
        return rates

    def memory_mib(self) -> dict[str, int]:
        """total, reserved, used, free."""
        memory = MemoryV2(version=MEMORY_V2)
        try:
            self.nvml.call("nvmlDeviceGetMemoryInfo_v2", self.handle, ctypes.byref(memory))
        except NvmlError as failed:
            if failed.code != FUNCTION_NOT_FOUND:
                raise
            old = self.nvml.structure("nvmlDeviceGetMemoryInfo", Memory, self.handle)
            return {"total": old.total // MIB, "reserved": 0, "used": old.used // MIB, "free": old.free // MIB}
        return {key: getattr(memory, key) // MIB for key in ("total", "reserved", "used", "free")}

    def bar1_mib(self) -> dict[str, int]:
        """total, used, free."""
        memory = self.nvml.structure("nvmlDeviceGetBAR1MemoryInfo", Memory, self.handle)
        return {key: getattr(memory, key) // MIB for key in ("total", "used", "free")}

    def pcie_kib_per_s(self) -> int:
        """Traffic to and from the card, the same both ways here."""
        return self.nvml.number("nvmlDeviceGetPcieThroughput", self.handle, ctypes.c_uint(0))

    def compute_capability(self) -> str:
        """Such as `8.6`."""
        major, minor = ctypes.c_int(), ctypes.c_int()
        call = "nvmlDeviceGetCudaComputeCapability"
        self.nvml.call(call, self.handle, ctypes.byref(major), ctypes.byref(minor))
        return f"{major.value}.{minor.value}"

    def processes(self) -> list[tuple[int, str, int]]:
        """Compute processes: pid, name, memory in MiB."""
        count = ctypes.c_uint(0)
        call = "nvmlDeviceGetComputeRunningProcesses_v2"
        try:
            self.nvml.call(call, self.handle, ctypes.byref(count), None)
        except NvmlError as failed:
            if failed.code != INSUFFICIENT_SIZE:
                raise
            count.value += 8
            found = (Process * count.value)()
            self.nvml.call(call, self.handle, ctypes.byref(count), found)
            return [(one.pid, self._process_name(one.pid), one.usedGpuMemory // MIB) for one in found[: count.value]]
        return []

    def kind(self) -> tuple[str, str]:
        """Brand and architecture, in nvidia-smi's words."""
        brand = self.nvml.number("nvmlDeviceGetBrand", self.handle)
        return BRANDS[brand], ARCHITECTURES[self.nvml.number("nvmlDeviceGetArchitecture", self.handle)]

    def links(self) -> list[tuple[bool, float, str | None]]:
        """NVLinks: active, GB/s per direction, bus id of the card or switch at the other end."""
        found = []
        for link in range(MAX_LINKS):
            active = self._absent(partial(self._link_state, link))
            if active is None:
                break
            remote = self._absent(partial(self._link_remote, link))
            found.append((bool(active), self._link_speed(link), remote))
        return found

    @property
    def switched(self) -> bool:
        """Whether its first link ends at an NVSwitch."""
        call = "nvmlDeviceGetNvLinkRemoteDeviceType"
        kind = self._absent(lambda: self.nvml.number(call, self.handle, ctypes.c_uint(0)))
        return kind == REMOTE_SWITCH

    def _link_state(self, link: int) -> int:
        return self.nvml.number("nvmlDeviceGetNvLinkState", self.handle, ctypes.c_uint(link))

    def _link_remote(self, link: int) -> str:
        call = "nvmlDeviceGetNvLinkRemotePciInfo_v2"
        return str(self.nvml.structure(call, PciInfo, self.handle, ctypes.c_uint(link)).busId.decode())

    def _link_speed(self, link: int) -> float:
        field = Field(fieldId=LINK_SPEED_FIELDS[link] if link < len(LINK_SPEED_FIELDS) else LINK_SPEED_COMMON)
        self.nvml.call("nvmlDeviceGetFieldValues", self.handle, ctypes.c_int(1), ctypes.byref(field))
        return float(field.uiVal) / 1000

    def _process_name(self, pid: int) -> str:
        try:
            return self.nvml.text("nvmlSystemGetProcessName", ctypes.c_uint(pid))
        except NvmlError:  # it has ended since
            return "[Not Found]"

    @staticmethod
    def _absent(ask: Callable[[], T]) -> T | None:
        try:
            return ask()
        except NvmlError as failed:
            if failed.code in {NOT_SUPPORTED, FUNCTION_NOT_FOUND}:
                return None
            raise
