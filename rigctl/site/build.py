"""Writing the site: everything once, afterwards only what new or changed runs touch."""

from __future__ import annotations

import json
import os
from collections import Counter
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from markupsafe import Markup
from plotly.offline import get_plotlyjs

import rigctl
from rigctl.checks.catalogue import CATALOGUE
from rigctl.errors import UsageError
from rigctl.model.verdict import Verdict
from rigctl.report.html import environment, template
from rigctl.report.summary import headline, rig_counts, tally
from rigctl.report.text import counts, moment, rig_word, several
from rigctl.site.views import CHARTED, DAYS, charts_of, incidents_of, row_of
from rigctl.store import RunDir
from rigctl.store.decisions import newest_decisions
from rigctl.store.files import replace_durably, writing
from rigctl.trends import known_of

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

    from jinja2 import Environment

    from rigctl.site.views import Row
    from rigctl.store.index import Cell, Index
    from rigctl.trends import Knowledge

MANIFEST = "site.json"
VERSION = 1
"""Of the pages; another one writes all of them again."""
ROOT, BELOW = "", "../"
_BAD = (Verdict.FAIL, Verdict.ERROR)


@dataclass(frozen=True)
class Built:
    """What was written."""

    pages: int
    runs: int
    """Pages of runs among them."""
    left_out: tuple[tuple[str, str], ...]
    """Runs that could not be read, and why."""


@dataclass(frozen=True)
class _Site:
    """One writing of the site."""

    index: Index
    output: Path
    now: datetime
    cells: dict[str, list[Cell]]
    """By rig, oldest first, of the last year."""


def build(index: Index, output: Path, now: datetime, *, anew: bool = False) -> Built:
    """Write the site, or what has changed since it was written.

    Args:
        index: Brought up to date.
        output: The folder; it holds nothing but the site.
        now: The time that the pages name, UTC.
        anew: Write every page again.

    Raises:
        UsageError: the folder cannot be written, or holds something else.
        RigctlError: the index cannot be used.
    """
    known = _manifest(output)
    anew = anew or known is None or known["version"] != VERSION or known["rigctl"] != rigctl.__version__
    before: dict[str, str] = {} if anew or known is None else known["runs"]
    stamps = index.stamps()
    changed = sorted(name for name, stamp in stamps.items() if before.get(name) != stamp)
    gone = sorted(set(before) - set(stamps))
    since = (now - timedelta(days=DAYS)).isoformat()
    cells: dict[str, list[Cell]] = {}
    for cell in index.cells(since=since):
        cells.setdefault(cell.rig, []).append(cell)
    site = _Site(index, output, now, cells)
    _make(output)
    written = _assets(output) if anew else 0
    left_out, runs = _runs(site, changed)
    for name in gone:
        (output / "runs" / f"{name}.html").unlink(missing_ok=True)
    touched = {
        rig for rig, nights in cells.items() if anew or gone or any(cell.folder in set(changed) for cell in nights)
    }
    rows = _rigs(site, touched, {} if known is None or anew else known["rows"])
    written += runs + len(touched) + _fleet(site, rows) + _checks(site)
    kept = {rig: [trend.sentence for trend in row.trends] for rig, row in rows.items()}
    manifest = {"version": VERSION, "rigctl": rigctl.__version__, "runs": stamps, "rows": kept}
    replace_durably(output / MANIFEST, json.dumps(manifest).encode())
    return Built(written, runs, left_out)


def _manifest(output: Path) -> dict[str, Any] | None:
    if not output.exists():
        return None
    path = output / MANIFEST
    if not path.exists():
        if any(output.iterdir()):
            raise UsageError(f"{output} holds something else than a site", "name an empty folder with --output")
        return None
    try:
        found: dict[str, Any] = json.loads(path.read_bytes())
    except ValueError:
        return None  # cut by a crash: all pages are written again
    return found


def _make(output: Path) -> None:
    with writing(output):
        for folder in ("", "rigs", "runs", "checks"):
            (output / folder).mkdir(parents=True, exist_ok=True)


