"""Judging a run: one pytest run over all rigs, from which a record comes that a replay makes again byte for byte."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import threading
import warnings
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import rigctl.acceptance
from rigctl.acceptance.ahead import ask_ahead
from rigctl.acceptance.asking import asking
from rigctl.acceptance.plugin import Case, JudgePlugin
from rigctl.checks.catalogue import order
from rigctl.checks.causes import with_causes
from rigctl.checks.energy import notes as energy_notes
from rigctl.checks.load import STEPS, steps_of
from rigctl.checks.second_opinion import with_disagreement
from rigctl.checks.waivers import with_waivers
from rigctl.errors import RigctlError, UsageError
from rigctl.fleet.testinfra_backend import replay_host
from rigctl.model.verdict import BusyRig, Record, RigRecord
from rigctl.store.pruned import require_whole

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import date

    from testinfra.host import Host

    from rigctl.model.reading import CommandReply, Readings
    from rigctl.model.run import RunInfo, RunRig
    from rigctl.model.spec import RigSpec
    from rigctl.model.verdict import CheckVerdict
    from rigctl.store import RunDir

USER_TESTS = ".acceptance"
"""Folder of the run directory with the user's own tests as they were when the run was judged first."""
_SUITE = Path(rigctl.acceptance.__file__).parent
_ENVIRONMENT = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": None, "PYTEST_PLUGINS": None}
"""Only the suite's own plugin; what a user set for other pytest runs does not reach into this one."""
_KEPT = ("PYTEST_CURRENT_TEST", "PYTEST_VERSION")
"""What pytest itself sets and takes away: an outer run needs its own values back."""
_ONE_AT_A_TIME = threading.Lock()
"""Streams, environment, warnings and modules belong to the whole process; an upgrade judges its rigs in threads."""
_QUIET = ("terminalreporter", "cacheprovider", "faulthandler", "unraisableexception", "threadexception", "logging")
"""Plugins that would print, write or take over what belongs to the whole process."""


def judge_run(
    run_dir: RunDir,
    hosts: Mapping[str, Host] | None = None,
    *,
    user_tests: Sequence[Path] = (),
    instead: Mapping[str, RigSpec] | None = None,
) -> Record:
    """Judge every rig of a run and return the record; nothing is written but what the replay needs.

    Args:
        run_dir: the run.
        hosts: testinfra's hosts by rig name, which record what they answer; a rig without one, and every rig when
            this is None, is judged from its record of commands.
        user_tests: folders of the user's own test files; kept in the run directory, from where a replay takes them.
        instead: judge only these rigs, and by these specs instead of the run's own.

    Raises:
        UsageError: a reading is damaged, or telemetry was pruned; the run is of a kind that cannot be judged; a folder
            of tests is not there.
        RigctlError: pytest itself broke; the reason is in judge.log.
    """
    info = run_dir.read_info()
    if hosts is not None and user_tests:
        _keep(run_dir, user_tests)
    asked = [
        rig if instead is None else rig.model_copy(update={"spec": instead[rig.name]})
        for rig in info.rigs
        if instead is None or rig.name in instead
    ]
    require_whole(run_dir.path, info.run_id, [rig.name for rig in asked])
    busy = _busy(run_dir, asked)
    left_out = {one.name for one in busy}
    cases = [_case(run_dir, info, rig, (hosts or {}).get(rig.name)) for rig in asked if rig.name not in left_out]
    ask_ahead([case for case in cases if case.rig.name in (hosts or {})], run_dir.append_command)
    plugin = JudgePlugin(cases, _SUITE)
    _run_pytest(plugin, run_dir)
    plugin.finish()
    ended_at = _ended_at(info, [case.readings for case in cases])
    return Record(
        run_id=info.run_id,
        kind=info.kind,
        profile=info.profile,
        started_at=info.started_at,
        ended_at=ended_at,
        rigctl_version=info.rigctl_version,
        rigs=tuple(_rig_record(run_dir, case, _day(ended_at)) for case in cases),
        busy=busy,
    )


def _busy(run_dir: RunDir, asked: Sequence[RunRig]) -> tuple[BusyRig, ...]:
    """Return the rigs that somebody uses: they were left out, and nothing of them is judged."""
    found = []
    for rig in asked:
        outcome = run_dir.outcome(rig.name)
        if outcome is not None and outcome.busy is not None:
            found.append(BusyRig(name=rig.name, rig_class=rig.spec.rig_class, users=outcome.busy, fix=outcome.busy_fix))
    return tuple(found)


def user_test_files(folders: Sequence[Path]) -> list[Path]:
    """Return the Python files in the user's folders of tests.

    Raises UsageError for a folder without any test, and for two test files of one name: verdicts go by it.
    """
    files: list[Path] = []
    for folder in folders:
        found = sorted(path for path in folder.rglob("*.py") if "__pycache__" not in path.parts)
        if not any(path.name.startswith("test_") for path in found):
            raise UsageError(f"{folder} holds no test_*.py", "name a folder with testinfra test files")
        files += found
    tests = [path.name for path in files if path.name.startswith("test_")]
    if twice := sorted({name for name in tests if tests.count(name) > 1}):
        raise UsageError(f"two test files are called {twice[0]}", "verdicts go by the file's name: rename one")
    return files


