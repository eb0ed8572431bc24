"""The certificate as PDF, by fpdf2 with the fonts that every reader has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fpdf import FPDF
from fpdf.enums import TableBordersLayout, XPos, YPos

from rigctl.certificate.words import heading, rows
from rigctl.report.text import counts, figure, moment, plain, word

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rigctl.model.certificate import Statement

FONT, ENCODING = "helvetica", "cp1252"
_IN_LETTERS = str.maketrans({"≤": "<=", "≥": ">=", "→": "to", "−": "-", "≈": "about ", "Δ": "delta "})
"""What that encoding lacks and our sentences use."""
_MARGIN_MM, _LINE_MM = 15, 5
_TITLE_PT, _HEAD_PT, _BODY_PT, _SMALL_PT = 15, 11, 9, 7.5


class _Page(FPDF):
    """A page with its number and the run at the foot."""

    foot = ""

    def footer(self) -> None:
        self.set_y(-_MARGIN_MM)
        self.set_font(FONT, size=_SMALL_PT)
        self.cell(0, _LINE_MM, f"{self.foot} · page {self.page_no()} of {{nb}}", align="C")


def render(stated: Statement) -> bytes:
    """Return the document; equal statements give equal bytes with the same version of fpdf2."""
    page = _Page(format="A4")
    page.core_fonts_encoding = ENCODING
    page.foot = _letters(f"{stated.rig}, run {stated.run_id}")
    page.set_creation_date(moment(stated.certified_at))
    page.set_title(_letters(f"Acceptance certificate of {stated.rig}"))
    page.set_creator(f"rigctl {stated.certified_by}")
    page.set_margin(_MARGIN_MM)
    page.set_auto_page_break(auto=True, margin=_MARGIN_MM + _LINE_MM)
    page.add_page()
    kind = "Acceptance certificate · simulated rig" if stated.simulated else "Acceptance certificate"
    _text(page, kind, _BODY_PT)
    _text(page, heading(stated), _TITLE_PT, style="B")
    _section(page, "What was tested")
    _table(page, rows(stated), (1, 3))
    _section(page, "Cards")
    cards = [
        (str(c.slot), c.model, c.uuid, c.vbios or "not exposed", figure(c.power_limit_w, "W") or "not exposed")
        for c in stated.cards
    ]
    _table(page, [("Slot", "Model", "UUID", "VBIOS", "Power limit"), *cards], (1, 4, 6, 3, 2), head=True)
    _section(page, f"Checks: {counts(stated.counts)}")
    checks = [(word(one.verdict), f"{one.check} ({one.subject})", one.reason) for one in stated.tested]
    _table(page, [("Verdict", "Check", "What was seen"), *checks], (1, 4, 7), head=True)
    _section(page, "Not tested")
    for one in stated.not_tested:
        _text(page, f"{one.check} ({one.subject}): {one.reason}", _SMALL_PT)
    _section(page, "Evidence")
    _text(page, "Signed through the statement beside it. `rigctl certificate verify FILE` verifies offline.", _BODY_PT)
    _table(page, [("File of the run", "SHA-256"), *stated.evidence.items()], (2, 5), head=True)
    return bytes(page.output())


def _section(page: FPDF, title: str) -> None:
    page.ln(_LINE_MM)
    _text(page, title, _HEAD_PT, style="B")


def _text(page: FPDF, text: str, size: float, style: str = "") -> None:
    page.set_font(FONT, style=style, size=size)
    page.multi_cell(0, size * 0.5, _letters(text), align="L", new_x=XPos.LMARGIN, new_y=YPos.NEXT)


def _table(page: FPDF, lines: Sequence[Sequence[str]], widths: tuple[int, ...], *, head: bool = False) -> None:
    page.set_font(FONT, size=_SMALL_PT)
    with page.table(
        borders_layout=TableBordersLayout.HORIZONTAL_LINES,
        col_widths=widths,
        first_row_as_headings=head,
        line_height=_SMALL_PT * 0.5,
        text_align="LEFT",
    ) as table:
        for line in lines:
            row = table.row()
            for cell in line:
                row.cell(_letters(cell))


def _letters(text: str) -> str:
    """What the fonts can show; what they cannot becomes a question mark."""
    return plain(text).translate(_IN_LETTERS).encode(ENCODING, "replace").decode(ENCODING)
