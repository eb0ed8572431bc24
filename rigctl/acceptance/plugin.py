"""The pytest plugin that runs the suite once over all rigs and collects verdicts.

Every test is run for every rig to which its check applies. A test of the suite carries `@pytest.mark.check(id)` and
hands its verdicts to the fixture `judge`. A user's own test needs neither: passing is `pass`, a failed assert is
`fail`, anything else that it raises is `error`, `pytest.skip` is `skip`, under `user.<file>.<test>`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from rigctl.acceptance.asking import NoAnswer
from rigctl.checks.catalogue import CATALOGUE, USER
from rigctl.checks.say import Say

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Sequence
    from pathlib import Path

    from testinfra.host import Host

    from rigctl.model.baseline import Baseline
    from rigctl.model.reading import Readings
    from rigctl.model.run import RunRig
    from rigctl.model.spec import ProfileSpec, RigSpec
    from rigctl.model.verdict import CheckVerdict

    Judge = Callable[[Iterable[CheckVerdict]], None]

_MOST_TEXT = 300


@dataclass
class Case:
    """One rig to be judged, and the verdicts so far."""

    rig: RunRig
    profile: ProfileSpec
    readings: Readings
    host: Host
    verdicts: list[CheckVerdict] = field(default_factory=list)

    @property
    def blank(self) -> bool:
        """Whether nothing at all was measured: then only that is said, once."""
        readings = self.readings
        return readings.unreached is not None and readings.facts is None and not readings.samples

    def add(self, verdict: CheckVerdict) -> None:
        """Take a verdict. Raises ValueError for a second one of the same check on the same subject."""
        if any(verdict.key == known.key for known in self.verdicts):
            message = f"two verdicts for {verdict.key}"
            raise ValueError(message)
        self.verdicts.append(verdict)

    def has(self, check: str) -> bool:
        """Whether the check has said anything."""
        return any(verdict.check == check for verdict in self.verdicts)


class JudgePlugin:
    """Parametrises tests by rig, gives them their fixtures, and turns their outcomes into verdicts."""

    def __init__(self, cases: Sequence[Case], suite: Path) -> None:
        self._cases = {case.rig.name: case for case in cases}
        self._suite = suite
        self.trouble: list[str] = []
        """Errors of pytest itself, in its own words."""
        self.interrupted = False

    @pytest.fixture(autouse=True)
    def _of_one_rig(self, rig: RunRig) -> RunRig:
        """Make every test one of a rig, whether it asks for the rig or not."""
        return rig

    @pytest.fixture
    def spec(self, rig: RunRig) -> RigSpec:
        """What the rig must be and show."""
        return rig.spec

    @pytest.fixture
    def profile(self, rig: RunRig) -> ProfileSpec:
        """Which steps were asked for, and how long."""
        return self._cases[rig.name].profile

    @pytest.fixture
    def baseline(self, rig: RunRig) -> Baseline | None:
        """What the rig's accepted runs had shown; None at its first acceptance."""
        return rig.baseline

    @pytest.fixture
    def readings(self, rig: RunRig) -> Readings:
        """Everything that was measured of the rig."""
        return self._cases[rig.name].readings

    @pytest.fixture
    def host(self, rig: RunRig) -> Host:
        """The host of testinfra: the rig itself, or in a replay what it answered."""
        return self._cases[rig.name].host

    @pytest.fixture
    def judge(self, rig: RunRig, request: pytest.FixtureRequest) -> Judge:
        """Take the verdicts of the test's check."""
        case, check = self._cases[rig.name], _check_of(request.node)

        def take(verdicts: Iterable[CheckVerdict]) -> None:
            for verdict in verdicts:
                if verdict.check != check:
                    message = f"the test of {check} judged {verdict.check}"
                    raise ValueError(message)
                case.add(verdict)

        return take

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Run the test for every rig that its check applies to."""
        marker = metafunc.definition.get_closest_marker("check")
        cases = [case for case in self._cases.values() if _applies(case, marker)]
        metafunc.parametrize("rig", [case.rig for case in cases], ids=[case.rig.name for case in cases])

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Turn the test's outcome into verdicts."""
        report = yield
        for case in self._cases_of(item):
            _Outcome(case, item, report, call).take()
        return report

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(
        self, collector: pytest.Collector
    ) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
        """A test file that cannot be loaded is an error on every rig, under the file's name."""
        report = yield
        if report.failed:
            self.trouble.append(f"{collector.path}: {report.longrepr}")
            # pytest writes the exception last, behind the file's path, which differs from place to place.
            text = _first_line("\n".join(reversed(str(report.longrepr).splitlines()))).removeprefix("E").strip()
            say = Say(f"{USER}{collector.path.stem}")
            for case in self._cases.values():
                if not case.blank and not case.has(say.check):
                    fix = f"correct {collector.path.name}"
                    case.add(say.error(f"the test file cannot be loaded: {text}", fix))
        return report

    def pytest_internalerror(self, excrepr: Any) -> bool:
        """Keep the text; pytest would print it."""
        self.trouble.append(str(excrepr))
        return True

    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        """Tell Ctrl-C from a user's test that calls `pytest.exit`, which leaves the tests after it unrun."""
        self.interrupted = isinstance(excinfo.value, KeyboardInterrupt)
        if not self.interrupted:
            self.trouble.append(f"a test ended the whole run: {excinfo.value}")

    def finish(self) -> None:
        """Say an error for every listed check that said nothing."""
        for case in self._cases.values():
            if case.blank:
                continue
            for info in CATALOGUE.values():
                if info.listed(case.profile) and not case.has(info.id):
                    fix = "rigctl's own suite did not judge it: see judge.log in the run directory"
                    case.add(Say(info.id).error("the check is listed and gave no verdict", fix))

    def _cases_of(self, item: pytest.Item) -> list[Case]:
        """Return the cases that a test belongs to: one, or all where pytest could not parametrise it (unittest)."""
        callspec = getattr(item, "callspec", None)
        if callspec is None:
            return [case for case in self._cases.values() if not case.blank]
        name = getattr(callspec.params.get("rig"), "name", None)
        return [self._cases[name]] if name in self._cases else []


