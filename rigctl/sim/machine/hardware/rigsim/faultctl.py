"""`fault apply NAME key=value… | clear [NAME] | list`: the rig-side entry for every fault, hardware or not.

Hardware faults are written into the book, which the daemon follows. Any other fault is a program
`faults.d/NAME` beside this toolkit's other rig-side files, called as `NAME apply key=value…` and `NAME clear`.
Prints one JSON object; a refusal is `{"error": …}` on stderr with exit status 2.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from .faults import HARDWARE_FAULTS, Applied, FaultError, locked_book, new_fault, read_book
from .kernellog import BOOT_ID
from .paths import Paths

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

USAGE = "usage: fault apply NAME [key=value …] [when=now|boot|load] | clear [NAME] | list"


def main(arguments: Sequence[str]) -> int:
    """Do one command line; returns the exit status."""
    paths = Paths.from_environment()
    try:
        answer = dispatch(paths, list(arguments))
    except FaultError as refusal:
        print(json.dumps({"error": str(refusal)}), file=sys.stderr)  # noqa: T201
        return 2
    print(json.dumps(answer))  # noqa: T201
    return 0


def dispatch(paths: Paths, arguments: list[str]) -> dict[str, Any]:
    """Do one command; FaultError for what cannot be understood or done."""
    if arguments[:1] == ["list"] and len(arguments) == 1:
        return {"faults": [asdict(one) for one in read_book(paths.faults)]}
    if arguments[:1] == ["clear"] and len(arguments) <= 2:  # noqa: PLR2004
        return {"cleared": clear(paths, arguments[1] if len(arguments) > 1 else None)}
    if arguments[:1] == ["apply"] and len(arguments) > 1:
        parameters = dict(_pair(argument) for argument in arguments[2:])
        when = parameters.pop("when", "now")
        return {"applied": asdict(apply(paths, arguments[1], parameters, when))}
    raise FaultError(USAGE)


def apply(paths: Paths, name: str, parameters: dict[str, str], when: str) -> Applied:
    """Apply a fault, or note that it waits; a second one of the same name replaces the first."""
    if name not in HARDWARE_FAULTS and not _program(paths, name).exists():
        others = sorted(path.name for path in (paths.machine / "faults.d").glob("[!.]*"))
        raise FaultError(f"no fault {name} (there are: {', '.join([*HARDWARE_FAULTS, *others])})")
    fault = new_fault(name, parameters, when, BOOT_ID.read_text(encoding="ascii").strip())
    if name not in HARDWARE_FAULTS and fault.active:
        _run(paths, name, "apply", *(f"{key}={value}" for key, value in parameters.items()))
    with locked_book(paths.faults) as applied:
        applied[:] = [*(one for one in applied if one.name != name), fault]
    return fault


def clear(paths: Paths, name: str | None) -> list[str]:
    """Take back one fault, or all; what is not applied is no error."""
    cleared = [one for one in read_book(paths.faults) if name in {None, one.name}]
    for one in cleared:
        if one.name not in HARDWARE_FAULTS and one.active:
            _run(paths, one.name, "clear")
    names = {one.name for one in cleared}
    with locked_book(paths.faults) as applied:
        applied[:] = [one for one in applied if one.name not in names]
    return [one.name for one in cleared]


def _program(paths: Paths, name: str) -> Path:
    return paths.machine / "faults.d" / name


def _run(paths: Paths, name: str, *arguments: str) -> None:
    command = [str(_program(paths, name)), *arguments]
    reply = subprocess.run(command, check=False, capture_output=True, text=True, timeout=300)
    if reply.returncode != 0:
        raise FaultError(f"{name} {arguments[0]} failed: {(reply.stderr or reply.stdout).strip()[-400:]}")


def _pair(argument: str) -> tuple[str, str]:
    key, equals, value = argument.partition("=")
    if not equals or not key:
        raise FaultError(f"{argument}: must be key=value")
    return key, value
