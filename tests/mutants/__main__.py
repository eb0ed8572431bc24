"""`make mutants`: try the mutants of every module of the checks, or of those that are named.

Ends with 1 where a mutant survives that nobody explains, or an explanation is not needed; with 2 where the tests fail
without any mutant.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import Counter

import pytest

from .loop import Loop, Outcome, described
from .page import PAGE, REPO, Count, Survivor, explained, figures, modules, survivors, written

TESTS = ("tests/checks", "tests/parse/test_spoilt_verdicts.py", "tests/spec/test_waivers.py")
LEFT_OUT = "tests/checks/test_bad_input.py"
"""Every check on every kind of bad reading: hundreds of tests that pass through everything."""
NESTED = "tests/spec/test_waivers.py::test_a_run_with_a_waiver_is_well_and_replays_byte_for_byte"
"""It runs pytest itself, which is no place for a test loop of our own."""
_OUT = os.dup(1)  # pytest captures the first one


def say(line: str) -> None:
    """Write one line, at once."""
    os.write(_OUT, f"{line}\n".encode())


def main() -> int:
    """Run the asked modules' mutants, say what survives, and write what became of them into the page."""
    known = modules()
    parser = argparse.ArgumentParser(prog="make mutants", description=__doc__)
    parser.add_argument("modules", nargs="*", choices=[*known, []], metavar="MODULE")
    asked = parser.parse_args().modules or list(known)
    begin = time.monotonic()
    loop = Loop({name: known[name] for name in asked}, say)
    options = [
        "-o",
        "addopts=",
        "--assert=plain",
        f"--ignore={REPO / LEFT_OUT}",
        f"--deselect={NESTED}",
        "-p",
        "no:terminal",
        "-p",
        "no:cacheprovider",
        "-m",
        "not rigs",
    ]
    ended = pytest.main([*options, *(str(REPO / one) for one in TESTS)], plugins=[loop])
    unexplained = _judge(loop.outcomes, set(asked))
    say(f"{len(loop.outcomes)} mutants, {unexplained} unexplained, in {time.monotonic() - begin:.0f} s")
    if not loop.broken:
        page = PAGE.read_text(encoding="utf-8")
        counts = _counts(loop.outcomes)
        PAGE.write_text(written(page, figures=figures(counts, page), survivors=survivors()), encoding="utf-8")
    for one in loop.broken:
        say(f"left out, for it fails without any mutant: {one}")
    if loop.broken or not loop.outcomes:
        say(f"pytest ended with {ended}: make the tests pass first")
        return 2
    return 1 if unexplained else 0


def _survivor(outcome: Outcome) -> Survivor:
    mutant = outcome.mutant
    return Survivor(mutant.module, mutant.function, mutant.comparison, mutant.turned)


def _judge(outcomes: list[Outcome], asked: set[str]) -> int:
    """Say what survives without a reason, and which reasons are not needed; return how many."""
    reasons = explained()
    survived = [one for one in outcomes if one.survived]
    bare = [one for one in survived if _survivor(one) not in reasons]
    unneeded = [one for one in reasons if one.module in asked and one not in {_survivor(o) for o in survived}]
    for outcome in bare:
        say(f"survives {outcome.tests} tests: {described(outcome.mutant)}")
    for one in unneeded:
        say(f"is explained, and does not survive: {one.module} {one.function}: `{one.comparison}` → `{one.turned}`")
    return len(bare) + len(unneeded)


def _counts(outcomes: list[Outcome]) -> list[Count]:
    """Return the figures of each module of whose survivors all are explained."""
    reasons = explained()
    made = Counter(one.mutant.module for one in outcomes)
    survived = Counter(one.mutant.module for one in outcomes if one.survived)
    bare = {one.mutant.module for one in outcomes if one.survived and _survivor(one) not in reasons}
    return [
        Count(name, number, number - survived[name], survived[name])
        for name, number in made.items()
        if name not in bare
    ]


if __name__ == "__main__":
    sys.exit(main())
