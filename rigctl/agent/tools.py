"""What the load steps need: where it is on this rig, in which version, and the remedy when it is not there."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

from .errors import ToolMissing

TIMEOUT_S = 30
COMPARE_FILES = ("compare.fatbin", "compare.ptx")
"""gpu-burn's kernel beside it; older versions built a .ptx."""


def gpu_burn(folder: str) -> tuple[Path, str]:
    """Where gpu-burn is and what its compare file is called; ToolMissing with the remedy."""
    program = Path(folder) / "gpu_burn"
    if not os.access(program, os.X_OK):
        raise ToolMissing("gpu_burn", f"gpu-burn is not at {program}", "run `rigctl provision` (role gpu_burn)")
    for name in COMPARE_FILES:
        if (program.parent / name).is_file():
            return program, name
    raise ToolMissing(
        "gpu_burn",
        f"no {COMPARE_FILES[0]} beside {program}",
        "run `rigctl provision` (role gpu_burn) to build it again",
    )


def stress_ng() -> str:
    """Where stress-ng is; ToolMissing with the remedy."""
    found = shutil.which("stress-ng")
    if found is None:
        raise ToolMissing("stress_ng", "stress-ng is not installed", "run `rigctl provision` (role cpu_burn)")
    return found


def torch_python(venv: str) -> str:
    """The Python of the environment that holds torch; ToolMissing with the remedy."""
    program = Path(venv) / "bin" / "python"
    if not os.access(program, os.X_OK):
        raise ToolMissing("torch", f"no Python environment at {venv}", "run `rigctl provision` (role pytorch)")
    return str(program)


def find_tools(gpu_burn_dir: str, venv: str) -> dict[str, Any]:
    """All tools, as `ToolFacts`; None = not installed."""
    burner = Path(gpu_burn_dir) / "gpu_burn"
    python = Path(venv) / "bin" / "python"
    return {
        "gpu_burn": str(burner) if os.access(burner, os.X_OK) else None,
        "gpu_burn_build": _build_of(burner.with_name("build.json")),
        "stress_ng": shutil.which("stress-ng"),
        "sensors": shutil.which("sensors"),
        "torch_python": str(python) if os.access(python, os.X_OK) else None,
        "torch": _torch_version(python),
        "nvcc": _nvcc_version(),
    }


def _build_of(path: Path) -> dict[str, str]:
    """How gpu-burn was built, as the role wrote it; empty where it wrote nothing that can be read."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return {str(key): str(value) for key, value in found.items()} if isinstance(found, dict) else {}


def _said_by(*command: str) -> str | None:
    """What a program prints; None when it is not there, fails or does not end."""
    try:
        done = subprocess.run(command, capture_output=True, timeout=TIMEOUT_S, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.decode(errors="replace")


def _torch_version(python: Path) -> str | None:
    """Version of torch in an environment, without the seconds that importing it takes."""
    if not os.access(python, os.X_OK):
        return None
    said = _said_by(str(python), "-I", "-c", "import importlib.metadata as m; print(m.version('torch'))")
    return said.strip() if said else None


def _nvcc_version() -> str | None:
    """Version of the CUDA toolkit: the one that /usr/local/cuda points to, else on PATH, else the newest."""
    beside = sorted(Path("/usr/local").glob("cuda-*/bin/nvcc"), key=_version_key, reverse=True)
    for program in ("/usr/local/cuda/bin/nvcc", shutil.which("nvcc"), *map(str, beside)):
        found = re.search(r"release (\d+\.\d+)", (_said_by(program, "--version") if program else None) or "")
        if found:
            return found.group(1)
    return None


def _version_key(path: Path) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", path.parts[3])))
