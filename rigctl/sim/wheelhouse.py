"""PyTorch for simulated rigs: CPU wheels that the controller's own pip fetches once; rigs see them read-only."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from rigctl.errors import RigctlError

if TYPE_CHECKING:
    from collections.abc import Callable

TORCH_VERSION = "2.13.0"
"""The PyTorch of simulated rigs. They train on the CPU, so no driver branch limits it."""

MAX_TORCH_BYTES = 400_000_000
"""The CPU wheel of 2.13 is 192 MB; a build for CUDA is larger by its libraries, which no simulated rig can use."""

_EXTRA = ("numpy",)
_PLATFORMS = ("manylinux_2_28_x86_64", "manylinux_2_17_x86_64", "manylinux2014_x86_64")
"""What a rig's C library runs; Ubuntu 22.04 has glibc 2.35, Debian 12 has 2.36."""
_PIP_TIMEOUT_S = 900
_MANIFEST = "wheels.json"


class NoCpuWheel(RigctlError):
    """This machine's pip offers no CPU build of PyTorch for the rig's Python."""


@dataclass(frozen=True)
class Wheelhouse:
    """A folder of wheels that suffices to install PyTorch on a rig without a network."""

    folder: Path
    torch_version: str
    """With the build's suffix where it has one, such as `2.13.0+cpu`."""
    python: str
    files: tuple[str, ...]


def ensure_wheelhouse(folder: Path, python: str, say: Callable[[str], None]) -> Wheelhouse:
    """Return the wheels for a rig's Python; fetch them when they are not all in `folder`.

    Args:
        folder: Where wheels are kept between runs.
        python: The rig's Python version, such as `3.11`.
        say: Called with a line of progress.

    Raises:
        NoCpuWheel: pip offers none, or only a build that is not for the CPU.
    """
    kept = _read_manifest(folder)
    if kept is not None and kept.python == python and kept.torch_version.split("+")[0] == TORCH_VERSION:
        return kept
    requirement, torch = _resolve(python)
    say(f"fetching PyTorch {torch['version']} for Python {python} (once; about 200 MB)")
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    _pip("download", "--quiet", f"--dest={folder}", *_target(python), requirement, *_EXTRA)
    files = tuple(sorted(path.name for path in folder.iterdir()))
    found = Wheelhouse(folder, torch["version"], python, files)
    described = {**asdict(found), "folder": str(folder)}
    (folder / _MANIFEST).write_text(json.dumps(described, indent=1), encoding="utf-8")
    return found


def _read_manifest(folder: Path) -> Wheelhouse | None:
    """Return what an earlier run kept; None when there is nothing or a file is gone."""
    try:
        kept = json.loads((folder / _MANIFEST).read_text(encoding="utf-8"))
        found = Wheelhouse(folder, kept["torch_version"], kept["python"], tuple(kept["files"]))
    except (FileNotFoundError, KeyError, json.JSONDecodeError):
        return None
    return found if all((folder / name).exists() for name in found.files) else None


def _resolve(python: str) -> tuple[str, dict[str, Any]]:
    """Return the requirement that leads to a CPU build, and the metadata of what pip would take for it."""
    reasons = []
    for requirement in (f"torch=={TORCH_VERSION}+cpu", f"torch=={TORCH_VERSION}"):
        try:
            report = json.loads(
                _pip("install", "--dry-run", "--quiet", "--ignore-installed", "--no-deps", "--report=-",
                     "--target=/nonexistent", *_target(python), requirement)
            )  # fmt: skip
        except NoCpuWheel as error:
            reasons.append(error.message)
            continue
        taken = report["install"][0]
        reason = refusal(taken["metadata"], _size_bytes(taken["download_info"]["url"]))
        if reason is None:
            return requirement, taken["metadata"]
        reasons.append(reason)
    raise NoCpuWheel("; ".join(reasons), "add an index of CPU builds to pip's configuration (PIP_EXTRA_INDEX_URL)")


def refusal(metadata: dict[str, Any], size_bytes: int | None) -> str | None:
    """Return why a build of PyTorch is not taken, or None: a build for CUDA would be gigabytes for each rig."""
    name = f"torch {metadata['version']}"
    needs = [one for one in metadata.get("requires_dist", []) if one.startswith(("nvidia-", "cuda-", "triton"))]
    if needs and "extra ==" not in needs[0]:
        return f"{name} is a build for CUDA (it needs {needs[0].split()[0].rstrip(';')})"
    if size_bytes is not None and size_bytes > MAX_TORCH_BYTES:
        return f"{name} has {size_bytes / 1e6:.0f} MB, so it is no CPU build"
    return None


def _size_bytes(url: str) -> int | None:
    """Return the size of the file at `url`; None where its server does not say."""
    parts = urlsplit(url)
    if parts.scheme == "file":
        return Path(unquote(parts.path)).stat().st_size
    request = urllib.request.Request(url, method="HEAD")  # noqa: S310 - pip chose it, and pip speaks http(s) and file
    try:
        with urllib.request.urlopen(request, timeout=30) as reply:  # noqa: S310
            length: str | None = reply.headers.get("Content-Length")
    except OSError:
        return None
    return int(length) if length is not None else None


def _target(python: str) -> list[str]:
    return [
        "--only-binary=:all:",
        "--implementation=cp",
        f"--python-version={python}",
        *[f"--platform={platform}" for platform in _PLATFORMS],
    ]


def _pip(*arguments: str) -> str:
    """Run the controller's pip with the user's own configuration, and return its output."""
    command = [sys.executable, "-m", "pip", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_PIP_TIMEOUT_S, check=False)
    if done.returncode != 0:
        last = [line for line in done.stderr.splitlines() if line.startswith("ERROR")] or done.stderr.splitlines()
        raise NoCpuWheel((last or ["pip failed"])[-1].removeprefix("ERROR: "), f"run by hand: {' '.join(command)}")
    return done.stdout
