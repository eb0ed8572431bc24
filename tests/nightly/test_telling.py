"""Exactly the changes are told: no repeats within twelve hours, one all-clear."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

import pytest

from rigctl.nightly.telling import Found, after_night, merged, morning, reminders
from rigctl.nightly.told import Kept, Message, Told
from rigctl.trends import known_of
from tests.nightly.park import record, spec
from tests.trends.test_trends import HOT, START, bad, nights, past

if TYPE_CHECKING:
    from rigctl.model.nightly import NightlySpec

NOW = datetime(2026, 12, 1, 6, 0, tzinfo=timezone(timedelta(hours=1)))
SWAP = "swap the cards of slot2 and slot1 and accept again:"
STAYS = "if it stays it is the place"
WARM = "0.107 °C/W, was 0.074"


def night(told: Told, *rigs: tuple[str, str], at: datetime = NOW, **wishes: Any) -> tuple[Told, tuple[Message, ...]]:
    return after_night(told, Found(record(*rigs)), spec(**wishes), at)


def test_a_night_without_a_change_is_silent() -> None:
    told, messages = night(Told(), ("rig1", ""), ("rig2", ""))
    assert messages == ()
    assert night(told, ("rig1", ""), ("rig2", ""))[1] == ()


def test_what_becomes_bad_is_told_once_and_its_end_once() -> None:
    told, (first,) = night(Told(), ("rig1", ""), ("rig2", WARM))
    assert (first.kind, first.title) == ("change", "rigctl: 1 of 2 FAILED · 1 ok (23:00–03:00 UTC)")
    assert first.body == (f"FAIL rig2 slot2 (…a91f): {WARM}\n  do: pump, then cold plate. Left: idle, limits as found.")
    told, again = night(told, ("rig1", ""), ("rig2", "0.111 °C/W, was 0.074"))
    assert again == ()
    told, (clear,) = night(told, ("rig1", ""), ("rig2", ""))
    assert (clear.kind, clear.title) == ("clear", "rigctl: rig2 well again")
    assert night(told, ("rig1", ""), ("rig2", ""))[1] == ()


def test_another_cause_is_a_change() -> None:
    told, _ = night(Told(), ("rig1", WARM))
    other = record(("rig1", WARM))
    verdict = other.rigs[0].verdicts[0].model_copy(update={"subject": "slot1 (…11c0)"})
    changed = other.model_copy(update={"rigs": (other.rigs[0].model_copy(update={"verdicts": (verdict,)}),)})
    assert [one.kind for one in after_night(told, Found(changed), spec(), NOW)[1]] == ["change"]


@pytest.mark.parametrize(("away_days", "told_again"), [(1, False), (59, False), (61, True)])
def test_a_slow_trend_that_drops_out_and_returns_is_told_anew_only_after_long(away_days: int, told_again: bool) -> None:
    creeping = tuple(nights(60, lambda day: 0.100 + 0.0001 * day))
    known = {"rig1": known_of("rig1", (past(0),), creeping, START + timedelta(days=60))}
    told, _ = after_night(Told(), Found(record(("rig1", "")), known), spec(), NOW)
    for day in range(1, away_days):
        told, messages = after_night(told, Found(record(("rig1", ""))), spec(), NOW + timedelta(days=day))
        assert [one for one in messages if one.kind != "digest"] == []
    at = NOW + timedelta(days=away_days)
    messages = after_night(told, Found(record(("rig1", "")), known), spec(), at)[1]
    assert ([one.kind for one in messages if one.kind != "digest"] == ["change"]) is told_again


def test_a_slow_trend_is_told_once() -> None:
    creeping = tuple(nights(60, lambda day: 0.100 + 0.0001 * day))
    known = {"rig1": known_of("rig1", (past(0),), creeping, START + timedelta(days=60))}
    told, (first,) = after_night(Told(), Found(record(("rig1", "")), known), spec(), NOW)
    assert first.kind == "change"
    assert "trend rig1 slot1 (…1): thermals.resistance" in first.body
    assert after_night(told, Found(record(("rig1", "")), known), spec(), NOW)[1] == ()


def test_one_rig_gets_well_while_another_gets_bad() -> None:
    told, _ = night(Told(), ("rig1", WARM), ("rig2", ""))
    _, messages = night(told, ("rig1", ""), ("rig2", WARM))
    assert [one.kind for one in messages] == ["change", "clear"]


def test_a_rig_that_was_left_out_tonight_stays_as_it_was_told() -> None:
    told, _ = night(Told(), ("rig1", WARM), ("rig2", ""))
    told, messages = night(told, ("rig2", ""))
    assert messages == ()
    assert night(told, ("rig1", WARM), ("rig2", ""))[1] == ()


class Nights:
    """One rig that is measured each night, and another one that is left out of some."""

    def __init__(self, **wishes: Any) -> None:
        self.wishes = spec(**wishes)
        self.kept, self.told, self.day = Kept(), Told(), 0

    def next(self, why: str = "", wrong: str = "", *, first: str = "") -> list[Message]:
        """A night that left rig2 out, and why; or that measured it."""
        at = NOW + timedelta(days=self.day)
        self.day += 1
        rigs = [("rig1", first), *([] if why else [("rig2", wrong)])]
        absent = {"rig2": why} if why else {}
        self.kept = self.kept.after(absent, [name for name, _ in rigs], at)
        found = Found(record(*rigs), absences={rig: self.kept.absences[rig] for rig in absent})
        self.told, messages = after_night(self.told, found, self.wishes, at)
        return list(messages)


BUSY = "busy: alice (logged in)"


def test_a_rig_that_is_left_out_is_said_in_one_line_and_once() -> None:
    nights = Nights()
    (said,) = nights.next(BUSY)
    assert (said.kind, said.title) == ("left_out", "rigctl: rig2 left out tonight")
    assert said.body.splitlines()[0] == "left out rig2: busy: alice (logged in)"
    assert said.body.splitlines()[1].startswith("rigctl: 1 of 1 ok")
    assert nights.next("no time is left in the window") == [], "still left out, whatever for"
    assert nights.next() == [], "measured again: it never was bad"
    assert [one.kind for one in nights.next(BUSY)] == ["left_out"]


def test_so_many_nights_without_a_rig_are_a_finding_until_it_is_measured() -> None:
    nights = Nights()
    assert [len(nights.next(BUSY)) for _ in range(2)] == [1, 0]
    (finding,) = nights.next(BUSY)
    assert finding.kind == "change"
    first, do = finding.body.splitlines()
    assert first == "??   left out rig2: busy: alice (logged in) (3 nights in a row)"
    assert do.startswith("  do: nobody knows how it is;")
    assert do.endswith("or accept it by day (`rigctl accept rig2`)")
    assert nights.next(BUSY) == []
    (again,) = reminders(nights.told, spec(), NOW + timedelta(days=4))[1]
    assert "4 nights in a row" in again.body
    assert [(one.kind, one.title) for one in nights.next()] == [("clear", "rigctl: rig2 well again")]
    assert nights.kept.absences == {}


def test_how_many_nights_are_a_finding_is_the_park_s_wish() -> None:
    assert [one.kind for one in Nights(left_out_nights=1).next(BUSY)] == ["change"]
    nights = Nights(left_out_nights=5)
    assert [[one.kind for one in nights.next(BUSY)] for _ in range(5)] == [["left_out"], [], [], [], ["change"]]


def test_a_bad_rig_that_is_left_out_stays_bad_and_is_a_change_when_it_is_too_long() -> None:
    nights = Nights()
    nights.next(wrong=WARM)
    assert [one.kind for one in nights.next(BUSY)] == ["left_out"]
    assert nights.told.rigs["rig2"].bad.startswith("thermals.resistance"), "still reminded of"
    nights.next(BUSY)
    assert [one.kind for one in nights.next(BUSY)] == ["change"]
    (back,) = nights.next(wrong=WARM)
    assert (back.kind, WARM in back.body) == ("change", True)


def test_who_was_left_out_stands_in_the_message_that_goes_anyway() -> None:
    (change,) = Nights().next(BUSY, first=WARM)
    assert (change.kind, change.body.splitlines()[-1]) == ("change", f"left out rig2: {BUSY}")
    nights = Nights()
    nights.next(first=WARM)
    (clear,) = nights.next(BUSY)
    assert (clear.kind, clear.body.splitlines()[-1]) == ("clear", f"left out rig2: {BUSY}")
    digest_day = NOW.weekday()
    (digest,) = Nights(digest_weekday=digest_day).next(BUSY)
    assert (digest.kind, digest.body.splitlines()[-1]) == ("digest", f"left out rig2: {BUSY}")
    nights = Nights(digest_weekday=(digest_day + 1) % 7)
    nights.next(BUSY)
    assert nights.next(BUSY)[0].body.splitlines()[-1] == f"left out rig2: {BUSY} (2 nights in a row)"


def test_a_night_that_is_carried_out_twice_counts_once() -> None:
    kept = Kept().after({"rig2": BUSY}, ("rig1",), NOW).after({"rig2": BUSY}, ("rig1",), NOW + timedelta(hours=3))
    assert kept.absences["rig2"].nights == 1
    kept = kept.after({}, ("rig1",), NOW + timedelta(days=1))
    assert kept.absences["rig2"].nights == 1, "a night that did not ask for it says nothing of it"
    assert kept.after({"rig2": BUSY}, (), NOW + timedelta(days=2)).absences["rig2"].nights == 2


@pytest.mark.parametrize(("hours", "reminded"), [(0, 0), (11.9, 0), (12, 1), (13, 1)])
def test_a_reminder_after_twelve_hours(hours: float, reminded: int) -> None:
    told, _ = night(Told(), ("rig1", WARM))
    told, messages = reminders(told, spec(), NOW + timedelta(hours=hours))
    assert len(messages) == reminded
    if reminded:
        assert messages[0].title == "rigctl: 1 rig still bad: rig1"
        assert WARM in messages[0].body
        assert reminders(told, spec(), NOW + timedelta(hours=hours + 11))[1] == ()
        assert len(reminders(told, spec(), NOW + timedelta(hours=hours + 12))[1]) == 1


def test_no_reminder_in_the_quiet_hours_nor_of_what_is_well() -> None:
    quiet: NightlySpec = spec(quiet_hours={"begin": "22:00", "end": "07:30"})
    told, _ = night(Told(), ("rig1", WARM))
    assert reminders(told, quiet, NOW + timedelta(hours=24))[1] == ()
    assert len(reminders(told, quiet, NOW + timedelta(hours=25.5))[1]) == 1
    assert reminders(night(told, ("rig1", ""))[0], quiet, NOW + timedelta(hours=28))[1] == ()


def test_a_digest_once_on_its_day_where_nothing_changed() -> None:
    day = NOW.weekday()
    told, (digest,) = night(Told(), ("rig1", ""), digest_weekday=day)
    assert digest.kind == "digest"
    assert digest.title == "rigctl: 1 of 1 ok · 0 warnings · 0 waived checks (23:00–03:00 UTC)"
    assert night(told, ("rig1", ""), digest_weekday=day, at=NOW + timedelta(hours=1))[1] == ()
    assert night(told, ("rig1", ""), digest_weekday=day, at=NOW + timedelta(days=1))[1] == ()
    assert len(night(told, ("rig1", ""), digest_weekday=day, at=NOW + timedelta(days=7))[1]) == 1


def test_the_morning_line_says_what_else_changed_the_swap_and_the_link() -> None:
    now = NOW + timedelta(days=300)
    known = {"rig2": known_of("rig2", (past(0, driver="515.65"), bad(1, "slot2 (…2)")), (), now)}
    said = morning(Found(record(("rig1", ""), ("rig2", WARM)), known), spec(link="https://rigs.example.org/"))
    assert said.splitlines() == [
        "rigctl: 1 of 2 FAILED · 1 ok (23:00–03:00 UTC)",
        f"FAIL rig2 slot2 (…a91f): {WARM}",
        "  since last pass: driver 515.65 → 515.105.01",
        "  do: pump, then cold plate. Left: idle, limits as found. → https://rigs.example.org/rigs/rig2.html",
        f"  card or place: {SWAP} if {HOT} moves along it is the card, {STAYS}",
    ]


def test_a_night_s_runs_are_one_record() -> None:
    one, two = record(("rig1", "")), record(("rig2", WARM), run_id="2026-12-01T0100Z-0000")
    whole = merged(
        [two.model_copy(update={"started_at": "2026-12-01T01:00:00Z", "ended_at": "2026-12-01T04:00:00Z"}), one]
    )
    assert ([rig.name for rig in whole.rigs], whole.started_at, whole.ended_at) == (
        ["rig2", "rig1"],
        "2026-11-30T23:00:00Z",
        "2026-12-01T04:00:00Z",
    )
    with pytest.raises(ValueError, match="no run"):
        merged([])
