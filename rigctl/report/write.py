"""Writing a report in any format, into the run directory or wherever asked."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from rigctl.report import junit, markdown, table
from rigctl.store import dumps
from rigctl.store.files import replace_durably

if TYPE_CHECKING:
    from pathlib import Path

    from rigctl.model.verdict import Record
    from rigctl.store import RunDir


class Format(StrEnum):
    """The forms of a report."""

    HTML = "html"
    JSON = "json"
    JUNIT = "junit"
    CSV = "csv"
    MD = "md"


OWN_FILE = {Format.HTML: "report.html", Format.JUNIT: "junit.xml"}
"""Formats that have their place in the run directory; the others go to stdout unless a path is given."""


def render(run_dir: RunDir, record: Record, form: Format) -> str:
    """Return the report as text.

    Raises:
        UsageError: a file of the run is damaged (html only: the others need the record alone).
    """
    if form is Format.HTML:
        # plotly takes a quarter of a second to import: `rigctl --help` must not wait for it.
        from rigctl.report import html  # noqa: PLC0415

        return html.render(run_dir, record)
    if form is Format.JSON:
        return dumps(record) + "\n"
    if form is Format.JUNIT:
        return junit.render(record)
    return table.render(record) if form is Format.CSV else markdown.render(record)


def write(run_dir: RunDir, record: Record, form: Format, path: Path | None = None) -> Path:
    """Write the report atomically to `path`, by default to its place in the run directory, and return the path.

    Raises:
        UsageError: the place cannot be written, or the run is damaged.
        RigctlError: no room left.
    """
    target = path or run_dir.path / OWN_FILE.get(form, f"report.{form.value}")
    replace_durably(target, render(run_dir, record, form).encode("utf-8", "replace"))
    return target


def write_own(run_dir: RunDir, record: Record) -> Path:
    """Write the reports that belong in the run directory; return the path of the page."""
    write(run_dir, record, Format.JUNIT)
    return write(run_dir, record, Format.HTML)
