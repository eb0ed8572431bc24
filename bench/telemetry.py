"""What watching costs: the agent's guard as it samples eight cards, in processor time and memory of its own.

The agent is the bundle that goes to rigs; the cards are those of the simulation's NVML library, built here for the
reference branch. Nothing is put to work: what is measured is the watching.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import rigctl
from bench.figure import Figure, figure
from bench.stage import OUTPUT_LINES, BenchFailed
from rigctl.fleet.bundle import build_bundle

if TYPE_CHECKING:
    from bench.stage import Stage

NAME = "telemetry"
SOURCE = Path(rigctl.__file__).parent / "sim" / "machine" / "nvml"
BRANCH, VERSION = "515", "515.105.01"
CARDS, LINKS = 8, 4
SECONDS, FAST_SECONDS = 60, 20
REPEATS = 3
FAST_HZ = 10
MOST_CPU_PERCENT, MOST_MEMORY_MIB = 1, 40
LEAST_RATE_SHARE = 0.95
TIMEOUT_S = 120
HOW = f"the agent's guard over {CARDS} cards with {LINKS} links each, {SECONDS} s at rest at 1 Hz, on this machine"
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
seconds = time.monotonic() - at_s
share = (time.process_time() - cpu_s) / seconds
# Not getrusage: there the parent's own peak counts.
peak_kib = int(re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text()).group(1))
told = {"share": share, "memory_mib": peak_kib / 1024, "samples": one.sampler.count, "seconds": seconds}
print(json.dumps(told))
"""
"""Runs the guard as its unit does, without systemd and kernel log, and tells its cost from its first decision on."""


def build_library(folder: Path) -> Path:
    """Build NVML's library and the agent's bundle into a folder, and return it. Raises BenchFailed."""
    if shutil.which("make") is None or shutil.which("cc") is None:
        raise BenchFailed("no C compiler here")
    command = ["make", "-s", "-C", str(SOURCE), f"BRANCH={BRANCH}", f"VERSION={VERSION}", f"OUT={folder}"]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=TIMEOUT_S)
    if done.returncode != 0:
        raise BenchFailed("\n".join(done.stderr.splitlines()[-OUTPUT_LINES:]))
    (folder / "libnvidia-ml.so.1").symlink_to(f"libnvidia-ml.so.{VERSION}")
    (folder / "bundle.pyz").write_bytes(build_bundle().data)
    return folder


def state() -> str:
    """Return eight cards with four links each, as NVML's library reads them."""
    lines: dict[str, object] = {"gpu.count": CARDS, "cpu.threads": 24, "sim.stale_after_s": 0}
    for index in range(CARDS):
        card: dict[str, object] = {
            "uuid": f"GPU-{index:08d}",
            "pci_bus_id": f"00000000:{index + 1:02X}:00.0",
            "name": "NVIDIA GeForce RTX 3090 Ti",
            "temp_c": 50,
            "temp_slowdown_c": 94,
            "power_mw": 440_000,
            "throttle": 4,
            "links": LINKS,
        }
        card |= {f"link.{link}.active": 1 for link in range(LINKS)}
        lines |= {f"gpu.{index}.{key}": value for key, value in card.items()}
    return "".join(f"{key} {value}\n" for key, value in lines.items())


def watch(library: Path, folder: Path, hz: float, seconds: float) -> dict[str, float]:
    """Watch for so long at so many samples a second; return share of one core, MiB, samples and seconds.

    Raises BenchFailed: the guard broke.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "state").write_text(state(), encoding="ascii")
    module = folder / "sys/module/nvidia"
    module.mkdir(parents=True)
    (module / "version").write_text(f"{VERSION}\n", encoding="ascii")
    plan = {
        "run_id": "cost",
        "sample_hz": hz,
        "controller_lost_s": 600,
        "max_gpu_temp_c": 85,
        "stale_sample_s": 30,
        "expected_gpus": [f"GPU-{index:08d}" for index in range(CARDS)],
        "gpu_burn_dir": "/nowhere",
        "torch_venv": "/nowhere",
        "steps": [{"name": "idle", "seconds": seconds, "loads": []}],
    }
    done = subprocess.run(
        [sys.executable, "-I", "-c", WATCH, str(library / "bundle.pyz"), str(folder)],
        input=json.dumps(plan).encode(),
        env={"PATH": os.environ["PATH"], "LD_LIBRARY_PATH": str(library), "RIGSIM_RUN": str(folder)},
        capture_output=True,
        timeout=seconds + TIMEOUT_S,
        check=False,
    )
    if done.returncode != 0:
        raise BenchFailed("\n".join(done.stderr.decode(errors="replace").splitlines()[-OUTPUT_LINES:]))
    answer: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return answer


def measure(stage: Stage) -> list[Figure]:
    """Watch at 1 Hz, several times, then at 10 Hz; needs no rig of the stage."""
    place = stage.folder / "telemetry"
    place.mkdir()
    library = build_library(place)
    slow = [watch(library, place / f"slow{number}", 1, SECONDS) for number in range(REPEATS)]
    fast = watch(library, place / "fast", FAST_HZ, FAST_SECONDS)
    rate = fast["samples"] / fast["seconds"]
    often = f"the same, {FAST_SECONDS} s at {FAST_HZ} Hz"
    return [
        figure(
            "telemetry: the agent's own CPU time",
            [100 * one["share"] for one in slow],
            "% of one core",
            HOW,
            goal=("≤", MOST_CPU_PERCENT),
        ),
        figure(
            "telemetry: the agent's memory",
            [one["memory_mib"] for one in [*slow, fast]],
            "MiB",
            f"{HOW}; its peak",
            goal=("≤", MOST_MEMORY_MIB),
        ),
        figure("telemetry: samples a second", [rate], "Hz", often, goal=("≥", LEAST_RATE_SHARE * FAST_HZ)),
        figure("telemetry: the agent's own CPU time at 10 Hz", [100 * fast["share"]], "% of one core", often),
    ]
