"""What people see of an upgrade: each rig's step while it goes on, and at the end what became of it."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from rigctl.model.upgrade import End
from rigctl.report.text import duration
from rigctl.upgrade.journal import read_history
from rigctl.upgrade.start import as_the_class_s_own

if TYPE_CHECKING:
    import threading
    from collections.abc import Iterable, Mapping

    from rich.console import Console

    from rigctl.store import RunDir
    from rigctl.upgrade.machine import Machine
    from rigctl.upgrade.run import Upgrade, UpgradeOutcome

REFRESH_HZ = 2
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

    def __init__(self, machines: Mapping[str, Machine]) -> None:
        self._machines = machines
        self._words: dict[str, str] = dict.fromkeys(machines, "")
        self._since = time.monotonic()
        for name, machine in machines.items():
            machine.say = lambda _step, words, name=name: self._words.__setitem__(name, words)  # type: ignore[misc]

    def rows(self) -> list[Row]:
        """One for each rig, in the inventory's order."""
        return [_row(name, machine.history, self._words[name]) for name, machine in self._machines.items()]

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
                if row.step and seen.get(row.rig) != (row.step, row.words):
                    seen[row.rig] = (row.step, row.words)
                    said = " · ".join(part for part in (row.way, row.step, row.words) if part)
                    passed = time.monotonic() - self._since
                    to.print(f"{row.rig}: {said} ({passed:.0f} s)", markup=False, soft_wrap=True)


def status_of(run: RunDir) -> list[Row]:
    """How far each rig of a run has come, by its journal alone."""
    known = read_history(run.journal_entries())
    return [
        _row(rig.name, known[rig.name], "") if rig.name in known else Row(rig.name, "waiting", "", "", None)
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
    step = history.begun[-1].value if history.begun else "waiting"
    return Row(rig, step, _WAYS[history.way], words or history.reason, None)


def print_ends(outcome: UpgradeOutcome, upgrade: Upgrade, to: Console) -> None:
    """A line per rig, with the reason and the remedy where it is not as asked; then what is left for a person."""
    for one in outcome.ends:
        to.print(Text.assemble(f"{one.rig} ", (one.end.value.replace("_", " "), _STYLES[one.end])))
        if one.reason:
            where = f"{one.step.value}: " if one.step else ""
            to.print(Text(f"  {where}{one.reason}"), soft_wrap=True)
        if one.hint:
            to.print(Text(f"  do: {one.hint}", style="cyan"), soft_wrap=True)
    rigs = upgrade.run.read_info().rigs
    if all(one.end in (End.UPGRADED, End.AS_ASKED) for one in outcome.ends):
        wishes = next(iter(upgrade.machines.values())).rules.wishes
        to.print(Text(f"all rigs have it: {as_the_class_s_own(wishes, rigs[0].spec.rig_class)}"), soft_wrap=True)
    to.print(Text(f"run {outcome.run_id} · {upgrade.run.path}", style="dim"), soft_wrap=True)
