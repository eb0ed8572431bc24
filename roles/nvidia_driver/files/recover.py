"""After a driver transaction that failed: bring dpkg into order, put the driver back that was there, and say why.

Runs on the rig as root with the system's Python (3.10 or newer, standard library only) and prints one JSON object.
Its one argument are wishes as JSON: driver (the version that was to come), before (package → version of the driver
packages that were there), held (those of them that were held).
"""

import json
import sys
from typing import Any

from apt_answers import is_driver, run
from kernels import why_not_built

TIMEOUT_S = 1800
APT = (
    "env", "DEBIAN_FRONTEND=noninteractive", "NEEDRESTART_MODE=l", "apt-get", "-y", "-q",
    "-o", "DPkg::Lock::Timeout=600", "-o", "Dpkg::Options::=--force-confdef", "-o", "Dpkg::Options::=--force-confold",
    "--no-install-recommends", "--allow-downgrades", "--allow-change-held-packages",
)  # fmt: skip
WHOLE = ("ii", "hi")


def read_states() -> dict[str, tuple[str, str]]:
    """Every package that is on the rig in whatever state → its state (`ii`, `iF`, …) and version."""
    rows = run("dpkg-query", "-W", "-f", "${Package} ${db:Status-Abbrev} ${Version}\n")[1].splitlines()
    fields = [row.split() for row in rows]
    return {row[0]: (row[1], row[2]) for row in fields if len(row) > 2 and row[1][1] not in "nc"}  # noqa: PLR2004


def broken() -> list[str]:
    """The packages that are neither whole nor gone."""
    return sorted(name for name, (state, _) in read_states().items() if state not in WHOLE)


def put_back(before: dict[str, str], held: list[str]) -> bool:
    """One transaction: the driver that was there, without what came; whether that went well."""
    now = read_states()
    came = [f"{name}-" for name in sorted(now) if is_driver(name) and name not in before]
    lost = [
        f"{name}={version}" for name, version in before.items() if now.get(name) not in [(s, version) for s in WHOLE]
    ]
    if came or lost:
        run(*APT, "install", *lost, *came, timeout_s=TIMEOUT_S)
    if broken() or any(name.removesuffix("-") in read_states() for name in came):
        # What was there is on offer no more, or does not compile either: better none than a half installed one.
        every = [name for name in sorted(read_states()) if is_driver(name)]
        run(*APT, "purge", *every, timeout_s=TIMEOUT_S)
    now = read_states()
    still_held = [name for name in held if name in now]
    if still_held:
        run("apt-mark", "hold", *still_held)
    return all(now.get(name, ("", ""))[1] == version for name, version in before.items())


def recover(wishes: dict[str, Any]) -> dict[str, Any]:
    """Why the transaction failed, and how the rig was left."""
    why = why_not_built(wishes["driver"])
    was_broken = broken()
    restored = put_back(wishes["before"], wishes["held"])
    if broken():
        run("dpkg", "--configure", "-a", timeout_s=TIMEOUT_S)
    return {"why": why, "was_broken": was_broken, "restored": restored, "broken": broken()}


if __name__ == "__main__":
    json.dump(recover(json.loads(sys.argv[1])), sys.stdout)