def _keep(run_dir: RunDir, folders: Sequence[Path]) -> None:
    user_test_files(folders)
    for number, folder in enumerate(folders, start=1):
        for path in user_test_files([folder]):
            copy = run_dir.path / USER_TESTS / str(number) / path.relative_to(folder)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copy)


def _case(run_dir: RunDir, info: RunInfo, rig: RunRig, live: Host | None) -> Case:
    if rig.profile is None:
        raise UsageError(f"run {info.run_id} is of kind {info.kind}: nothing was measured", "name an accept run")

    def record(reply: CommandReply) -> None:
        run_dir.append_command(rig.name, reply)

    replay = replay_host(run_dir.commands(rig.name), rig.name) if live is None else live
    return Case(rig, rig.profile, run_dir.readings(rig.name), asking(replay, record if live is not None else None))


def _run_pytest(plugin: JudgePlugin, run_dir: RunDir) -> None:
    kept = run_dir.path / USER_TESTS
    own = sorted(str(path) for path in _SUITE.glob("test_*.py"))
    theirs = sorted(str(path) for path in kept.rglob("test_*.py"))
    quiet = [word for name in _QUIET for word in ("-p", f"no:{name}")]
    conftests = ["--confcutdir", str(kept)] if theirs else ["--noconftest"]
    settings = ["-c", str(_SUITE / "pytest.ini"), "--rootdir", str(_SUITE), "--import-mode=importlib"]
    # Our own checks print nothing; users' tests may, and what they print is none of the command's own output.
    settings += ["--capture=sys" if theirs else "--capture=no", "--continue-on-collection-errors"]
    with _ONE_AT_A_TIME, _apart():
        status = pytest.main([*settings, *conftests, *quiet, *own, *theirs], plugins=[plugin])
    if plugin.trouble:
        run_dir.write_text_atomic("judge.log", "\n".join(plugin.trouble) + "\n")
    if status in (pytest.ExitCode.INTERNAL_ERROR, pytest.ExitCode.USAGE_ERROR):
        first = plugin.trouble[0].splitlines()[-1] if plugin.trouble else f"pytest ended with status {status}"
        raise RigctlError(f"judging broke: {first}", f"see {run_dir.path / 'judge.log'}")
    if plugin.interrupted:
        raise KeyboardInterrupt


@contextlib.contextmanager
def _apart() -> Iterator[None]:
    """Keep this pytest run and one around it (our own tests) from each other: environment, warnings, modules."""
    before = {name: os.environ.get(name) for name in (*_ENVIRONMENT, *_KEPT)}
    bytecode, known = sys.dont_write_bytecode, set(sys.modules)
    sys.dont_write_bytecode = True
    try:
        _set_environment(_ENVIRONMENT)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        sys.dont_write_bytecode = bytecode
        _set_environment(before)
        for name in set(sys.modules) - known:
            if USER_TESTS in (getattr(sys.modules[name], "__file__", None) or ""):
                del sys.modules[name]


def _set_environment(values: Mapping[str, str | None]) -> None:
    for name, value in values.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


def _day(ended_at: str) -> date:
    return datetime.fromisoformat(ended_at).astimezone(UTC).date()


def _rig_record(run_dir: RunDir, case: Case, today: date) -> RigRecord:
    readings, facts = case.readings, case.readings.facts
    verdicts = case.verdicts if case.blank else with_waivers(with_disagreement(case.verdicts), case.rig.waivers, today)
    outcome = run_dir.outcome(case.rig.name)
    return RigRecord(
        name=case.rig.name,
        rig_class=case.rig.spec.rig_class,
        simulated=facts.simulated if facts is not None else None,
        verdicts=with_causes(sorted(verdicts, key=_place), readings),
        notes=(*_notes(case), *energy_notes(readings)),
        left=outcome.left if outcome is not None else "",
    )


def _place(verdict: CheckVerdict) -> tuple[tuple[int, str], str]:
    return order(verdict.check), verdict.subject


def _notes(case: Case) -> tuple[str, ...]:
    """Say what happened and is no verdict, and which steps the profile leaves out."""
    facts = case.readings.facts
    asked = steps_of(case.profile)
    left_out = [step for step in STEPS if step not in asked]
    untested = [f"not run in this profile: {', '.join(left_out)}"] if left_out else []
    problems = [f"while reading facts: {error}" for error in (facts.errors if facts else ())]
    decided = [case.rig.decision.sentence] if case.rig.decision is not None else []
    return (*case.readings.cuts, *problems, *_saved(case), *decided, *untested)


def _saved(case: Case) -> list[str]:
    """Say which burns were ended before their time, and how much that saved."""
    notes = []
    for event in case.readings.events:
        ran, asked = event.detail.get("seconds"), event.detail.get("asked_s")
        if event.event == "ended_early" and isinstance(ran, int | float) and isinstance(asked, int | float):
            notes.append(f"{event.step} ended after {ran:.0f} of {asked:.0f} s, its verdict being certain")
    return notes


def _ended_at(info: RunInfo, all_readings: Sequence[Readings]) -> str:
    """Return the time of the last thing that was measured; the run's start where nothing was."""
    times = [
        time
        for readings in all_readings
        for time in (
            *(sample.controller_wall_s or sample.t_wall_s for sample in readings.samples),
            *(event.t_wall_s for event in readings.events),
        )
    ]
    if not times:
        return info.started_at
    ended = datetime.fromtimestamp(max(times), UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return max(ended, info.started_at)
