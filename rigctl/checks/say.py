"""The words in which every check speaks: one `Say` per check and subject, carrying limit, unit and source."""

from __future__ import annotations

from dataclasses import dataclass, replace

from rigctl.model.verdict import CheckVerdict, Verdict

Figure = str | float | int | None


@dataclass(frozen=True)
class Say:
    """Makes the verdicts of one check on one subject."""

    check: str
    subject: str = "rig"
    expected: Figure = None
    unit: str | None = None
    source: str = ""

    def of(self, subject: str, expected: Figure = None) -> Say:
        """Return the same check on another subject, where given with its own limit."""
        return replace(self, subject=subject, expected=self.expected if expected is None else expected)

    def passed(self, reason: str, found: Figure = None) -> CheckVerdict:
        """Measured, and within the limit."""
        return self._verdict(Verdict.PASS, reason, found, "")

    def warned(self, reason: str, found: Figure, fix: str) -> CheckVerdict:
        """Measured, within the limit, and worth a look."""
        return self._verdict(Verdict.WARN, reason, found, fix)

    def unlearned(self, reason: str, found: Figure, rig: str) -> CheckVerdict:
        """Measured, and the spec has no figure to judge it by yet: a person should know that nothing was judged."""
        fix = f"rigctl spec learn {rig}: drafts the missing figures from a healthy run"
        return self.warned(f"{reason}; the spec sets no limit for it yet", found, fix)

    def failed(self, reason: str, found: Figure, fix: str) -> CheckVerdict:
        """Measured, and outside the limit."""
        return self._verdict(Verdict.FAIL, reason, found, fix)

    def error(self, reason: str, fix: str) -> CheckVerdict:
        """Should have been measured and could not be."""
        return self._verdict(Verdict.ERROR, reason, None, fix)

    def blind(self, reason: str) -> CheckVerdict:
        """This hardware or driver does not show it."""
        return self._verdict(Verdict.BLIND, reason, None, "")

    def skipped(self, reason: str) -> CheckVerdict:
        """The spec says that the rig has no such part."""
        return self._verdict(Verdict.SKIP, reason, None, "")

    def _verdict(self, verdict: Verdict, reason: str, found: Figure, fix: str) -> CheckVerdict:
        return CheckVerdict(
            check=self.check,
            subject=self.subject,
            verdict=verdict,
            reason=reason,
            expected=self.expected,
            found=_short(found),
            unit=self.unit,
            source=self.source,
            fix=fix,
        )


def _short(found: Figure) -> Figure:
    """Three decimals are more than any of our sensors has, and keep verdicts readable."""
    return round(found, 3) if isinstance(found, float) else found
