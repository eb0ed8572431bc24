"""What every command shares: option types, the progress console, JSON output, the two lines of an error."""

from __future__ import annotations

import getpass
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from rigctl.errors import UsageError

if TYPE_CHECKING:
    from pydantic import SecretStr

    from rigctl.errors import RigctlError
    from rigctl.model.rig import Rig

RigsArg = Annotated[
    str,
    typer.Argument(metavar="RIGS", help="Ansible host pattern: a rig, a group, 'rig1,rig2', 'all:!rig3'."),
]
"""Use it as `rigs: RigsArg = "all"`."""

InventoryOpt = Annotated[
    Path | None,
    typer.Option(
        "-i",
        "--inventory",
        envvar="RIGCTL_INVENTORY",
        metavar="PATH",
        help="Ansible inventory, a folder or a file.",
        show_default="./inventory",
    ),
]
"""Use it as `inventory: InventoryOpt = None`; `load_fleet` turns None into ./inventory."""

JsonOpt = Annotated[bool, typer.Option("--json", help="Print data as JSON on stdout.")]
"""Use it as `as_json: JsonOpt = False`."""

AskBecomeOpt = Annotated[
    bool,
    typer.Option(
        "-K",
        "--ask-become-pass",
        help="Ask for sudo's password, for rigs whose inventory has none.",
    ),
]
"""Use it as `ask_become_pass: AskBecomeOpt = False`, then `ask_secret`."""

EvictOpt = Annotated[
    bool,
    typer.Option(
        "--evict-users", help="End what uses a rig (its cards, its processor, logins) instead of refusing it."
    ),
]
IgnoreLockOpt = Annotated[
    bool, typer.Option("--ignore-lock", help="Stop another run that is under way on a rig instead of refusing it.")
]

RunsOpt = Annotated[
    Path,
    typer.Option("--runs", envvar="RIGCTL_RUNS", metavar="DIR", help="Folder of the run directories."),
]
"""Use it as `runs: RunsOpt = DEFAULT_RUNS`."""

IndexOpt = Annotated[
    str | None,
    typer.Option(
        "--index",
        envvar="RIGCTL_INDEX",
        metavar="URL",
        help="A database that several controllers share, as SQLAlchemy writes it.",
        show_default="index.sqlite among the runs",
    ),
]
"""Use it as `index_url: IndexOpt = None`."""

DEFAULT_RUNS = Path("runs")
SUDO_QUESTION = "password for sudo"

console = Console(stderr=True, highlight=False)
"""Progress and words for people; stdout stays free for data."""


def emit_json(obj: Any) -> None:
    """Print `obj` as one JSON document on stdout; pydantic models are dumped in their JSON form."""
    dump = getattr(obj, "model_dump", None)
    plain = dump(mode="json") if dump else obj
    sys.stdout.write(json.dumps(plain, indent=2, ensure_ascii=False) + "\n")


def ask_secret(question: str) -> SecretStr:
    """Ask for a secret on the terminal, unseen; without one, read a line of standard input.

    Raises:
        UsageError: nothing was given.
    """
    from pydantic import SecretStr  # noqa: PLC0415 - keeps `rigctl --help` fast

    typed = sys.stdin.isatty()
    given = getpass.getpass(f"{question}: ", sys.stderr) if typed else sys.stdin.readline().rstrip("\r\n")
    if not given:
        raise UsageError(f"no answer to: {question}", "type it at the prompt, or give it as a line of standard input")
    return SecretStr(given)


def with_sudo_password(fleet: tuple[Rig, ...], *, asked: bool) -> tuple[Rig, ...]:
    """The fleet with sudo's password from the prompt, where that is asked for and the inventory has none."""
    if not asked:
        return fleet
    password = ask_secret(SUDO_QUESTION)
    return tuple(rig.with_become_password(password) for rig in fleet)


def print_error(message: str, hint: str) -> None:
    """Print the two lines of an error on stderr; line breaks inside them become spaces."""
    for word, text in (("error", message), ("hint", hint)):
        if text:
            sys.stderr.write(f"{_coloured(word)}: {' '.join(text.split())}\n")


def print_rigctl_error(error: RigctlError) -> None:
    """Print `error` and its remedy."""
    print_error(error.message, error.hint)


def _coloured(word: str) -> str:
    if not sys.stderr.isatty() or os.environ.get("NO_COLOR"):
        return word
    return f"\x1b[1;31m{word}\x1b[0m" if word == "error" else f"\x1b[1;36m{word}\x1b[0m"
