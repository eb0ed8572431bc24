"""A simulated rig without a container: its daemon, libraries and programs in temporary folders."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from rigctl.sim.machine.hardware.rigsim.build import build_machine
from rigctl.sim.machine.hardware.rigsim.daemon import Daemon
from rigctl.sim.machine.hardware.rigsim.identity import load_template, make_identity
from rigctl.sim.machine.hardware.rigsim.paths import Paths
from rigctl.sim.machine.hardware.rigsim.state import card_values, identity_values, link_values, read_state, render

if TYPE_CHECKING:
    from collections.abc import Iterator

MACHINE = Path(__file__).resolve().parents[2] / "rigctl" / "sim" / "machine"
VERSION = "515.105.01"
NEEDS_COMPILER = pytest.mark.skipif(shutil.which("gcc") is None or shutil.which("make") is None, reason="no C compiler")


@pytest.fixture(scope="session")
def identity() -> dict[str, Any]:
    return make_identity(load_template("dual_3090ti"), "rig1", seed=7)


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    return make_paths(tmp_path)


@pytest.fixture
def daemon(paths: Paths, identity: dict[str, Any]) -> Iterator[Daemon]:
    """A daemon that ticks when the test says so, at scale 10."""
    made = Daemon(paths, identity, {"time_scale": 10, "seed": 7}, port=0)
    made.start()
    yield made
    made.meter.set_online(online=False)


def make_paths(folder: Path) -> Paths:
    """Places of a rig under a temporary folder."""
    for name in ("run", "kept"):
        (folder / name).mkdir(exist_ok=True)
    return Paths(run=folder / "run", kept=folder / "kept", machine=folder / "machine")


def state_of(daemon: Daemon) -> dict[str, str]:
    """What the daemon shows now."""
    return read_state(daemon.paths.state)


def put_load(paths: Paths, *lines: str) -> None:
    """Let this process load cards."""
    (paths.loads / str(os.getpid())).write_text("".join(f"{line}\n" for line in lines), encoding="ascii")


@dataclass
class LiveRig:
    """A rig whose daemon runs, with the programs' environment."""

    paths: Paths
    environment: dict[str, str]

    def run(self, *command: str, cwd: Path | None = None, timeout_s: float = 60) -> subprocess.CompletedProcess[str]:
        """Run a program on the rig."""
        # Decoded by hand: carriage returns are part of what gpu-burn says.
        reply = subprocess.run(
            command, check=False, capture_output=True, env=self.environment, cwd=cwd, timeout=timeout_s
        )
        return subprocess.CompletedProcess(command, reply.returncode, reply.stdout.decode(), reply.stderr.decode())

    def smi(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return self.run(str(MACHINE / "smi" / "nvidia-smi"), *arguments)

    def fault(self, *arguments: str) -> dict[str, Any]:
        """Apply or clear a fault, and wait until the daemon has followed."""
        reply = self.run(sys.executable, "-m", "rigsim", "fault", *arguments, cwd=MACHINE / "hardware")
        assert reply.returncode == 0, reply.stderr
        self.settle()
        answer: dict[str, Any] = json.loads(reply.stdout)
        return answer

    def settle(self) -> None:
        """Wait for two more ticks."""
        seen = int(self.state()["sim.seq"])
        wait_for(lambda: int(self.state()["sim.seq"]) >= seen + 2)

    def state(self) -> dict[str, str]:
        return read_state(self.paths.state)


def wait_for(condition: Any, timeout_s: float = 10.0) -> None:
    """Wait until a condition holds."""
    end_s = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < end_s, "it did not happen in time"
        time.sleep(0.02)


def build(target: str, folder: Path, *variables: str) -> None:
    """Run one of the simulation's makefiles."""
    command = ["make", "-s", "-C", str(MACHINE / folder), *([target] if target else []), *variables]
    subprocess.run(command, check=True, capture_output=True, timeout=120)


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Libraries of 515 and a toolkit 11.7, compiled once."""
    if shutil.which("gcc") is None or shutil.which("make") is None:
        pytest.skip("no C compiler")
    out = tmp_path_factory.mktemp("built")
    build("", Path("nvml"), "BRANCH=515", f"VERSION={VERSION}", f"OUT={out / 'lib'}")
    build("driver", Path("cuda"), "BRANCH=515", f"VERSION={VERSION}", f"OUT={out / 'lib'}")
    build("toolkit", Path("cuda"), "TOOLKIT=11.7", f"OUT={out / 'cuda-11.7'}")
    for name in ("libnvidia-ml", "libcuda"):
        (out / "lib" / f"{name}.so.1").symlink_to(f"{name}.so.{VERSION}")
    return out


@pytest.fixture(scope="package")
def live_rig(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveRig]:
    """A rig with its daemon running at scale 40 and the module loaded."""
    paths = make_paths(tmp_path_factory.mktemp("rig"))
    paths.tuning.write_text('{"time_scale": 40, "seed": 7}', encoding="ascii")
    environment = os.environ | {
        "RIGSIM_RUN": str(paths.run),
        "RIGSIM_KEPT": str(paths.kept),
        "RIGSIM_LIB": str(MACHINE),
        "RIGSIM_METER_PORT": "0",
        "LD_LIBRARY_PATH": str(built / "lib"),
        "PATH": f"{MACHINE / 'smi'}:{os.environ['PATH']}",
    }
    command = [sys.executable, "-m", "rigsim"]
    words = paths.run / "daemon.log"
    with words.open("wb") as log:
        process = subprocess.Popen([*command, "run"], cwd=MACHINE / "hardware", env=environment, stderr=log)
    rig = LiveRig(paths, environment)
    try:
        wait_for(paths.state.exists)
        assert rig.run(*command, "module", "load", VERSION, cwd=MACHINE / "hardware").returncode == 0
        yield rig
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=10) == 0, words.read_text(encoding="utf-8")


@pytest.fixture
def rig(live_rig: LiveRig) -> Iterator[LiveRig]:
    """The live rig, without the faults of the test before."""
    yield live_rig
    live_rig.fault("clear")


def tick_free_state() -> str:
    """A prepared state of two cards at rest, which never ages."""
    identity = make_identity(load_template("dual_3090ti"), "rig1", seed=7)
    machine = build_machine(identity)
    values: dict[str, object] = {
        "sim.stale_after_s": 0,
        "cpu.threads": 24,
        "topology.common_ancestor": 30,
        "gpu.count": 2,
    }
    bus_ids = {int(own["slot"]): str(own["pci_bus_id"]) for own in identity["cards"]}
    for index, (own, card) in enumerate(zip(identity["cards"], machine.cards, strict=True)):
        values |= identity_values(f"gpu.{index}", identity, own)
        values |= card_values(f"gpu.{index}", identity, card, [], 0)
        values |= link_values(f"gpu.{index}", identity, int(own["slot"]), bus_ids, frozenset())
    return render(values)
