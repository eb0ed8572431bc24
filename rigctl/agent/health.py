"""Slurm's HealthCheckProgram: has this node still what it was accepted with? If not, it is drained and says why.

slurmd calls it without a word, as root, and ends it after 60 s (slurm.conf, HealthCheckProgram). It puts no load on
anything, changes nothing but the node's state in Slurm, and never gives a node back: people do that.
"""

from __future__ import annotations

import argparse
import json
import re
import socket
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import kernel as kernel_log
from .facts import cards_in_time
from .main import HEALTH as PROGRAM

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

EXPECTED = Path("/etc/rigctl/health.json")
VERSION = 1
SCONTROL_S = 5
"""Two questions to Slurm and a driver that hangs for its 40 s stay below slurmd's 60 s, seconds."""
OK, UNHEALTHY, UNKNOWN = 0, 1, 3
MOST_SAID = 200
"""Slurm cuts a reason that is longer."""
_BUS = r"([0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2})"
_XID = re.compile(rf"NVRM:\s*Xid\s*\((?:PCI:)?{_BUS}[^)]*\)\s*:\s*(\d{{1,6}})\b")
_FALLEN = re.compile(rf"NVRM:.*?\bGPU (?:at )?(?:PCI:)?{_BUS}\b.*fallen off the bus")
_FALLEN_OFF = 79
_STATE = re.compile(r"(?:^|\s)State=(\S+)")


def run(argv: Sequence[str]) -> int:
    """Look, say what is wrong a line each, and drain; 0 healthy, 1 not, 3 where it could not be seen."""
    parser = argparse.ArgumentParser(prog=PROGRAM, description="Is this node as it was accepted? Drains it if not.")
    parser.add_argument("--no-drain", action="store_true", help="say it, and leave the node's state in Slurm as it is")
    asked = parser.parse_args(argv)
    try:
        expected = read_expected(EXPECTED)
    except ValueError as error:
        print(f"{PROGRAM}: {error}", file=sys.stderr)  # noqa: T201 - its own protocol: lines for people and slurmd's log
        return UNKNOWN
    messages, unread = kernel_log.read_kernel()
    errors: list[str] = []
    wrong = findings(expected, cards_in_time(errors), [message["message"] for message in messages])
    for line in wrong:
        print(f"{PROGRAM}: {line}")  # noqa: T201
    if wrong and not asked.no_drain:
        print(f"{PROGRAM}: {drain(node_of(expected), wrong, ask_slurm)}")  # noqa: T201
    if wrong:
        return UNHEALTHY
    if unread is not None:
        print(f"{PROGRAM}: the kernel's log was not read: {unread}", file=sys.stderr)  # noqa: T201
        return UNKNOWN
    return OK


def read_expected(path: Path) -> dict[str, Any]:
    """What the rig was installed with. Raises ValueError with what to do."""
    again = "install it again with `rigctl health install`"
    try:
        expected = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ValueError(f"{path}: {error.strerror}; {again}") from error
    except ValueError as error:
        raise ValueError(f"{path} is damaged ({error}); {again}") from error
    if not isinstance(expected, dict) or expected.get("version") != VERSION:
        raise ValueError(f"{path} is of another version; {again}")
    return expected


def node_of(expected: Mapping[str, Any]) -> str:
    """The node's name in Slurm."""
    return str(expected.get("node") or socket.gethostname().partition(".")[0])


def findings(expected: Mapping[str, Any], seen: Mapping[str, Any], kernel: Sequence[str]) -> list[str]:
    """Say what is not as it was, a line each; the kernel's Xids first, because the rest often follows from them."""
    found = _xids(expected, kernel)
    driver = seen["driver"]
    if driver.get("nvml_error"):
        return [*found, f"the driver does not answer: {driver['nvml_error']}"]
    if driver.get("loaded") != driver.get("library"):
        found.append(f"driver {driver.get('loaded')} is loaded, its library is {driver.get('library')}: reboot")
    present = {card["uuid"]: card for card in seen["gpus"]}
    for card in expected["cards"]:
        now = present.get(card["uuid"])
        found += [f"{card['subject']} is gone"] if now is None else _of_card(card, now)
    return found


def _xids(expected: Mapping[str, Any], kernel: Sequence[str]) -> list[str]:
    failing = set(expected["failing_xids"])
    names = {_bus(card["pci_bus_id"]): card["subject"] for card in expected["cards"]}
    found: dict[tuple[str, int], int] = {}
    for line in kernel:
        match, fallen = _XID.search(line), _FALLEN.search(line)
        if match is None and fallen is None:
            continue
        bus, number = (match[1], int(match[2])) if match is not None else (fallen[1] if fallen else "", _FALLEN_OFF)
        # A number that no catalogue had when this was installed is taken as a fault, as in an acceptance.
        if number in failing or number > expected["highest_known_xid"]:
            found[bus, number] = found.get((bus, number), 0) + 1
    return [
        f"{names.get(_bus(bus), bus)}: Xid {number} in this boot" + (f", {times} times" if times > 1 else "")
        for (bus, number), times in found.items()
    ]


def _bus(bus_id: str) -> tuple[int, ...]:
    """The kernel writes four digits of domain, NVML eight and a function."""
    return tuple(int(part, 16) for part in bus_id.partition(".")[0].split(":"))


def _of_card(card: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    subject, found = card["subject"], []
    active = sum(1 for link in now.get("links") or () if link["active"])
    if active < card["links"]:
        found.append(f"{subject}: {active} of {card['links']} NVLinks are up")
    rows = now.get("remapped_rows") or {}
    if rows.get("failed"):
        found.append(f"{subject}: a row of its memory could not be replaced")
    elif rows.get("pending"):
        found.append(f"{subject}: a row of its memory waits for a reset to be replaced")
    errors = (now.get("ecc") or {}).get("uncorrected")
    if errors:
        found.append(f"{subject}: {errors} memory errors that could not be corrected")
    return found


def ask_slurm(*words: str) -> tuple[int, str]:
    """Run a command of Slurm's: exit status and what it said."""
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=SCONTROL_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return 127, str(error)
    return done.returncode, done.stdout if done.returncode == 0 else done.stderr or done.stdout


def drain(node: str, wrong: Sequence[str], ask: Callable[..., tuple[int, str]]) -> str:
    """Drain the node with the findings as reason; a drain that is there already, whoever made it, stays as it is."""
    status, said = ask("scontrol", "--oneliner", "show", "node", node)
    if status:
        return f"not drained: scontrol: {said.strip() or status}"
    state = _STATE.search(said)
    if state is not None and "DRAIN" in state[1].upper():
        return f"{node} is drained already"
    more = f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
    reason = f"rigctl: {wrong[0]}"[: MOST_SAID - len(more)] + more
    status, said = ask("scontrol", "update", f"NodeName={node}", "State=DRAIN", f"Reason={reason}")
    return f"not drained: scontrol: {said.strip() or status}" if status else f"{node} is drained"
