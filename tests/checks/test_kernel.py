"""Xids: which are findings, of which card, and when."""

from __future__ import annotations

import pytest

from rigctl.checks import kernel
from rigctl.model.reading import KernelMessage
from rigctl.model.verdict import Verdict

from . import healthy as h

BURN_END = 8 + 30
"""The GPU burn's planned end, seconds after the plan's start: its step's beginning and its last argument."""


def judged(*messages, **changes):
    lines = tuple(KernelMessage(t_wall_s=h.T0 + t, message=text) for t, text in messages)
    return kernel.no_xid(h.readings(kernel=lines, **changes))


def xid(number, bus="0000:02:00", pid="'<unknown>'", name="<unknown>", text="something"):
    return f"NVRM: Xid (PCI:{bus}): {number}, pid={pid}, name={name}, {text}"


@pytest.mark.parametrize(
    ("t", "number", "verdict"),
    [
        (20, 79, Verdict.FAIL),
        (5, 79, Verdict.FAIL),
        (20, 13, Verdict.FAIL),
        (4, 13, Verdict.WARN),
        (20, 43, Verdict.FAIL),
        (20, 63, Verdict.WARN),
        (20, 119, Verdict.FAIL),
        (20, 999, Verdict.FAIL),
        (4, 999, Verdict.FAIL),
    ],
)
def test_what_a_number_means_depends_on_our_own_load(t, number, verdict):
    (found,) = judged((t, xid(number)))
    assert (found.verdict, found.subject) == (verdict, h.SLOT2)
    assert found.fix
    assert str(number) in str(found.found)


def test_the_clean_up_after_a_burns_own_processes_is_no_finding():
    ending = xid(45, pid="4242", name="gpu_burn", text="Ch 00000008")
    (found,) = judged((BURN_END + 0.5, ending), (BURN_END - 1, ending))
    assert found.verdict is Verdict.PASS


@pytest.mark.parametrize(
    ("t", "text"),
    [
        (20, xid(45, pid="4242", name="gpu_burn")),
        (BURN_END + 0.5, xid(45, pid="77", name="python")),
        (BURN_END + 20, xid(45, pid="77", name="python")),
    ],
)
def test_a_45_in_the_burn_or_of_another_process_is_a_finding(t, text):
    (found,) = judged((t, text))
    assert found.verdict in (Verdict.FAIL, Verdict.WARN)


def test_a_burn_that_the_guard_stopped_is_cleaned_up_after_too():
    stop = h.guard_stop("gpu_burn", 25.0, reason="temperature", slot=2, found=85.0, limit=85.0)
    (found,) = judged((25.3, xid(45, pid="4242", name="gpu_burn")), events=stop)
    assert found.verdict is Verdict.PASS


def test_the_fault_is_named_and_not_what_follows_it():
    (found,) = judged((20, xid(45, pid="9", name="python")), (19, xid(62, text="023f0f30 00000000")))
    assert found.reason.startswith("Xid 62")
    assert found.found == "45, 62"


def test_each_card_has_its_own_verdict_and_an_unknown_one_its_address():
    found = judged((20, xid(79)), (21, xid(31, bus="0000:01:00")), (22, xid(79, bus="0000:41:00")))
    assert {v.subject for v in found} == {h.SLOT1, h.SLOT2, "card at 0000:41:00"}


def test_nothing_read_is_not_nothing_found():
    (found,) = kernel.no_xid(h.readings(kernel=(), kernel_read=False))
    assert found.verdict is Verdict.ERROR
    (found,) = kernel.no_xid(h.readings(kernel=(), kernel_read=True))
    assert found.verdict is Verdict.PASS


def test_a_reboot_is_seen_in_the_samples_too():
    samples = h.samples()
    later = tuple(s.model_copy(update={"boot_id": "another"}) for s in samples[60:])
    (found,) = kernel.same_boot(h.readings(samples=samples[:60] + later))
    assert found.verdict is Verdict.FAIL
    assert "gpu_burn" in found.reason


def test_what_the_kernel_said_counts_also_where_the_rest_could_not_be_read():
    card, rest = judged((20, xid(79)), kernel_read=False)
    assert (card.verdict, card.subject) == (Verdict.FAIL, h.SLOT2)
    assert (rest.verdict, rest.subject) == (Verdict.ERROR, "rig")


def test_a_message_of_an_unknown_form_hides_no_known_one():
    card, rest = judged((19, "NVRM: Xid 79 something new"), (20, xid(79)))
    assert (card.verdict, card.subject) == (Verdict.FAIL, h.SLOT2)
    assert (rest.verdict, rest.subject) == (Verdict.ERROR, "rig")
    assert [seen.slot for seen in kernel.failing_xids(h.readings(kernel=(
        KernelMessage(t_wall_s=h.T0 + 19, message="NVRM: Xid 79 something new"),
        KernelMessage(t_wall_s=h.T0 + 20, message=xid(79)),
    )))] == [2]  # fmt: skip


def test_after_a_reboot_silence_is_no_pass():
    (found,) = judged(boot_id_after="another")
    assert found.verdict is Verdict.ERROR
    (found,) = judged((20, xid(79)), boot_id_after="another")
    assert found.verdict is Verdict.FAIL
