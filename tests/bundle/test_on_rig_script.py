"""The script on the source rig: what it reads from apt's words."""

from __future__ import annotations

import pytest

from rigctl.bundling import on_rig

URIS = """\
'http://192.0.2.5/pool/g/git_2.34.1-1ubuntu1.11_amd64.deb' git_1%3a2.34.1-1ubuntu1.11_amd64.deb 3172106 -
'http://192.0.2.5/ubuntu/pool/main/k/kmod/kmod_29-1ubuntu1_amd64.deb' kmod_29-1ubuntu1_amd64.deb 98816 SHA256:1
"""
SHOWN = """\
Package: git
Architecture: amd64
Version: 1:2.34.1-1ubuntu1.11
Filename: pool/main/g/git/git_2.34.1-1ubuntu1.11_amd64.deb
Size: 3172106
SHA256: aa

Package: git
Architecture: amd64
Version: 1:2.34.1-1ubuntu1.11
Filename: pool/other.deb
Size: 1
SHA256: bb

"""


@pytest.fixture
def answers(monkeypatch):
    """What commands answer, by their first words; their argument lists are kept."""
    given, asked = {}, []

    def run(*argv, **_options):
        asked.append(argv)
        return given.get(argv[0], (0, "", ""))

    monkeypatch.setattr(on_rig, "run", run)
    return given, asked


def test_what_apt_would_fetch_with_epochs(answers, tmp_path):
    answers[0]["apt-get"] = (0, URIS, "")
    found = on_rig.closure(["git"], "Package: *", tmp_path)
    assert found == [("git", "1:2.34.1-1ubuntu1.11"), ("kmod", "29-1ubuntu1")]
    assert list(tmp_path.iterdir()) == []
    assert any("PreferencesParts" in word for word in answers[1][0])


def test_what_apt_cannot_resolve_is_refused_in_its_words(answers, tmp_path):
    answers[0]["apt-get"] = (100, "", "Reading…\nE: Unable to locate package gone\n")
    with pytest.raises(on_rig.Refused, match="cannot give gone: E: Unable to locate package gone"):
        on_rig.closure(["gone"], "", tmp_path)


def test_each_package_is_described_once(answers):
    answers[0]["apt-cache"] = (0, SHOWN, "")
    found = on_rig.describe({("git", "1:2.34.1-1ubuntu1.11")})
    assert [(one["package"], one["sha256"], one["size"]) for one in found] == [("git", "aa", 3172106)]


def test_a_package_without_a_hash_is_refused(answers):
    answers[0]["apt-cache"] = (0, SHOWN.replace("SHA256", "MD5sum"), "")
    with pytest.raises(on_rig.Refused, match="do not say the hash of git"):
        on_rig.describe({("git", "1:2.34.1-1ubuntu1.11")})


@pytest.mark.parametrize(
    ("policy", "offered"),
    [
        ("", False),
        ("kmod:\n  Installed: (none)\n  Candidate: (none)\n", False),
        ("kmod:\n  Installed: (none)\n  Candidate: 29-1\n", True),
    ],
)
def test_whether_a_source_has_a_package(answers, policy, offered):
    answers[0]["apt-cache"] = (0, policy, "")
    assert on_rig.is_offered("kmod") is offered


def test_a_rig_that_has_a_bundle_itself_makes_none(monkeypatch, tmp_path):
    settings = tmp_path / "95-gpu-rig-offline"
    settings.write_text('Dir::Etc::SourceList "/dev/null";\n', encoding="utf-8")
    monkeypatch.setattr(on_rig, "OFFLINE_SETTINGS", settings)
    with pytest.raises(on_rig.Refused, match="takes its packages from a bundle itself"):
        on_rig.prepare({"line": "deb http://192.0.2.5/cuda /", "key": "", "key_path": ""})


def test_only_the_scratch_folder_is_forgotten(tmp_path):
    scratch = tmp_path / "rigctl-bundle-x"
    scratch.mkdir()
    (scratch / "a").touch()
    outside = tmp_path / "b"
    outside.touch()
    on_rig.forget({"scratch": str(scratch), "places": [str(scratch / "a"), str(outside)]})
    assert not (scratch / "a").exists()
    assert outside.exists()
    on_rig.forget({"scratch": str(tmp_path), "places": []})
    assert outside.exists()
    on_rig.forget({"scratch": str(scratch), "places": []})
    assert not scratch.exists()


def test_wheels_of_a_folder(tmp_path):
    (tmp_path / "a-1-py3-none-any.whl").write_bytes(b"a")
    (tmp_path / "notes.txt").touch()
    assert [one["name"] for one in on_rig.list_wheels({"folder": str(tmp_path)})["wheels"]] == ["a-1-py3-none-any.whl"]
    with pytest.raises(on_rig.Refused, match="holds no wheels"):
        on_rig.list_wheels({"folder": str(tmp_path / "none")})
