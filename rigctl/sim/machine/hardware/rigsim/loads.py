"""What programs ask of the cards and of the CPU, read at the process boundary."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

LINE_FIELDS = 4


@dataclass(frozen=True)
class Use:
    """One process on one card: `gpu CARD KIND UTIL MEMORY_MIB` in its load file; CARD is a UUID or an NVML index."""

    pid: int
    card: str
    kind: str
    util: float
    memory_mib: int = 0


def read_loads(folder: Path) -> list[Use]:
    """The uses of all living processes; the file of a dead one is removed."""
    uses: list[Use] = []
    for path in sorted(folder.glob("[0-9]*")):
        if not path.name.isdigit():
            continue
        if not lives(path.name):
            path.unlink(missing_ok=True)
            continue
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
        except FileNotFoundError:  # the process ended between the listing and the reading
            continue
        uses += [use for line in lines if (use := parse_line(int(path.name), line)) is not None]
    return uses


def lives(pid: str) -> bool:
    """Whether a process still runs; a zombie that nobody has fetched does not."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:  # it is gone, perhaps while we were looking
        return False
    return text.rpartition(")")[2].split()[0] not in {"Z", "X"}


def parse_line(pid: int, line: str) -> Use | None:
    """One line of a load file; None for a line that is still being written or of another kind."""
    fields = line.split()
    if len(fields) < LINE_FIELDS or fields[0] != "gpu":
        return None
    try:
        util, memory_mib = float(fields[3]), int(fields[4]) if len(fields) > LINE_FIELDS else 0
    except ValueError:
        return None
    return Use(pid=pid, card=fields[1], kind=fields[2], util=min(1.0, max(0.0, util)), memory_mib=memory_mib)


def _numbers(folder: Path) -> list[str]:
    """The processes or threads in `folder`; none where it has just gone (Path.glob raises there)."""
    try:
        return [name for name in os.listdir(folder) if name.isdigit()]  # noqa: PTH208 - names alone, ten times a second
    except OSError:
        return []


class CpuMeter:
    """The share of this rig's CPUs that its own processes want; /proc shows only those, /proc/stat the whole host.

    Wanted, not got: a real rig shares its CPU with nobody, while simulated ones may wait for each other on a busy
    host. So the time that a thread waited for a CPU counts like the time that it ran. The simulation's own process
    is left out.
    """

    def __init__(self, proc: Path = Path("/proc"), own_pid: int | None = None) -> None:
        self._proc = proc
        self._own = str(os.getpid() if own_pid is None else own_pid)
        self._cpus = len(os.sched_getaffinity(0))
        self._seen: dict[str, int] = {}
        self._at_s: float | None = None

    def read(self, now_s: float) -> float:
        """Share of the CPUs wanted since the last call, 0 to 1; 0.0 at the first call."""
        wanted = {}
        for pid in _numbers(self._proc):
            for thread in _numbers(self._proc / pid / "task") if pid != self._own else ():
                nanoseconds = self._wanted_ns(self._proc / pid / "task" / thread / "schedstat")
                if nanoseconds is not None:
                    wanted[thread] = nanoseconds
        used = sum(max(0, total - self._seen.get(thread, 0)) for thread, total in wanted.items())
        before_s, self._at_s, self._seen = self._at_s, now_s, wanted
        if before_s is None or now_s <= before_s:
            return 0.0
        return min(1.0, used / 1e9 / (now_s - before_s) / self._cpus)

    @staticmethod
    def _wanted_ns(path: Path) -> int | None:
        """Nanoseconds that a thread ran and waited to run."""
        try:
            ran, waited, _ = path.read_text(encoding="ascii").split()
        except OSError:  # the thread has ended
            return None
        return int(ran) + int(waited)
