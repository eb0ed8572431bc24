"""What `--check` announces on a fresh rig is all that the real run changes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from .box import Box

pytestmark = [pytest.mark.rigs, pytest.mark.slow, pytest.mark.timeout(900)]
TAGS = "base,nvidia_driver,cuda,gpu_burn,cpu_burn"
SNAPSHOT = """
dpkg-query -W -f '${Package} ${Version} ${db:Status-Abbrev}\\n'; apt-mark showhold
sudo find /etc /opt /usr/local /boot -type f ! -path '/usr/local/lib/rigsim/*' -print0 | sort -z \\
  | sudo xargs -0 sha256sum
"""
ANNOUNCED_BY = {
    "Make the folder for what this role remembers": "Say what would be installed",
    "Remember what this role brings, so that it can be taken away again": "Say what would be installed",
    "Install the driver in one transaction": "Say what would be installed",
    "Build the module for every kernel that may boot": "Say what would be installed",
    "Hold the driver's packages, or let them go": "Say what would be installed",
    "Restart the rig": "Say what would be installed",
    "Set them now": "Set persistence and power limit at every boot",
    "Install what it is built with": "Say what would be built",
    "Clone it at the pinned commit": "Say what would be built",
    "Compile it for the rig's cards": "Say what would be built",
    "Record what it was built for": "Say what would be built",
    "Install the toolkits, and neither a driver nor a newer toolkit with them": "Name the CUDA repository to apt",
    "Let /usr/local/cuda be the toolkit of cuda_version": "Name the CUDA repository to apt",
    # Handlers are commands, which check mode leaves out; what notifies them it does announce.
    "Read the package lists again": "Name the CUDA repository to apt",
    "Build the initial RAM disk again": "Take driver packages from one source only, and keep them from moving by "
    "themselves",
    "Read the linker's paths again": "Put the toolkit on the path of programs and of the linker",
}
"""Tasks that check mode leaves out → the one that speaks for them there."""


def changed_tasks(log: str) -> set[str]:
    """The tasks that changed something, as Ansible's log tells."""
    found, task = set(), ""
    for line in log.splitlines():
        named = re.match(r"(?:TASK|RUNNING HANDLER) \[(?:\w+ : )?(.*)\] \*+", line)
        task = named.group(1) if named else task
        if line.startswith("changed: ["):
            found.add(task)
    return found


def test_the_real_run_changes_nothing_that_check_mode_did_not_announce(box: Box) -> None:
    before = box.ssh(SNAPSHOT)
    asked = box.provision("--check", "--diff", tags=TAGS)
    assert (asked.code, asked.said) == (0, "")
    assert box.ssh(SNAPSHOT) == before
    announced = changed_tasks(asked.log)
    assert announced
    done = box.provision(tags=TAGS)
    assert (done.code, done.said) == (0, "")
    silent = {task for task in changed_tasks(done.log) if ANNOUNCED_BY.get(task, task) not in announced}
    assert silent == set()
    assert box.provision("--check", tags=TAGS).rig["changed"] == 0
