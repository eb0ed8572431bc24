"""How many tasks a playbook has, so that progress can say `12/47`; read from the files, Ansible is not asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

_IMPORT_TASKS = ("ansible.builtin.import_tasks", "import_tasks")
_IMPORT_ROLE = ("ansible.builtin.import_role", "import_role")
_ALWAYS = "always"
"""Ansible runs what carries this tag whatever is chosen."""
_META = ("ansible.builtin.meta", "meta")


def count_tasks(playbook: Path, roles: Path, tags: Collection[str] = ()) -> int:
    """The number of tasks that Ansible will announce; handlers are not among them."""
    total = 0
    for play in _load(playbook):
        total += 1  # facts are gathered
        for task in play.get("tasks", []):
            chosen = not tags or set(task.get("tags", ())) & {*tags, _ALWAYS}
            total += _argument_checks(task, roles)  # whatever the tags
            total += _count(task, playbook.parent, roles) if chosen else 0
    return total


def known_tags(playbook: Path) -> set[str]:
    """The tags that tasks of the playbook can be chosen by."""
    tags = {tag for play in _load(playbook) for task in play.get("tasks", []) for tag in task.get("tags", ())}
    return tags - {_ALWAYS}


def _argument_checks(task: dict[str, Any], roles: Path) -> int:
    """Ansible checks a role's arguments in a task of its own where the role's argument_specs name the entry point."""
    role = _role_of(task)
    specs = roles / role["name"] / "meta" / "argument_specs.yml" if role else None
    if role is None or specs is None or not specs.is_file():
        return 0
    return int(role.get("tasks_from", "main") in _load(specs)["argument_specs"])


def _role_of(task: dict[str, Any]) -> dict[str, Any] | None:
    return next((task[key] for key in _IMPORT_ROLE if key in task), None)


def _count(task: dict[str, Any], folder: Path, roles: Path) -> int:
    role = _role_of(task)
    if role is not None:
        return _count_file(roles / role["name"] / "tasks" / f"{role.get('tasks_from', 'main')}.yml", roles)
    imported = next((task[key] for key in _IMPORT_TASKS if key in task), None)
    if imported is not None:
        return _count_file(folder / imported, roles)
    if "block" in task:
        return sum(_count(one, folder, roles) for one in task["block"])
    return 0 if any(key in task for key in _META) else 1


def _count_file(path: Path, roles: Path) -> int:
    return sum(_count(task, path.parent, roles) for task in _load(path) or [])


def _load(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))
