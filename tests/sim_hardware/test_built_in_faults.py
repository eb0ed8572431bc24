"""Disk, network card, memory and processor of a simulated rig, read by the agent's code and judged by the checks."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from rigctl.agent import built_in, dmi
from rigctl.agent.cpu_clock import Clocks, nominal_mhz
from rigctl.agent.scripts import disk as script
from rigctl.checks import cpu, disk, machine, network
from rigctl.measure.workloads import WORKLOADS
from rigctl.model.reading import DiskFacts, Facts, MemoryModuleFacts, NetworkFacts
from rigctl.model.spec import LimitsSpec, SettingsSpec
from rigctl.model.verdict import Verdict
from rigctl.sim.machine.hardware.rigsim import storage
from rigctl.sim.machine.hardware.rigsim.faults import HARDWARE_FAULTS, new_fault, write_book
from tests.checks import healthy as h

from .conftest import MACHINE

if TYPE_CHECKING:
    from rigctl.model.verdict import CheckVerdict
    from rigctl.sim.machine.hardware.rigsim.daemon import Daemon

NAMES = ("cpu_throttled", "memory_slow", "slow_disk", "nvme_worn", "nic_slow")
ASKED = LimitsSpec(
    guard_max_gpu_temp_c=85, min_network_mbit_per_s=1000, min_disk_read_mb_per_s=1000, min_disk_write_mb_per_s=500
)


@pytest.fixture(autouse=True)
def programs(daemon: Daemon, monkeypatch: pytest.MonkeyPatch) -> None:
    """`fio` and `nvme` as a rig has them once their packages are installed."""
    monkeypatch.setenv("RIGSIM_RUN", str(daemon.paths.run))
    monkeypatch.setenv("PATH", f"{MACHINE / 'shims' / 'packaged'}:/usr/bin:/bin")


def facts_of(daemon: Daemon) -> Facts:
    sys_folder = daemon.paths.sys
    disks = tuple(DiskFacts.model_validate(one) for one in built_in.disks(sys_folder) or ())
    cards = tuple(NetworkFacts.model_validate(one) for one in built_in.network(sys_folder, Path("/nowhere")) or ())
    modules = tuple(MemoryModuleFacts.model_validate(one) for one in dmi.memory_modules(dmi.read(sys_folder)) or ())
    return h.facts(disks=disks, network=cards, memory_modules=modules, cpu_nominal_mhz=nominal_mhz(sys_folder))


def burnt(daemon: Daemon) -> tuple[Any, ...]:
    """Samples of a CPU burn: the healthy ones, with the clock that the rig shows at rest and under load."""
    clocks = Clocks(daemon.paths.sys)
    shown: dict[str, list[float | None]] = {}
    for step, load in (("idle", 0.0), ("cpu_burn", 1.0)):
        shown[step] = []
        for _ in range(12):
            daemon.cpu_meter.read = lambda _now, load=load: load  # type: ignore[method-assign]
            daemon._ticks = 0
            daemon.tick(0.1)
            shown[step].append(clocks.mhz())
    return tuple(
        one.model_copy(update={"cpu_mhz": shown["cpu_burn" if one.step in cpu.STEPS else "idle"][one.seq % 12]})
        for one in h.samples()
    )


def measured(daemon: Daemon, folder: Path) -> str:
    asked = next(one for one in WORKLOADS if one.name == "disk").step(h.spec(), h.facts())["script"]["arguments"]
    return json.dumps(script.measure({**asked, "directory": str(folder), "most_bytes": script.BLOCK * 64}))


def judged(daemon: Daemon, accepted: Facts, folder: Path) -> list[CheckVerdict]:
    logs = h.with_logs(disk__json=measured(daemon, folder))
    readings = h.readings(facts=facts_of(daemon), samples=burnt(daemon), logs=logs)
    baseline = h.baseline().model_copy(update={"facts": accepted})
    spec = h.spec().model_copy(update={"limits": ASKED, "settings": SettingsSpec(min_memory_mt_per_s=3600)})
    return [
        *disk.health(spec, readings, baseline),
        *disk.size(spec, readings),
        *disk.speed(spec, readings, baseline),
        *network.link(spec, readings, baseline),
        *machine.settings(spec, readings, baseline),
        *machine.machine(readings, baseline),
        *cpu.clock(spec, readings, h.PROFILE, None),
    ]


def apply(daemon: Daemon, name: str | None) -> None:
    write_book(daemon.paths.faults, [new_fault(name, {}, "now", "boot")] if name else [])
    daemon.tick(0.1)


@pytest.mark.parametrize("name", NAMES)
def test_each_fault_is_named_by_its_check_alone_and_goes_away(daemon: Daemon, name: str, tmp_path: Path) -> None:
    accepted = facts_of(daemon)
    assert {v.verdict for v in judged(daemon, accepted, tmp_path)} == {Verdict.PASS}
    apply(daemon, name)
    bad = [v for v in judged(daemon, accepted, tmp_path) if v.verdict is not Verdict.PASS]
    assert {(v.check, v.verdict) for v in bad} == {(HARDWARE_FAULTS[name].found_by[0], Verdict.FAIL)}, bad
    apply(daemon, None)
    assert {v.verdict for v in judged(daemon, accepted, tmp_path)} == {Verdict.PASS}


def test_each_fault_in_its_words(daemon: Daemon, tmp_path: Path) -> None:
    accepted, said = facts_of(daemon), {}
    for name in NAMES:
        apply(daemon, name)
        said[name] = " ".join(v.reason for v in judged(daemon, accepted, tmp_path) if v.verdict is Verdict.FAIL)
    assert "1,680 MHz in the burn's last third, at least 3,626 were expected" in said["cpu_throttled"]
    assert "memory MT/s 3600 → 2133" in said["memory_slow"]
    assert "170 MB/s" in said["slow_disk"]
    assert "critical warning: spare below threshold; 104 % of its endurance used" in said["nvme_worn"]
    assert "100 Mbit/s, full duplex, at least 1000 were declared" in said["nic_slow"]


def test_a_held_back_processor_draws_less(daemon: Daemon) -> None:
    machine_ = daemon.machine
    machine_.cpu_load = 1.0
    free_w, free_mhz = machine_.cpu_w, machine_.cpu_mhz
    machine_.cpu_clock_share = 0.4
    assert (machine_.cpu_mhz, free_mhz) == (1680, 4200)
    assert machine_.parts.cpu_idle_w < machine_.cpu_w < free_w / 2


def test_a_processor_that_gets_a_part_of_its_core_runs_at_its_burn_s_clock_all_the_same(daemon: Daemon) -> None:
    daemon.machine.cpu_load = 0.3
    assert daemon.machine.cpu_mhz == 4200
    daemon.machine.cpu_load = 0.05
    assert daemon.machine.cpu_mhz < 3000


def test_no_file_of_fio_is_left(daemon: Daemon, tmp_path: Path) -> None:
    told = json.loads(measured(daemon, tmp_path))
    assert told["bytes"] == 64 * script.BLOCK
    assert not list(tmp_path.glob("*rigctl*"))


@pytest.mark.parametrize(
    ("program", "words"),
    [
        (storage.fio, ["--filename=/nowhere", "--size=1", "--runtime=1", "--name=a", "--rw=read"]),
        (storage.fio, ["--filename=/dev/null", "--size=1", "--runtime=1", "--name=a", "--rw=read"]),
        (storage.fio, ["--verify=md5"]),
        (storage.nvme, ["list"]),
        (storage.nvme, ["smart-log", "-o", "json", "/dev/nvme9n1"]),
    ],
)
def test_other_words_are_refused(daemon: Daemon, program: Any, words: list[str], capsys: Any) -> None:
    assert program(daemon.paths, words) == storage.FAILED
    assert capsys.readouterr().err


def test_programs_run_with_the_systems_python() -> None:
    for name in ("fio", "nvme"):
        assert (MACHINE / "shims" / "packaged" / name).resolve().name == "shim"
    assert sys.version_info >= (3, 10)
