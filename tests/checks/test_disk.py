"""Disks: what they say of themselves, room, size and speed, each limit from both sides."""

from __future__ import annotations

import json

import pytest

from rigctl.checks import disk
from rigctl.model.baseline import Figure
from rigctl.model.reading import FilesystemFacts
from rigctl.model.verdict import Verdict

from . import healthy as h
from .test_healthy import all_verdicts

FULL = {"place": "/", "size_gb": 1967.5, "free_gb": 812.4, "free_inode_share": 0.97}


def rig(**changes):
    return h.readings(facts=h.facts(**changes))


def health(*, accepted=None, **log):
    readings = rig(disks=(h.nvme(smart_log=h.smart_log(**log)),))
    baseline = None if accepted is None else h.baseline(disks=(h.nvme(smart_log=h.smart_log(**accepted)),))
    (found,) = disk.health(h.spec(), readings, baseline)
    return found


def space(**changes):
    (found,) = disk.space(h.spec(), rig(filesystems=(FilesystemFacts(**FULL | changes),)))
    return found


def speed(text, *, baseline=None, **limits):
    spec = h.spec(limits=limits)
    return disk.speed(spec, h.readings(logs=h.with_logs(disk__json=text)), baseline)


def test_a_healthy_disk_says_how_it_is():
    found = health()
    assert (found.verdict, found.subject, found.found) == (Verdict.PASS, "nvme0n1", 3)
    assert found.reason == "3 % of its endurance used, 100 % of its spare blocks left, no media error, 38 °C"
    assert "°C" not in health(temperature=0).reason, "a sensor that says 0 K is not there"


@pytest.mark.parametrize(
    ("log", "verdict", "reason"),
    [
        ({"percent_used": 100}, Verdict.PASS, "100 % of its endurance"),
        ({"percent_used": 101}, Verdict.FAIL, "101 % of its endurance is used, 100 % is the limit"),
        ({"avail_spare": 10}, Verdict.PASS, "10 % of its spare"),
        ({"avail_spare": 9}, Verdict.FAIL, "its own threshold is 10 %"),
        ({"media_errors": 1}, Verdict.FAIL, "it lost data 1 times"),
        ({"critical_warning": 0x01}, Verdict.FAIL, "critical warning: spare below threshold"),
        ({"critical_warning": 0x08}, Verdict.FAIL, "read only"),
        ({"temperature": 273 + 149}, Verdict.PASS, "149 °C"),
        ({"temperature": 273 + 150}, Verdict.ERROR, "it says that it is at 150 °C"),
        ({"temperature": 273 - 39}, Verdict.PASS, "-39 °C"),
        ({"temperature": 273 - 40}, Verdict.ERROR, "it says that it is at -40 °C"),
    ],
)
def test_health_from_both_sides(log, verdict, reason):
    found = health(**log)
    assert (found.verdict, reason in found.reason) == (verdict, True), found
    assert bool(found.fix) is (verdict is not Verdict.PASS)


def test_a_hot_disk_needs_air_and_no_replacement():
    assert "air" in health(critical_warning=0x02).fix
    assert "replace" in health(critical_warning=0x03).fix


@pytest.mark.parametrize(
    ("before", "now", "verdict"),
    [
        ({"media_errors": 44}, {"media_errors": 44}, Verdict.PASS),
        ({"media_errors": 44}, {"media_errors": 45}, Verdict.FAIL),
        ({"media_errors": 44}, {"media_errors": 43}, Verdict.ERROR),
        ({"power_on_hours": 2011}, {"power_on_hours": 2010}, Verdict.ERROR),
        ({"power_on_hours": 2011}, {"power_on_hours": 2011}, Verdict.PASS),
    ],
)
def test_a_disk_is_compared_with_what_it_said_when_it_was_accepted(before, now, verdict):
    found = health(accepted=before, **now)
    assert found.verdict is verdict
    if verdict is Verdict.FAIL:
        assert "45 times (media errors), 1 since the accepted run" in found.reason


def test_another_disk_of_then_says_nothing_of_this_one():
    other = h.nvme(serial="S2", smart_log=h.smart_log(power_on_hours=90_000))
    spoilt = h.nvme(smart_log="{}")
    for was in (other, spoilt, h.nvme(smart_log=None)):
        (found,) = disk.health(h.spec(), h.readings(), h.baseline(disks=(was,)))
        assert found.verdict is Verdict.PASS


