"""A small, commented inventory to start from: the shipped rig class, with rigs of one's own."""

from __future__ import annotations

import re
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from rigctl import assets
from rigctl.errors import UsageError

SSH_PORT = 22
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
_TAKEN = {"all", "ungrouped", "localhost"}
"""Names that mean something else to Ansible."""
_PLACE = re.compile(
    r"(?:\[(?P<six>[0-9A-Fa-f:.%\w]+)\]|(?P<address>[^\s:\[\]]+))(?::(?P<port>\d+))?|(?P<bare>[\w:.%]+)"
)
_USER = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
_BRANCH = re.compile(r"\d{3}")
_CUDA = re.compile(r"\d{1,2}\.\d")
_MAX_PORT = 2**16 - 1
_TASMOTA = "http://{}/cm?cmnd=Status%208"


@dataclass(frozen=True)
class StarterRig:
    """One rig as `init` is told of it."""

    name: str
    address: str
    port: int = SSH_PORT
    wall_meter: str | None = None
    """URL of a Tasmota meter; None: the rig has none."""


@dataclass(frozen=True)
class Starter:
    """What the inventory is to say; None leaves what the shipped class says."""

    rigs: tuple[StarterRig, ...]
    user: str
    rig_class: str = "dual_3090ti"
    driver_branch: str | None = None
    cuda_version: str | None = None

    def check(self) -> None:
        """Check every word.

        Raises:
            UsageError: one cannot stand in an inventory, or two contradict each other.
        """
        if not self.rigs:
            raise UsageError("no rig is named", "name at least one: --rig rig1=192.0.2.11")
        _require_class(self.rig_class)
        if not _USER.fullmatch(self.user):
            raise UsageError(f"{self.user!r} is no login name", "letters, digits and . _ -")
        if self.driver_branch is not None and not _BRANCH.fullmatch(self.driver_branch):
            raise UsageError(f"{self.driver_branch!r} is no driver branch", "three digits, such as 515 or 580")
        if self.cuda_version is not None and not _CUDA.fullmatch(self.cuda_version):
            raise UsageError(f"{self.cuda_version!r} is no CUDA version", "such as 11.7 or 12.2")
        _require_one_each(self.rigs)


def shipped_classes() -> tuple[str, ...]:
    """The rig classes of the shipped inventory, without their prefix."""
    groups = assets.starter_inventory_dir() / "group_vars"
    return tuple(sorted(path.name.removeprefix("class_") for path in groups.glob("class_*")))


def shipped_software(rig_class: str) -> dict[str, Any]:
    """What the shipped class installs: role variable → value.

    Raises:
        UsageError: no such class is shipped.
    """
    _require_class(rig_class)
    folder = assets.starter_inventory_dir() / "group_vars" / f"class_{rig_class}"
    values: dict[str, Any] = yaml.safe_load((folder / "software.yml").read_text(encoding="utf-8"))
    return values


def parse_rig(text: str) -> StarterRig:
    """Read `NAME=ADDRESS[:PORT]`; an IPv6 address with a port stands in brackets.

    Raises:
        UsageError: it is something else.
    """
    name, equals, place = text.strip().partition("=")
    if not equals:
        raise UsageError(f"--rig {text}: no address", "write NAME=ADDRESS, such as rig1=192.0.2.11")
    address, port = parse_place(place)
    return StarterRig(parse_name(name), address, port)


def parse_name(name: str) -> str:
    """Check a rig's name.

    Raises:
        UsageError: it cannot be one.
    """
    name = name.strip()
    if not _NAME.fullmatch(name) or name in _TAKEN or name.startswith("class_"):
        raise UsageError(f"{name!r} cannot be a rig's name", "letters, digits and . _ -; not all, not class_…")
    return name


def parse_place(place: str) -> tuple[str, int]:
    """Read `ADDRESS[:PORT]` and return both.

    Raises:
        UsageError: it is something else.
    """
    found = _PLACE.fullmatch(place.strip())
    port = int(found["port"] or SSH_PORT) if found else 0
    if found is None or not 0 < port <= _MAX_PORT:
        raise UsageError(
            f"{place!r} is no address", "a name or an address, with a port: 192.0.2.11:2222, [2001:db8::1]:22"
        )
    return found["six"] or found["address"] or found["bare"], port


def meter_url(text: str) -> str:
    """The URL of a Tasmota meter, given that or its address alone.

    Raises:
        UsageError: it is neither.
    """
    text = text.strip()
    if re.fullmatch(r"https?://\S+", text):
        return text
    address, port = parse_place(text)
    bracketed = f"[{address}]" if ":" in address else address
    return _TASMOTA.format(bracketed if port == SSH_PORT else f"{bracketed}:{port}")


