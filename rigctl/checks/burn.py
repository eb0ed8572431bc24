"""The oracle of gpu-burn: what its output and the rig's own events say, never its exit status alone.

Its floors of power and rate have verdicts of their own (`power.share_of_limit`, `throughput.burn_gflops`), as have the
kernel's messages (`kernel.xid`) and the reboot (`kernel.same_boot`); this one also fails a card with a failing Xid.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rigctl.checks import load
from rigctl.checks.cards import cards, each_card, why_no_card
from rigctl.checks.kernel import failing_xids
from rigctl.checks.say import Say
from rigctl.parse import gpu_burn

if TYPE_CHECKING:
    from rigctl.model.reading import GpuFacts, Readings
    from rigctl.model.spec import ProfileSpec, RigSpec
    from rigctl.model.verdict import CheckVerdict

_FAULTY = "take the card out of use: lower its clocks or limit to see whether it is the supply; then replace it"
_SETTLED = 2 / 3
_SHORT = 0.98
"""A burn that ran for less than this share of the asked time ended early."""
CLEAN = "every summary without errors, every card reported, the whole time"


@dataclass(frozen=True)
class Burn:
    """One step's burn: its log as read, and what the rig's events say of the process."""

    step: str
    asked_s: float
    log: gpu_burn.BurnLog | None
    ran_s: float | None
    exit_status: int | None
    early: str | None = None
    """Why it was ended before its time, because its verdict was certain; None: it was not."""

    def percent(self, share: float) -> float:
        """Return which percentage of the asked time is `share` of the time that was burnt."""
        whole = 100.0 if self.early is None or self.log is None or not self.log.rows else self.log.rows[-1].percent
        return share * whole


def burns(readings: Readings, profile: ProfileSpec) -> list[Burn]:
    """Return the burn of every asked GPU step."""
    return [_burn(readings, step, load.asked_seconds(profile, step)) for step in load.gpu_steps(profile)]


def _burn(readings: Readings, step: str, asked_s: float) -> Burn:
    text = readings.logs.get(f"{step}.log")
    exited = next((e for e in load.events(readings, "load_exited", step) if e.detail.get("load") == "gpu"), None)
    seconds = exited.detail.get("seconds") if exited else None
    status = exited.detail.get("exit_status") if exited else None
    return Burn(
        step,
        asked_s,
        gpu_burn.parse(text) if text else None,
        float(seconds) if isinstance(seconds, int | float) else None,
        status if isinstance(status, int) else None,
        load.ended_early(readings, step),
    )


def oracle(spec: RigSpec, readings: Readings, profile: ProfileSpec) -> list[CheckVerdict]:
    """Judge gpu-burn as a whole (`rig`) and card by card."""
    say = Say("throughput.gpu_burn", expected="no error", source="gpu-burn compares every product with the first one")
    all_burns = burns(readings, profile)
    if not cards(readings):
        return [say.error(*why_no_card(readings))]
    whole = _whole(say, spec, readings, all_burns)
    if all(burn.log is None for burn in all_burns):
        return [whole]
    return [whole, *each_card(say, spec, readings, lambda gpu, say: _card(say, readings, gpu, all_burns))]


def _whole(say: Say, spec: RigSpec, readings: Readings, all_burns: list[Burn]) -> CheckVerdict:
    """Whether the burns ran, to their end, on as many cards as expected, and could be understood."""
    for burn in all_burns:
        if verdict := _did_not_run(say, readings, burn) or _count(say, spec, burn) or _early(say, readings, burn):
            return verdict
    ran = " + ".join(f"{burn.ran_s:.0f} s" for burn in all_burns if burn.ran_s is not None)
    saved = "".join(
        f"; {burn.step} ended after {burn.ran_s:.0f} of {burn.asked_s:.0f} s, {burn.asked_s - burn.ran_s:.0f} s saved: "
        f"{burn.early}"
        for burn in all_burns
        if burn.early is not None and burn.ran_s is not None
    )
    return say.passed(f"gpu-burn ran to its end on {spec.parts.gpu_count} cards ({ran}){saved}", "ran to its end")


def _did_not_run(say: Say, readings: Readings, burn: Burn) -> CheckVerdict | None:
    log, look = burn.log, f"see {burn.step}.log of {readings.rig} in the run directory"
    if log is None:
        no_load = load.why_no_load(readings, burn.step)
        return say.error(no_load.reason, no_load.fix)
    if log.help_shown:
        return say.error(f"gpu-burn printed its help in step {burn.step} and burnt nothing", look)
    if log.unknown is not None:
        return say.error(f"{burn.step}.log has an unknown form, first at the line {log.unknown[:160]!r}", look)
    if log.aborted is not None:
        why = f"; first trouble: {log.trouble[0]}" if log.trouble else ""
        return say.error(f"gpu-burn gave up in step {burn.step}: {log.aborted}{why}", look)
    return None


def _count(say: Say, spec: RigSpec, burn: Burn) -> CheckVerdict | None:
    log, asked = burn.log, spec.parts.gpu_count
    if log is None or log.tested is None or log.tested == asked:
        return None
    reason = f"gpu-burn tested {log.tested} cards in step {burn.step}, the spec says {asked}"
    return say.failed(
        reason, f"{log.tested} cards", "see topology.gpu_count; `./gpu_burn -l` on the rig lists its cards"
    )


def _early(say: Say, readings: Readings, burn: Burn) -> CheckVerdict | None:
    log = burn.log
    stop = next(iter(load.events(readings, "guard_stopped", burn.step)), None)
    if stop is not None:
        reason = f"the guard ended step {burn.step} before its time ({stop.detail.get('reason', 'no reason given')})"
        return say.error(reason, "see thermals.guard")
    look = f"see {burn.step}.log and guard.log of {readings.rig} in the run directory"
    if burn.early is not None and log is not None and log.rows and burn.ran_s is not None:
        return None
    if log is None or log.tested is None or log.cut:
        status = "" if burn.exit_status is None else f", exit status {burn.exit_status}"
        return say.error(f"gpu-burn's output in step {burn.step} ends before its summary{status}", look)
    return _too_short(say, burn, look)


def _too_short(say: Say, burn: Burn, look: str) -> CheckVerdict | None:
    if burn.ran_s is None:
        return say.error(f"the rig did not tell how long gpu-burn ran in step {burn.step}", look)
    if burn.ran_s < burn.asked_s * _SHORT:
        return say.error(f"gpu-burn ran {burn.ran_s:.0f} s in step {burn.step}, asked were {burn.asked_s:.0f} s", look)
    if burn.exit_status != 0:
        return say.error(f"gpu-burn ended with status {burn.exit_status} in step {burn.step}", look)
    return None


def _card(say: Say, readings: Readings, gpu: GpuFacts, all_burns: list[Burn]) -> CheckVerdict:
    """One card over all burns: the first fault decides, a gap in what was seen is an error."""
    failing = [xid for xid in failing_xids(readings) if xid.slot == gpu.slot]
    faults = [fault for burn in all_burns if burn.log is not None and (fault := _fault(gpu, burn, burn.log))]
    if faults or failing:
        reason = faults[0] if faults else f"the kernel reported Xid {failing[0].xid.number} of it"
        return say.failed(reason, "a fault", _FAULTY)
    look = f"see {', '.join(f'{burn.step}.log' for burn in all_burns)} of {readings.rig} in the run directory"
    for burn in all_burns:
        if gap := _gap(gpu, burn):
            return say.error(gap, look)
    return say.passed(CLEAN, "no error")


def _worker(gpu: GpuFacts, log: gpu_burn.BurnLog) -> int | None:
    """gpu-burn's number of a card, by UUID; the agent has CUDA count in PCI bus order, as nvidia-smi does."""
    return next((card.index for card in log.cards if card.uuid == gpu.uuid), None)


