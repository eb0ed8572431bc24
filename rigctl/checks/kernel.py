"""The kernel's words: no new Xid, and the same boot from the first reading to the last."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rigctl.checks import load, xid_history
from rigctl.checks.cards import cards
from rigctl.checks.say import Say
from rigctl.checks.xid_fixes import fix_of
from rigctl.parse import ParseError, xid

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rigctl.model.history import PastXid
    from rigctl.model.reading import KernelMessage, Readings, RigEvent
    from rigctl.model.verdict import CheckVerdict
    from rigctl.parse.xid import Effect

SOURCE = "rigctl/parse/xid_classes.csv, from NVIDIA's Xid catalogue of 2025-10-29"
END_SLACK_S = 2.0
"""Clocks of kernel log and agent agree to less than this, seconds."""
_AFTER_BURN = frozenset({"gpu_burn"})
"""Workers of gpu-burn are processes of their own, known by name."""


@dataclass(frozen=True)
class Seen:
    """One Xid of the run, the card it belongs to, and what it means here."""

    message: KernelMessage
    xid: xid.Xid
    slot: int | None
    effect: Effect


def seen_xids(readings: Readings) -> tuple[list[Seen], ParseError | None]:
    """Return every Xid of the run that is a finding, and the first Xid message whose form is not known, if any."""
    found: list[tuple[KernelMessage, xid.Xid]] = []
    unknown: ParseError | None = None
    for message in readings.kernel:
        try:
            event = xid.parse(message.message)
        except ParseError as error:
            unknown = unknown or error
            continue
        if event is not None and not _own_ending(readings, message, event):
            found.append((message, event))
    seen = [Seen(message, e, _slot(readings, e), _effect(readings, message, e)) for message, e in found]
    return seen, unknown


def failing_xids(readings: Readings) -> list[Seen]:
    """Return the Xids that fail their card."""
    return [seen for seen in seen_xids(readings)[0] if seen.effect == "fail"]


def _slot(readings: Readings, event: xid.Xid) -> int | None:
    return next((gpu.slot for gpu in cards(readings) if xid.same_card(gpu.pci_bus_id, event.pci_bus_id)), None)


def _effect(readings: Readings, message: KernelMessage, event: xid.Xid) -> Effect:
    """Turn `burn` into what it means at that moment: a fault while our own load ran, else a warning."""
    effect = xid.meaning(event.number).effect
    if effect != "burn":
        return effect
    return "fail" if any(start <= message.t_wall_s <= end for start, end in _load_times(readings)) else "warn"


def _load_times(readings: Readings) -> list[tuple[float, float]]:
    """Return from when to when our loads were on the cards, by the rig's wall clock."""
    times = []
    for started in load.events(readings, "load_started"):
        if started.detail.get("load") == "cpu":
            continue
        ended = _end_of(readings, started.step, started.detail.get("load"))
        times.append((started.t_wall_s - END_SLACK_S, ended + END_SLACK_S))
    return times


def _end_of(readings: Readings, step: str | None, kind: object) -> float:
    exited = [e.t_wall_s for e in load.events(readings, "load_exited", step) if e.detail.get("load") == kind]
    return exited[0] if exited else float("inf")


def _own_ending(readings: Readings, message: KernelMessage, event: xid.Xid) -> bool:
    """Whether this is the channel clean-up of our own process at its end: gpu-burn ends its workers by signal."""
    if event.number != xid.CHANNEL_REMOVED:
        return False
    return any(
        _began_to_end(readings, started) - END_SLACK_S
        <= message.t_wall_s
        <= _end_of(readings, started.step, started.detail.get("load")) + END_SLACK_S
        for started in load.events(readings, "load_started")
        if event.process in _AFTER_BURN or event.pid == started.detail.get("pid")
    )


def _began_to_end(readings: Readings, started: RigEvent) -> float:
    """Return when a load began to end: at its planned time, when the guard stopped it, or when it exited."""
    stops = [stop.t_wall_s for stop in load.events(readings, "guard_stopped", started.step)]
    planned = started.t_wall_s + _planned_s(started.detail.get("argv"))
    return min([planned, _end_of(readings, started.step, started.detail.get("load")), *stops])


def _planned_s(argv: object) -> float:
    """Return the burn's time: gpu-burn's last argument."""
    last = argv[-1] if isinstance(argv, list | tuple) and argv else ""
    return float(last) if isinstance(last, str) and last.isdecimal() else float("inf")


