"""What a boot loads, and what the initial RAM disk and the firmware have to do with it."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from rigctl.sim.hostroot import MACHINE
from rigctl.sim.machine.hardware.rigsim import module, shims

MODULE = "version:        515.105.01\nlicense:        NVIDIA\n"


@pytest.fixture
def places(tmp_path, monkeypatch):
    """/boot, modprobe's folder and the firmware's variables."""
    for name in ("boot", "modprobe.d", "efivars"):
        (tmp_path / name).mkdir()
    monkeypatch.setattr(module, "INITRAMFS", tmp_path / "boot")
    monkeypatch.setattr(shims, "MODPROBE_FOLDERS", (str(tmp_path / "modprobe.d"),))
    return tmp_path


def test_nouveau_comes_until_an_initial_ram_disk_without_it_was_built(paths, places):
    (paths.kept / module.NOUVEAU).touch()
    blacklist = places / "modprobe.d" / "gpu-rig.conf"
    assert module.nouveau_comes(paths, places / "boot")
    assert shims.update_initramfs(paths, ["-u"]) == 0
    assert module.nouveau_comes(paths, places / "boot")
    blacklist.write_text("blacklist nouveau\n", encoding="ascii")
    assert module.nouveau_comes(paths, places / "boot")
    assert shims.update_initramfs(paths, ["-u"]) == 0
    assert not module.nouveau_comes(paths, places / "boot")


def test_where_nouveau_comes_nvidia_does_not(paths, places, monkeypatch):
    (paths.kept / module.NOUVEAU).touch()
    monkeypatch.setattr(module, "nouveau_comes", lambda _: True)
    assert module.boot(paths) is None
    assert module.nouveau_loaded(paths)
    assert module.loaded_version(paths) is None


def test_a_module_that_the_initial_ram_disk_has_kept_is_loaded(paths, tmp_path, monkeypatch):
    installed = tmp_path / "nvidia.ko"
    installed.write_text("535.183.01 (simulated module)\n", encoding="utf-8")
    monkeypatch.setattr(module, "installed_file", lambda: installed)
    monkeypatch.setattr(module, "key_refused", lambda _: False)
    assert module.boot(paths) == "535.183.01"
    (paths.kept / module.OLD_MODULE).write_text("515.105.01\n", encoding="ascii")
    assert module.boot(paths) == "515.105.01"
    assert module.loaded_version(paths) == "515.105.01"
    (paths.kept / module.OLD_MODULE).unlink()
    assert module.boot(paths) == "535.183.01"


@pytest.mark.parametrize(
    ("variable", "text", "refused"),
    [
        (b"\6\0\0\0\1", MODULE, True),
        (b"\6\0\0\0\1", MODULE + "signer:         Example\n", False),
        (b"\6\0\0\0\0", MODULE, False),
    ],
)
def test_secure_boot_refuses_a_module_without_a_signer(places, variable, text, refused):
    (places / "efivars" / "SecureBoot-8be4df61").write_bytes(variable)
    file = places / "nvidia.ko"
    file.write_text(text, encoding="ascii")
    assert module.key_refused(file, places / "efivars") is refused


def test_a_full_boot_partition_is_said_as_update_initramfs_says_it(paths, places, monkeypatch, capsys):
    monkeypatch.setattr(module, "INITRAMFS", places / "boot" / "gone")
    assert shims.update_initramfs(paths, ["-u"]) == 1
    said = capsys.readouterr()
    assert said.out.startswith("update-initramfs: Generating ")
    assert "update-initramfs: failed for" in said.err


def test_other_words_to_update_initramfs_are_refused(paths, capsys):
    assert shims.update_initramfs(paths, ["-d"]) == 1


@pytest.fixture
def dkms(tmp_path):
    """The stand-in for DKMS with its folders moved here, and a source of driver 515."""
    program = (MACHINE / "packages" / "dkms").read_text(encoding="utf-8")
    for place in ("/var/lib/dkms", "/usr/src", "/lib/modules"):
        program = program.replace(f'Path("{place}")', f'Path("{tmp_path}{place}")')
    file = tmp_path / "dkms"
    file.write_text(program, encoding="utf-8")
    source = tmp_path / "usr" / "src" / "nvidia-515.105.01" / "dkms.conf"
    source.parent.mkdir(parents=True)
    source.write_text('BUILT_MODULE_NAME[0]="nvidia"\n', encoding="ascii")
    headers = tmp_path / "lib" / "modules" / os.uname().release / "build" / "include" / "rigsim-interfaces.h"
    headers.parent.mkdir(parents=True)

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, str(file), *words], capture_output=True, text=True, check=False)

    run("add", "nvidia/515.105.01")
    return run, headers


@pytest.mark.parametrize(("least", "status"), [(525, 10), (515, 0)])
def test_dkms_fails_where_the_kernel_s_interfaces_have_moved_on(dkms, least, status):
    run, headers = dkms
    headers.write_text(f"#define LEAST_NVIDIA_BRANCH {least}\n", encoding="ascii")
    built = run("build", "nvidia/515.105.01")
    assert built.returncode == status
    if status:
        assert "Bad return status for module build on kernel" in built.stderr
        log = built.stderr.partition("Consult ")[2].partition(" for more")[0]
        with open(log, encoding="utf-8") as file:  # noqa: PTH123 - a path as DKMS prints it
            assert "error: 'struct drm_driver' has no member" in file.read()
        assert run("status").stdout == "nvidia/515.105.01: added\n"
