"""How the plan of a night is shown."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    from datetime import datetime

    from rigctl.nightly.planner import Night
    from rigctl.nightly.settings import Park


def as_json_of(night: Night, begin: datetime) -> dict[str, Any]:
    """As plain data."""
    return {
        "begins_at": begin.isoformat(timespec="seconds"),
        "window_s": night.window_s,
        "ends_s": night.end_s,
        "rigs": [
            {
                "rig": slot.wish.rig,
                "profile": slot.wish.profile,
                "circuit": slot.wish.circuit,
                "watts": slot.wish.watts,
                "begin_s": slot.begin_s,
                "seconds": slot.wish.seconds,
            }
            for slot in night.slots
        ],
        "left_out": [
            {"rig": one.wish.rig, "profile": one.wish.profile, "reason": one.reason} for one in night.left_out
        ],
    }


def print_plan(night: Night, begin: datetime, park: Park) -> None:
    """As a table, with what does not fit and what would help."""
    table = Table("begins", "ends", "rig", "profile", "circuit", "W", box=None, pad_edge=False)
    for slot in night.slots:
        start, end = (begin + timedelta(seconds=second) for second in (slot.begin_s, slot.end_s))
        wish = slot.wish
        table.add_row(f"{start:%H:%M}", f"{end:%H:%M}", wish.rig, wish.profile, wish.circuit or "", f"{wish.watts:.0f}")
    Console().print(table)
    typer.echo(
        f"window {park.spec.window.begin:%H:%M}–{park.spec.window.end:%H:%M}, all done after {night.end_s / 3600:.1f} h"
    )
    for one in night.left_out:
        typer.echo(f"left out {one.wish.rig}: {one.reason}")
    if night.left_out:
        typer.echo("do: a longer window, a lighter profile, fewer rigs on a circuit, or a greater deep_every_days")
