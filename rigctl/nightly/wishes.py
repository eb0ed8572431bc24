"""What each rig wants tonight: its profile, how long that takes as far as is known, and what it draws."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING

from rigctl.measure.plan import step_seconds
from rigctl.nightly.planner import Rotation, Wish
from rigctl.store.canonical import digest
from rigctl.trends.series import day_of

if TYPE_CHECKING:
    from datetime import datetime

    from rigctl.model.past import Past
    from rigctl.model.rig import Rig
    from rigctl.nightly.settings import Park
    from rigctl.store.index import Index

OVERHEAD_S = 60
"""Connecting, facts, probes and judging, before a rig's own runs have shown it, seconds."""
MARGIN = 1.15
"""A profile may take so much longer than it did."""
LEARNED_FROM = 10
"""Durations are learned from so many of the newest runs of the same profile."""
SURE_FROM = 3
"""A median of fewer is one of them, or their mean."""
REST_W, CPU_W = 100.0, 250.0
"""Board, disks, fans and losses; and a processor under load: where no figure for the wall is declared or was read."""


def wishes(park: Park, index: Index, now: datetime) -> list[Wish]:
    """Return one wish for each rig. Raises RigctlError as the index."""
    spec = park.spec
    pasts = {rig.name: index.pasts(rig.name, limit=200) for rig in park.fleet}
    profiles = {rig.name: spec.profile for rig in park.fleet}
    if spec.deep_profile is not None:
        last = {
            rig.name: day_of(past.ended_at)
            for rig in park.fleet
            for past in pasts[rig.name]
            if past.profile == spec.deep_profile and _whole(past, rig)
        }
        deep = Rotation(spec.deep_every_days, last).tonight(list(profiles), day_of(now.isoformat()))
        profiles |= dict.fromkeys(deep, spec.deep_profile)
    return [wish_of(rig, profiles[rig.name], pasts[rig.name], park) for rig in park.fleet]


def _whole(past: Past, rig: Rig) -> bool:
    """Whether a rig was judged after all steps of the profile: one that the window's end cut short comes again."""
    if past.verdict is None:
        return False
    return (
        not past.seconds
        or step_seconds(rig.spec, rig.profiles[past.profile], first=False).keys() <= past.seconds.keys()
    )


def wish_of(rig: Rig, profile: str, pasts: tuple[Past, ...], park: Park) -> Wish:
    """One rig's wish."""
    return Wish(rig.name, profile, expected_s(rig, profile, pasts), watts(rig), park.circuit.get(rig.name))


def expected_s(rig: Rig, profile: str, pasts: tuple[Past, ...]) -> float:
    """How long an acceptance takes: as its own accepted runs did, else by its steps; seconds, with a margin.

    Only runs teach that asked for what the profile says today. While there are fewer than `SURE_FROM`, what the steps
    say counts as one more: so one odd night does not decide.
    """
    asked = rig.profiles[profile]
    today = digest(asked)
    took = [
        sum(past.seconds.values())
        for past in pasts
        if past.accepted and past.seconds and past.profile == profile and past.asked == today
    ][-LEARNED_FROM:]
    if len(took) < SURE_FROM:
        first = not any(past.accepted and past.burnt for past in pasts)
        took.append(OVERHEAD_S + sum(step_seconds(rig.spec, asked, first=first).values()))
    return MARGIN * median(took)


def watts(rig: Rig) -> float:
    """What the rig draws at most: the wall's figure of its spec, else the cards' limits with the rest added; W."""
    declared = rig.spec.limits.wall_power_all_burn_w
    if declared is not None:
        return declared
    limit = rig.spec.software.power_limit_w or 0.0
    return rig.spec.parts.gpu_count * limit + CPU_W + REST_W
