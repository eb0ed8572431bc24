"""How many tasks a playbook has, so that progress can say `12/47`; read from the files, Ansible is not asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

_IMPORT_TASKS = ("ansible.builtin.import_tasks", "import_tasks")
_IMPORT_ROLE = ("ansible.builtin.import_role", "import_role")
_META = ("ansible.builtin.meta", "meta")


def count_tasks(playbook: Path, roles: Path, tags: Collection[str] = ()) -> int:
    """The number of tasks that Ansible will announce; handlers come on top where something changes."""
    total = 0
    for play in _load(playbook):
        total += 1  # facts are gathered
        chosen = [task for task in play.get("tasks", []) if not tags or set(task.get("tags", ())) & set(tags)]
        total += sum(_count(task, playbook.parent, roles) for task in chosen)
    return total


def _count(task: dict[str, Any], folder: Path, roles: Path) -> int:
    role = next((task[key] for key in _IMPORT_ROLE if key in task), None)
    if role is not None:
        start = role.get("tasks_from", "main")
        specs = roles / role["name"] / "meta" / "argument_specs.yml"
        checked = 1 if specs.is_file() and start in _load(specs)["argument_specs"] else 0
        return checked + _count_file(roles / role["name"] / "tasks" / f"{start}.yml", roles)
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
