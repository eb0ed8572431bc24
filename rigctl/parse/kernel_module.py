"""What there is of the driver's kernel module: `dkms status`, `/proc/driver/nvidia/version`, `mokutil --sb-state`."""

from __future__ import annotations

import re
from dataclasses import dataclass

from rigctl.parse import ParseError

_DKMS, _LOADED, _SECURE_BOOT = "`dkms status`", "/proc/driver/nvidia/version", "`mokutil --sb-state`"
_BUILD = re.compile(
    r"(?P<name>[\w.+-]+)(?:/|, )(?P<version>[\w.:+~-]+)(?:, (?P<kernel>[\w.+~-]+), (?P<arch>\w+))?"
    r": (?P<state>added|built|installed|broken)(?P<notes>(?: \((?:WARNING! |Original |original_).*\))*)"
    r"(?: \(original_module exists\))?"
)
_NVRM = re.compile(
    r"NVRM version: NVIDIA UNIX (?P<open>Open Kernel Module for )?(?P<arch>\w+?)(?: Kernel Module)?"
    r"  (?P<version>\d{3,4}(?:\.\d{1,4}){1,2})  .*"
)
_GCC = re.compile(r"GCC version:\s.*|Clang version:\s.*")
_STATES = {"SecureBoot enabled": True, "SecureBoot disabled": False}
_SETUP = "Platform is in Setup Mode"
_NO_EFI = re.compile(r"EFI variables are not supported on this system|This system doesn't support Secure Boot")


@dataclass(frozen=True)
class Build:
    """One line of `dkms status`."""

    name: str
    """`nvidia`, `nvidia-srv` and `nvidia-current` are the driver."""
    version: str
    kernel: str | None
    """None for a module that is only registered."""
    state: str
    """`added`, `built`, `installed`, or `broken` where its source is gone."""
    warning: bool
    """DKMS says that the installed module is not the one it built."""

    @property
    def module(self) -> str:
        """As dkms takes it: `nvidia/515.105.01`."""
        return f"{self.name}/{self.version}"


@dataclass(frozen=True)
class LoadedModule:
    """The loaded driver, in the kernel's words."""

    version: str
    is_open: bool


@dataclass(frozen=True)
class SecureBoot:
    """What the firmware says."""

    on: bool
    setup_mode: bool = False
    efi: bool = True


def parse_dkms(text: str) -> tuple[Build, ...]:
    """Read `dkms status`; nothing registered is an empty text. Raises ParseError with the first unknown line."""
    builds = []
    for line in filter(None, map(str.strip, text.splitlines())):
        match = _BUILD.fullmatch(line)
        if match is None or (match["kernel"] is None) is not (match["state"] in {"added", "broken"}):
            raise ParseError(_DKMS, line)
        builds.append(
            Build(match["name"], match["version"], match["kernel"], match["state"], "WARNING" in match["notes"])
        )
    return tuple(builds)


def parse_loaded(text: str) -> LoadedModule:
    """Read `/proc/driver/nvidia/version`. Raises ParseError with the first line of an unknown form."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    match = _NVRM.fullmatch(lines[0]) if lines else None
    if match is None:
        raise ParseError(_LOADED, lines[0] if lines else "")
    if wrong := next((line for line in lines[1:] if not _GCC.fullmatch(line)), None):
        raise ParseError(_LOADED, wrong)
    return LoadedModule(match["version"], match["open"] is not None)


def parse_secure_boot(text: str) -> SecureBoot:
    """Read `mokutil --sb-state`. Raises ParseError for any other words."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if len(lines) == 1 and _NO_EFI.fullmatch(lines[0]):
        return SecureBoot(on=False, efi=False)
    if not lines or lines[0] not in _STATES or any(line != _SETUP for line in lines[1:]):
        wrong = next((line for line in lines if line not in _STATES and line != _SETUP), "")
        raise ParseError(_SECURE_BOOT, wrong)
    return SecureBoot(_STATES[lines[0]], setup_mode=len(lines) > 1)
