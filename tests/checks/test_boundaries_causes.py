"""Each way in which one verdict follows from another: what does, and what is next to it and does not."""

from __future__ import annotations

import pytest

from rigctl.checks import causes
from rigctl.checks.cards import ABSENT
from rigctl.checks.catalogue import CATALOGUE, ORDER, order
from rigctl.checks.causes import with_causes
from rigctl.checks.say import Say
from rigctl.model.reading import RigEvent

from . import healthy as h

ONE, TWO, PAIR, OTHER_PAIR = h.SLOT1, h.SLOT2, "slot1-slot2", "slot3-slot4"
NOTHING_SEEN = h.readings(facts=h.facts(gpus=()))


def fail(check, subject="rig", found=None):
    return Say(check, subject).failed("x", found, "y")


def error(check, subject="rig"):
    return Say(check, subject).error("x", "y")


@pytest.mark.parametrize(
    ("cause", "other", "touches"),
    [
        ("rig", TWO, True),
        (ONE, "rig", True),
        (ONE, "all_burn", True),
        (ONE, ONE, True),
        (ONE, TWO, False),
        (ONE, PAIR, True),
        (PAIR, TWO, True),
        (PAIR, OTHER_PAIR, False),
        (ONE, ABSENT, False),
    ],
)
def test_what_is_of_the_same_card(cause, other, touches):
    assert causes._touches(cause, other) is touches


SAME = causes._same_card("power.wall", "power.limit")
STEP = causes._same_step("power.wall")
XID = causes._told_by_xid("memory.remapped_rows")


@pytest.mark.parametrize(
    ("follows", "cause", "other", "yes"),
    [
        (causes._whole_rig("power.wall"), fail("power.limit"), fail("power.wall", ONE), True),
        (causes._whole_rig("power.wall"), fail("power.limit"), fail("power.idle", ONE), False),
        (SAME, fail("power.idle", ONE), fail("power.limit", ONE), True),
        (SAME, fail("power.idle", ONE), fail("power.limit", TWO), False),
        (SAME, fail("power.idle", ONE), fail("thermals.fans", ONE), False),
        (STEP, fail("power.residual", "all_burn"), fail("power.wall", "all_burn"), True),
        (STEP, fail("power.residual", "all_burn"), fail("power.wall", "gpu_burn"), False),
        (STEP, fail("power.residual", "all_burn"), fail("power.limit", "all_burn"), False),
        (causes._unmeasured("power.wall"), fail("power.limit"), error("power.wall"), True),
        (causes._unmeasured("power.wall"), fail("power.limit"), fail("power.wall"), False),
        (causes._unmeasured("power.wall"), fail("power.limit"), error("power.idle"), False),
        (causes._everything, error("measure.reached"), error("power.wall"), True),
        (causes._everything, error("measure.reached"), fail("power.wall"), False),
        (causes._what_it_cools, fail("thermals.fans", "pump"), fail("thermals.resistance", ONE), True),
        (causes._what_it_cools, fail("thermals.fans", "pump"), fail("thermals.guard", ONE), True),
        (causes._what_it_cools, fail("thermals.fans", ONE), fail("thermals.settled_gpu_temp", ONE), True),
        (causes._what_it_cools, fail("thermals.fans", ONE), fail("thermals.settled_gpu_temp", TWO), False),
        (causes._what_it_cools, fail("thermals.fans", "pump"), fail("topology.nvlink", PAIR), False),
        (causes._burn_spoilt, fail("throughput.gpu_burn", ONE), fail("power.share_of_limit", ONE), True),
        (causes._burn_spoilt, fail("throughput.gpu_burn", ONE), fail("power.share_of_limit", TWO), False),
        (causes._burn_spoilt, fail("throughput.gpu_burn", ONE), fail("topology.pcie_gen", ONE), False),
        (causes._burn_spoilt, fail("throughput.gpu_burn", ONE), error("topology.pcie_gen", ONE), True),
        (causes._burn_spoilt, fail("throughput.gpu_burn", ONE), error("topology.nvlink", PAIR), False),
        (causes._another_model, fail("topology.gpu_model", ONE), fail("software.gpu_burn_build"), True),
        (causes._another_model, fail("topology.gpu_model", ONE), fail("topology.gpu_memory", ONE), True),
        (causes._another_model, fail("topology.gpu_model", ONE), fail("topology.gpu_memory", TWO), False),
        (causes._another_model, fail("topology.gpu_model", ONE), fail("measure.probes", ONE), False),
        (XID, fail("memory.ecc", ONE), fail("memory.remapped_rows", ONE), True),
        (XID, fail("memory.ecc", ONE), fail("memory.remapped_rows", TWO), False),
        (XID, fail("memory.ecc", ONE), fail("kernel.xid", ONE, "48"), True),
        (XID, fail("memory.ecc", ONE), fail("kernel.xid", ONE, "48, 79"), False),
        (XID, fail("memory.ecc", ONE), fail("power.limit", ONE, "48"), False),
    ],
)
def test_what_follows(follows, cause, other, yes):
    assert bool(follows(cause, other, h.readings())) is yes


def test_every_xid_of_memory_at_once_is_told_by_its_counts():
    numbers = ", ".join(sorted(causes._XIDS_OF_MEMORY))
    assert XID(fail("memory.ecc", ONE), fail("kernel.xid", ONE, numbers), h.readings())


