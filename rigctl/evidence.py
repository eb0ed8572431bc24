"""What a repair needs, in one archive: identity, logs and readings of one rig, as they are, with how each was got."""

from __future__ import annotations

import hashlib
import io
import json
import logging
import tarfile
import time
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from rigctl import __version__
from rigctl.errors import CommandFailed, RigctlError, SudoRefused, UsageError
from rigctl.fleet.delivery import RemoteAgent
from rigctl.fleet.ssh import RigConnection
from rigctl.store import RunDir
from rigctl.store.ids import list_runs

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from rigctl.fleet.commands import Commands
    from rigctl.model.rig import Rig

SHORT_S, LONG_S, BUG_REPORT_S = 30, 120, 600
"""What a short question, a long one and NVIDIA's own report are given, seconds: a dead card makes tools hang."""
MAX_BYTES = 64 * 1024 * 1024
LAST_RUNS = 3
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Question:
    """One file of the archive and the command on the rig that fills it."""

    file: str
    command: str
    limit_s: float = SHORT_S


QUESTIONS = (
    Question("nvidia-smi.txt", "nvidia-smi"),
    Question("nvidia-smi-q.xml", "nvidia-smi -q -x"),
    Question("nvidia-smi-topo.txt", "nvidia-smi topo -m"),
    Question("nvlink-status.txt", "nvidia-smi nvlink -s"),
    Question("nvlink-errors.txt", "nvidia-smi nvlink -e"),
    Question("kernel-this-boot.txt", "journalctl -k -b 0 -o short-iso-precise --no-pager", LONG_S),
    Question("kernel-last-boot.txt", "journalctl -k -b -1 -o short-iso-precise --no-pager", LONG_S),
    Question("boots.txt", "journalctl --list-boots --no-pager; last -x -n 50"),
    Question("units-failed.txt", "systemctl --failed --no-pager; systemctl status --no-pager 'rigctl-*' | head -200"),
    Question("persistenced.txt", "journalctl -b 0 -u nvidia-persistenced --no-pager -n 500"),
    Question("lspci.txt", "lspci -nnvvv"),
    Question("lspci-tree.txt", "lspci -tv"),
    Question("dmidecode.txt", "dmidecode -t bios -t system -t baseboard -t processor -t memory -t slot"),
    Question("sensors.txt", "sensors"),
    Question("ipmi-events.txt", "ipmitool sel elist"),
    Question("ipmi-sensors.txt", "ipmitool sdr elist"),
    Question("disks.txt", "lsblk -o NAME,MODEL,SERIAL,SIZE,TYPE,MOUNTPOINTS; df -h; nvme list"),
    Question("driver.txt", "cat /proc/driver/nvidia/version /proc/cmdline; uname -a; dkms status; lsmod"),
    Question(
        "packages.txt", "dpkg-query -W -f '${Package} ${Version} ${db:Status-Status}\\n' '*nvidia*' '*cuda*' 'linux-*'"
    ),
    Question("uptime.txt", "uptime; free -m; who"),
)
BUG_REPORT = Question(
    "nvidia-bug-report.log.gz",
    "cd $(mktemp -d) && nvidia-bug-report.sh >/dev/null && cat nvidia-bug-report.log.gz",
    BUG_REPORT_S,
)
"""NVIDIA's own, which its support asks for; it takes minutes and may hang on a dead card."""


@dataclass(frozen=True)
class Piece:
    """One file of the archive and how it was got."""

    file: str
    source: str
    """The command on the rig, or the file of a run."""
    exit_status: int | None = None
    seconds: float | None = None
    bytes: int = 0
    sha256: str = ""
    problem: str | None = None
    """Why it is empty or cut; None when it is whole."""


@dataclass
class Evidence:
    """The archive while it is filled."""

    rig: str
    pieces: list[Piece] = field(default_factory=list)
    contents: dict[str, bytes] = field(default_factory=dict)
    unreached: str | None = None
    """Why the rig itself could not be asked; None when it was."""

    def add(self, file: str, data: bytes, source: str, **known: float | str | None) -> None:
        """Take a file in; one that is too long is cut, and says so."""
        cut = data[:MAX_BYTES]
        if len(data) > MAX_BYTES:
            known["problem"] = f"cut after {MAX_BYTES} of {len(data)} bytes"
        digest = hashlib.sha256(cut).hexdigest()
        self.contents[file] = cut
        self.pieces.append(Piece(file, source, bytes=len(cut), sha256=digest, **known))  # type: ignore[arg-type]

    @property
    def problems(self) -> list[Piece]:
        """What is missing or cut."""
        return [piece for piece in self.pieces if piece.problem is not None]

    def manifest(self) -> dict[str, object]:
        """What is in it, and how each piece was got."""
        return {
            "rig": self.rig,
            "collected_at": datetime.now(UTC).isoformat(timespec="seconds"),
            "rigctl_version": __version__,
            "unreached": self.unreached,
            "pieces": [asdict(piece) for piece in self.pieces],
        }


