"""A card is changed: the night fails, a person accepts the run, the next night passes, and limits stay."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from rigctl import baselines
from rigctl.accept import AcceptOptions, start_run
from rigctl.judge import judge_run
from rigctl.model.rig import Login, Rig
from rigctl.model.verdict import Verdict
from rigctl.store import RunDir, dumps
from rigctl.store.decisions import FILE
from tests.acceptance.test_judge import STARTED, bad, fake, write
from tests.checks import healthy as h

if TYPE_CHECKING:
    from pathlib import Path

    from rigctl.model.reading import Readings
    from rigctl.model.verdict import Record

DAY_S = 86_400.0
WHY = "slot 2 has a new card, ticket 4711"


def moved(readings: Readings, nights: int) -> Readings:
    """The same readings so many nights later."""

    def later(rows: tuple[Any, ...], *clocks: str) -> tuple[Any, ...]:
        found = []
        for row in rows:
            known = {name: getattr(row, name) for name in clocks}
            found.append(row.model_copy(update={n: t + nights * DAY_S for n, t in known.items() if t is not None}))
        return tuple(found)

    return readings.model_copy(
        update={
            "samples": later(readings.samples, "t_wall_s", "controller_wall_s"),
            "events": later(readings.events, "t_wall_s"),
            "kernel": later(readings.kernel, "t_wall_s"),
        }
    )


class Nights:
    """One rig, night after night, judged as `rigctl accept` judges it."""

    def __init__(self, runs: Path, monkeypatch: pytest.MonkeyPatch, readings: Readings) -> None:
        self.runs, self.monkeypatch, self.readings, self.count = runs, monkeypatch, readings, 0

    def night(self, spec: Any = None) -> tuple[RunDir, Record]:
        began, made = STARTED + timedelta(days=self.count), RunDir.create
        rig = Rig(name="rig1", login=Login(address="192.0.2.1"), spec=spec or h.spec(), profiles={"smoke": h.PROFILE})
        with self.monkeypatch.context() as patch:
            patch.setattr(RunDir, "create", lambda *args, **known: made(*args, **known | {"now": began}))
            run = start_run(AcceptOptions(rigs=(rig,), profile="smoke", runs=self.runs))
        write(run, moved(self.readings, self.count))
        record = judge_run(run, {"rig1": fake(run)})
        run.write_record(record)
        self.count += 1
        return run, record


def with_new_card(readings: Readings) -> Readings:
    """The same rig with another card in slot 2."""
    text = readings.model_dump_json().replace(h.UUIDS[1], h.UUIDS[1][:-4] + "beef")
    return type(readings).model_validate_json(text)


@pytest.fixture
def nights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Nights:
    return Nights(tmp_path / "runs", monkeypatch, h.readings())


def decided(run: RunDir) -> str:
    decision = run.read_info().rigs[0].decision
    return decision.sentence if decision is not None else ""


def test_the_identity_of_a_changed_card_passes_once_a_person_accepted_it(nights):
    first, well = nights.night()
    assert bad(well) == {}
    nights.readings = with_new_card(nights.readings)
    changed, record = nights.night()
    assert [key for key in bad(record) if key.startswith("identity.cards")] == ["identity.cards[slot2 (…beef)]"]
    assert "rigctl baseline accept RUN rig1" in next(v for v in record.rigs[0].verdicts if v.key in bad(record)).fix
    again, record = nights.night()
    assert again.read_info().rigs[0].baseline.run_id == first.run_id, "a failed night moves nothing by itself"
    assert any(key.startswith("identity.cards") for key in bad(record))

    baselines.accept(nights.runs, changed.run_id, "rig1", WHY, now=STARTED + timedelta(days=2, hours=12))
    after, record = nights.night()
    assert bad(record) == {}
    assert after.read_info().rigs[0].baseline.run_id == changed.run_id
    assert WHY in decided(after)
    assert decided(after) in record.rigs[0].notes
    assert decided(changed) == "", "what a run was judged by stays what it was"

    (nights.runs / FILE).unlink()
    assert dumps(judge_run(RunDir(after.path))) == dumps(record), "offline it says the same"


def test_a_limit_of_the_spec_judges_on(nights):
    nights.night()
    tight = h.spec(limits={"max_settled_gpu_temp_c": 40})
    hot, record = nights.night(tight)
    beyond = {v.key for v in record.rigs[0].verdicts if v.verdict is Verdict.FAIL}
    assert any(key.startswith("thermals.settled_gpu_temp") for key in beyond)
    done = baselines.accept(nights.runs, hot.run_id, "all", "it is warm here", now=STARTED + timedelta(days=1, hours=9))
    assert set(done.failed["rig1"]) <= beyond
    _, record = nights.night(tight)
    assert {v.key for v in record.rigs[0].verdicts if v.verdict is Verdict.FAIL} == beyond


def test_after_a_reset_the_next_run_is_a_first_acceptance(nights):
    nights.night()
    nights.readings = with_new_card(nights.readings)
    baselines.reset(nights.runs, "rig1", "rebuilt", now=STARTED + timedelta(hours=9))
    run, record = nights.night()
    assert run.read_info().rigs[0].baseline is None
    assert bad(record) == {}
    cards = [v for v in record.rigs[0].verdicts if v.check == "identity.cards"]
    assert {v.verdict for v in cards} == {Verdict.SKIP}
    assert decided(run) in record.rigs[0].notes
    after, record = nights.night()
    assert after.read_info().rigs[0].baseline.run_id == run.run_id
    assert {v.verdict for v in record.rigs[0].verdicts if v.check == "identity.cards"} == {Verdict.PASS}
