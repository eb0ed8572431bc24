"""Processes of a run that was ended are ended too, and no others."""

import os
import signal
import subprocess

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
