"""Each role says its variables in defaults, argument_specs and docs/roles.md: the same everywhere."""

import re

import pytest
import yaml

from .roles_page import BY_OTHERS, ORDER, PAGE, ROLES, ROOT, load, overwritten, render

EVERY = (*ORDER, *BY_OTHERS)


def test_every_role_is_on_the_page():
    assert sorted(path.name for path in ROLES.iterdir() if path.is_dir()) == sorted(EVERY)


@pytest.mark.parametrize("role", EVERY)
def test_argument_specs_equal_defaults(role):
    options = load(role, "meta/argument_specs.yml")["argument_specs"]["main"]["options"]
    stated = {name: option.get("default") for name, option in options.items()}
    assert stated == load(role, "defaults/main.yml")


@pytest.mark.parametrize("role", EVERY)
def test_public_variables_begin_with_the_role(role):
    assert all(name.startswith(f"{role}_") for name in load(role, "defaults/main.yml"))


@pytest.mark.parametrize("role", EVERY)
def test_private_variables_begin_with_underscores(role):
    path = ROLES / role / "vars" / "main.yml"
    names = list(yaml.safe_load(path.read_text(encoding="utf-8"))) if path.is_file() else []
    assert all(name.startswith(f"__{role}_") for name in names)


@pytest.mark.parametrize("role", EVERY)
def test_every_variable_is_used(role):
    files = [path for path in (ROLES / role).rglob("*") if path.suffix in {".yml", ".j2"}]
    used = "\n".join(path.read_text(encoding="utf-8") for path in files if path.parent.name not in {"defaults", "meta"})
    used += "\n".join(str(default) for default in load(role, "defaults/main.yml").values())
    unused = [name for name in load(role, "defaults/main.yml") if not re.search(rf"\b{name}\b", used)]
    assert unused == []


@pytest.mark.parametrize("role", EVERY)
def test_every_role_has_the_same_files(role):
    needed = ("README.md", "defaults/main.yml", "meta/argument_specs.yml", "meta/main.yml", "tasks/main.yml")
    assert [name for name in (*needed, "tasks/preflight.yml") if not (ROLES / role / name).is_file()] == []


@pytest.mark.parametrize("role", ORDER)
def test_every_path_that_a_role_writes_is_said(role):
    texts = [path.read_text(encoding="utf-8") for path in (ROLES / role).glob("*/*.yml") if path.parent.name != "meta"]
    written = set(re.findall(r"^\s+(?:- )?(?:path|dest): (/\S+)$", "\n".join(texts), re.MULTILINE))
    assert [path for path in sorted(written) if f"`{path}`" not in overwritten(role)] == []


def test_the_page_is_up_to_date():
    assert PAGE.read_text(encoding="utf-8") == render(), "run: python tests/roles/roles_page.py"


def test_the_playbook_calls_the_roles_in_the_page_s_order():
    play = yaml.safe_load((ROOT / "playbooks" / "site.yml").read_text(encoding="utf-8"))[0]
    called = [task["ansible.builtin.import_role"] for task in play["tasks"] if "ansible.builtin.import_role" in task]
    assert [role["name"] for role in called if "tasks_from" not in role] == [name for name in ORDER if name != "compat"]


def test_wishes_that_do_not_go_together_are_refused_before_packages_are_touched():
    """Compat comes along with the first role that names it, which the playbook calls before it prepares the system."""
    play = yaml.safe_load((ROOT / "playbooks" / "site.yml").read_text(encoding="utf-8"))[0]
    called = [task["ansible.builtin.import_role"] for task in play["tasks"] if "ansible.builtin.import_role" in task]
    metas = {name: yaml.safe_load((ROLES / name / "meta/main.yml").read_text(encoding="utf-8")) for name in ORDER}
    along = [role["name"] for role in called if {"role": "compat"} in metas[role["name"]].get("dependencies", [])]
    names = [role["name"] for role in called]
    assert along[0] == "cuda"
    assert names.index("cuda") < next(i for i, role in enumerate(called) if role == {"name": "base"})


def test_only_builtin_modules():
    paths = [*ROLES.rglob("*.yml"), ROOT / "playbooks" / "site.yml"]
    text = "\n".join(path.read_text(encoding="utf-8") for path in paths)
    words = set(re.findall(r"^\s+(?:- )?([a-z_]+\.[a-z_]+\.[a-z_0-9]+):", text, re.MULTILINE))
    assert words
    assert {word.rsplit(".", 1)[0] for word in words} == {"ansible.builtin"}


def test_no_injected_facts():
    texts = {path: path.read_text(encoding="utf-8") for path in ROLES.rglob("*.yml")}
    own = r"facts\b|check_mode\b|connection\b|failed_result\b|version\b|become\b|\w*python\w*\b"
    injected = rf"\bansible_(?!{own})[a-z_]+\b"
    assert [(path.name, re.findall(injected, text)) for path, text in texts.items() if re.search(injected, text)] == []
