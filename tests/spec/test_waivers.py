"""Waivers: an accepted deviation is waived until its last day, and fails afterwards; nothing else is touched."""

from __future__ import annotations

import io
from datetime import date
from typing import TYPE_CHECKING

import pytest
import yaml
from rich.console import Console

from rigctl.checks.causes import with_causes
from rigctl.checks.waivers import with_waivers
from rigctl.errors import UsageError
from rigctl.inventory import load_fleet
from rigctl.judge import judge_run
from rigctl.model.verdict import CheckVerdict, Verdict, exit_code
from rigctl.model.waiver import Waiver
from rigctl.report.markdown import render as as_markdown
from rigctl.report.terminal import print_record
from rigctl.store import dumps
from tests.acceptance.test_judge import fake, run_of
from tests.checks import healthy as h
from tests.inventory.test_inventory import Park

if TYPE_CHECKING:
    from pathlib import Path


LAST_DAY = date(2026, 12, 3)
HEAT = "thermals.settled_gpu_temp"
READINGS = h.readings()


def waiver(**changes) -> Waiver:
    known = {"check": HEAT, "reason": "cold plate ordered", "until": LAST_DAY, "origin": "host_vars/rig1/waivers.yml"}
    return Waiver(**known | changes)


def verdict(kind: Verdict = Verdict.FAIL, check: str = HEAT, subject: str = h.SLOT2) -> CheckVerdict:
    return CheckVerdict(check=check, subject=subject, verdict=kind, reason="74 °C", fix="check the pump")


def judged(*verdicts: CheckVerdict, waivers=(), today=LAST_DAY) -> dict[str, CheckVerdict]:
    return {v.key: v for v in with_causes(with_waivers(verdicts, waivers, today), READINGS)}


@pytest.mark.parametrize("subject", [None, "slot2", h.SLOT2])
@pytest.mark.parametrize("kind", [Verdict.FAIL, Verdict.WARN])
def test_a_deviation_is_waived_until_its_last_day(subject, kind):
    found = judged(verdict(kind), waivers=[waiver(subject=subject)])
    heat = found[verdict().key]
    assert heat.verdict is Verdict.WAIVED
    assert heat.reason == "74 °C; waived until 3 Dec 2026: cold plate ordered"
    assert heat.waived_until == LAST_DAY
    assert exit_code(v.verdict for v in found.values()) == 0
    assert [v.verdict for v in found.values() if v.check == "spec.waivers"] == [Verdict.PASS]


def test_it_fails_on_the_day_after_and_is_one_cause():
    found = judged(verdict(), waivers=[waiver(subject="slot2")], today=date(2026, 12, 4))
    heat, own = found[verdict().key], found[f"spec.waivers[{HEAT}[slot2]]"]
    assert heat.verdict is Verdict.FAIL
    assert heat.reason == "74 °C; its waiver ended on 3 Dec 2026: cold plate ordered"
    assert heat.fix == "check the pump; or renew the waiver in host_vars/rig1/waivers.yml"
    assert own.verdict is Verdict.FAIL
    assert own.caused_by == heat.key


def test_a_warning_whose_waiver_ran_out_fails():
    found = judged(verdict(Verdict.WARN), waivers=[waiver()], today=date(2026, 12, 4))
    assert found[verdict().key].verdict is Verdict.FAIL
    assert found[f"spec.waivers[{HEAT}]"].caused_by == verdict().key


@pytest.mark.parametrize(
    ("kind", "words"), [(Verdict.PASS, "nothing needs it any more"), (Verdict.ERROR, "whether it is still needed")]
)
def test_one_that_ran_out_fails_also_where_nothing_needs_it(kind, words):
    own = judged(verdict(kind), waivers=[waiver()], today=date(2026, 12, 4))[f"spec.waivers[{HEAT}]"]
    assert own.verdict is Verdict.FAIL
    assert words in own.reason
    assert own.caused_by is None


@pytest.mark.parametrize("kind", [Verdict.ERROR, Verdict.BLIND, Verdict.SKIP, Verdict.PASS])
def test_what_is_no_deviation_is_left_alone(kind):
    assert judged(verdict(kind), waivers=[waiver()])[verdict().key] == verdict(kind)


@pytest.mark.parametrize("other", [{"check": "thermals.throttle"}, {"subject": "slot1"}, {"subject": "slot2 (…ffff)"}])
def test_other_checks_slots_and_cards_are_left_alone(other):
    assert judged(verdict(), waivers=[waiver(**other)])[verdict().key].verdict is Verdict.FAIL


def test_a_waiver_that_nothing_needs_is_a_warning():
    own = judged(verdict(Verdict.PASS), waivers=[waiver()])[f"spec.waivers[{HEAT}]"]
    assert own.verdict is Verdict.WARN
    assert own.fix == "remove it from host_vars/rig1/waivers.yml"


def test_a_waiver_of_a_subject_that_is_not_there_is_a_warning():
    own = judged(verdict(), waivers=[waiver(subject="slot7")])[f"spec.waivers[{HEAT}[slot7]]"]
    assert own.verdict is Verdict.WARN
    assert own.reason == f"{HEAT} speaks of no slot7"


@pytest.mark.parametrize("kinds", [(), (Verdict.ERROR,), (Verdict.BLIND,), (Verdict.PASS, Verdict.ERROR)])
def test_a_waiver_whose_check_saw_nothing_says_so(kinds):
    seen = [verdict(kind, subject=slot) for kind, slot in zip(kinds, (h.SLOT1, h.SLOT2), strict=False)]
    own = judged(*seen, waivers=[waiver()])[f"spec.waivers[{HEAT}]"]
    assert own.verdict is Verdict.PASS
    assert "did not see" in own.reason


