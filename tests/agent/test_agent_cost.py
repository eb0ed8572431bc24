"""What watching costs: the guard as it samples eight cards, in processor time and memory of its own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import rigctl
from rigctl.fleet.bundle import build_bundle

SOURCE = Path(rigctl.__file__).parent / "sim" / "machine" / "nvml"
CARDS = 8
SECONDS = 8
MOST_CPU_SHARE = 0.01
MOST_MEMORY_MIB = 40
WATCH = r"""
import json, re, sys, time
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from rigctl_agent import announce, guard, kernel
from rigctl_agent.notify import Notifier
from rigctl_agent.places import Places, write_atomically
from rigctl_agent.plan import parse_plan
from rigctl_agent.sensors import Sensors

kernel.read_entries = lambda _after=None: ([], None)
plan = parse_plan(sys.stdin.read())
places = Places(Path(sys.argv[2]) / "spool", Path(sys.argv[2]) / "run")
places.spool(plan.run_id).mkdir(parents=True)
write_atomically(places.heartbeat(plan.run_id), str(time.monotonic()))
began = []
real = guard.Guard._turn
def turn(self, seen):
    began or began.append((time.process_time(), time.monotonic()))
    real(self, seen)
guard.Guard._turn = turn
one = guard.Guard(plan, places, Sensors(plan.expected_gpus, None), Notifier(None))
one.run()
cpu_s, at_s = began[0]
share = (time.process_time() - cpu_s) / (time.monotonic() - at_s)
# Not getrusage: there the parent's own peak counts.
peak_kib = int(re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text()).group(1))
print(json.dumps({"share": share, "memory_mib": peak_kib / 1024, "samples": one.sampler.count}))
"""


def state() -> str:
    """Eight cards with four links each, as NVML's library reads them."""
    lines = {"gpu.count": CARDS, "cpu.threads": 24, "sim.stale_after_s": 0}
    for index in range(CARDS):
        card = {
            "uuid": f"GPU-{index:08d}",
            "pci_bus_id": f"00000000:{index + 1:02X}:00.0",
            "name": "NVIDIA GeForce RTX 3090 Ti",
            "temp_c": 50,
            "temp_slowdown_c": 94,
            "power_mw": 440_000,
            "throttle": 4,
            "links": 4,
        }
        card |= {f"link.{link}.active": 1 for link in range(4)}
        lines |= {f"gpu.{index}.{key}": value for key, value in card.items()}
    return "".join(f"{key} {value}\n" for key, value in lines.items())


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("make") is None or shutil.which("cc") is None:
        pytest.skip("no C compiler here")
    folder = tmp_path_factory.mktemp("nvml")
    command = ["make", "-s", "-C", str(SOURCE), "BRANCH=515", "VERSION=515.105.01", f"OUT={folder}"]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    (folder / "libnvidia-ml.so.1").symlink_to("libnvidia-ml.so.515.105.01")
    (folder / "bundle.pyz").write_bytes(build_bundle().data)
    return folder


def watch(library: Path, folder: Path, hz: float) -> dict[str, float]:
    (folder / "state").write_text(state())
    module = folder / "sys/module/nvidia"
    module.mkdir(parents=True)
    (module / "version").write_text("515.105.01\n")
    plan = {
        "run_id": "cost",
        "sample_hz": hz,
        "controller_lost_s": 600,
        "max_gpu_temp_c": 85,
        "stale_sample_s": 30,
        "expected_gpus": [f"GPU-{index:08d}" for index in range(CARDS)],
        "gpu_burn_dir": "/nowhere",
        "torch_venv": "/nowhere",
        "steps": [{"name": "idle", "seconds": SECONDS, "loads": []}],
    }
    done = subprocess.run(
        [sys.executable, "-I", "-c", WATCH, str(library / "bundle.pyz"), str(folder)],
        input=json.dumps(plan).encode(),
        env={"PATH": os.environ["PATH"], "LD_LIBRARY_PATH": str(library), "RIGSIM_RUN": str(folder)},
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    answer: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return answer


def test_watching_eight_cards_once_a_second_costs_next_to_nothing(library: Path, tmp_path: Path) -> None:
    cost = watch(library, tmp_path, 1)
    assert cost["samples"] >= 0.7 * SECONDS
    assert cost["memory_mib"] <= MOST_MEMORY_MIB
    assert cost["share"] <= MOST_CPU_SHARE, cost


def test_ten_samples_a_second_of_eight_cards_work(library: Path, tmp_path: Path) -> None:
    cost = watch(library, tmp_path, 10)
    assert cost["samples"] >= 0.5 * 10 * SECONDS, "this machine may be busy"
