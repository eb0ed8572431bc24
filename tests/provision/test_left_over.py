"""Processes of a run that was ended are ended too, and no others."""

import os
import select
import signal
import subprocess
import sys

import pytest

from rigctl.provision.left_over import MARK, end_left_over


def test_only_the_run_s_own_processes_are_ended():
    """Each has a session of its own, as Ansible's workers have."""
    own, other = (
        subprocess.Popen(["sleep", "60"], env=os.environ | {MARK: run}, start_new_session=True)
        for run in ("2026-11-30T1200Z-aaaa", "2026-11-30T1200Z-aaaa2")
    )
    try:
        assert end_left_over("2026-11-30T1200Z-aaaa") == [own.pid]
        assert own.wait(timeout=10) == -signal.SIGKILL
        assert other.poll() is None
        assert end_left_over("2026-11-30T1200Z-none") == []
    finally:
        other.kill()
        other.wait()


CONTROLLER = """
import os, subprocess, sys, time
from rigctl.provision.left_over import MARK, watched

run, how = sys.argv[1:]
with watched(run):
    own = os.environ | {MARK: run}
    print(subprocess.Popen(["sleep", "60"], env=own, start_new_session=True).pid, flush=True)
    if how == "killed":
        time.sleep(60)
"""


@pytest.mark.parametrize("how", ["killed", "well"])
def test_a_controller_that_is_killed_outright_leaves_no_ansible(how):
    """With a real one, killed with -9; one that ends by itself is left to end what it began."""
    # A name of its own: the watcher of a run that was killed looks for its processes for a while.
    run = f"2026-11-30T1200Z-{os.getpid() % 65536:04x}-{how}"
    controller = subprocess.Popen([sys.executable, "-c", CONTROLLER, run, how], stdout=subprocess.PIPE)
    ansible = int(controller.stdout.readline())
    with controller.stdout:
        handle = os.pidfd_open(ansible)
        try:
            if how == "killed":
                controller.kill()
            assert controller.wait(timeout=20) == (-signal.SIGKILL if how == "killed" else 0)
            gone = ended_within(handle, 20 if how == "killed" else 0)
            assert gone is (how == "killed")
        finally:
            end_left_over(run)
            os.close(handle)


def ended_within(handle, seconds):
    """Whether the process behind a pidfd has ended, or does so in this time."""
    return bool(select.select([handle], [], [], seconds)[0])
