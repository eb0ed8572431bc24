"""A test of the host's memory: `python host_memory.py --arguments JSON --out FILE`, run by the rig's system Python.

stress-ng fills a share of what is free with patterns, one worker per processor thread, and compares what it reads. It
runs in a scope of its own with a memory limit, so that a test that grows too large is ended and not the rig; the scope
is bound to the guard's unit and ends with it, whatever ends that. FILE is written once, at the end, atomically:

    {"bytes", "workers", "seconds", "exit_status", "report": stress-ng's YAML, "said": [its complaints]}
    or {"error", "hint"}
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

MIB = 1024 * 1024
LEAST_BYTES = 16 * MIB
"""Less than this tests nothing."""
OWN_BYTES = 256 * MIB
"""What stress-ng's processes take beside the memory that they test."""
GRACE_S = 30
"""The scope is ended so long after the test should have ended by itself, seconds."""
COMPLAINT = re.compile(r"fail|error|killed|oom|out of memory", re.IGNORECASE)
MOST_LINES = 20


class MemoryTestError(Exception):
    """Nothing could be tested; carries the remedy."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


def free_bytes(meminfo: str) -> int:
    """What the kernel can give without swapping, bytes. Raises MemoryTestError where it does not say."""
    found = re.search(r"^MemAvailable:\s*(\d+) kB$", meminfo, re.MULTILINE)
    if found is None:
        raise MemoryTestError("/proc/meminfo does not say what is free", "look at /proc/meminfo on the rig")
    return int(found.group(1)) * 1024


def size_of(free: int, share: float) -> int:
    """How much is tested, bytes, in whole MiB. Raises MemoryTestError where that is too little."""
    size = int(free * share) // MIB * MIB
    if size < LEAST_BYTES:
        raise MemoryTestError(f"only {free // MIB} MiB of memory are free", "see who holds the rig's memory")
    return size


def unit_of(cgroup: str) -> str:
    """The systemd service that holds this process. Raises MemoryTestError outside of one."""
    names = re.findall(r"[^/:\n]+\.service", cgroup)
    if not names:
        raise MemoryTestError("the test is not part of a run's unit", "start it by `rigctl accept`")
    return str(names[-1])


def command(unit: str, size: int, workers: int, seconds: float, report: str) -> list[str]:
    """The whole command: a scope with a limit, bound to the run's unit, and stress-ng in it."""
    limits = {
        "BindsTo": unit,
        "MemoryMax": str(size + size // 20 + OWN_BYTES),
        "MemorySwapMax": "0",
        "RuntimeMaxSec": f"{seconds + GRACE_S:g}",
        "TimeoutStopSec": "1",
    }
    scope = ["systemd-run", "--scope", "--quiet", "--collect", *(f"--property={k}={v}" for k, v in limits.items())]
    # The size is shared out among the workers; a worker that is killed for memory is not started again.
    test = ["--vm", str(workers), "--vm-bytes", str(size), "--vm-method", "all", "--vm-keep", "--verify", "--oomable"]
    return [*scope, "stress-ng", *test, "--metrics", "--yaml", report, "--timeout", f"{seconds:g}s"]


def measure(asked: dict[str, Any], proc: Path = Path("/proc")) -> dict[str, Any]:
    """Test the memory. Raises MemoryTestError with the remedy."""
    for needed, hint in (("stress-ng", "rigctl provision installs it"), ("systemd-run", "it comes with systemd")):
        if shutil.which(needed) is None:
            raise MemoryTestError(f"{needed} is not installed", hint)
    size = size_of(free_bytes((proc / "meminfo").read_text(encoding="ascii")), float(asked["share"]))
    unit, workers = unit_of((proc / "self" / "cgroup").read_text(encoding="utf-8")), os.cpu_count() or 1
    with tempfile.TemporaryDirectory(prefix="rigctl-memory-") as folder:
        report = Path(folder) / "report.yaml"
        argv = command(unit, size, workers, float(asked["seconds"]), str(report))
        # In this process group: who ends this program ends the test too.
        done = subprocess.run(
            argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=folder, check=False
        )
        text = report.read_text(encoding="utf-8", errors="replace") if report.exists() else ""
    lines = [line.strip() for line in done.stdout.decode(errors="replace").splitlines() if line.strip()]
    print("\n".join(lines), flush=True)  # noqa: T201 - the step's log
    return {
        "bytes": size,
        "workers": workers,
        "seconds": float(asked["seconds"]),
        "exit_status": done.returncode,
        "report": text,
        "said": [line for line in lines if COMPLAINT.search(line)][:MOST_LINES],
    }


def main() -> int:
    """Test and write FILE; exit status 1 with the reason in it when it could not."""
    parser = argparse.ArgumentParser(description="a test of the host's memory")
    parser.add_argument("--arguments", type=json.loads, required=True)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    status = 0
    try:
        found = measure(given.arguments)
    except MemoryTestError as error:
        found, status = {"error": str(error), "hint": error.hint}, 1
    except OSError as error:
        found, status = {"error": f"{error.filename}: {error.strerror}", "hint": "look at the rig's kernel log"}, 1
    temporary = given.out.with_name(f".{given.out.name}.new")
    temporary.write_text(json.dumps(found) + "\n", encoding="utf-8")
    temporary.replace(given.out)
    return status


if __name__ == "__main__":
    raise SystemExit(main())
