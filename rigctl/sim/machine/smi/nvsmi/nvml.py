"""The NVML library through ctypes: only what `nvidia-smi` asks."""

from __future__ import annotations

import ctypes
from typing import Any

SUCCESS, NO_PERMISSION, NOT_SUPPORTED, DRIVER_NOT_LOADED, LIBRARY_NOT_FOUND = 0, 4, 3, 9, 12
FUNCTION_NOT_FOUND, GPU_IS_LOST, MISMATCH, INSUFFICIENT_SIZE = 13, 15, 18, 7


class NvmlError(Exception):
    """An NVML call that failed. `code` is NVML's, and nvidia-smi's exit status too."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


class PciInfo(ctypes.Structure):
    """nvmlPciInfo_t."""

    _fields_ = (
        ("busIdLegacy", ctypes.c_char * 16),
        ("domain", ctypes.c_uint),
        ("bus", ctypes.c_uint),
        ("device", ctypes.c_uint),
        ("pciDeviceId", ctypes.c_uint),
        ("pciSubSystemId", ctypes.c_uint),
        ("busId", ctypes.c_char * 32),
    )


class Memory(ctypes.Structure):
    """nvmlMemory_t and nvmlBAR1Memory_t, in bytes."""

    _fields_ = (("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong))


class MemoryV2(ctypes.Structure):
    """nvmlMemory_v2_t, in bytes."""

    _fields_ = (
        ("version", ctypes.c_uint),
        ("total", ctypes.c_ulonglong),
        ("reserved", ctypes.c_ulonglong),
        ("free", ctypes.c_ulonglong),
        ("used", ctypes.c_ulonglong),
    )


class Utilization(ctypes.Structure):
    """nvmlUtilization_t, in percent."""

    _fields_ = (("gpu", ctypes.c_uint), ("memory", ctypes.c_uint))


class Process(ctypes.Structure):
    """nvmlProcessInfo_t."""

    _fields_ = (
        ("pid", ctypes.c_uint),
        ("usedGpuMemory", ctypes.c_ulonglong),
        ("gpuInstanceId", ctypes.c_uint),
        ("computeInstanceId", ctypes.c_uint),
    )


class Field(ctypes.Structure):
    """nvmlFieldValue_t with an unsigned value."""

    _fields_ = (
        ("fieldId", ctypes.c_uint),
        ("scopeId", ctypes.c_uint),
        ("timestamp", ctypes.c_longlong),
        ("latencyUsec", ctypes.c_longlong),
        ("valueType", ctypes.c_int),
        ("nvmlReturn", ctypes.c_int),
        ("uiVal", ctypes.c_uint),
        ("padding", ctypes.c_uint),
    )


class Nvml:
    """The loaded library. Every method raises NvmlError with NVML's own code and text."""

    def __init__(self, library: str = "libnvidia-ml.so.1") -> None:
        try:
            self._library = ctypes.CDLL(library)
        except OSError as absent:
            raise NvmlError(LIBRARY_NOT_FOUND, str(absent)) from absent
        self._library.nvmlErrorString.restype = ctypes.c_char_p

    def call(self, name: str, *arguments: Any) -> None:
        """One call; arguments are ctypes values."""
        try:
            function = getattr(self._library, name)
        except AttributeError as absent:
            raise NvmlError(FUNCTION_NOT_FOUND, "Function Not Found") from absent
        code = int(function(*arguments))
        if code != SUCCESS:
            raise NvmlError(code, self._library.nvmlErrorString(code).decode())

    def number(self, name: str, *arguments: Any, kind: Any = ctypes.c_uint) -> int:
        """A call that writes one number into its last argument."""
        value = kind()
        self.call(name, *arguments, ctypes.byref(value))
        return int(value.value)

    def text(self, name: str, *arguments: Any) -> str:
        """A call that fills a buffer with a text."""
        buffer = ctypes.create_string_buffer(256)
        self.call(name, *arguments, buffer, ctypes.c_uint(len(buffer)))
        return buffer.value.decode()

    def structure(self, name: str, kind: Any, *arguments: Any) -> Any:
        """A call that fills a structure."""
        value = kind()
        self.call(name, *arguments, ctypes.byref(value))
        return value
