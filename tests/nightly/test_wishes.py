"""What each rig wants tonight: what its own runs teach, what they must not, and who gets the deep profile."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from rigctl.measure.plan import step_seconds
from rigctl.model.verdict import Verdict
from rigctl.nightly.wishes import CPU_W, LEARNED_FROM, MARGIN, OVERHEAD_S, REST_W, expected_s, watts, wishes
from rigctl.store.canonical import digest
from rigctl.store.index import Index
from tests.nightly.park import park, rig
from tests.report.build_run import build_run
from tests.trends.test_trends import past

if TYPE_CHECKING:
    from pathlib import Path

    from rigctl.model.past import Past
    from rigctl.store import RunDir

RIG = rig("rig1")
ASKED = digest(RIG.profiles["standard"])
PLANNED_S = OVERHEAD_S + sum(step_seconds(RIG.spec, RIG.profiles["standard"], first=False).values())
FIRST_S = OVERHEAD_S + sum(step_seconds(RIG.spec, RIG.profiles["standard"], first=True).values())


def took(seconds_: float, night: int = 0, **more: Any) -> Past:
    """A night of the standard profile as it is asked for today, accepted and burnt."""
    known = {"asked": ASKED, "burnt": True, "seconds": {"gpu_burn": seconds_ - 10, "train": 10.0}}
    return past(night, **known | more)


def learned(*pasts: Past) -> float:
    """What is expected, without the margin, seconds."""
    return expected_s(RIG, "standard", pasts) / MARGIN


def test_the_first_night_goes_by_the_steps() -> None:
    assert learned() == pytest.approx(FIRST_S)


def test_one_run_and_the_steps_meet_in_the_middle_three_runs_decide() -> None:
    assert learned(took(1000)) == pytest.approx((1000 + PLANNED_S) / 2)
    assert learned(took(1000), took(1000)) == pytest.approx(1000)
    assert learned(took(1000), took(1010), took(1020)) == pytest.approx(1010)


def test_one_odd_night_decides_nothing() -> None:
    odd, usual = took(9 * 3600), took(PLANNED_S)
    assert learned(usual, odd) == pytest.approx(PLANNED_S), "not even among two"
    assert learned(usual, odd, usual) == pytest.approx(PLANNED_S)


def test_the_newest_runs_teach() -> None:
    slow = [took(5000, night) for night in range(50)]
    quick = [took(1000, 50 + night) for night in range(LEARNED_FROM // 2 + 1)]
    assert learned(*slow, *quick) == pytest.approx(1000)
    assert learned(*slow, *quick[:-2]) == pytest.approx(5000)


@pytest.mark.parametrize(
    "other",
    [
        {"profile": "full"},
        {"asked": digest(RIG.profiles["full"])},
        {"asked": ""},
        {"verdict": Verdict.FAIL},
        {"verdict": Verdict.ERROR},
        {"verdict": None},
        {"seconds": {}},
    ],
    ids=["another profile", "changed since", "nobody knows what was asked", "failed", "aborted", "busy", "no journal"],
)
def test_what_teaches_nothing(other: dict[str, Any]) -> None:
    usual = [took(1000, night) for night in range(3)]
    assert learned(*usual, *(took(7000, 3 + night, **other) for night in range(LEARNED_FROM))) == pytest.approx(1000)


def test_a_profile_that_became_shorter_is_not_left_out_for_what_it_was() -> None:
    """Else it never fits into the window, and so never shows how short it is."""
    assert learned(*(took(9 * 3600, night, asked="as it was") for night in range(20))) == pytest.approx(PLANNED_S)


def test_the_draw_is_the_spec_s_or_the_cards_limits_with_the_rest() -> None:
    declared = RIG.spec.limits.wall_power_all_burn_w
    assert declared is not None
    assert watts(RIG) == declared
    limits = RIG.spec.limits.model_copy(update={"wall_power_all_burn_w": None})
    bare = RIG.model_copy(update={"spec": RIG.spec.model_copy(update={"limits": limits})})
    limit = RIG.spec.software.power_limit_w
    assert limit is not None
    assert watts(bare) == 2 * limit + CPU_W + REST_W


class Deep:
    """An index that says when each rig of a park had what."""

    def __init__(self, **pasts: tuple[Past, ...]) -> None:
        self._pasts = pasts

    def pasts(self, name: str, *, limit: int) -> tuple[Past, ...]:
        return self._pasts.get(name, ())[-limit:]


NOW = datetime(2026, 1, 10, 22, 0, tzinfo=UTC)
STEPS = dict.fromkeys(step_seconds(RIG.spec, RIG.profiles["full"], first=False), 60.0)


def deep(**pasts: tuple[Past, ...]) -> set[str]:
    """Who gets the deep profile tonight, of two."""
    index: Any = Deep(**pasts)
    made = wishes(park("rig1", "rig2", circuits={"rig1": ("a", 2300)}), index, NOW)
    assert [one.rig for one in made] == ["rig1", "rig2"]
    assert [one.circuit for one in made] == ["a", None]
    return {one.rig for one in made if one.profile == "full"}


def test_who_waited_longest_gets_the_deep_profile() -> None:
    assert deep() == {"rig1"}
    assert deep(rig1=(past(8, profile="full", seconds=STEPS),)) == {"rig2"}
    assert deep(rig1=(past(5, profile="full"),), rig2=(past(4, profile="full"),)) == {"rig2"}
    assert deep(rig1=(past(8, Verdict.FAIL, profile="full", seconds=STEPS),), rig2=(past(3, profile="full"),)) == {
        "rig2"
    }


@pytest.mark.parametrize(
    "cut", [{"seconds": {"connect": 1.0, "gpu_burn": 60.0}, "verdict": Verdict.ERROR}, {"verdict": None}]
)
def test_a_deep_run_that_was_cut_short_or_busy_comes_again(cut: dict[str, Any]) -> None:
    assert deep(rig1=(past(8, profile="full", **cut),), rig2=(past(4, profile="full"),)) == {"rig1"}


def _journal(run: RunDir, *lines: tuple[float, str, dict[str, Any]]) -> None:
    """Write the journal anew: seconds, event, detail."""
    rows = [
        {"seq": number, "t_wall_s": at, "t_mono_s": at, "event": event, "detail": detail}
        for number, (at, event, detail) in enumerate(lines, start=1)
    ]
    (run.path / "journal.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def _step(at: float, rig: str, step: str) -> tuple[float, str, dict[str, Any]]:
    return (at, "step_started", {"rig": rig, "step": step})


def _verified(at: float, rig: str) -> tuple[float, str, dict[str, Any]]:
    return (at, "verify_started", {"rig": rig})


@pytest.mark.parametrize(
    ("lines", "seconds"),
    [
        (
            [
                _step(0, "rig1", "facts"), _step(2, "rig1", "gpu_burn"), _step(62, "rig1", "kernel log"),
                _verified(63, "rig1"),
            ],
            {"facts": 2.0, "gpu_burn": 60.0, "kernel log": 1.0},
        ),
        (
            [
                _step(0, "rig1", "gpu_burn"), _step(0, "rig2", "gpu_burn"), _step(60, "rig1", "kernel log"),
                _step(3600, "rig2", "kernel log"), _verified(3601, "rig1"), _verified(3601, "rig2"),
            ],
            {"gpu_burn": 60.0},
        ),
        (
            [
                _step(0, "rig1", "gpu_burn"), (9000, "resumed", {"by": "ops"}), _step(9001, "rig1", "gpu_burn"),
                _step(9061, "rig1", "kernel log"), _verified(9062, "rig1"),
            ],
            {},
        ),
    ],
    ids=["alone", "it waited for another rig", "its controller was gone"],
)  # fmt: skip
def test_what_a_journal_teaches(tmp_path: Path, lines: list[Any], seconds: dict[str, float]) -> None:
    run = build_run(tmp_path, faulty=False)
    _journal(run, *lines)
    with Index.open(tmp_path) as index:
        index.update()
        newest = index.newest("rig1")
    assert newest is not None
    assert newest.seconds == seconds
    asked = run.read_info().rigs[0].profile
    assert asked is not None
    assert newest.asked == digest(asked)


def test_what_was_asked_is_known_by_what_the_profile_says(tmp_path: Path) -> None:
    """The same from `run.json` as from an inventory, whatever JSON did to its numbers."""
    run = build_run(tmp_path)
    asked = run.read_info().rigs[0].profile
    assert asked is not None
    assert digest(asked) == digest(asked.model_copy(update={"gpu_burn_seconds": asked.gpu_burn_seconds + 1e-12}))
    assert digest(asked) != digest(asked.model_copy(update={"gpu_burn_seconds": asked.gpu_burn_seconds + 1}))


def test_a_night_of_the_window_s_length_is_learned_away() -> None:
    """As the plan uses it: the wish's seconds carry the margin."""
    index: Any = Deep(rig2=tuple(took(1000, night, rig="rig2") for night in range(3)))
    made = {one.rig: one for one in wishes(park("rig1", "rig2"), index, NOW + timedelta(days=1))}
    assert made["rig2"].seconds == pytest.approx(1000 * MARGIN)
