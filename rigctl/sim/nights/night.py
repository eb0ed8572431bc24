"""One night of one rig: the plan of a real acceptance, carried out on simulated hardware in a fraction of a second."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rigctl.measure.claim import Claim
from rigctl.measure.plan import build_plan, step_seconds
from rigctl.model.reading import KernelMessage, Readings
from rigctl.sim.nights import shown
from rigctl.sim.nights.answers import host_of
from rigctl.sim.nights.board import Board
from rigctl.sim.nights.carrier import Carrier
from rigctl.sim.nights.facts import PROBE_S, read_facts
from rigctl.sim.nights.recorder import Recorder
from rigctl.sim.nights.watch import MONO_S, Watch

if TYPE_CHECKING:
    from testinfra.host import Host

    from rigctl.model.baseline import Baseline
    from rigctl.model.reading import Facts
    from rigctl.model.spec import ProfileSpec, RigSpec
    from rigctl.sim.nights.hardware import Hardware

RESTED_S = 120.0
"""A rig that has been on for a while rests warmer than its room."""
PROBE_LIMIT_S = 20
PROBED = ("nvidia-smi topo -m", "nvidia-smi nvlink -s")
STUCK = "process 4711 is in state D in nvidia_ioctl and resists SIGKILL"
NO_ANSWER = "the driver did not answer within 5 s"
ANSWER_S = 0.05
"""A rig's answer is on its way for so long."""
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
    _counted: list[dict[str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Set what the roles set."""
        self._boot = BOOT.format(seed=2 * self.seed)
        limit_w = self.asked.spec.software.power_limit_w
        if limit_w is not None:
            self.rig.limits_w = dict.fromkeys(self.rig.limits_w, float(limit_w))

    def measure(self) -> tuple[Readings, Host]:
        """Return what came home, and the rig as it answers the suite's own questions afterwards."""
        asked, rig = self.asked, self.rig
        rig.tick(RESTED_S)
        with Board(rig) as board:
            facts = read_facts(rig, board, asked.spec, self._boot)
            plan = build_plan(
                "night", asked.spec, asked.profile, facts, Claim(asked_by="night"), baseline=asked.baseline
            )
            told = Recorder(rig, Watch(plan, facts), self._boot, asked.wall_s, self.seed)
            carrier = Carrier(asked.spec, asked.profile, rig, board, told, self.seed)
            told.sample("before")
            self._count(board, told, "before")
            expected_s = step_seconds(asked.spec, asked.profile, first=asked.baseline is None)
            carrier.carry_out(plan["steps"], expected_s)
            if not rig.off:
                self._end(board, told, carrier)
        return self._readings(facts, told, carrier), host_of(rig, asked.spec)

    def _end(self, board: Board, told: Recorder, carrier: Carrier) -> None:
        told.sample("after")
        self._count(board, told, "after")
        detail = {"stopped": carrier.stopped, "samples": len(told.samples), "sampler_hangs": self.rig.hangs}
        told.say("plan_finished", "after", **detail)

    def _count(self, board: Board, told: Recorder, when: str) -> None:
        rig = self.rig
        board.update()
        line: dict[str, Any] = {"when": when, "t_mono_s": MONO_S + told.passed_s, "seconds": 0.1}
        if rig.hangs:
            self._counted.append(line | {"error": NO_ANSWER, "cards": []})
            return
        cards = [
            shown.counters(rig, card, slot, board.errors(str(rig.own(card)["pci_bus_id"])))
            for slot, card in enumerate(rig.present(), start=1)
        ]
        self._counted.append(line | {"error": None, "cards": cards})

    def _readings(self, facts: Facts, told: Recorder, carrier: Carrier) -> Readings:
        rig, begun_s = self.rig, told.begun_s
        logs = {
            **carrier.logs,
            "counters.jsonl": "".join(json.dumps(line) + "\n" for line in self._counted),
            "probes.json": json.dumps({"probes": self._probes()}),
            "clock.json": json.dumps(_clock(self.asked.wall_s + told.passed_s)),
        }
        # What the unit puts back when it ends is told by the rig that it ran on, not by one that has gone off.
        logs |= {} if rig.off else {"restored.json": json.dumps(self._restored())}
        return Readings(
            rig=self.asked.name,
            facts=facts,
            samples=tuple(told.samples),
            events=tuple(told.events),
            logs=logs,
            kernel=tuple(
                KernelMessage(t_wall_s=self.asked.wall_s + at_s - begun_s, message=text) for at_s, text in rig.kernel
            ),
            kernel_read=True,
            boot_id_after=BOOT.format(seed=2 * self.seed + 1) if rig.off else self._boot,
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

    def _restored(self) -> dict[str, list[str]]:
        if self.rig.hangs:
            return {"restored": [], "failed": ["settings of the cards: the driver does not answer"]}
        return {"restored": [], "failed": []}


def _clock(now_s: float) -> dict[str, float]:
    """Return the last answer that told the rig's time: the controller's clock is the night's own."""
    return {"before_s": now_s, "rig_s": now_s + ANSWER_S, "after_s": now_s + 2 * ANSWER_S}
