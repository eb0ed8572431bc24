"""One night of one rig: the plan of a real acceptance, carried out on simulated hardware in a fraction of a second."""

from __future__ import annotations

import json
import random
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from rigctl.measure.claim import Claim
from rigctl.measure.plan import LOADS, build_plan, history_limits, step_seconds
from rigctl.model.reading import GpuSample, KernelMessage, Readings, Sample
from rigctl.sim.machine.hardware.rigsim import thermal
from rigctl.sim.nights import parts, shown
from rigctl.sim.nights.answers import host_of
from rigctl.sim.nights.board import Board
from rigctl.sim.nights.facts import PROBE_S, read_facts
from rigctl.sim.nights.telling import MONO_S, Telling
from rigctl.sim.nights.watch import Watch
from rigctl.sim.nights.work import GpuBurn, asked_of, stress_ng, workloads

if TYPE_CHECKING:
    from testinfra.host import Host

    from rigctl.model.baseline import Baseline
    from rigctl.model.reading import Facts
    from rigctl.model.spec import ProfileSpec, RigSpec
    from rigctl.sim.nights.hardware import Hardware

RESTED_S = 120.0
"""A rig that has been on for a while rests warmer than its room."""
RAMP_STEPS = 4
RAMP_SHARE = 0.1
"""As the guard's ramp: so many steps, and this share of a burn at most."""
PROBE_LIMIT_S = 20
PROBED = ("nvidia-smi topo -m", "nvidia-smi nvlink -s")
STUCK = "process 4711 is in state D in nvidia_ioctl and resists SIGKILL"
NO_ANSWER = "the driver did not answer within 5 s"
TACHOMETERS = "nct6798"
ANSWER_S = 0.05
"""A rig's answer is on its way for so long."""
ENDING_S = 1.0
"""Between two steps a load ends and the next one begins, seconds."""
BOOT = "00000000-0000-4000-8000-{seed:012x}"


@dataclass(frozen=True)
class Asked:
    """What is asked of a rig in one night."""

    name: str
    spec: RigSpec
    profile: ProfileSpec
    baseline: Baseline | None = None
    wall_s: float = 1_790_000_000.0
    """The time of day at its beginning."""


