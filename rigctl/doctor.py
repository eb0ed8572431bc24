"""Is the controller fit, and is each rig reachable and fit; each finding with its fix. Nothing is changed here."""

from __future__ import annotations

import locale
import platform
import shutil
import subprocess
import sys
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

from rigctl.errors import CommandFailed, HostKeyChanged, HostKeyUnknown, LoginRefused, RigError, RigUnreachable
from rigctl.fleet.pool import for_each
from rigctl.fleet.ssh import RigConnection, Untrusted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from rigctl.model.rig import Rig

CONTROLLER = "controller"
STEPS = ("reachable", "host key", "login", "sudo", "python3")
"""What is asked of a rig, in this order; where one fails, the next ones cannot be asked."""

_MIN_FREE_BYTES = 1 << 30
"""A night of twelve rigs at 2 samples a second, 700 bytes each, is half of it."""
_MIN_ANSIBLE = (2, 17)
_RIG_PYTHON = (3, 10)
"""The agent is written for the Python of Ubuntu 22.04."""
_QUICK_S = 20


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at."""

    subject: str
    """`controller`, or the rig."""
    what: str
    ok: bool
    found: str
    fix: str = ""


@dataclass(frozen=True)
class RigExamination:
    """Everything that was seen of one rig."""

    rig: Rig
    findings: tuple[Finding, ...]
    untrusted: Untrusted | None = None
    """The key that the rig (or a jump host before it) showed, where none is trusted yet."""


def examine_controller(runs: Path) -> tuple[Finding, ...]:
    """Look at this machine; `runs` is where run directories go."""
    return (_python(), _ansible(), _openssh(), _locale(), _disk(runs))


def examine_rigs(rigs: Iterable[Rig]) -> Iterator[RigExamination]:
    """Look at every rig at once, each as it finishes. One rig's trouble is its own finding."""
    for finished in for_each(rigs, examine_rig):
        yield finished.value


def examine_rig(rig: Rig) -> RigExamination:
    """Connect, log in, ask for root and for Python."""
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
        passed.append(_rig_python(rig, connection))
    except RigError as error:
        return _with_failure(rig, passed, error)
    finally:
        connection.close()
    return RigExamination(rig, tuple(passed))


def not_recorded(examined: RigExamination, error: RigError) -> RigExamination:
    """Say of an untrusted rig that its key could not be recorded either."""
    rig = examined.rig
    failed = Finding(rig.name, "host key", ok=False, found=error.message, fix=error.hint)
    return RigExamination(rig, (*examined.findings[:-1], failed))


def _with_failure(rig: Rig, passed: list[Finding], error: RigError) -> RigExamination:
    step = _failed_step(error, len(passed))
    known = passed or [Finding(rig.name, what, ok=True, found="yes") for what in STEPS[: STEPS.index(step)]]
    found = error.message.removeprefix(f"{rig.name}: ")
    failed = Finding(rig.name, step, ok=False, found=found, fix=error.hint)
    return RigExamination(rig, (*known, failed), error if isinstance(error, Untrusted) else None)


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


def _rig_python(rig: Rig, connection: RigConnection) -> Finding:
    reply = connection.run(["python3", "-c", "import sys; print(*sys.version_info[:3])"], timeout_s=_QUICK_S)
    words = reply.stdout.split()
    if reply.exit_status != 0 or not all(word.isdigit() for word in words) or not words:
        raise CommandFailed(f"{rig.name}: python3 does not run", "run there: apt-get install python3-minimal")
    found = tuple(int(word) for word in words)
    if found < _RIG_PYTHON:
        raise CommandFailed(
            f"{rig.name}: python3 is {_dotted(found)}, the agent needs {_dotted(_RIG_PYTHON)} or newer",
            "install Ubuntu 22.04 or newer on the rig",
        )
    return Finding(rig.name, "python3", ok=True, found=_dotted(found))


def _python() -> Finding:
    # requires-python in pyproject.toml keeps older ones from installing rigctl at all.
    return Finding(CONTROLLER, "Python", ok=True, found=platform.python_version())


def _ansible() -> Finding:
    fix = f"run: {sys.executable} -m pip install 'ansible-core>={_dotted(_MIN_ANSIBLE)}'"
    try:
        found = version("ansible-core")
    except PackageNotFoundError:
        return Finding(CONTROLLER, "ansible-core", ok=False, found="not installed", fix=fix)
    new_enough = tuple(int(part) for part in found.split(".")[:2]) >= _MIN_ANSIBLE
    return Finding(CONTROLLER, "ansible-core", ok=new_enough, found=found, fix="" if new_enough else fix)


def _openssh() -> Finding:
    program = shutil.which("ssh")
    if program is None:
        fix = "run: apt-get install openssh-client"
        return Finding(CONTROLLER, "OpenSSH client", ok=False, found="not installed", fix=fix)
    said = subprocess.run([program, "-V"], capture_output=True, text=True, check=False)
    return Finding(CONTROLLER, "OpenSSH client", ok=True, found=said.stderr.strip().split(",")[0] or program)


def _locale() -> Finding:
    encoding = locale.getpreferredencoding(do_setlocale=False)
    ok = encoding.upper().replace("-", "") == "UTF8"
    fix = "" if ok else "run: export LC_ALL=C.UTF-8 (Ansible refuses to start otherwise)"
    return Finding(CONTROLLER, "locale", ok=ok, found=encoding, fix=fix)


def _disk(runs: Path) -> Finding:
    folder = runs.absolute()
    while not folder.exists():
        folder = folder.parent
    free = shutil.disk_usage(folder).free
    ok = free >= _MIN_FREE_BYTES
    fix = "" if ok else f"free {_gib(_MIN_FREE_BYTES)} there, or put the runs elsewhere: --runs DIR"
    return Finding(CONTROLLER, "disk", ok=ok, found=f"{_gib(free)} free for {runs}", fix=fix)


def _gib(size: int) -> str:
    return f"{size / (1 << 30):.1f} GiB"


def _dotted(numbers: tuple[int, ...]) -> str:
    return ".".join(str(number) for number in numbers)
