"""Rigs of every shipped class without a container: the daemon's physics, the agent's eyes, a run directory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rigctl.inventory import load_fleet
from rigctl.model.reading import DriverFacts, Facts, Readings, RigEvent, Sample
from rigctl.model.run import RunRig
from rigctl.model.spec import ProfileSpec
from rigctl.sim import inventory
from rigctl.sim.machine.hardware.rigsim import faultctl, module
from rigctl.sim.machine.hardware.rigsim.daemon import Daemon
from rigctl.sim.machine.hardware.rigsim.identity import load_template, make_identity
from rigctl.sim.state import SimulatedRig, State
from rigctl.store import RunDir
from tests.acceptance.test_judge import ANSWERS, STARTED, write
from tests.checks import healthy as h
from tests.sim_hardware.conftest import MACHINE, VERSION, make_paths, put_load

if TYPE_CHECKING:
    from pathlib import Path

    from rigctl.model.rig import Rig

_SHOWN = """
topology.gpu_count topology.gpu_model topology.gpu_memory topology.nvlink topology.nvlink_speed topology.pcie_gen
topology.pcie_width thermals.settled_gpu_temp thermals.throttle thermals.guard power.limit power.share_of_limit
power.wall throughput.gpu_burn throughput.burn_gflops software.gpu_burn_build measure.telemetry
"""
SHOWN = frozenset(_SHOWN.split())
"""What such a rig shows: the checks of its shape and its burn. What takes a whole machine is tried on one."""
BURN_S = 20
TICKS_A_SAMPLE = 5
TICK_S = 0.1
TIME_SCALE = 40
PROFILE = ProfileSpec(
    idle_seconds=2, cpu_burn_seconds=0, gpu_burn_seconds=BURN_S, all_burn_seconds=0, train=False, sample_hz=2
)
EYES = """
import json, sys
from rigctl.agent import facts, nvml
opened = nvml.Nvml()
for line in sys.stdin:
    seen = facts.read_facts("/opt/gpuburn", "/opt/torch") if line == "facts\\n" else [
        nvml.sample_card(card) for card in opened.cards
    ]
    print(json.dumps(seen), flush=True)
