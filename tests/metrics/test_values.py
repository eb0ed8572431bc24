"""What is exported, read again by prometheus_client's own parsers."""

from __future__ import annotations

import ast
from collections import Counter
from datetime import timedelta

import pytest
from prometheus_client.openmetrics.exposition import generate_latest as openmetrics_of
from prometheus_client.openmetrics.parser import text_string_to_metric_families as read_openmetrics
from prometheus_client.parser import text_string_to_metric_families as read_text

from rigctl.checks.compute import FIGURES
from rigctl.metrics import FAMILIES, RigSeen, Seen, look, registry_of, text
from rigctl.metrics.units import base
from rigctl.model.verdict import Verdict
from rigctl.store.index import Index
from tests.house.source_tree import REPO
from tests.metrics.fleet import NOW, SUBJECT, UUID, bad_rig, fleet, past
from tests.report.build_run import build_run

COUNTED = {
    "errors", "uncorrected errors", "corrected errors", "media errors", "replays", "wrong words", "lanes",
}  # fmt: skip
"""Units that only count, and keep their word."""


def samples(seen: Seen) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    return {
        (one.name, frozenset(one.labels.items())): one.value
        for family in read_text(text(registry_of(seen)))
        for one in family.samples
    }


def value(seen: Seen, name: str, **labels: str) -> float | None:
    return samples(seen).get((name, frozenset(labels.items())))


def test_both_formats_say_the_same() -> None:
    registry = registry_of(fleet())
    read = [
        {(one.name, frozenset(one.labels.items()), one.value) for family in families for one in family.samples}
        for families in (read_text(text(registry)), read_openmetrics(openmetrics_of(registry).decode()))
    ]
    assert read[0] == read[1]
    assert len(read[0]) > 70


def test_every_metric_is_exported_with_its_labels_and_words() -> None:
    families = list(read_text(text(registry_of(fleet()))))
    said = {one.name: set(one.labels) for family in families for one in family.samples}
    assert said == {name: set(known.labels) for name, known in FAMILIES.items()}
    assert all(family.documentation.endswith(".") for family in families)


def test_one_word_of_each_set_holds() -> None:
    found = samples(fleet())
    for rig, word in (("rig1", "fail"), ("rig2", "error")):
        held = {dict(labels)["verdict"]: value for (name, labels), value in found.items()
                if name == "rigctl_rig_verdict" and dict(labels)["rig"] == rig}  # fmt: skip
        assert held == {one.value: float(one.value == word) for one in Verdict}
    outcomes = {
        dict(labels)["outcome"]: v for (n, labels), v in found.items() if n == "rigctl_nightly_last_run_outcome"
    }
    assert outcomes == {"ok": 0.0, "failed": 1.0, "unmeasured": 0.0, "broken": 0.0}


@pytest.mark.parametrize(
    ("name", "labels", "wanted"),
    [
        ("rigctl_gpu_settled_temperature_celsius", {"slot": "slot2"}, 83.0),
        ("rigctl_gpu_thermal_resistance_celsius_per_watt", {"slot": "slot2", "over": "coolant"}, 0.107),
        ("rigctl_wall_power_watts", {"step": "all_burn"}, 1178.0),
        ("rigctl_training_tokens_per_second", {"subject": "slot2"}, 6950.0),
        ("rigctl_gpu_power_limit_watts", {"slot": "slot2"}, 480.0),
        ("rigctl_room_temperature_celsius", {}, 21.5),
        ("rigctl_rig_checks", {"verdict": "blind"}, 2.0),
        ("rigctl_rig_checks", {"verdict": "error"}, 0.0),
        ("rigctl_rig_accepted", {}, 0.0),
        ("rigctl_rig_busy", {}, 0.0),
        ("rigctl_run_duration_seconds", {}, 1800.0),
        ("rigctl_run_step_duration_seconds", {"step": "gpu_burn"}, 600.0),
        ("rigctl_rig_last_verdict_timestamp_seconds", {}, 1796081400.0),
        ("rigctl_rig_cause", {"check": "thermals.resistance", "subject": "slot2", "verdict": "fail"}, 1.0),
        # The waiver holds on all of 2 December.
        ("rigctl_waiver_end_timestamp_seconds", {"check": "power.wall", "subject": "all_burn"}, 1796256000.0),
        (
            "rigctl_trend_limit_timestamp_seconds",
            {"check": "thermals.resistance", "subject": "slot2", "slot": "slot2"},
            1797724800.0,
        ),
    ],
)
def test_values_of_a_rig(name: str, labels: dict[str, str], wanted: float) -> None:
    assert value(fleet(), name, rig="rig1", **labels) == wanted


