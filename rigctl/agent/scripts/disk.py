"""A short fio on a file: `python disk.py --arguments JSON --out FILE`, run by the rig's system Python.

The file is deleted as soon as it is open and fio reaches it through this process, so it is gone whatever happens: to
fio, to this program, or to the rig's power. It takes a small share of what is free. fio writes it from end to end and
reads it again, past the kernel's cache (direct I/O). FILE is written once, at the end, atomically:

    {"directory", "bytes", "free_bytes", "report": what fio printed}     or     {"error", "hint"}
"""

from __future__ import annotations

import argparse
import errno
import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

BLOCK = 1024 * 1024
DEPTH = 16
"""So many blocks are under way at once: enough that the disk never waits for us."""
NEEDED = "fio"
WHERE = "disk.directory in the spec names where to measure"
IN_MEMORY = ("tmpfs", "ramfs", "devtmpfs")


class DiskError(Exception):
    """Nothing could be measured; carries the remedy."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


def size_of(free: int, share: float, most: int, least: int) -> int:
    """How large the file may be, bytes, in whole blocks. Raises DiskError where that is too little to measure."""
    size = min(most, int(free * share)) // BLOCK * BLOCK
    if size < least:
        raise DiskError(
            f"{free / 1e9:.2f} GB are free: {share:.0%} of it is less than the {least / 1e6:.0f} MB to measure with",
            "make room on that disk; see disk.space",
        )
    return size


def measure(asked: dict[str, Any], program: str = NEEDED) -> dict[str, Any]:
    """Write and read the file. Raises DiskError with the remedy where that cannot be."""
    directory = str(asked["directory"])
    if shutil.which(program) is None:
        raise DiskError(f"{program} is not installed", "rigctl provision RIG --tags cpu_burn installs it")
    try:
        if (kind := kind_of(directory)) in IN_MEMORY:
            raise DiskError(f"{directory} is on {kind}, which is memory and no disk", WHERE)
        space = os.statvfs(directory)
        free = space.f_bavail * space.f_frsize
        size = size_of(free, float(asked["share"]), int(asked["most_bytes"]), int(asked["least_bytes"]))
        file, name = tempfile.mkstemp(prefix=".rigctl-fio-", dir=directory)
        try:
            Path(name).unlink()
            os.posix_fallocate(file, 0, size)
            report = _fio(program, file, size, float(asked["seconds"]))
        finally:
            os.close(file)
    except OSError as error:
        raise DiskError(
            f"{directory}: {error.strerror}", "disk.directory in the spec names where to measure"
        ) from error
    return {"directory": directory, "bytes": size, "free_bytes": free, "report": report}


def kind_of(directory: str, mounts: Path = Path("/proc/self/mountinfo")) -> str | None:
    """The kind of file system that a folder is in, as the kernel names it; None where it is not listed."""
    device = Path(directory).stat().st_dev
    known = f"{os.major(device)}:{os.minor(device)}"
    for line in mounts.read_text(encoding="utf-8", errors="replace").splitlines():
        words, _, kind = line.partition(" - ")
        if words.split()[2] == known:
            return kind.split()[0]
    return None


def _fio(program: str, file: int, size: int, seconds: float) -> str:
    """Let fio write the open file, then read it; each for `seconds` at most. Its report."""
    common = ["--direct=1", f"--bs={BLOCK}", "--ioengine=libaio", f"--iodepth={DEPTH}", "--allow_file_create=0"]
    # Two jobs, the second after the first; `runtime` ends one that would take longer.
    jobs = [f"--runtime={seconds:g}", "--name=write", "--rw=write", "--name=read", "--stonewall", "--rw=read"]
    place = f"--filename=/proc/{os.getpid()}/fd/{file}"
    argv = [program, "--output-format=json", place, f"--size={size}", *common, *jobs]
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    report = done.stdout.decode(errors="replace")
    said = next((line.strip() for line in done.stderr.decode(errors="replace").splitlines() if line.strip()), "")
    if done.returncode != 0 and "{" not in report:
        raise DiskError(f"fio ended with status {done.returncode}: {said[:300]}", _remedy(said))
    return report


def _remedy(said: str) -> str:
    if os.strerror(errno.EINVAL) in said:
        return "that file system takes no direct I/O: let disk.directory name a folder on another one"
    return "look at the kernel log of the rig"


def main() -> int:
    """Measure and write FILE; exit status 1 with the reason in it when it could not."""
    parser = argparse.ArgumentParser(description="fio on a file")
    parser.add_argument("--arguments", type=json.loads, required=True)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    try:
        told = measure(given.arguments)
    except DiskError as error:
        told = {"error": str(error), "hint": error.hint}
    part = given.out.with_name(given.out.name + ".part")
    part.write_text(json.dumps(told), encoding="utf-8")
    part.replace(given.out)
    return 1 if "error" in told else 0


if __name__ == "__main__":
    raise SystemExit(main())
