"""What no file of the project may carry: hosts of package indexes, private paths, unfit addresses."""

from __future__ import annotations

import re
import subprocess

import pytest

from .source_tree import REPO

# Put together here, so that this file does not carry them itself.
INDEX_HOSTS = [
    ".".join(parts)
    for parts in [
        ("pypi", "org"),
        ("pythonhosted", "org"),
        ("deb", "debian", "org"),
        ("security", "debian", "org"),
        ("snapshot", "debian", "org"),
        ("npmjs", "org"),
        ("npmjs", "com"),
        ("proxy", "golang", "org"),
        ("crates", "io"),
    ]
]
PRIVATE = {
    "a private path": r"(?<![\w.])/(?:work|root/\.pyenv|opt/(?:pypi|wheels))(?:/|-more)\w",
    "somebody's home": r"(?<![\w.$}])/home/(?!USER\b|ops\b|ubuntu\b)[a-z]",
    "an address that documentation should not use": r"\b203\.0\.113\.\d",
}
FORBIDDEN = {f"the host {host}": re.escape(host) for host in INDEX_HOSTS} | PRIVATE


def tracked_files():
    listed = subprocess.run(
        ["git", "-c", f"safe.directory={REPO}", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=REPO,
        capture_output=True,
        check=True,
        text=True,
    ).stdout
    return [REPO / name for name in listed.split("\0") if name and (REPO / name).is_file()]


def findings(name: str, text: str) -> list[str]:
    return [
        f"{name}:{number}: {what}"
        for number, line in enumerate(text.splitlines(), 1)
        for what, pattern in FORBIDDEN.items()
        if re.search(pattern, line)
    ]


def test_no_file_carries_them():
    wrong = []
    for path in tracked_files():
        if path != REPO / "tests/house/test_words.py":
            wrong += findings(str(path.relative_to(REPO)), path.read_bytes().decode("utf-8", "replace"))
    assert wrong == []


@pytest.mark.parametrize(
    "line",
    [f"https://{host}/simple" for host in INDEX_HOSTS]
    + ["see /work" + "/main/x", "/home" + "/jo/x", "203.0" + ".113.7"],
)
def test_each_would_be_seen(line):
    assert findings("some.md", f"first\n{line}\n")


def test_roles_know_nothing_of_rigctl_or_of_the_simulation():
    wrong = []
    for path in tracked_files():
        name = str(path.relative_to(REPO))
        if name.startswith(("roles/", "playbooks/")):
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
                # A folder's name is only a place (`/opt/rigctl/torch`); meta says who wrote the role.
                named = "" if name.endswith("meta/main.yml") else line.replace("/opt/rigctl", "")
                if re.search(r"rigctl|rigsim|simulated (rig|card|hardware)", named, re.IGNORECASE):
                    wrong.append(f"{name}:{number}: {line.strip()}")
    assert wrong == []


def test_only_builtin_modules_and_real_facts():
    """`ansible.builtin` alone needs no collection; injected facts can be switched off, `ansible_facts[…]` cannot."""
    wrong = []
    for path in [*(REPO / "roles").rglob("*.yml"), *(REPO / "playbooks").rglob("*.yml")]:
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if re.search(r"^\s+(community|ansible\.posix|containers|nvidia)\.[\w.]+:", line):
                wrong.append(f"{path.relative_to(REPO)}:{number}: {line.strip()}")
            if re.search(r"\bansible_(distribution|os_family|kernel|architecture|lsb|python_version)\w*", line):
                wrong.append(f"{path.relative_to(REPO)}:{number}: {line.strip()}")
    assert wrong == []
    assert not (REPO / "galaxy.yml").exists(), "with it at the root molecule copies a stale collection"
