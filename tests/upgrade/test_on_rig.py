"""What runs on a rig: who holds it, the files that are kept and put back, apt's words, and how it is sent."""

from __future__ import annotations

import base64
import errno
import json
import subprocess
import sys
from pathlib import Path
from urllib.parse import quote

import pytest

from rigctl.upgrade import asking
from rigctl.upgrade.on_rig import held, kept, planning, state
from rigctl.upgrade.rig import SshRig

SIMULATION = """\
Inst nvidia-driver-535 (535.129.03-0ubuntu1 Ubuntu:22.04/jammy [amd64])
Inst libnvidia-gl-515 [515.105.01-0ubuntu1] (535.129.03-0ubuntu1 Ubuntu:22.04/jammy [amd64]) []
Remv nvidia-driver-515 [515.105.01-0ubuntu1]
Remv libnvidia-gl-515 [515.105.01-0ubuntu1]
Conf nvidia-driver-535 (535.129.03-0ubuntu1 Ubuntu:22.04/jammy [amd64])
"""
URIS = """\
'http://192.0.2.9/a.deb' nvidia-driver-535_535.129.03-0ubuntu1_amd64.deb 480 MD5Sum:0
'file:///srv/libnvidia-gl-515_535.129.03-0ubuntu1_amd64.deb' libnvidia-gl-515_535.129.03-0ubuntu1_amd64.deb 20 SHA256:0
"""


def test_a_rig_is_held_by_one(tmp_path):
    path = tmp_path / "gpu-rig" / "upgrade.json"
    assert held.lock("run-1", "ada@desk", ignore=False, path=path) == {"holder": ""}
    assert held.lock("run-1", "ada@desk", ignore=False, path=path) == {"holder": ""}
    holder = held.lock("run-2", "bob@desk", ignore=False, path=path)["holder"]
    assert "ada@desk, run run-1, since 20" in holder
    held.unlock("run-2", path)
    assert held.read(path)["run"] == "run-1"
    held.unlock("run-1", path)
    assert held.lock("run-2", "bob@desk", ignore=False, path=path) == {"holder": ""}
    assert held.lock("run-3", "eve@desk", ignore=True, path=path) == {"holder": ""}
    assert held.read(path)["run"] == "run-3"
    assert [one.name for one in path.parent.iterdir()] == ["upgrade.json"]


def test_a_lock_that_cannot_be_read_is_somebody_s(tmp_path):
    path = tmp_path / "upgrade.json"
    path.write_text("{", encoding="utf-8")
    assert "cannot be read" in held.lock("run-1", "ada@desk", ignore=False, path=path)["holder"]


def test_files_are_put_back_as_they_were(tmp_path):
    pins, options = tmp_path / "etc/apt/preferences.d/pin", tmp_path / "etc/modprobe.d/gpu.conf"
    for path in (pins, options):
        path.parent.mkdir(parents=True)
        path.write_text("before\n", encoding="utf-8")
    pins.chmod(0o600)
    before = state.files(root=str(tmp_path))
    assert before == dict.fromkeys(
        ("/etc/apt/preferences.d/pin", "/etc/modprobe.d/gpu.conf"), base64.b64encode(b"before\n").decode()
    )
    pins.write_text("after\n", encoding="utf-8")
    options.unlink()
    (pins.parent / "new").write_text("new\n", encoding="utf-8")
    kept.put_files_back(before, str(tmp_path))
    assert state.files(root=str(tmp_path)) == before
    assert pins.stat().st_mode & 0o777 == 0o600


def test_a_folder_is_kept_by_links_and_put_back(tmp_path, monkeypatch):
    monkeypatch.setattr(kept, "KEPT", tmp_path / "kept")
    monkeypatch.setattr(kept, "packages", list)
    venv = tmp_path / "torch"
    (venv / "bin").mkdir(parents=True)
    (venv / "bin" / "python").symlink_to("/usr/bin/python3")
    (venv / "big").write_bytes(b"before")
    (venv / "pyvenv.cfg").touch()
    kept.keep("run-1", [], [str(venv), str(tmp_path / "missing")])
    copies = list((tmp_path / "kept/run-1/folders").iterdir())
    assert len(copies) == 1
    assert (copies[0] / "big").stat().st_ino == (venv / "big").stat().st_ino
    (venv / "big").unlink()
    (venv / "big").write_bytes(b"after")
    (venv / "more").touch()
    for _ in range(2):  # the step may be done again
        kept.put_folder_back(copies[0])
        assert (venv / "big").read_bytes() == b"before"
        assert not (venv / "more").exists()
        assert (venv / "bin" / "python").is_symlink()
    assert sorted(one.name for one in tmp_path.iterdir()) == ["kept", "torch"]


def test_what_a_compiler_writes_into_is_no_link(tmp_path, monkeypatch):
    monkeypatch.setattr(kept, "KEPT", tmp_path / "kept")
    monkeypatch.setattr(kept, "packages", list)
    burner = tmp_path / "gpuburn"
    burner.mkdir()
    (burner / "compare.fatbin").write_bytes(b"before")
    kept.keep("run-1", [], [str(burner)])
    (burner / "compare.fatbin").write_bytes(b"after")
    (copy,) = (tmp_path / "kept/run-1/folders").iterdir()
    kept.put_folder_back(copy)
    assert (burner / "compare.fatbin").read_bytes() == b"before"


def test_a_folder_that_cannot_be_renamed_is_put_back_all_the_same(tmp_path, monkeypatch):
    """A lower layer of an overlay: the kernel renames none of its folders (EXDEV)."""
    built, copy = tmp_path / "opt", tmp_path / quote(str(tmp_path / "opt"), safe="")
    for place, text in ((built, "new"), (copy, "old")):
        place.mkdir()
        (place / "file").write_text(text)
    rename = Path.rename

    def renamed(self, target):
        if self == built:
            raise OSError(errno.EXDEV, "Invalid cross-device link")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", renamed)
    kept.put_folder_back(copy)
    assert (built / "file").read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted((built.name, copy.name))


@pytest.mark.parametrize("name", ["../etc", "", "a/b", "-x", ".hidden", "x" * 65])
def test_no_other_folder_can_be_named(name):
    with pytest.raises(state.Refused):
        kept.folder(name)


def test_apt_s_words_become_packages():
    sizes = planning.read_sizes(URIS)
    assert sizes == {"nvidia-driver-535": 480, "libnvidia-gl-515": 20}
    assert planning.read_simulation(SIMULATION, sizes) == [
        {"name": "nvidia-driver-535", "version": "535.129.03-0ubuntu1", "before": "", "bytes": 480},
        {
            "name": "libnvidia-gl-515", "version": "535.129.03-0ubuntu1", "before": "515.105.01-0ubuntu1", "bytes": 20,
        },
        {"name": "nvidia-driver-515", "version": "", "before": "515.105.01-0ubuntu1", "bytes": None},
    ]  # fmt: skip


def test_all_of_it_is_one_program_that_needs_nothing_of_the_rig():
    request = json.dumps({"do": "forget", "run_id": "../etc"})
    done = subprocess.run(
        [sys.executable, "-I", "-", request], input=asking.script(), capture_output=True, check=True, cwd="/"
    )
    assert json.loads(done.stdout)["error"] == "'../etc' is no run's id"


def test_a_rig_that_does_nothing_says_nothing(tmp_path):
    rig = SshRig(None, tmp_path, None, tmp_path, tmp_path, {}, {})
    assert rig.doing() == ""
    with rig._at(lambda: "nvidia_driver · Restart"):
        assert rig.doing() == "nvidia_driver · Restart"
    assert rig.doing() == ""
