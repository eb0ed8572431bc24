"""PCIe lanes sleep beside a load: its first two seconds and its last one say nothing, all that lies between counts."""

from __future__ import annotations

import pytest

from rigctl.checks import topology
from rigctl.model.verdict import Verdict

from . import healthy as h

BEGIN, END = (1000 + t for t in h.BUSY["gpu_burn"])


def asleep_at(*moments: float):
    """The healthy readings, with the second card's link asleep in the samples at these moments."""
    samples = h.with_gpu_samples(lambda gpu, _: {"pcie_gen": 1, "pcie_width": 1} if gpu.slot == 2 else None)
    sleeping = {s.seq: s for s in samples if s.t_mono_s in moments}
    assert len(sleeping) == len(moments)
    return h.readings(samples=tuple(sleeping.get(s.seq, s) for s in h.samples()))


def verdicts(readings) -> list[Verdict]:
    found = [*topology.pcie_gen(h.spec(), readings, h.PROFILE), *topology.pcie_width(h.spec(), readings, h.PROFILE)]
    return [v.verdict for v in found if v.subject == h.SLOT2]


def test_a_link_that_wakes_late_or_sleeps_early_is_no_fault():
    last = END - 0.5
    assert verdicts(asleep_at(BEGIN, BEGIN + 1.5, last)) == [Verdict.PASS, Verdict.PASS]


@pytest.mark.parametrize("moment", [BEGIN + 2.0, BEGIN + 15, END - 1.5])
def test_a_link_that_sleeps_in_the_middle_is_one(moment):
    assert verdicts(asleep_at(moment)) == [Verdict.FAIL, Verdict.FAIL]
