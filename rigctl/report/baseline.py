"""Baselines for the terminal: a row for each rig, or one rig's runs, parts and figures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.markup import escape

from rigctl.model.past import Parts
from rigctl.report.history import cells, table, when
from rigctl.report.text import figure, plain, rig_word, several

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import RenderableType
    from rich.table import Table

    from rigctl.model.decision import BaselineDecision
    from rigctl.model.past import Past
    from rigctl.trends import Series

SHOWN_RUNS = 10
"""The newest so many runs are shown; `--json` has all of them."""
_DAY = len("2026-11-30")
NONE = "no baseline: the next accepted run is the first"


def of_rigs(
    rows: Sequence[tuple[str, Sequence[Past], str | None, BaselineDecision | None]],
) -> Iterator[RenderableType]:
    """One row a rig: its runs, since when they count, its parts; and below what people decided.

    Args:
        rows: Rig, runs oldest first, since when (ISO 8601), decision.
    """
    shown = table("rig", "runs", "since", "newest", "driver", "parts", wide=("parts",))
    for rig, runs, since, _ in rows:
        days = [when(moment)[:_DAY] if moment else "" for moment in (since, runs[-1].ended_at if runs else None)]
        parts = runs[-1].parts if runs else Parts()
        known = ", ".join((parts.kernel or "", *(card.subject for card in parts.cards))) if runs else NONE
        shown.add_row(*cells(rig, str(len(runs)), *days, parts.driver or "", known))
    yield shown
    yield from (f"{escape(plain(rig))}: {escape(plain(one.sentence))}" for rig, _, _, one in rows if one is not None)


def of_one(
    rig: str, runs: Sequence[Past], figures: Sequence[Series], since: str | None, decision: BaselineDecision | None
) -> Iterator[RenderableType]:
    """All of one rig's baseline."""
    name = f"[bold]{escape(plain(rig))}[/bold]"
    if decision is not None:
        yield f"{name}: {escape(plain(decision.sentence))}"
    if not runs:
        yield f"{name}: {NONE}"
        return
    yield f"{name}: {several(len(runs), 'accepted run')}; counts from {when(since or runs[0].ended_at)} UTC on"
    yield from _parts(runs[-1].parts)
    yield _runs(runs)
    yield _figures(figures)


def _parts(parts: Parts) -> Iterator[str]:
    machine = (("driver", parts.driver), ("kernel", parts.kernel), ("BIOS", parts.bios))
    yield escape(plain(" · ".join(f"{name} {value}" for name, value in machine if value)))
    for card in parts.cards:
        vbios = f", VBIOS {card.vbios}" if card.vbios else ""
        limit = f", limit {figure(card.power_limit_w, 'W')}" if card.power_limit_w is not None else ""
        yield escape(plain(f"{card.subject}: {card.model}{vbios}{limit}"))


def _runs(runs: Sequence[Past]) -> Table:
    shown = table("ended", "run", "profile", "verdict")
    if len(runs) > SHOWN_RUNS:
        shown.add_row("…", *cells(f"{len(runs) - SHOWN_RUNS} earlier ones"), "", "")
    for past in runs[-SHOWN_RUNS:]:
        shown.add_row(*cells(when(past.ended_at), past.run_id, past.profile, rig_word(past.verdict)))
    return shown


def _figures(figures: Sequence[Series]) -> Table:
    shown = table("check", "subject", "median", "lowest–highest", "n")
    for one in figures:
        reach = "–".join(dict.fromkeys((figure(min(one.values)), figure(max(one.values)))))
        shown.add_row(*cells(one.check, one.subject, figure(one.usual, one.unit), reach, str(len(one.values))))
    return shown
