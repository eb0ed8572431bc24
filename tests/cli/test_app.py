"""The command as people meet it: help, versions, one-line errors, exit codes, start-up."""

from __future__ import annotations

import logging
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from rigctl import __version__
from rigctl.cli import app as cli
from rigctl.cli.app import main
from rigctl.errors import ChangeIncomplete, ConnectionLost, UsageError

RIGCTL = str(Path(sys.executable).with_name("rigctl"))


@pytest.fixture
def raising(monkeypatch: pytest.MonkeyPatch):
    """Let `rigctl boom` raise whatever a test wants."""

    def prepare(error: BaseException) -> None:
        def boom() -> None:
            raise error

        real = cli.build_app

        def build(_words: list[str]) -> typer.Typer:
            app = real()
            app.command("boom")(boom)
            return app

        monkeypatch.setattr(cli, "build_app", build)

    return prepare


@pytest.mark.parametrize(
    ("error", "code", "lines"),
    [
        (UsageError("no such thing", "do that"), 2, ["error: no such thing", "hint: do that"]),
        (ConnectionLost("rig1: gone\nreally", "look"), 3, ["error: rig1: gone really", "hint: look"]),
        (ChangeIncomplete("half", "again"), 4, ["error: half", "hint: again"]),
        (KeyboardInterrupt(), 130, ["error: interrupted"]),
        (typer.Exit(3), 3, []),
    ],
)
def test_errors_become_lines_and_codes(raising, capsys, error: BaseException, code: int, lines: list[str]) -> None:
    raising(error)
    assert main(["boom"]) == code
    said = capsys.readouterr()
    assert said.err.splitlines() == lines
    assert said.out == ""


def test_sigterm_ends_a_command_as_ctrl_c_does(monkeypatch, capsys) -> None:
    real = cli.build_app

    def build(_words: list[str]) -> typer.Typer:
        app = real()
        app.command("boom")(lambda: signal.raise_signal(signal.SIGTERM))
        return app

    monkeypatch.setattr(cli, "build_app", build)
    before = signal.getsignal(signal.SIGTERM)
    assert main(["boom"]) == 130
    assert capsys.readouterr().err == "error: interrupted\n"
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_fault_of_ours_is_said_and_debug_shows_it(raising, capsys) -> None:
    raising(ZeroDivisionError("by zero"))
    assert main(["boom"]) == 3
    said = capsys.readouterr().err
    assert said.startswith("error: unexpected ZeroDivisionError: by zero\nhint: ")
    assert "Traceback" not in said
    for words in (["--debug", "boom"], ["boom", "--debug"]):
        assert main(words) == 3
        assert "Traceback" in capsys.readouterr().err


def test_debug_shows_the_traceback_of_a_fault_that_was_told_as_one_rigs_error(monkeypatch, capsys) -> None:
    def build(_words: list[str]) -> typer.Typer:
        app = typer.Typer()

        @app.command()
        def boom() -> None:
            try:
                int("unforeseen")
            except ValueError:
                logging.getLogger("rigctl.measure.rig").debug("measuring rig1 broke", exc_info=True)

        return app

    monkeypatch.setattr(cli, "build_app", build)
    assert main([]) == 0
    assert "Traceback" not in capsys.readouterr().err
    assert main(["--debug"]) == 0
    assert "ValueError: invalid literal" in capsys.readouterr().err


def test_debug_shows_the_traceback_of_a_known_error(raising, capsys) -> None:
    raising(UsageError("no such thing", "do that"))
    assert main(["--debug", "boom"]) == 2
    said = capsys.readouterr().err
    assert "Traceback" in said
    assert said.endswith("error: no such thing\nhint: do that\n")


@pytest.mark.parametrize("words", [["nosuch"], ["--nosuch"], ["doctor", "--nosuch"], ["doctor", "a", "b"]])
def test_wrong_words(capsys, words: list[str]) -> None:
    assert main(words) == 2
    error, hint = capsys.readouterr().err.splitlines()
    assert error.startswith("error: ")
    assert hint.startswith("hint: see 'rigctl")


def test_no_inventory_is_one_error_before_any_ssh(capsys, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("RIGCTL_INVENTORY", raising=False)
    assert main(["doctor"]) == 2
    assert capsys.readouterr().err.splitlines() == [
        "error: no inventory at inventory",
        "hint: name one with -i PATH or RIGCTL_INVENTORY",
    ]


def test_version_and_help(capsys) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"rigctl {__version__}\n"
    assert main(["--help"]) == 0
    assert "doctor" in capsys.readouterr().out


def test_every_command_has_help_with_an_example(capsys) -> None:
    group = typer.main.get_command(cli.build_app())
    assert set(group.commands) >= {"doctor"}
    for name, command in group.commands.items():
        for path in [[name]] if not hasattr(command, "commands") else [[name, sub] for sub in command.commands]:
            assert main([*path, "--help"]) == 0
            assert "xample" in capsys.readouterr().out, path


def test_each_command_is_registered_by_the_module_of_its_name() -> None:
    """So that one command need not load what all others need; the help page shows all of them, in their order."""
    for name in cli.COMMANDS:
        assert list(typer.main.get_command(cli.build_app([name, "--help"])).commands) == [name]
    for words in ([], ["--help"], ["nosuch"], ["--version", "history"]):
        assert set(typer.main.get_command(cli.build_app(words)).commands) == set(cli.COMMANDS)
    modules = {
        path.stem for path in Path(cli.__file__).parent.glob("*.py") if "def register(" in path.read_text("utf-8")
    }
    assert modules == set(cli.COMMANDS)


def test_words_after_two_dashes_are_left_alone() -> None:
    assert cli._take_debug(["sim", "ssh", "--debug", "--", "x", "--debug"]) == (
        ["sim", "ssh", "--", "x", "--debug"],
        True,
    )
    assert cli._take_debug(["x"]) == (["x"], False)


def test_help_starts_quickly_and_without_the_heavy_libraries() -> None:
    command = "import sys; from rigctl.cli.app import main; main(['--help']); "
    heavy = "{'fabric', 'paramiko', 'ansible', 'ansible_runner', 'plotly', 'testinfra', 'pytest'}"
    said = subprocess.run(
        [sys.executable, "-c", command + f"print(sorted({heavy} & set(sys.modules)))"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert said.stdout.splitlines()[-1] == "[]"
    assert min(_cpu_seconds() for _ in range(3)) < 0.6  # 0.3 on an idle machine


def _cpu_seconds() -> float:
    """Time of the processor, not of the clock: other tests may run at the same time."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([RIGCTL, "--help"], check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
