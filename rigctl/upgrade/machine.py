"""The way of one rig through an upgrade: step by step, each in the journal before it begins and after it ended.

A step that fails before anything was changed sends the rig back by `UNDO`; from the change on by `BACK`, unless the run
was told to leave it as it is. Another controller goes on from the journal: a finished step is not done again, a step
that was begun is, and each can be.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rigctl.errors import RigctlError, RigError
from rigctl.model.upgrade import FIRST_CHANGE, FORWARD, Capture, End, RigEnd, Step
from rigctl.upgrade import journal
from rigctl.upgrade.compare import all_differences, identity_differences, lost_figures
from rigctl.upgrade.journal import RigHistory
from rigctl.upgrade.port import Smoke, StepFailed, Stopped

if TYPE_CHECKING:
    from collections.abc import Callable

    from rigctl.model.upgrade import RigPlan, Wishes
    from rigctl.store import RunDir
    from rigctl.upgrade.port import Drain, RigPort

_LAST_CHANCES = (Step.RELEASE, FIRST_CHANGE)
"""Before these a rig is given back as it is where the upgrade has stopped because of another one."""
LOOK_S = 5.0
"""Jobs and users are looked for so often while they are waited for, seconds."""


@dataclass(frozen=True)
class Rules:
    """What holds for every rig of a run."""

    wishes: Wishes
    rollback: bool = True
    evict_users: bool = False
    ignore_lock: bool = False
    drain_limit_s: float = 3600
    """Jobs and users are waited for at most so long, seconds."""
    max_loss_share: float = 0.10
    """So much of a rate may be less than before."""


@dataclass
class Machine:
    """One rig of one run."""

    rig: str
    rules: Rules
    run: RunDir
    port: RigPort
    drain: Drain
    history: RigHistory = field(default_factory=RigHistory)
    stop: threading.Event = field(default_factory=threading.Event)
    """Set by Ctrl-C: the present step ends, no other one begins."""
    say: Callable[[str, str], None] = lambda _step, _words: None
    """Told the step and what it is waiting for."""
    halted: Callable[[], bool] = lambda: False
    """Whether the upgrade has stopped because of another rig: then nothing is changed any more."""

    def advance(self) -> RigEnd:
        """Go the rig's way to its end. Raises Stopped between two steps."""
        if self.history.end is not None:
            return self.history.end
        if self._as_asked():  # the controller may have died before it said so
            return self._end(End.AS_ASKED, "", "", None)
        while self.history.end is None and self.history.left_to_do:
            self._next(self.history.left_to_do[0])
        return self._ended()

    def reopen(self) -> None:
        """Try a rig that was left drained once more, at the step where it failed."""
        if self.history.end is not None and self.history.end.end == End.LEFT_DRAINED:
            self.run.journal(journal.REOPENED, rig=self.rig)
            self.history.end = None

    def abort(self, reason: str) -> None:
        """Turn round; `advance` then takes the rig back. One that was verified and may be in use again is finished."""
        if self.history.end is None and self.history.way == "forward" and Step.RESUME not in self.history.begun:
            self._turn(reason, "", None, aborted=True)

    @property
    def _reason(self) -> str:
        """What the drain says: only what says this is ever lifted."""
        return f"rigctl {self.run.run_id}: {self.rules.wishes.words}"

    def _next(self, step: Step) -> None:
        if self.stop.is_set():
            raise Stopped
        if step in _LAST_CHANCES and FIRST_CHANGE not in self.history.begun and self.halted():
            self._turn("the upgrade had stopped before anything was changed here", "", None)
            return
        self.run.journal(journal.STARTED, rig=self.rig, step=step.value)
        self.history.begun.append(step)
        self.say(step.value, "")
        began = time.monotonic()
        try:
            found = _WORK[step](self)
        except (StepFailed, RigError) as error:
            self._failed(step, error)
            return
        seconds = round(time.monotonic() - began, 3)
        self.run.journal(journal.FINISHED, rig=self.rig, step=step.value, seconds=seconds, found=found)
        self.history.done[self.history.way][step] = found
        if self._as_asked():
            self._end(End.AS_ASKED, "", "", None)

    def _as_asked(self) -> bool:
        return self.history.way == "forward" and bool(self.history.found(Step.PREFLIGHT).get("nothing_to_do"))

    def _failed(self, step: Step, error: RigctlError) -> None:
        """Turn round; on the way back there is nowhere else to go: the rig stays as it is, and says so."""
        changed, verified = (FORWARD.index(one) for one in (FIRST_CHANGE, Step.VERIFY))
        place = FORWARD.index(step) if self.history.way == "forward" else None
        # Who was verified, and may be in use again, is never rolled back.
        if place is not None and (place < changed or (place <= verified and self.rules.rollback)):
            self._turn(error.message, error.hint, step)
            return
        where = f"{step.value}: {error.message}"
        first = f"{self.history.reason}; then " if self.history.reason else ""
        self._end(End.LEFT_DRAINED, first + where, error.hint or self._by_hand(), step)

    def _by_hand(self) -> str:
        return (
            f"look at the rig, then `rigctl upgrade --resume {self.run.run_id}` to try once more, "
            "or give it back by hand once it is as you want it"
        )

    def _turn(self, reason: str, hint: str, step: Step | None, *, aborted: bool = False) -> None:
        way = "back" if FIRST_CHANGE in self.history.begun else "undo"
        detail = {"way": way, "reason": reason, "hint": hint, "aborted": aborted}
        self.run.journal(journal.TURNED, rig=self.rig, step=step.value if step else None, **detail)
        self.history.way, self.history.reason, self.history.hint = way, reason, hint
        self.history.failed, self.history.aborted = step, aborted

    def _ended(self) -> RigEnd:
        if self.history.end is not None:
            return self.history.end
        if self.history.way == "forward":
            return self._end(End.UPGRADED, "", "", None)
        if self.history.aborted:
            return self._end(End.ABORTED, self.history.reason, "", None)
        if self.history.failed is None:
            return self._end(End.NOT_BEGUN, self.history.reason, "", None)
        end = End.ROLLED_BACK if self.history.way == "back" else End.REFUSED
        return self._end(end, self.history.reason, self.history.hint, self.history.failed)

    def _end(self, end: End, reason: str, hint: str, step: Step | None) -> RigEnd:
        ended = RigEnd(rig=self.rig, end=end, reason=reason, hint=hint, step=step)
        self.run.journal(journal.ENDED, rig=self.rig, end=ended.model_dump(mode="json"))
        self.history.end = ended
        return ended

    # --- the steps -------------------------------------------------------------------------------------------------

    def _preflight(self) -> dict[str, Any]:
        self.drain.look()
        plan: RigPlan = self.port.plan(self.rules.wishes)
        self.run.write_json_atomic(f"{self.rig}/plan.json", plan)
        if plan.refusals:
            more = f" (and {len(plan.refusals) - 1} more)" if len(plan.refusals) > 1 else ""
            raise StepFailed(plan.refusals[0] + more, "mend that, then upgrade again; nothing was changed")
        return {"nothing_to_do": plan.nothing_to_do}

    def _lock(self) -> dict[str, Any]:
        holder = self.port.lock(self.run.run_id, ignore=self.rules.ignore_lock)
        if holder:
            raise StepFailed(
                f"the rig is held by {holder}", "wait for its end, or --ignore-lock once you know that it is dead"
            )
        return {}

    def _capture(self) -> dict[str, Any]:
        capture = self.port.capture(self.run.run_id, keep_old=self.rules.rollback)
        self.run.write_json_atomic(f"{self.rig}/before.json", capture)
        return {}

    def _drained(self) -> dict[str, Any]:
        others = self.drain.drain(self._reason)
        deadline = time.monotonic() + self.rules.drain_limit_s
        while users := self._in_use():
            if time.monotonic() >= deadline:
                raise StepFailed(
                    f"still used after {self.rules.drain_limit_s:.0f} s: {', '.join(users)}",
                    "ask them, wait longer (--drain-minutes), or make them leave (--evict-users)",
                )
            self.say(Step.DRAIN.value, f"waits for {', '.join(users)}")
            if self.stop.wait(LOOK_S):
                raise Stopped
        return {"drained_by_others": others}

    def _in_use(self) -> tuple[str, ...]:
        """A scheduler's jobs end by themselves; others are waited for too, unless they are to be made to leave."""
        return self.drain.jobs() if self.rules.evict_users else (*self.drain.jobs(), *self.port.users())

    def _before(self) -> dict[str, Any]:
        smoke = self._smoke("before")
        if not smoke.accepted:
            raise StepFailed(
                f"not fit before the upgrade: {smoke.why_not}",
                f"mend it first; the readings are in run {smoke.run_id}",
            )
        return _told(smoke)

    def _release(self) -> dict[str, Any]:
        stopped = self.port.release(self.rules.wishes)
        return {"stopped": list(stopped)} if stopped else {}

    def _change(self) -> dict[str, Any]:
        if self.history.begun.count(Step.CHANGE) > 1:  # cut in the middle, perhaps hours ago
            self.port.release(self.rules.wishes)
        self.port.change(self.rules.wishes)
        return {}

    def _verify(self) -> dict[str, Any]:
        seen = self._look("after")
        if self.rules.wishes.kernel not in (None, seen.kernel):
            raise StepFailed(f"the kernel {self.rules.wishes.kernel} was asked for, and {seen.kernel} runs")
        differences = identity_differences(self._captured(), seen)
        if differences:
            raise StepFailed(f"not the rig it was: {'; '.join(differences)}")
        began = time.monotonic()
        smoke = self._as_fit_as_before("after", "after the upgrade")
        return {**_told(smoke), "smoke_seconds": round(time.monotonic() - began, 3)}

    def _as_fit_as_before(self, label: str, when: str) -> Smoke:
        """Measure it against the spec and against what it was before. Raises StepFailed."""
        smoke = self._smoke(label)
        if not smoke.accepted:
            raise StepFailed(f"not fit {when}: {smoke.why_not} (run {smoke.run_id})")
        known = self.history.found(Step.BEFORE)
        before = Smoke(known["run_id"], accepted=True, figures=known["figures"])
        lost = lost_figures(before, smoke, self.rules.max_loss_share)
        if lost:
            raise StepFailed(f"slower {when} than before: {'; '.join(lost)} (runs {before.run_id} and {smoke.run_id})")
        return smoke

    def _restore(self) -> dict[str, Any]:
        self.port.restore(self._captured())
        return {}

    def _check_restored(self) -> dict[str, Any]:
        differences = all_differences(self._captured(), self._look("restored"))
        if differences:
            raise StepFailed(f"the way back did not lead back: {'; '.join(differences)}", self._by_hand())
        if self.history.failed != Step.VERIFY:
            return {}
        # What it was taken back for it may have all the same: a card, a cable, the restart itself.
        return _told(self._as_fit_as_before("restored", "after the way back too"))

    def _resume(self) -> dict[str, Any]:
        if Step.DRAIN not in self.history.begun:
            return {"given_back": False}
        if self.history.way == "undo" and Step.RELEASE in self.history.begun:
            self.port.start_again()
        return {"given_back": self.drain.resume(self._reason)}

    def _unlock(self) -> dict[str, Any]:
        if Step.LOCK in self.history.begun:
            self.port.unlock(self.run.run_id)
        return {}

    def _smoke(self, label: str) -> Smoke:
        smoke = self.port.smoke(label)
        self.run.journal(journal.MEASURED, rig=self.rig, label=label, accepted=smoke.accepted, **_told(smoke))
        return smoke

    def _look(self, name: str) -> Capture:
        """What the rig has now; it stays in the run directory, for the report."""
        seen = self.port.seen()
        self.run.write_json_atomic(f"{self.rig}/{name}.json", seen)
        return seen

    def _captured(self) -> Capture:
        return Capture.model_validate_json((self.run.path / self.rig / "before.json").read_bytes())


def _told(smoke: Smoke) -> dict[str, Any]:
    """What the journal keeps of an acceptance."""
    kept = {"run_id": smoke.run_id, "figures": smoke.figures, "units": smoke.units}
    return {**kept, "simulated": True} if smoke.simulated else kept


_WORK: dict[Step, Callable[[Machine], dict[str, Any]]] = {
    Step.PREFLIGHT: Machine._preflight,  # noqa: SLF001 - the machine's own steps
    Step.LOCK: Machine._lock,  # noqa: SLF001
    Step.CAPTURE: Machine._capture,  # noqa: SLF001
    Step.DRAIN: Machine._drained,  # noqa: SLF001
    Step.BEFORE: Machine._before,  # noqa: SLF001
    Step.RELEASE: Machine._release,  # noqa: SLF001
    Step.CHANGE: Machine._change,  # noqa: SLF001
    Step.VERIFY: Machine._verify,  # noqa: SLF001
    Step.RESTORE: Machine._restore,  # noqa: SLF001
    Step.CHECK_RESTORED: Machine._check_restored,  # noqa: SLF001
    Step.RESUME: Machine._resume,  # noqa: SLF001
    Step.UNLOCK: Machine._unlock,  # noqa: SLF001
}
