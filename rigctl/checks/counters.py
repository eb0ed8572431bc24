"""Error counters of NVLinks and of the PCIe bus: what they rose by between the first load and the last one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rigctl.checks.say import Say
from rigctl.checks.spans import COUNTERS, Span, each_span, rise

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rigctl.model.reading import BusErrors, Readings
    from rigctl.model.spec import RigSpec
    from rigctl.model.verdict import CheckVerdict

DCGM = "NVIDIA DCGM's own default"
CRC, LOST = ("replay", "crc_flit", "crc_data"), "recovery"
"""What a link mends by sending again, and what it had to be trained anew for."""
CORRECTED = "correctable"
_BRIDGE = "power the rig off and reseat the bridge on both cards; if the same links count errors, try another bridge"
_SLOT = "reseat card and riser, look at the slot for dirt; a riser may need a lower generation set in the BIOS"
_RESET = "was the driver loaded again?"
_AGAIN = "look at the kernel log, then accept the rig again"
_MINUTE_S = 60


def _source(spec: RigSpec, key: str) -> str:
    return spec.source(key) + ("" if key in spec.sources else f" ({DCGM})")


def nvlink_errors(spec: RigSpec, readings: Readings) -> list[CheckVerdict]:
    """No link had to be trained anew under load, and few packets had to be sent again."""
    most, source = spec.limits.max_nvlink_crc_errors, _source(spec, "limits.max_nvlink_crc_errors")
    say = Say("topology.nvlink_errors", expected=most, unit="errors", source=source)
    if spec.parts.nvswitch_links is None and not any(link.kind == "nvlink" for link in spec.parts.links):
        return [say.skipped("the spec declares no NVLink")]

    def judge(span: Span, say: Say) -> CheckVerdict:
        earlier = {link.link: link for link in span.before.links}
        both = [(earlier[link.link], link) for link in span.after.links if link.link in earlier]
        if not both:
            return say.error("none of its links was up both before and after the load", "see topology.nvlink")
        rises = {
            (name, late.link): risen
            for early, late in both
            for name in (*CRC, LOST)
            if (risen := rise(getattr(early, name), getattr(late, name))) is not None
        }
        if not rises:
            why = next(iter(span.after.missing.values()), "no reason given")
            return say.blind(f"this card or driver counts no errors of its links: {why}")
        return _link_errors(say, rises, most)

    return each_span(say, spec, readings, judge)


def _link_errors(say: Say, rises: dict[tuple[str, int], int], most: int) -> CheckVerdict:
    name, link = min(rises, key=rises.__getitem__)
    if rises[name, link] < 0:
        return say.error(f"{name} of link {link} fell by {-rises[name, link]}: {_RESET}", _AGAIN)
    if lost := {link: risen for (name, link), risen in rises.items() if name == LOST and risen > 0}:
        reason = f"link {min(lost)} had to be trained anew {lost[min(lost)]} times; none is allowed"
        return say.of(say.subject, 0).failed(reason, sum(lost.values()), _BRIDGE)
    name, link = max(rises, key=rises.__getitem__)
    if rises[name, link] > most:
        reason = f"{name} of link {link} rose by {rises[name, link]} under load, at most {most} are allowed"
        return say.failed(reason, rises[name, link], _BRIDGE)
    links = len({link for _, link in rises})
    return say.passed(f"at most {rises[name, link]} errors a link, on {links} links", rises[name, link])


def pcie_replays(spec: RigSpec, readings: Readings) -> list[CheckVerdict]:
    """Few packets had to be sent again over PCIe."""
    most = spec.limits.max_pcie_replays
    say = Say("topology.pcie_replays", expected=most, unit="replays", source=_source(spec, "limits.max_pcie_replays"))

    def judge(span: Span, say: Say) -> CheckVerdict:
        risen = rise(span.before.pcie_replays, span.after.pcie_replays)
        if risen is None:
            why = {**span.before.missing, **span.after.missing}.get("pcie_replays", "no reason given")
            if any(fault.startswith("pcie_replays") for fault in (*span.before.faults, *span.after.faults)):
                return say.error(f"NVML does not tell its PCIe replays: {why}", f"nvidia-smi -q on {readings.rig}")
            return say.blind(f"this card or driver counts no PCIe replays: {why}")
        if risen < 0:
            return say.error(f"the counter fell by {-risen}: {_RESET}", _AGAIN)
        if risen > most:
            return say.failed(f"{risen} PCIe replays under load, at most {most} are allowed", risen, _SLOT)
        return say.passed(f"{risen} PCIe replays under load", risen)

    return each_span(say, spec, readings, judge)


def aer_card(spec: RigSpec, readings: Readings) -> list[CheckVerdict]:
    """The card itself reported few errors of its link to the kernel (Advanced Error Reporting)."""
    say = Say("topology.aer_card", unit="errors", source=_source(spec, "limits.max_aer_corrected_per_min"))

    def judge(span: Span, say: Say) -> CheckVerdict:
        return _aer(say, spec, [(span.before.aer.card, span.after.aer.card)], span.seconds, "the card")

    return each_span(say, spec, readings, judge)


def aer_port(spec: RigSpec, readings: Readings) -> list[CheckVerdict]:
    """The ports above the card, up to the root port, reported few: theirs is the other end of each link."""
    say = Say("topology.aer_port", unit="errors", source=_source(spec, "limits.max_aer_corrected_per_min"))

    def judge(span: Span, say: Say) -> CheckVerdict:
        later = {port.address: port for port in span.after.aer.ports}
        ports = [(port, later[port.address]) for port in span.before.aer.ports if port.address in later]
        if not ports:
            if span.before.aer.card.blind is not None:
                return say.blind(f"no port can be asked: {span.before.aer.card.blind}")
            return say.error("the kernel shows no port above the card", f"lspci -tv on {readings.rig}")
        return _aer(say, spec, ports, span.seconds, "port")

    return each_span(say, spec, readings, judge)


def _aer(
    say: Say, spec: RigSpec, devices: list[tuple[BusErrors, BusErrors]], seconds: float, what: str
) -> CheckVerdict:
    """Judge devices of one path: what they reported while the load ran. One that shows nothing hides nothing else."""
    most = max(1, round(spec.limits.max_aer_corrected_per_min * seconds / _MINUTE_S))
    say = say.of(say.subject, most)
    read: list[tuple[str, int, int]] = []
    for before, after in devices:
        name = f"{what} {before.address}".strip()
        if why := before.error or after.error:
            return say.error(f"{name} could not be read: {why}", f"look at {COUNTERS} in the run directory")
        if before.counts is None or after.counts is None:
            continue
        corrected = _sum_of_rises(before.counts, after.counts, (CORRECTED,))
        worse = _sum_of_rises(before.counts, after.counts, ("nonfatal", "fatal"))
        if min(corrected, worse) < 0:
            return say.error(f"counters of {name} fell: was the device removed and found again?", _AGAIN)
        read.append((name, corrected, worse))
    if not read:
        why = next((b.blind or a.blind for b, a in devices if b.blind or a.blind), None)
        return say.blind(f"no errors are reported to the kernel: {why}") if why else say.error("no counter", _AGAIN)
    name, corrected, worse = max(read, key=lambda one: (one[2], one[1]))
    if worse:
        reason = f"{name} reported {worse} uncorrected errors under load; none is allowed"
        return say.of(say.subject, 0).failed(reason, worse, _SLOT)
    if corrected > most:
        reason = f"{name} reported {corrected} corrected errors in {seconds:.0f} s, at most {most} are allowed"
        return say.failed(reason, corrected, _SLOT)
    return say.passed(f"{name} reported {corrected} corrected errors in {seconds:.0f} s, none that was not", corrected)


def _sum_of_rises(
    before: Mapping[str, Mapping[str, int]], after: Mapping[str, Mapping[str, int]], kinds: tuple[str, ...]
) -> int:
    """Add up by how much each counter rose; the fall, as a negative figure, where one fell."""
    rises = [count - before.get(kind, {}).get(name, 0) for kind in kinds for name, count in after.get(kind, {}).items()]
    return min(rises) if rises and min(rises) < 0 else sum(rises)
