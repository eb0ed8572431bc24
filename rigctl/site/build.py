"""Writing the site: everything once, afterwards only what new or changed runs touch."""

from __future__ import annotations

import json
import os
from collections import Counter
from dataclasses import dataclass, replace
from datetime import timedelta
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from markupsafe import Markup
from plotly.offline import get_plotlyjs

import rigctl
from rigctl.checks.catalogue import CATALOGUE
from rigctl.errors import UsageError
from rigctl.model.verdict import Verdict
from rigctl.report.html import template
from rigctl.report.summary import headline, rig_counts, tally
from rigctl.report.text import counts, moment, several
from rigctl.site.pages import Pages
from rigctl.site.views import CHARTED, DAYS, charts_of, incidents_of, row_of
from rigctl.store import RunDir
from rigctl.store.decisions import newest_decisions
from rigctl.trends import known_of

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

    from rigctl.site.views import Row
    from rigctl.store.index import Cell, Index
    from rigctl.trends import Knowledge

VERSION = 2
"""Of the pages; another one writes all of them again."""
_BAD = (Verdict.FAIL, Verdict.ERROR)


@dataclass(frozen=True)
class Built:
    """What was written."""

    pages: int
    """Files whose content is new."""
    runs: int
    """Runs among them that are new or changed."""
    left_out: tuple[tuple[str, str], ...]
    """Runs that could not be read, and why; they are tried again the next time."""


@dataclass(frozen=True)
class _Site:
    """One writing of the site."""

    index: Index
    pages: Pages
    now: datetime
    cells: dict[str, list[Cell]]
    """By rig, oldest first: of the last year, and of a rig that has no verdict in it the last one that there was."""
    silent: frozenset[str]
    """Rigs without any night in the year."""

    @property
    def output(self) -> Path:
        """The folder."""
        return self.pages.output


def build(index: Index, output: Path, now: datetime, *, anew: bool = False) -> Built:
    """Write the site, or what has changed since it was written.

    Args:
        index: Brought up to date.
        output: The folder; it holds nothing but the site.
        now: The time that the pages name, UTC.
        anew: Make every page again.

    Raises:
        UsageError: the folder cannot be written, or holds something else.
        RigctlError: the index cannot be used.
    """
    pages = Pages(output)
    known = pages.manifest()
    anew = anew or known is None or known["version"] != VERSION or known["rigctl"] != rigctl.__version__
    before: dict[str, Any] = {"runs": {}, "rigs": {}} if anew or known is None else known
    stamps = index.stamps()
    changed = {name for name, stamp in stamps.items() if before["runs"].get(name) != stamp}
    gone = set(before["runs"]) - set(stamps)
    site = _look(index, pages, now)
    pages.make_folders()
    if anew:
        _assets(pages)
    left_out, runs = _runs(site, sorted(changed))
    for name in (*gone, *(name for name, _ in left_out)):
        (output / "runs" / f"{name}.html").unlink(missing_ok=True)
    site = _linked(site)
    touched = {rig for rig, nights in site.cells.items() if gone or not changed.isdisjoint(c.folder for c in nights)}
    rows, kept = _rigs(site, touched, before["rigs"])
    _fleet(site, rows)
    _checks(site)
    _forget_rigs(site)
    unread = dict(left_out)
    manifest = {
        "version": VERSION,
        "rigctl": rigctl.__version__,
        "runs": {name: stamp for name, stamp in stamps.items() if name not in unread},
        "rigs": kept,
    }
    pages.keep(manifest)
    return Built(pages.written, runs, left_out)


def _look(index: Index, pages: Pages, now: datetime) -> _Site:
    """What the index says of the last year, and the last that it says of rigs that are silent for longer."""
    cells: dict[str, list[Cell]] = {}
    for cell in index.cells(since=(now - timedelta(days=DAYS)).isoformat()):
        cells.setdefault(cell.rig, []).append(cell)
    silent = []
    for newest in index.newest_cells():
        nights = cells.setdefault(newest.rig, [])
        if not nights:
            silent.append(newest.rig)
        if newest not in nights and all(cell.verdict is None for cell in nights):
            nights.insert(0, newest)
    return _Site(index, pages, now, cells, frozenset(silent))


