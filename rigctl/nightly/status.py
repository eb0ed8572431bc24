"""How old the last verdict of each rig is: silence is not health."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rigctl.report.text import rig_word
from rigctl.trends.series import day_of

if TYPE_CHECKING:
    from datetime import datetime

    from rigctl.model.past import Past
    from rigctl.nightly.settings import Park
    from rigctl.store.index import Index


@dataclass(frozen=True)
class Age:
    """One rig's last verdict."""

    rig: str
    past: Past | None
    """None: it was never judged."""
    hours: float | None
    stale: bool
    """Older than the park allows."""

    @property
    def sentence(self) -> str:
        """In words."""
        if self.past is None or self.hours is None:
            return f"{self.rig}: never accepted; run `rigctl nightly run`, or `rigctl accept {self.rig}`"
        said = rig_word(self.past.verdict)
        old = f"{self.hours:.0f} h ago" if self.hours < 48 else f"{self.hours / 24:.0f} days ago"  # noqa: PLR2004 - two days
        late = ": too long ago; is the timer running, and was the controller on?" if self.stale else ""
        return f"{self.rig}: {said}, {old} (run {self.past.run_id}){late}"


def ages(park: Park, index: Index, now: datetime) -> list[Age]:
    """Return the age of each rig's last verdict. Raises RigctlError as the index."""
    found = []
    for rig in park.fleet:
        past = index.newest(rig.name)
        hours = None if past is None else (day_of(now.isoformat()) - day_of(past.ended_at)) * 24
        stale = hours is None or hours > park.spec.stale_after_hours
        found.append(Age(rig.name, past, hours, stale))
    return found
