"""A record in the words of Nagios's plugins: one line, figures behind the bar, exit codes 0 to 3."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rigctl.model.verdict import Verdict
from rigctl.report.summary import all_causes, tally
from rigctl.report.text import plain

if TYPE_CHECKING:
    from rigctl.errors import RigctlError
    from rigctl.model.verdict import Record

OK, WARNING, CRITICAL, UNKNOWN = 0, 1, 2, 3
"""The plugins' exit codes (Monitoring Plugins Development Guidelines)."""
_WORDS = {OK: "OK", WARNING: "WARNING", CRITICAL: "CRITICAL", UNKNOWN: "UNKNOWN"}


def nagios(record: Record) -> tuple[str, int]:
    """Return the plugin's line and its exit code: a failed rig is critical, an unmeasured one unknown."""
    numbers = tally(record)
    warned = sum(1 for rig in record.rigs for one in rig.verdicts if one.verdict is Verdict.WARN)
    if numbers["failed"]:
        code = CRITICAL
    elif numbers["unmeasured"] or not record.rigs:
        code = UNKNOWN
    else:
        code = WARNING if warned else OK
    causes = [f"{one.where}: {one.sentence}" for one in all_causes(record)]
    busy = [f"busy {one.name}: {one.users}" for one in record.busy]
    told = "; ".join([*causes, *busy]) or f"{numbers['ok']} of {len(record.rigs)} rigs ok"
    figures = " ".join(
        f"{name}={value}"
        for name, value in (
            ("ok", numbers["ok"]),
            ("failed", numbers["failed"]),
            ("unmeasured", numbers["unmeasured"]),
            ("warnings", warned),
            ("busy", len(record.busy)),
        )
    )
    return f"RIGCTL {_WORDS[code]} - {_safe(told)} | {figures}", code


def unknown(error: RigctlError) -> tuple[str, int]:
    """Return the line for what kept rigs from being looked at."""
    hint = f" ({error.hint})" if error.hint else ""
    return f"RIGCTL {_WORDS[UNKNOWN]} - {_safe(error.message + hint)}", UNKNOWN


def _safe(text: str) -> str:
    """The bar begins the figures, so none may be in the words."""
    return plain(text).replace("|", "/")
