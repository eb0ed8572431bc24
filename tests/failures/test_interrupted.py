"""Interrupted at any of several tasks and run again, provisioning ends as one that was left alone."""

from __future__ import annotations

import signal
import subprocess
import time
from typing import TYPE_CHECKING

import pytest

from rigctl import sim

from .box import Box

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.rigs, pytest.mark.slow, pytest.mark.timeout(900)]
TAGS = "base,nvidia_driver,cuda,gpu_burn,cpu_burn"
AT = (
    "Install the packages that the other roles rely on",
    "Install the driver in one transaction",
    "Install the toolkits, and neither a driver nor a newer toolkit with them",
    "Compile it for the rig's cards",
)
"""Tasks that change something, in their order."""
STATE = """
dpkg-query -W -f '${Package} ${Version} ${db:Status-Abbrev}\\n'
apt-mark showhold; apt-mark showauto | sort
cat /sys/module/nvidia/version; systemctl is-enabled nvidia-card-settings.service
nvidia-smi --query-gpu=power.limit,persistence_mode --format=csv
cd /etc && sudo find . -type f ! -path './ssh/ssh_host*' ! -name machine-id ! -name 'ld.so.cache' ! -name '*.dpkg-*' \
  ! -name hostname ! -name hosts ! -name resolv.conf -print0 | sort -z | sudo xargs -0 sha256sum
cd /opt/gpuburn && sha256sum gpu_burn build.json && git rev-parse HEAD
"""


@pytest.fixture(scope="module")
def boxes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Box, Box]]:
    directory = tmp_path_factory.mktemp("failures") / "state"
    found = sim.up(sim.UpOptions(count=2, directory=directory, training=False))
    try:
        yield Box(found, "rig1"), Box(found, "rig2")
    finally:
        sim.down(directory)


def interrupt(box: Box, task: str) -> bool:
    """Start a provisioning and interrupt it as soon as the task begins; False where it ended before."""
    known = set(box.runs.glob("*")) if box.runs.exists() else set()
    # Where these tests run in a shell's background, Ctrl-C is ignored from the start.
    process = subprocess.Popen(
        ["env", "--default-signal=INT", *box.words(tags=TAGS)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        stdin=subprocess.DEVNULL,
    )
    while process.poll() is None:
        logs = [run / "ansible.log" for run in box.runs.glob("*") if run not in known]
        if any(log.is_file() and f": {task}]" in log.read_text(encoding="utf-8") for log in logs):
            time.sleep(0.3)
            process.send_signal(signal.SIGINT)
            assert process.wait(timeout=60) == 130
            return True
        time.sleep(0.05)
    assert process.returncode == 0
    return False


def test_an_interrupted_provisioning_ends_as_an_uninterrupted_one_when_run_again(boxes: tuple[Box, Box]) -> None:
    left_alone, interrupted = boxes
    assert left_alone.provision(tags=TAGS).code == 0
    stopped = [task for task in AT if interrupt(interrupted, task)]
    assert len(stopped) == len(AT)
    again = interrupted.provision(tags=TAGS)
    assert (again.code, again.said) == (0, "")
    assert interrupted.is_consistent()
    assert interrupted.ssh(STATE).splitlines() == left_alone.ssh(STATE).splitlines()
    assert interrupted.provision(tags=TAGS).rig["changed"] == 0
