"""The loop: in one process that has collected the tests, a fork for each mutant runs the tests that pass through it."""

from __future__ import annotations

import gc
import importlib
import json
import os
import signal
import sys
import time
from collections import Counter
from types import CodeType, FrameType, FunctionType
from typing import TYPE_CHECKING, NamedTuple, TextIO

from _pytest.runner import runtestprotocol

import rigctl.checks

from .made import Mutant, mutants

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    import pytest

LONGEST_S = 2.0
"""Tests that take longer than this are left out: they try many rigs at once, and what kills by them is seen late."""
LONGER = 3
"""A mutant that takes so many times the processor time of its tests, and LONGEST_S, never ends: that is noticed too."""
SURVIVED, KILLED, SPOILT = 0, 1, 2
Place = tuple[str, int]
"""Where a function begins: file and line."""


class Outcome(NamedTuple):
    """What became of a mutant."""

    mutant: Mutant
    survived: bool
    tests: int
    """How many tests pass through it."""


class Loop:
    """A plugin of pytest that takes its test loop over."""

    def __init__(self, sources: dict[str, Path], tell: Callable[[str], None]) -> None:
        self.mutants = [mutant for name, path in sources.items() for mutant in mutants(name, path)]
        self.outcomes: list[Outcome] = []
        self.broken: list[str] = []
        """Tests that fail without any mutant, and are left out."""
        self._tell = tell
        self._folder = os.path.dirname(rigctl.checks.__file__) + os.sep  # noqa: PTH120 - compared with code's file names

    @staticmethod
    def pytest_configure(config: pytest.Config) -> None:
        """Have failures told briefly: nobody reads them."""
        config.option.tbstyle = "native"

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Note what cannot be collected."""
        if report.failed:
            self.broken.append(f"{report.nodeid}: {report.longrepr}")

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Run every test once to see where it passes, then each mutant in a fork."""
        passes = self._passes(session.items)
        functions = _functions(self._folder)
        gc.freeze()  # a fork that collects garbage would copy everything
        kills: Counter[tuple[str, str]] = Counter()
        """How many mutants of a module a test has noticed: it is asked first about the next one."""
        for number, mutant in enumerate(self.mutants, 1):
            through = [(item, spent_s) for item, places, spent_s in passes if _passes_through(places, mutant)]
            items = [item for item, _ in through]
            most_s = LONGEST_S + LONGER * sum(spent_s for _, spent_s in through)
            items.sort(key=lambda item: -kills[mutant.module, item.nodeid])
            killer = _killer(mutant, functions, items, most_s)
            kills[mutant.module, killer] += 1
            survived = not killer
            self.outcomes.append(Outcome(mutant, survived, len(items)))
            if survived:
                self._tell(f"{number}/{len(self.mutants)} survives {len(items)} tests: {described(mutant)}")
        return True

    def _passes(self, items: list[pytest.Item]) -> list[tuple[pytest.Item, frozenset[Place], float]]:
        """Return each test that passes, the functions of the checks that it called, its seconds; quick ones first."""
        found: list[tuple[pytest.Item, frozenset[Place], float]] = []
        left = list(items)
        while left:
            run = left.copy()
            status, words = _in_a_fork(lambda told, run=run: _trace(run, self._folder, told), LONGEST_S)
            for item, line in zip(run, words.splitlines(), strict=False):
                failed, spent_s, places = json.loads(line)
                if failed:
                    self.broken.append(item.nodeid)
                else:
                    found.append((item, frozenset(map(tuple, places)), spent_s))
            left = run[len(words.splitlines()) :]
            if left and status == -signal.SIGVTALRM:
                self._tell(f"left out, for it takes more than {LONGEST_S:.0f} s: {left.pop(0).nodeid}")
            elif status != SURVIVED:
                raise RuntimeError(f"the tests could not be run: {words}")
        return sorted(found, key=lambda one: one[2])


NOT_ENDING = "does not end"


