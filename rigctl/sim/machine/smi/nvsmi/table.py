"""The table that `nvidia-smi` prints without options, in the form of drivers before 530 and of those after."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .card import Card

NEW_FORM_FROM = 530
NAME_WIDTH, NEW_NAME_WIDTH = 18, 30


def branch_of(version: str) -> int:
    """The driver branch, such as 515."""
    return int(version.split(".", maxsplit=1)[0])


def short_name(name: str, width: int) -> str:
    """Names too long for their column end in dots, as `NVIDIA GeForce ...`."""
    return name if len(name) <= width else f"{name[: width - 3]}..."


def render(cards: Sequence[Card], version: str, cuda: str) -> str:
    """The whole table."""
    form = _new_form if branch_of(version) >= NEW_FORM_FROM else _old_form
    return "\n".join([time.strftime("%a %b %e %H:%M:%S %Y"), *form(cards, version, cuda)]) + "\n"


def _cells(card: Card) -> dict[str, str]:
    fan, memory = card.number("fan"), card.memory_mib()
    draw_w = f"{(card.number('power_mw') or 0) / 1000:.0f}W"
    return {
        "index": f"{card.index:>3}",
        "persistence": "On" if card.number("persistence") else "Off",
        "bus": card.bus_id,
        "fan": "N/A" if fan is None else f"{fan}%",
        "temp": f"{card.temperature()}C",
        "perf": f"P{card.number('pstate')}",
        "power": f"{draw_w:>4} / {(card.number('limit_mw') or 0) / 1000:.0f}W",
        "memory": f"{memory['used']}MiB / {memory['total']:>5}MiB",
        "util": f"{card.utilization().gpu}%",
    }


def _old_form(cards: Sequence[Card], version: str, cuda: str) -> list[str]:
    whole, parts = "-" * 77, f"{'-' * 31}+{'-' * 22}+{'-' * 22}"
    banner = f"NVIDIA-SMI {version:<12} Driver Version: {version:<12} CUDA Version: {cuda}"
    lines = [
        f"+{whole}+",
        f"| {banner:<76}|",
        f"|{parts}+",
        "| GPU  Name        Persistence-M| Bus-Id        Disp.A | Volatile Uncorr. ECC |",
        "| Fan  Temp  Perf  Pwr:Usage/Cap|         Memory-Usage | GPU-Util  Compute M. |",
        "|                               |                      |               MIG M. |",
        f"|{parts.replace('-', '=')}|",
    ]
    for card in cards:
        cell = _cells(card)
        name = short_name(card.name, NAME_WIDTH)
        lines += [
            f"| {cell['index']}  {name:<18}  {cell['persistence']:<3}  | {cell['bus']} Off |{'N/A':>21} |",
            (
                f"|{cell['fan']:>4}  {cell['temp']:>4}    {cell['perf']:<2}  {cell['power']:>12} |"
                f" {cell['memory']:>20} | {cell['util']:>7}      Default |"
            ),
            f"|{'':31}|{'':22}|{'N/A':>21} |",
            f"+{parts}+",
        ]
    head = [
        "|  GPU   GI   CI        PID   Type   Process name                  GPU Memory |",
        "|        ID   ID                                                   Usage      |",
    ]
    rows = [
        f"|  {index:>3}   N/A  N/A {pid:>9}      C   {name[-30:]:<30} {memory:>7}MiB |"
        for index, pid, name, memory in _processes(cards)
    ]
    return [*lines, " " * 79, *_process_table(head, rows, 77)]


def _new_form(cards: Sequence[Card], version: str, cuda: str) -> list[str]:
    parts = f"{'-' * 41}+{'-' * 24}+{'-' * 22}"
    left = f"NVIDIA-SMI {version:<22} Driver Version: {version:<14} CUDA Version: {cuda}"
    lines = [
        f"+{'-' * 89}+",
        f"| {left:<88}|",
        f"|{parts}+",
        "| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |",
        "| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |",
        "|                                         |                        |               MIG M. |",
        f"|{parts.replace('-', '=')}|",
    ]
    for card in cards:
        cell = _cells(card)
        name = short_name(card.name, NEW_NAME_WIDTH)
        power = "{} / {:>5}".format(*cell["power"].split(" / "))
        memory = "{} / {:>9}".format(*(part.replace(" ", "") for part in cell["memory"].split(" / ")))
        lines += [
            f"| {cell['index']}  {name:<30} {cell['persistence']:<3} |   {cell['bus']} Off |                  N/A |",
            (
                f"|{cell['fan']:>4}  {cell['temp']:>4}    {cell['perf']:<2} {power:>23} | {memory:>22} |"
                f" {cell['util']:>7}      Default |"
            ),
            f"|{'':41}|{'':24}|{'N/A':>21} |",
            f"+{parts}+",
        ]
    head = [
        "|  GPU   GI   CI        PID   Type   Process name                              GPU Memory |",
        "|        ID   ID                                                               Usage      |",
    ]
    rows = [
        f"|  {index:>3}   N/A  N/A {pid:>9}      C   {name[-42:]:<42} {memory:>7}MiB |"
        for index, pid, name, memory in _processes(cards)
    ]
    return [*lines, " " * 89, *_process_table(head, rows, 89)]


def _processes(cards: Sequence[Card]) -> list[tuple[int, int, str, int]]:
    return [(card.index, pid, name, memory) for card in cards for pid, name, memory in card.processes()]


def _process_table(head: list[str], rows: list[str], width: int) -> list[str]:
    none = f"|  {'No running processes found':<{width - 2}}|"
    title = f"| {'Processes:':<{width - 1}}|"
    frame = "-" * width
    return [f"+{frame}+", title, *head, f"|{'=' * width}|", *(rows or [none]), f"+{frame}+"]
