"""Topology: the declared cards are there, with their memory, on the declared lanes under load."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from rigctl.checks import load
from rigctl.checks.cards import cards, each_card, why_no_card
from rigctl.checks.say import Say

if TYPE_CHECKING:
    from collections.abc import Callable

    from rigctl.model.reading import GpuFacts, GpuSample, Readings
    from rigctl.model.spec import ProfileSpec, RigSpec
    from rigctl.model.verdict import CheckVerdict

MOST_MIB = 1 << 20
"""No card has as much memory, MiB."""
MOST_GENERATION, MOST_LANES = 8, 32
"""The newest published generation of PCI Express is 7 (PCI-SIG, June 2025); its links have at most 32 lanes."""
_SEATING = "power the rig off; check the card's power cables, riser and slot"


def gpu_count(spec: RigSpec, readings: Readings) -> list[CheckVerdict]:
    """NVML shows as many cards as the spec says."""
    asked = spec.parts.gpu_count
    say = Say("topology.gpu_count", expected=asked, source=spec.source("parts.gpu_count"))
    facts = readings.facts
    if facts is None or facts.driver.nvml_error:
        return [say.error(*why_no_card(readings))]
    found = len(facts.gpus)
    if found == asked:
        return [say.passed(f"{found} cards", found)]
    seen = ", ".join(gpu.subject for gpu in cards(readings)) or "none"
    if found < asked:
        reason = f"{asked - found} of {asked} cards cannot be seen; there: {seen}"
        return [say.failed(reason, found, f"{_SEATING}; `lspci -d 10de:` tells whether the bus sees it")]
    return [say.failed(f"{found} cards instead of {asked}: {seen}", found, "correct the spec, or take the card out")]


def gpu_model(spec: RigSpec, readings: Readings) -> list[CheckVerdict]:
    """Each card is of the declared model."""
    asked = spec.parts.gpu_model
    say = Say("topology.gpu_model", expected=asked, source=spec.source("parts.gpu_model"))

    def judge(gpu: GpuFacts, say: Say) -> CheckVerdict:
        if not gpu.name:
            why = gpu.missing.get("name", "no reason given")
            return say.error(f"NVML does not tell its model: {why}", f"run `nvidia-smi -q` on {readings.rig}")
        if _model(gpu.name) == _model(asked):
            return say.passed(gpu.name, gpu.name)
        return say.failed(f"{gpu.name} instead of {asked}", gpu.name, "put the declared card in, or correct the spec")

    return each_card(say, spec, readings, judge)


def _model(name: str) -> str:
    """Compare models as people write them: without the vendor, in one case."""
    return re.sub(r"\s+", " ", name).strip().lower().removeprefix("nvidia ")


def gpu_memory(spec: RigSpec, readings: Readings) -> list[CheckVerdict]:
    """Each card has at least the declared memory."""
    least = spec.parts.min_gpu_memory_mib
    say = Say("topology.gpu_memory", expected=least, unit="MiB", source=spec.source("parts.min_gpu_memory_mib"))

    def judge(gpu: GpuFacts, say: Say) -> CheckVerdict:
        if gpu.memory_mib is None:
            why = gpu.missing.get("memory_mib", "no reason given")
            return say.error(f"NVML does not tell its memory: {why}", f"run `nvidia-smi -q` on {readings.rig}")
        if not 0 < gpu.memory_mib <= MOST_MIB:
            return say.error(f"{gpu.memory_mib} MiB is no card's memory", f"run `nvidia-smi -q` on {readings.rig}")
        if gpu.memory_mib >= least:
            return say.passed(f"{gpu.memory_mib} MiB", gpu.memory_mib)
        reason = f"{gpu.memory_mib} MiB, at least {least} MiB were declared"
        return say.failed(reason, gpu.memory_mib, "another card, or one with failed memory: look at its Xid and label")

    return each_card(say, spec, readings, judge)


def pcie_gen(spec: RigSpec, readings: Readings, profile: ProfileSpec) -> list[CheckVerdict]:
    """Each card runs at the declared PCIe generation while it is loaded; at rest it may sleep in a lower one."""
    say = Say(
        "topology.pcie_gen", expected=spec.parts.pcie_gen_under_load, source=spec.source("parts.pcie_gen_under_load")
    )
    return _lanes(say, spec, readings, profile, _Lanes(lambda gpu: gpu.pcie_gen, "PCIe generation {}", MOST_GENERATION))


def pcie_width(spec: RigSpec, readings: Readings, profile: ProfileSpec) -> list[CheckVerdict]:
    """Each card runs on the declared number of lanes while it is loaded."""
    say = Say(
        "topology.pcie_width",
        expected=spec.parts.pcie_width_under_load,
        unit="lanes",
        source=spec.source("parts.pcie_width_under_load"),
    )
    return _lanes(say, spec, readings, profile, _Lanes(lambda gpu: gpu.pcie_width, "PCIe x{}", MOST_LANES))


class _Lanes(NamedTuple):
    """What is read of a loaded sample, and how it is said."""

    read: Callable[[GpuSample], int | None]
    words: str
    most: int


def _lanes(say: Say, spec: RigSpec, readings: Readings, profile: ProfileSpec, lanes: _Lanes) -> list[CheckVerdict]:
    asked = say.expected if isinstance(say.expected, int) else None

    def judge(gpu: GpuFacts, say: Say) -> CheckVerdict:
        steps = load.gpu_steps(profile)
        busy = [one for step in steps for one in load.loaded(readings, step, gpu.uuid, after_ramp=True)]
        if not busy:
            return say.error(*load.why_no_load(readings, steps[0]))
        seen = [figure for one in busy if (figure := lanes.read(one.gpu)) is not None]
        if why := _no_figures(lanes, seen, len(busy)):
            return say.error(why, f"nvidia-smi -q on {readings.rig}")
        lowest, text = min(seen), lanes.words.format(min(seen))
        if asked is None:
            return say.unlearned(f"{text} under load", lowest, readings.rig)
        if lowest < asked:
            share = sum(figure < asked for figure in seen) / len(seen)
            reason = f"{text} in {share:.0%} of {len(seen)} loaded samples, {lanes.words.format(asked)} was declared"
            return say.failed(reason, lowest, "reseat card and riser; check the slot's setting in the BIOS")
        if lowest > asked:
            reason = f"{text} under load, more than the declared {lanes.words.format(asked)}"
            return say.warned(reason, lowest, "the card sits in another slot than declared: correct the spec")
        return say.passed(f"{text} in all {len(seen)} loaded samples", lowest)

    return each_card(say, spec, readings, judge)


def _no_figures(lanes: _Lanes, seen: list[int], busy: int) -> str | None:
    """Say why what the loaded samples tell of the lanes cannot be judged."""
    if len(seen) < load.FEWEST:
        return f"{len(seen)} of {busy} loaded samples tell it"
    if absurd := [figure for figure in seen if not 0 < figure <= lanes.most]:
        return f"{lanes.words.format(absurd[0])} in {len(absurd)} of {len(seen)} loaded samples: there is no such"
    return None
