"""A real Slurm on simulated rigs: by itself its controller and one node on the first, two nodes on the second.

The packages are those of the rigs' own release, from the addresses that this machine's apt uses; they are fetched here
and installed there, as the rigs reach nothing outside. Nothing is left on this machine.
"""

from __future__ import annotations

import secrets
import subprocess
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rigctl.inventory import load_fleet
from rigctl.model.upgrade import SlurmDrain
from rigctl.sim import hostroot, podman
from rigctl.sim.rigs import wait_ready
from rigctl.upgrade.drain import Slurm
from rigctl.upgrade.start import shell_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from rigctl.sim.state import State

HEAD = "rig1"
"""The simulated rig that Slurm's controller runs on."""
RIG_OF = {"rig1": "rig1", "rig2": "rig2", "rig3": "rig2"}
"""Slurm's nodes, and the simulated rig that each one's slurmd runs on."""
_FIRST_PORT = 6818
_SETTINGS = """\
ClusterName=rigs
SlurmctldHost={head}({address})
SlurmUser=slurm
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
ReturnToService=1
MpiDefault=none
SlurmdTimeout=30
StateSaveLocation=/var/lib/slurm/controller
SlurmdSpoolDir=/var/lib/slurm/%n
SlurmdPidFile=/run/slurmd-%n.pid
SlurmdLogFile=/var/log/slurm/%n.log
SlurmctldLogFile=/var/log/slurm/controller.log
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""
_UNIT = """\
[Unit]
After=munge.service network-online.target
[Service]
ExecStart=/usr/sbin/slurmd -D -s -N %i
KillMode=process
[Install]
WantedBy=multi-user.target
"""
_PREPARE = """\
set -eu
chown munge: /etc/munge/munge.key && chmod 400 /etc/munge/munge.key
mkdir -p /var/lib/slurm/controller /var/log/slurm && chown -R slurm: /var/lib/slurm /var/log/slurm
systemctl daemon-reload
systemctl --quiet disable --now slurmd slurmctld 2>/dev/null
systemctl restart munge
"""
_END = "/tmp/end-{}"
_JOB = "while [ ! -e {} ]; do sleep 0.1; done"


@dataclass(frozen=True)
class Cluster:
    """The running Slurm, asked as a person does and as an upgrade does."""

    state: State
    head: str = HEAD
    rig_of: Mapping[str, str] = field(default_factory=lambda: RIG_OF)
    pod: podman.Podman = field(default_factory=podman.find)

    def on(self, rig: str, *words: str) -> str:
        """Run it as root on a rig."""
        return self.pod.execute(self.state.rig(rig).container, *words)

    def drain_of(self, node: str, on: str = "") -> Slurm:
        """The drain of an upgrade: over SSH, on the rig itself."""
        (rig,) = load_fleet(self.state.inventory, on or self.rig_of[node])
        return Slurm(node, shell_of(rig, SlurmDrain(kind="slurm", node=node)))

    def set(self, node: str, *what: str) -> None:
        """As a person does it."""
        self.on(self.head, "scontrol", "update", f"NodeName={node}", *what)

    def seen(self, node: str) -> tuple[str, str]:
        """The node's state and reason, by another of Slurm's programs than the drain asks."""
        state, _, reason = self.seen_all()[node].partition(" ")
        return state, reason

    def seen_all(self) -> dict[str, str]:
        """Node → `state reason`; no reason is `none`."""
        rows = self.on(self.head, "sinfo", "--noheader", "--Node", "--Format=NodeList:16,StateComplete:32,Reason:128")
        words = [row.split(None, 2) for row in rows.splitlines()]
        return {node: f"{state} {reason.strip()}" for node, state, reason in words}

    def submit(self, node: str, does: str = "") -> str:
        """Submit a job that runs until `end` is called, or does this and ends; return its number."""
        end = _END.format(node)
        if not does:
            self.on(self.rig_of[node], "rm", "-f", end)
        words = [
            "sbatch",
            "--parsable",
            "--exclusive",
            "--chdir=/",
            f"--nodelist={node}",
            "--output=/dev/null",
            f"--wrap={does or _JOB.format(end)}",
        ]
        return self.on(self.head, "runuser", "-u", "ops", "--", *words).strip()

    def state_of_job(self, number: str) -> str:
        """Slurm's word for it; empty once Slurm has forgotten it."""
        return self.on(self.head, "squeue", "--noheader", "--states=all", f"--jobs={number}", "--format=%T").strip()

    def end(self, node: str) -> None:
        """Let the jobs of a node end."""
        self.on(self.rig_of[node], "touch", _END.format(node))

    def controller(self, verb: str) -> None:
        """`stop` or `start` slurmctld; once started, it has heard of every node again."""
        self.on(self.head, "systemctl", verb, "slurmctld")
        if verb == "start":
            wait_for(lambda: "UP" in self.on(self.head, "scontrol", "ping"))
            wait_for(lambda: not any("unknown" in seen for seen in self.seen_all().values()))

    def restart(self, rig: str) -> None:
        """Restart a rig, as an upgrade does."""
        before = self.on(rig, "cat", "/proc/sys/kernel/random/boot_id")
        self.on(rig, "systemctl", "--no-block", "reboot")
        wait_for(lambda: _boot_of(self, rig) not in ("", before))
        wait_ready(self.state, self.state.rig(rig))

    def tidy(self) -> None:
        """End every job and bring every node back."""
        self.controller("start")
        for node in self.rig_of:
            self.end(node)
            state, _ = self.seen(node)
            if state != "idle":
                self.on(self.head, "scancel", f"--nodelist={node}")
                self.on(self.head, "sh", "-c", f"scontrol update NodeName={node} State=RESUME || true")
        wait_for(lambda: set(self.seen_all().values()) == {"idle none"})