@pytest.mark.parametrize("follows", [causes._nvml, causes._needs_driver])
@pytest.mark.parametrize(
    ("other", "yes"),
    [
        (error("topology.gpu_memory", ONE), True),
        (error("throughput.cpu_burn"), True),  # needs a load
        (error("software.torch"), True),
        (fail("topology.gpu_memory", ONE), False),
        (error("spec.waivers"), False),
        (error("user.disk.test_room"), False),
    ],
)
def test_what_needs_the_driver(follows, other, yes):
    assert follows(fail("software.driver_version"), other, NOTHING_SEEN) is yes


def test_where_cards_are_seen_nothing_follows_from_nvml():
    assert not causes._nvml(fail("software.driver_version"), error("topology.gpu_memory"), h.readings())
    assert not causes._nvml(fail("software.driver_version"), error("topology.gpu_memory"), h.readings(facts=None))


@pytest.mark.parametrize(
    ("other", "yes"),
    [
        (error("topology.pcie_gen", ABSENT), True),
        (error("topology.pcie_gen", ONE), False),
        (fail("topology.nvlink", PAIR), True),
        (fail("topology.nvlink_speed", ONE), True),
        (error("topology.p2p_access", PAIR), True),
        (fail("topology.p2p_access", PAIR), False),
        (error("throughput.p2p_one_way", PAIR), True),
        (error("throughput.training"), True),
        (fail("throughput.training"), False),
        (error("thermals.fans", ONE), True),
        (fail("power.wall", "all_burn"), True),
        (fail("power.residual", "all_burn"), True),
        (fail("throughput.gpu_burn"), True),
        (fail("throughput.gpu_burn", ONE), False),
        (fail("power.limit", "rig"), False),
    ],
)
def test_what_goes_with_a_card(other, yes):
    assert bool(causes._card_gone(fail("topology.gpu_count"), other, h.readings())) is yes
    assert bool(causes._card_gone(fail("topology.gpu_count"), other, h.readings(facts=None))) is yes


def test_without_any_card_it_is_as_without_nvml():
    gone = fail("topology.gpu_count")
    assert causes._card_gone(gone, error("topology.gpu_memory"), NOTHING_SEEN)
    assert not causes._card_gone(gone, fail("power.wall", "all_burn"), NOTHING_SEEN)


@pytest.mark.parametrize(
    ("subject", "cause", "yes"),
    [
        ("power.limit", fail("power.limit", ONE), True),
        ("power.limit[slot1]", fail("power.limit", ONE), True),
        (f"power.limit[{ONE}]", fail("power.limit", ONE), True),
        ("power.limit[slot2]", fail("power.limit", ONE), False),
        ("power.idle[slot1]", fail("power.limit", ONE), False),
    ],
)
def test_an_ended_waiver_follows_from_what_it_waived(subject, cause, yes):
    assert bool(causes._its_waiver(cause, fail("spec.waivers", subject), h.readings())) is yes
    assert not causes._its_waiver(cause, fail("power.wall", subject), h.readings())


def test_a_check_is_no_cause_of_itself_nor_of_what_is_well():
    both = [fail("power.limit", ONE), fail("power.limit", TWO), Say("power.wall").passed("fine", 1)]
    assert [v.caused_by for v in with_causes(both, h.readings())] == [None, None, None]


def test_the_deepest_cause_is_named():
    chain = [fail("thermals.fans", "pump"), fail("thermals.resistance", ONE), fail("thermals.throttle", ONE)]
    first, *others = with_causes([*chain, fail("throughput.burn_gflops", ONE)], h.readings())
    assert first.caused_by is None
    assert {v.caused_by for v in others} == {first.key}


def test_an_error_is_no_cause_where_only_a_fail_is_one():
    (limit, _) = with_causes([error("power.limit", ONE), fail("power.share_of_limit", ONE)], h.readings())
    assert limit.caused_by is None
    assert (
        with_causes([error("power.limit", ONE), fail("power.share_of_limit", ONE)], h.readings())[1].caused_by is None
    )


def test_waivers_are_no_cause_of_their_own_deviation():
    ended = fail("spec.waivers", "power.limit")
    deviation = fail("power.limit", ONE)
    found = with_causes([deviation, ended], h.readings())
    assert [v.caused_by for v in found] == [None, deviation.key]
    assert not any(rule.cause == "spec.waivers" for rule in causes.RULES)
    assert {rule.cause for rule in causes.RULES if rule.follows is causes._its_waiver} == set(CATALOGUE) - {
        "spec.waivers"
    }


def test_a_users_own_checks_come_last():
    assert order(ORDER[3]) == (3, ORDER[3])
    assert order("user.disk.test_room") == (len(ORDER), "user.disk.test_room")


def test_a_rig_that_went_off_when_its_load_was_switched_rebooted_for_that():
    begun = RigEvent(seq=900, t_mono_s=1, t_wall_s=1, event="load_started", step="step_load", detail={})
    gone = h.readings(events=(begun,), boot_id_after="another")
    switched, reboot, other = fail("power.step_load"), fail("kernel.same_boot"), fail("kernel.xid")
    assert causes._went_off(switched, reboot, gone)
    assert not causes._went_off(switched, other, gone)
    assert not causes._went_off(switched, reboot, h.readings(events=(begun,)))
    assert not causes._went_off(switched, reboot, h.readings(events=(), boot_id_after="another"))
