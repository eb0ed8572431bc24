"""The agent as one file: a zipapp of rigctl/agent and pynvml, the same bytes for the same sources."""

from __future__ import annotations

import hashlib
import io
import zipfile
from dataclasses import dataclass
from functools import cache
from importlib.metadata import distribution
from importlib.resources import files
from pathlib import Path

PACKAGE = "rigctl_agent"
"""The agent's name inside the bundle: nothing there is called rigctl, and nothing of rigctl is there."""
_MAIN = f"import sys\n\nfrom {PACKAGE}.main import main\n\nsys.exit(main())\n"
_DATE = (1980, 1, 1, 0, 0, 0)
"""Every member's date, so that the bytes depend on the sources only."""


@dataclass(frozen=True)
class Bundle:
    """The agent's file."""

    data: bytes
    sha256: str


@cache
def build_bundle() -> Bundle:
    """Pack the agent; the same sources give the same bytes on every machine.

    Raises PackageNotFoundError when nvidia-ml-py is not installed.
    """
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, text in sorted(_members().items()):
            member = zipfile.ZipInfo(name, _DATE)
            member.external_attr = 0o644 << 16
            # Deflate differs between versions of zlib; stored bytes do not, and they are sent once per rig.
            archive.writestr(member, text, zipfile.ZIP_STORED)
    data = packed.getvalue()
    return Bundle(data, hashlib.sha256(data).hexdigest())


def _members() -> dict[str, bytes]:
    agent = files("rigctl.agent")
    members = {
        f"{PACKAGE}/{folder}{entry.name}": entry.read_bytes()
        for folder in ("", "scripts/")
        for entry in (agent / folder).iterdir()
        if entry.name.endswith(".py")
    }
    # By its distribution: a package named pynvml would bring another module of this name.
    pynvml = Path(str(distribution("nvidia-ml-py").locate_file("pynvml.py")))
    return {**members, "pynvml.py": pynvml.read_bytes(), "__main__.py": _MAIN.encode()}
