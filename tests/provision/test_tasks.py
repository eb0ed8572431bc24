"""How many tasks a playbook has."""

import textwrap

import pytest

from rigctl import assets
from rigctl.provision.tasks import count_tasks, known_tags


@pytest.fixture
def playbook(tmp_path):
    """Two roles; one has argument_specs, a block with a rescue, an import and a meta task."""
    write(tmp_path / "playbooks" / "site.yml", """
        - hosts: all
          tasks:
            - ansible.builtin.import_role: {name: one}
              tags: [one]
            - ansible.builtin.import_role: {name: one, tasks_from: part}
              tags: [two]
            - ansible.builtin.import_role: {name: two}
              tags: [two]
        """)  # fmt: skip
    write(tmp_path / "roles" / "one" / "meta" / "argument_specs.yml", "argument_specs: {main: {options: {}}}")
    write(tmp_path / "roles" / "one" / "tasks" / "main.yml", """
        - ansible.builtin.import_tasks: part.yml
        - ansible.builtin.meta: flush_handlers
        - block:
            - ansible.builtin.command: a
            - ansible.builtin.command: b
          rescue:
            - ansible.builtin.fail: {}
        """)  # fmt: skip
    write(tmp_path / "roles" / "one" / "tasks" / "part.yml", "- ansible.builtin.command: c")
    write(tmp_path / "roles" / "two" / "tasks" / "main.yml", "- ansible.builtin.command: d")
    return tmp_path / "playbooks" / "site.yml"


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(textwrap.dedent(text), encoding="utf-8")


@pytest.mark.parametrize(("tags", "count"), [((), 1 + 1 + 3 + 1 + 1), (("two",), 1 + 1 + 1 + 1), (("none",), 2)])
def test_count(playbook, tags, count):
    assert count_tasks(playbook, playbook.parents[1] / "roles", tags) == count


def test_known_tags(playbook):
    assert known_tags(playbook) == {"one", "two"}


def test_the_shipped_playbook_stays_short():
    """Each task costs time on every rig."""
    assert 20 < count_tasks(assets.playbooks_dir() / "site.yml", assets.roles_dir()) <= 110


def test_every_role_can_be_chosen():
    roles = {path.name for path in assets.roles_dir().iterdir() if path.is_dir()}
    called_by_others = {"reboot", "compat"} & roles
    assert known_tags(assets.playbooks_dir() / "site.yml") == roles - called_by_others
