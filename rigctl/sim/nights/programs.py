"""What the agent's own programs tell on simulated hardware: copies, products, memory, training on one card and on all.

Each rate is what was published of the reference class's card, times what this card's clock, lanes and links leave of
it, times a little noise.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

from rigctl.measure.computing import MEMORY_SHARE
from rigctl.sim.nights import shown
from rigctl.sim.nights.work import RATE_NOISE, stress_ng

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

    from rigctl.model.spec import RigSpec
    from rigctl.sim.machine.hardware.rigsim.physics import Card
    from rigctl.sim.nights.hardware import Hardware

OF_NVLINK = 0.938
"""One direction of a pair's NVLinks carries so much of their nominal rate: 52.8 of 56.25 GB/s (mli, RTX 3090 Ti)."""
BOTH_OVER_ONE = 1.92
"""Both directions at once over one: 101.4 and 52.8 GB/s, the same source."""
THROUGH_HOST = (6.2, 9.2)
"""One way and both ways without P2P over PCIe 4.0 x8, GB/s, the same source."""
COPIED_BYTES = 13_958_643_712
RATES = {"matmul_fp32": 42.06, "matmul_fp16": 81.31, "matmul_bf16": 81.31, "layer": 61.8, "gpu_memory": 859.8}
"""TFLOP/s and GB/s of one RTX 3090 Ti (mli/transformers-benchmarks)."""
HOST_GB_PER_S = 13.1
"""Half of 26.2 GB/s, which sixteen lanes of PCIe 4.0 carried (public captures)."""
CLOCKED = ("matmul_fp32", "matmul_fp16", "matmul_bf16", "layer")
"""What follows the card's clock; memory has its own."""
TOKENS_PER_S = 7885.0
"""GPT-2 medium on one RTX 3090 Ti at the reference settings (mli/transformers-benchmarks)."""
TFLOPS_PER_TOKEN_PER_S = 42.16 / 17_408
TRAINING_NOISE = 0.015
"""Repeats of published trainings spread over 3 to 6 % (mli/transformers-benchmarks)."""
LOST_IN_LINKS, WITHOUT_P2P = 0.05, 0.82
"""What of two cards' pace goes into talking over four links, and what is left of it through the host's memory: between
the published figures without and with four accumulated steps."""
LOSSES = (10.94, 10.61, 10.33, 9.87)
PATTERNS = 68
HOST_MEMORY_BYTES = 51 * 1024**3
TORCH = "2.0.1+cu117"


@dataclass(frozen=True)
class Turn:
    """One program's turn on one rig."""

    rig: Hardware
    spec: RigSpec
    chance: random.Random
    mono_s: tuple[float, float]
    """When it began and ended, on the rig's monotonic clock, seconds."""

    def noisy(self, rate: float, noise: float = RATE_NOISE) -> float:
        """Return a rate as it is measured."""
        return rate * self.chance.gauss(1.0, noise)

    def named(self, number: int, card: Card) -> dict[str, Any]:
        """Return a card as the programs name it."""
        common, own = self.rig.common(card), self.rig.own(card)
        return {"slot": number, "name": common["name"], "uuid": own["uuid"]}

    @property
    def cards(self) -> list[tuple[int, Card]]:
        """The cards that CUDA lists, counted from 1."""
        return list(enumerate(self.rig.present(), start=1))


def pace_of(card: Card) -> float:
    """Return what a card does of what its class does at full clock."""
    return 0.0 if card.lost else card.gflops / card.parts.burn_gflops if card.busy else card.clock_share


def _between(turn: Turn, card: Card, partner: Card) -> list[dict[str, Any]]:
    """Return the links that are up between two cards; through switches, all of a card's."""
    bus_id = str(turn.rig.own(partner)["pci_bus_id"])
    return [
        link
        for link in shown.links(turn.rig, card)
        if link["active"] and link["remote_pci_bus_id"] in (bus_id, *turn.rig.identity["links"].get("switches", ()))
    ]


def p2p(turn: Turn) -> dict[str, Any]:
    """Copies between each pair of cards, over what joins them now."""
    if len(turn.cards) == 1:
        return {"error": "one card makes no pair", "hint": "see topology.gpu_count"}
    off = bool(turn.rig.wiring.rig()["p2p.disabled"])
    pairs = []
    for (one, card), (other, partner) in combinations(turn.cards, 2):
        up = _between(turn, card, partner)
        nominal = sum(float(link["speed_gb_per_s"]) for link in up) * OF_NVLINK
        direct = bool(up) and not off
        rates = (nominal, nominal * BOTH_OVER_ONE) if direct else THROUGH_HOST
        pairs.append(
            {
                "slots": [one, other],
                "access": direct,
                "one_way_gb_per_s": [turn.noisy(rates[0]), turn.noisy(rates[0])],
                "both_ways_gb_per_s": turn.noisy(rates[1]),
                "compared_bytes": COPIED_BYTES,
                "wrong_bytes": 0,
            }
        )
    return {"torch": TORCH, "bytes": 268_435_456, "pairs": pairs}


def compute(turn: Turn) -> dict[str, Any]:
    """Products of matrices, a layer, memory and bus of each card."""
    cards = []
    for number, card in turn.cards:
        rates = {name: rate * (pace_of(card) if name in CLOCKED else 1.0) for name, rate in RATES.items()}
        rates |= dict.fromkeys(("host_to_device", "device_to_host"), HOST_GB_PER_S * _lanes(turn, card))
        cards.append({**turn.named(number, card), "figures": {n: _figure(turn.noisy(r)) for n, r in rates.items()}})
    return {"torch": TORCH, "device": "cuda", "cards": cards}


