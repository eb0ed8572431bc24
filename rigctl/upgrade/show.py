"""What people see of an upgrade: each rig's step while it goes on, and at the end what became of it."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from rigctl.model.upgrade import End
from rigctl.report.text import duration, plain, several
from rigctl.report.upgrade import figure_rows
from rigctl.upgrade.journal import read_history

if TYPE_CHECKING:
    import threading
    from collections.abc import Iterable
    from pathlib import Path

    from rich.console import Console

    from rigctl.model.upgrade_summary import RigSummary, UpgradeSummary
    from rigctl.store import RunDir
    from rigctl.upgrade.machine import Machine
    from rigctl.upgrade.run import Upgrade

REFRESH_HZ = 2
WAITING = "waiting"
_STYLES = {
    End.UPGRADED: "green", End.AS_ASKED: "green", End.REFUSED: "bold red", End.ROLLED_BACK: "bold red",
    End.LEFT_DRAINED: "bold red", End.NOT_BEGUN: "dim", End.ABORTED: "yellow", End.UNFINISHED: "bold yellow",
}  # fmt: skip
_WAYS = {"forward": "", "undo": "takes back", "back": "rolls back"}


@dataclass(frozen=True)
class Row:
    """One rig at this moment."""

    rig: str
    step: str
    """The step that it is at, or how it ended."""
    way: str
    words: str
    """What it waits for, or why it ended so."""
    end: End | None

    def as_json(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)


class Board:
    """The fleet as it is now; the machines' threads tell it what they wait for."""

    def __init__(self, upgrade: Upgrade) -> None:
        self._upgrade = upgrade
        self._machines = upgrade.machines
        self._words: dict[str, str] = dict.fromkeys(self._machines, "")
        self._since = time.monotonic()
        for name, machine in self._machines.items():
            machine.say = lambda _step, words, name=name: self._words.__setitem__(name, words)  # type: ignore[misc]

    def rows(self) -> list[Row]:
        """One for each rig, in the inventory's order."""
        return [_row(name, one.history, self._waits_for(name, one)) for name, one in self._machines.items()]

    def _waits_for(self, name: str, machine: Machine) -> str:
        """What the step's own code says; else what is done there for it; of a rig in the queue, why it is there."""
        if not machine.history.begun:
            return self._upgrade.waits_for
        return self._words[name] or machine.port.doing()

    def table(self) -> Table:
        """All of them, with the time that has passed."""
        drawn = status_table(self.rows())
        drawn.add_row("", "", Text(duration(time.monotonic() - self._since), style="dim"))
        return drawn

    def write_lines(self, to: Console, ended: threading.Event) -> None:
        """Write a line whenever a rig comes to another step."""
        seen: dict[str, tuple[str, str]] = {}
        last = False
        while not last:
            last = ended.wait(1 / REFRESH_HZ)
            for row in self.rows():
                # A line for each role, not for each of its tasks; none for every second of the canary's settling.
                part = "" if row.step == WAITING else row.words if row.end else row.words.partition(" · ")[0]
                if seen.get(row.rig) != (row.step, part):
                    seen[row.rig] = (row.step, part)
                    said = " · ".join(one for one in (row.way, row.step, part) if one)
                    passed = time.monotonic() - self._since
                    to.print(f"{row.rig}: {said} ({passed:.0f} s)", markup=False, soft_wrap=True)


def status_of(run: RunDir) -> list[Row]:
    """How far each rig of a run has come, by its journal alone."""
    known = read_history(run.journal_entries())
    return [
        _row(rig.name, known[rig.name], "") if rig.name in known else Row(rig.name, WAITING, "", "", None)
        for rig in run.read_info().rigs
    ]


def status_table(rows: Iterable[Row]) -> Table:
    """Rig · step · what it waits for."""
    drawn = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for heading in ("rig", "step", ""):
        drawn.add_column(heading)
    for row in rows:
        step = " · ".join(part for part in (row.way, row.step) if part)
        drawn.add_row(row.rig, Text(step, style=_STYLES[row.end] if row.end else ""), Text(row.words))
    return drawn


def _row(rig: str, history: Any, words: str) -> Row:
    if history.end is not None:
        return Row(rig, history.end.end.value, "", history.end.reason, history.end.end)
    step = history.begun[-1].value if history.begun else WAITING
    return Row(rig, step, _WAYS[history.way], words or history.reason, None)


def print_ends(summary: UpgradeSummary, page: Path, to: Console) -> None:
    """A paragraph per rig: how it ended, the reason and the remedy, before and after; then what is left to do."""
    for rig in summary.rigs:
        _print_rig(rig, to)
    if summary.to_do:
        to.print(Text(f"all rigs have it: {summary.to_do}"), soft_wrap=True)
    to.print(Text(f"run {summary.run_id} · {page}", style="dim"), soft_wrap=True)


def _print_rig(rig: RigSummary, to: Console) -> None:
    one = rig.end
    took = f"  {duration(rig.seconds)}" if rig.seconds is not None else ""
    own = f", {rig.own_seconds:.1f} s of it rigctl's own" if rig.own_seconds is not None else ""
    to.print(Text.assemble(f"{one.rig} ", (one.end.value.replace("_", " "), _STYLES[one.end]), (took + own, "dim")))
    if one.reason:
        where = f"{one.step.value}: " if one.step and one.end != End.UNFINISHED else ""
        to.print(Text(f"  {where}{plain(one.reason)}"), soft_wrap=True)
    if one.hint:
        to.print(Text(f"  do: {plain(one.hint)}", style="cyan"), soft_wrap=True)
    for name, before, after, change in figure_rows(rig):
        to.print(Text(f"  {name} {before} → {after} {change}".rstrip()), soft_wrap=True)
    if rig.packages:
        to.print(f"  {several(len(rig.packages), 'package')} changed", highlight=False)
