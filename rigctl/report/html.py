"""One HTML file that opens offline: verdict, cause and what to do first, then curves and every verdict.

Everything is inside: styles, script, plotly. A content security policy in the page allows its own scripts only, by
hash, and no request to anywhere.
"""

from __future__ import annotations

import base64
import hashlib
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from plotly.offline import get_plotlyjs

from rigctl.model.verdict import WORST_FIRST, Verdict
from rigctl.report.page import RigView, rig_view
from rigctl.report.summary import (
    Cause,
    all_causes,
    follows_together,
    headline,
    rigs_worst_first,
    simulated,
    some,
    tally,
    untested,
    verdicts,
    waived,
    warnings_apart,
)
from rigctl.report.text import duration, moment, plain, seconds_between, word
from rigctl.store.lines import collector_paused
from rigctl.store.pruned import said_of

if TYPE_CHECKING:
    from rigctl.model.verdict import Record
    from rigctl.store import RunDir


def render(run_dir: RunDir, record: Record) -> str:
    """Return the whole page.

    Raises:
        UsageError: a file of the run is damaged.
    """
    asked = {rig.name: rig for rig in run_dir.read_info().rigs}
    with collector_paused():
        rigs = [
            rig_view(number, rig, run_dir.readings(rig.name), asked.get(rig.name), said_of(run_dir.path, rig.name))
            for number, rig in enumerate(rigs_worst_first(record), start=1)
        ]
    plotly, script = _script_text(get_plotlyjs()), _script_text(template("page.js"))
    return (
        environment()
        .get_template("page.html.j2")
        .render(
            record=record,
            rigs=rigs,
            **_first_screen(record, rigs),
            style=Markup(template("page.css")),  # noqa: S704 - our own file
            plotly=Markup(plotly),  # noqa: S704 - the library's own file
            script=Markup(script),  # noqa: S704 - our own file
            script_hashes=[_csp_hash(plotly), _csp_hash(script)],
            drawings={rig.anchor: rig.drawing for rig in rigs if rig.drawing["charts"]},
        )
    )


def _first_screen(record: Record, rigs: list[RigView]) -> dict[str, Any]:
    numbers = tally(record)
    tone = "fail" if numbers["failed"] else "error" if numbers["unmeasured"] or not record.rigs else "pass"
    present = {v.verdict for rig in record.rigs for v in verdicts(rig)}
    return {
        "tone": tone,
        "headline": headline(record),
        "causes": all_causes(record),
        "warnings": warnings_apart(record),
        "waived": waived(record),
        "untested": untested(record),
        "simulated": simulated(record),
        "all_simulated": all(rig.simulated for rig in record.rigs),
        "started": f"{moment(record.started_at):%-d %B %Y, %H:%M}",
        "ended": f"{moment(record.ended_at):%H:%M} UTC",
        "length": duration(seconds_between(record.started_at, record.ended_at)),
        "present": [v for v in WORST_FIRST if v in present],
        "row_count": sum(len(rig.rows) for rig in rigs),
    }


def environment(package: str = "rigctl.report") -> Environment:
    """Return what renders pages from a package's templates: text of rigs is made harmless wherever one places it."""
    made = Environment(
        loader=PackageLoader(package),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_harmless,
    )
    made.filters["word"] = word
    made.filters["some"] = some
    made.filters["follows"] = _follows
    made.globals["Verdict"] = Verdict
    return made


def _follows(cause: Cause) -> Any:
    return follows_together(cause)


def _harmless(value: Any) -> Any:
    """Take control characters out of every text that the template places."""
    return plain(value) if type(value) is str else value


def template(name: str) -> str:
    """Return a file of the templates as it is."""
    return (files("rigctl.report") / "templates" / name).read_text(encoding="utf-8")


def _script_text(source: str) -> str:
    """Return a script as browsers hash it: they see line feeds only."""
    return source.replace("\r\n", "\n").replace("\r", "\n")


def _csp_hash(script: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
