"""The Xid messages of a rig's earlier runs: those that were findings, once each, of the last week."""

from __future__ import annotations

from datetime import timedelta

import pytest

from rigctl.model.reading import KernelMessage
from rigctl.model.verdict import CheckVerdict, Verdict
from rigctl.store.xids import find_past_xids
from tests.checks import healthy as h

from .test_baseline import NOON, accepted

NOW = NOON + timedelta(days=9)


def xid(number, bus="0000:02:00"):
    return f"NVRM: Xid (PCI:{bus}): {number}, pid='<unknown>', name=<unknown>, something"


def run(root, day, *lines, found="79", verdict=Verdict.FAIL, **more):
    """A run `day` days after the first one, whose kernel said `lines` (minutes after noon of that day, text)."""
    named = CheckVerdict(check="kernel.xid", subject=h.SLOT2, verdict=verdict, reason="an Xid", found=found)
    made = accepted(root, day, named, **more)
    noon_s = (NOON + timedelta(days=day)).timestamp()
    told = [KernelMessage(t_wall_s=noon_s + 60 * minute, message=text) for minute, text in lines]
    made.append_raw("rig1", "kernel.jsonl", "".join(one.model_dump_json() + "\n" for one in told).encode())
    return made


def test_findings_of_the_last_week_are_found_with_card_and_run(tmp_path):
    run(tmp_path, 1, (1, xid(79)))
    later = run(tmp_path, 5, (1, "usb 1-2: new device"), (2, xid(79)), (3, xid(45)), (4, "NVRM: Xid 79 something new"))
    (one,) = find_past_xids(tmp_path, ("rig1", "rig2"), NOW)["rig1"]
    assert (one.run_id, one.number, one.uuid, one.pci_bus_id) == (later.run_id, 79, h.UUIDS[1], "0000:02:00")
    assert one.t_wall_s == (NOON + timedelta(days=5, minutes=2)).timestamp()


def test_the_week_ends_to_the_second(tmp_path):
    run(tmp_path, 2, (0, xid(79)))
    assert find_past_xids(tmp_path, ("rig1",), NOW)
    assert not find_past_xids(tmp_path, ("rig1",), NOW + timedelta(seconds=1))


def test_one_message_that_two_runs_read_is_one(tmp_path):
    run(tmp_path, 7, (1, xid(79)))
    run(tmp_path, 8, (1 - 24 * 60, xid(79)), (1, xid(79)))
    assert len(find_past_xids(tmp_path, ("rig1",), NOW)["rig1"]) == 2


@pytest.mark.parametrize(("verdict", "count"), [(Verdict.WARN, 1), (Verdict.WAIVED, 1), (Verdict.PASS, 0)])
def test_what_was_no_finding_is_none_afterwards(tmp_path, verdict, count):
    run(tmp_path, 8, (1, xid(79)), verdict=verdict)
    assert len(find_past_xids(tmp_path, ("rig1",), NOW).get("rig1", ())) == count


def test_a_card_that_nobody_knew_has_its_address_alone(tmp_path):
    run(tmp_path, 8, (1, xid(79)), with_facts=False)
    (one,) = find_past_xids(tmp_path, ("rig1",), NOW)["rig1"]
    assert (one.uuid, one.pci_bus_id) == ("", "0000:02:00")


def test_a_damaged_log_is_said_and_takes_no_other_runs_place(tmp_path, caplog):
    run(tmp_path, 7, (1, xid(79)))
    damaged = run(tmp_path, 8, (1, xid(79)))
    (damaged.path / "rig1" / "kernel.jsonl").write_text("nonsense\n{}\n")
    assert len(find_past_xids(tmp_path, ("rig1",), NOW)["rig1"]) == 1
    assert damaged.run_id in caplog.text
