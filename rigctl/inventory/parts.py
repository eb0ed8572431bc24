"""The files that hold specs: found as Ansible finds its variables, read literally."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rigctl.errors import UsageError
from rigctl.inventory.yamlfile import Key, read_yaml, require_literal, where

if TYPE_CHECKING:
    from pathlib import Path

    from rigctl.inventory.ansible_view import AnsibleView

SPEC_KEY = "rig_spec"
HOST_KEY = "rig_spec_host"


@dataclass(frozen=True)
class SpecPart:
    """One file's part of a spec, as it is written."""

    path: Path
    origin: str
    """The file as people know it, relative to the inventory's folder."""
    key: str
    data: dict[str, Any]

    def place(self, key: Key) -> str:
        """`path:line` of a key of this part."""
        return where(self.path, (self.key, *key))


def class_part(group: str, view: AnsibleView) -> SpecPart:
    """Read `rig_spec` of a rig class.

    Raises:
        UsageError: there is none, there are two, or it is not literal.
    """
    part = _find(view.folder, "group_vars", group, SPEC_KEY)
    if part is None:
        raise UsageError(
            f"{view.folder / 'group_vars' / group / 'spec.yml'}: {group} has no spec: no key {SPEC_KEY} there",
            f"write the parts and limits of the class there under {SPEC_KEY}, as the starter inventory does",
        )
    return part


def host_part(host: str, view: AnsibleView) -> SpecPart | None:
    """Read `rig_spec_host`, the exceptions of one rig; None where it has none.

    Raises:
        UsageError: there are two, it is not literal, or it stands where rigctl does not read it.
    """
    part = _find(view.folder, "host_vars", host, HOST_KEY)
    if part is None and HOST_KEY in view.variables[host]:
        raise UsageError(
            f"{view.path}: {host}: {HOST_KEY} is set outside of plain files in host_vars/{host}/",
            f"move it to {view.folder / 'host_vars' / host / 'spec.yml'}",
        )
    return part


def defining_file(variable: str, host: str, view: AnsibleView) -> Path:
    """Name the file that sets `variable` for `host`, the strongest first; the inventory itself where none does."""
    places = [("host_vars", host), *(("group_vars", g) for g in sorted(view.groups.get(host, ()), key=_all_last))]
    for part, name in places:
        for path in _variable_files(view.folder / part, name):
            data = read_yaml(path)
            if isinstance(data, dict) and variable in data:
                return path
    return view.path


def place_in(path: Path, key: Key) -> str:
    """`path:line` where `path` is a YAML file; the inventory's own path may be a folder or INI."""
    return where(path, key) if path.suffix in {".yml", ".yaml"} and path.is_file() else str(path)


def find_key(folder: Path, part: str, name: str, key: str) -> tuple[Path, Any] | None:
    """Return the one file of `name` that holds `key`, and the literal data below it; None where no file does.

    Raises:
        UsageError: two files hold it, or the data are not literal.
    """
    found = []
    for path in _variable_files(folder / part, name):
        data = read_yaml(path)
        if isinstance(data, dict) and key in data:
            require_literal(path, key, data[key])
            found.append((path, data[key]))
    if len(found) > 1:
        raise UsageError(
            f"{found[0][0]} and {found[1][0]} both hold {key}",
            "keep it in one file, so that it is read in one place",
        )
    return found[0] if found else None


def _find(folder: Path, part: str, name: str, key: str) -> SpecPart | None:
    found = find_key(folder, part, name, key)
    if found is None:
        return None
    path, data = found
    return SpecPart(path, path.relative_to(folder).as_posix(), key, _mapping(path, key, data))


def _mapping(path: Path, key: str, data: Any) -> dict[str, Any]:
    if not isinstance(data, dict):
        raise UsageError(f"{where(path, (key,))}: {key} is no mapping", "write keys and values below it")
    return data


def _variable_files(folder: Path, name: str) -> list[Path]:
    """Files in which Ansible looks for the variables of `name`: NAME.yml and everything below NAME/."""
    endings = {".yml", ".yaml", ".json", ""}
    single = [folder / f"{name}{ending}" for ending in sorted(endings)]
    below = sorted((folder / name).rglob("*")) if (folder / name).is_dir() else []
    return [p for p in (*single, *below) if p.is_file() and p.suffix in endings and not p.name.startswith(".")]


def _all_last(group: str) -> tuple[bool, str]:
    return (group == "all", group)