def _fault(gpu: GpuFacts, burn: Burn, log: gpu_burn.BurnLog) -> str | None:
    """Return what gpu-burn says against the card, if anything."""
    number = _worker(gpu, log)
    if number is None:
        return None
    if number < len(log.errors) and (fault := _worker_fault(number, burn, log)):
        return fault
    if dict(log.verdicts).get(number) == "FAULTY":
        return f"gpu-burn calls it FAULTY in step {burn.step}"
    return None


def _worker_fault(number: int, burn: Burn, log: gpu_burn.BurnLog) -> str | None:
    """Return what gpu-burn's rows say against a worker, if anything."""
    step = burn.step
    if count := log.errors[number]:
        return f"{count} compare errors in step {step}"
    if log.warned[number]:
        return f"compare errors in step {step}, their number unknown"
    if log.died[number] and log.worked[number]:
        return f"its worker died in step {step} after it had worked"
    if log.worked[number] and log.stood_still(number, from_percent=burn.percent(_SETTLED)):
        return f"its worker stood still in the last third of step {step}, while another one went on"
    return None


def _gap(gpu: GpuFacts, burn: Burn) -> str | None:
    """Return what is missing for a clean bill of the card, if anything."""
    log, step = burn.log, burn.step
    if log is None:
        return f"step {step} left no output of gpu-burn"
    number = _worker(gpu, log)
    if number is None:
        return f"gpu-burn did not name the card in step {step}"
    if number >= len(log.died):
        return f"gpu-burn wrote no row with the card in step {step}: nothing was measured"
    if not log.worked[number]:
        what = "died before it had done anything" if log.died[number] else "did nothing (proc'd 0)"
        return f"its worker {what} in step {step}" + (f": {log.trouble[0]}" if log.trouble else "")
    if burn.early is not None and not dict(log.verdicts):
        return None  # its summary is what was saved; its rows have counted the errors
    return None if dict(log.verdicts).get(number) == "OK" else f"gpu-burn did not call it OK in step {step}"