def test_media_errors_that_the_spec_allows():
    readings = rig(disks=(h.nvme(smart_log=h.smart_log(media_errors=3)),))
    for most, verdict in ((3, Verdict.PASS), (2, Verdict.FAIL)):
        (found,) = disk.health(h.spec(limits={"max_disk_media_errors": most}), readings, None)
        assert found.verdict is verdict


@pytest.mark.parametrize(
    ("changes", "verdict", "word"),
    [
        ({"state": "dead"}, Verdict.FAIL, "'dead'"),
        ({"state": None}, Verdict.PASS, "endurance"),
        ({"name": "sda", "state": None, "smart_log": None}, Verdict.BLIND, "no NVMe disk"),
        ({"smart_log": None}, Verdict.ERROR, "not asked"),
        ({"smart_log": None, "smart_error": "nvme is not installed"}, Verdict.ERROR, "nvme is not installed"),
        ({"smart_log": "{"}, Verdict.ERROR, "smart-log"),
    ],
)
def test_a_disk_that_says_nothing(changes, verdict, word):
    (found,) = disk.health(h.spec(), rig(disks=(h.nvme(**changes),)), None)
    assert (found.verdict, word in found.reason) == (verdict, True), found


def test_no_disk_at_all():
    assert [v.verdict for v in disk.health(h.spec(), rig(disks=()), None)] == [Verdict.BLIND]
    assert [v.verdict for v in disk.health(h.spec(), rig(disks=None), None)] == [Verdict.ERROR]
    assert [v.verdict for v in disk.size(h.spec(), rig(disks=()))] == [Verdict.FAIL]
    assert [v.verdict for v in disk.size(h.spec(), rig(disks=None))] == [Verdict.ERROR]
    assert [v.verdict for v in disk.size(h.spec(parts={"min_disk_gb": None}), rig(disks=None))] == [Verdict.SKIP]


@pytest.mark.parametrize(
    ("size_gb", "verdict"),
    [
        (2000.0, Verdict.PASS),
        (1999.9, Verdict.FAIL),
        (0.1, Verdict.FAIL),
        (0, Verdict.ERROR),
        (-1, Verdict.ERROR),
        (1_000_000, Verdict.PASS),
        (1_000_001, Verdict.ERROR),
    ],
)
def test_size_from_both_sides(size_gb, verdict):
    (found,) = disk.size(h.spec(), rig(disks=(h.nvme(size_gb=size_gb),)))
    assert found.verdict is verdict


def test_the_largest_disk_counts():
    (found,) = disk.size(h.spec(), rig(disks=(h.nvme(name="nvme1n1", size_gb=250), h.nvme())))
    assert found.found == 2000.4


@pytest.mark.parametrize(
    ("changes", "verdict", "reason"),
    [
        ({"free_gb": 5.0}, Verdict.PASS, "5.0 GB of 1,967.5 GB are free"),
        ({"free_gb": 4.99}, Verdict.FAIL, "4.99 GB of 1967.5 GB are free, at least 5 GB"),
        ({"free_gb": 0.0}, Verdict.FAIL, "0.00 GB"),
        ({"free_gb": -0.1}, Verdict.ERROR, "-0.1 GB free"),
        ({"free_gb": 1967.5}, Verdict.PASS, "free"),
        ({"free_gb": 1967.6}, Verdict.ERROR, "1967.6 GB free of 1967.5 GB"),
        ({"free_gb": None}, Verdict.ERROR, "no figure"),
        ({"free_gb": None, "error": "Input/output error"}, Verdict.ERROR, "Input/output error"),
        ({"free_inode_share": None}, Verdict.PASS, "free"),
        ({"free_inode_share": 0.01}, Verdict.PASS, "free"),
        ({"free_inode_share": 0.0099}, Verdict.FAIL, "1.0% of its inodes are free"),
        ({"free_inode_share": 0.0}, Verdict.FAIL, "inodes"),
        ({"free_inode_share": -0.1}, Verdict.ERROR, "-10% of its inodes"),
        ({"free_inode_share": 1.0}, Verdict.PASS, "free"),
        ({"free_inode_share": 1.1}, Verdict.ERROR, "110% of its inodes"),
    ],
)
def test_space_from_both_sides(changes, verdict, reason):
    found = space(**changes)
    assert (found.verdict, reason in found.reason) == (verdict, True), found
    assert found.subject == "/"


