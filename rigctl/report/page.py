"""What the HTML page shows, as plain values: the template only places them."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rigctl.model.verdict import WORST_FIRST, CheckVerdict, Verdict, worst
from rigctl.report.charts import cards, charts, drawn_as, xid_of
from rigctl.report.curves import Sparkline, Timeline, known, sparkline
from rigctl.report.identity import CARD_COLUMNS, LINK_COLUMNS, Rows, card_rows, link_rows, machine_rows, step_table
from rigctl.report.summary import Cause, causes, rig_counts, rig_verdict, verdicts
from rigctl.report.text import counts, figure, plain

if TYPE_CHECKING:
    from rigctl.model.reading import Readings
    from rigctl.model.run import RunRig
    from rigctl.model.verdict import RigRecord

FACTS = (
    ("Links", ("topology.nvlink",)),
    ("PCIe", ("topology.pcie_gen", "topology.pcie_width")),
    ("Wall", ("power.wall",)),
    ("Xid", ("kernel.xid",)),
    ("gpu-burn", ("throughput.gpu_burn",)),
    ("Training", ("throughput.training",)),
)
"""What the first screen says of each rig besides its cards: label and checks."""

KERNEL_SHOWN = 200


@dataclass(frozen=True)
class Figure:
    """One figure of a card with the verdict on it."""

    label: str
    text: str
    verdict: Verdict | None = None


@dataclass(frozen=True)
class CardView:
    """One card's line on the first screen."""

    name: str
    verdict: Verdict | None
    spark: Sparkline | None
    figures: tuple[Figure, ...]


@dataclass(frozen=True)
class Row:
    """One line of the table of all verdicts."""

    anchor: str
    rig: str
    verdict: CheckVerdict
    expected: str
    found: str
    cause_anchor: str | None
    """Anchor of the verdict that this one follows from, where the table has it."""


@dataclass(frozen=True)
class RigView:
    """Everything that the page shows of one rig."""

    anchor: str
    record: RigRecord
    verdict: Verdict
    coverage: str
    causes: tuple[Cause, ...]
    cards: tuple[CardView, ...]
    facts: tuple[Figure, ...]
    unreached: str
    drawing: dict[str, Any]
    pruned: str
    """What became of its telemetry by age; empty where it is whole."""
    drawn_as: str
    step_header: tuple[str, ...]
    steps: Rows
    link_header: tuple[str, ...]
    links: Rows
    machine: Rows
    card_header: tuple[str, ...]
    card_identity: Rows
    kernel: tuple[tuple[str, str], ...]
    """Elapsed time and message."""
    kernel_left_out: int
    kernel_read: bool
    rows: tuple[Row, ...]


def rig_view(number: int, rig: RigRecord, readings: Readings, asked: RunRig | None, pruned: str = "") -> RigView:
    """Return the view of one rig; `number` makes its anchors unique in the page, `pruned` as in the view."""
    line = Timeline(readings.samples, pruned=bool(pruned))
    limits = asked.spec.limits if asked else None
    limit_c = limits.max_settled_gpu_temp_c if limits else None
    step_header, steps = step_table(readings, line)
    facts = readings.facts
    return RigView(
        anchor=f"rig-{number}",
        record=rig,
        verdict=rig_verdict(rig),
        coverage=counts(rig_counts(rig)),
        causes=causes(rig),
        cards=tuple(
            CardView(name, _worst_of(rig, name), sparkline(line, uuid, limit_c), _card_figures(rig, line, uuid, name))
            for uuid, _, name in cards(readings)
        ),
        facts=() if readings.unreached else tuple(_fact(rig, label, checks) for label, checks in FACTS),
        unreached=plain(readings.unreached or ""),
        drawing=charts(readings, line, limits),
        pruned=pruned,
        drawn_as=drawn_as(line),
        step_header=step_header,
        steps=steps,
        link_header=LINK_COLUMNS,
        links=link_rows(readings, asked.spec.parts if asked else None),
        machine=machine_rows(facts) if facts else [],
        card_header=CARD_COLUMNS,
        card_identity=card_rows(facts) if facts else [],
        kernel=_kernel(readings, line.samples[0].t_wall_s if line.samples else None),
        kernel_left_out=max(0, len(readings.kernel) - KERNEL_SHOWN),
        kernel_read=readings.kernel_read,
        rows=_rows(number, rig),
    )