def collect(rig: Rig, runs: Path, say: Callable[[str], None], *, bug_report: bool = False) -> Evidence:
    """Gather everything; a rig that cannot be reached still has its runs. What did not work is said in its piece."""
    evidence = Evidence(rig.name)
    connection = RigConnection(rig.login, rig.name)
    try:
        connection.connect()
        _ask_agent(rig, connection, evidence)
        for question in (*QUESTIONS, *((BUG_REPORT,) if bug_report else ())):
            say(question.command)
            _ask(connection, question, evidence)
    except RigctlError as error:
        evidence.unreached = error.message
        say(error.message)
    finally:
        connection.close()
    evidence.add("inventory/spec.json", rig.spec.model_dump_json(indent=1).encode(), "the inventory's spec of this rig")
    _take_runs(rig.name, runs, evidence)
    return evidence


def _ask_agent(rig: Rig, connection: Commands, evidence: Evidence) -> None:
    software = rig.spec.software
    words = ("probe", "--gpu-burn-dir", software.gpu_burn_dir, "--torch-venv", software.torch_venv)
    began = time.monotonic()
    try:
        agent = RemoteAgent(connection)
        agent.deliver()
        told = agent.call(*words, timeout_s=LONG_S)
    except (CommandFailed, SudoRefused) as error:
        evidence.add("rig/agent.json", b"", "agent probe", problem=error.message)
        return
    data = json.dumps(told, indent=1, ensure_ascii=False).encode()
    evidence.add("rig/agent.json", data, "agent probe", exit_status=0, seconds=round(time.monotonic() - began, 2))


def _ask(connection: Commands, question: Question, evidence: Evidence) -> None:
    reply = connection.run(question.command, timeout_s=question.limit_s, root=True)
    problem = None
    if reply.timed_out:
        problem = f"no answer within {question.limit_s:g} s"
    elif reply.exit_status != 0:
        problem = reply.stderr.decode(errors="replace").strip()[-300:] or f"exit status {reply.exit_status}"
    evidence.add(
        f"rig/{question.file}",
        reply.stdout,
        question.command,
        exit_status=reply.exit_status,
        seconds=round(reply.seconds, 2),
        problem=problem,
    )


def _take_runs(rig: str, runs: Path, evidence: Evidence) -> None:
    """The readings of the last runs of this rig, whole, with the record and the report of each."""
    taken = 0
    for run_id in reversed(list_runs(runs)):
        run = RunDir(runs / run_id)
        try:
            names = {one.name for one in run.read_info().rigs}
        except UsageError as error:
            log.debug("left out", exc_info=True)
            evidence.add(f"runs/{run_id}", b"", str(run.path), problem=error.message)
            continue
        if rig not in names:
            continue
        files = [run.path / name for name in ("run.json", "record.json", "report.html")]
        files += sorted(path for path in (run.path / rig).glob("*") if path.is_file())
        for path in (one for one in files if one.is_file()):
            name = path.relative_to(run.path).as_posix()
            evidence.add(f"runs/{run_id}/{name}", path.read_bytes(), f"run {run_id}: {name}")
        taken += 1
        if taken == LAST_RUNS:
            return


def write(evidence: Evidence, path: Path) -> None:
    """Write the archive, whole or not at all, for its owner only.

    Raises:
        UsageError: it cannot be written.
    """
    packed = io.BytesIO()
    folder = f"evidence-{evidence.rig}"
    manifest = json.dumps(evidence.manifest(), indent=1, ensure_ascii=False).encode()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name, data in {"MANIFEST.json": manifest, **evidence.contents}.items():
            member = tarfile.TarInfo(f"{folder}/{name}")
            member.size, member.mode, member.mtime = len(data), 0o600, int(time.time())
            archive.addfile(member, io.BytesIO(data))
    part = path.with_name(path.name + ".part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part.touch(mode=0o600)
        part.write_bytes(packed.getvalue())
        part.replace(path)
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}", "name another place with --output") from error