"""


def fleet_of(folder: Path, rig_class: str) -> Rig:
    """The rig of a simulated park of this class, with software that the libraries here are."""
    rigs = (SimulatedRig(name="rig1", container="none", port=40001, host_key="ssh-ed25519 AAAA"),)
    state = State(directory=folder, rig_class=rig_class, archive="2022", time_scale=20, image="none", seed=0, rigs=rigs)
    inventory.write_inventory(state, "0" * 40)
    (rig,) = load_fleet(state.inventory)
    software = h.spec().software.model_copy(update={"power_limit_w": rig.spec.software.power_limit_w})
    return rig.model_copy(update={"spec": rig.spec.model_copy(update={"software": software})})


@dataclass
class Shape:
    """One rig of a class."""

    folder: Path
    rig_class: str
    libraries: Path
    faults: tuple[tuple[str, dict[str, str]], ...] = ()
    samples: list[Sample] = field(default_factory=list)
    rows: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.paths = make_paths(self.folder)
        identity = make_identity(load_template(self.rig_class), "rig1", seed=3)
        self.daemon = Daemon(self.paths, identity, {"time_scale": TIME_SCALE, "seed": 3}, port=0)
        self.daemon.start()
        module.load(self.paths, VERSION)
        for name, parameters in self.faults:
            faultctl.apply(self.paths, name, parameters, "now")
        self.daemon.tick(TICK_S)
        self.environment = os.environ | {
            "RIGSIM_RUN": str(self.paths.run),
            "LD_LIBRARY_PATH": str(self.libraries),
            "PATH": f"{MACHINE / 'smi'}:{os.environ['PATH']}",
        }

    def smi(self, *words: str) -> str:
        """What the simulated nvidia-smi prints."""
        command = [str(MACHINE / "smi" / "nvidia-smi"), *words]
        return subprocess.run(
            command, check=True, capture_output=True, text=True, env=self.environment, timeout=30
        ).stdout

    def answers(self) -> dict[str, str]:
        """What testinfra's questions get."""
        return {**ANSWERS, "topo -m": self.smi("topo", "-m"), "nvlink -s": self.smi("nvlink", "-s")}

    def accept(self, rig: Rig) -> RunDir:
        """A run directory with everything that was measured in idle and GPU burn."""
        if rig.spec.software.power_limit_w is not None:
            self.smi("-pl", str(rig.spec.software.power_limit_w))
        readings = self._measure()
        wanted = (RunRig(name="rig1", spec=rig.spec, profile=PROFILE),)
        run = RunDir.create(self.folder / "runs", "accept", rigs=wanted, profile="standard", now=STARTED)
        write(run, readings)
        return run

    def _measure(self) -> Readings:
        command = [sys.executable, "-c", EYES]
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=self.environment
        ) as eyes:
            facts = self._facts(ask(eyes, "facts"))
            self._step(eyes, "idle", 2)
            names = [str(index) for index in range(len(facts.gpus))]
            put_load(self.paths, *(f"gpu {name} compute 1.0 20000" for name in names))
            self._step(eyes, "gpu_burn", BURN_S)
            put_load(self.paths)
        log = h.burn_log(self.rows, ("OK",) * len(names), seconds=BURN_S)
        lines = [line for line in log.splitlines(keepends=True) if not line.startswith("GPU ")]
        lines[2:2] = [f"GPU {gpu.index}: {gpu.name} (UUID: {gpu.uuid})\n" for gpu in facts.gpus]
        return Readings(
            rig="rig1",
            facts=facts,
            samples=tuple(self.samples),
            events=events(),
            logs={"gpu_burn.log": "".join(lines), "restored.json": h.logs()["restored.json"]},
            kernel_read=True,
            boot_id_after=h.BOOT,
        )

    def _facts(self, seen: dict[str, Any]) -> Facts:
        whole = Facts.model_validate(seen)
        driver = DriverFacts(loaded=VERSION, library=VERSION, cuda_driver="11.7")
        capabilities = str(sorted({gpu.compute_capability for gpu in whole.gpus}))
        healthy = h.facts()
        build = {**healthy.tools.gpu_burn_build, "compute_capabilities": capabilities}
        tools = healthy.tools.model_copy(update={"gpu_burn_build": build})
        # The agent sees the disks and network of the machine that runs these tests, whatever that is.
        parts = {name: getattr(healthy, name) for name in ("disks", "filesystems", "network")}
        return whole.model_copy(update={"boot_id": h.BOOT, "driver": driver, "tools": tools, "errors": (), **parts})

    def _step(self, eyes: subprocess.Popen[str], step: str, seconds: float) -> None:
        for tick in range(round(seconds / TICK_S)):
            self.daemon.tick(TICK_S)
            if tick % TICKS_A_SAMPLE == 0:
                self._sample(ask(eyes, "sample"), step)
            if step == "gpu_burn" and tick % 30 == 29:  # a row of gpu-burn every three seconds
                self._row(100 * (tick + 1) * TICK_S / seconds)

    def _sample(self, cards: list[dict[str, Any]], step: str) -> None:
        t = len(self.samples) / PROFILE.sample_hz
        machine = self.daemon.machine
        seen = {"cpu_temp_c": machine.cpu_temp_c, "wall_power_w": self.daemon.wall_w, "gpus": cards, "step": step}
        stamps = {"seq": len(self.samples), "t_mono_s": 1000 + t, "t_wall_s": h.T0 + t, "boot_id": h.BOOT}
        self.samples.append(Sample.model_validate(stamps | seen))

    def _row(self, percent: float) -> None:
        cards = self.daemon.present()
        rates = tuple(round(card.gflops) for card in cards)
        self.rows.append(h.row(percent, (400,) * len(cards), rates, ("0 ",) * len(cards)))


def ask(eyes: subprocess.Popen[str], word: str) -> Any:
    """One look through the agent's code."""
    assert eyes.stdin is not None
    assert eyes.stdout is not None
    eyes.stdin.write(f"{word}\n")
    eyes.stdin.flush()
    return json.loads(eyes.stdout.readline())


def events() -> tuple[RigEvent, ...]:
    """What the guard tells of such a plan."""
    end = 2.0 + BURN_S
    pid: dict[str, object] = {"load": "gpu", "pid": 4080}
    told: list[tuple[float, str, str | None, dict[str, object]]] = [
        (0, "step_started", "idle", {"loads": []}),
        (2, "step_finished", "idle", {}),
        (2, "step_started", "gpu_burn", {"loads": ["gpu"]}),
        (2, "load_started", "gpu_burn", {**pid, "argv": ["./gpu_burn", "-c", "compare.fatbin", str(BURN_S)]}),
        (end, "load_exited", "gpu_burn", {**pid, "exit_status": 0, "seconds": BURN_S + 0.2}),
        (end, "step_finished", "gpu_burn", {}),
        (end, "plan_finished", None, {}),
    ]
    return tuple(
        RigEvent(seq=seq, t_mono_s=1000 + t, t_wall_s=h.T0 + t, event=event, step=step, detail=detail)
        for seq, (t, event, step, detail) in enumerate(told)
    )
