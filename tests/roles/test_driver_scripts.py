"""The driver role's scripts beside the choice: kernels and compilers, the deb cache, what is taken back and removed."""

import os

import pytest

from .test_driver_look import script

kernels, recover, remove, deb_cache = (script(name) for name in ("kernels", "recover", "remove", "deb_cache"))


@pytest.mark.parametrize(
    ("banner", "compiler"),
    [
        ("Linux version K (buildd@x) (gcc (Ubuntu 11.4.0-1ubuntu1~22.04) 11.4.0, GNU ld 2.38) #101 SMP", 11),
        ("Linux version K (buildd@x) (x86_64-linux-gnu-gcc-12 (Ubuntu 12.3.0-1ubuntu1~22.04) 12.3.0, GNU ld) #1", 12),
        ("Linux version K (rig) (gcc version 11.4.0) #101-Ubuntu SMP", 11),
        ("Linux version OTHER (gcc (Ubuntu 11.4.0-1) 11.4.0)", None),
        ("Linux version K (clang version 15.0.7)", None),
    ],
)
def test_the_compiler_of_a_kernel_by_its_banner(monkeypatch, tmp_path, banner, compiler):
    (tmp_path / "version").write_text(banner)
    real = kernels.Path
    monkeypatch.setattr(
        kernels, "Path", lambda place: tmp_path / "version" if place == "/proc/version" else real(place)
    )
    assert kernels.compiler_of("K") == compiler


def test_the_newest_kernel_boots_next(tmp_path):
    for release in ("6.5.0-45-generic", "5.15.0-91-generic", "6.5.0-9-generic"):
        (tmp_path / f"vmlinuz-{release}").touch()
    assert kernels.kernels(tmp_path) == [os.uname().release, "6.5.0-45-generic"]
    assert kernels.kernels(tmp_path, "6.5.0-9-generic") == [os.uname().release, "6.5.0-9-generic"]
    assert kernels.kernels(tmp_path, "6.8.0-40-generic") == [os.uname().release, "6.5.0-45-generic"]


def test_a_module_that_is_missing_is_built_and_what_is_left_is_said(monkeypatch):
    modules = {"A": "515.1", "B": "", "C": "510.2"}
    monkeypatch.setattr(
        kernels,
        "look_at_kernels",
        lambda _wished: [{"release": name, "module": found} for name, found in modules.items()],
    )

    def run(*argv, timeout_s=60):
        if argv[-1] == "B":
            modules["B"] = "515.1"
        return 11, "Error! no headers"

    monkeypatch.setattr(kernels, "run", run)
    assert kernels.build("515.1") == {"built": ["B"], "left": ["C"], "why": "Error! no headers"}


def packed(folder, name):
    (folder / name).write_bytes(b"deb " + name.encode())


@pytest.fixture
def cache(tmp_path, monkeypatch):
    folder = tmp_path / "debs"
    folder.mkdir()
    asked = []

    def run(*argv, timeout_s=60):
        asked.append(argv)
        if argv[0] == "dpkg-deb":
            return (
                (2, "not a Debian format archive") if argv[-1].endswith("bad.deb") else (0, "Package: x\nVersion: 1\n")
            )
        return 0, ""

    monkeypatch.setattr(deb_cache, "run", run)
    places = {"home": tmp_path / "home", "source_list": tmp_path / "cache.list"}
    return folder, asked, lambda *, check=False: deb_cache.index_folder(folder, check=check, **places)


def test_a_folder_becomes_a_source_once(cache, tmp_path):
    folder, asked, index = cache
    assert "holds no .deb files" in index()["refusal"]
    packed(folder, "x_1_amd64.deb")
    assert index(check=True) == {"changed": True, "refusal": ""}
    assert not (tmp_path / "home").exists()
    assert index() == {"changed": True, "refusal": ""}
    assert "Label: gpu-rig deb cache" in (tmp_path / "home" / "Release").read_text()
    assert "Filename: debs/x_1_amd64.deb" in (tmp_path / "home" / "Packages").read_text()
    assert (tmp_path / "cache.list").read_text() == f"deb [trusted=yes] file:{tmp_path}/home ./\n"
    asked.clear()
    assert index() == {"changed": False, "refusal": ""}
    assert asked == []


