"""The machine that rigctl runs on: programs, words and space that everything else needs."""

from __future__ import annotations

import locale
import platform
import shutil
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from rigctl.doctor.finding import CONTROLLER, Finding

_MIN_FREE_BYTES = 1 << 30
"""A night of twelve rigs at 2 samples a second, 700 bytes each, is half of it."""
_MIN_ANSIBLE = (2, 17)
RIGS_NEED = frozenset({"ansible-core", "OpenSSH client", "locale"})
"""Without these no inventory can be read, so no rig can be asked."""


def examine_controller(runs: Path) -> tuple[Finding, ...]:
    """Look at this machine; `runs` is where run directories go."""
    return (_python(), _ansible(), _openssh(), _locale(), _disk(runs))


def _python() -> Finding:
    # requires-python in pyproject.toml keeps older ones from installing rigctl at all.
    return Finding(CONTROLLER, "Python", ok=True, found=platform.python_version())


def _ansible() -> Finding:
    fix = f"run: {sys.executable} -m pip install 'ansible-core>={_dotted(_MIN_ANSIBLE)}'"
    try:
        found = version("ansible-core")
    except PackageNotFoundError:
        return Finding(CONTROLLER, "ansible-core", ok=False, found="not installed", fix=fix)
    if not (Path(sys.executable).parent / "ansible-playbook").exists():
        return Finding(CONTROLLER, "ansible-core", ok=False, found=f"{found}, but without its programs", fix=fix)
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
