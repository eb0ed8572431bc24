"""Find running containers that can use an NVIDIA card; runs on the rig as root, changes nothing, prints JSON.

A process belongs to a container where its control group carries a container's 64 digits; the container can use a card
where there is a card's device in its own /dev. Open files would miss a container that uses its card only now and then.
"""

import json
import re
import sys
from pathlib import Path

CONTAINER = re.compile(r"(?:^|[/-])([0-9a-f]{64})(?:\.scope)?(?=/|$)", re.MULTILINE)


def container_of(cgroup: str) -> str:
    """`/proc/PID/cgroup` → the id of the innermost container; empty for a process of the machine itself."""
    found = CONTAINER.findall(cgroup)
    return str(found[-1]) if found else ""


def containers(proc: Path) -> dict[str, str]:
    """Container with a card → the name of one of its processes; the machine may be a container itself."""
    own = container_of(read(proc / "1/cgroup"))
    found: dict[str, str] = {}
    for process in sorted(proc.glob("[0-9]*")):
        name = container_of(read(process / "cgroup"))
        if name not in {"", own, *found} and any((process / "root/dev").glob("nvidia[0-9]*")):
            found[name] = read(process / "comm").strip()
    return found


def read(path: Path) -> str:
    """A file of a process; empty where the process has ended meanwhile."""
    try:
        return path.read_text(encoding="utf-8")
    except (FileNotFoundError, ProcessLookupError):
        return ""


if __name__ == "__main__":
    json.dump({name[:12]: process for name, process in containers(Path("/proc")).items()}, sys.stdout)
