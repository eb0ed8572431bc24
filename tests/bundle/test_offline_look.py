"""The role's script on the rig: which bundles are refused and why, and what a rig takes of one."""

from __future__ import annotations

import copy
import hashlib
import importlib.util
import json
import tarfile
from pathlib import Path

import pytest

from .parts import COMMIT, PLATFORM, WISHES, manifest, write_bundle

SCRIPT = Path(__file__).parents[2] / "roles/base/files/offline.py"


@pytest.fixture(scope="module")
def offline():
    spec = importlib.util.spec_from_file_location("base_offline", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def rig(offline, monkeypatch):
    """A rig of the bundle's kind with kmod as the bundle has it."""
    monkeypatch.setattr(offline, "platform", lambda: PLATFORM)
    monkeypatch.setattr(offline, "installed", lambda: {"kmod": "29-1", "stress-ng": "0.12-1"})
    return offline


def plain():
    return manifest().model_dump(mode="json")


def wishes(**changed):
    return {**copy.deepcopy(WISHES), **changed}


def asked(folder, **changed):
    sha256 = hashlib.sha256((folder / "bundle.json").read_bytes()).hexdigest()
    return {"folder": str(folder), "manifest": sha256, "wishes": wishes(**changed)}


def test_a_bundle_that_has_everything_is_taken(offline):
    parts, lack = offline.chosen(plain(), WISHES)
    assert lack == ""
    assert len(parts) == 5


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"packages": ["kmod", "jq", "htop"]}, "lacks the packages htop, jq"),
        ({"driver": {**WISHES["driver"], "branch": "535"}}, "lacks the driver 535 (desktop, dkms); it has 515.105.01"),
        ({"driver": {**WISHES["driver"], "flavour": "headless"}}, "lacks the driver 515 (headless, dkms)"),
        ({"driver": {**WISHES["driver"], "version": "515.65.01"}}, "lacks the driver 515 515.65.01"),
        ({"toolkits": ["11.7", "12.2"]}, "lacks CUDA 12.2; it has 11.7"),
        ({"torch": {**WISHES["torch"], "driver": "535"}}, "lacks PyTorch auto (build auto); it has 2.0.1+cu117"),
        ({"torch": {**WISHES["torch"], "extra": ["numpy"]}}, "PyTorch auto (build auto) with numpy"),
        ({"gpu_burn": "0" * 40}, "lacks gpu-burn at 000"),
        ({"container_toolkit": True}, "lacks the container toolkit"),
    ],
)  # fmt: skip
def test_what_a_bundle_lacks_is_named(offline, changed, said):
    _, lack = offline.chosen(plain(), wishes(**changed))
    assert said in lack
    assert "Make the bundle again" in lack


def test_everything_that_it_lacks_is_named_at_once(offline):
    _, lack = offline.chosen(plain(), wishes(toolkits=["12.2"], gpu_burn="1" * 40))
    assert "CUDA 12.2" in lack
    assert "gpu-burn at 111" in lack


@pytest.mark.parametrize("version", ["515.105.01", "515.105.01-0ubuntu0.22.04.1"])
def test_a_driver_is_known_by_both_its_versions(offline, version):
    assert offline.chosen(plain(), wishes(driver={**WISHES["driver"], "version": version}))[1] == ""


def test_pytorch_is_known_by_its_version(offline):
    torch = {"version": "2.0.1", "build": "cu117", "extra": [], "driver": "535"}
    assert offline.chosen(plain(), wishes(torch=torch))[1] == ""


def test_roles_that_are_not_there_want_nothing(offline):
    none = {"packages": [], "driver": {}, "toolkits": [], "torch": {}, "gpu_burn": "", "container_toolkit": False}
    parts, lack = offline.chosen(plain(), none)
    assert lack == ""
    assert len(parts) == 1


@pytest.mark.parametrize("key", sorted(PLATFORM))
def test_a_bundle_for_another_system_is_refused(offline, key):
    other = {**PLATFORM, key: "other"}
    assert "The bundle is for ubuntu 22.04 amd64 with Python 3.10" in offline.platform_refusal(PLATFORM, other)
    assert "other" in offline.platform_refusal(PLATFORM, other)


