"""A GPU burn that ends as soon as its verdict is certain: what one rig's polls bring, held against the checks."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rigctl.checks import early
from rigctl.model.reading import Readings

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rigctl.measure.spool import Fetched
    from rigctl.model.baseline import Baseline
    from rigctl.model.reading import Facts, Sample
    from rigctl.model.spec import ProfileSpec, RigSpec

EVERY_S = 10.0
"""So often the question is asked, seconds of the rig's clock: eight cards take some tenths of a second."""
REST = ("before", "idle")


@dataclass
class EarlyStop:
    """What has come home of one rig's burn so far."""

    rig: str
    spec: RigSpec
    profile: ProfileSpec
    facts: Facts
    baseline: Baseline | None
    profile_name: str
    _samples: list[Sample] = field(default_factory=list)
    _log: str = ""
    _asked_s: float = 0.0
    _told: bool = False

    @property
    def why_not(self) -> str | None:
        """Why no burn of this run is ended early; None where one may be."""
        return early.why_not(self.profile_name, self.profile, self.facts, self.baseline)

    def recall(self, samples: Iterable[Sample]) -> None:
        """Know again what an earlier plan of the run had brought home."""
        self._samples += [one for one in samples if one.step in (*REST, early.STEP)]

    def take(self, fetched: Fetched, step: str) -> str | None:
        """Take in what a poll brought while `step` ran; return why its burn's verdict is certain, once, when it is."""
        self._samples += [one for one in fetched.samples if one.step in (*REST, early.STEP)]
        if step != early.STEP or self._told or self.why_not is not None:
            return None
        self._log += fetched.burn_text
        newest_s = self._samples[-1].t_mono_s if self._samples else 0.0
        if newest_s - self._asked_s < EVERY_S:
            return None
        self._asked_s = newest_s
        # Without events: what the rig told of a load that is still under way reads like one that was broken off.
        readings = Readings(
            rig=self.rig, facts=self.facts, samples=tuple(self._samples), logs={f"{early.STEP}.log": self._log}
        )
        reason = early.certain(self.spec, self.profile, readings, self.baseline)
        self._told = reason is not None
        return reason
