"""Files that survive a crash: appended and fsynced, or replaced atomically."""

from __future__ import annotations

import errno
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rigctl.errors import NoRoom, RigctlError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_FULL = (errno.ENOSPC, errno.EDQUOT)
_FORBIDDEN = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EEXIST, errno.ENOENT, errno.EISDIR)


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Say in rigctl's words why `path` could not be written.

    Raises:
        UsageError: the place cannot be written at all (absent, rights, read-only, a file in the way).
        NoRoom: the disk is full; what was fsynced before is still there.
        RigctlError: the disk is broken.
    """
    try:
        yield
    except OSError as reason:
        what = reason.strerror or str(reason)
        if reason.errno in _FULL:
            raise NoRoom(
                f"no room left to write {path}: {what}",
                "free some space (rigctl keeps what was written so far), or put runs elsewhere with --runs DIR",
            ) from reason
        if reason.errno in _FORBIDDEN:
            raise UsageError(
                f"{path} cannot be written: {what}", "name a place that exists and that you may write"
            ) from reason
        raise RigctlError(f"writing {path} failed: {what}", "check that disk; kernel messages tell more") from reason


def fsync_dir(folder: Path) -> None:
    """Make the names in `folder` durable, such as those of files just created or renamed."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def append_durably(path: Path, data: bytes, *, mend_cut_line: bool = False) -> None:
    """Append `data` to `path` and return when it is on the disk.

    Nothing is left half written: after a failed write the file has its former length again.

    Args:
        path: the file; created when absent.
        data: the bytes.
        mend_cut_line: first drop a last line that a crash has cut, so that it never ends up in the middle.
    """
    with writing(path):
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            before = os.lseek(handle, 0, os.SEEK_END)
            if before == 0:
                fsync_dir(path.parent)
            elif mend_cut_line:
                before = _drop_cut_line(handle, before)
            try:
                _write_all(handle, data)
                os.fsync(handle)
            except OSError:
                os.ftruncate(handle, before)
                raise
        finally:
            os.close(handle)


def replace_durably(path: Path, data: bytes, *, mode: int | None = None) -> None:
    """Write `path` anew: readers see the old content or the new, never a part, also after a crash.

    Args:
        path: the file.
        data: all of it.
        mode: its permissions whatever the umask says; None leaves that to the umask.
    """
    with writing(path):
        draft = path.with_name(f".{path.name}.{os.getpid()}.tmp")
        try:
            handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
            try:
                if mode is not None:
                    os.fchmod(handle, mode)
                _write_all(handle, data)
                os.fsync(handle)
            finally:
                os.close(handle)
            draft.replace(path)
        except OSError:
            draft.unlink(missing_ok=True)
            raise
        fsync_dir(path.parent)


def replace_if_other(path: Path, data: bytes) -> bool:
    """Write `path` anew where it holds something else, in one step; return whether it did.

    For what can be made again at will: it may be the old content after a power cut, and never a part.

    Raises:
        UsageError, RigctlError: as `writing`.
    """
    with writing(path):
        try:
            if path.read_bytes() == data:
                return False
        except FileNotFoundError:
            pass
        draft = path.with_name(f".{path.name}.{os.getpid()}.tmp")
        try:
            draft.write_bytes(data)
            draft.replace(path)
        except OSError:
            draft.unlink(missing_ok=True)
            raise
    return True


def _write_all(handle: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(handle, rest) :]


def drop_cut_line(path: Path) -> None:
    """Drop a last line that a crash has cut, if there is one; nothing where there is no such file."""
    with writing(path):
        try:
            handle = os.open(path, os.O_RDWR)
        except FileNotFoundError:
            return
        try:
            _drop_cut_line(handle, os.lseek(handle, 0, os.SEEK_END))
            os.fsync(handle)
        finally:
            os.close(handle)


def _drop_cut_line(handle: int, size: int) -> int:
    """Truncate after the last newline and return the new size; the write position ends there."""
    end = size
    while end > 0:
        start = max(0, end - 65536)
        newline = os.pread(handle, end - start, start).rfind(b"\n")
        if newline >= 0:
            end = start + newline + 1
            break
        end = start
    if end != size:
        os.ftruncate(handle, end)
    os.lseek(handle, end, os.SEEK_SET)
    return end