def wait_for(met: Callable[[], object], limit_s: float = 90) -> None:
    """Wait until something is so."""
    deadline = time.monotonic() + limit_s
    while not met():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.2)


def install(state: State, folder: Path, head: str = HEAD, rig_of: Mapping[str, str] = RIG_OF) -> Cluster:
    """Install Slurm on the rigs of `state` and start it; `folder` takes what is fetched."""
    cluster = Cluster(state, head, rig_of)
    for name in ("lists/partial", "archives/partial"):
        (folder / name).mkdir(parents=True)
    (folder / "status").write_text(cluster.on(head, "cat", "/var/lib/dpkg/status"), encoding="utf-8")
    _fetch(folder, hostroot.host_release().rig_codename(state.platform))
    addresses = {rig.name: cluster.on(rig.name, "hostname", "-I").split()[0] for rig in state.rigs}
    (folder / "slurm.conf").write_text(_slurm_conf(cluster, addresses), encoding="utf-8")
    (folder / "slurmd@.service").write_text(_UNIT, encoding="utf-8")
    (folder / "munge.key").write_bytes(secrets.token_bytes(128))
    for rig in state.rigs:
        _install_on(cluster, rig.name, folder)
    cluster.on(head, "systemctl", "--quiet", "enable", "--now", "slurmctld")
    for node, rig in rig_of.items():
        cluster.on(rig, "systemctl", "--quiet", "enable", "--now", f"slurmd@{node}")
    wait_for(lambda: set(cluster.seen_all().values()) == {"idle none"})
    return cluster


def _fetch(folder: Path, codename: str) -> None:
    sources = hostroot.sources(hostroot.host_release(), codename)
    (folder / "sources.list").write_text(sources, encoding="utf-8")
    places = {"Dir::Etc::sourcelist": "sources.list", "Dir::State::lists": "lists", "Dir::State::status": "status"}
    options = [f"--option={key}={folder / name}" for key, name in places.items()]
    options += [f"--option=Dir::Cache={folder}", "--option=Dir::Etc::sourceparts=-", "--option=APT::Sandbox::User=root"]
    wanted = ("--yes", "--download-only", "--no-install-recommends", "slurm-wlm", "munge")
    for words in (("update",), ("install", *wanted)):
        done = subprocess.run(
            ["apt-get", "-qq", *options, *words], capture_output=True, text=True, check=False, timeout=300
        )
        assert done.returncode == 0, done.stderr


def _slurm_conf(cluster: Cluster, addresses: dict[str, str]) -> str:
    nodes = [
        f"NodeName={node} NodeAddr={addresses[rig]} Port={_FIRST_PORT + place} CPUs=2 RealMemory=256\n"
        for place, (node, rig) in enumerate(cluster.rig_of.items())
    ]
    return _SETTINGS.format(head=cluster.head, address=addresses[cluster.head]) + "".join(nodes)


def _install_on(cluster: Cluster, rig: str, folder: Path) -> None:
    container = cluster.state.rig(rig).container
    cluster.pod.call("cp", f"{folder / 'archives'}/.", f"{container}:/var/cache/slurm")
    cluster.on(rig, "sh", "-c", "DEBIAN_FRONTEND=noninteractive dpkg --install /var/cache/slurm/*.deb 2>&1")
    places = {"slurm.conf": "/etc/slurm/", "munge.key": "/etc/munge/", "slurmd@.service": "/etc/systemd/system/"}
    for name, place in places.items():
        cluster.pod.call("cp", str(folder / name), f"{container}:{place}{name}")
    cluster.on(rig, "sh", "-c", _PREPARE)


def _boot_of(cluster: Cluster, rig: str) -> str:
    try:
        return cluster.on(rig, "cat", "/proc/sys/kernel/random/boot_id")
    except podman.PodmanFailed:  # it is between two starts
        return ""
