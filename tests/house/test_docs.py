"""The documents are kept true: every command, option, check, fault and role variable has its place in them."""

from __future__ import annotations

import re
from functools import cache
from importlib import import_module

import pytest
import typer
import yaml

from rigctl.cli.app import build_app

from .source_tree import REPO

DOCS = REPO / "docs"
PAGES = sorted([*DOCS.rglob("*.md"), *REPO.glob("*.md")])


@cache
def commands():
    """Every command by its words (`sim up`), with its options."""
    return dict(_walk(typer.main.get_command(build_app()), ()))


def _walk(command, words):
    children = getattr(command, "commands", None)
    if children:
        for name, child in children.items():
            yield from _walk(child, (*words, name))
        return
    words_of = [(*parameter.opts, *parameter.secondary_opts) for parameter in command.params]
    options = {opt for opts in words_of for opt in opts if opt.startswith("--")}
    yield " ".join(words), (options - {"--help"}, command.epilog or "")


@cache
def sections():
    """docs/commands.md by heading: `## rigctl sim up` → its text."""
    parts = re.split(
        r"^#+ `rigctl ([a-z ]+)`.*$", (DOCS / "commands.md").read_text(encoding="utf-8"), flags=re.MULTILINE
    )
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def documented(name):
    return (DOCS / name).read_text(encoding="utf-8")


def test_commands_page_and_program_know_the_same_commands():
    assert sorted(sections()) == sorted(commands())


@pytest.mark.parametrize("name", sorted(commands()))
def test_command_is_documented(name):
    options, epilog = commands()[name]
    section = sections().get(name, "")
    assert f"rigctl {name}" in re.sub(r"`rigctl [a-z ]+`", "", section), "no example in docs/commands.md"
    missing = {option for option in options if f"`{option}" not in section}
    assert missing == set(), "options without a word in docs/commands.md"
    assert "rigctl " in epilog, "its --help shows no example"


def examples():
    """Every line of a code block that calls rigctl, with its page."""
    for page in PAGES:
        blocks = re.findall(
            r"^ *```[^\n]*\n(.*?)^ *```", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL
        )
        for block in blocks:
            yield from (
                (page.name, line) for line in re.findall(r"^ *(?:\$ )?(rigctl [a-z].*)$", block, flags=re.MULTILINE)
            )


def examples_in_help():
    """Every call of rigctl in the example of a command's --help, with the command."""
    for name, (_options, epilog) in commands().items():
        yield from ((f"rigctl {name} --help", f"rigctl {call}") for call in re.split(r"\brigctl ", epilog)[1:])


def test_examples_use_commands_and_options_that_exist():
    wrong = []
    for page, line in [*examples(), *examples_in_help()]:
        name = next(
            (n for n in sorted(commands(), key=len, reverse=True) if f"{line} ".startswith(f"rigctl {n} ")), None
        )
        known = commands()[name][0] | {"--help", "--debug"} if name else set()
        asked = set(re.findall(r"(?<= )--[a-z][a-z-]+", line.split(" -- ")[0].split("  #")[0]))
        wrong += [f"{page}: {line}"] if name is None or asked - known else []
    assert wrong == []


def test_every_check_is_documented():
    catalogue = import_module("rigctl.checks.catalogue").CATALOGUE
    ids = [info.id for info in (catalogue.values() if isinstance(catalogue, dict) else catalogue)]
    assert len(ids) > 20
    page = documented("checks.md")
    assert [check for check in ids if f"`{check}`" not in page] == []


def test_every_fault_is_documented():
    names = [fault.name for fault in import_module("rigctl.sim.faults").catalogue()]
    assert len(names) >= 7
    page = documented("faults.md")
    assert [name for name in names if not re.search(rf"^## {name}$|`{name}`", page, flags=re.MULTILINE)] == []


def role_specs():
    for path in sorted((REPO / "roles").glob("*/meta/argument_specs.yml")):
        yield (
            path.parents[1].name,
            yaml.safe_load(path.read_text(encoding="utf-8"))["argument_specs"]["main"]["options"],
        )


def test_every_role_variable_is_documented():
    page = documented("roles.md")
    assert [v for _role, options in role_specs() for v in options if f"`{v}`" not in page] == []


def test_links_between_pages_lead_somewhere():
    wrong = []
    for page in PAGES:
        targets = re.findall(r"\]\((?!https?:|#|mailto:)([^)#\s]+)", page.read_text(encoding="utf-8"))
        wrong += [f"{page.name} → {target}" for target in targets if not (page.parent / target).exists()]
    assert wrong == []


def test_every_page_is_in_the_index():
    index = documented("index.md")
    assert [page.name for page in DOCS.glob("*.md") if page.name != "index.md" and f"({page.name})" not in index] == []
