"""Judging a night: the suite's own functions, one after another, without the machinery of a test run.

The checks of rigctl/acceptance are plain functions that take what they need by name and carry their check's id; pytest
calls them in an acceptance, this calls them here. So what a night is judged by can never be another thing.
"""

from __future__ import annotations

import importlib
import inspect
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import rigctl.acceptance
from rigctl.checks.catalogue import CATALOGUE, order
from rigctl.checks.causes import with_causes
from rigctl.model.run import RunRig
from rigctl.model.verdict import RigRecord

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from testinfra.host import Host

    from rigctl.model.reading import Readings
    from rigctl.model.verdict import CheckVerdict
    from rigctl.sim.nights.night import Asked


@dataclass(frozen=True)
class Suited:
    """One test of the suite: its check, and what it asks for by name."""

    check: str
    test: Callable[..., None]
    wants: tuple[str, ...]


@cache
def suite() -> tuple[Suited, ...]:
    """Return every test of the shipped suite."""
    found = []
    for path in sorted(Path(rigctl.acceptance.__file__).parent.glob("test_*.py")):
        module = importlib.import_module(f"rigctl.acceptance.{path.stem}")
        for name, test in inspect.getmembers(module, inspect.isfunction):
            marks = [mark for mark in getattr(test, "pytestmark", ()) if mark.name == "check"]
            if name.startswith("test_") and marks:
                found.append(Suited(marks[0].args[0], test, tuple(inspect.signature(test).parameters)))
    return tuple(found)


def judge(asked: Asked, readings: Readings, host: Host) -> RigRecord:
    """Judge one night as an acceptance does, causes included.

    Raises KeyError for a test that wants what a night has not.
    """
    verdicts: list[CheckVerdict] = []

    def take(said: Iterable[CheckVerdict]) -> None:
        verdicts.extend(said)

    known: dict[str, Any] = {
        "rig": RunRig(name=asked.name, spec=asked.spec, profile=asked.profile, baseline=asked.baseline),
        "host": host,
        "spec": asked.spec,
        "profile": asked.profile,
        "baseline": asked.baseline,
        "readings": readings,
        "judge": take,
    }
    for one in suite():
        if CATALOGUE[one.check].listed(asked.profile):
            one.test(**{name: known[name] for name in one.wants})
    ordered = sorted(verdicts, key=lambda verdict: (order(verdict.check), verdict.subject))
    return RigRecord(
        name=asked.name, rig_class=asked.spec.rig_class, simulated=True, verdicts=with_causes(ordered, readings)
    )
