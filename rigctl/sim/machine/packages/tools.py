"""Stand-ins for packages whose programs would measure the host's hardware instead of the rig's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .deb import Package, Packed

if TYPE_CHECKING:
    from collections.abc import Sequence

PROGRAMS = "/usr/local/lib/rigsim/shims/packaged"
"""Where an image keeps the programs that come with these packages only."""


def tool_packages(components: Sequence[str]) -> list[Package]:
    """Return fio and nvme-cli, in the versions of Ubuntu 22.04; in its part universe, where the archive has one."""
    section = "universe/utils" if "universe" in components else "utils"
    return [
        _package("fio", "3.28-1", "flexible I/O tester", "/usr/bin/fio", section),
        _package("nvme-cli", "1.16-3", "NVMe management tool", "/usr/sbin/nvme", section),
    ]


def _package(name: str, version: str, description: str, program: str, section: str) -> Package:
    link = f"{PROGRAMS}/{program.rpartition('/')[2]}"
    return Package(
        name=name,
        version=version,
        description=description,
        relations={"Depends": "python3"},
        files=(Packed(program, link=link),),
        section=section,
    )
