"""Whatever comes home, in whatever mixture of good, bad and cut: each check says something, and none of them breaks."""

from __future__ import annotations

from functools import cache

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rigctl.checks.catalogue import CATALOGUE
from rigctl.model.verdict import Verdict

from . import bad_input
from . import healthy as h
from .test_healthy import all_verdicts

KINDS = st.sampled_from(["healthy", *bad_input.KINDS])
LOGS = sorted(bad_input.outspoken().logs)
EXAMPLES = 25


@cache
def readings(kind):
    """A rig's readings of one kind, with what nvidia-smi says then."""
    return bad_input.readings(kind) if kind in bad_input.KINDS else (bad_input.outspoken(), h.TOPO, h.NVLINK)


PARTS = ("facts", "samples", "topo", "nvlink", *LOGS)
CUTS = st.sampled_from([1.0, 1.0, 1.0, 0.5, 0.01, 0.0])
"""How much of a file came home."""


def mixture(kinds, cuts, lost, told):
    """Readings whose parts are each of another kind; samples and events left out here and there, files cut."""
    samples, events = readings(kinds["samples"])[0].samples, h.events()
    texts = {name: readings(kinds[name])[0].logs[name] for name in LOGS}
    changed = {
        "facts": readings(kinds["facts"])[0].facts if told[0] else None,
        "samples": tuple(s for n, s in enumerate(samples) if n % 50 not in lost),
        "events": events[: round(len(events) * cuts["events"])],
        "logs": {name: text[: round(len(text) * cuts[name])] for name, text in texts.items()},
        "kernel_read": told[1],
        "boot_id_after": h.BOOT if told[2] else None,
    }
    return bad_input.outspoken().model_copy(update=changed)


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.fixed_dictionaries(dict.fromkeys(PARTS, KINDS)),
    st.fixed_dictionaries(dict.fromkeys(("events", *LOGS), CUTS)),
    st.sets(st.integers(0, 49), max_size=5),
    st.tuples(*[st.booleans()] * 4),
)
def test_each_check_says_something_of_any_mixture(kinds, cuts, lost, told):
    topo, nvlink = readings(kinds["topo"])[1], readings(kinds["nvlink"])[2]
    baseline = h.baseline() if told[3] else None
    found = mixture(kinds, cuts, lost, told)
    verdicts = all_verdicts(readings=found, topo=h.reply(topo), nvlink=h.reply(nvlink), baseline=baseline)
    assert {v.check for v in verdicts} == {info.id for info in CATALOGUE.values() if not info.afterwards}
    assert len({v.key for v in verdicts}) == len(verdicts)
    assert all(v.reason and (v.fix or v.verdict not in (Verdict.FAIL, Verdict.ERROR)) for v in verdicts)
