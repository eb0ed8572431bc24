from __future__ import annotations

import hashlib
import io
import os
import shutil
import subprocess
import tarfile
import time
from typing import TYPE_CHECKING

import pytest

from rigctl.sim.machine.packages import build
from rigctl.sim.machine.packages.deb import Package, Packed
from rigctl.sim.machine.packages.driver import Driver, DriverFiles, packages
from rigctl.sim.machine.packages.tools import tool_packages

if TYPE_CHECKING:
    from pathlib import Path

WORLDS = sorted(build.definition()["worlds"])
SYSTEM = ("build-essential", "gcc", "kmod", "libc6", "make", "python3")
"""What every rig has already."""
needs_apt = pytest.mark.skipif(shutil.which("apt-get") is None, reason="apt is not installed")


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All archives, with placeholders for what the image's build compiles."""
    folder = tmp_path_factory.mktemp("archive")
    built = folder / "built"
    for _, version in build.versions_to_compile(build.definition()):
        path = built / "libraries" / version / f"libnvidia-ml.so.{version}"
        path.parent.mkdir(parents=True)
        path.write_bytes(b"library")
    for series in (entry["series"] for entry in build.definition()["cuda"]["toolkits"]):
        path = built / "cuda" / series / "bin" / "nvcc"
        path.parent.mkdir(parents=True)
        path.write_bytes(b"#!/bin/sh\n")
    (built / "programs").mkdir()
    (built / "programs" / "nvidia-smi").write_bytes(b"#!/bin/sh\n")
    build.build(folder / "out", built)
    return folder / "out"


class Apt:
    """The real apt on an empty system of its own that knows only our archives."""

    def __init__(self, folder: Path, sources: str) -> None:
        for name in ("lists/partial", "cache/archives/partial", "etc/preferences.d", "etc/sources.d", "etc/trusted.d"):
            (folder / name).mkdir(parents=True)
        (folder / "status").write_text("".join(_installed(name) for name in SYSTEM))
        (folder / "etc" / "sources.list").write_text(sources)
        config = {
            "Dir::State": folder,
            "Dir::State::status": folder / "status",
            "Dir::State::lists": folder / "lists",
            "Dir::Cache": folder / "cache",
            "Dir::Etc": folder / "etc",
            "Dir::Etc::sourcelist": folder / "etc" / "sources.list",
            "Dir::Etc::sourceparts": folder / "etc" / "sources.d",
            "Dir::Etc::parts": folder / "etc" / "preferences.d",
            "Dir::Etc::trustedparts": folder / "etc" / "trusted.d",
            "Debug::NoLocking": "1",
            "APT::Sandbox::User": "root",
        }
        lines = [f'{key} "{value}";\n' for key, value in config.items()]
        (folder / "apt.conf").write_text("".join(lines))
        self.environment = {**os.environ, "APT_CONFIG": str(folder / "apt.conf"), "LC_ALL": "C.UTF-8"}
        self.preferences = folder / "etc" / "preferences.d"
        self("apt-get", "update")

    def __call__(self, *command: str) -> str:
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


def _installed(name: str) -> str:
    return (
        f"Package: {name}\nStatus: install ok installed\nArchitecture: amd64\nMulti-Arch: foreign\n"
        "Maintainer: x\nDescription: x\nVersion: 9\n\n"
    )


def ubuntu(archive: Path, world: str) -> str:
    """Sources of one world."""
    return "".join(
        f"deb [trusted=yes] file://{archive}/ubuntu/{world} {suite} main restricted\n"
        for suite in ("jammy", "jammy-updates", "jammy-security")
    )


@needs_apt
@pytest.mark.parametrize(
    ("world", "installed", "description"),
    [
        ("2022", "nvidia-driver-515", "NVIDIA driver metapackage"),
        ("2023", "nvidia-driver-535", "Transitional package for nvidia-driver-535"),
        ("2026", "nvidia-driver-580", "Transitional package for nvidia-driver-535"),
    ],
)
def test_asking_for_515_gives_what_that_year_gave(
    archive: Path, tmp_path: Path, world: str, installed: str, description: str
) -> None:
    apt = Apt(tmp_path, ubuntu(archive, world))
    shown = apt("apt-cache", "show", "--no-all-versions", "nvidia-driver-515")
    assert f"Description: {description}" in shown
    simulated = apt("apt-get", "--simulate", "install", "nvidia-driver-515")
    assert f"Inst {installed} " in simulated


@needs_apt
def test_2022_offers_two_real_515_and_prefers_the_newer(archive: Path, tmp_path: Path) -> None:
    apt = Apt(tmp_path, ubuntu(archive, "2022"))
    policy = apt("apt-cache", "policy", "nvidia-driver-515")
    assert "Candidate: 515.105.01-0ubuntu0.22.04.1" in policy
    assert "515.86.01-0ubuntu0.22.04.1" in policy


@needs_apt
@pytest.mark.parametrize("world", WORLDS)
def test_the_cuda_repository_has_real_515_in_every_year_and_can_be_pinned_by_its_label(
    archive: Path, tmp_path: Path, world: str
) -> None:
    apt = Apt(tmp_path, ubuntu(archive, world) + f"deb [trusted=yes] file://{archive}/cuda /\n")
    for branch in ("515", "535", "580"):
        assert f"file:{archive}/cuda" in apt("apt-cache", "policy", f"nvidia-driver-{branch}")
    assert "l=NVIDIA CUDA" in apt("apt-cache", "policy")
    assert "o=Ubuntu,a=jammy-updates" in apt("apt-cache", "policy")