def test_a_rig_takes_no_package_that_it_has(rig, tmp_path):
    write_bundle(tmp_path)
    for path in tmp_path.glob("*/*"):
        path.unlink()
    looked = rig.look(asked(tmp_path), tmp_path)
    assert (looked["seen"], looked["refusal"], looked["to_use"]) == (True, "", True)
    assert len(looked["small"]) == 6
    assert looked["large"] == []
    assert not any("kmod" in path for path in looked["small"])
    assert f"git/gpu-burn-{COMMIT[:16]}.tar" in looked["small"]


def test_another_manifest_than_the_asked_one_is_not_looked_into(rig, tmp_path):
    write_bundle(tmp_path)
    request = {**asked(tmp_path), "manifest": "0" * 64}
    assert rig.look(request, tmp_path)["seen"] is False


def test_a_full_disk_is_refused_before_anything_comes(rig, tmp_path, monkeypatch):
    write_bundle(tmp_path)
    (tmp_path / "debs/stress-ng_0.13-1_amd64.deb").unlink()
    monkeypatch.setattr(rig, "SPARE_BYTES", 10**18)
    assert "Make room" in rig.look(asked(tmp_path), tmp_path)["refusal"]


def test_a_bundle_that_is_in_use_is_left_alone(rig, tmp_path):
    write_bundle(tmp_path)
    lists = tmp_path / "apt"
    lists.mkdir()
    (tmp_path / "in_use").write_text(rig.mark(plain()), encoding="ascii")
    (tmp_path / "Release").write_text("Label: x", encoding="ascii")
    assert rig.look(asked(tmp_path), lists)["to_use"] is True
    (lists / f"{str(tmp_path).replace('/', '_')}_._Release").write_text("Label: x", encoding="ascii")
    assert rig.look(asked(tmp_path), lists)["to_use"] is False


def test_a_damaged_file_is_named_and_taken_away(rig, tmp_path):
    write_bundle(tmp_path)
    wheel = next((tmp_path / "wheels").iterdir())
    wheel.write_bytes(b"whEel")
    said = rig.use(asked(tmp_path))["refusal"]
    assert said.startswith("The bundle is damaged: wheels/torch-2.0.1")
    assert not wheel.exists()
    assert not (tmp_path / "in_use").exists()


def test_apt_is_told_of_what_is_here_alone(offline, tmp_path):
    written = write_bundle(tmp_path)
    lists = tmp_path / written.lists
    lists.write_text(
        "Package: kmod\nFilename: debs/kmod_29-1_amd64.deb\n\nPackage: gone\nFilename: debs/gone_1_amd64.deb\n",
        encoding="utf-8",
    )
    offline.write_index(tmp_path, written.model_dump(mode="json"))
    index = (tmp_path / "Packages").read_bytes()
    assert b"kmod" in index
    assert b"gone" not in index
    release = (tmp_path / "Release").read_text(encoding="utf-8")
    assert "Label: gpu-rig bundle" in release
    assert hashlib.sha256(index).hexdigest() in release
    assert (tmp_path / "sources.list.d/bundle.list").read_text() == f"deb [trusted=yes] file:{tmp_path} ./\n"


def test_repositories_are_unpacked_once(offline, tmp_path):
    (tmp_path / "git").mkdir()
    (tmp_path / "HEAD").write_text("ref: refs/heads/bundled\n", encoding="ascii")
    with tarfile.open(tmp_path / "git/gpu-burn-1.tar", "w") as archive:
        archive.add(tmp_path / "HEAD", arcname="./HEAD")
    offline.unpack(tmp_path)
    assert (tmp_path / "git/gpu-burn-1/HEAD").is_file()
    (tmp_path / "git/gpu-burn-1/mark").touch()
    offline.unpack(tmp_path)
    assert (tmp_path / "git/gpu-burn-1/mark").exists()


def test_the_mark_is_the_manifest_s(offline):
    assert offline.mark(plain()) == offline.mark(json.loads(json.dumps(plain())))
