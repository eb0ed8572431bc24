"""Trouble of the cards' memory, the driver's words for it, a clock that nobody keeps: from daemon to verdict."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from rigctl.checks import clock, ecc, kernel
from rigctl.model.reading import EccReading, KernelMessage, RemappedRows, TimeSyncFacts
from rigctl.model.verdict import Verdict
from rigctl.sim.machine.hardware.rigsim import faultctl, module, shims
from rigctl.sim.machine.hardware.rigsim.daemon import Daemon
from rigctl.sim.machine.hardware.rigsim.identity import load_template, make_identity
from rigctl.sim.machine.hardware.rigsim.memory import XIDS
from tests.checks import healthy as h

from .conftest import NEEDS_COMPILER, VERSION, put_load, state_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from rigctl.sim.machine.hardware.rigsim.paths import Paths

LOOK = """
import json
from rigctl.agent import ecc, nvml
opened = nvml.Nvml()
print(json.dumps([ecc.memory_health(nvml.Asker(card.handle, faults=[])) for card in opened.cards]))
"""


@pytest.fixture
def a100(paths: Paths) -> Iterator[Daemon]:
    made = Daemon(paths, make_identity(load_template("octo_a100"), "rig1", seed=7), {"seed": 7}, port=0)
    made.start()
    module.load(paths, VERSION)
    yield made
    made.meter.set_online(online=False)


def work(daemon: Daemon, seconds: float = 3.0) -> None:
    """All cards work for so long."""
    put_load(daemon.paths, *(f"gpu {index} compute 1.0 20000" for index in range(len(daemon.present()))))
    for _ in range(round(seconds / 0.1)):
        daemon.tick(0.1)


def told(daemon: Daemon) -> list[KernelMessage]:
    """What the kernel's log says, within our load's time."""
    if not daemon.paths.kernel_log.exists():
        return []
    lines = [line for line in daemon.paths.kernel_log.read_text(encoding="utf-8").splitlines() if "Xid" in line]
    return [KernelMessage(t_wall_s=h.T0 + 20, message=line.partition(" ")[2]) for line in lines]


def seen(daemon: Daemon, libraries: Path) -> list[tuple[EccReading, RemappedRows]]:
    """What the agent reads of each card through the library."""
    environment = os.environ | {"RIGSIM_RUN": str(daemon.paths.run), "LD_LIBRARY_PATH": str(libraries / "lib")}
    done = subprocess.run([sys.executable, "-c", LOOK], check=True, capture_output=True, env=environment, timeout=60)
    found = json.loads(done.stdout)
    return [(EccReading(**one["ecc"]), RemappedRows(**one["remapped_rows"])) for one in found]


@pytest.mark.parametrize("name", XIDS)
def test_each_xid_is_told_once_as_the_driver_says_it_and_found(daemon: Daemon, name: str) -> None:
    faultctl.apply(daemon.paths, name, {"slot": "2"}, "now")
    daemon.tick(0.1)
    number, under_load, _ = XIDS[name]
    assert bool(told(daemon)) != under_load
    work(daemon, 0.5)
    messages = told(daemon)
    assert len(messages) == 1
    gpus = tuple(h.gpu(i, pci_bus_id=str(own["pci_bus_id"])) for i, own in enumerate(daemon.identity["cards"]))
    (found,) = kernel.no_xid(h.readings(kernel=tuple(messages), facts=h.facts(gpus=gpus)))
    assert (found.verdict, found.subject, found.found) == (Verdict.FAIL, h.SLOT2, str(number))
    faultctl.clear(daemon.paths, name)
    daemon.tick(0.1)
    faultctl.apply(daemon.paths, name, {"slot": "2"}, "now")
    work(daemon, 0.5)
    assert len(told(daemon)) == 2


@NEEDS_COMPILER
def test_memory_that_fails_under_load_is_counted_told_and_found(a100: Daemon, built: Path) -> None:
    faultctl.apply(a100.paths, "ecc_errors", {"slot": "2", "per_s": "2"}, "now")
    a100.tick(0.1)
    before = seen(a100, built)
    assert all(one.on and one.uncorrected == 0 for one, _ in before)
    work(a100)
    after = seen(a100, built)
    assert [one.uncorrected for one, _ in after] == [0, after[1][0].uncorrected, *[0] * 6]
    assert (after[1][0].uncorrected or 0) >= 5
    assert after[1][0].lifetime_uncorrected == after[1][0].uncorrected
    assert ": 48," in told(a100)[0].message
    cards = (h.gpu(0), h.gpu(1, ecc=before[1][0]))
    logs = h.with_logs(counters__jsonl=h.counters({"ecc": after[1][0].model_dump()}))
    found = ecc.ecc_errors(h.spec(), h.readings(facts=h.facts(gpus=cards), logs=logs), h.PROFILE)[1]
    assert (found.verdict, found.subject) == (Verdict.FAIL, h.SLOT2)


@NEEDS_COMPILER
def test_a_row_that_waits_is_found_and_goes_with_its_fault(a100: Daemon, built: Path) -> None:
    faultctl.apply(a100.paths, "row_remap_pending", {"slot": "2"}, "now")
    a100.tick(0.1)
    rows = seen(a100, built)[1][1]
    assert rows.pending
    assert rows.banks == {"max": 639, "high": 1, "partial": 0, "low": 0, "none": 0}
    logs = h.with_logs(counters__jsonl=h.counters({"remapped_rows": rows.model_dump()}))
    assert ecc.remapped_rows(h.spec(), h.readings(logs=logs), h.PROFILE)[1].verdict is Verdict.FAIL
    faultctl.clear(a100.paths, "row_remap_pending")
    a100.tick(0.1)
    assert not seen(a100, built)[1][1].pending


def test_cards_without_error_correction_count_nothing(daemon: Daemon) -> None:
    faultctl.apply(daemon.paths, "ecc_errors", {"slot": "2"}, "now")
    work(daemon)
    assert not [key for key in state_of(daemon) if ".ecc." in key or ".rows." in key]
    assert told(daemon) == []


def test_a_clock_that_nobody_keeps_is_found(daemon: Daemon, capsys: pytest.CaptureFixture[str]) -> None:
    def kept() -> TimeSyncFacts:
        asked = ["show", "--property=NTP", "--property=NTPSynchronized"]
        assert shims.NAMES["timedatectl"](daemon.paths, asked) == 0
        said = dict(line.split("=") for line in capsys.readouterr().out.splitlines())
        return TimeSyncFacts(service=said["NTP"] == "yes", synchronised=said["NTPSynchronized"] == "yes")

    daemon.tick(0.1)
    assert clock.time_sync(h.spec(), h.readings(facts=h.facts(time_sync=kept())))[0].verdict is Verdict.PASS
    faultctl.apply(daemon.paths, "time_sync_off", {}, "now")
    daemon.tick(0.1)
    assert clock.time_sync(h.spec(), h.readings(facts=h.facts(time_sync=kept())))[0].verdict is Verdict.FAIL


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (["show", "-p", "NTPSynchronized", "--value"], "yes\n"),
        (["show"], "NTP=yes\nNTPSynchronized=yes\n"),
        ([], "System clock synchronized: yes\n              NTP service: active\n"),
    ],
)
def test_timedatectl_answers_as_people_ask_it(
    daemon: Daemon, capsys: pytest.CaptureFixture[str], asked: list[str], said: str
) -> None:
    daemon.tick(0.1)
    assert shims.NAMES["timedatectl"](daemon.paths, asked) == 0
    assert capsys.readouterr().out == said
    assert shims.NAMES["timedatectl"](daemon.paths, ["set-ntp", "true"]) == 1


def test_without_the_fabric_manager_no_link_to_a_switch_is_up(a100: Daemon, capsys: pytest.CaptureFixture[str]) -> None:
    a100.tick(0.1)
    assert shims.NAMES["nv-fabricmanager"](a100.paths, ["--version"]) == 0
    assert capsys.readouterr().out == f"Fabric Manager version is : {VERSION}\n"
    assert state_of(a100)["gpu.0.link.0.active"] == "1"
    faultctl.apply(a100.paths, "fabric_manager_off", {}, "now")
    a100.tick(0.1)
    assert {value for key, value in state_of(a100).items() if key.endswith(".active")} == {"0"}
    module.unload(a100.paths)
    assert shims.NAMES["nv-fabricmanager"](a100.paths, []) == 1
