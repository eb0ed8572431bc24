"""What a run's journal tells of each rig's steps: enough for another controller to go on."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rigctl.model.upgrade import BACK, FIRST_CHANGE, FORWARD, UNDO, End, RigEnd, Step

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rigctl.store.outcome import JournalEntry

STARTED, FINISHED, TURNED, ENDED, REOPENED = (
    "step_started",
    "step_finished",
    "way_changed",
    "rig_ended",
    "rig_reopened",
)
MEASURED = "measured"
"""An acceptance of a rig, whatever became of the step that it was for."""
WAYS = {"forward": FORWARD, "undo": UNDO, "back": BACK}


@dataclass
class RigHistory:
    """One rig's steps so far."""

    way: str = "forward"
    """forward · undo · back"""
    reason: str = ""
    """Why the way was changed."""
    hint: str = ""
    failed: Step | None = None
    """The step for which it was."""
    aborted: bool = False
    begun: list[Step] = field(default_factory=list)
    """Steps that were ever started, on any way."""
    done: dict[str, dict[Step, dict[str, Any]]] = field(default_factory=lambda: defaultdict(dict))
    """Way → finished steps → what they found."""
    end: RigEnd | None = None

    @property
    def left_to_do(self) -> tuple[Step, ...]:
        """The steps of the present way that are not finished.

        Earlier versions stopped what holds the cards within the change: such a journal has no step for it.
        """
        known = {Step.RELEASE} if FIRST_CHANGE in self.begun else set()
        return tuple(step for step in WAYS[self.way] if step not in self.done[self.way] and step not in known)

    def found(self, step: Step) -> dict[str, Any]:
        """What a finished step found, on whatever way; empty where it did not finish."""
        return next((steps[step] for steps in self.done.values() if step in steps), {})


def end_of(rig: str, history: RigHistory, run_id: str) -> RigEnd:
    """How a rig has ended, or that it has not."""
    if history.end is not None:
        return history.end
    if not history.begun:
        return RigEnd(rig=rig, end=End.NOT_BEGUN, reason="the upgrade had stopped before its turn")
    step = history.begun[-1]
    words = f"`rigctl upgrade --resume {run_id}` goes on, `--abort {run_id}` takes it back"
    return RigEnd(rig=rig, end=End.UNFINISHED, reason=f"stopped at {step.value}", hint=words, step=step)


def read_history(entries: Iterable[JournalEntry]) -> dict[str, RigHistory]:
    """Return each rig's steps; rigs of which nothing stands there are left out."""
    rigs: dict[str, RigHistory] = {}
    for entry in entries:
        detail = entry.detail
        if entry.event not in (STARTED, FINISHED, TURNED, ENDED, REOPENED):
            continue
        rig = rigs.setdefault(detail["rig"], RigHistory())
        if entry.event == STARTED:
            rig.begun.append(Step(detail["step"]))
        elif entry.event == FINISHED:
            rig.done[rig.way][Step(detail["step"])] = detail.get("found", {})
        elif entry.event == TURNED:
            rig.way, rig.reason, rig.hint = detail["way"], detail["reason"], detail["hint"]
            rig.failed = Step(detail["step"]) if detail.get("step") else None
            rig.aborted = bool(detail.get("aborted"))
        elif entry.event == REOPENED:
            rig.end = None
        else:
            rig.end = RigEnd.model_validate(detail["end"])
    return rigs
