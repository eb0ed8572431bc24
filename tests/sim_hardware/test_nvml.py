"""The NVML library, asked through NVIDIA's own Python binding in a process of its own."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from rigctl.sim.machine.hardware.rigsim import faultctl

from .conftest import MACHINE, NEEDS_COMPILER, VERSION, LiveRig, build, make_paths, tick_free_state

pytestmark = NEEDS_COMPILER
SYMBOLS = (
    Path(os.environ.get("RIGCTL_CORPUS", MACHINE.parents[3] / "shared" / "corpus")).parent / "data" / "nvml_symbols.csv"
)
ASK = """
import json, sys
import pynvml
from pynvml import *

def ask(call, *arguments):
    try:
        return getattr(pynvml, call)(*arguments)
    except NVMLError as failed:
        return f"error {failed.value}"

print(json.dumps(eval(sys.argv[1])))
"""
START = """
[nvmlInit(), (cards := [nvmlDeviceGetHandleByIndex(i) for i in range(nvmlDeviceGetCount())])] and {}
"""


def ask(rig: LiveRig, expression: str) -> object:
    """The value of an expression in a fresh process; `cards` are the handles."""
    reply = rig.run(sys.executable, "-c", ASK, START.format(expression).strip())
    assert reply.returncode == 0, reply.stderr
    return json.loads(reply.stdout)


@pytest.fixture
def still_rig(built, tmp_path) -> LiveRig:
    """A rig with a prepared state and no daemon."""
    paths = make_paths(tmp_path)
    paths.state.write_text(tick_free_state())
    paths.control.mkdir()
    paths.module_version.parent.mkdir(parents=True)
    paths.module_version.write_text(f"{VERSION}\n")
    return LiveRig(paths, os.environ | {"RIGSIM_RUN": str(paths.run), "LD_LIBRARY_PATH": str(built / "lib")})


def test_versions(still_rig):
    expression = (
        "[nvmlSystemGetDriverVersion(), nvmlSystemGetNVMLVersion(), nvmlSystemGetCudaDriverVersion_v2(), len(cards)]"
    )
    assert ask(still_rig, expression) == [VERSION, f"11.{VERSION}", 11070, 2]


def test_identity(still_rig):
    expression = (
        "[[nvmlDeviceGetName(c), nvmlDeviceGetPciInfo(c).busId, nvmlDeviceGetVbiosVersion(c),"
        " nvmlDeviceGetMinorNumber(c), nvmlDeviceGetIndex(c), nvmlDeviceGetBrand(c), nvmlDeviceGetArchitecture(c),"
        " list(nvmlDeviceGetCudaComputeCapability(c)), nvmlDeviceGetUUID(c)[:4]] for c in cards]"
    )
    name, vbios = "NVIDIA GeForce RTX 3090 Ti", "94.02.A0.00.63"
    assert ask(still_rig, expression) == [
        [name, "00000000:01:00.0", vbios, 0, 0, 5, 7, [8, 6], "GPU-"],
        [name, "00000000:02:00.0", vbios, 1, 1, 5, 7, [8, 6], "GPU-"],
    ]


def test_handles_can_be_found_in_three_ways(still_rig):
    expression = (
        "[nvmlDeviceGetIndex(nvmlDeviceGetHandleByUUID(nvmlDeviceGetUUID(cards[1]))),"
        " nvmlDeviceGetIndex(nvmlDeviceGetHandleByPciBusId('0000:02:00.0')),"
        " ask('nvmlDeviceGetHandleByIndex', 2), ask('nvmlDeviceGetHandleByPciBusId', '0000:09:00.0')]"
    )
    assert ask(still_rig, expression) == [1, 1, "error 2", "error 6"]


def test_electricity_heat_and_clocks(still_rig):
    expression = (
        "[nvmlDeviceGetPowerUsage(cards[0]), list(nvmlDeviceGetPowerManagementLimitConstraints(cards[0])),"
        " nvmlDeviceGetPowerManagementDefaultLimit(cards[0]), nvmlDeviceGetTemperature(cards[0], 0),"
        " [nvmlDeviceGetTemperatureThreshold(cards[0], i) for i in (0, 1, 3, 5)],"
        " nvmlDeviceGetClockInfo(cards[0], 1), nvmlDeviceGetMaxClockInfo(cards[0], 2),"
        " nvmlDeviceGetPerformanceState(cards[0]), nvmlDeviceGetFanSpeed(cards[0]),"
        " nvmlDeviceGetFanSpeed_v2(cards[0], 1)]"
    )
    found = ask(still_rig, expression)
    assert found == [14000, [100_000, 480_000], 450_000, 24, [97, 94, 92, 83], 210, 10501, 8, 0, 0]


def test_memory_in_both_forms(still_rig):
    expression = (
        "[[m.total, m.used] for m in (nvmlDeviceGetMemoryInfo(cards[0]),"
        " nvmlDeviceGetMemoryInfo(cards[0], nvmlMemory_v2))] + [ask('nvmlDeviceGetMemoryInfo', cards[0], 7)]"
    )
    mib = 1 << 20
    assert ask(still_rig, expression) == [[24564 * mib, 317 * mib], [24564 * mib, mib], "error 25"]


@pytest.mark.parametrize(
    "call",
    [
        "'nvmlDeviceGetSerial', cards[0]",
        "'nvmlDeviceGetEccMode', cards[0]",
        "'nvmlDeviceGetMigMode', cards[0]",
        "'nvmlDeviceGetTemperatureThreshold', cards[0], 2",
        "'nvmlDeviceGetRemappedRows', cards[0]",
        "'nvmlDeviceGetNvLinkState', cards[0], 4",
        "'nvmlDeviceGetSupportedMemoryClocks', cards[0]",
    ],
)
def test_what_geforce_does_not_expose(still_rig, call):
    assert ask(still_rig, f"ask({call})") == "error 3"


def test_memory_temperature_is_no_field_here(still_rig):
    expression = "[[v.nvmlReturn, v.value.uiVal] for v in nvmlDeviceGetFieldValues(cards[0], [82, 84, 90, 91])]"
    assert ask(still_rig, expression) == [[3, 0], [0, 14062], [0, 14062], [0, 4]]


def test_links_and_topology(still_rig):
    expression = (
        "[[nvmlDeviceGetNvLinkState(cards[0], i) for i in range(4)],"
        " nvmlDeviceGetNvLinkRemotePciInfo(cards[0], 0).busId, nvmlDeviceGetNvLinkVersion(cards[0], 0),"
        " [nvmlDeviceGetNvLinkErrorCounter(cards[0], 0, i) for i in range(4)],"
        " nvmlDeviceGetTopologyCommonAncestor(cards[0], cards[1]), nvmlDeviceGetP2PStatus(cards[0], cards[1], 0),"
        " list(nvmlDeviceGetCpuAffinity(cards[0], 1))]"
    )
    assert ask(still_rig, expression) == [[1, 1, 1, 1], "00000000:02:00.0", 3, [0, 0, 0, 0], 30, 0, [(1 << 24) - 1]]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may set limits")
def test_power_limit_is_set_at_once_and_within_the_range(still_rig):
    expression = (
        "[ask('nvmlDeviceSetPowerManagementLimit', cards[1], 470000), nvmlDeviceGetPowerManagementLimit(cards[1]),"
        " nvmlDeviceGetEnforcedPowerLimit(cards[1]), nvmlDeviceGetPowerManagementLimit(cards[0]),"
        " ask('nvmlDeviceSetPowerManagementLimit', cards[1], 490000), ask('nvmlDeviceSetPersistenceMode', cards[1], 1),"
        " nvmlDeviceGetPersistenceMode(cards[1])]"
    )
    assert ask(still_rig, expression) == [None, 470_000, 470_000, 450_000, "error 2", None, 1]


def test_a_card_that_keeps_to_less_than_it_is_told_shows_both(rig):
    expression = "[[nvmlDeviceGetPowerManagementLimit(c), nvmlDeviceGetEnforcedPowerLimit(c)] for c in cards]"
    (one, _), (other, _) = told = ask(rig, expression)
    assert told == [[one, one], [other, other]]
    faultctl.apply(rig.paths, "power_limit_low", {"slot": "2"}, "now")
    rig.settle()
    assert ask(rig, expression) == [[one, one], [other, 300_000]]


def test_processes_of_a_card(rig, tmp_path):
    sleeper = subprocess.Popen(["sleep", "60"])
    try:
        (rig.paths.loads / str(sleeper.pid)).write_text("gpu 1 compute 0.0 500\n")
        rig.settle()
        expression = (
            "[[[p.pid, p.usedGpuMemory] for p in f(c)] for c in cards"
            " for f in (nvmlDeviceGetComputeRunningProcesses, nvmlDeviceGetComputeRunningProcesses_v2)]"
        )
        mine = [[sleeper.pid, 500 << 20]]
        assert ask(rig, expression) == [[], [], mine, mine]
    finally:
        sleeper.kill()
        sleeper.wait()


def first_error(rig: LiveRig) -> str:
    code = "from pynvml import *\ntry:\n    nvmlInit()\nexcept NVMLError as failed:\n    print(failed.value)"
    return rig.run(sys.executable, "-c", code).stdout.strip()


def test_no_driver(still_rig):
    still_rig.paths.module_version.unlink()
    assert first_error(still_rig) == "9"


def test_library_and_module_differ(still_rig):
    still_rig.paths.module_version.write_text("515.65.01\n")
    assert first_error(still_rig) == "18"


def test_hardware_that_does_not_answer_is_an_error(still_rig):
    still_rig.paths.state.write_text(tick_free_state().replace("sim.stale_after_s 0", "sim.stale_after_s 5"))
    assert first_error(still_rig) == "999"


def test_a_lost_card(still_rig):
    still_rig.paths.state.write_text(tick_free_state().replace("gpu.1.lost 0", "gpu.1.lost 1"))
    expression = "[nvmlInit(), nvmlDeviceGetCount(), ask('nvmlDeviceGetHandleByIndex', 1)][1:]"
    reply = still_rig.run(sys.executable, "-c", ASK, expression)
    assert json.loads(reply.stdout) == [2, "error 15"]


def test_a_handle_stays_its_cards_own(rig):
    code = (
        "import sys\nfrom pynvml import *\nnvmlInit()\ncards = [nvmlDeviceGetHandleByIndex(i) for i in (0, 1)]\n"
        "print('ready', flush=True)\nsys.stdin.readline()\n"
        "try:\n    nvmlDeviceGetTemperature(cards[0], 0)\nexcept NVMLError as failed:\n    print(failed.value)\n"
        "print(nvmlDeviceGetIndex(cards[1]))"
    )
    command = [sys.executable, "-c", code]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=rig.environment
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        rig.fault("apply", "card_missing", "slot=1")
        out, _ = process.communicate("go\n", timeout=20)
    assert out.split() == ["15", "0"]


@pytest.mark.parametrize(
    ("branch", "version"), [("470", "470.256.02"), ("515", VERSION), ("525", "525.147.05"), ("535", "535.183.01")]
)
def test_each_branch_has_the_symbols_of_the_real_one(tmp_path, branch, version):
    if not SYMBOLS.exists():
        pytest.skip(f"no table of symbols at {SYMBOLS}")
    build("", Path("nvml"), f"BRANCH={branch}", f"VERSION={version}", f"OUT={tmp_path}")
    command = ["nm", "-D", "--defined-only", str(tmp_path / f"libnvidia-ml.so.{version}")]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    ours = {line.split()[-1] for line in lines}
    column = "in_515_header" if branch == "515" else f"in_{branch}"
    with SYMBOLS.open(encoding="utf-8") as table:
        rows = [(row["native_symbol"], row[column] == "yes") for row in csv.DictReader(table)]
    assert rows
    assert {name for name, there in rows if there} - ours == set()
    assert {name for name, there in rows if not there} & ours == set()
    assert {name for name in ours if not name.startswith("nvml")} == set()
