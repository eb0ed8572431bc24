"""A GPU burn of one rig through the physics, in process: the readings that its agent would bring home.

No container, no clock: a burn of ten minutes takes a fraction of a second. For tests and benches that need hundreds.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rigctl.model.reading import DriverFacts, Facts, GpuFacts, GpuSample, Readings, RigEvent, Sample
from rigctl.sim.machine.hardware.rigsim import electrical, thermal
from rigctl.sim.machine.hardware.rigsim.build import build_machine
from rigctl.sim.machine.hardware.rigsim.faults import new_fault

if TYPE_CHECKING:
    from rigctl.sim.machine.hardware.rigsim.faults import Applied
    from rigctl.sim.machine.hardware.rigsim.physics import Card

BOOT = "00000000-0000-4000-8000-000000000000"
ROW_S = 10.0
"""The burner writes a row about so often, seconds."""


@dataclass
class Burn:
    """What is burnt, and how."""

    identity: dict[str, Any]
    faults: tuple[tuple[str, dict[str, str]], ...] = ()
    room_c: float | None = None
    """None: as the class says."""
    limit_w: float | None = None
    """Power limit of every card; None: the card's default."""
    idle_s: float = 30.0
    burn_s: float = 600.0
    sample_hz: float = 1.0
    seed: int = 0
    _samples: list[Sample] = field(default_factory=list)
    _rows: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Build the machine."""
        self._machine = build_machine(self.identity, self.seed)
        self._shown = electrical.Shown()
        self._applied: list[Applied] = [new_fault(name, words, "now", BOOT) for name, words in self.faults]

    def run(self) -> Readings:
        """Rest, burn, and tell."""
        machine = self._machine
        self._set()
        for card in machine.cards:
            card.limit_w = self.limit_w or card.limit_w
            card.temp_c = machine.room_c
        electrical.follow(machine, self._applied)
        machine.coolant_c = machine.room_c
        # A rig that has been on for a while rests warmer than its room.
        machine.step(120.0)
        self._step("idle", self.idle_s)
        for card in machine.cards:
            card.load = 1.0
        self._step("gpu_burn", self.burn_s)
        return Readings(
            rig="rig1",
            facts=self._facts(),
            samples=tuple(self._samples),
            events=self._events(),
            logs={"gpu_burn.log": self._log()},
            kernel_read=True,
            boot_id_after=BOOT,
        )

    def _set(self) -> None:
        thermal.follow(self._machine, self._applied)
        if self.room_c is not None and not any(one.name == "room_warm" for one in self._applied):
            self._machine.room_c = self.room_c

    def _step(self, step: str, seconds: float) -> None:
        every_s, done = 1 / self.sample_hz, [0] * len(self._machine.cards)
        due_s = ROW_S
        for number in range(round(seconds * self.sample_hz)):
            self._machine.step(every_s)
            self._samples.append(self._sample(step))
            passed_s = (number + 1) * every_s
            if step == "gpu_burn" and passed_s >= min(due_s, seconds):
                done = [count + 120 for count in done]
                self._rows.append(self._row(100 * passed_s / seconds, done))
                due_s += ROW_S

    def _sample(self, step: str) -> Sample:
        machine, seq = self._machine, len(self._samples)
        tachometers = thermal.tachometers(machine, self.identity, self._applied, seq)
        return Sample.model_construct(
            seq=seq,
            t_mono_s=1000 + seq / self.sample_hz,
            t_wall_s=1_790_000_000 + seq / self.sample_hz,
            boot_id=BOOT,
            step=step,
            gpus=tuple(self._gpu(card) for card in machine.cards),
            fans_rpm={f"nct6798 {label}": rpm for label, rpm in tachometers.items()},
            wall_power_w=self._shown.power_w(machine.wall_w, self._applied),
            cpu_power_w=machine.cpu_w,
        )

    def _gpu(self, card: Card) -> GpuSample:
        broken = thermal.shown("", card.parts.slot, self._applied)
        common = self.identity["card"]
        over_c = common.get("memory_over_core_c")
        return GpuSample.model_construct(
            uuid=self._uuid(card),
            slot=card.parts.slot,
            # NVML speaks in whole degrees.
            temp_c=float(round(card.temp_c)) if not broken else 0.0,
            power_w=round(card.shown_power_w, 3),
            limit_w=card.limit_w,
            sm_mhz=card.sm_mhz,
            util_pct=100 if card.busy else 0,
            fan_pct=round(card.fan_asked_pct) if common["fans"] else None,
            memory_temp_c=None if over_c is None else float(round(card.temp_c + over_c)),
            margin_c=_margin_c(card),
            throttle=card.throttle,
            pcie_gen=common["pcie_gen_max"],
            pcie_width=common["pcie_width"],
        )

    def _uuid(self, card: Card) -> str:
        return next(str(own["uuid"]) for own in self.identity["cards"] if own["slot"] == card.parts.slot)

    def _facts(self) -> Facts:
        common = self.identity["card"]
        gpus = tuple(
            GpuFacts(
                index=number,
                slot=card.parts.slot,
                uuid=self._uuid(card),
                pci_bus_id=f"00000000:{number + 1:02x}:00.0",
                name=common["name"],
                vbios=common["vbios"],
                power_limit_w=card.limit_w,
                slowdown_temp_c=card.parts.temp_slowdown_c,
                memory_max_temp_c=common.get("temp_memory_max_c"),
            )
            for number, card in enumerate(self._machine.cards)
        )
        driver = DriverFacts(loaded="515.105.01", library="515.105.01")
        return Facts(boot_id=BOOT, hostname="rig1", kernel="5.15.0", driver=driver, gpus=gpus)

    def _events(self) -> tuple[RigEvent, ...]:
        burnt = [sample for sample in self._samples if sample.step == "gpu_burn"]
        begin, end = burnt[0].t_mono_s, burnt[-1].t_mono_s
        told: list[tuple[float, str, dict[str, object]]] = [
            (begin, "step_started", {"loads": ["gpu"]}),
            (begin, "load_started", {"load": "gpu", "pid": 100, "argv": []}),
            (end, "load_exited", {"load": "gpu", "pid": 100, "exit_status": 0, "seconds": self.burn_s + 1}),
            (end, "step_finished", {}),
            (end, "plan_finished", {}),
        ]
        return tuple(
            RigEvent(seq=seq, t_mono_s=t, t_wall_s=1_790_000_000 + t, event=event, step="gpu_burn", detail=detail)
            for seq, (t, event, detail) in enumerate(told)
        )

    def _row(self, percent: float, done: list[int]) -> str:
        cards = self._machine.cards
        products = "- ".join(f"{n} ({card.gflops:.0f} Gflop/s) " for n, card in zip(done, cards, strict=True))
        errors = "- ".join("0 " for _ in cards)
        temps = "- ".join(f"{card.temp_c:.0f} C " for card in cards)
        return f"{percent:.1f}%  proc'd: {products}  errors: {errors}  temps: {temps}"

    def _log(self) -> str:
        """As the burner writes it."""
        cards, name = self._machine.cards, self.identity["card"]["name"]
        head = f"Using compare file: compare.fatbin\nBurning for {self.burn_s:.0f} seconds.\n"
        head += "".join(f"GPU {number}: {name} (UUID: {self._uuid(card)})\n" for number, card in enumerate(cards))
        rows = "".join(f"\r{row}" for row in itertools.chain(self._rows))
        tail = "\n\tSummary at:   Mon Nov 30 23:05:01 UTC 2026\n\nKilling processes with SIGTERM (soft kill)\n"
        tail += "".join(f"Freed memory for dev {number}\nUninitted cublas\n" for number in range(len(cards)))
        verdicts = "".join(f"\tGPU {number}: OK\n" for number in range(len(cards)))
        return f"{head}{rows}{tail}done\n\nTested {len(cards)} GPUs:\n{verdicts}"


def _margin_c(card: Card) -> float | None:
    """What newer cards tell of their hottest spot, °C; None for a card that tells nothing."""
    return float(round(card.parts.temp_slowdown_c - card.hotspot_c)) if card.parts.hotspot_over_c else None


def cut(readings: Readings, seconds: float, reason: str) -> Readings:
    """Return the readings of a burn that was ended early after `seconds`, as the rig would have told it."""
    begin = readings.of_step("gpu_burn")[0].t_mono_s
    kept = tuple(s for s in readings.samples if s.step != "gpu_burn" or s.t_mono_s <= begin + seconds)
    head, *rows = readings.logs["gpu_burn.log"].split("\tSummary")[0].split("\r")
    asked_s = len(readings.of_step("gpu_burn")) * (readings.samples[1].t_mono_s - readings.samples[0].t_mono_s)
    shown = [row for row in rows if float(row.partition("%")[0]) <= 100 * seconds / asked_s]
    events = []
    for event in readings.events:
        late: dict[str, object] = {"t_mono_s": min(event.t_mono_s, begin + seconds)}
        if event.event == "load_exited":
            detail = {"reason": reason, "seconds": seconds, "asked_s": asked_s}
            events.append(event.model_copy(update={"event": "ended_early", "detail": detail, **late}))
            late |= {"detail": event.detail | {"exit_status": -15, "seconds": seconds}}
        events.append(event.model_copy(update=late))
    log = head + "".join(f"\r{row}" for row in shown)
    return readings.model_copy(update={"samples": kept, "logs": {"gpu_burn.log": log}, "events": tuple(events)})
