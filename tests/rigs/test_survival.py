"""What happens in the middle of a run: the verdict says it, the other rig is not affected, nothing is left running."""

from __future__ import annotations

import json
import re
import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from rigctl.sim import faults

from .conftest import Accepted, Fleet
from .test_resume import at_work

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.rigs, pytest.mark.slow, pytest.mark.timeout(900, func_only=True)]
RIGS = ("rig1", "rig2")


def well(accepted: Accepted, rig: str) -> bool:
    return accepted.of(rig, "fail", "error", "warn") == {}


def test_a_rig_that_ssh_never_reaches_again_is_lost_at_its_step(fleet: Fleet) -> None:
    faults.apply(fleet.state.directory, "rig2", "ssh_down", {"seconds": "700", "when": "load"})
    accepted = fleet.accept("burn", timeout_s=800)
    assert well(accepted, "rig1")
    assert accepted.exit_code == 3
    reached = accepted.of("rig2", "error")["measure.reached[rig]"]
    # The step is the last one of which word came.
    assert re.search(r"lost at (idle|gpu_burn): no connection for 3\d\d s", reached["reason"])
    faults.clear(fleet.state.directory, "rig2")


def test_a_rigs_disk_that_fills_in_the_burn_stops_it_and_is_named(fleet: Fleet) -> None:
    on(fleet, "rig2", "sudo mkdir -p /var/lib/rigctl && sudo mount -t tmpfs -o size=320k tmpfs /var/lib/rigctl")
    try:
        accepted = fleet.accept("settle")
    finally:
        on(fleet, "rig2", "sudo umount -l /var/lib/rigctl")
    assert well(accepted, "rig1")
    guard = accepted.of("rig2", "fail", "error")["thermals.guard[rig]"]
    assert "it could not write its samples to the rig's disk" in guard["reason"]
    assert at_work(fleet, "rig2") == ""


def test_a_rigs_clock_that_is_set_back_an_hour_is_told_by_its_own_check(fleet: Fleet) -> None:
    faults.apply(fleet.state.directory, "rig2", "clock_drift", {"seconds": "-3600", "when": "load"})
    accepted = fleet.accept("burn")
    assert well(accepted, "rig1")
    assert {one["check"] for one in accepted.of("rig2", "fail", "error").values()} == {"kernel.clock"}


def test_a_full_disk_of_the_controller_stops_the_rigs_and_the_run_is_resumed_with_some_room(fleet: Fleet) -> None:
    with small_disk(fleet.runs / "small") as disk:
        words = ("-i", str(fleet.state.inventory), "--runs", str(disk))
        done = fleet.rigctl("accept", *words, "--profile", "short")
        assert done.returncode == 3, done.stderr
        assert "error: no room left to write" in done.stderr
        assert "was left in the middle" in done.stderr
        assert [at_work(fleet, rig) for rig in RIGS] == ["", ""]
        subprocess.run(["mount", "-o", "remount,size=64m", disk], check=True)
        again = fleet.rigctl("accept", "--resume", "latest", *words, "--json")
        accepted = Accepted(again.returncode, json.loads(again.stdout), disk, again.stderr)
        assert accepted.exit_code == 0, accepted.record


@contextmanager
def small_disk(path: Path) -> Iterator[Path]:
    path.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=160k", "tmpfs", path], check=True)
    try:
        yield path
    finally:
        subprocess.run(["umount", path], check=True)


def on(fleet: Fleet, rig: str, command: str) -> None:
    subprocess.run(["ssh", "-F", fleet.state.ssh_config, rig, command], check=True, timeout=60, capture_output=True)
