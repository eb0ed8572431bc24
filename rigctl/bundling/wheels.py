"""PyTorch's wheels for another machine's Python, by this machine's pip."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from rigctl.errors import RigctlError

if TYPE_CHECKING:
    from collections.abc import Sequence

_TIMEOUT_S = 7200
"""A build for CUDA is 2.7 GB with its libraries."""
_MACHINES = {"amd64": "x86_64", "arm64": "aarch64"}
"""Debian's word for an architecture → the wheels'."""
_OLDEST_GLIBC_MINOR = 17


class WheelsMissing(RigctlError):
    """Pip cannot get the wheels."""


def platforms(libc: str, architecture: str) -> list[str]:
    """The platform tags of wheels that a machine with `glibc 2.35` and `amd64` runs, newest first.

    `linux_…` is among them: PyTorch's own index has builds under that tag.
    """
    machine = _MACHINES.get(architecture, architecture)
    minor = int(libc.rpartition(".")[2])
    tags = [f"manylinux_2_{number}_{machine}" for number in range(minor, _OLDEST_GLIBC_MINOR - 1, -1)]
    return [*tags, f"manylinux2014_{machine}", f"linux_{machine}"]


def fetch_wheels(
    requirements: Sequence[str], into: Path, *, python: str, tags: Sequence[str], sources: Sequence[str]
) -> list[Path]:
    """Fetch wheels with all that they need into a folder, each whole or not at all, and return them.

    Args:
        requirements: as pip takes them.
        into: where they go.
        python: the other machine's Python, such as `3.10`.
        tags: its platform tags.
        sources: pip's options that say where from.

    Raises:
        WheelsMissing: with pip's reason.
    """
    into.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".pip-", dir=into) as folder:
        target = ["--only-binary=:all:", "--implementation=cp", f"--python-version={python}"]
        target += [f"--platform={tag}" for tag in tags]
        words = ["download", "--quiet", "--disable-pip-version-check", "--no-input", f"--dest={folder}"]
        command = [sys.executable, "-m", "pip", *words, *target, *sources, *requirements]
        done = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
        if done.returncode != 0:
            errors = [line for line in done.stderr.splitlines() if line.startswith("ERROR")] or done.stderr.splitlines()
            reason = (errors or ["pip failed"])[-1].removeprefix("ERROR: ")
            raise WheelsMissing(
                f"{' '.join(requirements)} for Python {python}: {reason}",
                "see that this machine reaches the index (pytorch_index_url), and what goes together: rigctl compat",
            )
        fetched = []
        for path in sorted(Path(folder).iterdir()):
            shutil.move(path, into / path.name)
            fetched.append(into / path.name)
        return fetched