def _linked(site: _Site) -> _Site:
    """Let no night point to a run's page that is not there."""
    with os.scandir(site.output / "runs") as entries:
        there = {entry.name.removesuffix(".html") for entry in entries}
    cells = {
        rig: [cell if not cell.here or cell.folder in there else replace(cell, here=False) for cell in nights]
        for rig, nights in site.cells.items()
    }
    return replace(site, cells=cells)


def _assets(pages: Pages) -> None:
    own = files("rigctl.site") / "templates"
    style = template("page.css") + (own / "site.css").read_text(encoding="utf-8")
    for name, text in (
        ("style.css", style),
        ("plotly.js", get_plotlyjs()),
        ("rig.js", (own / "rig.js").read_text(encoding="utf-8")),
    ):
        pages.put(name, text)


def _runs(site: _Site, changed: list[str]) -> tuple[tuple[tuple[str, str], ...], int]:
    """Write the pages of runs; those before the year have none."""
    year = (nights for rig, nights in site.cells.items() if rig not in site.silent)
    recent = {cell.folder for nights in year for cell in nights if cell.here}
    left_out, count = [], 0
    for name in changed:
        if name not in recent and not (site.output / "runs" / f"{name}.html").exists():
            continue
        run = RunDir(site.index.runs / name)
        try:
            _run(site, run)
        except UsageError as error:
            left_out.append((name, error.message))
            continue
        count += 1
    return tuple(left_out), count


def _run(site: _Site, run: RunDir) -> None:
    record = run.read_record()
    numbers = tally(record)
    report = run.path / "report.html"
    target = site.output / "runs" / f"{run.path.name}.html"
    began, ended = moment(record.started_at), moment(record.ended_at)
    site.pages.page(
        f"runs/{target.name}",
        "run.html.j2",
        title=record.run_id,
        tone="fail" if numbers["failed"] else "error" if numbers["unmeasured"] or not record.rigs else "pass",
        headline=headline(record),
        when=f"{began:%-d %B %Y, %H:%M} to {ended:%H:%M} UTC",
        record=record,
        report=os.path.relpath(report.resolve(), target.parent.resolve()) if report.is_file() else "",
        rigs=[{"name": r.name, "verdicts": r.verdicts, "coverage": counts(rig_counts(r))} for r in record.rigs],
        known=CATALOGUE,
    )


def _rigs(
    site: _Site, touched: set[str], before: dict[str, dict[str, Any]]
) -> tuple[dict[str, Row], dict[str, dict[str, Any]]]:
    """Write the pages of rigs whose nights changed, or which fell silent.

    Returns the row of each rig for the fleet's page, and what to keep of each until the next time.
    """
    rows, kept = {}, {}
    for rig, nights in sorted(site.cells.items()):
        was = before.get(rig)
        # What a rig's nights say changes with its nights alone: untouched, only its row is made again.
        known = _know(site, rig) if was is None or rig in touched or was["trends"] else None
        silent = rig in site.silent
        row = row_of(rig, nights, known.trends if known is not None else (), site.now, silent=silent)
        state = {"trends": [trend.sentence for trend in row.trends], "stale": row.stale, "silent": silent}
        if rig in touched or was != state:
            _rig(site, row, known if known is not None else _know(site, rig))
        rows[rig], kept[rig] = row, state
    return rows, kept


def _forget_rigs(site: _Site) -> None:
    """Take away the pages of rigs of which no run is left."""
    for path in (site.output / "rigs").glob("*.html"):
        if path.stem not in site.cells:
            path.unlink(missing_ok=True)


