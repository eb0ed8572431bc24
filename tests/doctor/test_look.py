"""The look at a machine: on this one, whole; and its readers on texts as machines write them."""

from __future__ import annotations

import fcntl
import json
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from rigctl.doctor import look
from rigctl.doctor.facts import SystemFacts

if TYPE_CHECKING:
    from pathlib import Path


def test_this_machine_can_be_looked_at() -> None:
    done = subprocess.run([sys.executable, "-I", look.__file__], capture_output=True, text=True, check=True)
    seen = SystemFacts.model_validate(json.loads(done.stdout))
    assert seen.space["/"].free_bytes > 0
    assert seen.kernels[0].release == look.os.uname().release


@pytest.mark.parametrize(
    ("version", "config", "major"),
    [
        ("Linux version 5.15.0-91-generic (buildd@lcy02) (gcc (Ubuntu 11.4.0-1ubuntu1~22.04) 11.4.0, GNU ld", "", 11),
        ("Linux version 6.5.0-45-generic (b@l) (x86_64-linux-gnu-gcc-12 (Ubuntu 12.3.0-1) 12.3.0, GNU ld", "", 12),
        ("Linux version 6.1.0-57-amd64 (d@l) (gcc-12 (Debian 12.2.0-14+deb12u1) 12.2.0, GNU ld", "", 12),
        ("Linux version 5.15.0 (sim) (gcc version 11.4.0) #101-Ubuntu SMP", "", 11),
        ("", 'CONFIG_CC_VERSION_TEXT="gcc-13 (…)"\nCONFIG_GCC_VERSION=130200\n', 13),
        ("Linux version 6.6 (clang version 17.0)", "CONFIG_GCC_VERSION=0", None),
    ],
)
def test_the_kernels_compiler(version: str, config: str, major: int | None) -> None:
    assert look.compiler_of(version, config) == major


def test_the_kernels_own_settings_come_first() -> None:
    assert look.compiler_of("Linux version 5 (gcc version 11.4.0)", "CONFIG_GCC_VERSION=120300") == 12


def test_words_of_a_failure_are_no_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("modinfo", "apt-mark", "mokutil"):
        (tmp_path / name).write_text("#!/bin/sh\necho 'ERROR: Module nvidia not found.' >&2; exit 1\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{look.os.environ['PATH']}")
    assert look.secure_boot() == {"on": False, "key_enrolled": False, "signer": ""}
    assert look.look_at_rig()["held"] == []


def test_kernels_sort_by_their_numbers() -> None:
    names = ["5.15.0-101-generic", "5.15.0-91-generic", "6.5.0-45-generic"]
    assert sorted(names, key=look.natural) == [names[1], names[0], names[2]]


def grub(monkeypatch: pytest.MonkeyPatch, **files: str) -> None:
    monkeypatch.setattr(look, "text_of", lambda path: files.get(str(path).rpartition("/")[2], ""))


def test_next_kernel_that_grub_was_told(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = "gnulinux-advanced-1f>gnulinux-5.15.0-101-generic-advanced-1f"
    grub(monkeypatch, grubenv=f"# GRUB Environment Block\nnext_entry={entry}\n")
    assert look.next_kernel("5.15.0-91-generic") == "5.15.0-101-generic"
    title = "Advanced options for Ubuntu>Ubuntu, with Linux 6.5.0-45-generic"
    grub(monkeypatch, grubenv=f"saved_entry={title}\n", grub="GRUB_DEFAULT=saved\n")
    assert look.next_kernel("5.15.0-91-generic") == "6.5.0-45-generic"
    named = "gnulinux-advanced-1f>gnulinux-5.15.0-76-generic-advanced-1f"
    grub(monkeypatch, grubenv=f"saved_entry={title}\n", grub=f'GRUB_DEFAULT=saved\nGRUB_DEFAULT="{named}"\n')
    assert look.next_kernel("5.15.0-91-generic") == "5.15.0-76-generic"


def test_a_saved_entry_counts_only_where_grub_follows_it(monkeypatch: pytest.MonkeyPatch) -> None:
    grub(monkeypatch, grubenv="saved_entry=gnulinux-1.2.3-advanced-1f\n", grub="GRUB_DEFAULT=0\n")
    assert look.next_kernel("5.15.0-91-generic") != "1.2.3"


def test_the_holder_of_a_lock_is_named_and_the_lock_left_alone(tmp_path: Path) -> None:
    lock = tmp_path / "lock-frontend"
    lock.touch()
    assert look.lock_holder(str(lock)) is None
    program = f"import fcntl, time; f = open({str(lock)!r}, 'r+'); fcntl.lockf(f, fcntl.LOCK_EX); print(1, flush=True)"
    with subprocess.Popen([sys.executable, "-c", f"{program}; time.sleep(60)"], stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        found = look.lock_holder(str(lock))
        holder.kill()
    assert found is not None
    assert found["pid"] == holder.pid
    assert "lockf" in found["command"]
    with lock.open("r+b") as file:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_a_missing_lock_file_is_held_by_nobody(tmp_path: Path) -> None:
    assert look.lock_holder(str(tmp_path / "none")) is None


def test_a_program_that_hangs_does_not_hold_the_look() -> None:
    started = time.monotonic()
    assert look.run("sleep", "60", timeout_s=1)[0] == 124
    assert time.monotonic() - started < 10
