"""What holds the cards: services and containers are told from programs of people, stopped, and started again."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from rigctl.upgrade.on_rig import holders, kept
from rigctl.upgrade.on_rig.state import Refused

if TYPE_CHECKING:
    from pathlib import Path

CONTAINER = "4b" * 32


class Commands:
    """Stands in for what the rig's programs answer; keeps what they were told."""

    def __init__(self, answers: dict[str, tuple[int, str]]) -> None:
        self.answers = answers
        self.told: list[str] = []

    def run(self, *argv: str, **_: object) -> tuple[int, str, str]:
        line = " ".join(argv)
        self.told.append(line)
        code, out = next((found for start, found in self.answers.items() if line.startswith(start)), (0, ""))
        return code, out, ""

    def must(self, *argv: str, **_: object) -> str:
        code, out, _said = self.run(*argv)
        if code:
            raise Refused(" ".join(argv))
        return out


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Commands:
    found = Commands(
        {
            "docker inspect --format {{.Name}}": (0, "/trainer\n"),
            "docker inspect --format {{.State.Running}}": (0, "false\n"),
            "loginctl show-session c1": (0, "greeter\n"),
            "loginctl show-session 4": (0, "user\n"),
            "systemctl show": (0, "loaded\n"),
            "systemctl is-active": (3, ""),
            "id --name": (0, "ada\n"),
        }
    )
    monkeypatch.setattr(holders, "run", found.run)
    monkeypatch.setattr(holders, "must", found.must)
    monkeypatch.setattr(kept, "KEPT", tmp_path / "kept")
    return found


def process(proc: Path, pid: int, group: str, *opened: str) -> None:
    if pid != 1 and not (proc / "1").exists():
        process(proc, 1, "/init.scope")
    (proc / str(pid) / "fd").mkdir(parents=True)
    for number, target in enumerate(opened):
        (proc / str(pid) / "fd" / str(number)).symlink_to(target)
    (proc / str(pid) / "cgroup").write_text(f"0::{group}\n", encoding="utf-8")
    (proc / str(pid) / "cmdline").write_bytes(b"nvtop\0")


def test_services_and_containers_are_told_by_their_group(tmp_path: Path, commands: Commands) -> None:
    process(tmp_path, 10, "/system.slice/nvidia-persistenced.service", "/dev/null", "/dev/nvidia0")
    process(tmp_path, 11, "/system.slice/dcgm-exporter.service", "/dev/nvidiactl")
    process(tmp_path, 12, "/system.slice/cron.service", "/dev/null")
    process(tmp_path, 13, f"/system.slice/docker-{CONTAINER}.scope", "/dev/nvidia-uvm")
    process(tmp_path, 14, "/user.slice/user-120.slice/session-c1.scope", "/dev/nvidia0")
    units, containers, programs = holders.find(tmp_path)
    assert units == {"nvidia-persistenced.service", "dcgm-exporter.service", "display-manager.service"}
    assert containers == {"docker trainer"}
    assert programs == {}
    assert not [line for line in commands.told if " stop " in line]


def test_a_rig_that_is_a_container_itself_is_none_of_its_own(tmp_path: Path, commands: Commands) -> None:
    own = f"/libpod_parent/libpod-{CONTAINER}"
    process(tmp_path, 1, f"{own}/init.scope")
    process(tmp_path, 10, f"{own}/system.slice/exporter.service", "/dev/nvidia0")
    text = f"9:name=systemd:{own}/system.slice/old.service\n8:pids:{own}\n0::/\n"
    process(tmp_path, 11, "", "/dev/nvidia0")
    (tmp_path / "11" / "cgroup").write_text(text, encoding="utf-8")
    (tmp_path / "1" / "cgroup").write_text(f"9:name=systemd:{own}/init.scope\n0::{own}/init.scope\n", encoding="utf-8")
    process(tmp_path, 12, f"{own}/system.slice/docker-{CONTAINER}.scope", "/dev/nvidia0")
    for pid in ("10", "12"):
        path = tmp_path / pid / "cgroup"
        path.write_text(path.read_text(encoding="utf-8").replace("0::", "9:name=systemd:"), encoding="utf-8")
    assert holders.find(tmp_path) == ({"exporter.service", "old.service"}, {"docker trainer"}, {})
    assert commands.told


