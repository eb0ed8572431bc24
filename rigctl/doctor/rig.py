"""One rig, from the outside in: both ways to reach it, root, Python, then what its system shows."""

from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import ValidationError

from rigctl.doctor.ansible_way import AnsibleReply, ask_ansible
from rigctl.doctor.driver_steps import DRIVER_STEPS
from rigctl.doctor.facts import RigFacts, SystemFacts
from rigctl.doctor.finding import Finding, LeftOut, RigExamination, climb
from rigctl.doctor.system_steps import SYSTEM_STEPS
from rigctl.errors import CommandFailed, HostKeyChanged, HostKeyUnknown, LoginRefused, RigError, RigUnreachable
from rigctl.fleet.pool import for_each
from rigctl.fleet.ssh import RigConnection

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pydantic import SecretStr

    from rigctl.model.rig import Rig

STEPS = ("reachable", "host key", "login", "sudo", "python3", "look")
"""What is asked of a rig first, in this order; where one fails, nothing after it can be asked."""
ANSIBLE = "Ansible's way in"
SYSTEM = "its system"
"""Everything that look.py would have shown."""
_RIG_PYTHON = (3, 10)
"""The agent is written for the Python of Ubuntu 22.04."""
_QUICK_S = 20
_LOOK_S = 120
_LOOK = Path(__file__).with_name("look.py")
_LOGIN_CARDS = "nvidia-smi -L; env | grep '^CUDA_VISIBLE_DEVICES='"
"""Asked of a login shell, as people of this login have it."""


@dataclass
class _Looked:
    """What rigctl's own way in has shown."""

    findings: tuple[Finding, ...]
    left_out: tuple[LeftOut, ...] = ()
    broken: str = ""
    """The step of STEPS at which it ended."""


def examine_rigs(
    rigs: Sequence[Rig], inventory: Path | None, become_password: SecretStr | None = None
) -> Iterator[RigExamination]:
    """Look at every rig at once, each as it finishes. One rig's trouble is its own finding.

    `become_password` is sudo's for rigs whose inventory has none.

    Raises:
        UsageError: Ansible itself cannot be run here.
    """
    with ThreadPoolExecutor(max_workers=1) as other:
        asked = other.submit(ask_ansible, inventory, [rig.name for rig in rigs], become_password)
        equipped = [rig.with_become_password(become_password) if become_password else rig for rig in rigs]
        for finished in for_each(equipped, _look_inside):
            rig = finished.rig
            yield _with_ansible(rig, finished.value, asked.result()[rig.name], inventory)


def _look_inside(rig: Rig) -> _Looked:
    """Connect, log in, ask for root and for Python, then climb the ladder."""
    connection = RigConnection(rig.login, rig.name)
    passed: list[Finding] = []
    try:
        connection.connect()
        place = f"{rig.login.address} port {rig.login.port}"
        passed += [
            Finding(rig.name, "reachable", ok=True, found=place),
            Finding(rig.name, "host key", ok=True, found="trusted"),
            Finding(rig.name, "login", ok=True, found=connection.user),
        ]
        passed.append(_sudo(rig, connection))
        python, offset_s = _rig_python(rig, connection)
        passed.append(python)
        facts = _facts(rig, connection, offset_s)
    except RigError as error:
        return _ended(rig, passed, error)
    finally:
        connection.close()
    findings, left_out = climb(rig.name, (*SYSTEM_STEPS, *DRIVER_STEPS), facts)
    return _Looked((*passed, *findings), left_out)


def _with_ansible(rig: Rig, looked: _Looked, reply: AnsibleReply, inventory: Path | None) -> RigExamination:
    """Put Ansible's way in beside rigctl's own: said where it differs, left out where it has the same cause."""
    findings, left_out = looked.findings, looked.left_out
    connected = looked.broken not in STEPS[:3]
    if not connected and reply.reached:
        last = findings[-1]
        fix = f"Ansible's ssh gets in, rigctl's own way does not: {_why_not(rig)}; {last.fix}"
        findings = (*findings[:-1], Finding(rig.name, last.what, ok=False, found=last.found, fix=fix))
    if reply.is_root:
        seen = Finding(rig.name, ANSIBLE, ok=True, found="ssh and sudo work")
    elif not connected or (looked.broken == "sudo" and reply.reached):
        return RigExamination(rig, findings, (LeftOut(rig.name, ANSIBLE, looked.broken), *left_out))
    else:
        where = f"-i {inventory} " if inventory else "-i inventory "
        command = f"ansible {where}{rig.name} --become -m ansible.builtin.raw -a 'id -u' -vvv"
        what = "" if reply.reached else "its ssh does not get in: "
        seen = Finding(rig.name, ANSIBLE, ok=False, found=f"{what}{reply.said}", fix=f"run: {command}")
    place = next((n for n, one in enumerate(findings) if one.what == "sudo" or not one.ok), len(findings) - 1) + 1
    return RigExamination(rig, (*findings[:place], seen, *findings[place:]), left_out)