def test_speed_from_both_sides():
    for write, read, verdicts in (
        (500.0, 1000.0, [Verdict.PASS, Verdict.PASS]),
        (499.9, 1000.0, [Verdict.FAIL, Verdict.PASS]),
        (500.0, 999.9, [Verdict.PASS, Verdict.FAIL]),
        (100_000.0, 100_000.0, [Verdict.PASS, Verdict.PASS]),
        (100_001.0, 1000.0, [Verdict.ERROR, Verdict.PASS]),
    ):
        found = speed(h.fio(write, read))
        assert [v.verdict for v in found] == verdicts, found
        assert [v.subject for v in found] == ["write", "read"]


NO_LIMITS = {"min_disk_read_mb_per_s": None, "min_disk_write_mb_per_s": None}


def test_without_a_limit_half_of_the_accepted_run_is_one():
    figures = tuple(Figure(check="disk.speed", subject=way, found=2000.0) for way in disk.WAYS)
    baseline = h.baseline().model_copy(update={"figures": figures})
    found = speed(h.fio(1000.0, 999.0), baseline=baseline, **NO_LIMITS)
    assert [v.verdict for v in found] == [Verdict.PASS, Verdict.FAIL]
    assert "50% of 2,000 MB/s in the rig's accepted run" in found[1].source
    asked = speed(h.fio(501.0, 1001.0), baseline=baseline)
    assert {v.verdict for v in asked} == {Verdict.PASS}, "the spec's own limit counts before that"
    assert {v.verdict for v in speed(h.fio(), **NO_LIMITS)} == {Verdict.WARN}


def test_an_error_of_the_system_that_fio_met_is_the_disks():
    found = speed(h.fio(error=5))
    assert [v.verdict for v in found] == [Verdict.FAIL, Verdict.PASS]
    assert "errno 5" in found[0].reason


def without(job):
    told = json.loads(h.fio())
    report = json.loads(told["report"])
    report["jobs"] = [one for one in report["jobs"] if one["jobname"] != job]
    return json.dumps(told | {"report": json.dumps(report)})


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ('{"error": "fio is not installed", "hint": "rigctl provision RIG"}', "fio is not installed"),
        ("{}", "holds no report"),
        ('{"report": "fio: command line wrong"}', "fio's report"),
        ('{"report": 7}', "cannot be read"),
        ("[]", "cannot be read"),
        ("", "cannot be read"),
        (h.fio(bytes=-1), "cannot be read"),
    ],
)
def test_a_result_that_says_nothing(text, word):
    (found,) = speed(text)
    assert (found.verdict, word in found.reason) == (Verdict.ERROR, True), found
    assert "RIG" not in found.fix


def test_a_way_that_was_not_measured():
    assert [v.verdict for v in speed(without("read"))] == [Verdict.PASS, Verdict.ERROR]


def test_a_full_disk_is_the_cause_of_what_did_not_begin():
    full = h.facts(filesystems=(FilesystemFacts(**FULL | {"free_gb": 0.0}),))
    verdicts = all_verdicts(readings=h.readings(facts=full, logs=h.without_logs("disk.json", "cpu_burn.yaml")))
    follows = {v.check: v.caused_by for v in verdicts if v.verdict is Verdict.ERROR}
    assert follows == dict.fromkeys(("disk.speed", "throughput.cpu_burn"), "disk.space[/]")


def test_a_worn_disk_is_the_cause_of_its_slowness():
    worn = h.facts(disks=(h.nvme(smart_log=h.smart_log(critical_warning=4)),))
    verdicts = all_verdicts(readings=h.readings(facts=worn, logs=h.with_logs(disk__json=h.fio(100.0, 150.0))))
    assert {v.key: v.caused_by for v in verdicts if v.verdict is Verdict.FAIL} == {
        "disk.health[nvme0n1]": None,
        "disk.speed[write]": "disk.health[nvme0n1]",
        "disk.speed[read]": "disk.health[nvme0n1]",
    }
