"""The plugin's line, its figures and its exit code."""

from __future__ import annotations

import pytest

from rigctl.cli.app import main
from rigctl.errors import RigError
from rigctl.model.verdict import BusyRig, CheckVerdict, Record, RigRecord, Verdict
from rigctl.report.nagios import nagios, unknown


def record(*verdicts: Verdict, busy: tuple[BusyRig, ...] = ()) -> Record:
    rigs = tuple(
        RigRecord(
            name=f"rig{number}",
            rig_class="x",
            verdicts=(
                CheckVerdict(
                    check="kernel.xid", subject="rig", verdict=verdict, reason="Xid 79 | gone\n", fix="reboot"
                ),
            ),
        )
        for number, verdict in enumerate(verdicts, start=1)
    )
    times = {"started_at": "2026-12-01T00:00:00Z", "ended_at": "2026-12-01T00:00:09Z"}
    return Record(run_id="x", kind="check", profile="check", rigctl_version="1", rigs=rigs, busy=busy, **times)


@pytest.mark.parametrize(
    ("verdicts", "line", "code"),
    [
        ((Verdict.PASS, Verdict.PASS), "RIGCTL OK - 2 of 2 rigs ok | ok=2 failed=0 unmeasured=0 warnings=0 busy=0", 0),
        (
            (Verdict.PASS, Verdict.WARN),
            "RIGCTL WARNING - 2 of 2 rigs ok | ok=2 failed=0 unmeasured=0 warnings=1 busy=0",
            1,
        ),
        (
            (Verdict.FAIL, Verdict.ERROR),
            "RIGCTL CRITICAL - rig1: Xid 79 / gone; rig2: Xid 79 / gone | ok=0 failed=1 unmeasured=1 warnings=0 busy=0",
            2,
        ),
        ((Verdict.ERROR,), "RIGCTL UNKNOWN - rig1: Xid 79 / gone | ok=0 failed=0 unmeasured=1 warnings=0 busy=0", 3),
        ((), "RIGCTL UNKNOWN - 0 of 0 rigs ok | ok=0 failed=0 unmeasured=0 warnings=0 busy=0", 3),
    ],
)
def test_the_line(verdicts: tuple[Verdict, ...], line: str, code: int) -> None:
    assert nagios(record(*verdicts)) == (line, code)


def test_who_is_busy_is_said() -> None:
    line, code = nagios(record(Verdict.PASS, busy=(BusyRig(name="rig9", rig_class="x", users="ann since 8:00"),)))
    assert "busy rig9: ann since 8:00" in line
    assert code == 0


def test_what_kept_it_from_looking_is_unknown() -> None:
    assert unknown(RigError("no | route", "is it on?")) == ("RIGCTL UNKNOWN - no / route (is it on?)", 3)


def test_the_command_speaks_on_stdout_whatever_happens(tmp_path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--nagios", "-i", str(tmp_path / "none")]) == 3
    told = capsys.readouterr()
    assert told.out.startswith("RIGCTL UNKNOWN - ")
    assert told.out.count("\n") == 1
