"""What the controller does when a burn's verdict is certain: it asks the rig to end that step, once."""

from __future__ import annotations

import pytest

from bench import early_stop
from rigctl.measure.early import EarlyStop
from rigctl.measure.spool import Fetched
from rigctl.sim.burns import Burn

from .test_rig import RecordedAgent, measure, spool_files

__all__ = ["measure"]


@pytest.fixture(scope="module")
def burnt():
    whole = Burn(early_stop.identity_of(2), limit_w=480.0, seed=2).run()
    return whole, early_stop.baseline_of(whole)


def polls(burnt, name="standard", baseline=None):
    """Feed a burn poll by poll; return the second at which the end was asked for, and how often."""
    whole, known = burnt
    stop = EarlyStop("rig1", early_stop.SPEC, early_stop.PROFILE, whole.facts, baseline or known, name)
    rows = whole.logs["gpu_burn.log"].split("\tSummary")[0].split("\r")
    asked = []
    for second, sample in enumerate(whole.samples):
        burning = second - 30
        text = rows[0] if burning == 0 else f"\r{rows[burning // 10]}" if burning > 0 and burning % 10 == 0 else ""
        fetched = Fetched(active=True, unit_result="", boot_id="b", complete=True, samples=[sample], burn_text=text)
        if stop.take(fetched, sample.step) is not None:
            asked.append(burning)
    return asked


def test_the_end_is_asked_for_once_in_the_first_half(burnt):
    (asked,) = polls(burnt)
    assert 150 <= asked <= 300


@pytest.mark.parametrize("name", ["full", "soak"])
def test_long_profiles_burn_to_their_end(burnt, name):
    assert polls(burnt, name) == []


def test_a_first_acceptance_burns_to_its_end(burnt):
    whole, _ = burnt
    stop = EarlyStop("rig1", early_stop.SPEC, early_stop.PROFILE, whole.facts, None, "standard")
    assert stop.why_not == "the rig was never accepted before"


def test_the_rig_is_asked_to_end_the_step_with_the_reason(measure, monkeypatch):
    asked = []

    class Agent(RecordedAgent):
        def ask(self, *args, during, stdin=b"", timeout_s=30):
            if args[0] == "end-step":
                asked.append((args, during))
                return {"active": True}
            return super().ask(*args, during=during, stdin=stdin, timeout_s=timeout_s)

    answers = iter(["all is clear"])
    monkeypatch.setattr(EarlyStop, "take", lambda _self, _fetched, _step: next(answers, None))
    measured = measure(Agent(spool_files()))
    ((args, _during),) = asked
    assert args[:3] == ("end-step", "--run", measured.run_dir.run_id)
    assert args[-1] == "all is clear"
