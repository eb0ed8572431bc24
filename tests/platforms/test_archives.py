"""What the archives of the other platforms offer, by the real apt on an empty system."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rigctl.sim import UpOptions, inventory, placement
from rigctl.sim.machine.packages import build
from tests.sim.test_archive import Apt, needs_apt

if TYPE_CHECKING:
    from pathlib import Path

OTHERS = [name for name in build.platforms() if name != build.DEFAULT_PLATFORM]


def archive(folder: Path, platform: str) -> Path:
    """The platform's archives, with placeholders for what the image's build compiles."""
    definition = build.definition(platform)
    for _, version in build.versions_to_compile(definition):
        for stem in ("libnvidia-ml", "libcuda"):
            path = folder / "built" / "libraries" / version / f"{stem}.so.{version}"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(b"library")
    for entry in definition["cuda"]["toolkits"]:
        path = folder / "built" / "cuda" / entry["series"] / "bin" / "nvcc"
        path.parent.mkdir(parents=True)
        path.write_bytes(b"#!/bin/sh\n")
    (folder / "built" / "programs").mkdir()
    (folder / "built" / "programs" / "nvidia-smi").write_bytes(b"#!/bin/sh\n")
    build.build(folder / "out", folder / "built", platform)
    return folder / "out"


def apt_on(tmp_path: Path, platform: str) -> Apt:
    out = archive(tmp_path / "made", platform)
    options = UpOptions(platform=platform)
    return Apt(tmp_path / "system", placement.sources_list(options).replace("/srv/rigsim", str(out)))


@needs_apt
def test_debian_has_one_driver_in_two_versions_and_the_open_module_in_the_older(tmp_path: Path) -> None:
    apt = apt_on(tmp_path, "debian-12")
    policy = apt("apt-cache", "policy", "nvidia-driver")
    assert "Candidate: 535.309.01-0+deb12u1" in policy
    assert "535.261.03-1" in policy
    assert "Candidate: 535.261.03-1" in apt("apt-cache", "policy", "nvidia-open-kernel-dkms")
    assert "o=Debian" in apt("apt-cache", "policy")
    simulated = apt("apt-get", "--simulate", "install", "nvidia-driver", "nvidia-smi", "libcuda1")
    names = {line.split()[1] for line in simulated.splitlines() if line.startswith("Inst")}
    assert {"nvidia-kernel-dkms", "dkms", "firmware-nvidia-gsp", "libnvidia-ml1"} <= names
    assert not [name for name in names if name.startswith("nvidia-open")]


@needs_apt
def test_debian_pins_by_source_package(tmp_path: Path) -> None:
    apt = apt_on(tmp_path, "debian-12")
    pin = "Package: src:nvidia-graphics-drivers\nPin: version 535.261.03-1\nPin-Priority: 1001\n"
    (tmp_path / "system" / "etc" / "preferences").write_text(pin)
    assert "Candidate: 535.261.03-1" in apt("apt-cache", "policy", "libnvidia-ml1")


@needs_apt
def test_ubuntu_24_04_has_550_to_580_and_515_never_existed(tmp_path: Path) -> None:
    apt = apt_on(tmp_path, "ubuntu-24.04")
    assert "Inst nvidia-driver-550 " in apt("apt-get", "--simulate", "install", "nvidia-driver-550")
    names = apt("apt-cache", "pkgnames", "nvidia-driver-").split()
    assert sorted(name for name in names if name[-1].isdigit()) == [
        "nvidia-driver-550",
        "nvidia-driver-570",
        "nvidia-driver-580",
    ]
    assert "a=noble-updates" in apt("apt-cache", "policy")


@pytest.mark.parametrize("platform", build.platforms())
def test_every_version_names_its_source(platform: str) -> None:
    archive = build.definition(platform)
    pockets = [pocket for world in archive["worlds"].values() for pocket in world["pockets"].values()]
    entries = [one for pocket in pockets for one in pocket] + archive["cuda"]["drivers"] + archive["cuda"]["toolkits"]
    assert all(entry["source"] for entry in [*entries, archive["kernel"], archive["dkms"]])
    assert set(archive["system"]["suites"]) >= {
        name for world in archive["worlds"].values() for name in world["pockets"]
    }


@pytest.mark.parametrize("platform", OTHERS)
def test_the_inventory_asks_for_what_the_platform_has(platform: str, tmp_path: Path) -> None:
    path = tmp_path / "software.yml"
    path.write_text('nvidia_driver_branch: "515"\ncuda_version: "11.7"\nnvidia_driver_psu_w: 1600\n')
    inventory.choose_software(path, platform)
    archive = build.definition(platform)
    world = archive["worlds"][archive["system"]["default_world"]]
    branches = {entry["branch"] for pocket in world["pockets"].values() for entry in pocket}
    text = path.read_text()
    assert any(f"nvidia_driver_branch: '{branch}'" in text for branch in branches)
    assert any(f"cuda_version: '{entry['series']}'" in text for entry in archive["cuda"]["toolkits"])
    assert "nvidia_driver_psu_w: 1600" in text


def test_the_real_archive_of_debian_is_fetched_from_the_parts_that_have_it() -> None:
    wish = UpOptions(platform="debian-12", archive="real").wish(more=("python3-torch",))
    assert wish.world == "real"
    assert {"python3-torch", "nvidia-kernel-dkms", "nvidia-smi", "linux-headers-amd64"} <= set(wish.fetched.packages)
    assert {"non-free", "contrib", "non-free-firmware"} <= set(wish.fetched.components)
    assert UpOptions(platform="debian-12").wish().fetched.components == ()
