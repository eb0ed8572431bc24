"""Terminal, morning line, Markdown, JUnit, CSV: golden files, and that nothing from a rig escapes its place."""

from __future__ import annotations

import csv
import io
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest
from rich.console import Console

from rigctl.model.verdict import BusyRig, CheckVerdict, Record, RigRecord, Verdict
from rigctl.report import junit, markdown, table
from rigctl.report.line import morning_line
from rigctl.report.summary import all_causes, causes, headline, rig_verdict, untested
from rigctl.report.terminal import print_record
from rigctl.report.text import duration, figure, plain

if TYPE_CHECKING:
    from collections.abc import Callable

GOLDEN = Path(__file__).parent / "golden"
EVIL = "\x1b[31mred\x1b[0m\x1b]0;title\x07 <script>alert(1)</script> [bold]x[/bold] a|b\r\n\x00\u202e end"


def verdict(check: str, subject: str, kind: str, reason: str, **more: object) -> CheckVerdict:
    return CheckVerdict.model_validate(
        {"check": check, "subject": subject, "verdict": Verdict(kind), "reason": reason, **more}
    )


def record(*rigs: RigRecord) -> Record:
    return Record(
        run_id="2026-11-30T2300Z-7f3a",
        kind="accept",
        profile="smoke",
        started_at="2026-11-30T23:00:12.345Z",
        ended_at="2026-11-30T23:03:42Z",
        rigctl_version="0.1.0",
        rigs=rigs,
    )


def rig(name: str, *verdicts: CheckVerdict, simulated: bool | None = True, left: str = "idle") -> RigRecord:
    return RigRecord(name=name, rig_class="dual_3090ti", simulated=simulated, verdicts=verdicts, left=left)


PASS = verdict("software.driver_version", "rig", "pass", "515.105.01", expected="515", found="515.105.01")
BLIND = verdict("thermals.hotspot_temp", "slot1 (…d7d4)", "blind", "the driver does not expose it on GeForce")
SKIP = verdict("topology.nvlink_speed", "slot1-slot2", "skip", "the spec asks for no speed")
HOT = verdict(
    "thermals.settled_gpu_temp",
    "slot2 (…a91f)",
    "fail",
    "settled at 74.2 °C, limit 65 °C",
    expected=65.0,
    found=74.2,
    unit="°C",
    source="group_vars/class_dual_3090ti/spec.yml: limits.max_settled_gpu_temp_c",
    fix="look at the pump, then the cold plate",
)
SLOW = verdict(
    "throughput.burn_gflops",
    "slot2 (…a91f)",
    "fail",
    "21840 Gflop/s, floor 25000",
    fix="follows from the temperature",
    caused_by=HOT.key,
)
WARN = verdict("power.wall", "rig", "warn", "1147 W, 1240 W ± 10 % asked", fix="see what else draws")
WAIVED = verdict("thermals.cpu_temp", "rig", "waived", "91 °C, waived until 3 Dec")
LOST = verdict("measure.reached", "rig", "error", "no SSH since 23:01", fix="ssh rig3")
AFTER = [
    verdict(c, "rig", "error", "nothing was measured", fix="reach the rig", caused_by=LOST.key)
    for c in ("software.torch", "topology.gpu_count", "topology.nvlink", "kernel.xid", "throughput.training")
]

BAD = record(
    rig("rig1", PASS, BLIND).model_copy(update={"notes": ("a cut of 20 s, no sample lost",)}),
    rig("rig2", SLOW, PASS, HOT, WARN, BLIND, SKIP),
    rig("rig3", LOST, *AFTER, simulated=None, left=""),
)
GOOD = record(rig("rig1", PASS, BLIND, SKIP), rig("rig2", PASS, WAIVED))


def xml(text: str) -> ET.Element:
    return ET.fromstring(text)  # noqa: S314 - rigctl's own output


def terminal(shown: Record) -> str:
    out = io.StringIO()
    console = Console(file=out, width=100, force_terminal=False, color_system=None)
    print_record(console, shown, path=Path("runs/2026-11-30T2300Z-7f3a"))
    return "".join(f"{line.rstrip()}\n" for line in out.getvalue().splitlines())


