"""What look.py says of a rig, as types; with what only the controller knows put beside it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict

UUID = re.compile(r"\(UUID: (GPU-[0-9a-f-]+)\)")
_BRANCHED = re.compile(r"^(?:lib|xserver-xorg-video-)?nvidia-(?:[a-z0-9]+-)*?(\d{3})(?:-|$)")


class _Fact(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Space(_Fact):
    """Free space of one file system."""

    free_bytes: int
    free_files: int | None
    read_only: bool


class AptLock(_Fact):
    """Who holds one of apt's locks."""

    path: str
    pid: int
    command: str


class SecureBoot(_Fact):
    """What the firmware lets be loaded."""

    on: bool
    key_enrolled: bool
    """The rig's own signing key is known to the firmware."""
    signer: str
    """Who signed the driver's module that is installed; empty for nobody, or no module."""


class Kernel(_Fact):
    """What it takes to build the driver for one kernel."""

    release: str
    headers: bool
    headers_offered: bool
    """apt could install them."""
    module: bool
    """A driver module is there for this kernel, built or prebuilt."""
    compiler_major: int | None
    """Of the gcc that built the kernel."""


class Unattended(_Fact):
    """Upgrades that nobody asks for."""

    on: bool
    never: tuple[str, ...]
    """Patterns of packages that are left alone."""


class SystemFacts(_Fact):
    """Everything that look.py prints."""

    system: str
    has_apt: bool
    space: dict[str, Space]
    """Mount point → its space; `/boot` only where it is one."""
    initrd_bytes: int
    """The largest initial RAM disk in /boot."""
    clock_synchronised: bool
    lists_read: bool
    """apt has ever read what its sources offer."""
    apt_locks: tuple[AptLock, ...]
    cloud_init: str
    half_done: str
    """`dpkg --audit`: empty when every package is whole."""
    secure_boot: SecureBoot
    nouveau: bool
    nouveau_barred: bool
    kernels: tuple[Kernel, ...]
    """The running one, then the next boot's where that is another."""
    compilers: tuple[int, ...]
    """Major versions of the gcc programs that are installed."""
    dkms: tuple[str, ...]
    packages: dict[str, str]
    held: tuple[str, ...]
    unattended: Unattended
    reboot: bool
    reboot_for: tuple[str, ...]
    loaded: str
    """Version of the loaded module."""
    library: str
    """Version of the NVML library that programs find."""
    cards_on_bus: tuple[str, ...]
    cards: tuple[str, ...]
    """UUIDs that root's nvidia-smi lists."""
    cards_error: str


@dataclass(frozen=True)
class RigFacts:
    """A rig's system, and what was asked of it."""

    name: str
    user: str
    system: SystemFacts
    asked_branch: str
    """`nvidia_driver_branch`."""
    asked_cards: int
    """`parts.gpu_count` of the spec."""
    clock_offset_s: float
    """The rig's clock − the controller's, seconds."""
    login_view: str = ""
    """What the login's own `nvidia-smi -L` says, and CUDA_VISIBLE_DEVICES where it is set."""

    @property
    def login_cards(self) -> tuple[str, ...]:
        """UUIDs that the login's own nvidia-smi lists."""
        return tuple(UUID.findall(self.login_view))

    @property
    def cuda_visible(self) -> tuple[str, ...] | None:
        """The devices to which the login's environment narrows CUDA; None where it does not."""
        found = re.search(r"^CUDA_VISIBLE_DEVICES=(.*)$", self.login_view, re.MULTILINE)
        if found is None:
            return None
        # CUDA takes devices up to the first that is none, such as -1 or NoDevFiles.
        named = [word.strip() for word in found[1].split(",")]
        valid = [bool(re.fullmatch(r"\d+|(GPU|MIG)-[0-9a-f-]+", word)) for word in named]
        return tuple(named[: valid.index(False)] if False in valid else named)

    @property
    def login_says(self) -> str:
        """What nvidia-smi said to the login instead of cards, one line."""
        lines = [line.strip() for line in self.login_view.splitlines()]
        return " ".join(line for line in lines if line and "UUID:" not in line and "=" not in line)[:200]

    @property
    def driver_packages(self) -> dict[str, str]:
        """Branch → one installed package of it."""
        found: dict[str, str] = {}
        for package in self.system.packages:
            named = branch_of_package(package)
            if named:
                found.setdefault(named, package)
        return found

    @property
    def has_driver(self) -> bool:
        """Whether some driver is installed: then provisioning has begun here."""
        return bool(self.system.library or self.driver_packages)


def branch(version: str) -> str:
    """`515.105.01` → 515."""
    return version.partition(".")[0]


def branch_of_package(name: str) -> str:
    """`libnvidia-compute-515` → 515; empty for a package that belongs to no branch."""
    found = _BRANCHED.match(name)
    return found[1] if found else ""