@needs_apt
def test_toolkits_install_from_the_cuda_repository(archive: Path, tmp_path: Path) -> None:
    apt = Apt(tmp_path, f"deb [trusted=yes] file://{archive}/cuda /\n")
    for series in ("11-7", "11-8", "12-2", "13-0"):
        assert f"cuda-nvcc-{series}" in apt("apt-cache", "depends", f"cuda-toolkit-{series}")


def test_every_fact_names_its_source() -> None:
    archive = build.definition()
    pockets = [pocket for world in archive["worlds"].values() for pocket in world["pockets"].values()]
    entries = [one for pocket in pockets for one in pocket] + archive["cuda"]["drivers"] + archive["cuda"]["toolkits"]
    assert all(entry["source"] for entry in entries)


def test_every_transitional_package_leads_to_a_branch_of_its_own_world() -> None:
    for world in build.definition()["worlds"].values():
        entries = [entry for pocket in world["pockets"].values() for entry in pocket]
        branches = {entry["branch"] for entry in entries}
        assert {entry["becomes"] for entry in entries if "becomes" in entry} <= branches


def test_a_driver_without_compiled_libraries_is_refused() -> None:
    with pytest.raises(KeyError, match=r"515\.105\.01"):
        packages(Driver("515", "515.105.01", "0ubuntu1"), DriverFiles({}, {}))


def test_only_one_branch_can_be_installed_at_a_time() -> None:
    driver = Driver("515", "515.105.01", "0ubuntu1")
    built = DriverFiles({"515.105.01": {"libnvidia-ml.so.515.105.01": b""}}, {})
    found = {package.name: package for package in packages(driver, built)}
    compute = found["libnvidia-compute-515"]
    assert compute.relations["Conflicts"] == compute.relations["Provides"] == "libnvidia-compute"
    links = {packed.path: packed.link for packed in compute.files if packed.link}
    assert links == {"/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1": "libnvidia-ml.so.515.105.01"}


@pytest.mark.skipif(shutil.which("dpkg-deb") is None, reason="dpkg is not installed")
def test_packages_are_what_dpkg_reads(tmp_path: Path) -> None:
    package = Package(
        name="demo-515",
        version="1:2.0-3",
        description="A demo",
        relations={"Depends": "libc6", "Recommends": ""},
        files=(Packed("/usr/bin/demo", b"#!/bin/sh\n", 0o755), Packed("/usr/lib/demo.so.1", link="demo.so.2")),
        scripts={"postinst": "#!/bin/sh\nexit 0\n"},
    )
    path = tmp_path / package.file_name
    path.write_bytes(package.build())
    assert path.name == "demo-515_2.0-3_amd64.deb"
    fields = subprocess.run(["dpkg-deb", "--field", path], capture_output=True, text=True, check=True).stdout
    assert "Version: 1:2.0-3" in fields
    assert "Recommends" not in fields
    plain = subprocess.run(["dpkg-deb", "--fsys-tarfile", path], capture_output=True, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(plain)) as tar:
        assert tar.getmember("./usr/bin/demo").mode == 0o755
        assert tar.getmember("./usr/lib/demo.so.1").linkname == "demo.so.2"


def test_the_same_inputs_give_the_same_bytes() -> None:
    package = Package("demo", "1", "A demo", files=(Packed("/etc/demo", b"x"),))
    assert package.build() == package.build()


def test_a_package_has_the_same_bytes_whenever_it_is_built(monkeypatch):
    package = Package("a-package", "1.0", "One.", files=[Packed("usr/share/a", b"text")])
    first = package.build()
    day = 86_400
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + day)
    assert package.build() == first


def test_every_index_tells_the_true_hash_of_its_files(archive):
    indexes = [*sorted((archive / "ubuntu").rglob("Packages")), archive / "cuda" / "Packages"]
    listed = set()
    for index in indexes:
        for paragraph in index.read_text().split("\n\n"):
            fields = dict(line.split(": ", 1) for line in paragraph.splitlines() if ": " in line and line[0] != " ")
            if not fields:
                continue
            data = (archive / fields["Filename"]).read_bytes()
            assert hashlib.sha256(data).hexdigest() == fields["SHA256"], f"{index}: {fields['Package']}"
            listed.add(fields["Filename"])
    assert len(listed) > len(WORLDS)


def test_two_different_packages_of_one_file_name_are_refused(tmp_path):
    build._put(tmp_path, "main", [Package("a", "1.0", "One.")])
    with pytest.raises(SystemExit, match=r"two different packages would be pool/main/a_1\.0_amd64\.deb"):
        build._put(tmp_path, "main", [Package("a", "1.0", "Another.")])


@pytest.mark.parametrize("platform", build.platforms())
def test_every_stand_in_of_a_tool_is_in_a_part_that_the_archive_has(platform: str) -> None:
    components = build.definition(platform)["system"]["components"]
    parts = [package.section.partition("/") for package in tool_packages(components)]
    assert {part if slash else "main" for part, slash, _ in parts} <= set(components)
    assert {package.name for package in tool_packages(components)} == {"fio", "nvme-cli"}
