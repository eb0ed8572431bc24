"""Command line of the agent: one JSON object on stdout, or `{"error", "hint", "again", "busy"}` and exit status 1."""

from __future__ import annotations

import argparse
import json
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from . import commands
from .errors import AgentError, Busy, TooSlow
from .places import Places

if TYPE_CHECKING:
    from collections.abc import Callable

HEALTH = "rigctl-health"
"""Under this name the agent's file is Slurm's HealthCheckProgram, and speaks to slurmd (health.py)."""


class _Parser(argparse.ArgumentParser):
    """A parser whose complaints are errors like all others."""

    def error(self, message: str) -> NoReturn:
        raise AgentError(f"agent: {message}", "controller and agent are of different versions?")


def _offset(word: str) -> tuple[str, int]:
    name, _, offset = word.rpartition("=")
    if not name or not offset.isdecimal():
        raise argparse.ArgumentTypeError(f"not FILE=N: {word!r}")
    return name, int(offset)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="agent", description="The part of rigctl that runs on a rig.")
    parsers = parser.add_subparsers(dest="command", required=True, parser_class=_Parser)
    for name in ("facts", "probe"):
        command = parsers.add_parser(name)
        command.add_argument("--gpu-burn-dir", default="")
        command.add_argument("--torch-venv", default="")
    parsers.choices["probe"].add_argument("--rest-seconds", type=float, default=0.0)
    parsers.choices["probe"].add_argument("--sample-hz", type=float, default=1.0)
    for name in ("start", "users", "probes"):
        parsers.add_parser(name)
    for name in ("guard", "restore", "poll", "spooled", "stop", "end-step", "ack"):
        parsers.add_parser(name).add_argument("--run", required=True)
    parsers.choices["poll"].add_argument("--offset", type=_offset, action="append", default=[])
    parsers.choices["stop"].add_argument("--reason", default="asked")
    for option in ("--step", "--reason"):
        parsers.choices["end-step"].add_argument(option, required=True)
    log = parsers.add_parser("kernel")
    log.add_argument("--since-mono", type=float, required=True)
    log.add_argument("--boot-id", required=True)
    return parser


def _answer(asked: argparse.Namespace, places: Places) -> dict[str, Any]:
    answers: dict[str, Callable[[], dict[str, Any]]] = {
        "facts": lambda: commands.facts(asked.gpu_burn_dir, asked.torch_venv),
        "probe": lambda: commands.probe(asked.gpu_burn_dir, asked.torch_venv, asked.rest_seconds, asked.sample_hz),
        "users": lambda: commands.users(places),
        "probes": commands.probes,
        "start": lambda: commands.start(sys.stdin.buffer.read(), places),
        "poll": lambda: commands.poll(asked.run, dict(asked.offset), places),
        "spooled": lambda: commands.spooled(asked.run, places),
        "stop": lambda: commands.stop(asked.run, asked.reason, places),
        "end-step": lambda: commands.end_step(asked.run, asked.step, asked.reason, places),
        "restore": lambda: commands.restore(asked.run, places),
        "ack": lambda: commands.ack(asked.run, places),
        "kernel": lambda: commands.kernel(asked.since_mono, asked.boot_id),
    }
    return answers[asked.command]()


def main(argv: list[str] | None = None, places: Places | None = None) -> int:
    """Run one command; exit status 0, or 1 with an error on stdout."""
    places = places or Places()
    if argv is None and Path(sys.argv[0]).name == HEALTH:
        from .health import run  # noqa: PLC0415 - the controller never calls it

        return run(sys.argv[1:])
    try:
        asked = _parser().parse_args(argv)
        if asked.command == "guard":
            from .guard import run_guard  # noqa: PLC0415 - only the unit's main process needs all of it

            return run_guard(asked.run, places)
        answer = _answer(asked, places)
    except AgentError as error:
        kind = {"again": isinstance(error, TooSlow), "busy": isinstance(error, Busy)}
        _print({"error": error.message, "hint": error.hint, **kind})
        return 1
    except Exception as error:  # noqa: BLE001 - the process's boundary: told to the controller, with the traceback beside it
        traceback.print_exc()
        _print(
            {"error": f"the agent broke: {error!r}", "hint": "this is a fault of rigctl; its traceback is on stderr"}
        )
        return 1
    _print(answer)
    return 0


def _print(answer: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(answer, separators=(",", ":")) + "\n")
