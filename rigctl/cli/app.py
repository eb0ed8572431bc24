"""The `rigctl` command: registers every command and turns what they raise into words and an exit code."""

from __future__ import annotations

import contextlib
import importlib
import logging
import signal
import sys
import threading
import traceback
from typing import TYPE_CHECKING, Annotated, NoReturn, cast

import typer

from rigctl import __version__
from rigctl.cli.common import print_error, print_rigctl_error
from rigctl.errors import ExitCode, RigctlError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import FrameType

COMMANDS = (
    *("demo", "init", "bootstrap", "doctor", "provision", "check", "accept", "collect", "judge", "report", "history"),
    *("compare", "baseline", "upgrade", "nightly", "site", "prune", "power", "identify", "evidence", "certificate"),
    *("health", "spec", "compat", "bundle", "sim", "metrics"),
)
"""In the order of the help page; each is registered by the module of its name."""

# Typer brings its own copy of click, or uses the real one, depending on its version; the parser's base error is
# reached through the one name that both export.
_ParserError = cast("type[typer.BadParameter]", typer.BadParameter.__bases__[0])


def build_app(words: Sequence[str] = ()) -> typer.Typer:
    """Build the Typer app with every command; with that one alone which `words` begin with, for that is quicker."""
    app = typer.Typer(
        name="rigctl",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode="rich",
        context_settings={"help_option_names": ["-h", "--help"]},
        help="Provision GPU rigs over SSH, accept them under load, report what to do.",
        epilog="Exit codes: 0 all well · 1 some rig failed · 2 usage, inventory or spec · 3 not measured · "
        "4 a change did not complete · 130 interrupted.",
    )
    app.callback()(_global_options)
    for command in words[:1] if words and words[0] in COMMANDS else COMMANDS:
        importlib.import_module(f"rigctl.cli.{command}").register(app)
    return app


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line `argv` (default: the process's own) and return its exit code."""
    arguments, debug = _take_debug(sys.argv[1:] if argv is None else argv)
    try:
        with _terminated_like_interrupted(), _own_faults_shown(debug=debug):
            code = typer.main.get_command(build_app(arguments)).main(
                arguments, prog_name="rigctl", standalone_mode=False
            )
    except _ParserError as error:
        return _usage_mistake(error)
    except (typer.Abort, KeyboardInterrupt):
        print_error("interrupted", "")
        return ExitCode.INTERRUPTED
    except RigctlError as error:
        if debug:
            traceback.print_exc()
        print_rigctl_error(error)
        return error.exit_code
    except Exception as error:  # noqa: BLE001 - the process boundary: people get a line, --debug the traceback
        return _own_fault(error, debug=debug)
    # Typer turns Ctrl-C into this exit code, or raises Abort, depending on its version.
    if code == ExitCode.INTERRUPTED:
        print_error("interrupted", "")
    return code if isinstance(code, int) else ExitCode.OK


@contextlib.contextmanager
def _terminated_like_interrupted() -> Iterator[None]:
    """Let SIGTERM end a command as Ctrl-C does: what it started (Ansible, simulated rigs) is ended or taken down."""

    def interrupt(_number: int, _frame: FrameType | None) -> NoReturn:
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _print_version(asked: bool) -> None:
    if asked:
        sys.stdout.write(f"rigctl {__version__}\n")
        raise typer.Exit


def _global_options(
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks.")] = False,
    version: Annotated[
        bool,
        typer.Option("--version", help="Print the version and exit.", is_eager=True, callback=_print_version),
    ] = False,
) -> None:
    """Take the options that stand before the command."""


def _take_debug(argv: Sequence[str]) -> tuple[list[str], bool]:
    """Take `--debug` out of `argv` wherever it stands before a `--`, so that it works after the command as well."""
    end = argv.index("--") if "--" in argv else len(argv)
    own = [word for word in argv[:end] if word != "--debug"]
    return [*own, *argv[end:]], len(own) < end


@contextlib.contextmanager
def _own_faults_shown(*, debug: bool) -> Iterator[None]:
    """With `--debug`, show what rigctl's own code logs: the traceback of a fault that is told as one rig's error."""
    if not debug:
        yield
        return
    log, shown = logging.getLogger("rigctl"), logging.StreamHandler()
    before = log.level
    log.addHandler(shown)
    log.setLevel(logging.DEBUG)
    try:
        yield
    finally:
        log.removeHandler(shown)
        log.setLevel(before)


def _usage_mistake(error: typer.BadParameter) -> int:
    """Print a mistake in the words of a command; asked for nothing at all, print the help page."""
    context = error.ctx
    if type(error).__name__ == "NoArgsIsHelpError" and context is not None:
        sys.stderr.write(context.get_help() + "\n")
        return ExitCode.USAGE
    command = context.command_path if context is not None else "rigctl"
    print_error(error.format_message(), f"see '{command} --help'")
    return ExitCode.USAGE


def _own_fault(error: Exception, *, debug: bool) -> int:
    if debug:
        traceback.print_exception(error)
    print_error(
        f"unexpected {type(error).__name__}: {error}",
        "this is a fault of rigctl itself; run the command again with --debug and report the traceback",
    )
    return ExitCode.UNMEASURED
