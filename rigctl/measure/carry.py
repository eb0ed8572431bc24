"""Have plans carried out by a rig's own guard, and bring home what it reads; also what another controller had begun."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rigctl.checks.measure import RESTORED
from rigctl.errors import CommandFailed, RigError
from rigctl.measure import parts
from rigctl.measure.early import EarlyStop
from rigctl.measure.plan import build_plan
from rigctl.measure.session import Cancelled
from rigctl.measure.spool import EVENTS, KERNEL, LINES, TELEMETRY, Fetched, Spool
from rigctl.model.reading import Facts, KernelMessage, RigEvent, Sample
from rigctl.parse.gpu_burn import last_gflops
from rigctl.store.files import drop_cut_line
from rigctl.store.lines import read_lines

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable
    from pathlib import Path

    from rigctl.measure.claim import Claim
    from rigctl.measure.parts import Part
    from rigctl.measure.progress import Progress
    from rigctl.measure.session import RigSession
    from rigctl.model.baseline import Baseline
    from rigctl.model.rig import Rig
    from rigctl.model.spec import ProfileSpec
    from rigctl.store import RunDir

POLL_S = 1.0
"""Time between two polls of one rig, seconds; each is also the controller's word to the guard."""
START_TIMEOUT_S = 240
"""More than all that the agent's `start` waits for, seconds: systemd, another run's end, people who have to leave."""
STOP_TIMEOUT_S = 120
"""More than all that the agent itself waits for, seconds: for a start that is under way, for systemd's answers, and for
the guard, which takes up to half a minute to end its load and to bring its readings to the disk."""
BURN_HEAD, BURN_TAIL = 8192, 4096
"""Characters of a burn's output that are kept for the live table."""


class Detached(RigError):
    """The plan goes on without this controller, as it was told to."""


@dataclass
class BurnTail:
    """The head of a burn's output, which names the cards, and its newest rows: a burn of hours stays cheap to show."""

    head: str = ""
    tail: str = ""

    def add(self, text: str) -> None:
        """Take in new output."""
        room = BURN_HEAD - len(self.head)
        self.head += text[:room]
        self.tail = (self.tail + text[room:])[-BURN_TAIL:]

    @property
    def text(self) -> str:
        """Head and newest rows."""
        return self.head + self.tail