def no_xid(readings: Readings, past: Sequence[PastXid] = ()) -> list[CheckVerdict]:
    """The kernel log of the run's time holds no Xid; without a run, that of this boot.

    `past` are those of the rig's runs in the week before: what comes again is the hardware's.
    """
    say = Say("kernel.xid", expected="none", source=SOURCE)
    rig = readings.rig
    seen, unknown = seen_xids(readings)
    subjects = {gpu.slot: gpu.subject for gpu in cards(readings)}
    by_subject: dict[str, list[Seen]] = {}
    for one in seen:
        where = subjects.get(one.slot, f"card at {one.xid.pci_bus_id}") if one.slot else f"card at {one.xid.pci_bus_id}"
        by_subject.setdefault(where, []).append(one)
    # What was seen counts, also where the rest of the log could not be read.
    found = [_of_card(say.of(subject), readings, by_subject[subject], past) for subject in sorted(by_subject)]
    if unknown is not None:
        return [*found, say.error(str(unknown), f"look it up in the kernel log of {rig}, and report this form")]
    if not readings.kernel_read:
        return [*found, say.error("the kernel log could not be read", f"`sudo journalctl -k` must work on {rig}")]
    if not found and rebooted(readings):
        reason = "the kernel's last words before the reboot may not have reached the disk; none that did is an Xid"
        return [say.error(reason, f"`sudo journalctl -k -b -1` on {rig}, where its journal is kept")]
    count = len(readings.kernel)
    again = [] if found else _came_again(say, readings, past)
    return found or again or [say.passed(f"no Xid in {count} kernel message{'s' if count != 1 else ''}", "none")]


def _came_again(say: Say, readings: Readings, past: Sequence[PastXid]) -> list[CheckVerdict]:
    """Warn of cards that are well now, and had the same Xid twice in the week before."""
    warned = []
    for gpu in cards(readings):
        if incidents := xid_history.repeated(past, readings, gpu):
            number, days = incidents[0].number, xid_history.days_of(incidents)
            reason = f"no Xid in this run, but Xid {number} {len(incidents)} times in the week before ({days})"
            warned.append(say.of(gpu.subject).warned(reason, "none", xid_history.INSPECT))
    return warned


def _of_card(say: Say, readings: Readings, seen: list[Seen], past: Sequence[PastXid]) -> CheckVerdict:
    # A channel that was cleared away (45) follows from another Xid, if there is one.
    worst = min(seen, key=lambda one: (one.effect != "fail", one.xid.number == xid.CHANNEL_REMOVED))
    numbers = ", ".join(str(number) for number in sorted({one.xid.number for one in seen}))
    meaning = xid.meaning(worst.xid.number)
    reason = f"Xid {worst.xid.number} ({meaning.mnemonic}): {worst.xid.text or 'no text'}"
    if len(seen) > 1:
        reason += f"; {len(seen)} Xid messages in all ({numbers})"
    fix = fix_of(worst.xid.number, meaning, readings.rig)
    gpu = next((one for one in cards(readings) if one.slot == worst.slot), None)
    before = xid_history.earlier(past, worst.xid.number, worst.message.t_wall_s, gpu, worst.xid.pci_bus_id)
    if before:
        reason += f"; the same in the week before: {xid_history.days_of(before)}"
        fix = f"{xid_history.INSPECT}; {fix}"
    if worst.effect == "fail":
        return say.failed(reason, numbers, fix)
    return say.warned(reason, numbers, fix)


def _boots(readings: Readings) -> list[str]:
    """Return the boot ids of the run in their order."""
    first = [readings.facts.boot_id] if readings.facts else []
    last = [readings.boot_id_after] if readings.boot_id_after else []
    return list(dict.fromkeys([*first, *(sample.boot_id for sample in readings.samples), *last]))


def rebooted(readings: Readings) -> bool:
    """Whether the rig was seen in more than one boot."""
    return len(_boots(readings)) > 1


def same_boot(readings: Readings) -> list[CheckVerdict]:
    """The rig did not reboot between the first reading and the last."""
    say = Say("kernel.same_boot", expected="one boot")
    if readings.facts is None or readings.boot_id_after is None:
        reason = "the rig's boot id was not read at both ends of the run"
        return [say.error(reason, f"rigctl doctor {readings.rig}, then `rigctl accept {readings.rig}` again")]
    boots = _boots(readings)
    if len(boots) == 1:
        return [say.passed("the rig did not reboot", "one boot")]
    last = max((s for s in readings.samples if s.boot_id == boots[0]), key=lambda s: (s.part, s.seq), default=None)
    when = f", last sample in step {last.step}" if last else ""
    fix = "a rig that goes off under load: power supply, cables and circuit first; then `last -x` and its BIOS log"
    return [say.failed(f"the rig rebooted in the middle of the run{when}", f"{len(boots)} boots", fix)]
