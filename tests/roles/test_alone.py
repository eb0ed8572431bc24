"""Each role by itself, as people use it who have no rigctl: a copy of it, five lines of playbook, plain Ansible."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from rigctl import sim

from .roles_page import ROLES, ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ANSIBLE = ROOT / ".venv" / "bin" / "ansible-playbook"
BESIDE = {
    "kernel": ["nvidia_driver", "reboot"], "nvidia_driver": ["compat", "reboot"], "cuda": ["compat"],
    "pytorch": ["compat"],
}  # fmt: skip
"""Roles that a role takes along; its README says so."""

ORDER = (
    "compat", "cpu_burn", "pytorch", "container_toolkit", "cuda", "nvidia_driver", "gpu_burn", "base", "kernel",
    "reboot",
)  # fmt: skip
"""No role may lean on `base`; only the GPU burner needs what others bring: a toolkit, and cards to build for."""

PLAYBOOK = """- hosts: all
  become: true
  roles:
    - {role}
"""


def copied(role: str, folder: Path) -> Path:
    """A folder that holds a playbook, the role and those beside it, and nothing else."""
    for name in (role, *BESIDE.get(role, [])):
        shutil.copytree(ROLES / name, folder / "roles" / name, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "play.yml").write_text(PLAYBOOK.format(role=role), encoding="utf-8")
    (folder / "without" / "rigctl").mkdir(parents=True)
    (folder / "without" / "rigctl" / "__init__.py").write_text("raise ImportError('no rigctl here')\n")
    return folder


def play(folder: Path, inventory: Path) -> subprocess.CompletedProcess[str]:
    """Plain `ansible-playbook` with default settings, in an environment that knows neither rigctl nor this checkout."""
    environment = {
        "PATH": f"{ANSIBLE.parent}:/usr/bin:/bin",
        "HOME": str(folder),
        "LC_ALL": "C.UTF-8",
        "PYTHONPATH": str(folder / "without"),
    }
    words = [ANSIBLE, "-i", inventory, "play.yml"]
    return subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def inventory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    directory = tmp_path_factory.mktemp("alone") / "state"
    try:
        yield sim.up(sim.UpOptions(count=1, directory=directory)).inventory
    finally:
        sim.down(directory)


def test_every_role_has_its_turn() -> None:
    assert sorted(ORDER) == sorted(path.name for path in ROLES.iterdir())


@pytest.mark.parametrize("role", sorted(BESIDE))
def test_the_readme_names_what_a_role_takes_along(role: str) -> None:
    text = (ROLES / role / "README.md").read_text(encoding="utf-8")
    assert [name for name in BESIDE[role] if f"`{name}`" not in text] == []


@pytest.mark.rigs
@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("role", ORDER)
def test_a_role_works_alone(role: str, inventory: Path, tmp_path: Path) -> None:
    folder = copied(role, tmp_path)
    assert ROOT not in folder.parents
    first = play(folder, inventory)
    assert first.returncode == 0, first.stdout + first.stderr
    assert "failed=0" in first.stdout
    if role == "reboot":  # restarts whenever it is asked to
        return
    second = play(folder, inventory)
    assert second.returncode == 0, second.stdout + second.stderr
    assert "changed=0" in second.stdout, second.stdout