def _figure(rate: float) -> dict[str, Any]:
    return {"rate": rate, "blocks": [rate * 0.998, rate, rate * 1.003], "settled": True, "warm_up_s": 1.2}


def _lanes(turn: Turn, card: Card) -> float:
    """Return what a card's bus carries of what it should: its lanes, and half for each generation less."""
    common = turn.rig.identity["card"]
    whole = {"g.pcie_gen": common["pcie_gen_max"], "g.pcie_width": common["pcie_width"]}
    now = whole | turn.rig.wiring.shown("g", card, whole)
    slower = int(str(whole["g.pcie_gen"])) - int(str(now["g.pcie_gen"]))
    return int(str(now["g.pcie_width"])) / int(str(whole["g.pcie_width"])) / float(2**slower)


def gpu_memory(turn: Turn) -> dict[str, Any]:
    """Patterns through most of each card's memory, read as they were written."""
    cards = []
    for number, card in turn.cards:
        total_mib = turn.rig.common(card)["memory_mib"]
        tested_mib = round(total_mib * MEMORY_SHARE)
        told = {"total_mib": total_mib, "tested_mib": tested_mib, "patterns": PATTERNS, "wrong_words": 0}
        compared = PATTERNS * tested_mib * 2**20
        cards.append({**turn.named(number, card), **told, "compared_bytes": compared, "wrong_bits": [0] * 32})
    return {"torch": TORCH, "device": "cuda", "cards": cards}


def train(turn: Turn) -> dict[str, Any]:
    """Training on the first card."""
    asked = turn.spec.training
    if asked is None or not turn.cards:
        return {"error": "no card to train on", "hint": "see topology.gpu_count"}
    _, card = turn.cards[0]
    return {
        "device": asked.device,
        "device_name": turn.rig.common(card)["name"],
        "model": asked.model,
        "tokens_per_s": round(turn.noisy(TOKENS_PER_S * pace_of(card), TRAINING_NOISE), 1),
        "loss_first": LOSSES[0],
        "loss_last": LOSSES[-1],
    }


def train_all(turn: Turn) -> dict[str, Any]:
    """Training on each card by itself, on all together, and on all without P2P."""
    asked = turn.spec.training
    if asked is None or len(turn.cards) == 1:
        return {"error": "one card trains with no other", "hint": "see topology.gpu_count"}
    (_, first), (_, second) = turn.cards[:2]
    up, off = len(_between(turn, first, second)), bool(turn.rig.wiring.rig()["p2p.disabled"])
    whole = TOKENS_PER_S * len(turn.cards) * min(pace_of(card) for _, card in turn.cards)
    direct = 1 - LOST_IN_LINKS * int(turn.rig.identity["links"].get("per_pair", 1)) / up if up and not off else 0.0
    alone = [
        {
            **turn.named(number, card),
            "tokens_per_s": turn.noisy(TOKENS_PER_S * pace_of(card), TRAINING_NOISE),
            "losses": LOSSES,
            "repeated_losses": LOSSES[:3],
        }
        for number, card in turn.cards
    ]
    return {
        "torch": TORCH,
        "device": asked.device,
        "model": asked.model,
        "ranks": len(turn.cards),
        "tflops_per_token_per_s": TFLOPS_PER_TOKEN_PER_S,
        "alone": alone,
        "together": _together(turn, whole * max(direct, WITHOUT_P2P)),
        "without_p2p": _together(turn, whole * WITHOUT_P2P),
        "weights_agree": True,
    }


def _together(turn: Turn, tokens_per_s: float) -> dict[str, Any]:
    return {"tokens_per_s": turn.noisy(tokens_per_s), "measured_mono_s": turn.mono_s}


def host_memory(turn: Turn) -> dict[str, Any]:
    """Patterns through the host's memory, by stress-ng."""
    begun_s, ended_s = turn.mono_s
    threads = turn.rig.identity["cpu"]["threads"]
    report = stress_ng(ended_s - begun_s, turn.chance, "vm")
    known = {"bytes": HOST_MEMORY_BYTES, "workers": threads, "exit_status": 0, "report": report, "said": []}
    return {**known, "seconds": ended_s - begun_s}


def dcgm(_turn: Turn) -> dict[str, Any]:
    """NVIDIA's DCGM, which these rigs have not."""
    return {"installed": False, "argv": [], "exit_status": 127, "output": ""}


@dataclass(frozen=True)
class Program:
    """One step beside the burns: what it asks of cards and processor, 0 to 1, and what it tells."""

    tell: Callable[[Turn], dict[str, Any]]
    cards: float = 0.0
    cpu: float = 0.0
    slots: tuple[int, ...] = ()
    """The cards that it uses; none named: all."""


PROGRAMS: dict[str, Program] = {
    "p2p": Program(p2p, cards=0.3),
    "compute": Program(compute, cards=0.8),
    "gpu_memory": Program(gpu_memory, cards=0.7),
    "train": Program(train, cards=0.8, slots=(1,)),
    "train_all": Program(train_all, cards=0.8),
    "host_memory": Program(host_memory, cpu=0.9),
    "dcgm": Program(dcgm),
}
DISK = "disk"
"""The step whose figures come from the board."""


def tell(step: str, turn: Turn) -> str:
    """Return what the program of a step writes. Raises KeyError for one that nights do not know."""
    return json.dumps(PROGRAMS[step].tell(turn))
