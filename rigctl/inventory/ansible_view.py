"""What Ansible says of an inventory: hosts that match a pattern, their groups and variables."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from rigctl.errors import UsageError
from rigctl.inventory.yamlfile import read_yaml

DEFAULT_INVENTORY = Path("inventory")
_TIMEOUT_S = 120
"""Dynamic inventories may ask a cloud first."""
_NOT_INVENTORY = r"^acceptance$"
"""Folders beside the inventory that rigctl reads for other purposes; Ansible would try to parse them."""


@dataclass(frozen=True)
class AnsibleView:
    """Hosts in the inventory's order, each with its variables and groups."""

    path: Path
    hosts: tuple[str, ...]
    variables: dict[str, dict[str, Any]]
    groups: dict[str, frozenset[str]]
    """Host → every group it belongs to, through children as well."""

    @property
    def folder(self) -> Path:
        """The folder that holds `group_vars` and `host_vars`."""
        return self.path if self.path.is_dir() else self.path.parent


def ansible_program(name: str) -> str:
    """Path of one of Ansible's programs, of the environment that rigctl itself runs in.

    Raises:
        UsageError: it is not there.
    """
    program = Path(sys.executable).parent / name
    if not program.exists():
        raise UsageError(
            f"{name} is not installed beside {sys.executable}",
            f"run: {sys.executable} -m pip install ansible-core",
        )
    return str(program)


def ansible_environment() -> dict[str, str]:
    """The environment for Ansible's programs: the user's own, and a source that does not parse is an error."""
    own = os.environ.get("ANSIBLE_INVENTORY_IGNORE_REGEX", "")
    return os.environ | {
        "ANSIBLE_INVENTORY_ANY_UNPARSED_IS_FAILED": "1",
        "ANSIBLE_INVENTORY_IGNORE_REGEX": ",".join(filter(None, [own, _NOT_INVENTORY])),
        # These would add to, or change, what is read from standard output.
        "ANSIBLE_VERBOSITY": "0",
        "ANSIBLE_DEBUG": "0",
        "ANSIBLE_INVENTORY_EXPORT": "0",
        "ANSIBLE_DEPRECATION_WARNINGS": "0",
        "ANSIBLE_LOCALHOST_WARNING": "0",
        "ANSIBLE_INVENTORY_UNPARSED_WARNING": "0",
        "ANSIBLE_NOCOLOR": "1",
        "ANSIBLE_FORCE_COLOR": "0",
    }


def read_inventory(inventory: Path | None, pattern: str) -> AnsibleView:
    """Ask `ansible-inventory` for the hosts that match `pattern`.

    Raises:
        UsageError: no inventory, one that Ansible cannot read, or a pattern (or a part of it) that matches nothing.
    """
    path = DEFAULT_INVENTORY if inventory is None else inventory
    if not path.exists():
        raise UsageError(
            f"no inventory at {path}",
            "name one with -i PATH or RIGCTL_INVENTORY",
        )
    if not pattern.strip():
        raise UsageError("the host pattern is empty", "leave it out for all rigs, or name a rig or a group")
    listed, warnings = _list(path, pattern)
    _require_every_part(path, pattern, warnings)
    variables: dict[str, dict[str, Any]] = listed["_meta"]["hostvars"]
    members = {name: group for name, group in listed.items() if name != "_meta"}
    groups = _groups_by_host(members)
    hosts = tuple(dict.fromkeys(h for group in members.values() for h in group.get("hosts", ())))
    if not hosts:
        raise UsageError(f"the pattern {pattern!r} matches no rig in {path}", _list_hint(path))
    return AnsibleView(path, hosts, {h: variables.get(h, {}) for h in hosts}, groups)


def _list(path: Path, pattern: str) -> tuple[dict[str, Any], str]:
    command = [ansible_program("ansible-inventory"), "-i", str(path), "--list", f"--limit={pattern}"]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False, env=ansible_environment()
        )
    except subprocess.TimeoutExpired as error:
        raise UsageError(
            f"{path}: ansible-inventory did not answer within {_TIMEOUT_S} s",
            f"run: ansible-inventory -i {path} --list",
        ) from error
    if done.returncode != 0:
        raise _unreadable(path, done.stderr)
    return json.loads(done.stdout), done.stderr


def _unreadable(path: Path, stderr: str) -> UsageError:
    """Find the file that cannot be read; Ansible's own words where that is not plain YAML."""
    if "no vault secrets" in stderr:
        return UsageError(
            f"{path}: the inventory holds vaulted files and there is no vault password",
            "set ANSIBLE_VAULT_PASSWORD_FILE, or vault_password_file in ansible.cfg",
        )
    for file in _yaml_files(path):
        try:
            read_yaml(file)
        except UsageError as error:
            return error
        except yaml.YAMLError:  # pragma: no cover - read_yaml maps them all
            continue
    found = re.search(r"\[ERROR\]: (.+)", stderr)
    said = found[1] if found else " ".join(stderr.split())[:300] or "no reason given"
    return UsageError(f"{path}: Ansible cannot read the inventory: {said}", f"run: ansible-inventory -i {path} --list")


def _yaml_files(path: Path) -> list[Path]:
    folder = path if path.is_dir() else path.parent
    own = sorted(path.glob("*.y*ml")) if path.is_dir() else [path] if path.suffix in {".yml", ".yaml"} else []
    variables = [f for part in ("group_vars", "host_vars") for f in sorted((folder / part).rglob("*.y*ml"))]
    return [*own, *variables]


def _require_every_part(path: Path, pattern: str, warnings: str) -> None:
    """Refuse a pattern of which one positive part matches nothing: a rig left out by a typing error is not tested."""
    asked = {part for part in re.split(r"[,:]", pattern) if part and part[0] not in "!&"}
    unmatched = re.findall(r"Could not match supplied host pattern, ignoring: (\S+)", warnings)
    for part in unmatched:
        if part in asked:
            raise UsageError(f"the pattern {part!r} matches no rig in {path}", _list_hint(path))


def _list_hint(path: Path) -> str:
    return f"run: ansible-inventory -i {path} --graph"


def _groups_by_host(members: dict[str, dict[str, list[str]]]) -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for group in members:
        for host in _hosts_below(group, members, frozenset()):
            found.setdefault(host, set()).add(group)
    return {host: frozenset(groups) for host, groups in found.items()}


def _hosts_below(group: str, members: dict[str, dict[str, list[str]]], seen: frozenset[str]) -> set[str]:
    if group in seen:
        return set()
    entry = members.get(group, {})
    hosts = set(entry.get("hosts", ()))
    for child in entry.get("children", ()):
        hosts |= _hosts_below(child, members, seen | {group})
    return hosts