def _know(site: _Site, rig: str) -> Knowledge:
    since = "" if rig in site.silent else (site.now - timedelta(days=DAYS)).isoformat()
    pasts = site.index.pasts(rig, since=since)
    decided = newest_decisions(site.index.runs).get(rig)
    return known_of(rig, pasts, site.index.points(rig), site.now, decided)


def _rig(site: _Site, row: Row, known: Knowledge) -> None:
    last, parts = known.last, known.last.parts if known.last is not None else None
    by_check: dict[str, list[Any]] = {check: [] for check in CHARTED}
    for series in known.series:
        if series.check in by_check:
            by_check[series.check] += series.points
    charts = charts_of({check: tuple(sorted(found, key=lambda p: p.ended_at)) for check, found in by_check.items()})
    machine = (("driver", parts.driver), ("kernel", parts.kernel), ("BIOS", parts.bios)) if parts is not None else ()
    site.pages.page(
        f"rigs/{row.rig}.html",
        "rig.html.j2",
        now=site.now,
        title=row.rig,
        tone=_tone(row.verdict),
        row=row,
        simulated=last is not None and last.simulated,
        changed=known.what_changed,
        swap=known.swap,
        count=len(site.cells[row.rig]),
        charts=charts,
        incidents=incidents_of(site.cells[row.rig]),
        waivers=last.waivers if last is not None else (),
        known=CATALOGUE,
        machine=[(name, value) for name, value in machine if value],
        cards=parts.cards if parts is not None else (),
        # Nothing in it can end the block, whatever a rig says of itself.
        data=Markup(json.dumps(charts).replace("<", "\\u003c")),  # noqa: S704 - as just said
    )


def _fleet(site: _Site, rows: dict[str, Row]) -> None:
    alive = {rig: row for rig, row in sorted(rows.items()) if not row.silent}
    bad = [row for row in alive.values() if row.verdict in _BAD or row.stale]
    bad.sort(key=lambda row: _BAD.index(row.verdict) if row.verdict in _BAD else len(_BAD))
    silent = [row for row in rows.values() if row.silent]
    trends = sum(len(row.trends) for row in rows.values())
    if bad:
        title = f"{several(len(bad), 'rig')} of {len(alive)} need somebody"
    else:
        title = f"{len(alive)} of {len(alive)} ok" + (f", {several(trends, 'slow trend')}" if trends else "")
    title += f", {several(len(silent), 'rig')} silent for more than a year" if silent else ""
    ordered = [*bad, *(row for row in alive.values() if row not in bad), *silent]
    site.pages.page(
        "index.html", "fleet.html.j2", now=site.now, title="fleet", headline=title if rows else "no rig yet",
        tone="fail" if any(row.verdict is Verdict.FAIL for row in bad) else "error" if bad else "pass",
        bad=bad, rows=ordered,
    )  # fmt: skip


def _checks(site: _Site) -> None:
    """Write the pages of checks; they name no time of writing, so that those of which nothing is new stay."""
    every = [cell for rig, nights in site.cells.items() if rig not in site.silent for cell in nights]
    incidents = incidents_of(sorted(every, key=lambda cell: cell.ended_at))
    by_check: dict[str, list[Any]] = {check: [] for check in CATALOGUE}
    for one in incidents:
        by_check.setdefault(one.cause.partition("[")[0], []).append(one)
    for check, info in CATALOGUE.items():
        site.pages.page(f"checks/{check}.html", "check.html.j2", title=check, info=info, incidents=by_check[check])
    numbers = Counter({check: len(found) for check, found in by_check.items()})
    infos = tuple(CATALOGUE.values())
    site.pages.page("checks/index.html", "checks.html.j2", title="checks", infos=infos, counts=numbers)


def _tone(verdict: Verdict | None) -> str:
    return "fail" if verdict is Verdict.FAIL else "error" if verdict is Verdict.ERROR else "pass"
