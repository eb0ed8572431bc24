"""Disks: health as the disk tells it, how full file systems are, and a file that is gone whatever happens to fio."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest

from rigctl.agent import disk
from rigctl.agent.scripts import disk as script
from rigctl.model.reading import FilesystemFacts
from rigctl.parse import fio

if TYPE_CHECKING:
    from pathlib import Path

ASKED = {"share": 0.05, "most_bytes": 4 * script.BLOCK, "least_bytes": script.BLOCK, "seconds": 2}
REPORT = """#!/bin/sh
echo "$@" >"{place}/asked"; ls -A "{place}" >"{place}/seen"
echo '{{"fio version": "fio-3.28", "jobs": []}}'
"""


def program(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text)
    path.chmod(0o755)
    return path


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return folder


def test_health_is_what_the_program_prints(tools: Path) -> None:
    program(tools, "nvme", '#!/bin/sh\necho "{\\"asked\\": \\"$*\\"}"\n')
    assert disk.smart_log("nvme0n1") == {"smart_log": '{"asked": "smart-log -o json /dev/nvme0n1"}\n'}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("#!/bin/sh\necho 'identify failed: -4' >&2; exit 4\n", "ended with status 4: identify failed: -4"),
        ("#!/bin/sh\nexec sleep 60\n", "timed out after 0.2"),
        ("#!/nowhere\n", "No such file or directory"),
    ],
)
def test_why_health_was_not_read(tools: Path, text: str, why: str) -> None:
    program(tools, "nvme", text)
    told = disk.smart_log("nvme0n1", limit_s=0.2)
    assert set(told) == {"smart_error"}
    assert why in str(told["smart_error"])


def test_health_is_asked_of_nvme_disks_only() -> None:
    assert disk.smart_log("sda") == disk.smart_log("nvme0n1p1") == {}
    assert disk.smart_log("nvme0n1", program="no-such-program") == {"smart_error": "no-such-program is not installed"}


def test_the_state_of_a_controller(tmp_path: Path) -> None:
    (tmp_path / "class/nvme/nvme0").mkdir(parents=True)
    (tmp_path / "class/nvme/nvme0/state").write_text("dead\n")
    states = [disk.controller_of(name, tmp_path) for name in ("nvme0n1", "nvme1n1", "sda")]
    assert states == ["dead", None, None]


def test_file_systems_are_told_once_and_one_that_cannot_be_asked_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = (str(tmp_path), str(tmp_path / "not/there/yet"), "/proc")
    found = [FilesystemFacts.model_validate(one) for one in disk.filesystems(places)]
    assert [one.place for one in found] == [str(tmp_path), "/proc"]
    space = os.statvfs(tmp_path)
    assert found[0].size_gb == pytest.approx(space.f_blocks * space.f_frsize / 1e9, abs=0.001)
    assert found[0].free_gb is not None
    assert 0 <= found[0].free_gb <= found[0].size_gb

    def broken(_place: str) -> Any:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "statvfs", broken)
    (told,) = disk.filesystems((str(tmp_path),))
    assert told == {"place": str(tmp_path), "error": "Input/output error"}


@pytest.mark.parametrize(
    ("free", "size"), [(100 * 20 * script.BLOCK, 4), (60 * script.BLOCK, 3), (20 * script.BLOCK, 1)]
)
def test_the_file_takes_its_share_of_what_is_free_at_most(free: int, size: int) -> None:
    assert script.size_of(free, 0.05, 4 * script.BLOCK, script.BLOCK) == size * script.BLOCK


def test_too_little_room_is_said() -> None:
    with pytest.raises(script.DiskError, match="less than the 1 MB") as told:
        script.size_of(20 * script.BLOCK - 1, 0.05, 4 * script.BLOCK, script.BLOCK)
    assert "disk.space" in told.value.hint


def on_disk(folder: Path) -> Path:
    if script.kind_of(str(folder)) in script.IN_MEMORY:
        pytest.skip("temporary files are in memory here")
    return folder


def test_fio_gets_a_file_that_has_no_name_any_more(tools: Path, tmp_path: Path) -> None:
    place = on_disk(tmp_path) / "data"
    place.mkdir()
    program(tools, "fio", REPORT.format(place=place))
    told = script.measure({**ASKED, "directory": str(place)})
    assert (told["bytes"], told["directory"]) == (4 * script.BLOCK, str(place))
    assert json.loads(told["report"])["jobs"] == []
    asked = (place / "asked").read_text().split()
    assert {"--direct=1", "--rw=write", "--rw=read", "--stonewall", f"--size={4 * script.BLOCK}"} <= set(asked)
    assert (place / "seen").read_text().split() == ["asked", "seen"]


@pytest.mark.skipif(shutil.which("fio") is None, reason="no fio here")
def test_the_real_fio_takes_such_a_file(tmp_path: Path) -> None:
    place = on_disk(tmp_path)
    told = script.measure({**ASKED, "directory": str(place)})
    write, read = fio.parse(told["report"]).jobs
    assert (write.name, write.error, read.name, read.error) == ("write", 0, "read", 0)
    assert write.write is not None
    assert read.read is not None
    assert write.write.operations == read.read.operations == 4
    assert not list(place.glob(".rigctl*"))


def test_what_fio_says_when_it_fails_and_the_file_is_gone(tools: Path, tmp_path: Path) -> None:
    place = on_disk(tmp_path) / "data"
    place.mkdir()
    program(tools, "fio", "#!/bin/sh\necho 'fio: err=22/file:f.c, func=open, error=Invalid argument' >&2; exit 1\n")
    with pytest.raises(script.DiskError, match="status 1: fio: err=22") as told:
        script.measure({**ASKED, "directory": str(place)})
    assert "direct I/O" in told.value.hint
    assert not list(place.iterdir())


def test_a_run_that_is_killed_leaves_no_file(tools: Path, tmp_path: Path) -> None:
    place = on_disk(tmp_path) / "data"
    place.mkdir()
    program(tools, "fio", f"#!/bin/sh\ntouch {tmp_path}/begun\nexec sleep 60\n")
    arguments = json.dumps({**ASKED, "directory": str(place)})
    command = [sys.executable, script.__file__, "--arguments", arguments, "--out", str(tmp_path / "disk.json")]
    process = subprocess.Popen(command, start_new_session=True)
    deadline = time.monotonic() + 20
    while not (tmp_path / "begun").exists():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGKILL)
    assert process.wait(10) == -signal.SIGKILL
    assert not list(place.iterdir())
    assert not (tmp_path / "disk.json").exists()


def test_without_fio_and_in_memory_it_says_so(tools: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(script.DiskError, match="no-fio is not installed"):
        script.measure({**ASKED, "directory": str(tmp_path)}, program="no-fio")
    program(tools, "fio", "#!/bin/sh\n")
    with pytest.raises(script.DiskError, match="No such file"):
        script.measure({**ASKED, "directory": str(tmp_path / "gone")})
    monkeypatch.setattr(script, "kind_of", lambda _directory: "tmpfs")
    with pytest.raises(script.DiskError, match="on tmpfs, which is memory"):
        script.measure({**ASKED, "directory": str(tmp_path)})


def test_the_kind_of_a_file_system_is_the_kernels(tmp_path: Path) -> None:
    mounts = tmp_path / "mountinfo"
    device = tmp_path.stat().st_dev
    mounts.write_text(
        "22 1 0:5 / /proc rw - proc proc rw\n"
        f"29 1 {os.major(device)}:{os.minor(device)} / / rw,noatime shared:1 - ext4 /dev/nvme0n1p2 rw\n"
    )
    assert script.kind_of(str(tmp_path), mounts) == "ext4"
    mounts.write_text("")
    assert script.kind_of(str(tmp_path), mounts) is None


def test_the_result_is_written_once(tmp_path: Path) -> None:
    out = tmp_path / "disk.json"
    arguments = json.dumps({**ASKED, "directory": str(tmp_path / "gone")})
    command = [sys.executable, script.__file__, "--arguments", arguments, "--out", str(out)]
    done = subprocess.run(command, check=False, capture_output=True, env={"PATH": "/nowhere"}, timeout=60)
    assert done.returncode == 1, done.stderr.decode()
    told = json.loads(out.read_text())
    assert told["error"] == "fio is not installed"
    assert told["hint"]
    assert [path.name for path in tmp_path.iterdir()] == ["disk.json"]
