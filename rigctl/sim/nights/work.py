"""What the loads of a night write: gpu-burn's rows, stress-ng's report, the figures of training and of copies."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from itertools import combinations
from typing import TYPE_CHECKING, Any

from rigctl.sim.nights import shown

if TYPE_CHECKING:
    import random
    from collections.abc import Sequence

    from rigctl.model.spec import RigSpec
    from rigctl.sim.nights.hardware import Hardware

ROW_S = 10.0
"""gpu-burn writes a row about so often on its way, seconds."""
SUMMARY_PERCENT = 10.0
"""It sums up every tenth of the time, calls a card with errors faulty from then on, and counts anew."""
PRODUCTS_PER_ROW = 120
OF_NVLINK = 0.938
"""One direction of a pair's NVLinks carries so much of their nominal rate: 52.8 of 56.25 GB/s (mli, RTX 3090 Ti)."""
BOTH_OVER_ONE = 1.92
"""Both directions at once over one: 101.4 and 52.8 GB/s, the same source."""
THROUGH_HOST = (6.2, 9.2)
"""One way and both ways without P2P over PCIe 4.0 x8, GB/s, the same source."""
COPIED_BYTES = 13_958_643_712
RATE_NOISE = 0.006
"""How much a rate of copies moves from night to night, as a standard deviation: ours."""
TRAINING_NOISE = 0.015
"""The same for training: repeats of published measurements spread over 3 to 6 % (mli)."""
STRESS_NG = """---
system-info:
      stress-ng-version: 0.13.12
metrics:
    - stressor: cpu
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


def stress_ng(seconds: float, chance: random.Random) -> str:
    """Return stress-ng's own report of a burn of the processor."""
    rate = CPU_OPS_PER_S * chance.gauss(1.0, RATE_NOISE)
    return STRESS_NG.format(ops=round(rate * seconds), rate=rate, seconds=seconds + 0.01)


def p2p(rig: Hardware, spec: RigSpec, chance: random.Random) -> str:
    """Return the copies between each pair of cards: over what joins them now."""
    del spec
    cards, off = rig.present(), bool(rig.wiring.rig()["p2p.disabled"])
    pairs = []
    for (one, card), (other, partner) in combinations(enumerate(cards, start=1), 2):
        bus_id = str(rig.own(partner)["pci_bus_id"])
        up = [link for link in shown.links(rig, card) if link["active"] and link["remote_pci_bus_id"] in (None, bus_id)]
        direct = bool(up) and not off
        nominal = sum(float(link["speed_gb_per_s"]) for link in up) * OF_NVLINK
        rates = (nominal, nominal * BOTH_OVER_ONE) if direct else THROUGH_HOST
        both = rates[1] * chance.gauss(1.0, RATE_NOISE)
        pairs.append(
            {
                "slots": [one, other],
                "access": direct,
                "one_way_gb_per_s": [rates[0] * chance.gauss(1.0, RATE_NOISE) for _ in range(2)],
                "both_ways_gb_per_s": both,
                "compared_bytes": COPIED_BYTES,
                "wrong_bytes": 0,
            }
        )
    return json.dumps({"torch": "2.0.1+cu117", "bytes": 268_435_456, "pairs": pairs})


def train(rig: Hardware, spec: RigSpec, chance: random.Random) -> str:
    """Return what training on one card comes to: its pace follows the card's clock."""
    asked, cards = spec.training, rig.present()
    if asked is None or not cards or cards[0].lost:
        return json.dumps({"error": "no card to train on", "hint": "see topology.gpu_count"})
    pace = asked.min_tokens_per_s / FLOOR_SHARE if asked.min_tokens_per_s else UNLEARNED_TOKENS_PER_S
    card = cards[0]
    found = pace * card.clock_share * chance.gauss(1.0, TRAINING_NOISE)
    figures: dict[str, Any] = {
        "device": asked.device,
        "device_name": rig.common(card)["name"],
        "model": asked.model,
        "tokens_per_s": round(found, 1),
        "loss_first": 10.9,
        "loss_last": 9.7,
    }
    return json.dumps(figures)


FLOOR_SHARE = 0.85
"""A spec's floor of training stands so far below what was published or learned."""
UNLEARNED_TOKENS_PER_S = 7885.0


DISK = "disk"
"""The step whose figures come from the board."""


def workloads() -> dict[str, Any]:
    """Return what writes `<step>.json` for each step beside the burns."""
    return {"p2p": p2p, "train": train}


def asked_of(step: str) -> tuple[float, Sequence[int]]:
    """Return what a step beside the burns asks of the cards, 0 to 1, and of which (none named: of all)."""
    return {"p2p": (0.3, ()), "train": (0.8, (1,))}.get(step, (0.0, ()))
