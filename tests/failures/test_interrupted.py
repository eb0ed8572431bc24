"""Interrupted at any of its tasks and run again, provisioning ends as one that was left alone."""

from __future__ import annotations

import re
import signal
import subprocess
import time
from typing import TYPE_CHECKING

import pytest

from rigctl import sim

from .box import Box

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.rigs, pytest.mark.slow, pytest.mark.timeout(2400)]
TAGS = "base,nvidia_driver,cuda,gpu_burn,cpu_burn"
ALWAYS = (
    "Install the driver in one transaction",
    "Restart the rig",
    "Install the toolkits, and neither a driver nor a newer toolkit with them",
    "Compile it for the rig's cards",
)
LATER_S = (0.0, 0.2, 0.6)
"""So long after a task began it is interrupted, in turn: at its begin, in its middle, or already in the next one."""
SAMPLE = 18
"""At so many tasks, spread evenly over a run, it is interrupted."""
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


def tasks_of(log: str) -> list[str]:
    """The tasks of a run that did something, in their order."""
    ran: dict[str, None] = {}
    task = ""
    for line in log.splitlines():
        named = re.match(r"(?:TASK|RUNNING HANDLER) \[(.*)\] \*+", line)
        task = named.group(1) if named else task
        if task and line.startswith(("ok: [", "changed: [")):
            ran[task] = None
    return list(ran)


def sample(log: str) -> list[str]:
    """Tasks of a run, those that change most among them."""
    ran = tasks_of(log)
    spread = {ran[place * len(ran) // SAMPLE] for place in range(SAMPLE)}
    return [task for task in ran if task in spread or task.endswith(ALWAYS)]


def interrupt(box: Box, task: str, later_s: float, *, again: bool = True) -> bool:
    """Start a provisioning and interrupt it when the task has begun; False where it ended before."""
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
        if any(log.is_file() and f"[{task}]" in log.read_text(encoding="utf-8") for log in logs):
            time.sleep(later_s)
            process.send_signal(signal.SIGINT)
            code = process.wait(timeout=120)
            # It may have been at its end: Python dies of a signal that comes while it ends, which a shell shows as 130.
            assert code in {0, 130, -signal.SIGINT}
            if code == -signal.SIGINT:
                journals = [run / "journal.jsonl" for run in box.runs.glob("*") if run not in known]
                assert any('"provision_finished"' in path.read_text(encoding="utf-8") for path in journals)
            return code == 130
        time.sleep(0.05)
    if process.returncode and again:
        # The run before was interrupted in the rig's restart: this one met it while it was down.
        wait_until_up(box)
        return interrupt(box, task, later_s, again=False)
    assert process.returncode == 0
    return False


def wait_until_up(box: Box, timeout_s: float = 60) -> None:
    """Wait until the rig answers and has finished its start."""
    end = time.monotonic() + timeout_s
    while box.ssh("systemctl is-system-running") not in {"running", "degraded"}:
        assert time.monotonic() < end
        time.sleep(0.5)


def test_an_interrupted_provisioning_ends_as_an_uninterrupted_one_when_run_again(boxes: tuple[Box, Box]) -> None:
    left_alone, interrupted = boxes
    whole = left_alone.provision(tags=TAGS)
    assert (whole.code, whole.said) == (0, "")
    tasks = sample(whole.log)
    stopped = [task for place, task in enumerate(tasks) if interrupt(interrupted, task, LATER_S[place % len(LATER_S)])]
    # What was finished before it was interrupted is not done again, so not every task comes a second time: the quicker
    # a run is, the more of it is finished.
    assert len(stopped) >= SAMPLE // 2, sorted(set(tasks) - set(stopped))
    again = interrupted.provision(tags=TAGS)
    assert (again.code, again.said) == (0, "")
    assert interrupted.is_consistent()
    assert interrupted.ssh(STATE).splitlines() == left_alone.ssh(STATE).splitlines()
    assert interrupted.provision(tags=TAGS).rig["changed"] == 0
