"""fio's report (`--output-format=json`): how fast a disk read and wrote, and whether anything went wrong.

fio's notes stand before the document in the same stream. With `--status-interval` it writes several documents; only
a run's one report is read. A job that failed names the errno, and still has figures for what it did before.
"""

from __future__ import annotations

from dataclasses import dataclass

from rigctl.parse import ParseError
from rigctl.parse.json_text import Entry, document

_WHAT = "fio's report"


@dataclass(frozen=True)
class Transfer:
    """What one job read, or wrote."""

    bytes_per_s: float
    per_s: float
    """Operations per second."""
    operations: int
    runtime_s: float
    p99_ms: float | None
    """Latency that 99 of 100 operations did not exceed, ms; None where fio was not asked for it."""


@dataclass(frozen=True)
class Job:
    """One job, or one group with `group_reporting`."""

    name: str
    error: int
    """errno of the first thing that failed; 0 for none."""
    read: Transfer | None
    write: Transfer | None
    """None where the job did not do so."""


@dataclass(frozen=True)
class FioRun:
    """One run."""

    version: str
    jobs: tuple[Job, ...]
    notes: tuple[str, ...]
    """What fio said before its report."""


def parse(text: str) -> FioRun:
    """Read the report. Raises ParseError where it is cut, of another form, or where a job neither read nor wrote."""
    lines = text.splitlines()
    begin = next((i for i, line in enumerate(lines) if line.startswith("{")), 0)
    root = Entry(_WHAT, document(_WHAT, "\n".join(lines[begin:])))
    jobs = tuple(_job(entry) for entry in root.each("jobs"))
    if not jobs:
        raise ParseError(_WHAT, "jobs: []")
    return FioRun(root.text("fio version"), jobs, tuple(line for line in lines[:begin] if line.strip()))


def _job(entry: Entry) -> Job:
    error = entry.count("error")
    read, write = _transfer(entry.entry("read")), _transfer(entry.entry("write"))
    if read is None and write is None and not error:
        entry.wrong("read and write", "nothing was transferred, and no error")
    return Job(entry.text("jobname"), error, read, write)


def _transfer(entry: Entry) -> Transfer | None:
    operations = entry.count("total_ios")
    if operations == 0:
        return None
    # `bw_bytes` came with fio 3; `bw` is in KiB/s since the first.
    rate = entry.number("bw_bytes") if entry.has("bw_bytes") else entry.number("bw") * 1024
    found = Transfer(rate, entry.number("iops"), operations, entry.number("runtime") / 1000, _p99_ms(entry))
    if min(found.bytes_per_s, found.per_s, found.runtime_s) <= 0:
        entry.wrong("bw_bytes, iops, runtime", (found.bytes_per_s, found.per_s, found.runtime_s))
    return found


def _p99_ms(entry: Entry) -> float | None:
    for key, per_ms in (("clat_ns", 1e6), ("lat_ns", 1e6), ("clat", 1e3)):
        latency = entry.entry(key) if entry.has(key) else None
        if latency is not None and latency.has("percentile"):
            percentile = latency.entry("percentile")
            if percentile.has("99.000000"):
                return percentile.number("99.000000") / per_ms
    return None