def _killer(mutant: Mutant, functions: list[FunctionType], items: list[pytest.Item], most_s: float) -> str:
    """Return the first test that notices a mutant; empty where none does."""

    def run(told: TextIO) -> int:
        _become(mutant, functions)
        killer = next((item.nodeid for item in items if _fails(item)), "")
        told.write(killer)
        return KILLED if killer else SURVIVED

    status, words = _in_a_fork(run, most_s)
    if status == SPOILT:
        raise RuntimeError(f"{described(mutant)} could not be tried: {words}")
    return NOT_ENDING if status < 0 else words


def _in_a_fork(run: Callable[[TextIO], int], cpu_s: float) -> tuple[int, str]:
    """Run in a silent fork with so much processor time; return its exit status, or minus its signal, and its words."""
    reads, writes = os.pipe()
    pid = os.fork()
    if not pid:
        os.close(reads)
        signal.setitimer(signal.ITIMER_VIRTUAL, cpu_s)
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
        with os.fdopen(writes, "w") as told:
            try:
                status = run(told)
            except BaseException as why:  # noqa: BLE001 - a fork's end: it is told to the parent
                status = SPOILT
                told.write(repr(why))
        os._exit(status)
    os.close(writes)
    with os.fdopen(reads) as told:
        words = told.read()
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), words


def _trace(items: list[pytest.Item], folder: str, told: TextIO) -> int:
    """Run tests, each with its own time; write a line for each: failed, its seconds, the functions that it calls."""
    places: set[Place] = set()

    def called(frame: FrameType, _event: str, _argument: object) -> None:
        code = frame.f_code
        if code.co_filename.startswith(folder):
            places.add((code.co_filename[len(folder) :], code.co_firstlineno))

    for item in items:
        places.clear()
        signal.setitimer(signal.ITIMER_VIRTUAL, LONGEST_S)
        begin = time.process_time()
        sys.settrace(called)
        failed = _fails(item)
        sys.settrace(None)
        told.write(json.dumps([failed, time.process_time() - begin, sorted(places)]) + "\n")
        told.flush()
    return SURVIVED


def _fails(item: pytest.Item) -> bool:
    return any(report.failed for report in runtestprotocol(item, log=False, nextitem=None))


def described(mutant: Mutant) -> str:
    """Return one line that names a mutant."""
    return f"{mutant.module}:{mutant.line} {mutant.function}: `{mutant.comparison}` → `{mutant.turned}`"


def _passes_through(places: frozenset[Place], mutant: Mutant) -> bool:
    """Whether a test calls the function around a mutant, or for one at the top of its module any function of it."""
    file = mutant.module.replace(".", os.sep) + ".py"
    return any(name == file and (mutant.lines is None or line in mutant.lines) for name, line in places)


def _functions(folder: str) -> list[FunctionType]:
    """Return every function below a folder that anything holds."""
    return [
        one for one in gc.get_objects() if isinstance(one, FunctionType) and one.__code__.co_filename.startswith(folder)
    ]


def _become(mutant: Mutant, functions: list[FunctionType]) -> None:
    """Give every function of the module the mutant's code; what others hold of them changes with it."""
    module = importlib.import_module(f"rigctl.checks.{mutant.module}")
    path = str(module.__file__)
    code = compile(mutant.code, path, "exec", dont_inherit=True)
    if mutant.lines is None:
        names = {**vars(module)}
        exec(code, names)  # noqa: S102 - the module itself, with one comparison turned round
        vars(module).update({n: value for n, value in names.items() if not isinstance(value, type | FunctionType)})
        return
    new = dict(_codes(code))
    for one in functions:
        if one.__code__.co_filename == path:
            own = one.__code__
            one.__code__ = new[own.co_qualname, own.co_firstlineno, own.co_name]


def _codes(code: CodeType) -> Iterator[tuple[tuple[str, int, str], CodeType]]:
    for const in code.co_consts:
        if isinstance(const, CodeType):
            yield (const.co_qualname, const.co_firstlineno, const.co_name), const
            yield from _codes(const)
