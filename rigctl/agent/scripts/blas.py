"""Matrix products on one card, through the driver's own library and cuBLAS: what the switched loads put to work.

No PyTorch: the burner's own libraries are enough, and the driver's library is there wherever a card works. Symbols are
those of the CUDA driver API and of cuBLAS (`cuda.h`, `cublas_v2.h` of toolkits 11 to 13), the `_v2` ones where both
exist.
"""

from __future__ import annotations

import ctypes
import os
import uuid
from ctypes import POINTER, byref, c_char_p, c_float, c_int, c_size_t, c_uint64, c_void_p
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

DRIVER = "libcuda.so.1"
CUBLAS = tuple(f"libcublas.so.{major}" for major in (13, 12, 11))
"""As a dynamic linker knows it, newest first."""
FOLDERS = (
    "/usr/local/cuda/lib64",
    "/usr/local/cuda-*/lib64",
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
)
IN_VENV = ("lib/python3*/site-packages/nvidia/cublas/lib", "lib/python3*/site-packages/nvidia/cu1*/lib")
"""Where PyTorch's wheels bring it."""
_NO_TRANSPOSE = 0
_CHUNK = 1 << 16
_PERIOD = 1 << 18
_UUID_BYTES = 16


class LoadError(Exception):
    """A load cannot be put to work, or broke while it worked; carries the remedy."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


def cublas_files(torch_venv: str, folders: Sequence[str] = FOLDERS) -> list[str]:
    """Where cuBLAS may be: by its name, then in the toolkit's folders, then in PyTorch's environment."""
    places = [*folders, *(f"{torch_venv}/{folder}" for folder in IN_VENV if torch_venv)]
    patterns = [f"{place}/libcublas.so.*".lstrip("/") for place in places]
    return [*CUBLAS, *(str(path) for one in patterns for path in sorted(Path("/").glob(one), reverse=True))]


def load_cublas(files: Sequence[str]) -> Any:
    """Load the first of them that loads. Raises LoadError."""
    why = "not found"
    for file in files:
        try:
            beside = Path(file).with_name(Path(file).name.replace("cublas", "cublasLt"))
            if beside.is_file():
                ctypes.CDLL(str(beside), mode=ctypes.RTLD_GLOBAL)
            return ctypes.CDLL(file)
        except OSError as error:  # noqa: PERF203 - the next file may load
            why = str(error) if os.sep in file else why
    hint = "rigctl provision RIG --tags cuda: the toolkit brings it"
    raise LoadError(f"cuBLAS cannot be loaded: {why}", hint)


def numbers(count: int) -> bytes:
    """`count` single-precision numbers between 0.5 and 2 with random bits: zeros would need little power.

    They repeat after a while: making random bytes takes longer than anything else here.
    """
    period = min(count, _PERIOD)
    raw = bytearray(os.urandom(4 * period))
    raw[3::4] = b"\x3f" * period
    return (bytes(raw) * -(-count // period))[: 4 * count]


class Card:
    """One card, opened by its UUID, with two matrices to multiply. It belongs to the process that opened it."""

    def __init__(self, card_uuid: str, size: int, cublas: Sequence[str]) -> None:
        """Open it. Raises LoadError: no driver, no such card, no cuBLAS, no memory."""
        self.size = size
        self._bytes = 4 * size * size
        try:
            self._cuda = ctypes.CDLL(DRIVER)
        except OSError as error:
            raise LoadError(
                f"{DRIVER} cannot be loaded: {error}", "rigctl provision RIG --tags nvidia_driver"
            ) from None
        self._ask("cuInit", 0)
        self._context = c_void_p()
        self._ask("cuCtxCreate_v2", byref(self._context), 0, self._device(card_uuid))
        self._blas = load_cublas(cublas)
        self._handle = c_void_p()
        self._say("cublasCreate_v2", self._blas.cublasCreate_v2(byref(self._handle)))
        self._a, self._b, self._c = (self._matrix() for _ in range(3))
        for target in (self._a, self._b):
            self._ask("cuMemcpyHtoD_v2", target, numbers(size * size), c_size_t(self._bytes))
        self.once()
        self._first = self._result()

    def once(self) -> None:
        """Multiply once, and wait for it. Raises LoadError."""
        one, zero, n, plain = byref(c_float(1.0)), byref(c_float(0.0)), c_int(self.size), _NO_TRANSPOSE
        multiply = self._blas.cublasSgemm_v2
        status = multiply(self._handle, plain, plain, n, n, n, one, self._a, n, self._b, n, zero, self._c, n)
        self._say("cublasSgemm_v2", status)
        self._ask("cuCtxSynchronize")

    def wrong(self) -> int:
        """How many bytes of the newest product differ from the first one's: the same numbers give the same bytes."""
        return wrong_bytes(self._result(), self._first)

    def close(self) -> None:
        """Give the card back. Raises LoadError."""
        self._say("cublasDestroy_v2", self._blas.cublasDestroy_v2(self._handle))
        self._ask("cuCtxDestroy_v2", self._context)

    def _device(self, card_uuid: str) -> c_int:
        count = c_int()
        self._ask("cuDeviceGetCount", byref(count))
        for ordinal in range(count.value):
            device, raw = c_int(), (ctypes.c_ubyte * _UUID_BYTES)()
            self._ask("cuDeviceGet", byref(device), ordinal)
            self._ask("cuDeviceGetUuid", byref(raw), device)
            if f"GPU-{uuid.UUID(bytes=bytes(raw))}" == card_uuid:
                return device
        raise LoadError(f"CUDA shows {count.value} cards, and none is {card_uuid}", "see topology.gpu_count")

    def _matrix(self) -> c_uint64:
        pointer = c_uint64()
        self._ask("cuMemAlloc_v2", byref(pointer), c_size_t(self._bytes))
        return pointer

    def _result(self) -> bytes:
        found = ctypes.create_string_buffer(self._bytes)
        self._ask("cuMemcpyDtoH_v2", found, self._c, c_size_t(self._bytes))
        return found.raw

    def _ask(self, name: str, *arguments: Any) -> None:
        status = getattr(self._cuda, name)(*arguments)
        if status != 0:
            text = c_char_p()
            self._cuda.cuGetErrorString.argtypes = (c_int, POINTER(c_char_p))
            self._cuda.cuGetErrorString(status, byref(text))
            words = (text.value or b"unknown error").decode(errors="replace")
            raise LoadError(f"{name}: {words} ({status})", "see kernel.xid and `nvidia-smi` on the rig")

    @staticmethod
    def _say(name: str, status: int) -> None:
        if status != 0:
            raise LoadError(f"{name}: status {status}", "see kernel.xid and `nvidia-smi` on the rig")


def wrong_bytes(found: bytes, expected: bytes) -> int:
    """How many bytes differ."""
    if found == expected:
        return 0
    wrong = 0
    for at in range(0, len(expected), _CHUNK):
        one, other = found[at : at + _CHUNK], expected[at : at + _CHUNK]
        if one != other:
            wrong += sum(a != b for a, b in zip(one, other, strict=True))
    return wrong