@pytest.mark.parametrize("which", ["bad", "good"])
@pytest.mark.parametrize(
    ("name", "render"),
    [
        ("terminal.txt", terminal),
        ("line.txt", lambda r: morning_line(r) + "\n"),
        ("report.md", markdown.render),
        ("junit.xml", junit.render),
        ("table.csv", table.render),
    ],
)
def test_golden(which: str, name: str, render: Callable[[Record], str]) -> None:
    """Set RIGCTL_GOLDEN=write to write them anew, then read the difference."""
    path = GOLDEN / f"{which}-{name}"
    text = render(BAD if which == "bad" else GOOD)
    if os.environ.get("RIGCTL_GOLDEN") == "write":
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


def test_the_cause_stands_before_what_follows() -> None:
    text = terminal(BAD)
    assert text.index("settled at 74.2") < text.index("21840 Gflop/s")
    assert text.index("FAIL") < text.index("ERROR")


@pytest.mark.parametrize("caused_by", ["nobody.knows[rig]", SLOW.key])
def test_a_cause_that_nobody_has_or_a_circle_hides_nothing(caused_by: str) -> None:
    lost = SLOW.model_copy(update={"caused_by": caused_by})
    assert [c.verdict for c in causes(rig("rig1", PASS, lost))] == [lost]
    other = HOT.model_copy(update={"caused_by": SLOW.key})
    shown = causes(rig("rig1", SLOW, other))
    assert {v.key for c in shown for v in (c.verdict, *c.follows)} == {SLOW.key, HOT.key}


def test_a_failure_that_follows_from_a_warning_stands_under_it() -> None:
    follows = SLOW.model_copy(update={"caused_by": WARN.key})
    (cause,) = all_causes(record(rig("rig1", WARN, follows)))
    assert (cause.verdict, cause.follows) == (WARN, (follows,))
    assert terminal(record(rig("rig1", WARN, follows))).count("1147 W") == 1


def test_a_rig_without_verdicts_is_never_well() -> None:
    empty = record(rig("rig1"))
    assert empty.exit_code == 3
    assert headline(empty) == "1 of 1 rig could not be measured"
    for text in (
        terminal(empty),
        morning_line(empty),
        markdown.render(empty),
        junit.render(empty),
        table.render(empty),
    ):
        assert "no check gave a verdict" in text
    assert 'errors="1"' in junit.render(empty)


def test_no_rig_at_all_is_said() -> None:
    nothing = record()
    assert "No rig was measured" in terminal(nothing)
    assert "no rig was measured" in morning_line(nothing)


def test_what_cannot_be_seen_does_not_outweigh_what_passed() -> None:
    assert rig_verdict(rig("rig1", PASS, BLIND)) is Verdict.PASS
    assert rig_verdict(rig("rig1", BLIND, SKIP)) is Verdict.BLIND
    assert rig_verdict(rig("rig1", PASS, WARN, BLIND)) is Verdict.WARN


def test_untested_groups_checks_of_one_rig_and_rigs_of_one_check() -> None:
    found = untested(BAD)
    assert [u.verdict for u in found] == [Verdict.ERROR, Verdict.ERROR, Verdict.BLIND, Verdict.SKIP]
    assert len(next(u for u in found if u.reason == "nothing was measured").checks) == 5
    assert next(u for u in found if u.verdict is Verdict.BLIND).where == ("rig1 slot1 (…d7d4)", "rig2 slot1 (…d7d4)")


def test_text_from_rigs_cannot_leave_its_place() -> None:
    evil = record(rig(EVIL, HOT.model_copy(update={"reason": EVIL, "fix": EVIL, "source": EVIL, "subject": EVIL})))
    for text in (terminal(evil), morning_line(evil), markdown.render(evil), junit.render(evil), table.render(evil)):
        assert not set(text) & {"\x1b", "\x00", "\x07", "\r", "\u202e"}
        assert "red" in text
    assert "[bold]x[/bold]" in terminal(evil)
    assert "<script>" not in markdown.render(evil)
    assert "a\\|b" in markdown.render(evil)
    assert xml(junit.render(evil)).find(".//failure") is not None
    assert len(list(csv.reader(io.StringIO(table.render(evil))))) == 2


