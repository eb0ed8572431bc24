"""What rigs' role variables ask for, each thing once: what a bundle for them must hold."""

from __future__ import annotations

import base64
import urllib.request
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import yaml

from rigctl import assets
from rigctl.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

VARIABLES = (
    "base_packages", "base_time_sync", "cpu_burn_packages", "container_toolkit_install",
    "nvidia_driver_branch", "nvidia_driver_version", "nvidia_driver_source", "nvidia_driver_flavour",
    "nvidia_driver_modules", "nvidia_driver_allow_known_bad",
    "cuda_version", "cuda_more_versions", "cuda_source", "cuda_repo_line", "cuda_repo_key_url", "cuda_repo_key_path",
    "pytorch_version", "pytorch_build", "pytorch_index_url", "pytorch_wheelhouse", "pytorch_extra_packages",
    "pytorch_driver_branch",
    "gpu_burn_repo", "gpu_burn_commit",
)  # fmt: skip
"""The role variables that decide what is fetched."""

ROLE_PACKAGES = ("g++", "git", "make", "python3-venv")
"""What roles install under names that no variable holds; a test compares."""
_TIMEKEEPER = "systemd-timesyncd"
_DISTRIBUTION_TORCH = "python3-torch"
_KEY_TIMEOUT_S = 60


@dataclass(frozen=True)
class TorchWish:
    """Which PyTorch rigs ask for, and where it comes from; empty fields as in the role's variables."""

    version: str
    build: str
    driver: str
    """The driver's branch: `auto` is chosen by it."""
    index_url: str
    wheelhouse: str
    extra: tuple[str, ...]


@dataclass(frozen=True)
class DriverWish:
    """Which driver rigs ask for."""

    branch: str
    version: str
    source: str
    flavour: str
    modules: str
    allow_known_bad: bool

    def request(self) -> dict[str, Any]:
        """As the role's scripts take it."""
        known_bad = assets.roles_dir() / "nvidia_driver" / "files" / "known_bad.yml"
        listed = [] if self.allow_known_bad else yaml.safe_load(known_bad.read_text(encoding="utf-8"))
        words = ("branch", "version", "source", "flavour", "modules")
        return {**{word: getattr(self, word) for word in words}, "known_bad": listed}


@dataclass(frozen=True)
class Wishes:
    """Everything that some of the rigs ask for."""

    system: tuple[str, ...]
    optional: tuple[str, ...]
    """Those of `system` that are taken where a source has them: not every system has them as packages."""
    drivers: tuple[DriverWish, ...]
    toolkits: tuple[str, ...]
    torch: tuple[TorchWish, ...]
    sources: tuple[tuple[str, str], ...]
    """gpu-burn: repository and commit."""
    cuda_line: str
    cuda_key_url: str
    cuda_key_path: str


def wishes_of(rigs: Mapping[str, Mapping[str, Any]]) -> Wishes:
    """Put together what rigs (name → role variables) ask for.

    Raises:
        UsageError: they ask for what one bundle cannot hold.
    """
    every = list(rigs.values())
    for name, rig in rigs.items():
        if rig["container_toolkit_install"]:
            raise UsageError(
                f"{name}: container_toolkit_install: a bundle holds no container toolkit",
                "set it to false for rigs without a network",
            )
        if rig["cuda_source"] == "distribution":
            raise UsageError(
                f"{name}: cuda_source: distribution: a bundle holds toolkits of nvidia only",
                "set it to nvidia for rigs without a network",
            )
    distribution = any(rig["pytorch_build"] == "distribution" for rig in every)
    time = any(rig["base_time_sync"] for rig in every)
    named = [word for rig in every for word in (*rig["base_packages"], *rig["cpu_burn_packages"])]
    named += [*ROLE_PACKAGES, *([_DISTRIBUTION_TORCH] if distribution else []), *([_TIMEKEEPER] if time else [])]
    lines = {(rig["cuda_repo_line"], rig["cuda_repo_key_url"], rig["cuda_repo_key_path"]) for rig in every}
    if len(lines) > 1:
        raise UsageError(
            f"the rigs take CUDA from {len(lines)} repositories (cuda_repo_line)",
            "make one bundle for each: rigctl bundle DIR RIGS",
        )
    line, key_url, key_path = next(iter(lines))
    return Wishes(
        system=_once(named),
        optional=(_TIMEKEEPER,) if time else (),
        drivers=_once(_driver(rig) for rig in every),
        toolkits=_once(version for rig in every for version in (rig["cuda_version"], *rig["cuda_more_versions"])),
        torch=_once(_torch(rig) for rig in every if rig["pytorch_build"] != "distribution"),
        sources=_once((rig["gpu_burn_repo"], rig["gpu_burn_commit"]) for rig in every),
        cuda_line=" ".join(line.split()),
        cuda_key_url=key_url,
        cuda_key_path=key_path,
    )


def repository_key(wishes: Wishes) -> str:
    """Fetch the key of the CUDA repository, in base64; empty where the inventory names none.

    Raises:
        UsageError: it cannot be fetched.
    """
    if not wishes.cuda_key_url:
        return ""
    try:
        with urllib.request.urlopen(wishes.cuda_key_url, timeout=_KEY_TIMEOUT_S) as reply:  # noqa: S310 - the operator's
            data: bytes = reply.read()
    except (OSError, ValueError) as error:
        raise UsageError(
            f"cuda_repo_key_url: {wishes.cuda_key_url} cannot be fetched: {error}",
            "make the bundle on a machine with a network (https_proxy, SSL_CERT_FILE), or correct the variable",
        ) from error
    return base64.b64encode(data).decode("ascii")


def _driver(rig: Mapping[str, Any]) -> DriverWish:
    words = ("branch", "version", "source", "flavour", "modules")
    values = {word: str(rig[f"nvidia_driver_{word}"]) for word in words}
    return DriverWish(**values, allow_known_bad=bool(rig["nvidia_driver_allow_known_bad"]))


def _torch(rig: Mapping[str, Any]) -> TorchWish:
    return TorchWish(
        version=rig["pytorch_version"],
        build=rig["pytorch_build"],
        driver=rig["pytorch_driver_branch"] or rig["nvidia_driver_branch"],
        index_url=rig["pytorch_index_url"],
        wheelhouse=rig["pytorch_wheelhouse"],
        extra=tuple(rig["pytorch_extra_packages"]),
    )


def _once(values: Iterable[Any]) -> tuple[Any, ...]:
    return tuple(dict.fromkeys(values))