def _worst_of(rig: RigRecord, subject: str) -> Verdict | None:
    own = [v.verdict for v in verdicts(rig) if v.subject == subject]
    if not own:
        return None
    decides = worst(own)
    return Verdict.PASS if decides is Verdict.BLIND and Verdict.PASS in own else decides


def _find(rig: RigRecord, check: str, subject: str) -> CheckVerdict | None:
    return next((v for v in verdicts(rig) if v.check == check and v.subject == subject), None)


def _card_figures(rig: RigRecord, line: Timeline, uuid: str, subject: str) -> tuple[Figure, ...]:
    temps, watts = known(line.gpu(uuid, "temp_c")), known(line.gpu(uuid, "power_w"))
    settled = _find(rig, "thermals.settled_gpu_temp", subject)
    power = _find(rig, "power.share_of_limit", subject)
    flops = _find(rig, "throughput.burn_gflops", subject)
    return (
        Figure("settled", _found(settled), settled.verdict if settled else None),
        Figure("hottest", figure(max(temps), "°C") if temps else _absent(line)),
        _power(power, watts, _absent(line)),
        Figure("burn", _found(flops), flops.verdict if flops else None),
    )


def _absent(line: Timeline) -> str:
    return "not kept" if line.pruned else "not read"


def _power(share: CheckVerdict | None, watts: list[float], absent: str) -> Figure:
    """Return the power that was reached: its share of the limit where that was judged, else its peak."""
    if share is not None and isinstance(share.found, float):
        return Figure("power of limit", f"{share.found:.0%}".replace("%", " %"), share.verdict)
    return Figure("power, peak", f"{max(watts):.0f} W" if watts else absent)


def _found(verdict: CheckVerdict | None) -> str:
    if verdict is None:
        return "not checked"
    return figure(verdict.found, verdict.unit) or "not measured"


def _fact(rig: RigRecord, label: str, checks: tuple[str, ...]) -> Figure:
    own = [v for v in verdicts(rig) if v.check in checks]
    if not own:
        return Figure(label, "not checked")
    decides = worst(v.verdict for v in own)
    reasons: defaultdict[str, list[str]] = defaultdict(list)
    for v in own:
        if v.verdict is decides:
            reasons[plain(v.reason)].append(plain(v.subject))
    everywhere = decides is Verdict.PASS
    said = [
        reason if everywhere or subjects == ["rig"] else f"{', '.join(subjects)}: {reason}"
        for reason, subjects in reasons.items()
    ]
    return Figure(label, "; ".join(said), decides)


def _kernel(readings: Readings, start_s: float | None) -> tuple[tuple[str, str], ...]:
    """Return the kernel messages to show: every Xid, then the latest others up to `KERNEL_SHOWN`."""
    numbered = list(enumerate(readings.kernel))
    important = [(n, m) for n, m in numbered if xid_of(m.message) is not None][:KERNEL_SHOWN]
    room = KERNEL_SHOWN - len(important)
    others = [(n, m) for n, m in numbered if xid_of(m.message) is None]
    kept = sorted([*important, *(others[-room:] if room else [])])
    return tuple((_clock(m.t_wall_s, start_s), plain(m.message)) for _, m in kept)


def _clock(t_wall_s: float, start_s: float | None) -> str:
    if start_s is None:
        return ""
    whole = round(t_wall_s - start_s)
    return f"{'-' if whole < 0 else ''}{abs(whole) // 60}:{abs(whole) % 60:02d}"


def _rows(number: int, rig: RigRecord) -> tuple[Row, ...]:
    own = sorted(verdicts(rig), key=lambda v: WORST_FIRST.index(v.verdict))
    anchors = {v.key: f"v{number}-{n}" for n, v in enumerate(own)}
    return tuple(
        Row(
            anchor=f"v{number}-{n}",
            rig=rig.name,
            verdict=v,
            expected=figure(v.expected, v.unit),
            found=figure(v.found, v.unit),
            cause_anchor=anchors.get(v.caused_by) if v.caused_by else None,
        )
        for n, v in enumerate(own)
    )
