"""A second provisioning, which changes nothing: `rigctl provision` against plain `ansible-playbook`, on six rigs."""

from __future__ import annotations

import json
import os
import re
import subprocess
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from bench.figure import Figure, figure
from bench.stage import BIN, BenchFailed, Stage, jsonl
from rigctl import assets, sim
from rigctl.sim import podman, snapshot, state

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NAME = "second_run"
RIGS, TIMES = 6, 3
_REMOVE_TIMEOUT_S = 120


def measure(stage: Stage) -> list[Figure]:
    """Return seconds of both, and the share that ours takes."""
    ours, plain = [], []
    with _rigs_as_asked(stage) as inventory:
        _provision(stage, inventory)  # whatever a restart leaves to do: nothing of it belongs to either
        for _ in range(TIMES):
            ours.append(_provision(stage, inventory, unchanged=True))
            plain.append(_playbook(stage, inventory))
    how = (
        f"playbooks/site.yml on {RIGS} simulated rigs that are as asked, all on one machine with {os.cpu_count()} "
        f"processors; alternating, {TIMES} times each; tasks carried by {_carrier(stage)}"
    )
    share = [own / rival for own, rival in zip(ours, plain, strict=True)]
    return [
        figure("share of plain ansible-playbook's time that a second run takes", share, "", how, goal=("≤", 0.5)),
        figure("a second run of `rigctl provision`", ours, "s", how),
        figure("the same playbook by ansible-playbook with its default settings", plain, "s", how),
    ]


@contextmanager
def _rigs_as_asked(stage: Stage) -> Iterator[Path]:
    """Rigs that start from an image of a provisioned one; they are gone afterwards, as is the image."""
    image = snapshot.take(state.require(stage.state), "rig1", str(stage.folder))
    try:
        fleet = sim.up(sim.UpOptions(count=RIGS, directory=stage.folder / "six", image=image))
        try:
            yield fleet.inventory
        finally:
            sim.down(fleet.directory)
    finally:
        podman.find().call("rmi", "--ignore", image, timeout_s=_REMOVE_TIMEOUT_S)


def _provision(stage: Stage, inventory: Path, *, unchanged: bool = False) -> float:
    seconds = stage.rigctl("provision", "-i", str(inventory), "--runs", str(stage.runs))
    outcome = json.loads((stage.newest_run() / "provision.json").read_text(encoding="utf-8"))
    changed = {rig["name"]: rig["changed"] for rig in outcome["rigs"] if rig["changed"]}
    if unchanged and changed:
        raise BenchFailed(f"a second provisioning changed something: {changed}")
    return seconds


def _carrier(stage: Stage) -> str:
    events = {entry["event"]: entry["detail"] for entry in jsonl(stage.newest_run() / "journal.jsonl")}
    return {"mitogen": "Mitogen", "ansible": "Ansible itself"}[events["provision_started"]["carrier"]]


def _playbook(stage: Stage, inventory: Path) -> float:
    # No variable of the environment and no ansible.cfg counts, the repository's and the user's neither.
    settings = stage.folder / "defaults.cfg"
    settings.write_text("[defaults]\n", encoding="utf-8")
    kept = {name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")}
    environment = kept | {"ANSIBLE_CONFIG": str(settings), "ANSIBLE_ROLES_PATH": str(assets.roles_dir())}
    words = [BIN / "ansible-playbook", "-i", inventory, assets.playbooks_dir() / "site.yml"]
    began = time.monotonic()
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    seconds = time.monotonic() - began
    unchanged = len(re.findall(r"changed=0 +unreachable=0 +failed=0", done.stdout))
    if done.returncode or unchanged != RIGS:
        raise BenchFailed(f"ansible-playbook: exit {done.returncode}: {done.stdout[-500:]}")
    return seconds
