"""What a repair needs: everything that can be had, how it was got, and what is missing and why."""

from __future__ import annotations

import hashlib
import json
import tarfile
from typing import TYPE_CHECKING, Any

import pytest

from rigctl import evidence
from rigctl.errors import CommandFailed, RigUnreachable, UsageError
from rigctl.fleet.commands import Reply
from rigctl.model.run import RunRig
from rigctl.store import RunDir
from tests.measure.test_plan import profile
from tests.measure.test_rig import RIG

if TYPE_CHECKING:
    from pathlib import Path


class Connection:
    """A rig on which one tool hangs, one is missing, and all else answers."""

    name = "rig1"
    unreachable = False

    def __init__(self, *_args: Any) -> None:
        self.asked: list[tuple[str, float]] = []

    def connect(self) -> None:
        if self.unreachable:
            raise RigUnreachable("rig1: no route to host", "is it on?")

    def close(self) -> None:
        return

    def run(self, command: str, *, timeout_s: float, root: bool) -> Reply:
        self.asked.append((command, timeout_s))
        assert root
        if command == "nvidia-smi topo -m":
            return Reply(137, b"", b"", timeout_s + 1, timeout_s)
        if command.startswith("ipmitool"):
            return Reply(127, b"", b"sh: 1: ipmitool: not found\n", 0.1, timeout_s)
        return Reply(0, command.encode(), b"", 0.1, timeout_s)


class Agent:
    def __init__(self, _connection: Connection) -> None:
        return

    def deliver(self) -> None:
        return

    def call(self, *_words: str, timeout_s: float) -> dict[str, Any]:
        return {"facts": {"hostname": "rig1"}, "sample": {}, "timeout_s": timeout_s}


@pytest.fixture
def connection(monkeypatch: pytest.MonkeyPatch) -> type[Connection]:
    made = type("OneConnection", (Connection,), {})
    monkeypatch.setattr(evidence, "RigConnection", made)
    monkeypatch.setattr(evidence, "RemoteAgent", Agent)
    return made


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    root = tmp_path / "runs"
    for count in range(5):
        rigs = [RunRig(name="rig1" if count else "rig2", spec=RIG.spec, profile=profile())]
        run = RunDir.create(root, kind="accept", rigs=rigs)
        run.append_raw(rigs[0].name, "gpu_burn.log", b"10.0%\n")
    return root


def pieces(found: evidence.Evidence) -> dict[str, evidence.Piece]:
    return {piece.file: piece for piece in found.pieces}


def test_everything_that_answers_is_in_and_what_does_not_says_why(connection: type[Connection], runs: Path) -> None:
    found = evidence.collect(RIG, runs, lambda _text: None)
    got = pieces(found)
    assert found.unreached is None
    assert found.contents["rig/nvidia-smi-q.xml"] == b"nvidia-smi -q -x"
    assert json.loads(found.contents["rig/agent.json"])["facts"]["hostname"] == "rig1"
    assert got["rig/nvidia-smi-topo.txt"].problem == "no answer within 30 s"
    assert got["rig/ipmi-events.txt"].problem == "sh: 1: ipmitool: not found"
    assert got["rig/lspci.txt"].sha256 == hashlib.sha256(b"lspci -nnvvv").hexdigest()
    assert {piece.file for piece in found.problems} == {
        "rig/nvidia-smi-topo.txt", "rig/ipmi-events.txt", "rig/ipmi-sensors.txt",
    }  # fmt: skip
    assert "rig/nvidia-bug-report.log.gz" not in got


def test_the_last_three_runs_of_this_rig_are_in(connection: type[Connection], runs: Path) -> None:
    got = pieces(evidence.collect(RIG, runs, lambda _text: None))
    burns = [name for name in got if name.endswith("rig1/gpu_burn.log")]
    assert len(burns) == 3
    assert not [name for name in got if "rig2" in name]


def test_a_rig_that_cannot_be_reached_still_gives_its_runs(connection: type[Connection], runs: Path) -> None:
    connection.unreachable = True
    said: list[str] = []
    found = evidence.collect(RIG, runs, said.append)
    assert found.unreached == "rig1: no route to host"
    assert said == ["rig1: no route to host"]
    assert not [name for name in found.contents if name.startswith("rig/")]
    assert [name for name in found.contents if name.startswith("runs/")]


def test_a_run_that_cannot_be_read_is_named_and_takes_no_other_ones_place(
    connection: type[Connection], runs: Path
) -> None:
    broken = max(runs.iterdir())
    (broken / "run.json").write_text("{")
    found = evidence.collect(RIG, runs, lambda _text: None)
    assert pieces(found)[f"runs/{broken.name}"].problem
    assert len([name for name in found.contents if name.endswith("rig1/gpu_burn.log")]) >= 2


def test_the_report_of_nvidia_is_asked_for_and_bounded(connection: type[Connection], runs: Path) -> None:
    found = evidence.collect(RIG, runs, lambda _text: None, bug_report=True)
    assert b"nvidia-bug-report.sh" in found.contents["rig/nvidia-bug-report.log.gz"]


def test_an_agent_that_cannot_be_delivered_does_not_keep_the_rest_away(
    connection: type[Connection], runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_self: Agent) -> None:
        raise CommandFailed("rig1: cannot write: No space left on device")

    monkeypatch.setattr(Agent, "deliver", full)
    found = evidence.collect(RIG, runs, lambda _text: None)
    assert pieces(found)["rig/agent.json"].problem == "rig1: cannot write: No space left on device"
    assert found.contents["rig/lspci.txt"]


def test_what_is_too_long_is_cut_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evidence, "MAX_BYTES", 4)
    found = evidence.Evidence("rig1")
    found.add("x", b"12345", "cat x")
    assert found.contents["x"] == b"1234"
    assert found.pieces[0].problem == "cut after 4 of 5 bytes"


def test_the_archive_is_its_owners_and_says_how_each_piece_was_got(
    connection: type[Connection], runs: Path, tmp_path: Path
) -> None:
    path = tmp_path / "out" / "rig1.tar.gz"
    found = evidence.collect(RIG, runs, lambda _text: None)
    evidence.write(found, path)
    assert path.stat().st_mode & 0o077 == 0
    with tarfile.open(path) as archive:
        names = archive.getnames()
        manifest = json.load(archive.extractfile("evidence-rig1/MANIFEST.json"))  # type: ignore[arg-type]
    assert {piece["file"] for piece in manifest["pieces"]} == {
        name.removeprefix("evidence-rig1/") for name in names if not name.endswith("MANIFEST.json")
    }
    assert all(piece["source"] for piece in manifest["pieces"])
    with pytest.raises(UsageError, match="cannot be written"):
        evidence.write(found, path / "below-a-file.tar.gz")
