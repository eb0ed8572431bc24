"""`rigctl check --list`: every check, what it requires, how long its steps take, whence its limit, what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rigctl.checks.catalogue import CATALOGUE
from rigctl.cli.common import DEFAULT_RUNS
from rigctl.report.text import duration

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rigctl.checks.info import CheckInfo
    from rigctl.model.rig import Rig


def expected_seconds(fleet: Sequence[Rig], profile: str) -> dict[str, float]:
    """Return the steps of a profile and how long each is expected to take on the slowest of the rigs, seconds.

    Raises:
        UsageError: a rig's inventory has no such profile.
    """
    from rigctl.accept import AcceptOptions, profile_of  # noqa: PLC0415 - keeps `rigctl --help` fast
    from rigctl.measure.plan import step_seconds  # noqa: PLC0415

    options = AcceptOptions(tuple(fleet), profile, DEFAULT_RUNS)
    expected: dict[str, float] = {}
    for rig in fleet:
        for step, seconds in step_seconds(rig.spec, profile_of(rig, options)).items():
            expected[step] = max(seconds, expected.get(step, 0.0))
    return expected


def entries(expected: Mapping[str, float] | None) -> list[dict[str, Any]]:
    """Return every check as plain data; with a profile's steps, those that it asks for and their time, seconds."""
    listed = [info for info in CATALOGUE.values() if expected is None or _asked(info, expected)]
    return [
        {
            "check": info.id,
            "title": info.title,
            "requires": list(info.needs),
            "steps": [step for step in info.steps if expected is None or step in expected],
            "seconds": None if expected is None else info.seconds(expected),
            "limit_from": list(info.limit_from),
            "fix": info.fix,
        }
        for info in listed
    ]


def _asked(info: CheckInfo, expected: Mapping[str, float]) -> bool:
    return not info.steps or bool(set(info.steps) & set(expected))


def lines(entry: Mapping[str, Any]) -> list[str]:
    """Return one check in words."""
    said = {
        "requires": ", ".join(entry["requires"]) or "nothing beside the rig",
        "takes": _takes(entry),
        "limit from": ", ".join(entry["limit_from"]),
        "do first": entry["fix"],
    }
    return [f"{entry['check']}: {entry['title']}", *(f"    {name:10}  {text}" for name, text in said.items())]


def _takes(entry: Mapping[str, Any]) -> str:
    if not entry["steps"]:
        return "no time of its own: it is judged on what is read in any case"
    shared = f"judged on {', '.join(entry['steps'])}"
    return shared if entry["seconds"] is None else f"about {duration(entry['seconds'])}, {shared}"