@pytest.mark.parametrize(
    "group", ["/user.slice/user-1000.slice/session-4.scope", "/user.slice/user@1000.service/app.slice", "/"]
)
def test_what_belongs_to_a_person_is_named_and_nothing_is_stopped(
    tmp_path: Path, commands: Commands, group: str
) -> None:
    process(tmp_path, 20, group, "/dev/nvidia0")
    process(tmp_path, 21, "/system.slice/exporter.service", "/dev/nvidia0")
    with pytest.raises(Refused, match=r"held by ada: nvtop \(process 20\)") as caught:
        holders.release("run-1", evict=False, proc=tmp_path)
    assert "--evict-users" in caught.value.remedy
    assert not [line for line in commands.told if " stop " in line]


def test_what_is_stopped_is_remembered_and_started_again(tmp_path: Path, commands: Commands) -> None:
    process(tmp_path / "proc", 11, "/system.slice/exporter.service", "/dev/nvidiactl")
    process(tmp_path / "proc", 13, f"/docker/{CONTAINER}/docker-{CONTAINER}.scope", "/dev/nvidia-uvm")
    assert holders.release("run-1", evict=False, proc=tmp_path / "proc") == {
        "stopped": ["exporter.service", "docker trainer"]
    }
    assert {"systemctl stop exporter.service", "docker stop trainer"} <= set(commands.told)
    # Another controller does the step again: nothing holds a card any more, and nothing is forgotten.
    assert holders.release("run-1", evict=False, proc=tmp_path / "empty") == {"stopped": []}
    again = holders.start_again("run-1")
    assert again == {"started": ["exporter.service", "docker trainer"]}
    assert {"systemctl start exporter.service", "docker start trainer"} <= set(commands.told)


def test_what_came_back_by_itself_or_is_no_more_is_left_alone(tmp_path: Path, commands: Commands) -> None:
    kept_list = kept.folder("run-1") / "stopped.json"
    kept_list.parent.mkdir(parents=True)
    kept_list.write_text(json.dumps({"units": ["a.service"], "containers": ["docker trainer"]}), encoding="utf-8")
    commands.answers |= {"systemctl is-active": (0, ""), "docker inspect --format {{.State.Running}}": (0, "true\n")}
    assert holders.start_again("run-1") == {"started": []}
    commands.answers |= {"systemctl is-active": (3, ""), "systemctl show": (0, "not-found\n")}
    assert holders.start_again("run-1") == {"started": []}
    assert holders.start_again("run-2") == {"started": []}


def test_a_service_that_does_not_start_again_is_an_error(commands: Commands) -> None:
    kept_list = kept.folder("run-1") / "stopped.json"
    kept_list.parent.mkdir(parents=True)
    kept_list.write_text(json.dumps({"units": ["a.service"], "containers": []}), encoding="utf-8")
    commands.answers["systemctl start"] = (1, "")
    with pytest.raises(Refused, match="systemctl start"):
        holders.start_again("run-1")


def test_a_program_is_ended_where_that_was_asked_for(tmp_path: Path, commands: Commands) -> None:
    words = "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint(1, flush=True)\ntime.sleep(600)"
    with subprocess.Popen([sys.executable, "-c", words], stdout=subprocess.PIPE) as stubborn:
        assert stubborn.stdout is not None
        assert stubborn.stdout.readline() == b"1\n"
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(holders, "TERM_S", 0.3)
            process(tmp_path, stubborn.pid, "/", "/dev/nvidia0")
            holders.release("run-1", evict=True, proc=tmp_path)
        assert stubborn.wait(10) == -signal.SIGKILL
    assert not (kept.folder("run-1") / "stopped.json").exists()
    assert not [line for line in commands.told if line.startswith("systemctl")]


def test_this_process_s_own_descriptors_are_read() -> None:
    assert os.getpid() not in set(holders.with_card_open())
