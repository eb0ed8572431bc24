"""What the burners of a night write: gpu-burn's rows, stress-ng's report."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random

    from rigctl.sim.nights.hardware import Hardware

ROW_S = 10.0
"""gpu-burn writes a row about so often on its way, seconds."""
SUMMARY_PERCENT = 10.0
"""It sums up every tenth of the time, calls a card with errors faulty from then on, and counts anew."""
PRODUCTS_PER_ROW = 120
RATE_NOISE = 0.006
"""How much a rate moves from night to night, as a standard deviation: ours."""
STRESS_NG = """---
system-info:
      stress-ng-version: 0.13.12
metrics:
    - stressor: {stressor}
      bogo-ops: {ops}
      bogo-ops-per-second-usr-sys-time: {rate:.6f}
      bogo-ops-per-second-real-time: {rate:.6f}
      wall-clock-time: {seconds:.6f}
      user-time: {seconds:.6f}
      system-time: 0.010000

...
"""
CPU_OPS_PER_S = 6850.0


@dataclass
class GpuBurn:
    """gpu-burn's output while it runs."""

    rig: Hardware
    seconds: float
    _rows: list[str] = field(default_factory=list)
    _next_row_s: float = ROW_S
    _next_summary: float = SUMMARY_PERCENT

    def __post_init__(self) -> None:
        """Begin, on every card that CUDA lists."""
        self.cards = self.rig.present()
        count = len(self.cards)
        self._done, self._errors = [0] * count, [0.0] * count
        self._faulty, self._died = [False] * count, [False] * count

    def follow(self, passed_s: float, dt_s: float) -> None:
        """Take in a moment of the burn; write a row when one is due."""
        wrong = self.rig.fault("burn_errors")
        for index, card in enumerate(self.cards):
            if wrong is not None and wrong["slot"] == card.parts.slot and card.busy:
                self._errors[index] += wrong["per_s"] * dt_s
            self._died[index] = self._died[index] or card.lost
        if passed_s >= min(self._next_row_s, self.seconds):
            self._next_row_s += ROW_S
            self._done = [n + PRODUCTS_PER_ROW for n in self._done]
            self._row(min(100.0, 100 * passed_s / self.seconds))

    def _row(self, percent: float) -> None:
        done = [-1 if died else n for n, died in zip(self._done, self._died, strict=True)]
        products = "- ".join(f"{n} ({card.gflops:.0f} Gflop/s) " for n, card in zip(done, self.cards, strict=True))
        errors = "- ".join(
            f"{int(n)} {' (DIED!)' if died else ' (WARNING!)' if n else ''}"
            for n, died in zip(self._errors, self._died, strict=True)
        )
        temps = "- ".join(f"{card.temp_c:.0f} C " for card in self.cards)
        text = f"\r{percent:.1f}%  proc'd: {products}  errors: {errors}  temps: {temps}"
        if percent >= self._next_summary and percent < 100:  # noqa: PLR2004 - the last one is written at the end
            self._next_summary = percent + SUMMARY_PERCENT
            text += self._summary()
        self._rows.append(text)

    def _summary(self) -> str:
        for index, count in enumerate(self._errors):
            self._faulty[index] = self._faulty[index] or count > 0
            self._errors[index] = 0.0
        return "\n\tSummary at:   Mon Nov 30 23:05:01 UTC 2026\n\n"

    def text(self, *, ended: bool) -> str:
        """Return what it has written; `ended`: it came to its own end."""
        names = [(self.rig.common(card)["name"], self.rig.own(card)["uuid"]) for card in self.cards]
        head = f"Using compare file: compare.fatbin\nBurning for {self.seconds:.0f} seconds.\n"
        head += "".join(f"GPU {number}: {name} (UUID: {uuid})\n" for number, (name, uuid) in enumerate(names))
        text = head + "".join(self._rows)
        if not ended:
            return text
        text += self._summary() + "Killing processes with SIGTERM (soft kill)\n"
        text += "".join(f"Freed memory for dev {number}\nUninitted cublas\n" for number in range(len(names)))
        said = ["FAULTY" if faulty else "OK" for faulty in self._faulty]
        verdicts = "".join(f"\tGPU {number}: {word}\n" for number, word in enumerate(said))
        return f"{text}done\n\nTested {len(names)} GPUs:\n{verdicts}"


def stress_ng(seconds: float, chance: random.Random, stressor: str = "cpu") -> str:
    """Return stress-ng's own report of a burn of the processor, or of the host's memory."""
    rate = CPU_OPS_PER_S * chance.gauss(1.0, RATE_NOISE)
    return STRESS_NG.format(stressor=stressor, ops=round(rate * seconds), rate=rate, seconds=seconds + 0.01)
