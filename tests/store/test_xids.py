"""The Xid messages of a rig's earlier runs: those that were findings, once each, of the last week."""

from __future__ import annotations

import shutil
from datetime import timedelta

import pytest

from rigctl.model.reading import KernelMessage
from rigctl.model.verdict import CheckVerdict, Verdict
from rigctl.store import RunDir
from rigctl.store.index import FILE
from rigctl.store.xids import find_past_xids, read_past_xids
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


def year(root):
    """Many runs of two rigs: findings of every kind, a copy under another name, one damaged, one without a record."""
    kinds = (Verdict.FAIL, Verdict.WARN, Verdict.WAIVED, Verdict.PASS, Verdict.ERROR)
    for day in range(-30, 9):
        lines = [(minute, xid(number)) for minute, number in enumerate((79, 45, 31), start=1)]
        found = ("79", "45, 79", "31", "")[day % 4]
        run(root, day, *lines, (1 - 24 * 60, xid(79)), found=found, verdict=kinds[day % 5])
    other = run(root, 6, (1, xid(62)), found="62")
    record = other.read_record()
    other.write_record(record.model_copy(update={"rigs": (record.rigs[0].model_copy(update={"name": "rig2"}),)}))
    (other.path / "rig1").rename(other.path / "rig2")
    shutil.copytree(run(root, 5, (9, xid(79))).path, root / "2026-12-06T0000Z-abcd")
    (run(root, 7, (5, xid(79))).path / "record.json").write_text("{")
    (run(root, 7, (6, xid(79))).path / "record.json").unlink()


RIGS = ("rig1", "rig2", "rig3")


def test_the_index_gives_what_reading_every_run_gives(tmp_path):
    year(tmp_path)
    for hours in (0, 13, 24 * 3, 24 * 5 + 7, 24 * 20):
        now = NOON + timedelta(days=8, hours=hours)
        assert find_past_xids(tmp_path, RIGS, now) == read_past_xids(tmp_path, RIGS, now)
    known = find_past_xids(tmp_path, RIGS, NOW)
    assert {name: len(xids) for name, xids in known.items()}.keys() == {"rig1", "rig2"}
    assert len(known["rig1"]) > 5


def test_only_runs_with_a_finding_of_these_rigs_are_opened(tmp_path, monkeypatch):
    year(tmp_path)
    find_past_xids(tmp_path, RIGS, NOW)
    opened = []
    real = RunDir.read_record
    monkeypatch.setattr(RunDir, "read_record", lambda self: opened.append(self.path.name) or real(self))
    find_past_xids(tmp_path, ("rig2",), NOW)
    assert len(opened) == 2, "that of rig2, and the damaged one, which the index tries again each time"
    opened.clear()
    read_past_xids(tmp_path, ("rig2",), NOW)
    assert len(opened) > 8


def test_what_was_judged_again_counts_as_it_is_now(tmp_path):
    made = run(tmp_path, 8, (1, xid(79)))
    assert find_past_xids(tmp_path, ("rig1",), NOW)
    record = made.read_record()
    made.write_record(record.model_copy(update={"rigs": (record.rigs[0].model_copy(update={"verdicts": ()}),)}))
    assert find_past_xids(tmp_path, ("rig1",), NOW) == {}


def test_where_the_index_cannot_be_used_every_run_is_read(tmp_path, caplog):
    year(tmp_path)
    by_reading = read_past_xids(tmp_path, RIGS, NOW)
    (tmp_path / FILE).write_bytes(b"no database" * 500)
    assert find_past_xids(tmp_path, RIGS, NOW) == by_reading
    assert "cannot be used, so every run of the week is read" in caplog.text


def test_no_folder_of_runs_is_made(tmp_path):
    assert find_past_xids(tmp_path / "nowhere", RIGS, NOW) == {}
    assert not (tmp_path / "nowhere").exists()
