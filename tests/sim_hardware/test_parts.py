"""Small parts: identity, CPU meter, kernel log, module, system programs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time

import pytest

from rigctl.sim.machine.hardware.rigsim import module, shims
from rigctl.sim.machine.hardware.rigsim.identity import load_identity, load_template, make_identity
from rigctl.sim.machine.hardware.rigsim.kernellog import KernelLog
from rigctl.sim.machine.hardware.rigsim.loads import CpuMeter

from .conftest import tick_free_state


def test_rigs_differ_and_one_rig_stays_itself():
    template = load_template("dual_3090ti")
    first, same, other = (make_identity(template, rig, 1) for rig in ("rig1", "rig1", "rig2"))
    assert first == same
    uuids = [card["uuid"] for rig in (first, other) for card in rig["cards"]]
    assert len(set(uuids)) == 4
    assert all(uuid.startswith("GPU-") for uuid in uuids)
    assert "uuid" not in template["cards"][0]


def test_identity_is_made_once(paths):
    made = load_identity(paths.identity, rig="rig1", seed=1)
    assert load_identity(paths.identity, rig="renamed", seed=2) == made


def fake_thread(proc, pid, ran_ns, waited_ns):
    folder = proc / str(pid) / "task" / str(pid)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "schedstat").write_text(f"{ran_ns} {waited_ns} 1\n")


def test_cpu_meter_counts_what_the_rig_wants_not_what_a_busy_host_gives(tmp_path):
    cpus = len(os.sched_getaffinity(0))
    meter = CpuMeter(tmp_path, own_pid=7)
    fake_thread(tmp_path, 100, 0, 0)
    assert meter.read(10.0) == 0.0
    fake_thread(tmp_path, 100, 300_000_000 * cpus, 200_000_000 * cpus)
    assert meter.read(11.0) == pytest.approx(0.5)
    fake_thread(tmp_path, 7, 900_000_000, 0)  # the simulation itself
    assert meter.read(12.0) == 0.0
    fake_thread(tmp_path, 101, 4_000_000_000 * cpus, 0)
    assert meter.read(13.0) == 1.0


def test_cpu_meter_reads_this_machine():
    worker = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        meter = CpuMeter()
        meter.read(time.monotonic())
        time.sleep(0.3)
        assert meter.read(time.monotonic()) > 0.5 / len(os.sched_getaffinity(0))
    finally:
        worker.kill()
        worker.wait()


def test_a_process_that_ends_while_it_is_looked_at_is_left_out(tmp_path, monkeypatch):
    for pid, wanted in (("12", 100), ("13", 300)):
        task = tmp_path / pid / "task" / pid
        task.mkdir(parents=True)
        (task / "schedstat").write_text(f"{wanted} 0 1\n", encoding="ascii")
    meter = CpuMeter(tmp_path, own_pid=1)
    assert meter.read(1.0) == 0.0
    (tmp_path / "13" / "task" / "13" / "schedstat").write_text("500000300 0 2\n", encoding="ascii")
    listed = os.listdir

    def ends(folder):
        names = listed(folder)
        if folder == tmp_path:
            shutil.rmtree(tmp_path / "12")
        return names

    monkeypatch.setattr(os, "listdir", ends)
    assert meter.read(2.0) == pytest.approx(0.5 / len(os.sched_getaffinity(0)))


def test_kernel_messages_reach_the_journal_as_the_kernels_own(paths, tmp_path):
    remote = tmp_path / "systemd-journal-remote"
    remote.write_text(f'#!/bin/sh\necho "$1" > {tmp_path}/option\ncat > {tmp_path}/entry\n')
    remote.chmod(0o755)
    KernelLog(paths, journal=tmp_path / "journal" / "sim.journal", remote=remote).write(
        "NVRM: one", "NVRM: two", priority=3
    )
    assert (tmp_path / "option").read_text().strip() == f"--output={tmp_path}/journal/sim.journal"
    entries = (tmp_path / "entry").read_text().split("\n\n")
    fields = dict(line.split("=", 1) for line in entries[0].splitlines())
    assert fields["_TRANSPORT"] == "kernel"
    assert fields["MESSAGE"] == "NVRM: one"
    assert fields["PRIORITY"] == "3"
    assert len(fields["_BOOT_ID"]) == 32
    assert "MESSAGE=NVRM: two" in entries[1]
    assert paths.kernel_log.read_text().splitlines()[1].endswith(" NVRM: two")


def test_module_loads_and_unloads(paths):
    assert module.loaded_version(paths) is None
    module.load(paths, "515.105.01")
    assert module.loaded_version(paths) == "515.105.01"
    assert "Kernel Module  515.105.01 " in paths.proc_version.read_text()
    module.unload(paths)
    assert module.loaded_version(paths) is None


@pytest.mark.parametrize("text", ["515.105.01\n", "version: 515.105.01\nsrcversion: 1\n", "nvidia/515.105.01 built\n"])
def test_module_file_carries_its_version(tmp_path, text):
    (tmp_path / "nvidia.ko").write_text(text)
    assert module.installed_version(tmp_path / "nvidia.ko") == "515.105.01"


def test_module_file_without_a_version(tmp_path):
    (tmp_path / "nvidia.ko").write_text("nothing")
    assert module.installed_version(tmp_path / "nvidia.ko") is None


class TestSystemPrograms:
    @pytest.fixture(autouse=True)
    def installed(self, tmp_path, monkeypatch):
        path = tmp_path / "nvidia.ko"
        path.write_text("515.105.01\n")
        monkeypatch.setattr(module, "installed_file", lambda **_: path)

    def test_modinfo(self, paths, capsys):
        assert shims.modinfo(paths, ["-F", "version", "nvidia"]) == 0
        assert capsys.readouterr().out == "515.105.01\n"
        assert shims.modinfo(paths, ["nouveau"]) == 1

    def test_modprobe_loads_unloads_and_minds_users(self, paths, capsys):
        paths.loads.mkdir(parents=True)
        assert shims.modprobe(paths, ["nvidia"]) == 0
        assert module.loaded_version(paths) == "515.105.01"
        (paths.loads / "1").touch()
        assert shims.modprobe(paths, ["-r", "nvidia"]) == 1
        assert "in use" in capsys.readouterr().err
        (paths.loads / "1").unlink()
        assert shims.modprobe(paths, ["-r", "nvidia"]) == 0
        assert module.loaded_version(paths) is None
        assert shims.modprobe(paths, ["nouveau"]) == 1

    def test_lsmod(self, paths, capsys):
        shims.lsmod(paths, [])
        assert "nvidia" not in capsys.readouterr().out
        module.load(paths, "515.105.01")
        shims.lsmod(paths, [])
        assert [line.split()[0] for line in capsys.readouterr().out.splitlines()][-1] == "nvidia"

    def test_lspci(self, paths, capsys):
        paths.state.write_text(tick_free_state())
        assert shims.lspci(paths, ["-nn"]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert lines[0].startswith("01:00.0 VGA compatible controller [0300]: NVIDIA Corporation")
        assert "[10de:2203]" in lines[1]

    def test_dmesg(self, paths, capsys, monkeypatch):
        paths.kernel_log.write_text("1500000 NVRM: hello\n")
        monkeypatch.setattr(shims.os, "geteuid", lambda: 0)
        assert shims.dmesg(paths, []) == 0
        assert capsys.readouterr().out == "[    1.500000] NVRM: hello\n"
        monkeypatch.setattr(shims.os, "geteuid", lambda: 1000)
        assert shims.dmesg(paths, []) == 1

    def test_only_known_names(self):
        assert shims.main(["/usr/local/sbin/format-disk"]) == 2
