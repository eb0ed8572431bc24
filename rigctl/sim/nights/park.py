"""Nights of a park: healthy ones with the baseline that the nights before have made, and nights with a fault."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rigctl.checks.catalogue import CATALOGUE
from rigctl.model.verdict import Record, Verdict
from rigctl.sim.machine.hardware.rigsim.faults import HARDWARE_FAULTS, new_fault
from rigctl.sim.nights.fleet import DAYS, night_profile
from rigctl.sim.nights.hardware import Hardware
from rigctl.sim.nights.judging import judge
from rigctl.sim.nights.night import Asked, Night
from rigctl.sim.nights.peers import Figures, figures_of
from rigctl.store.baseline import ACCEPTED, grown

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rigctl.model.baseline import Baseline
    from rigctl.model.reading import Readings
    from rigctl.model.spec import ProfileSpec
    from rigctl.model.verdict import CheckVerdict, RigRecord
    from rigctl.sim.machine.hardware.rigsim.faults import Applied, FaultInfo
    from rigctl.sim.nights.fleet import Member

BAD = (Verdict.FAIL, Verdict.ERROR)
PROFILES = ("standard", "full", "soak")
"""A fault is looked for with the first of these in which all the checks that claim to find it are made."""
UNDER_LOAD = ("falls_off_bus",)
"""Faults that happen when a load begins, whatever the seed."""
REFERENCE = "dual_3090ti"
CLASS_OF = dict.fromkeys(("ecc_errors", "row_remap_pending", "fabric_manager_off"), "octo_a100")
"""Faults of what the reference class has not: the class on whose rigs they are looked for."""
NIGHT_S = 86_400.0
FIRST_NIGHT_S = 1_767_225_600.0
"""The first of January 2026."""


@dataclass(frozen=True)
class Outcome:
    """What one night came to."""

    rig: str
    number: int
    """The day of the year."""
    profile: str
    record: RigRecord
    figures: Figures
    fault: str = ""
    words: dict[str, str] = field(default_factory=dict)

    @property
    def bad(self) -> tuple[CheckVerdict, ...]:
        """What failed or stayed unmeasured."""
        return tuple(one for one in self.record.verdicts if one.verdict in BAD)

    @property
    def info(self) -> FaultInfo:
        """What the catalogue says of its fault."""
        return HARDWARE_FAULTS[self.fault]

    @property
    def asked(self) -> bool:
        """Whether every check that claims its fault was really made, and not left out for some reason."""
        left_out = {one.check for one in self.record.verdicts if one.verdict in (Verdict.SKIP, Verdict.BLIND)}
        return not left_out & set(self.info.found_by)

    @property
    def found(self) -> bool:
        """Whether a check that the catalogue names went wrong; a fault that is none must pass."""
        if not self.info.found_by:
            return not self.bad
        return bool({one.check for one in self.bad} & set(self.info.found_by))

    @property
    def right(self) -> bool:
        """Whether the first cause that people are shown is one that the catalogue names."""
        causes = self.record.causes
        if not self.info.found_by:
            return not causes
        return bool(causes) and causes[0].check in self.info.found_by


def profiles_of(member: Member, fault: FaultInfo) -> list[tuple[str, ProfileSpec]]:
    """Return the profiles that list every check that claims a fault, the shortest first. Raises LookupError."""
    known = [(name, night_profile(member.rig.profiles[name])) for name in PROFILES]
    found = [one for one in known if all(CATALOGUE[check].listed(one[1]) for check in fault.found_by)]
    if not found:
        message = f"no profile of {', '.join(PROFILES)} lists all of {', '.join(fault.found_by)}"
        raise LookupError(message)
    return found


def one_night(
    member: Member,
    day: int,
    profile: tuple[str, ProfileSpec],
    baseline: Baseline | None,
    fault: Applied | None = None,
) -> tuple[Outcome, Readings]:
    """Measure and judge one night of one rig."""
    seed = member.seed * 1_000_003 + member.number * DAYS + day
    asked = Asked(member.rig.name, member.spec, profile[1], baseline, FIRST_NIGHT_S + day * NIGHT_S)
    faults = [fault] if fault is not None else []
    rig = Hardware(member.identity, faults, member.conditions(day), seed)
    readings, host = Night(asked, rig, seed).measure()
    record = judge(asked, readings, host)
    target_w = member.spec.software.power_limit_w or float(member.identity["card"]["power_default_w"])
    return Outcome(member.rig.name, day, profile[0], record, figures_of(readings, profile[1], target_w)), readings


def after(baseline: Baseline | None, outcome: Outcome, readings: Readings) -> Baseline | None:
    """Return the rig's baseline after a night: a night that was not accepted changes nothing."""
    if outcome.record.verdict not in ACCEPTED or readings.facts is None:
        return baseline
    ended = f"day {outcome.number:03d}"
    record = Record(
        run_id=f"night-{outcome.number:03d}",
        kind="accept",
        profile=outcome.profile,
        started_at=ended,
        ended_at=ended,
        rigctl_version="",
        rigs=(outcome.record,),
    )
    return grown(baseline, record, outcome.record, readings.facts)


def healthy_year(member: Member, nights: int) -> Iterator[Outcome]:
    """Run healthy nights through the year, each compared with those before, as a rig's own history."""
    profile = night_profile(member.rig.profiles["standard"])
    baseline: Baseline | None = None
    for night in range(nights):
        day = night * DAYS // nights
        outcome, readings = one_night(member, day, ("standard", profile), baseline)
        baseline = after(baseline, outcome, readings)
        yield outcome


def fault_night(member: Member, name: str, seed: int) -> Outcome:
    """Run one night with a fault, after an accepted one, with the first profile that really asks what claims it.

    Seed 0 takes the fault's own parameters; others choose the card by the seed.
    """
    info = HARDWARE_FAULTS[name]
    *shorter, longest = profiles_of(member, info)
    for profile in shorter:
        outcome = _with_fault(member, info, seed, profile)
        if outcome.asked:
            return outcome
    return _with_fault(member, info, seed, longest)


def _with_fault(member: Member, info: FaultInfo, seed: int, profile: tuple[str, ProfileSpec]) -> Outcome:
    day = (seed * 127 + 40) % DAYS
    accepted, before = one_night(member, day - 1, profile, None)
    words = _words(info, seed, len(member.identity["cards"]))
    fault = new_fault(info.name, words, "load" if info.name in UNDER_LOAD else "now", "another boot")
    outcome, _ = one_night(member, day, profile, after(None, accepted, before), fault)
    return Outcome(outcome.rig, day, outcome.profile, outcome.record, outcome.figures, info.name, words)


def _words(info: FaultInfo, seed: int, cards: int) -> dict[str, str]:
    of_card = any(one.name == "slot" for one in info.parameters)
    return {"slot": str(1 + seed % cards)} if of_card and seed else {}