@pytest.mark.parametrize(
    ("check", "subject", "slot", "unit", "found"),
    [
        ("topology.gpu_memory", "slot2", "slot2", "bytes", 24564.0 * 1024**2),
        ("network.link", "eno1", "", "bytes_per_second", 125e6),
        ("thermals.resistance", "slot2", "slot2", "celsius_per_watt", 0.107),
        ("topology.gpu_count", "rig", "", "", 2.0),
        ("own.test_dust", "rig", "", "grains_cm", 3.0),
    ],
)
def test_readings_are_in_base_units(check: str, subject: str, slot: str, unit: str, found: float) -> None:
    labels = {"rig": "rig1", "check": check, "subject": subject, "slot": slot, "unit": unit}
    assert value(fleet(), "rigctl_check_reading", **labels) == found


def test_a_card_is_known_by_its_slot_and_its_uuid_stands_once() -> None:
    carrying = {name for (name, labels), _ in samples(fleet()).items() for label in labels if UUID in label[1]}
    assert carrying == {"rigctl_gpu_info"}
    assert not any(SUBJECT in label[1] for _, labels in samples(fleet()) for label in labels)


def test_a_rig_without_a_verdict_has_no_figure() -> None:
    said = {name for (name, labels), _ in samples(fleet()).items() if ("rig", "rig3") in labels}
    assert said == {"rigctl_rig_info", "rigctl_rig_busy"}


def test_what_a_rig_says_of_itself_stays_one_label() -> None:
    words = 'a"b\\c\nd} 7'
    parts = bad_rig().last.parts.model_copy(update={"kernel": words})  # type: ignore[union-attr]
    seen = Seen((RigSeen("rig1", "x", past("rig1", Verdict.PASS, parts=parts)),))
    assert value(seen, "rigctl_rig_info", rig="rig1", rig_class="x", driver="515.105.01", kernel=words, bios="F33") == 1


def units_of_checks() -> set[str]:
    found = {figure.unit for figure in FIGURES.values()}
    for path in (REPO / "rigctl/checks").glob("*.py"):
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(call, ast.Call) and getattr(call.func, "id", "") in ("Say", "replace"):
                given = [one.value for one in call.keywords if one.arg == "unit"] + call.args[3:4]
                found |= {one.value for one in given if isinstance(one, ast.Constant) and isinstance(one.value, str)}
    return found


def test_every_unit_of_the_checks_is_known() -> None:
    units = units_of_checks()
    assert len(units) > 20
    assert {unit for unit in units if base(unit) == (unit.replace(" ", "_"), 1.0)} <= COUNTED


class TestLook:
    """From run directories."""

    @pytest.fixture
    def index(self, tmp_path):
        build_run(tmp_path)
        with Index.open(tmp_path) as made:
            made.update()
            yield made

    def test_newest_judged_acceptance(self, index: Index) -> None:
        seen = look(index, NOW)
        assert [(one.rig, one.last.verdict.value) for one in seen.rigs] == [("rig1", "blind"), ("rig2", "fail")]  # type: ignore[union-attr]
        assert value(seen, "rigctl_rig_accepted", rig="rig1") == 1
        assert value(seen, "rigctl_gpu_settled_temperature_celsius", rig="rig2", slot="slot2") == 83
        assert seen.night is None

    def test_readings_of_earlier_runs_are_gone(self, index: Index) -> None:
        before = look(index, NOW).rigs[0]
        build_run(index.runs, hours=0.1)
        index.update()
        after = look(index, NOW).rigs[0]
        assert after.last.run_id != before.last.run_id  # type: ignore[union-attr]
        assert Counter(point.run_id for point in after.points).keys() == {after.last.run_id}  # type: ignore[union-attr]

    def test_a_verdict_older_than_the_trends_window_keeps_its_figures(self, index: Index) -> None:
        late = look(index, NOW + timedelta(days=200))
        assert len(late.rigs[0].points) == len(look(index, NOW).rigs[0].points) > 0

    def test_rigs_that_left_and_rigs_that_are_new(self, index: Index) -> None:
        assert look(index, NOW + timedelta(days=366)).rigs == ()
        named = look(index, NOW + timedelta(days=366), rigs={"rig2": "dual_3090ti", "rig9": "octo_h100"})
        assert [(one.rig, one.rig_class, one.last is None) for one in named.rigs] == [
            ("rig2", "dual_3090ti", False), ("rig9", "octo_h100", True),
        ]  # fmt: skip


def test_the_page_names_every_metric() -> None:
    page = (REPO / "docs/monitoring.md").read_text(encoding="utf-8")
    rows = [f"| `{f.name}` | {', '.join(f'`{label}`' for label in f.labels)} | {f.says} |" for f in FAMILIES.values()]
    assert [row for row in rows if row not in page] == []
