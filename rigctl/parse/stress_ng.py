"""stress-ng's `--yaml` report: what each stressor did."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import yaml

from rigctl.parse import ParseError, figures

_WHAT = "stress-ng's report"
_LARGEST = 1_000_000
"""Characters; a report is a few hundred, and YAML nested without end would exhaust the stack."""


@dataclass(frozen=True)
class StressorMetrics:
    """One stressor's metrics."""

    stressor: str
    bogo_ops: int
    wall_s: float
    bogo_ops_per_s: float
    """Per second of real time."""


def parse(text: str) -> tuple[StressorMetrics, ...]:
    """Read the report. Raises ParseError when it is cut, empty or of another form."""
    if len(text) > _LARGEST:
        raise ParseError(_WHAT, f"{len(text)} characters")
    try:
        # BaseLoader leaves every scalar a string: YAML 1.1 takes 2022:04:29 for a number in base 60.
        document: Any = yaml.load(text, Loader=yaml.BaseLoader)  # noqa: S506 - makes strings only
    except (yaml.YAMLError, RecursionError) as error:
        raise ParseError(_WHAT, _first_line(text)) from error
    metrics = document.get("metrics") if isinstance(document, dict) else None
    if not isinstance(metrics, list) or not metrics:
        raise ParseError(_WHAT, _first_line(text))
    return tuple(_one(entry) for entry in metrics)


def _one(entry: Any) -> StressorMetrics:
    try:
        metrics = StressorMetrics(
            stressor=str(entry["stressor"]),
            bogo_ops=figures.whole(entry["bogo-ops"]),
            wall_s=figures.number(entry["wall-clock-time"]),
            bogo_ops_per_s=figures.number(entry["bogo-ops-per-second-real-time"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise ParseError(_WHAT, str(entry)) from error
    if min(metrics.bogo_ops, metrics.wall_s, metrics.bogo_ops_per_s) < 0:
        raise ParseError(_WHAT, str(entry))
    return metrics


def _first_line(text: str) -> str:
    return next((line for line in text.splitlines() if line.strip()), "")
