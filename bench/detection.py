"""What our checks find, name and let alone: every fault of the hardware, and a year of healthy nights of a fleet.

In process, through the physics of simulated rigs, the guard's own decisions and the suite's own checks; beside three
rules that others ship, fed with the same readings. Outputs of real machines join where they are at hand, counted apart.
"""

from __future__ import annotations

import os
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bench.captures import judged
from bench.figure import Figure, figure
from rigctl.sim.machine.hardware.rigsim.faults import HARDWARE_FAULTS
from rigctl.sim.nights.fleet import members
from rigctl.sim.nights.park import CLASS_OF, REFERENCE, fault_night, healthy_year
from rigctl.sim.nights.peers import RULES, Figures, flagged, fleet_means

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bench.stage import Stage
    from rigctl.sim.nights.fleet import Member
    from rigctl.sim.nights.park import Outcome

NAME = "detection"
RIGS, NIGHTS, SEEDS = 30, 100, 3
SHOWN = 5
"""So many misses are told by name."""


@dataclass(frozen=True)
class Healthy:
    """One healthy night, as much of it as is counted."""

    night: int
    alarms: tuple[str, ...]
    """`check[subject]: reason` of whatever went wrong."""
    figures: Figures


@dataclass(frozen=True)
class Faulty:
    """One night with a fault."""

    fault: str
    seed: int
    profile: str
    is_fault: bool
    """Whether the catalogue says that a check must find it; else acceptance must pass."""
    found: bool
    right: bool
    first: str
    """The first cause that people are shown."""
    figures: Figures


def measure(stage: Stage) -> list[Figure]:
    """Run all nights; needs no rig of the stage."""
    del stage
    healthy, faulty = run(RIGS, NIGHTS, SEEDS)
    return [*told(healthy, faulty), *captured()]


def run(
    rigs: int, nights: int, seeds: int, names: Sequence[str] = tuple(HARDWARE_FAULTS)
) -> tuple[list[Healthy], list[Faulty]]:
    """Run `nights` healthy nights of each of `rigs` rigs, and each fault with each seed, on all processors."""
    fleet = members(REFERENCE, max(rigs, seeds))
    fleets = {REFERENCE: fleet} | {one: members(one, seeds) for one in sorted({*CLASS_OF.values()} if names else ())}
    jobs = [(fleets[CLASS_OF.get(name, REFERENCE)][seed], name, seed) for name in names for seed in range(seeds)]
    with ProcessPoolExecutor(max_workers=os.cpu_count()) as pool:
        faulty = pool.map(_faulty, *zip(*jobs, strict=True)) if jobs else ()
        years = pool.map(_year, fleet[:rigs], [nights] * rigs)
        return [night for year in years for night in year], list(faulty)


def _year(member: Member, nights: int) -> list[Healthy]:
    return [
        Healthy(night, _alarms(outcome), outcome.figures) for night, outcome in enumerate(healthy_year(member, nights))
    ]


def _alarms(outcome: Outcome) -> tuple[str, ...]:
    return tuple(f"{outcome.rig} day {outcome.number}: {one.key}: {one.reason}" for one in outcome.bad)


def _faulty(member: Member, name: str, seed: int) -> Faulty:
    outcome = fault_night(member, name, seed)
    causes = outcome.record.causes
    first = f"{causes[0].key}: {causes[0].reason}" if causes else "nothing"
    return Faulty(
        name,
        seed,
        outcome.profile,
        bool(outcome.info.found_by),
        outcome.found,
        outcome.right,
        first,
        outcome.figures,
    )


def told(healthy: Sequence[Healthy], faulty: Sequence[Faulty]) -> list[Figure]:
    """Say what was found, what was named, and what was called bad for nothing; then the same of the rules of others."""
    real = [one for one in faulty if one.is_fault]
    calm = [one for one in faulty if not one.is_fault]
    false = sum(bool(one.alarms) for one in healthy) + sum(not one.found for one in calm)
    missed = [f"{one.fault} (seed {one.seed}, {one.profile}): {one.first}" for one in real if not one.found]
    wrong = [f"{one.fault} (seed {one.seed}): {one.first}" for one in real if one.found and not one.right]
    alarms = [alarm for one in healthy for alarm in one.alarms] + [one.first for one in calm if not one.found]
    how = (
        f"{len({one.fault for one in real})} faults of the hardware × {len(real) // max(1, _kinds(real))} seeds, each "
        "after an accepted night of the same rig, with the first profile of standard, full and soak that claims it"
    )
    nights = (
        f"{len(healthy)} nights of {REFERENCE} rigs through a year: seasons, dust, age, noise, no two boards alike, "
        "each with the baseline of the nights before" + (f", and {len(calm)} changes that are no fault" if calm else "")
    )
    found, right = (_share([getattr(one, what) for one in real]) for what in ("found", "right"))
    return [
        figure("detection: faults found", [found], "%", how + _listed(missed), goal=("≥", 100)),
        figure("detection: right cause first", [right], "%", how + _listed(wrong), goal=("≥", 95)),
        figure("detection: false alarms", [false], "nights", nights + _listed(alarms), goal=("=", 0)),
        *_of_peers(healthy, real),
    ]


def _kinds(faulty: Sequence[Faulty]) -> int:
    return len({one.fault for one in faulty})


def _share(answers: Sequence[bool]) -> float:
    return 100 * sum(answers) / len(answers) if answers else 100.0


def _listed(what: Sequence[str]) -> str:
    return f"; {len(what)}: " + " | ".join(what[:SHOWN]) if what else ""


def _of_peers(healthy: Sequence[Healthy], real: Sequence[Faulty]) -> list[Figure]:
    """Feed the same readings to the rules of others; each night is held against the fleet of that night."""
    by_night: dict[int, list[Figures]] = {}
    for one in healthy:
        by_night.setdefault(one.night, []).append(one.figures)
    means = {night: fleet_means(figures) for night, figures in by_night.items()}
    usual = fleet_means([one.figures for one in healthy])
    found, false = Counter[str](), Counter[str]()
    for fault in real:
        found.update(rule for rule, bad in flagged(fault.figures, usual).items() if bad)
    for night in healthy:
        false.update(rule for rule, bad in flagged(night.figures, means[night.night]).items() if bad)
    how = "the same readings; a figure that is missing counts as found"
    shown = []
    for rule in RULES:
        shown.append(figure(f"detection: faults found by {rule}", [100 * found[rule] / max(1, len(real))], "%", how))
        shown.append(figure(f"detection: false alarms of {rule}", [false[rule]], "nights", how))
    return shown


def captured() -> list[Figure]:
    """Judge the outputs of real machines that are at hand; none where they are not."""
    known = judged()
    if not known:
        return []
    wrong = [f"{one.file}: {one.said}, true is {one.true}" for one in known if not one.right]
    how = f"{len(known)} outputs of gpu-burn and kernel logs of real machines, judged by the same checks"
    share = _share([one.right for one in known])
    return [figure("detection: real captures judged rightly", [share], "%", how + _listed(wrong), goal=("≥", 100))]
