"""What `base` sees of a machine before it installs anything."""

import importlib.util
import time

import pytest

from .roles_page import ROLES

spec = importlib.util.spec_from_file_location("base_look", ROLES / "base" / "files" / "look.py")
look = importlib.util.module_from_spec(spec)
spec.loader.exec_module(look)

MIRRORS = [{"from": "http://archive.example/ubuntu", "to": "http://mirror.example/ubuntu"}]


@pytest.fixture
def answers(monkeypatch):
    """Exit status and output of programs by their first word; all else does not exist."""
    known = {}
    monkeypatch.setattr(look, "run", lambda *argv, **_: known.get(argv[0], (127, "")))
    return known


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ((127, ""), ""),
        ((0, "status: done"), ""),
        ((2, "status: done"), ""),
        ((1, "status: error"), "status: error"),
        ((124, "cloud-init did not finish within 600 s"), "cloud-init did not finish within 600 s"),
    ],
)
def test_first_boot(answers, answer, why):
    answers["cloud-init"] = answer
    assert look.first_boot(600) == why


def test_an_interrupted_installation_is_seen(answers, tmp_path):
    assert not look.unfinished_packages(tmp_path)
    answers["dpkg"] = 0, "The following packages are only half configured:\n nvidia-dkms-515"
    assert look.unfinished_packages(tmp_path)
    answers["dpkg"] = 0, ""
    (tmp_path / "var/lib/dpkg/updates").mkdir(parents=True)
    (tmp_path / "var/lib/dpkg/updates" / "0001").touch()
    assert look.unfinished_packages(tmp_path)


def test_what_keeps_the_time(answers, monkeypatch):
    assert look.timekeeper() == ""
    monkeypatch.setattr(look, "run", lambda *argv, **_: (int("ntpsec" not in argv), ""))
    assert look.timekeeper() == "ntpsec"
    answers["systemd-detect-virt"] = 0, ""
    monkeypatch.setattr(look, "run", lambda *argv, **_: answers.get(argv[0], (1, "")))
    assert look.timekeeper() == "host"


def test_sources_that_still_name_the_archive(tmp_path):
    parts = tmp_path / "etc/apt/sources.list.d"
    parts.mkdir(parents=True)
    line = "deb http://archive.example/ubuntu jammy main\n"
    (tmp_path / "etc/apt/sources.list").write_text(line, encoding="utf-8")
    (parts / "ubuntu.sources").write_text("URIs: http://archive.example/ubuntu/\n", encoding="utf-8")
    (parts / "other.list").write_text("deb http://other.example/ ./\n", encoding="utf-8")
    (parts / "ubuntu.list.save").write_text(line, encoding="utf-8")
    (parts / "nvidia-cuda.list").write_text(f"# BEGIN gpu-rig cuda\n{line}# END gpu-rig cuda\n", encoding="utf-8")
    found = look.mirror_changes(tmp_path, MIRRORS)
    assert [one["path"] for one in found] == ["/etc/apt/sources.list", "/etc/apt/sources.list.d/ubuntu.sources"]
    assert found[0]["to"] == "http://mirror.example/ubuntu"


def test_blocks_of_this_role_alone(tmp_path):
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/environment").write_text("A=1\n# BEGIN gpu-rig base\n# END gpu-rig base\n", encoding="utf-8")
    (tmp_path / "etc/other").write_text("# BEGIN gpu-rig cuda\n", encoding="utf-8")
    assert look.marked(tmp_path, ["/etc/environment", "/etc/other", "/etc/none"]) == ["/etc/environment"]


def test_the_clock_is_compared_with_the_controller_s(answers, tmp_path):
    wishes = {"now_s": time.time() + 7200, "first_boot_timeout_s": 1, "mirrors": [], "blocks": []}
    assert -7201 <= look.look(wishes, tmp_path)["clock_ahead_s"] <= -7199