@dataclass
class Carrying:
    """One rig's plans."""

    rig: Rig
    profile: ProfileSpec
    run_dir: RunDir
    progress: Progress
    cancel: threading.Event
    facts: Facts
    baseline: Baseline | None
    at: Callable[[str], None]
    """Told each step."""
    ended: Callable[..., None]
    """Told what is known of the outcome: `left`, `boot_id_after`."""
    detach: bool = False
    wait: bool = True
    """Whether a plan that goes on alone is waited for; otherwise what is there is fetched."""
    under_way: Part | None = None
    """The plan that may be under way on the rig."""
    since: float | None = None
    """When the first plan began, on the rig's CLOCK_MONOTONIC, seconds."""
    kernel_seen: list[KernelMessage] = field(default_factory=list)
    done_again: str = ""
    """The step that was cut with its controller, and was done again."""
    _step: str = "start"
    _left: str = ""
    _burn: BurnTail = field(default_factory=BurnTail)

    def begin(self, session: RigSession, claim: Claim) -> None:
        """Have the profile's plan carried out. Raises RigError, Detached, Cancelled."""
        plan = build_plan(self.run_dir.run_id, self.rig.spec, self.profile, self.facts, claim, baseline=self.baseline)
        part = parts.keep(self.run_dir, self.rig.name, plan | ({"detached": True} if self.detach else {}))
        self._carry_out(session, part)

    def go_on(self, session: RigSession, known: list[Part]) -> bool:
        """Finish what another controller had begun; False where the rig never heard of the first plan.

        Raises RigError, Detached, Cancelled.
        """
        part = known[-1]
        self._recall()
        if part.home:
            self._forget(session, part)
        elif not self._take_up(session, part):
            return False
        rest = parts.rest_of(self._folder, part)
        if not rest or not self._fit_for_more(session, part):
            return True
        parts.set_aside(self._folder, part, rest)
        self.done_again, self._left = str(rest[0]["name"]), ""
        self.ended(left="")
        more = parts.keep(self.run_dir, self.rig.name, part.plan | {"steps": rest}, part.number + 1)
        self._carry_out(session, more)
        return True

    def _take_up(self, session: RigSession, part: Part) -> bool:
        """Bring the rest of a plan's readings home, whether it is still under way or not."""
        found = session.ask("spooled", "--run", part.on_rig, during="resume")
        at_home = {name: count for name, count in self._known(part).items() if count}
        if found["spooled"]:
            self.under_way = part
            self._to_its_end(session, part)
        elif at_home:
            raise CommandFailed(
                f"{self.rig.name} holds no readings of run {part.on_rig} any more",
                f"was it set up anew? what had come home is judged; rigctl accept {self.rig.name}",
            )
        elif part.number == 1:
            return False
        elif found["boot_id"] == self.facts.boot_id:
            self._carry_out(session, part)
        else:
            self._rebooted(found["boot_id"])
        return True

    def _fit_for_more(self, session: RigSession, part: Part) -> bool:
        """Whether the rig is as the first plan found it: the same boot, everything put back."""
        found = session.ask("spooled", "--run", part.on_rig, during="resume")
        if found["boot_id"] != self.facts.boot_id:
            self._rebooted(found["boot_id"])
            return False
        return parts.put_back_whole(self._folder, part)

    def _rebooted(self, boot_id: str) -> None:
        self.ended(boot_id_after=boot_id, left="rebooted in the middle of the run; idle since")

    def _recall(self) -> None:
        """Know again what earlier plans of the run told."""
        for name in LINES:
            drop_cut_line(self._file(name))
        events = read_lines(self._file(EVENTS), RigEvent)
        self.since = events[0].t_mono_s if events else None
        for stopped in (event for event in events if event.event == "guard_stopped"):
            self._stopped(stopped)
        self.kernel_seen = list(read_lines(self._file(KERNEL), KernelMessage))

    def _carry_out(self, session: RigSession, part: Part) -> None:
        self._at("start")
        self.under_way = part
        # After a cut it is unknown whether the plan has begun: asked again, the agent starts no run twice.
        session.ask("start", during="start", stdin=part.bytes, timeout_s=START_TIMEOUT_S)
        if part.detached:
            raise Detached("begun")
        self._to_its_end(session, part)

    def _to_its_end(self, session: RigSession, part: Part) -> None:
        early = self._early(part)
        spool = Spool(self.run_dir, self.rig.name, part.number, self._known(part))
        while not self._poll(session, spool, part, early):
            if part.detached and not self.wait:
                raise Detached(f"at {self._step}")
            if self.cancel.wait(POLL_S):
                told = "stopped by the person at the controller"
                raise Detached(told) if part.detached else Cancelled(told)
        parts.came_home(self.run_dir, self.rig.name, part)
        self._forget(session, part)

    def _forget(self, session: RigSession, part: Part) -> None:
        """Let the rig forget a plan whose readings are all here."""
        # The unit has ended: this only asks what it left behind, such as a process that no signal reaches.
        left = session.ask("stop", "--run", part.on_rig, during="the plan's end", timeout_s=STOP_TIMEOUT_S)
        session.ask("ack", "--run", part.on_rig, during="the plan's end")
        self.under_way = None
        self.ended(left=still_running(left) or (self._left or "idle") + self._put_back())

    def _known(self, part: Part) -> dict[str, int]:
        """How much of a plan's readings is at home."""
        held = parts.held(self._folder)
        return {name: count - part.base.get(name, 0) for name, count in held.items()}

    def _early(self, part: Part) -> EarlyStop:
        rig, profile = self.rig, self.run_dir.read_info().profile
        earlier = [one for one in read_lines(self._file(TELEMETRY), Sample) if one.part < part.number]
        early = EarlyStop(rig.name, rig.spec, self.profile, self.facts, self.baseline, profile)
        early.recall(earlier)
        return early

    def _poll(self, session: RigSession, spool: Spool, part: Part, early: EarlyStop) -> bool:
        """Fetch what is new; True when the unit has ended and everything came home."""
        reply = session.ask("poll", "--run", part.on_rig, *spool.arguments(), during=self._step)
        fetched = spool.take(reply)
        self.ended(boot_id_after=fetched.boot_id)
        self.kernel_seen += fetched.kernel
        for number, event in enumerate(fetched.events):
            self._event(event, known=number < fetched.known_events)
        self._show(fetched)
        self._end_early(session, fetched, part, early)
        if fetched.boot_id != self.facts.boot_id:
            self._left = "rebooted in the middle of the run; idle since"
            self.ended(left=self._left)
        elif fetched.damaged:
            raise CommandFailed(fetched.damaged, f"is the disk of {self.rig.name} failing? look at its kernel log")
        return fetched.complete and not fetched.active

    def _end_early(self, session: RigSession, fetched: Fetched, part: Part, early: EarlyStop) -> None:
        """Let the rig end its burn where the verdict is certain already; what is left of the plan goes on."""
        reason = early.take(fetched, self._step) if fetched.active else None
        if reason is not None:
            asked = ("--run", part.on_rig, "--step", self._step, "--reason", reason)
            session.ask("end-step", *asked, during=self._step)
            self.progress.note(self.rig.name, f"{self._step} ends early: {reason}")

    def _event(self, event: RigEvent, *, known: bool) -> None:
        self.since = event.t_mono_s if self.since is None else self.since
        if event.event == "step_started" and event.step:
            self._burn = BurnTail()
            self._at(event.step)
        if event.event == "guard_stopped":
            self._stopped(event)
        if not known:
            self.run_dir.journal(
                "rig_event", rig=self.rig.name, rig_event=event.event, step=event.step, detail=event.detail
            )

    def _stopped(self, event: RigEvent) -> None:
        self._left = f"idle; the guard stopped the load ({event.detail.get('reason', 'no reason given')})"
        self.ended(left=self._left)

    def _show(self, fetched: Fetched) -> None:
        self._burn.add(fetched.burn_text)
        if fetched.samples:
            self.progress.sample(self.rig.name, fetched.samples[-1], last_gflops(self._burn.text))

    def _put_back(self) -> str:
        """What the rig itself says of its settings, for people; `measure.left_as_found` judges it."""
        try:
            told = json.loads(self._file(RESTORED).read_text(encoding="utf-8"))
        except (FileNotFoundError, ValueError):
            return ""
        words = (("not put back", told.get("failed")), ("put back", told.get("restored")))
        return "".join(f"; {what}: {', '.join(map(str, which))}" for what, which in words if which)

    def _at(self, step: str) -> None:
        self._step = step
        self.at(step)

    @property
    def _folder(self) -> Path:
        return self.run_dir.path / self.rig.name

    def _file(self, name: str) -> Path:
        return self._folder / name


def still_running(reply: dict[str, Any]) -> str:
    """Say which processes of a run the rig could not end; empty where it could."""
    running = reply.get("left_running") or []
    return f"still running: {', '.join(map(str, running))}" if running else ""
