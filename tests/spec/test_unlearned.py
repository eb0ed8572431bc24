"""A class whose figure is not known yet: the reading is shown, and a person is told that nothing judged it."""

from __future__ import annotations

import pytest

from rigctl.checks import power, thermals, throughput, topology
from rigctl.model.verdict import Verdict
from tests.checks import healthy as h

CHECKS = {
    "limits.max_settled_gpu_temp_c": thermals.settled_gpu_temp,
    "limits.min_power_share_of_limit": power.share_of_limit,
    "limits.min_burn_gflops": lambda spec, readings: throughput.burn_gflops(spec, readings, h.PROFILE),
    "parts.pcie_gen_under_load": lambda spec, readings: topology.pcie_gen(spec, readings, h.PROFILE),
    "parts.pcie_width_under_load": lambda spec, readings: topology.pcie_width(spec, readings, h.PROFILE),
    "training.min_tokens_per_s": throughput.training,
}


def without(key: str):
    """The spec without this figure."""
    part, name = key.split(".")
    if part == "training":
        whole = h.spec()
        assert whole.training is not None
        return whole.model_copy(update={"training": whole.training.model_copy(update={name: None})})
    return h.spec(**{part: {name: None}})


@pytest.mark.parametrize("key", CHECKS)
def test_what_has_no_limit_yet_is_shown_and_warned_of(key):
    verdicts = CHECKS[key](without(key), h.readings())
    assert verdicts
    for verdict in verdicts:
        assert verdict.verdict is Verdict.WARN
        assert verdict.found is not None
        assert verdict.expected in (None, 94.0)  # a temperature is held against the card's own slowdown
        assert verdict.reason.endswith("; the spec sets no limit for it yet")
        assert verdict.fix.startswith("rigctl spec learn rig1")


@pytest.mark.parametrize("key", CHECKS)
def test_without_a_reading_it_is_an_error_all_the_same(key):
    nothing = h.readings(samples=(), logs={})
    assert {v.verdict for v in CHECKS[key](without(key), nothing)} == {Verdict.ERROR}


def test_a_card_is_never_allowed_more_than_its_own_slowdown_temperature():
    hot = h.readings(samples=h.with_gpu_samples(lambda gpu, _: {"temp_c": 96.0} if gpu.slot == 2 else None))
    _, second = thermals.settled_gpu_temp(without("limits.max_settled_gpu_temp_c"), hot)
    assert second.verdict is Verdict.FAIL
    assert second.source == "the card's own slowdown temperature"


def test_a_fallen_rate_fails_without_a_floor_too():
    loose = h.spec(limits={"min_burn_gflops": None, "max_burn_gflops_drift": 0.001})
    long = h.PROFILE.model_copy(update={"gpu_burn_seconds": 600})
    text = h.readings().logs["gpu_burn.log"]
    lines, fallen = text.splitlines(keepends=True), []
    for line in lines:
        percent = float(line.split("%")[0]) if "%" in line.split("  ")[0] else 0.0
        fallen.append(line.replace("(26", "(24") if percent > 60 else line)
    verdicts = throughput.burn_gflops(
        loose, h.readings(logs={**h.readings().logs, "gpu_burn.log": "".join(fallen)}), long
    )
    assert Verdict.FAIL in {v.verdict for v in verdicts}
