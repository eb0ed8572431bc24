from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
from io import BytesIO
from typing import TYPE_CHECKING

import pytest

from rigctl.errors import ExitCode, UsageError
from rigctl.sim import UpOptions, hostroot, keys, placement, podman, state
from rigctl.sim.hostroot import HostRelease

if TYPE_CHECKING:
    from pathlib import Path


def os_release(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "os-release"
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('ID=debian\nVERSION_CODENAME=trixie\nPRETTY_NAME="Debian 13"\n', HostRelease("debian", "trixie")),
        ("ID=ubuntu\nID_LIKE=debian\nVERSION_CODENAME=noble\n", HostRelease("ubuntu", "noble")),
        ('ID=linuxmint\nID_LIKE="ubuntu debian"\nUBUNTU_CODENAME=noble\n', HostRelease("ubuntu", "noble")),
    ],
)
def test_hosts_that_rigs_can_be_built_on(tmp_path: Path, text: str, expected: HostRelease) -> None:
    assert hostroot.host_release(os_release(tmp_path, text)) == expected


def test_a_host_without_apt_is_refused_with_the_way_out(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="Fedora") as caught:
        hostroot.host_release(os_release(tmp_path, 'ID=fedora\nPRETTY_NAME="Fedora Linux 41"\n'))
    assert "--image" in caught.value.hint


def test_ubuntu_hosts_get_true_ubuntu_rigs() -> None:
    assert HostRelease("ubuntu", "noble").rig_codename("ubuntu-22.04") == "jammy"
    assert HostRelease("ubuntu", "noble").rig_codename("ubuntu-24.04") == "noble"
    assert HostRelease("debian", "trixie").rig_codename("ubuntu-22.04") == "bookworm"
    assert HostRelease("debian", "trixie").rig_codename("debian-12") == "bookworm"


def test_a_platform_that_the_host_cannot_give_is_refused_with_those_that_it_can() -> None:
    with pytest.raises(
        UsageError, match="rigs of debian-12 cannot be built from the packages of this Ubuntu host"
    ) as no:
        HostRelease("ubuntu", "noble").rig_codename("debian-12")
    assert no.value.hint == "choose one of: ubuntu-22.04, ubuntu-24.04; or give an image, such as --image debian:12"


def test_sources_are_the_hosts_own_for_the_rigs_release(monkeypatch: pytest.MonkeyPatch) -> None:
    targets = (
        "http://mirror.example/debian/|trixie|main|Debian\n"
        "http://mirror.example/debian/|trixie-updates|main|$(ORIGIN)\n"
        "http://mirror.example/debian/|trixie-backports|main|Debian\n"
        "https://tools.example/apt/|trixie|main|Some Vendor\n"
    )
    monkeypatch.setattr(
        subprocess, "run", lambda command, **_: subprocess.CompletedProcess(command, 0, stdout=targets, stderr="")
    )
    found = hostroot.sources(HostRelease("debian", "trixie"), "bookworm").splitlines()
    assert [line.split()[-3:] for line in found] == [
        ["http://mirror.example/debian/", "bookworm", "main"],
        ["http://mirror.example/debian/", "bookworm-updates", "main"],
    ]
    real = hostroot.sources(HostRelease("debian", "trixie"), "bookworm", ("main", "non-free")).splitlines()
    assert [line.split()[-2:] for line in real] == [["main", "non-free"]] * 2


def test_a_host_without_sources_of_its_own_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess, "run", lambda command, **_: subprocess.CompletedProcess(command, 0, stdout=""))
    with pytest.raises(UsageError, match="no package source for debian bookworm"):
        hostroot.sources(HostRelease("debian", "bookworm"), "bookworm")


def test_the_hash_of_a_tree_sees_names_modes_and_contents(tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_text("one")
    hashes = {hostroot.tree_hash(tmp_path)}
    file.write_text("two")
    hashes.add(hostroot.tree_hash(tmp_path))
    file.chmod(0o755)
    hashes.add(hostroot.tree_hash(tmp_path))
    file.rename(tmp_path / "b")
    hashes.add(hostroot.tree_hash(tmp_path))
    hashes.add(hostroot.tree_hash(tmp_path, extra="x"))
    assert len(hashes) == 5


def test_without_podman_there_is_one_error_with_its_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(podman.shutil, "which", lambda *_a, **_k: None)
    with pytest.raises(UsageError, match="need podman") as caught:
        podman.find()
    assert "apt-get install podman" in caught.value.hint
    assert caught.value.exit_code is ExitCode.USAGE


def test_without_rights_there_is_one_error_with_its_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(podman.shutil, "which", lambda *_a, **_k: "/usr/bin/podman")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(UsageError, match="need root") as caught:
        podman.find()
    assert "sudo" in caught.value.hint


def test_the_error_reaches_the_command_line_with_exit_2(tmp_path: Path) -> None:
    environment = {**os.environ, "PATH": str(tmp_path)}
    words = [sys.executable, "-c", "import sys; from rigctl.cli.app import main; sys.exit(main(['sim', 'list']))"]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == ExitCode.USAGE
    assert [line.split(":")[0] for line in done.stderr.splitlines()] == ["error", "hint"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (UpOptions(count=0), "0 rigs: must be 1 to 32"),
        (UpOptions(archive="1999"), "no package archive of 1999 for ubuntu-22.04"),
        (UpOptions(platform="debian-12", archive="2022"), "no package archive of 2022 for debian-12"),
        (UpOptions(platform="debian-11"), "no simulated platform debian-11"),
        (UpOptions(rig_class="quad_4090"), "no rig class quad_4090"),
        (UpOptions(time_scale=0.5), "time scale 0.5: must be 1 to 100"),
    ],
)
def test_wrong_options_are_refused_before_anything_is_done(options: UpOptions, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        options.check()


def test_a_folder_with_other_peoples_files_is_not_taken(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").touch()
    with pytest.raises(UsageError, match="holds files that are not of simulated rigs"):
        state.prepare(tmp_path)
    state.remove(tmp_path)
    assert (tmp_path / "thesis.txt").exists()


def test_a_damaged_state_is_an_error_and_no_state_is_none(tmp_path: Path) -> None:
    assert state.load(tmp_path) is None
    (tmp_path / "sim.json").write_text('{"rigs": 5}')
    with pytest.raises(UsageError, match="cannot be read"):
        state.load(tmp_path)


def test_rigs_differ_and_the_same_seed_gives_the_same_rig(tmp_path: Path) -> None:
    key = keys.key_pair(tmp_path / "key")

    def identity(name: str, seed: int) -> tuple[list[str], bytes]:
        seeded = UpOptions(directory=tmp_path, seed=seed)
        with tarfile.open(fileobj=BytesIO(placement.seed_tar(seeded, name, key, "ssh-ed25519 AAAA"))) as tar:
            own, machine_id = (tar.extractfile(path) for path in ("var/lib/rigsim/identity.json", "etc/machine-id"))
            assert own is not None
            assert machine_id is not None
            return [card["uuid"] for card in json.load(own)["cards"]], machine_id.read()

    assert identity("rig1", 0) == identity("rig1", 0)
    assert identity("rig1", 0) != identity("rig2", 0)
    assert identity("rig1", 0) != identity("rig1", 1)


def test_rigs_get_cores_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: {4, 5})
    assert [placement.pin(number) for number in (1, 2, 3)] == [
        ["--cpuset-cpus=4"],
        ["--cpuset-cpus=5"],
        ["--cpuset-cpus=4"],
    ]