def test_a_file_that_is_no_package_is_named(cache):
    folder, _, index = cache
    packed(folder, "bad.deb")
    assert "bad.deb is not a Debian package: not a Debian format archive" in index()["refusal"]


class Rig:
    """Packages on a rig; apt does as it is told unless `refuses`."""

    def __init__(self, states):
        self.states, self.asked, self.refuses, self.state = states, [], False, "ii"

    def run(self, *argv, timeout_s=60):
        if argv[0] == "dpkg-query":
            return 0, "\n".join(f"{name} {state} {version}" for name, (state, version) in self.states.items())
        self.asked.append(argv)
        words = argv[argv.index("install") + 1 :] if "install" in argv else ()
        if self.refuses and words:
            return 100, "E: no"
        for word in words:
            name, _, version = word.removesuffix("-").partition("=")
            self.states.pop(name, None)
            if version:
                self.states[name] = (self.state, version)
        for name in argv[argv.index("purge") + 1 :] if "purge" in argv else ():
            self.states.pop(name, None)
        return 0, ""


BEFORE = {"driver": "535.1", "before": {"nvidia-dkms-515": "515.1"}, "held": ["nvidia-dkms-515"]}


@pytest.fixture
def failed(monkeypatch):
    rig = Rig({"nvidia-dkms-535": ("iF", "535.1"), "nvidia-utils-535": ("ii", "535.1"), "bash": ("ii", "5")})
    monkeypatch.setattr(recover, "run", rig.run)
    monkeypatch.setattr(recover, "why_not_built", lambda _: "it does not compile")
    return rig


def test_after_a_failed_transaction_the_old_driver_is_put_back_with_its_hold(failed):
    found = recover.recover(BEFORE)
    assert found == {"why": "it does not compile", "was_broken": ["nvidia-dkms-535"], "restored": True, "broken": []}
    assert failed.states == {"bash": ("ii", "5"), "nvidia-dkms-515": ("ii", "515.1")}
    assert failed.asked[-1] == ("apt-mark", "hold", "nvidia-dkms-515")


def test_where_the_old_driver_is_on_offer_no_more_nothing_is_left_half_installed(failed):
    failed.refuses = True
    found = recover.recover(BEFORE)
    assert (found["restored"], found["broken"]) == (False, [])
    assert failed.states == {"bash": ("ii", "5")}


def test_where_the_old_driver_does_not_compile_either_none_is_left(failed):
    failed.state = "iF"
    found = recover.recover(BEFORE)
    assert (found["restored"], found["broken"]) == (False, [])
    assert failed.states == {"bash": ("ii", "5")}


STATUS = "nvidia-utils-515 515.1 hi\ndkms 2.8 ii\nbash 5 ii\n"


@pytest.fixture
def brought(monkeypatch, tmp_path):
    record = tmp_path / "gpu-rig" / "nvidia_driver.json"
    record.parent.mkdir()
    record.write_text('{"packages": ["dkms", "nvidia-utils-515"]}')
    monkeypatch.setattr(remove, "BROUGHT", record)
    also = []
    asked = []

    def run(*argv, timeout_s=60):
        if argv[0] == "dpkg-query":
            return 0, STATUS
        asked.append(argv)
        names = [*argv[argv.index("purge") + 1 :]] if "purge" in argv else []
        return 0, "".join(f"Purg {name} [1]\n" for name in [*names, *(also if "dkms" in names else [])])

    monkeypatch.setattr(remove, "run", run)
    return record, asked, also


def test_what_was_brought_goes_and_what_was_there_stays(brought):
    record, asked, _ = brought
    assert remove.remove(check=True)["removed"] == ["dkms", "nvidia-utils-515"]
    assert record.exists()
    assert [argv for argv in asked if "-y" in argv] == []
    assert remove.remove(check=False) == {"removed": ["dkms", "nvidia-utils-515"], "kept": [], "refusal": ""}
    assert not record.exists()


def test_a_part_that_something_else_needs_by_now_stays(brought):
    _, _, also = brought
    also.append("zfs-dkms")
    assert remove.remove(check=False) == {"removed": ["nvidia-utils-515"], "kept": ["dkms"], "refusal": ""}
