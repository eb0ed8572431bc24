"""A bundle's folder: what comes is proved, what is there stays, and a manifest means a whole bundle."""

from __future__ import annotations

import json
import subprocess

import pytest

from rigctl.bundling import history
from rigctl.bundling.filling import Filling, batches, deb_path
from rigctl.bundling.make import BundleProgress, _locked
from rigctl.bundling.manifest import damages, read_manifest, sweep
from rigctl.bundling.wheels import platforms
from rigctl.errors import ConnectionLost, UsageError

from .parts import Source, described, file_of, manifest, write_bundle


def test_a_whole_bundle_has_no_damage(tmp_path):
    write_bundle(tmp_path)
    assert read_manifest(tmp_path) == manifest()
    assert list(damages(tmp_path, read_manifest(tmp_path))) == []


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda path: path.unlink(), "is missing"),
        (lambda path: path.write_bytes(b"kmo"), "has 3 bytes instead of 4"),
        (lambda path: path.write_bytes(b"kmoD"), "has other bytes"),
    ],
)
def test_damage_is_named(tmp_path, spoil, said):
    written = write_bundle(tmp_path)
    spoil(tmp_path / "debs/kmod_29-1_amd64.deb")
    found = list(damages(tmp_path, written))
    assert [file.path for file, _ in found] == ["debs/kmod_29-1_amd64.deb"]
    assert said in found[0][1]


@pytest.mark.parametrize("text", ["{", '{"schema_version": 1}', "[]"])
def test_a_manifest_that_cannot_be_read_is_an_error(tmp_path, text):
    (tmp_path / "bundle.json").write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match="cannot be read"):
        read_manifest(tmp_path)


def test_a_folder_without_a_manifest_is_no_bundle(tmp_path):
    with pytest.raises(UsageError, match="is no bundle, or was not finished"):
        read_manifest(tmp_path)


def test_the_same_content_has_the_same_hash():
    assert manifest().dumps() == manifest().dumps()
    assert len(manifest().sha256) == 64


def test_sweeping_removes_what_the_manifest_does_not_name_and_only_from_its_own_folders(tmp_path):
    written = write_bundle(tmp_path)
    (tmp_path / "debs/old_1_amd64.deb").write_bytes(b"old")
    (tmp_path / "notes.txt").write_text("mine", encoding="utf-8")
    sweep(tmp_path, written, ("debs", "wheels", "git", "lists"))
    assert not (tmp_path / "debs/old_1_amd64.deb").exists()
    assert (tmp_path / "notes.txt").exists()
    assert list(damages(tmp_path, written)) == []


def test_a_filling_that_broke_off_goes_on_where_it_was(tmp_path):
    packages = [described(name, "1:2-3") for name in ("a", "b", "c", "d")]
    broken = Source(breaks_after=2)
    first = Filling(tmp_path, broken, BundleProgress())
    files = first.debs(packages)
    with pytest.raises(ConnectionLost):
        first.fetch(files, list(files))
    assert len(broken.brought) == 2

    again = Source()
    second = Filling(tmp_path, again, BundleProgress())
    missing = [name for name, file in files.items() if not second.has(file)]
    second.fetch(files, missing)
    assert again.asked == ["c=1:2-3", "d=1:2-3"]
    assert second.fetched == sum(files[name].size for name in missing)
    assert all(second.has(file) for file in files.values())
    assert again.forgotten == [f"/var/tmp/{name}" for name in missing]


def test_lists_name_the_places_in_the_bundle(tmp_path):
    filling = Filling(tmp_path, Source(), BundleProgress())
    file = filling.lists([described("b", "1"), described("a", "1:2")])
    text = (tmp_path / file.path).read_text(encoding="utf-8")
    assert text.index("Package: a") < text.index("Package: b")
    assert "Filename: debs/a_2_amd64.deb" in text
    assert "pool/" not in text


def test_an_epoch_is_no_part_of_a_file_s_name():
    assert deb_path(described("a", "1:2.3-4")) == "debs/a_2.3-4_amd64.deb"


def test_batches_are_bounded():
    files = {f"p{number}": file_of(f"p{number}", b"") for number in range(120)}
    assert [len(batch) for batch in batches(list(files), files)] == [50, 50, 20]
    large = {name: file.model_copy(update={"size": 200_000_000}) for name, file in list(files.items())[:3]}
    assert [len(batch) for batch in batches(list(large), large)] == [1, 1, 1]


def test_what_was_kept_is_used_only_while_it_is_whole(tmp_path):
    filling = Filling(tmp_path, Source(), BundleProgress())
    (tmp_path / "git/x.tar").write_bytes(b"history")
    filling._keep("git abc", [file_of("git/x.tar", b"history")])
    assert Filling(tmp_path, Source(), BundleProgress())._kept_files("git abc")
    (tmp_path / "git/x.tar").write_bytes(b"broken.")
    assert Filling(tmp_path, Source(), BundleProgress())._kept_files("git abc") == []


def test_a_folder_with_other_things_is_not_filled(tmp_path):
    (tmp_path / "photos").mkdir()
    with pytest.raises(UsageError, match="holds other things: photos"), _locked(tmp_path):
        pass


def test_two_fill_no_folder_at_once(tmp_path):
    with _locked(tmp_path), pytest.raises(UsageError, match="another rigctl fills"), _locked(tmp_path):
        pass


def test_platform_tags_for_ubuntu():
    tags = platforms("glibc 2.35", "amd64")
    assert tags[0] == "manylinux_2_35_x86_64"
    assert tags[-3:] == ["manylinux_2_17_x86_64", "manylinux2014_x86_64", "linux_x86_64"]
    assert platforms("glibc 2.35", "arm64")[-1] == "linux_aarch64"


def test_a_commit_s_history_is_packed_alone(tmp_path):
    def git(*words):
        own = ["git", "-C", str(tmp_path / "repo"), "-c", "user.name=a", "-c", "user.email=a@example.org"]
        return subprocess.run([*own, *words], check=True, capture_output=True, text=True).stdout.strip()

    (tmp_path / "repo").mkdir()
    git("init", "--quiet")
    git("commit", "--quiet", "--allow-empty", "-m", "one")
    first = git("rev-parse", "HEAD")
    git("commit", "--quiet", "--allow-empty", "-m", "two")
    packed = tmp_path / "packed.tar"
    history.pack(str(tmp_path / "repo"), first, packed)
    (tmp_path / "bare").mkdir()
    subprocess.run(["tar", "-xf", str(packed), "-C", str(tmp_path / "bare")], check=True)
    log = ["git", "-C", str(tmp_path / "bare"), "log", "--all", "--format=%H"]
    assert subprocess.run(log, check=True, capture_output=True, text=True).stdout.split() == [first]
    with pytest.raises(history.HistoryMissing):
        history.pack(str(tmp_path / "repo"), "0" * 40, tmp_path / "none.tar")
    assert not (tmp_path / "none.tar").exists()


def test_the_record_of_a_filling_is_json(tmp_path):
    Filling(tmp_path, Source(), BundleProgress())
    assert json.loads((tmp_path / Filling.RECORD).read_bytes()) == {}
