"""A record as CSV for spreadsheets: one line per verdict."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING

from rigctl.report.summary import verdicts
from rigctl.report.text import plain

if TYPE_CHECKING:
    from rigctl.model.verdict import Record

COLUMNS = (
    "run_id",
    "started_at",
    "rig",
    "rig_class",
    "simulated",
    "check",
    "subject",
    "verdict",
    "reason",
    "expected",
    "found",
    "unit",
    "source",
    "fix",
    "caused_by",
    "waived_until",
)
_FORMULA = ("=", "+", "-", "@")


def render(record: Record) -> str:
    """Return the table with its header; texts that a spreadsheet would run as a formula get an apostrophe."""
    out = io.StringIO()
    table = csv.writer(out, lineterminator="\n")
    table.writerow(COLUMNS)
    for rig in record.rigs:
        simulated = "" if rig.simulated is None else str(rig.simulated).lower()
        for v in verdicts(rig):
            figures = (v.expected, v.found, v.unit)
            words = (v.source, v.fix, v.caused_by, str(v.waived_until or ""))
            start = (record.run_id, record.started_at, rig.name, rig.rig_class, simulated)
            row = (*start, v.check, v.subject, v.verdict.value, v.reason, *figures, *words)
            table.writerow([_cell(value) for value in row])
    return out.getvalue()


def _cell(value: str | float | None) -> str | float:
    if value is None:
        return ""
    if not isinstance(value, str):
        return value
    text = plain(value)
    return f"'{text}" if text.startswith(_FORMULA) else text
