"""The live table of a run: per rig the step with elapsed and expected time, per card temperature, power, Gflop/s."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from rigctl.cli.watching import watching

if TYPE_CHECKING:
    import threading
    from contextlib import AbstractContextManager

    from rich.console import Console

    from rigctl.measure.progress import GpuNow, Progress, RigNow

PLAIN_EVERY_S = 10
"""Where the output is no terminal, a line per rig is printed at each new step and so often, seconds."""


def watch(progress: Progress, console: Console) -> AbstractContextManager[None]:
    """Show the fleet while the block runs."""
    return watching(console, lambda: table(progress), lambda ended: _write_lines(progress, console, ended))


def table(progress: Progress) -> Table:
    """Return the fleet as it is now."""
    drawn = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for heading in ("rig", "step", "time", "card", "°C", "W", "Gflop/s", "wall W"):
        drawn.add_column(heading, justify="right" if heading in ("°C", "W", "Gflop/s", "wall W") else "left")
    for rig in progress.snapshot():
        first, *rest = rig.gpus or (None,)
        drawn.add_row(rig.name, _step(rig), _time(rig), *_card(first), _number(rig.wall_power_w))
        for gpu in rest:
            drawn.add_row("", "", "", *_card(gpu), "")
        if rig.note:
            drawn.add_row("", Text(rig.note, style="yellow"))
    return drawn


def _step(rig: RigNow) -> Text:
    return Text(rig.step, style="green" if rig.done else "bold")


def _time(rig: RigNow) -> str:
    if rig.done:
        return ""
    elapsed = _clock(rig.elapsed_s)
    return elapsed if rig.step_seconds is None else f"{elapsed} of {_clock(rig.step_seconds)}"


def _clock(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes}:{rest:02d}"


def _card(gpu: GpuNow | None) -> tuple[str, str, str, str]:
    if gpu is None:
        return ("", "", "", "")
    return (f"slot{gpu.slot}", _number(gpu.temp_c), _number(gpu.power_w), _number(gpu.gflops))


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:,.0f}"


def _write_lines(progress: Progress, console: Console, ended: threading.Event) -> None:
    shown: dict[str, tuple[str, int]] = {}
    while True:
        last = ended.wait(0.5)
        for rig in progress.snapshot():
            mark = (rig.step, int(rig.elapsed_s // PLAIN_EVERY_S))
            if shown.get(rig.name) != mark and not (rig.done and shown.get(rig.name, ("",))[0] == rig.step):
                shown[rig.name] = mark
                console.print(line(rig), soft_wrap=True)
        if last:
            return


def line(rig: RigNow) -> str:
    """Return one rig as one plain line."""
    cards = " · ".join(_card_words(gpu) for gpu in rig.gpus)
    wall = f" · wall {_number(rig.wall_power_w)} W" if rig.wall_power_w is not None else ""
    time = _time(rig)
    parts = (
        f"{rig.name}: {rig.step}",
        f" ({time})" if time else "",
        f" · {cards}{wall}" if cards else "",
        f" {rig.note}",
    )
    return "".join(parts).rstrip()


def _card_words(gpu: GpuNow) -> str:
    figures = ((gpu.temp_c, "°C"), (gpu.power_w, "W"), (gpu.gflops, "Gflop/s"))
    return " ".join([f"slot{gpu.slot}", *(f"{_number(value)} {unit}" for value, unit in figures if value is not None)])