@dataclass
class Night:
    """Measures one rig once."""

    asked: Asked
    rig: Hardware
    seed: int = 0
    _samples: list[Sample] = field(default_factory=list)
    _logs: dict[str, str] = field(default_factory=dict)
    _counted: list[dict[str, Any]] = field(default_factory=list)
    _stopped: str | None = None

    def __post_init__(self) -> None:
        """Set what the roles set."""
        self._told = Telling(self.asked.wall_s)
        self._boot = BOOT.format(seed=self.seed)
        self._chance = random.Random(f"{self.seed}:work")  # noqa: S311 - noise, to be repeatable
        limit_w = self.asked.spec.software.power_limit_w
        if limit_w is not None:
            self.rig.limits_w = dict.fromkeys(self.rig.limits_w, float(limit_w))

    def measure(self) -> tuple[Readings, Host]:
        """Return what came home, and the rig as it answers the suite's own questions afterwards."""
        self.rig.tick(RESTED_S)
        self._begun_s = self.rig.passed_s
        with Board(self.rig) as board:
            facts = read_facts(self.rig, board, self.asked.spec, self._boot)
            self._links = {card.parts.slot: self._active_links(card) for card in self.rig.present()}
            self._watch = Watch(self._plan(facts), facts)
            self._sample("before")
            self._count(board, "before")
            for step, seconds in step_seconds(self.asked.spec, self.asked.profile).items():
                self._step(step, seconds)
            self._sample("after")
            self._count(board, "after")
        detail = {"stopped": self._stopped, "samples": len(self._samples), "sampler_hangs": self.rig.hangs}
        self._told.say(self._passed_s, "plan_finished", "after", **detail)
        return self._readings(facts), host_of(self.rig, self.asked.spec)

    @property
    def _passed_s(self) -> float:
        """Seconds since the plan's beginning."""
        return self.rig.passed_s - self._begun_s

    def _plan(self, facts: Facts) -> dict[str, Any]:
        plan = build_plan("night", self.asked.spec, self.asked.profile, facts, Claim(asked_by="night"))
        return plan | {"history_max_gpu_temp_c": history_limits(facts, self.asked.baseline)}

    def _active_links(self, card: Any) -> tuple[bool, ...]:
        return tuple(link["active"] for link in shown.links(self.rig, card))

    def _step(self, step: str, seconds: float) -> None:
        """One step of the plan, or word that it was skipped."""
        if self._stopped is not None:
            self._told.say(self._passed_s, "step_skipped", step, because=f"the guard stopped the run: {self._stopped}")
            return
        loads = list(LOADS.get(step, ("train",) if step == "train" else ("script",)))
        self._told.say(self._passed_s, "step_started", step, seconds=seconds, loads=loads)
        for number, load in enumerate(loads):
            argv = ["./gpu_burn", "-c", "compare.fatbin", f"{seconds:.0f}"] if load == "gpu" else [load]
            self._told.say(self._passed_s, "load_started", step, load=load, pid=4000 + number, argv=argv)
        burn = GpuBurn(self.rig, seconds) if "gpu" in loads else None
        if loads and loads != ["cpu"]:
            self.rig.happen()
        self._put_to_work(step, loads)
        ran_s = self._run(step, seconds, burn)
        self._write(step, loads, seconds, burn)
        self.rig.work(0.0, 0.0)
        self.rig.tick(ENDING_S)
        status = 0 if self._stopped is None else -15
        for number, load in enumerate(loads):
            told = {"load": load, "pid": 4000 + number, "exit_status": status, "seconds": ran_s, "overran": False}
            self._told.say(self._passed_s, "load_exited", step, **told)
        self._told.say(self._passed_s, "step_finished", step, seconds=ran_s)

    def _put_to_work(self, step: str, loads: list[str]) -> None:
        threads = self.rig.identity["cpu"]["threads"]
        cards, slots = (1.0, ()) if "gpu" in loads else asked_of(step)
        # Each worker of a card keeps one thread of the processor busy.
        feeding = len(self.rig.machine.cards) / threads if cards else 0.0
        self.rig.work(cards, 1.0 if "cpu" in loads else feeding, slots)

    def _run(self, step: str, seconds: float, burn: GpuBurn | None) -> float:
        """Let the step run; return how long it did, seconds."""
        dt_s = 1 / self.asked.profile.sample_hz
        ramp_s = min(self.asked.profile.ramp_seconds, seconds * RAMP_SHARE) if burn is not None else 0.0
        own = dict(self.rig.limits_w)
        passed_s = 0.0
        while passed_s < seconds and self._stopped is None:
            ramps = passed_s < ramp_s
            self.rig.limits_w = self._ramped(own, passed_s / ramp_s) if ramps else own
            self.rig.tick(dt_s)
            passed_s += dt_s
            if burn is not None:
                burn.follow(passed_s, dt_s)
            if ramps:
                self._watch.unsteady(MONO_S + self._passed_s)
            self._sample("ramp" if ramps else step)
            stop = self._watch.decide(MONO_S + self._passed_s)
            if stop is not None:
                self._stopped = stop.reason
                told = {key: value for key, value in asdict(stop).items() if value is not None}
                self._told.say(self._passed_s, "guard_stopped", step, **told)
        self.rig.limits_w = own
        return passed_s

    def _ramped(self, own: dict[int, float], share: float) -> dict[int, float]:
        low = float(self.rig.identity["card"]["power_min_w"])
        done = (int(share * RAMP_STEPS) + 1) / (RAMP_STEPS + 1)
        return {slot: low + (limit - low) * done for slot, limit in own.items()}

    def _write(self, step: str, loads: list[str], seconds: float, burn: GpuBurn | None) -> None:
        """Write what the loads left behind."""
        ended = self._stopped is None
        if burn is not None:
            self._logs[f"{step}.log"] = burn.text(ended=ended)
        if "cpu" in loads and ended:
            self._logs[f"{step}{'_cpu' if burn is not None else ''}.yaml"] = stress_ng(seconds, self._chance)
        if step in workloads() and ended:
            self._logs[f"{step}.json"] = workloads()[step](self.rig, self.asked.spec, self._chance)

    def _sample(self, step: str) -> None:
        """Take one sample of everything; a driver that hangs lets nobody."""
        rig, seq = self.rig, len(self._samples)
        if rig.hangs:
            return
        cards = rig.present()
        seen = [shown.sample(rig, card, slot, self._links[card.parts.slot]) for slot, card in enumerate(cards, start=1)]
        fans = thermal.tachometers(rig.machine, rig.identity, rig.active, seq)
        wall_w = rig.wall_w()
        taken: dict[str, Any] = {
            "seq": seq,
            "t_mono_s": MONO_S + self._passed_s,
            "t_wall_s": self.asked.wall_s + self._passed_s,
            "boot_id": self._boot,
            "step": step,
            **parts.cpu_sample(rig, self._chance),
            "fans_rpm": {f"{TACHOMETERS} {label}": rpm for label, rpm in fans.items()},
            "wall_power_w": wall_w,
            "wall_error": None if wall_w is not None else "connection refused",
        }
        self._watch.take(taken | {"gpus": seen})
        gpus = tuple(GpuSample.model_construct(**one) for one in seen)
        self._samples.append(Sample.model_construct(**taken, gpus=gpus))

    def _count(self, board: Board, when: str) -> None:
        rig = self.rig
        board.update()
        line: dict[str, Any] = {"when": when, "t_mono_s": MONO_S + self._passed_s, "seconds": 0.1}
        if rig.hangs:
            self._counted.append(line | {"error": NO_ANSWER, "cards": []})
            return
        cards = [
            shown.counters(rig, card, slot, board.errors(str(rig.own(card)["pci_bus_id"])))
            for slot, card in enumerate(rig.present(), start=1)
        ]
        self._counted.append(line | {"error": None, "cards": cards})

    def _readings(self, facts: Facts) -> Readings:
        begun = self._begun_s
        return Readings(
            rig=self.asked.name,
            facts=facts,
            samples=tuple(self._samples),
            events=tuple(self._told.events),
            logs={
                **self._logs,
                "counters.jsonl": "".join(json.dumps(line) + "\n" for line in self._counted),
                "probes.json": json.dumps({"probes": self._probes()}),
                "restored.json": json.dumps(self._restored()),
                "clock.json": json.dumps(self._clock()),
            },
            kernel=tuple(
                KernelMessage(t_wall_s=self.asked.wall_s + at_s - begun, message=text) for at_s, text in self.rig.kernel
            ),
            kernel_read=True,
            boot_id_after=self._boot,
        )

    def _probes(self) -> list[dict[str, Any]]:
        """Return how nvidia-smi answered afterwards; one that hangs is the last that is asked."""
        slow_s = self.rig.wiring.rig()["driver.topology_ms"]
        topo_s = max(PROBE_S, float(str(slow_s)) / 1000)
        found: list[dict[str, Any]] = []
        for name, seconds in zip(PROBED, (topo_s, PROBE_S), strict=True):
            hangs = self.rig.hangs or seconds > PROBE_LIMIT_S
            probe = {"name": name, "seconds": seconds, "limit_s": PROBE_LIMIT_S, "exit_status": 0}
            if hangs:
                stuck = STUCK if self.rig.hangs else None
                return [*found, probe | {"seconds": PROBE_LIMIT_S + 2, "exit_status": None, "stuck": stuck}]
            found.append(probe)
        return found

    def _clock(self) -> dict[str, float]:
        """Return the last answer that told the rig's time: the controller's clock is the night's own."""
        now_s = self.asked.wall_s + self._passed_s
        return {"before_s": now_s, "rig_s": now_s + ANSWER_S, "after_s": now_s + 2 * ANSWER_S}

    def _restored(self) -> dict[str, list[str]]:
        if self.rig.hangs:
            return {"restored": [], "failed": ["settings of the cards: the driver does not answer"]}
        return {"restored": [], "failed": []}
