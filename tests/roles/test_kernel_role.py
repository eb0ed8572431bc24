"""What the role `kernel` makes of package names, of DKMS's words and of GRUB's menu."""

import importlib.util
import re
import sys

import pytest

from . import test_driver_look, test_reboot_look
from .roles_page import ROLES, load

FILES = ROLES / "kernel" / "files"
NEW = "5.15.0-105-generic"
OLD = "5.15.0-91-generic"
DKMS = f"nvidia/515.105.01, {OLD}, x86_64: installed\nzfs, 2.1.5, {OLD}, x86_64: installed\nwg/1.0: added\n"


def script(name):
    """A script of the role, with those of other roles that it takes along."""
    sys.modules.setdefault("reboot_look", test_reboot_look.look)
    test_driver_look.script("kernels")  # puts its folder on the path
    if str(FILES) not in sys.path:
        sys.path.append(str(FILES))
    spec = importlib.util.spec_from_file_location(f"kernel_{name}", FILES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


offer, modules, take_back = (script(name) for name in ("kernel_offer", "kernel_modules", "take_back"))


@pytest.mark.parametrize(
    ("name", "is_meta"),
    [
        ("linux-generic", True),
        ("linux-virtual", True),
        ("linux-image-generic-hwe-22.04", True),
        ("linux-headers-amd64", True),
        ("linux-modules-nvidia-535-server-generic", True),
        (f"linux-image-{NEW}", False),
        ("linux-headers-5.15.0-105", False),
        (f"linux-modules-nvidia-535-{NEW}", False),
        ("linux-headers-6.1.0-18-common", False),
        ("linux-kbuild-6.1", False),
        ("linux-base", False),
        ("linux-libc-dev", False),
        ("linux-firmware", False),
    ],
)
def test_packages_that_bring_the_newest_kernel_are_told(name, is_meta):
    assert bool(offer.METAS.match(name) and not offer.NO_METAS.match(name)) == is_meta


@pytest.mark.parametrize(
    ("version", "good"),
    [
        (NEW, True),
        ("6.1.0-18-amd64", True),
        ("6.1.0-18-cloud-amd64", True),
        ("6.5.0-0.deb12.4-amd64", True),
        ("5.15.0-105", False),
        ("5.15.0-105.115", False),
        ("5.15", False),
        ("linux-image-5.15.0-105-generic", False),
        (f"{NEW}; reboot", False),
    ],
)
def test_how_a_kernel_is_named(version, good):
    assert bool(re.match(load("kernel", "vars/main.yml")["__kernel_form"], version)) == good


def test_the_nearest_are_of_the_same_flavour(monkeypatch):
    known = ["5.15.0-25-generic", "5.15.0-76-generic", OLD, "5.15.0-100-lowlatency", NEW, "6.8.0-40-generic"]
    monkeypatch.setattr(offer, "is_offered", lambda name: "-25-" not in name)
    assert offer.nearest("5.15.0-99-generic", known) == ["5.15.0-76-generic", OLD, NEW, "6.8.0-40-generic"]
    assert offer.nearest("5.15.0-99-lowlatency", known) == ["5.15.0-100-lowlatency"]
    assert offer.nearest("5.15.0-76-oracle", known) == [OLD, "5.15.0-100-lowlatency"]


@pytest.fixture
def rig(monkeypatch):
    """A rig whose sources have `on_offer`; `dkms` is what DKMS says."""

    def has(*on_offer, dkms=""):
        monkeypatch.setattr(offer, "is_offered", lambda name: name in on_offer)
        monkeypatch.setattr(offer, "run", lambda *_argv, **_: (0, dkms))

    return has


def test_headers_and_further_modules_come_where_they_are_on_offer(rig):
    image, headers, extra = (f"linux-{kind}-{NEW}" for kind in ("image", "headers", "modules-extra"))
    rig(image, headers, extra, dkms=DKMS)
    assert offer.wanted_packages(NEW, "", OLD, {}) == ([image, headers, extra], [])
    rig(image)
    assert offer.wanted_packages(NEW, "", OLD, {}) == ([image], [])
    rig(image, dkms=DKMS)
    assert offer.wanted_packages(NEW, "", OLD, {}) == ([image], [headers])
    assert "DKMS could build no module" in offer.why_not(NEW, [headers])


def test_what_is_installed_needs_no_source(rig):
    rig(dkms=DKMS)
    there = {f"linux-image-{OLD}": "ii", f"linux-headers-{OLD}": "ii"}
    assert offer.wanted_packages(OLD, "", NEW, there) == (list(there), [])


def test_modules_that_the_distribution_built_come_for_the_new_kernel_too(rig):
    image, built = f"linux-image-{NEW}", f"linux-modules-nvidia-515-server-{NEW}"
    there = {f"linux-modules-nvidia-515-server-{OLD}": "ii"}
    rig(image, built)
    assert offer.wanted_packages(NEW, "515", OLD, there) == ([image, built], [])
    rig(image)
    assert offer.wanted_packages(NEW, "515", OLD, there) == ([image], [built])
    assert "nvidia_driver_modules: dkms" in offer.why_not(NEW, [built])
    assert offer.wanted_packages(NEW, "535", OLD, there) == ([image], [])  # another branch comes, with its own


def test_the_refusal_of_an_unknown_kernel_names_the_nearest(monkeypatch):
    monkeypatch.setattr(offer, "kernels_on_offer", lambda: [OLD, NEW])
    monkeypatch.setattr(offer, "is_offered", lambda _name: True)
    said = offer.why_not("5.15.0-100-generic", ["linux-image-5.15.0-100-generic"])
    assert f"no package source has linux-image-5.15.0-100-generic. The nearest on offer: {OLD}, {NEW}." in said


def test_what_the_menu_says_of_a_kernel(tmp_path):
    (tmp_path / "boot/grub").mkdir(parents=True)
    menu = test_reboot_look.MENU
    assert offer.look_at_grub(OLD, OLD, tmp_path) == {"entry": "", "starts": "", "pinned": ""}
    (tmp_path / "boot/grub/grub.cfg").write_text(menu, encoding="utf-8")
    pin = tmp_path / offer.PIN
    pin.parent.mkdir(parents=True)
    pin.write_text(f"# kernel: {OLD}\n", encoding="utf-8")
    entry = f"gnulinux-advanced-aa>gnulinux-{OLD}-advanced-aa"
    assert offer.look_at_grub(OLD, OLD, tmp_path) == {"entry": entry, "starts": test_reboot_look.NEW, "pinned": OLD}


@pytest.fixture
def dkms(monkeypatch):
    """A rig whose kernels have modules: `dkms(status, {kernel: driver})`; building adds what is named in `builds`."""

    def has(status, drivers, builds=""):
        words = [status]

        def run(*argv, **_):
            if argv[:2] == ("dkms", "status"):
                return 0, words[0]
            if argv[0] == "dkms":
                words[0] += builds
                drivers.update({NEW: drivers.get(OLD)} if builds else {})
                return 0, "Error! no headers"
            return (0, f"{drivers[argv[2]]}\n") if drivers.get(argv[2]) and argv[-1] == "nvidia" else (1, "")

        monkeypatch.setattr(modules, "run", run)
        monkeypatch.setattr(modules.os, "uname", lambda: type("Uname", (), {"release": OLD}))
        monkeypatch.setattr(modules, "why_not_built", lambda _driver: "")

    return has


def test_modules_of_both_forms_are_read():
    assert modules.built_by_dkms(OLD, DKMS) == {"nvidia/515.105.01", "zfs/2.1.5"}
    assert modules.built_by_dkms(NEW, DKMS) == set()


def test_what_is_missing_is_built(dkms):
    dkms(DKMS, {OLD: "515.105.01"}, builds=DKMS.replace(OLD, NEW))
    found = modules.build(NEW)
    assert (found["built"], found["left"], found["why"]) == (["nvidia/515.105.01", "zfs/2.1.5"], [], "")


def test_what_cannot_be_built_is_said(dkms):
    dkms(DKMS, {OLD: "515.105.01"})
    found = modules.build(NEW)
    assert (found["built"], found["left"]) == ([], ["nvidia/515.105.01", "zfs/2.1.5"])
    assert found["why"] == "Error! no headers."


def test_a_driver_that_the_distribution_built_is_compared_by_its_version(dkms):
    dkms("", {OLD: "515.105.01", NEW: "515.86.01"})
    assert modules.build(NEW)["left"] == ["nvidia/515.105.01"]
    dkms("", {OLD: "515.105.01", NEW: "515.105.01"})
    assert modules.build(NEW)["left"] == []
    dkms("", {})
    assert modules.build(NEW)["left"] == []


def test_only_what_has_come_is_taken_away_and_never_the_running_kernel(monkeypatch):
    asked = []

    def run(*argv, **_):
        asked.append(argv)
        return 0, f"linux-image-{NEW} iF \nlinux-image-{OLD} ii \n"

    monkeypatch.setattr(take_back, "run", run)
    monkeypatch.setattr(take_back.os, "uname", lambda: type("Uname", (), {"release": OLD}))
    found = take_back.take_back([f"linux-image-{NEW}", "gone"], NEW)
    assert [argv[-2:] for argv in asked if "purge" in argv] == [("purge", f"linux-image-{NEW}")]
    assert found["broken"] == [f"linux-image-{NEW}"]
    asked.clear()
    take_back.take_back([f"linux-image-{OLD}"], OLD)
    assert [argv for argv in asked if "purge" in argv] == []
