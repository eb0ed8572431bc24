"""The agent as Slurm's HealthCheckProgram: what it finds wrong, and whom it drains."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from rigctl.agent import health
from rigctl.fleet.bundle import build_bundle
from rigctl.parse import xid

if TYPE_CHECKING:
    from pathlib import Path

CARDS = [
    {"uuid": f"GPU-{n}", "subject": f"slot{n} (…{n})", "pci_bus_id": f"00000000:0{n}:00.0", "links": 4} for n in (1, 2)
]
EXPECTED = {
    "version": health.VERSION,
    "node": "gpu1",
    "cards": CARDS,
    "failing_xids": list(xid.failing()),
    "highest_known_xid": xid.highest_known(),
}


def seen(**driver: Any) -> dict[str, Any]:
    cards = [
        {
            "uuid": card["uuid"],
            "links": [{"link": n, "active": True} for n in range(4)],
            "ecc": {"on": True, "uncorrected": 0},
            "remapped_rows": {"pending": False, "failed": False},
        }
        for card in CARDS
    ]
    return {"driver": {"loaded": "515.105.01", "library": "515.105.01", "nvml_error": None} | driver, "gpus": cards}


def test_a_rig_as_it_was_accepted_is_well() -> None:
    assert health.findings(EXPECTED, seen(), ["NVRM: loading NVIDIA UNIX x86_64 Kernel Module  515.105.01"]) == []


def test_a_driver_that_does_not_answer_is_the_only_thing_that_can_be_said() -> None:
    dead = seen(nvml_error="no answer within 40 s") | {"gpus": []}
    assert health.findings(EXPECTED, dead, []) == ["the driver does not answer: no answer within 40 s"]


def test_a_library_of_another_version_and_a_card_that_is_gone() -> None:
    now = seen(library="515.105.01-1")
    del now["gpus"][1]
    assert health.findings(EXPECTED, now, []) == [
        "driver 515.105.01 is loaded, its library is 515.105.01-1: reboot",
        "slot2 (…2) is gone",
    ]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            {"links": [{"link": 0, "active": False}, *({"link": n, "active": True} for n in (1, 2, 3))]},
            "3 of 4 NVLinks",
        ),
        ({"links": []}, "0 of 4 NVLinks"),
        ({"remapped_rows": {"pending": True, "failed": False}}, "waits for a reset"),
        ({"remapped_rows": {"pending": True, "failed": True}}, "could not be replaced"),
        ({"ecc": {"on": True, "uncorrected": 2}}, "2 memory errors that could not be corrected"),
    ],
)
def test_what_a_card_shows(change: dict[str, Any], said: str) -> None:
    now = seen()
    now["gpus"][0] |= change
    (found,) = health.findings(EXPECTED, now, [])
    assert found.startswith("slot1 (…1): ")
    assert said in found


def test_what_a_card_does_not_have_is_no_finding() -> None:
    bare = copy.deepcopy(EXPECTED) | {"cards": [card | {"links": 0} for card in CARDS]}
    now = seen()
    for card in now["gpus"]:
        card |= {"links": [], "ecc": None, "remapped_rows": None}
    assert health.findings(bare, now, []) == []


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (
            "NVRM: Xid (PCI:0000:02:00): 79, pid='<unknown>', GPU has fallen off the bus.",
            "slot2 (…2): Xid 79 in this boot",
        ),
        ("NVRM: GPU 0000:02:00.0: GPU has fallen off the bus.", "slot2 (…2): Xid 79 in this boot"),
        ("NVRM: Xid (PCI:0000:b7:00 GPU-I:05): 95, pid=7194, name=python3", "0000:b7:00: Xid 95 in this boot"),
        (f"NVRM: Xid (PCI:0000:01:00): {xid.highest_known() + 1}, new", "slot1 (…1): Xid"),
    ],
)
def test_xids_that_fail_a_rig(line: str, said: str) -> None:
    (found,) = health.findings(EXPECTED, seen(), [line])
    assert found.startswith(said)
    (twice,) = health.findings(EXPECTED, seen(), [line, line])
    assert twice.endswith(", 2 times")


def test_xids_of_a_program_s_own_making_drain_nobody() -> None:
    """13, 31 and 45 are what a user's faulty kernel causes; they fail a rig only under our own load."""
    lines = [f"NVRM: Xid (PCI:0000:01:00): {number}, pid=1, name=python3" for number in (13, 31, 45)]
    assert {13, 31, 45} & set(EXPECTED["failing_xids"]) == set()
    assert health.findings(EXPECTED, seen(), lines) == []


