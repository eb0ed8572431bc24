"""Reading what a crash may have cut: a cut last line is normal, any other damage is said with file and line."""

from __future__ import annotations

import gc
import gzip
import json
import zlib
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from pydantic import BaseModel, ValidationError

from rigctl.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

M = TypeVar("M", bound=BaseModel)

_RESTORE = "restore the file from a copy, or leave this run out: rigctl does not judge what it cannot read"


@contextmanager
def collector_paused() -> Iterator[None]:
    """Pause the cycle collector.

    Among a soak's 60,000 samples it finds nothing to free and takes two thirds of the time. Reference counting goes on.
    """
    running = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if running:
            gc.enable()


def read_bytes(path: Path) -> bytes:
    """Return the content of `path`, unpacked when its name ends in `.gz`.

    Raises:
        UsageError: the file cannot be read, or its compressed form is damaged.
    """
    try:
        data = path.read_bytes()
        return gzip.decompress(data) if path.suffix == ".gz" else data
    except (EOFError, gzip.BadGzipFile, zlib.error) as reason:
        raise UsageError(f"{path} is damaged: {reason}", _RESTORE) from reason
    except OSError as reason:
        raise UsageError(f"{path} cannot be read: {reason.strerror}", "check its rights") from reason


def read_lines(path: Path, model: type[M]) -> tuple[M, ...]:
    """Return each line of a JSONL file as `model`; none where there is no file.

    A last line without its newline that is no whole JSON was cut by a crash and is left out.

    Raises:
        UsageError: any other line that is no JSON or does not fit the model, with its number.
    """
    if not path.exists():
        return ()
    *whole, tail = read_bytes(path).split(b"\n")
    with collector_paused():
        rows = [_row(path, number, line, model) for number, line in enumerate(whole, start=1)]
    if tail and _is_json(tail):
        rows.append(_row(path, len(whole) + 1, tail, model))
    return tuple(rows)


def read_model(path: Path, model: type[M], remedy: str = _RESTORE) -> M:
    """Return a whole JSON file as `model`.

    Raises:
        UsageError: the file is absent, no JSON, or does not fit the model; the message says where.
    """
    try:
        return model.model_validate_json(read_bytes(path))
    except ValidationError as reason:
        raise UsageError(f"{path} is damaged: {_first_fault(reason)}", remedy) from reason


def _row(path: Path, number: int, line: bytes, model: type[M]) -> M:
    try:
        return model.model_validate_json(line)
    except ValidationError as reason:
        raise UsageError(f"{path}, line {number}, is damaged: {_first_fault(reason)}", _RESTORE) from reason


def _is_json(line: bytes) -> bool:
    try:
        json.loads(line)
    except ValueError:
        return False
    return True


def _first_fault(reason: ValidationError) -> str:
    first = reason.errors(include_url=False, include_context=False, include_input=False)[0]
    where = ".".join(str(part) for part in first["loc"])
    return f"{where}: {first['msg']}" if where else first["msg"]