def write_starter(folder: Path, starter: Starter) -> tuple[Path, ...]:
    """Write the inventory, whole or not at all, and return its files, relative to `folder`.

    Raises:
        UsageError: a word in `starter` is wrong, or `folder` is there and not empty; nothing is written then.
    """
    starter.check()
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"{folder} is there already and is never overwritten", "name a folder that does not exist yet")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{folder.name}-", dir=folder.parent) as aside:
            made = Path(aside) / folder.name
            _write(made, starter)
            # Renaming replaces an empty folder and nothing else.
            made.rename(folder)
    except OSError as error:
        raise UsageError(
            f"{folder} cannot be written: {error.strerror}", "name a folder where you may write"
        ) from error
    return tuple(sorted(path.relative_to(folder) for path in folder.rglob("*") if path.is_file()))


def _write(folder: Path, starter: Starter) -> None:
    shipped = assets.starter_inventory_dir() / "group_vars"
    own_class = folder / "group_vars" / f"class_{starter.rig_class}"
    shutil.copytree(shipped / "all", folder / "group_vars" / "all")
    shutil.copytree(shipped / own_class.name, own_class)
    (folder / "rigs.yml").write_text(_rigs(starter), encoding="utf-8")
    (own_class / "software.yml").write_text(_software(own_class, starter), encoding="utf-8")
    for rig in starter.rigs:
        own = folder / "host_vars" / rig.name / "spec.yml"
        own.parent.mkdir(parents=True)
        own.write_text(_exceptions(rig), encoding="utf-8")


def _rigs(starter: Starter) -> str:
    hosts = "".join(_host(rig) for rig in starter.rigs)
    return f"""\
---
# Your rigs. Each belongs to exactly one group class_*, whose spec says what a rig of that class must be and show.
all:
  vars:
    ansible_user: {starter.user}
    ansible_become: true
    # Without this line OpenSSH's usual keys and those of the SSH agent are tried:
    # ansible_ssh_private_key_file: ~/.ssh/id_ed25519
    # Rigs behind a jump host:
    # ansible_ssh_common_args: -o ProxyJump=jo@bastion.example
    # Where sudo wants a password: give --ask-become-pass, or keep it vaulted (ansible-vault encrypt_string):
    # ansible_become_password: "{{{{ vault_become_password }}}}"
  children:
    class_{starter.rig_class}:
      hosts:
{hosts}"""


def _host(rig: StarterRig) -> str:
    port = "" if rig.port == SSH_PORT else f"          ansible_port: {rig.port}\n"
    return f"        {rig.name}:\n          ansible_host: {_quoted(rig.address)}\n{port}"


def _quoted(text: str) -> str:
    """Write text as YAML reads it back as text."""
    return yaml.safe_dump(text, width=10**6).removesuffix("...\n").strip()


def _software(folder: Path, starter: Starter) -> str:
    """The class's own file, its comments included, with what was asked for instead."""
    text = (folder / "software.yml").read_text(encoding="utf-8")
    asked = {"nvidia_driver_branch": starter.driver_branch, "cuda_version": starter.cuda_version}
    for name, value in asked.items():
        if value is not None:
            text = re.sub(rf"^{name}:.*$", f'{name}: "{value}"', text, flags=re.MULTILINE)
    return text


def _exceptions(rig: StarterRig) -> str:
    about = "---\n# What is true of this rig alone, merged over its class's rig_spec.\nrig_spec_host:\n  wall_meter:\n"
    if rig.wall_meter is None:
        return f"{about}    required: false  # no meter: its check is blind. Give its url here when there is one.\n"
    return f"{about}    url: {_quoted(rig.wall_meter)}\n"


def _require_class(rig_class: str) -> None:
    classes = shipped_classes()
    if rig_class not in classes:
        raise UsageError(
            f"no rig class {rig_class} is shipped",
            f"choose one of: {', '.join(classes)}; a class of your own is a copy of its folder under group_vars/",
        )


def _require_one_each(rigs: tuple[StarterRig, ...]) -> None:
    names: set[str] = set()
    places: dict[tuple[str, int], str] = {}
    for rig in rigs:
        if rig.name in names:
            raise UsageError(f"{rig.name} is named twice", "each rig has a name of its own")
        names.add(rig.name)
        other = places.setdefault((rig.address.lower(), rig.port), rig.name)
        if other != rig.name:
            raise UsageError(
                f"{other} and {rig.name} have one address: {rig.address} port {rig.port}",
                "two names for one machine would burn it twice at once",
            )