@dataclass(frozen=True)
class _Outcome:
    """What became of one test on one rig."""

    case: Case
    item: pytest.Item
    report: pytest.TestReport
    call: pytest.CallInfo[None]

    def take(self) -> None:
        """Add the verdict that the outcome stands for, if the test's own verdicts do not say it already."""
        check = _check_of(self.item)
        user = check.startswith(USER)
        if self.report.failed:
            self._failed(Say(check, _subject_of(self.item)), user=user)
        elif user and (self.report.when == "call" or self.report.skipped) and not self._said(check):
            say = Say(check, _subject_of(self.item), source=self._where)
            self.case.add(say.skipped(self._why_skipped()) if self.report.skipped else say.passed("the test passed"))

    def _failed(self, say: Say, *, user: bool) -> None:
        error = self.call.excinfo.value if self.call.excinfo is not None else None
        text = _first_line(str(error) or type(error).__name__) if error is not None else "it failed"
        if self._said(say.check):
            say = Say(say.check, f"{say.subject} {self.report.when}")
        if user and self.report.when == "call" and isinstance(error, AssertionError | pytest.fail.Exception):
            say = Say(say.check, say.subject, source=self._where)
            self.case.add(say.failed(text, None, f"see {self._where}"))
        elif isinstance(error, NoAnswer):
            self.case.add(say.error(f"the rig did not answer: {text}", f"rigctl doctor {self.case.rig.name}"))
        else:
            name = type(error).__name__ if error is not None else "an error"
            self.case.add(say.error(f"the test itself broke: {name}: {text}", f"see {self._where}"))

    def _said(self, check: str) -> bool:
        subject = _subject_of(self.item)
        return any(v.check == check and v.subject == subject for v in self.case.verdicts)

    def _why_skipped(self) -> str:
        longrepr = self.report.longrepr
        reason = str(longrepr[2]) if isinstance(longrepr, tuple) else str(longrepr)
        return reason.removeprefix("Skipped: ") or "skipped"

    @property
    def _where(self) -> str:
        path, line, _ = self.item.location
        return f"{path.rpartition('/')[2]}, line {(line or 0) + 1}"


def _applies(case: Case, marker: pytest.Mark | None) -> bool:
    check = str(marker.args[0]) if marker is not None and marker.args else None
    if case.blank:
        return check == "measure.reached"
    info = CATALOGUE.get(check) if check else None
    return info is None or info.listed(case.profile)


def _check_of(item: pytest.Item) -> str:
    """Return the check of a test: its mark's, where the catalogue has it, else one under the user's own name."""
    marker = item.get_closest_marker("check")
    if marker is not None and marker.args and marker.args[0] in CATALOGUE:
        return str(marker.args[0])
    name = getattr(item, "originalname", None) or item.name
    return f"{USER}{item.path.stem}.{name}"


def _subject_of(item: pytest.Item) -> str:
    """Return `rig`, or what a user's test is parametrised by."""
    params = getattr(getattr(item, "callspec", None), "params", {})
    others = [f"{name}={value}" for name, value in params.items() if name != "rig"]
    return ", ".join(others) or "rig"


def _first_line(text: str) -> str:
    """Return the first line of a message that says anything, shortened."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return (lines[0] if lines else "no reason given")[:_MOST_TEXT]
