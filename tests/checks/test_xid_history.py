"""An Xid that comes again within a week: inspect the hardware."""

from __future__ import annotations

import pytest

from rigctl.checks import kernel, xid_fixes, xid_history
from rigctl.model.history import PastXid
from rigctl.model.reading import KernelMessage
from rigctl.model.verdict import Verdict
from rigctl.parse import xid

from . import healthy as h

DAY = 86_400.0
END = h.T0 + h.END - 0.5
"""When the last sample of the healthy rig was taken."""


def past(*ages_s, number=79, uuid=h.UUIDS[1], bus="0000:02:00", from_s=h.T0 + 20):
    """Messages so long before the run's own one."""
    return tuple(
        PastXid(run_id=f"run{i}", t_wall_s=from_s - age, number=number, uuid=uuid, pci_bus_id=bus)
        for i, age in enumerate(ages_s)
    )


def judged(earlier, number=79, bus="0000:02:00"):
    """What is said of a run in which the kernel said `number` 20 s after its start; None: nothing."""
    text = "something" if number is None else f"NVRM: Xid (PCI:{bus}): {number}, pid='<unknown>', name=<unknown>, x"
    readings = h.readings(kernel=(KernelMessage(t_wall_s=h.T0 + 20, message=text),))
    return kernel.no_xid(readings, earlier)


def test_the_same_xid_of_the_same_card_again_means_inspect():
    (found,) = judged(past(2 * DAY))
    assert found.verdict is Verdict.FAIL
    assert found.fix.startswith("twice in a week: inspect the hardware")
    assert "the same in the week before" in found.reason
    (alone,) = judged(())
    assert "inspect" not in alone.fix


@pytest.mark.parametrize(
    ("age_s", "again"),
    [
        (xid_history.WEEK_S, True),
        (xid_history.WEEK_S + 1, False),
        (xid_history.INCIDENT_S, True),
        (xid_history.INCIDENT_S - 1, False),
        (0.0, False),
        (-DAY, False),
    ],
)
def test_a_week_and_an_incident_have_their_ends(age_s, again):
    (found,) = judged(past(age_s))
    assert ("inspect" in found.fix) == again


@pytest.mark.parametrize(
    "other", [past(DAY, number=31), past(DAY, uuid=h.UUIDS[0]), past(DAY, uuid=h.UUIDS[0], bus="0000:01:00")]
)
def test_another_number_or_card_is_no_repetition(other):
    (found,) = judged(other)
    assert "inspect" not in found.fix


def test_a_card_is_known_by_its_address_where_its_uuid_is_not():
    (found,) = judged(past(DAY, uuid=""))
    assert "inspect" in found.fix
    (found,) = judged(past(DAY, uuid="GPU-gone", bus="0000:41:00"), bus="0000:41:00")
    assert "inspect" in found.fix
    (found,) = judged(past(DAY, uuid="", bus="0000:01:00"))
    assert "inspect" not in found.fix


def test_messages_of_one_incident_are_one():
    (found,) = judged(past(2 * DAY, 2 * DAY - 600, 2 * DAY - 1200))
    assert found.reason.count("2026-") == 1
    (found,) = judged(past(2 * DAY, 2 * DAY - xid_history.INCIDENT_S))
    assert found.reason.count("2026-") == 2


def test_a_rig_that_is_well_now_is_warned_of_two_incidents_in_the_week():
    (found,) = judged(past(DAY, 3 * DAY, from_s=END), number=None)
    assert (found.verdict, found.subject, found.found) == (Verdict.WARN, h.SLOT2, "none")
    assert "Xid 79 2 times" in found.reason
    assert "inspect" in found.fix


@pytest.mark.parametrize(
    "earlier",
    [
        past(DAY, from_s=END),
        past(DAY, DAY - 60, from_s=END),
        past(DAY, xid_history.WEEK_S + 1, from_s=END),
        past(DAY, -1, from_s=END),
        past(DAY, 3 * DAY, number=13, from_s=END),
        past(DAY, from_s=END) + past(2 * DAY, number=74, from_s=END),
        past(DAY, from_s=END) + past(2 * DAY, uuid=h.UUIDS[0], from_s=END),
    ],
)
def test_less_than_that_is_a_pass(earlier):
    (found,) = judged(earlier, number=None)
    assert found.verdict is Verdict.PASS


def test_the_weeks_last_moment_counts():
    (found,) = judged(past(0, xid_history.WEEK_S, from_s=END), number=None)
    assert found.verdict is Verdict.WARN


def test_without_a_time_nothing_is_said_of_the_week():
    readings = h.readings(samples=(), events=())
    assert kernel.no_xid(readings, past(DAY, 3 * DAY))[0].verdict is Verdict.PASS


def test_every_number_has_a_remedy_in_words():
    for number in (*range(1, 175), 999):
        fix = xid_fixes.fix_of(number, xid.meaning(number), "rig7")
        assert fix.endswith("; then `rigctl accept rig7`")
        assert "{rig}" not in fix
        assert fix.count("_") <= 1, fix
    assert "nvidia-smi -r" in xid_fixes.fix_of(95, xid.meaning(95), "rig7")