def _assets(output: Path) -> int:
    own = files("rigctl.site") / "templates"
    style = template("page.css") + (own / "site.css").read_text(encoding="utf-8")
    for name, text in (
        ("style.css", style),
        ("plotly.js", get_plotlyjs()),
        ("rig.js", (own / "rig.js").read_text(encoding="utf-8")),
    ):
        replace_durably(output / name, text.encode())
    return 3


def _runs(site: _Site, changed: list[str]) -> tuple[tuple[tuple[str, str], ...], int]:
    """Write the pages of runs; those before the year have none."""
    recent = {cell.folder for nights in site.cells.values() for cell in nights if cell.here}
    left_out, count = [], 0
    for name in changed:
        if name not in recent:
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
    _page(
        site,
        target,
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


def _rigs(site: _Site, touched: set[str], before: dict[str, Any]) -> dict[str, Row]:
    """Write the pages of rigs, and return the row of each for the fleet's page."""
    rows = {}
    for rig, nights in sorted(site.cells.items()):
        # What a rig's nights say changes with its nights alone: untouched, only its row is made again.
        known = _know(site, rig) if rig in touched or before.get(rig) else None
        row = row_of(rig, nights, known.trends if known is not None else (), site.now)
        rows[rig] = row
        if rig in touched and known is not None:
            _rig(site, row, known)
    return rows


def _know(site: _Site, rig: str) -> Knowledge:
    pasts = site.index.pasts(rig, since=(site.now - timedelta(days=DAYS)).isoformat())
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
    _page(
        site,
        site.output / "rigs" / f"{row.rig}.html",
        "rig.html.j2",
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
        machine=[(name, value) for name, value in machine if value],
        cards=parts.cards if parts is not None else (),
        # Nothing in it can end the block, whatever a rig says of itself.
        data=Markup(json.dumps(charts).replace("<", "\\u003c")),  # noqa: S704 - as just said
    )


def _fleet(site: _Site, rows: dict[str, Row]) -> int:
    bad = sorted((row for row in rows.values() if row.verdict in _BAD or row.stale), key=lambda row: row.rig)
    bad.sort(key=lambda row: _BAD.index(row.verdict) if row.verdict in _BAD else len(_BAD))
    trends = sum(len(row.trends) for row in rows.values())
    if bad:
        title = f"{several(len(bad), 'rig')} of {len(rows)} need somebody"
    else:
        title = f"{len(rows)} of {len(rows)} ok" + (f", {several(trends, 'slow trend')}" if trends else "")
    ordered = [*bad, *(rows[rig] for rig in sorted(rows) if rows[rig] not in bad)]
    _page(
        site, site.output / "index.html", "fleet.html.j2", title="fleet", headline=title if rows else "no rig yet",
        tone="fail" if any(row.verdict is Verdict.FAIL for row in bad) else "error" if bad else "pass",
        bad=bad, rows=ordered,
    )  # fmt: skip
    return 1


def _checks(site: _Site) -> int:
    every = [cell for nights in site.cells.values() for cell in nights]
    incidents = incidents_of(sorted(every, key=lambda cell: cell.ended_at))
    by_check: dict[str, list[Any]] = {check: [] for check in CATALOGUE}
    for one in incidents:
        by_check.setdefault(one.cause.partition("[")[0], []).append(one)
    for check, info in CATALOGUE.items():
        path = site.output / "checks" / f"{check}.html"
        _page(site, path, "check.html.j2", title=check, info=info, incidents=by_check[check])
    numbers = Counter({check: len(found) for check, found in by_check.items()})
    path = site.output / "checks" / "index.html"
    _page(site, path, "checks.html.j2", title="checks", infos=tuple(CATALOGUE.values()), counts=numbers)
    return len(CATALOGUE) + 1


def _tone(verdict: Verdict | None) -> str:
    return "fail" if verdict is Verdict.FAIL else "error" if verdict is Verdict.ERROR else "pass"


def _page(site: _Site, path: Path, name: str, **known: Any) -> None:
    root = ROOT if path.parent == site.output else BELOW
    text = _environment().get_template(name).render(root=root, now=site.now, **known)
    with writing(path):
        # A site is made again at will: its pages need not survive a power cut one by one, as runs must.
        path.write_text(text, encoding="utf-8", errors="replace")


@cache
def _environment() -> Environment:
    made = environment("rigctl.site")
    made.filters["said"] = rig_word
    return made
