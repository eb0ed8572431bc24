"""The inventory's rigs: everything that can be wrong with them is found here, before any SSH."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from rigctl import assets
from rigctl.errors import UsageError
from rigctl.inventory.ansible_config import connection_defaults
from rigctl.inventory.ansible_view import read_inventory
from rigctl.inventory.logins import LOGIN_VARIABLES, build_login
from rigctl.inventory.parts import class_part, host_part
from rigctl.inventory.power import POWER_KEY, power_of
from rigctl.inventory.resolve import resolve
from rigctl.inventory.specs import ROLE_VARIABLES, build_profiles, build_software, build_spec, rig_class_of
from rigctl.inventory.waivers import waivers_of
from rigctl.inventory.yamlfile import read_yaml
from rigctl.model.rig import Rig

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from rigctl.inventory.ansible_view import AnsibleView
    from rigctl.model.rig import Login

_PARALLEL_CLIENTS = 8
"""`ssh -G` at once; each lives for some milliseconds."""
_RIG_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:@-]*")
"""A rig's name is a folder of the run directory."""


def load_fleet(inventory: Path | None, pattern: str = "all") -> tuple[Rig, ...]:
    """Read the rigs that match `pattern`, complete with login, spec and profiles.

    Args:
        inventory: folder or file, as Ansible's -i; None for ./inventory.
        pattern: Ansible host pattern.

    Raises:
        UsageError: anything in the inventory or a spec is wrong; with file and key.
    """
    view = read_inventory(inventory, pattern)
    _require_names(view)
    classes = {host: rig_class_of(host, view) for host in view.hosts}
    parts = {group: class_part(group, view) for group in dict.fromkeys(classes.values())}
    values = _resolved_variables(view, (*LOGIN_VARIABLES, POWER_KEY, *ROLE_VARIABLES))
    logins = _logins(view, values)
    rigs = tuple(
        Rig(
            name=host,
            login=logins[host],
            spec=build_spec(
                classes[host], parts[classes[host]], host_part(host, view), build_software(host, view, values[host])
            ),
            profiles=build_profiles(host, view),
            waivers=waivers_of(host, view),
            power=power_of(host, values[host]),
        )
        for host in view.hosts
    )
    _require_own_addresses(view, rigs)
    return rigs


def load_variables(inventory: Path | None, pattern: str, names: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Read role variables of the rigs that match `pattern`: rig → name → value, as Ansible resolves them.

    Raises:
        UsageError: the inventory cannot be read, or a template in it cannot be resolved.
    """
    return _resolved_variables(read_inventory(inventory, pattern), tuple(names))


def _resolved_variables(view: AnsibleView, names: tuple[str, ...]) -> dict[str, dict[str, Any]]:
    """Return each rig's variables of these names, role defaults below the inventory's own."""
    defaults = _role_defaults()
    wanted = {}
    for host in view.hosts:
        known = {**{name: defaults[name] for name in names if name in defaults}, **view.variables[host]}
        wanted[host] = {name: known[name] for name in names if name in known}
    return resolve(view, wanted, defaults)


def _role_defaults() -> dict[str, Any]:
    merged: dict[str, Any] = {}
    for path in sorted(assets.roles_dir().glob("*/defaults/main.yml")):
        merged.update(read_yaml(path) or {})
    return merged


def _logins(view: AnsibleView, values: dict[str, dict[str, Any]]) -> dict[str, Login]:
    defaults = connection_defaults()
    with ThreadPoolExecutor(max_workers=_PARALLEL_CLIENTS) as pool:
        logins = pool.map(lambda host: build_login(host, values[host], defaults), view.hosts)
        return dict(zip(view.hosts, logins, strict=True))


def _require_names(view: AnsibleView) -> None:
    for host in view.hosts:
        if not _RIG_NAME.fullmatch(host):
            raise UsageError(
                f"{view.path}: {host!r} cannot be a rig's name",
                "use letters, digits and . _ - in inventory names; the address goes to ansible_host",
            )


def _require_own_addresses(view: AnsibleView, rigs: Iterable[Rig]) -> None:
    """Refuse two names for one machine: both would be burnt at once and each blamed for the other's heat."""
    seen: dict[tuple[str, int, str | None, str | None], str] = {}
    for rig in rigs:
        login = rig.login
        key = (login.address.lower(), login.port, login.proxy_jump, login.proxy_command)
        other = seen.setdefault(key, rig.name)
        if other != rig.name:
            through = f" through {login.proxy_jump}" if login.proxy_jump else ""
            raise UsageError(
                f"{view.path}: {other} and {rig.name} have one address: {login.address} port {login.port}{through}",
                "correct ansible_host or ansible_port of one of them, or remove it",
            )