def _why_not(rig: Rig) -> str:
    """Say what OpenSSH's client has on this way and paramiko has not."""
    only = rig.login.openssh_only
    return f"it knows no {', '.join(only)}" if only else "it takes key files and the agent in SSH_AUTH_SOCK alone"


def _ended(rig: Rig, passed: list[Finding], error: RigError) -> _Looked:
    step = _failed_step(error, len(passed))
    known = passed or [Finding(rig.name, what, ok=True, found="yes") for what in STEPS[: STEPS.index(step)]]
    found = error.message.removeprefix(f"{rig.name}: ")
    failed = Finding(rig.name, step, ok=False, found=found, fix=error.hint)
    after = [*STEPS[STEPS.index(step) + 1 : -1], SYSTEM] if step != STEPS[-1] else []
    return _Looked((*known, failed), tuple(LeftOut(rig.name, what, step) for what in after), broken=step)


def _failed_step(error: RigError, passed: int) -> str:
    """Name the step that `error` belongs to: by its kind while connecting, by its turn afterwards."""
    if passed:
        return STEPS[passed]
    if isinstance(error, (HostKeyUnknown, HostKeyChanged)):
        return "host key"
    if isinstance(error, LoginRefused):
        return "login"
    return "reachable" if isinstance(error, RigUnreachable) else "host key"


def _sudo(rig: Rig, connection: RigConnection) -> Finding:
    reply = connection.run(["id", "-u"], timeout_s=_QUICK_S, root=True)
    if reply.stdout.strip() != b"0":
        raise CommandFailed(
            f"{rig.name}: sudo runs commands as user id {reply.stdout.decode(errors='replace').strip()}, not as root",
            "look into /etc/sudoers on the rig: runas_default must be root",
        )
    return Finding(rig.name, "sudo", ok=True, found="root")


def _rig_python(rig: Rig, connection: RigConnection) -> tuple[Finding, float]:
    """Ask for Python; what it says of the time is the rig's clock − ours, seconds, to half of this command's time."""
    program = "import sys, time; print(*sys.version_info[:3], time.time())"
    started = time.time()
    reply = connection.run(["python3", "-c", program], timeout_s=_QUICK_S)
    halfway = (started + time.time()) / 2
    words = reply.stdout.decode(errors="replace").split()
    if reply.exit_status != 0 or len(words) != 4 or not all(word.isdigit() for word in words[:3]):  # noqa: PLR2004
        raise CommandFailed(f"{rig.name}: python3 does not run", "run there: apt-get install python3-minimal")
    found = tuple(int(word) for word in words[:3])
    dotted = ".".join(words[:3])
    if found < _RIG_PYTHON:
        raise CommandFailed(
            f"{rig.name}: python3 is {dotted}, the agent needs {'.'.join(map(str, _RIG_PYTHON))} or newer",
            "install Ubuntu 22.04 or newer on the rig",
        )
    return Finding(rig.name, "python3", ok=True, found=dotted), float(words[3]) - halfway


def _facts(rig: Rig, connection: RigConnection, offset_s: float) -> RigFacts:
    reply = connection.run(["python3", "-I", "-"], timeout_s=_LOOK_S, stdin=_LOOK.read_bytes(), root=True)
    try:
        system = SystemFacts.model_validate(json.loads(reply.stdout))
    except (ValueError, ValidationError) as error:
        said = reply.stderr.decode(errors="replace").strip().splitlines()
        why = said[-1] if said else f"exit status {reply.exit_status}"
        raise CommandFailed(
            f"{rig.name}: the look at its system did not end: {why}",
            f"run: ssh {connection.user}@{rig.login.address} sudo python3 -V; and look for a full disk or memory",
        ) from error
    text = _cards_of_login(connection) if system.loaded else ""
    return RigFacts(
        name=rig.name,
        user=connection.user,
        system=system,
        asked_branch=rig.spec.software.driver_branch,
        asked_cards=rig.spec.parts.gpu_count,
        clock_offset_s=offset_s,
        login_view=text,
    )


def _cards_of_login(connection: RigConnection) -> str:
    reply = connection.run(["sh", "-lc", _LOGIN_CARDS], timeout_s=_QUICK_S)
    return reply.stdout.decode(errors="replace")
