"""Power brake: whether the supply or the board asks a card to draw less, at whatever moment of the run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rigctl.checks import load
from rigctl.checks.cards import each_card
from rigctl.checks.say import Say

if TYPE_CHECKING:
    from rigctl.model.reading import GpuFacts, Readings
    from rigctl.model.spec import RigSpec
    from rigctl.model.verdict import CheckVerdict

CHECK = "power.brake"
POWER_BRAKE = 0x80
"""NVML's clocks throttle (event) reason `HwPowerBrakeSlowdown`; a mask, so the bit is tested."""
FIX = "power supply or its cables to the card: one cable per connector; then the supply's own alarms"


def brake(spec: RigSpec, readings: Readings) -> list[CheckVerdict]:
    """No card was told by its supply or board to draw less: one sample is enough, the signal is no matter of degree."""
    say = Say(CHECK, expected="no power brake", source="NVML's throttle reason HwPowerBrakeSlowdown")

    def judge(gpu: GpuFacts, say: Say) -> CheckVerdict:
        seen = [(s.step, one) for s in readings.samples for one in s.gpus if one.uuid == gpu.uuid and one.error is None]
        told = [(step, one.throttle) for step, one in seen if one.throttle is not None]
        steps = [step for step, mask in told if mask > 0 and mask & POWER_BRAKE]
        stops = [stop for stop in stopped_by_brake(readings) if stop[0] == gpu.slot]
        if steps or stops:
            where = ", ".join(dict.fromkeys([*steps, *(step for _, step in stops if step)]))
            count = f"in {len(steps)} of {len(told)} samples" if steps else "and the guard stopped the load"
            return say.failed(f"supply or board signalled power brake in step {where}, {count}", "power brake", FIX)
        if not seen:
            return say.error("no sample of the card could be read", f"see telemetry of {readings.rig}")
        if not told:
            return say.blind("this card or driver does not tell why it slows down")
        if absurd := next((mask for _, mask in told if mask < 0), None):
            return say.error(f"the card's throttle reasons read {absurd}, which is no mask", "reboot; then the driver")
        if len(told) < load.FEWEST:
            return say.error(f"only {len(told)} of {len(seen)} samples tell it", f"see telemetry of {readings.rig}")
        return say.passed(f"none in {len(told)} samples", "none")

    return each_card(say, spec, readings, judge)


def stopped_by_brake(readings: Readings, step: str | None = None) -> list[tuple[object, str | None]]:
    """Return slot and step of each load that the guard stopped for power brake, of one step where given."""
    stops = load.events(readings, "guard_stopped", step)
    return [(stop.detail.get("slot"), stop.step) for stop in stops if stop.detail.get("reason") == "power_brake"]


def braked(readings: Readings, step: str) -> bool:
    """Whether any card was told to draw less in `step`."""
    masks = [one.throttle or 0 for sample in readings.of_step(step) for one in sample.gpus if one.error is None]
    return any(mask > 0 and mask & POWER_BRAKE for mask in masks) or bool(stopped_by_brake(readings, step))
