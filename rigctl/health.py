"""Put the agent on rigs as Slurm's HealthCheckProgram, with what each rig was found to have; take it away again."""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from rigctl import __version__
from rigctl.checks import software, topology
from rigctl.errors import CommandFailed
from rigctl.fleet.bundle import build_bundle
from rigctl.fleet.delivery import RemoteAgent
from rigctl.fleet.ssh import RigConnection
from rigctl.model.reading import Facts, Readings
from rigctl.model.upgrade import SlurmDrain
from rigctl.model.verdict import Verdict
from rigctl.parse import xid

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rigctl.fleet.commands import Commands
    from rigctl.model.reading import GpuFacts
    from rigctl.model.rig import Rig
    from rigctl.model.spec import RigSpec
    from rigctl.model.upgrade import DrainSpec

PROGRAM = "/usr/local/sbin/rigctl-health"
"""What slurm.conf names; the agent's file answers to this name (rigctl/agent/main.py)."""
EXPECTED = "/etc/rigctl/health.json"
VERSION = 1
_SHEBANG = b"#!/usr/bin/python3 -I\n"
"""A zip file may have something before it; -I as for every call of the agent."""
_FACTS_S, _TRY_S, _SHORT_S = 60, 60, 30
_MUST_PASS = (software.driver_version, topology.gpu_count, topology.gpu_model, topology.gpu_memory)


@dataclass(frozen=True)
class Installed:
    """What a rig will be held to from now on."""

    rig: str
    node: str
    cards: tuple[str, ...]


def install(rig: Rig, drain: DrainSpec) -> Installed:
    """Install the program on a rig and try it once, without draining.

    Args:
        rig: The rig.
        drain: Its `rig_drain`, which may name its node in Slurm.

    Raises:
        CommandFailed: the rig is not as its spec says, or the program does not say that it is well.
        RigError: it cannot be reached.
    """
    with _connected(rig) as conn:
        return _install(rig, drain, conn)


def _install(rig: Rig, drain: DrainSpec, conn: Commands) -> Installed:
    agent = RemoteAgent(conn)
    agent.deliver()
    reply = agent.call("facts", timeout_s=_FACTS_S)
    try:
        facts = Facts.model_validate(reply)
    except ValidationError as error:
        raise CommandFailed(f"the agent's facts have an unexpected form: {error.errors()[0]}") from error
    node = drain.node if isinstance(drain, SlurmDrain) else None
    expected = expected_of(rig.name, rig.spec, facts, node)
    made = conn.run(["install", "-d", "-m", "0755", EXPECTED.rpartition("/")[0]], timeout_s=_SHORT_S, root=True)
    if made.exit_status:
        raise CommandFailed(f"{rig.name}: cannot write into /etc", "is its root file system read-only?")
    conn.put((json.dumps(expected, indent=1) + "\n").encode(), EXPECTED, 0o644, root=True)
    conn.put(_SHEBANG + build_bundle().data, PROGRAM, 0o755, root=True)
    tried = conn.run([PROGRAM, "--no-drain"], timeout_s=_TRY_S, root=True)
    if tried.exit_status:
        said = (tried.stdout + tried.stderr).decode(errors="replace").strip() or f"exit status {tried.exit_status}"
        raise CommandFailed(
            f"{rig.name}: {said.splitlines()[0]}", f"mend that; then look with `sudo {PROGRAM} --no-drain` there"
        )
    return Installed(rig.name, node or facts.hostname.partition(".")[0], tuple(gpu.subject for gpu in facts.gpus))


def expected_of(name: str, spec: RigSpec, facts: Facts, node: str | None) -> dict[str, Any]:
    """What the program compares the rig with.

    Raises:
        CommandFailed: the rig is not as its spec says now; a broken rig must not become the measure of itself.
    """
    readings = Readings(rig=name, facts=facts)
    bad = [
        verdict
        for check in _MUST_PASS
        for verdict in check(spec, readings)
        if verdict.verdict in (Verdict.FAIL, Verdict.ERROR)
    ]
    if bad:
        raise CommandFailed(f"{name} is not as its spec says: {bad[0].reason}", bad[0].fix or f"rigctl check {name}")
    cards = [
        {"uuid": gpu.uuid, "subject": gpu.subject, "pci_bus_id": gpu.pci_bus_id, "links": _links(spec, gpu)}
        for gpu in facts.gpus
    ]
    return {
        "version": VERSION,
        "rig": name,
        "node": node,
        "cards": cards,
        "failing_xids": list(xid.failing()),
        "highest_known_xid": xid.highest_known(),
        "written_by": f"rigctl {__version__}",
        "written_at": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _links(spec: RigSpec, gpu: GpuFacts) -> int:
    """NVLinks that the spec declares for a card, to cards and to switches."""
    pairs = sum(link.links for link in spec.parts.links if link.kind == "nvlink" and gpu.slot in link.slots)
    return pairs or spec.parts.nvswitch_links or 0


def remove(rig: Rig) -> bool:
    """Take the program away; returns whether there was any.

    Raises:
        RigError: the rig cannot be reached, or the files cannot be removed.
    """
    with _connected(rig) as conn:
        was = conn.run(["test", "-e", PROGRAM], timeout_s=_SHORT_S, root=True).exit_status == 0
        gone = conn.run(["rm", "-f", PROGRAM, EXPECTED], timeout_s=_SHORT_S, root=True)
        if gone.exit_status:
            raise CommandFailed(f"{rig.name}: {gone.stderr.decode(errors='replace').strip()}", "remove it by hand")
        return was


@contextmanager
def _connected(rig: Rig) -> Iterator[Commands]:
    conn = RigConnection(rig.login, rig.name)
    try:
        conn.connect()
        yield conn
    finally:
        conn.close()
