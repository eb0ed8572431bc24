"""The fabric manager of a rig with NVSwitches: a service of systemd, and what happens to the links without it."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import module
from .state import write_atomically

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .faults import Applied
    from .paths import Paths

FAULT = "fabric_manager_off"
NAME = "nvidia-fabricmanager.service"
FOLDER = Path("/run/systemd/system")
UNIT = """[Unit]
Description=NVIDIA fabric manager service
StartLimitIntervalSec=0

[Service]
ExecStart=/usr/local/sbin/nv-fabricmanager
Restart=on-failure
RestartSec=5
"""
"""It comes up by itself once the driver is loaded."""
TIMEOUT_S = 10


def follow(paths: Paths, identity: Mapping[str, Any], active: Sequence[Applied]) -> None:
    """Let the service run, or not, as the faults have it; only on a rig whose cards hang on switches."""
    if not identity["links"].get("switches") or paths.run != Path("/run/rigsim"):
        return
    if not (FOLDER / NAME).exists():
        FOLDER.mkdir(parents=True, exist_ok=True)
        write_atomically(FOLDER / NAME, UNIT)
        _systemctl("daemon-reload")
    _systemctl("--no-block", "stop" if any(one.name == FAULT for one in active) else "start", NAME)


def _systemctl(*words: str) -> None:
    subprocess.run(["systemctl", *words], check=True, capture_output=True, timeout=TIMEOUT_S)


def nv_fabricmanager(paths: Paths, arguments: list[str]) -> int:
    """`--version`, or the service itself, which is there and does nothing."""
    version = module.loaded_version(paths)
    if version is None:
        sys.stderr.write("fabric manager: the NVIDIA driver is not loaded\n")
        return 1
    if "--version" in arguments or "-v" in arguments:
        sys.stdout.write(f"Fabric Manager version is : {version}\n")
        return 0
    signal.pause()
    return 0
