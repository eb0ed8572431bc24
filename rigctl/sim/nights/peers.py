"""Three rules that others ship, fed with the same readings as our checks.

Each looks at figures alone, names no cause, and says only whether something is wrong with the rig. Sources: Microsoft
SuperBench's rule of 5 % against a baseline, here the fleet's mean and in both directions; Hugging Face's gpu-fryer,
10 % below the best card; NVIDIA DCGM's targeted power, 0.75 of the target.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Any

from rigctl.checks import load
from rigctl.checks.burn import burns
from rigctl.parse import stress_ng

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rigctl.model.reading import GpuFacts, Readings
    from rigctl.model.spec import ProfileSpec

FLEET_SHARE = 0.05
BEST_SHARE = 0.10
TARGET_SHARE = 0.75
SETTLED = 2 / 3
RULES = ("5 % of the fleet's mean", "10 % below the best card", "75 % of target power")


@dataclass(frozen=True)
class Figures:
    """What one night showed, as a benchmark suite keeps it: one list of figures a metric, one figure a card or pair."""

    metrics: Mapping[str, tuple[float, ...]]
    target_w: float
    """The power limit that was asked for, W."""


def figures_of(readings: Readings, profile: ProfileSpec, target_w: float) -> Figures:
    """Return the figures that such rules take from a night."""
    found: dict[str, tuple[float, ...]] = {"gflops": _gflops(readings, profile), "watts": _watts(readings)}
    pairs = _json(readings, "p2p.json").get("pairs", [])
    found["p2p_one_way"] = tuple(rate for pair in pairs for rate in pair["one_way_gb_per_s"])
    found["p2p_both_ways"] = tuple(pair["both_ways_gb_per_s"] for pair in pairs)
    trained = _json(readings, "train.json").get("tokens_per_s")
    found["tokens_per_s"] = (trained,) if trained is not None else ()
    report = readings.logs.get("cpu_burn.yaml")
    found["cpu_ops_per_s"] = tuple(one.bogo_ops_per_s for one in stress_ng.parse(report)) if report else ()
    return Figures(found, target_w)


def fleet_means(nights: Sequence[Figures]) -> dict[str, float]:
    """Return the fleet's mean of each metric."""
    names = {name for night in nights for name in night.metrics}
    found = {}
    for name in names:
        figures = [figure for night in nights for figure in night.metrics[name]]
        if figures:
            found[name] = load.mean(figures)
    return found


def flagged(night: Figures, means: Mapping[str, float]) -> dict[str, bool]:
    """Say which of the rules call the rig bad. A figure that is missing counts as found, for rules that need it."""
    fleet = any(
        not night.metrics.get(name)
        or any(abs(figure - mean) > FLEET_SHARE * mean for figure in night.metrics.get(name, ()))
        for name, mean in means.items()
    )
    rates, watts = night.metrics["gflops"], night.metrics["watts"]
    best = not rates or min(rates) < (1 - BEST_SHARE) * max(rates)
    target = not watts or min(watts) < TARGET_SHARE * night.target_w
    return dict(zip(RULES, (fleet, best, target), strict=True))


def _gflops(readings: Readings, profile: ProfileSpec) -> tuple[float, ...]:
    burn = next((one for one in burns(readings, profile) if one.step == "gpu_burn"), None)
    if burn is None or burn.log is None:
        return ()
    rates = [burn.log.gflops(card.index, from_percent=burn.percent(SETTLED)) for card in burn.log.cards]
    return tuple(median(one) for one in rates if one)


def _watts(readings: Readings) -> tuple[float, ...]:
    cards: Sequence[GpuFacts] = readings.facts.gpus if readings.facts is not None else ()
    found = []
    for card in cards:
        settled = load.last_third(load.loaded(readings, "gpu_burn", card.uuid))
        powers = [one.gpu.power_w for one in settled if one.gpu.power_w is not None]
        if powers:
            found.append(load.mean(powers))
    return tuple(found)


def _json(readings: Readings, name: str) -> dict[str, Any]:
    text = readings.logs.get(name)
    told = json.loads(text) if text else {}
    return told if isinstance(told, dict) else {}