class Slurm:
    """`scontrol` with one node."""

    def __init__(self, state: str = "IDLE", *, down: bool = False) -> None:
        self.state, self.down = state, down
        self.updates: list[tuple[str, ...]] = []

    def __call__(self, *words: str) -> tuple[int, str]:
        if self.down:
            return 1, "slurm_load_node error: Unable to contact slurm controller\n"
        if words[1] == "update":
            self.updates.append(words[2:])
            return 0, ""
        return 0, f"NodeName={words[-1]} Arch=x86_64 State={self.state} ThreadsPerCore=1\n"


def test_the_node_is_drained_with_the_first_finding_as_reason() -> None:
    slurm = Slurm()
    assert health.drain("gpu1", ["slot2 (…2) is gone", "more"], slurm) == "gpu1 is drained"
    assert slurm.updates == [("NodeName=gpu1", "State=DRAIN", "Reason=rigctl: slot2 (…2) is gone (and 1 more)")]


def test_a_long_reason_is_cut_as_slurm_would() -> None:
    slurm = Slurm("MIXED")
    health.drain("gpu1", ["x" * 500, "y"], slurm)
    reason = slurm.updates[0][2].removeprefix("Reason=")
    assert len(reason) == health.MOST_SAID
    assert reason.endswith(" (and 1 more)")


@pytest.mark.parametrize("state", ["IDLE+DRAIN", "DRAINED", "MIXED+DRAIN"])
def test_somebody_s_drain_is_left_alone(state: str) -> None:
    slurm = Slurm(state)
    assert health.drain("gpu1", ["slot2 (…2) is gone"], slurm) == "gpu1 is drained already"
    assert slurm.updates == []


def test_a_controller_that_is_away_is_said() -> None:
    assert health.drain("gpu1", ["x"], Slurm(down=True)).startswith("not drained: scontrol: slurm_load_node error")


def test_without_slurm_that_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert health.drain("gpu1", ["x"], health.ask_slurm).startswith("not drained: scontrol: ")


@pytest.mark.parametrize(
    ("text", "said"),
    [(None, "No such file"), ("{", "is damaged"), ("[]", "another version"), ('{"version": 99}', "another version")],
)
def test_bad_expectations_are_no_verdict(
    text: str | None, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "health.json"
    if text is not None:
        path.write_text(text, encoding="utf-8")
    monkeypatch.setattr(health, "EXPECTED", path)
    assert health.run([]) == health.UNKNOWN
    told = capsys.readouterr()
    assert said in told.err
    assert "rigctl health install" in told.err
    assert told.out == ""


def run(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, now: dict[str, Any], *words: str, unread: str | None = None
) -> int:
    path = tmp_path / "health.json"
    path.write_text(json.dumps(EXPECTED), encoding="utf-8")
    monkeypatch.setattr(health, "EXPECTED", path)
    monkeypatch.setattr(health, "cards_in_time", lambda _errors: now)
    monkeypatch.setattr(health.kernel_log, "read_kernel", lambda: ([], unread))
    return health.run(list(words))


def test_exit_status_and_words(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    slurm = Slurm()
    monkeypatch.setattr(health, "ask_slurm", slurm)
    assert run(monkeypatch, tmp_path, seen()) == health.OK
    assert capsys.readouterr().out == ""
    assert run(monkeypatch, tmp_path, seen(), unread="journalctl: status 1") == health.UNKNOWN
    assert "the kernel's log was not read" in capsys.readouterr().err
    one = seen()
    del one["gpus"][0]
    assert run(monkeypatch, tmp_path, one, "--no-drain") == health.UNHEALTHY
    assert capsys.readouterr().out == "rigctl-health: slot1 (…1) is gone\n"
    assert slurm.updates == []
    assert run(monkeypatch, tmp_path, one) == health.UNHEALTHY
    assert capsys.readouterr().out == "rigctl-health: slot1 (…1) is gone\nrigctl-health: gpu1 is drained\n"


def test_the_agent_s_file_answers_to_the_program_s_name(tmp_path: Path) -> None:
    file = tmp_path / "rigctl-health"
    file.write_bytes(b"#!/usr/bin/python3 -I\n" + build_bundle().data)
    done = subprocess.run([sys.executable, "-I", file, "--help"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("usage: rigctl-health")