def test_a_spreadsheet_runs_nothing() -> None:
    evil = record(rig("rig1", PASS.model_copy(update={"reason": '=HYPERLINK("http://192.0.2.1")', "found": -5.5})))
    row = next(csv.DictReader(io.StringIO(table.render(evil))))
    assert row["reason"].startswith("'=")
    assert row["found"] == "-5.5"


def test_junit_has_the_form_that_both_schemas_ask_for() -> None:
    """The common part of Ant's and Jenkins' schemas: order, required attributes, allowed children."""
    root = xml(junit.render(BAD))
    assert (root.tag, root.attrib) == ("testsuites", {})
    needed = {"name", "package", "id", "timestamp", "hostname", "tests", "failures", "errors", "skipped", "time"}
    for number, suite in enumerate(root):
        assert (suite.tag, set(suite.attrib), suite.get("id")) == ("testsuite", needed, str(number))
        tags = [child.tag for child in suite]
        assert tags == ["properties", *["testcase"] * int(suite.get("tests", "")), "system-out", "system-err"]
        for case in suite.findall("testcase"):
            assert set(case.attrib) == {"name", "classname", "time"}
            assert len(case) <= 1
            assert all(child.tag in {"failure", "error", "skipped"} and child.get("message") for child in case)
        for tag, count in (("failure", "failures"), ("error", "errors"), ("skipped", "skipped")):
            assert len(suite.findall(f"testcase/{tag}")) == int(suite.get(count, ""))
    assert [len(s.findall("testcase/failure")) for s in root] == [0, 2, 0]
    assert [len(s.findall("testcase/error")) for s in root] == [0, 0, 6]


@pytest.mark.parametrize(
    ("value", "unit", "shown"),
    [
        (65.0, "°C", "65 °C"),
        (74.2, "°C", "74.2 °C"),
        (0.8617, None, "0.8617"),
        (27310.4, "Gflop/s", "27310 Gflop/s"),
        (2, None, "2"),
        ("NV4", None, "NV4"),
        (-0.04, "W", "-0.04 W"),
        (None, "W", ""),
    ],
)
def test_figures(value: str | float | None, unit: str | None, shown: str) -> None:
    assert figure(value, unit) == shown


def test_durations_and_plain_text() -> None:
    assert [duration(s) for s in (47.6, 120, 210, 28860)] == ["48 s", "2 min", "3 min 30 s", "8 h 01 min"]
    assert plain("a\tb\n c\x1b[2Jd\x85e") == "a b cd e"
    assert plain("x\x01y") == "x\ufffdy"


BUSY = BusyRig(name="rig4", rig_class="dual_3090ti", users="the rig is in use: bob@desk computes on slot1")


def test_a_busy_rig_is_said_everywhere_and_counted_nowhere():
    one = record(rig("rig1", PASS)).model_copy(update={"busy": (BUSY,)})
    console = Console(file=io.StringIO(), width=200)
    print_record(console, one)
    text = console.file.getvalue()
    assert "rig4 busy, left out and not counted: the rig is in use: bob@desk computes on slot1" in text
    assert "The rig passed" in text
    assert "exit code 0" in text
    assert morning_line(one).startswith("rigctl: 1 of 1 ok · 0 warnings · 0 waived checks · 1 rig busy")
    assert "- rig4: the rig is in use: bob\\@desk computes on slot1" in markdown.render(one)
    assert 'tests="1"' in junit.render(one)
    assert "rig4" not in junit.render(one)
    assert json.loads(one.model_dump_json())["busy"][0]["name"] == "rig4"


def test_a_failed_night_names_the_busy_rigs_too():
    one = record(rig("rig1", HOT)).model_copy(update={"busy": (BUSY,)})
    assert morning_line(one).endswith("busy rig4: the rig is in use: bob@desk computes on slot1")


def test_nothing_but_busy_rigs_is_no_pass():
    one = record().model_copy(update={"busy": (BUSY,)})
    assert headline(one) == "No rig was measured: 1 rig busy"
    assert one.exit_code == 3
