"""Wall power beside what arrives at cards and processor: the rest, the efficiency, and what a run costs in energy."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from rigctl.checks import load, wall
from rigctl.checks.power import unbelieved, unread
from rigctl.checks.say import Say

if TYPE_CHECKING:
    from rigctl.model.reading import Readings
    from rigctl.model.spec import ProfileSpec, RigSpec
    from rigctl.model.verdict import CheckVerdict

_KEY = "limits.max_wall_residual_share"
_GAP_S = 5.0
"""Between readings further apart than this the power is not known, seconds."""
_J_PER_KWH = 3.6e6
_FIX = (
    "the supply: its temperature, its age, two of them sharing a small load; or pump, fans and disks;"
    " or another device on the meter"
)


def residual(spec: RigSpec, readings: Readings, profile: ProfileSpec) -> list[CheckVerdict]:
    """What the wall gives and neither cards nor processor take stays a small part: supply, board, memory, fans."""
    if spec.wall_meter is None:
        return [Say("power.residual").skipped("the spec names no wall meter")]
    return [_residual(spec, readings, step) for step in load.gpu_steps(profile)]


def _residual(spec: RigSpec, readings: Readings, step: str) -> CheckVerdict:
    most = spec.limits.max_wall_residual_share
    say = Say("power.residual", step, most, "share", spec.source(_KEY))
    found = wall.state(readings, step)
    if most is None:
        return say.skipped("the spec sets no share" + (f": {_words(found)}" if found is not None else ""))
    if why := _unmeasured(say, spec, readings, step):
        return why
    if found is None:
        return say.error("the cards' own power was not read", f"nvidia-smi -q -d POWER on {readings.rig}")
    if found.cpu_w is None:
        return say.blind(f"this rig shows no CPU power, so the processor is part of the rest: {_words(found)}")
    share = (found.wall_w - found.inside_w) / found.wall_w
    if share > most:
        return say.failed(f"{_words(found)}; at most {most:.0%} are expected", share, _FIX)
    return say.passed(_words(found), share)


def _unmeasured(say: Say, spec: RigSpec, readings: Readings, step: str) -> CheckVerdict | None:
    """Say why there is nothing to reconcile; None where there is."""
    samples = wall.settled(readings, step)
    if len(samples) < load.FEWEST:
        return say.error(*load.why_no_load(readings, step))
    if cut := load.cut_short(readings, step):
        return say.error(f"nothing settled: {cut.reason}", cut.fix)
    read = sum(sample.wall_power_w is not None for sample in samples)
    if read < max(load.FEWEST, wall.FEWEST_SHARE * len(samples)):
        return unread(say, spec, readings, samples, read)
    doubt = wall.doubt(readings, step)
    return unbelieved(say, spec, doubt) if doubt else None


def _words(found: wall.State) -> str:
    rest_w = found.wall_w - found.inside_w
    cpu = "" if found.cpu_w is None else f", CPU {found.cpu_w:.0f} W"
    return (
        f"{found.wall_w:.0f} W at the wall in step {found.step}: cards {found.cards_w:.0f} W{cpu},"
        f" the rest {rest_w:.0f} W ({rest_w / found.wall_w:.0%}); {found.inside_w / found.wall_w:.0%} arrive there,"
        f" {found.wall_w / 1000:.2f} kWh an hour"
    )


def notes(readings: Readings) -> tuple[str, ...]:
    """Say what the run took from the wall; nothing where the meter was not read, or cannot be believed."""
    if any(wall.doubt(readings, state.step) for state in wall.states(readings)):
        return ()
    energy_j = time_s = 0.0
    for one, two in pairwise(readings.samples):
        passed_s = two.t_mono_s - one.t_mono_s
        together = one.boot_id == two.boot_id and 0 < passed_s <= _GAP_S
        if together and one.wall_power_w is not None and two.wall_power_w is not None:
            energy_j += passed_s * (one.wall_power_w + two.wall_power_w) / 2
            time_s += passed_s
    if time_s <= 0:
        return ()
    kwh, hours = energy_j / _J_PER_KWH, time_s / 3600
    return (f"energy at the wall: {kwh:.3f} kWh in {time_s / 60:.1f} min of readings, {kwh / hours:.2f} kWh an hour",)
