"""The certificate as one HTML file: no script, no request to anywhere, a copy of the statement inside."""

from __future__ import annotations

from typing import TYPE_CHECKING

from markupsafe import Markup

from rigctl.certificate.words import heading, rows
from rigctl.report.html import environment, template
from rigctl.report.text import counts, figure
from rigctl.store import dumps

if TYPE_CHECKING:
    from rigctl.model.certificate import Statement

OPENING, CLOSING = '<script type="application/json" id="statement">', "</script>"
"""A data block: browsers run nothing in it."""


def render(stated: Statement) -> bytes:
    """Return the page; equal statements give equal bytes with the same version of rigctl."""
    made = environment("rigctl.certificate")
    made.globals["figure"] = figure
    page = made.get_template("certificate.html.j2").render(
        stated=stated,
        heading=heading(stated),
        rows=rows(stated),
        coverage=counts(stated.counts),
        style=Markup(template("page.css")),  # noqa: S704 - our own file
        copy=Markup(embedded(stated)),  # noqa: S704 - escaped below
    )
    return page.encode("utf-8", "replace")


def embedded(stated: Statement) -> str:
    """The statement as a data block of HTML: without the documents' digests, which are known only afterwards."""
    text = dumps(stated.model_copy(update={"documents": {}}))
    # Nothing in it can end the block, whatever a rig says of itself.
    return OPENING + text.replace("<", "\\u003c") + CLOSING