def test_the_later_of_two_waivers_counts():
    two = [waiver(until=date(2026, 12, 1)), waiver(subject="slot2", until=date(2026, 12, 9), reason="later")]
    assert judged(verdict(), waivers=two)[verdict().key].waived_until == date(2026, 12, 9)
    over = judged(verdict(), waivers=two, today=date(2026, 12, 20))[verdict().key]
    assert over.reason == "74 °C; its waiver ended on 9 Dec 2026: later"


def test_what_follows_from_a_waived_deviation_stands_for_itself():
    slow = verdict(check="throughput.burn_gflops")
    found = judged(verdict(), slow, waivers=[waiver()])
    assert found[slow.key].verdict is Verdict.FAIL
    assert found[slow.key].caused_by is None


def test_a_run_with_a_waiver_is_well_and_replays_byte_for_byte(tmp_path):
    hot = h.readings(samples=h.with_samples(("cpu_burn", "all_burn"), cpu_temp_c=92.0))
    accepted = waiver(check="thermals.cpu_temp", until=date(2027, 1, 1))
    run = run_of(tmp_path, waivers={"rig1": (accepted,)}, rig1=hot)
    live = judge_run(run, {"rig1": fake(run)})
    assert live.exit_code == 0
    assert live.rigs[0].verdict is Verdict.WAIVED
    assert live.rigs[0].counts["waived"] == 1
    assert dumps(judge_run(run)) == dumps(live)
    out = io.StringIO()
    print_record(Console(file=out, width=200, color_system=None), live)
    assert "waived rig1 thermals.cpu_temp: the CPU reached 92 °C" in out.getvalue()
    assert "## Waived" in as_markdown(live)


class TestInventory:
    """`rig_waivers` as people write it."""

    @pytest.fixture
    def park(self, tmp_path: Path) -> Park:
        return Park(tmp_path)

    def refused(self, park: Park, *entries: object, name: str = "host_vars/rig1/waivers.yml") -> UsageError:
        park.write(name, yaml.safe_dump({"rig_waivers": list(entries)}, sort_keys=False))
        with pytest.raises(UsageError) as caught:
            load_fleet(park.folder, "rig1")
        return caught.value

    def entry(self, **changes: object) -> dict[str, object]:
        known: dict[str, object] = {"check": HEAT, "reason": "ordered", "until": LAST_DAY}
        return known | changes

    def test_waivers_are_read(self, park):
        park.write("host_vars/rig1/waivers.yml", {"rig_waivers": [self.entry(subject="slot2")]})
        (rig,) = load_fleet(park.folder, "rig1")
        assert rig.waivers == (waiver(subject="slot2", reason="ordered"),)

    def test_a_rig_without_any_has_none(self, park):
        assert load_fleet(park.folder, "rig1")[0].waivers == ()

    @pytest.mark.parametrize(
        ("changes", "where", "words"),
        [
            ({"check": "thermals.settled"}, ":2: rig_waivers.0.check", "no check 'thermals.settled' can be waived"),
            ({"check": "spec.waivers"}, ":2: rig_waivers.0.check", "can be waived"),
            ({"until": "2026-12-03"}, ":4: rig_waivers.0.until", "is no date"),
            ({"until": 20261203}, ":4: rig_waivers.0.until", "is no date"),
            ({"reason": " "}, ":3: rig_waivers.0.reason", "says nothing"),
            ({"subject": ""}, ":5: rig_waivers.0.subject", "says nothing"),
            ({"untill": LAST_DAY}, ":5: rig_waivers.0.untill", "unknown key"),
            ({"reason": "{{ why }}"}, ":3: rig_waivers.0.reason", "template in a literal field"),
        ],
    )
    def test_mistakes_name_file_line_and_key(self, park, changes, where, words):
        error = self.refused(park, self.entry(**changes))
        assert f"host_vars/rig1/waivers.yml{where}" in error.message
        assert words in error.message
        assert error.hint

    def test_a_missing_date_is_refused(self, park):
        assert "rig_waivers.0.until: missing" in self.refused(park, {"check": HEAT, "reason": "ordered"}).message

    def test_the_nearest_check_is_named(self, park):
        assert self.refused(park, self.entry(check="thermals.settled_temp")).hint == f"did you mean {HEAT}?"

    def test_a_check_of_ones_own_can_be_waived(self, park):
        park.write("host_vars/rig1/waivers.yml", {"rig_waivers": [self.entry(check="user.test_disk.test_room")]})
        assert load_fleet(park.folder, "rig1")[0].waivers[0].check == "user.test_disk.test_room"

    def test_two_of_one_subject_are_refused(self, park):
        error = self.refused(park, self.entry(subject="slot2"), self.entry(subject="slot2", reason="again"))
        assert f":6: rig_waivers.1: {HEAT}[slot2] is waived twice" in error.message

    def test_no_list_is_refused(self, park):
        park.write("host_vars/rig1/waivers.yml", {"rig_waivers": self.entry()})
        with pytest.raises(UsageError, match=":1: rig_waivers is no list"):
            load_fleet(park.folder, "rig1")

    def test_waivers_of_a_whole_class_are_refused(self, park):
        error = self.refused(park, self.entry(), name="group_vars/class_dual/waivers.yml")
        assert "rig_waivers is set outside of plain files in host_vars/rig1/" in error.message
