"""Measure one rig from connection to kernel log; what happens to it stands in its outcome, not in an exception."""

from __future__ import annotations

import json
import logging
import time
import traceback
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from rigctl.checks import power, software, topology
from rigctl.checks.clock import CLOCK
from rigctl.checks.measure import RESTORED
from rigctl.checks.probes import PROBES
from rigctl.errors import CommandFailed, RigBusy, RigctlError
from rigctl.measure.claim import Claim
from rigctl.measure.early import EarlyStop
from rigctl.measure.plan import build_plan, has_load, step_seconds
from rigctl.measure.session import Cancelled, RigSession
from rigctl.measure.spool import Fetched, Spool
from rigctl.model.reading import Facts, KernelMessage, Readings, Sample
from rigctl.model.verdict import Verdict
from rigctl.parse.gpu_burn import last_gflops
from rigctl.store import RigOutcome

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable

    from rigctl.measure.progress import Progress
    from rigctl.model.baseline import Baseline
    from rigctl.model.reading import RigEvent
    from rigctl.model.rig import Rig
    from rigctl.model.spec import ProfileSpec
    from rigctl.store import RunDir

log = logging.getLogger(__name__)

OWN_FAULT = "this is a fault of rigctl itself"
OWN_FAULT_FIX = "run the command again with --debug and report the traceback; the run's journal holds it too"
POLL_S = 1.0
"""Time between two polls of one rig, seconds; each is also the controller's word to the guard."""
START_TIMEOUT_S = 240
"""More than all that the agent's `start` waits for, seconds: systemd, another run's end, people who have to leave."""
STOP_TIMEOUT_S = 120
"""More than all that the agent itself waits for, seconds: for a start that is under way, for systemd's answers, and for
the guard, which takes up to half a minute to end its load and to bring its readings to the disk."""
PROBES_TIMEOUT_S = 60
"""More than all that the agent's bounded questions may take, seconds."""
QUICK_CHECKS = (
    software.driver_version,
    topology.gpu_count,
    topology.gpu_model,
    topology.gpu_memory,
    power.limit,
)
"""What the facts alone can show, before any load."""
BURN_HEAD, BURN_TAIL = 8192, 4096
"""Characters of a burn's output that are kept for the live table."""
KERNEL_MARGIN_S = 2
"""The kernel log is read from this long before the plan began, seconds."""


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
class RigMeasurement:
    """One rig's measuring: the connection stays open for the verification that follows."""

    rig: Rig
    profile: ProfileSpec
    run_dir: RunDir
    progress: Progress
    cancel: threading.Event
    connect: Callable[[Rig, threading.Event, Callable[[str], None]], RigSession] = RigSession
    """How a session is made; tests put a recorded one here."""
    claim: Claim = field(default_factory=Claim)
    baseline: Baseline | None = None
    """What the rig's accepted runs have shown; None at its first acceptance."""
    outcome: RigOutcome = field(default_factory=RigOutcome)
    session: RigSession | None = None
    _early: EarlyStop | None = None
    _burn: BurnTail = field(default_factory=BurnTail)
    _step: str = "connect"
    _since: float | None = None
    """When the plan began, on the rig's CLOCK_MONOTONIC in boot `_boot_id`, seconds."""
    _boot_id: str = ""
    _started: bool = False
    """Whether a plan may be under way on the rig."""
    _kernel_seen: list[KernelMessage] = field(default_factory=list)

    def run(self) -> RigMeasurement:
        """Measure the rig. A rig that cannot be reached or measured is told by its outcome; the others go on.

        So is a fault of our own that shows on this rig. Raises only what keeps the outcome from being written.
        """
        name = self.rig.name
        session: RigSession | None = None
        try:
            session = self.connect(self.rig, self.cancel, lambda text: self._say(session, text))
            self._at("connect")
            self._go_on()
            session.open()
            self.session = session
            self._measure(session)
        except RigBusy as error:
            self._left_out(error)
        except RigctlError as error:
            self._broke_off(session, error.message, error.hint)
        except Exception as error:  # the thread's boundary: this rig's error, with the traceback
            log.debug("measuring %s broke", name, exc_info=True)
            told = f"measuring broke at {self._step}: unexpected {type(error).__name__}: {error}; {OWN_FAULT}"
            self._broke_off(session, told, OWN_FAULT_FIX, traceback=traceback.format_exc())
        except BaseException:
            # Somebody ends this process: no rig burns on for it.
            self._leave(session)
            raise
        self._ended(cuts=tuple(session.cuts) if session is not None else ())
        self.run_dir.write_rig_outcome(name, self.outcome)
        self.progress.done(name, self._in_a_word())
        return self

    def _in_a_word(self) -> str:
        if self.outcome.busy is not None:
            return "busy"
        return "measured" if self.outcome.unreached is None else "not measured"

    def _left_out(self, error: RigBusy) -> None:
        """Somebody uses the rig: that is said, and nothing of it is judged."""
        self._ended(busy=error.users, busy_fix=error.hint, left="as it was found; nothing was put to work")
        self.run_dir.journal("rig_busy", rig=self.rig.name, users=error.users)

    def _broke_off(self, session: RigSession | None, error: str, hint: str, **more: str) -> None:
        """Stop what runs on the rig first: the journal's disk may be what failed."""
        step = self._step
        self._ended(unreached=error, unreached_fix=hint)
        self._leave(session)
        self.run_dir.journal("rig_error", rig=self.rig.name, step=step, error=error, hint=hint, **more)

    def _measure(self, session: RigSession) -> None:
        facts = self._facts(session)
        self._quick_checks(facts)
        hangs = any(probe.exit_status is None for probe in facts.probes)
        if hangs:
            self._ended(left="idle; nothing was put to work (its driver does not answer)")
        elif not has_load(self.rig.spec, self.profile, first=self.baseline is None):
            self._probe(session)
        elif not facts.gpus:
            reason = facts.driver.nvml_error or "no card is visible"
            self.run_dir.journal("load_not_started", rig=self.rig.name, reason=reason)
            self._ended(left=f"idle; no load was started ({reason})")
        else:
            self._carry_out(session, facts)
        if not hangs:
            self._probes(session)
        self._kernel(session)

    def _go_on(self) -> None:
        """Nothing new is begun on a rig once somebody asked to stop. Raises Cancelled."""
        if self.cancel.is_set():
            self._ended(left="as it was found; nothing was put to work")
            raise Cancelled("stopped by the person at the controller")

    def _facts(self, session: RigSession) -> Facts:
        self._at("facts")
        software = self.rig.spec.software
        reply = session.call(
            "facts", "--gpu-burn-dir", software.gpu_burn_dir, "--torch-venv", software.torch_venv, timeout_s=60
        )
        self.run_dir.write_json_atomic(f"{self.rig.name}/facts.json", reply)
        try:
            facts = Facts.model_validate(reply)
        except ValidationError as error:
            raise CommandFailed(f"the agent's facts have an unexpected form: {error.errors()[0]}") from error
        self._boot_id = facts.boot_id
        self._ended(boot_id_after=facts.boot_id)
        return facts

    def _quick_checks(self, facts: Facts) -> None:
        """Say at once what the facts alone show, so that nobody watches a long burn to learn of a missing card."""
        self._at("quick checks")
        spec, readings = self.rig.spec, Readings(rig=self.rig.name, facts=facts)
        failed = [
            verdict
            for check in QUICK_CHECKS
            for verdict in check(spec, readings)
            if verdict.verdict in (Verdict.FAIL, Verdict.ERROR)
        ]
        for verdict in failed:
            self.run_dir.journal("quick_check", rig=self.rig.name, check=verdict.key, reason=verdict.reason)
        self.progress.note(self.rig.name, "; ".join(f"{one.check}: {one.reason}" for one in failed))

    def _probe(self, session: RigSession) -> None:
        """Look at a rig that rests, for as long as the profile says: what is judged at rest takes a few samples."""
        self._at("probe")
        rest = ("--rest-seconds", f"{self.profile.idle_seconds:g}", "--sample-hz", f"{self.profile.sample_hz:g}")
        reply = session.call("probe", *rest, timeout_s=60 + self.profile.idle_seconds)
        try:
            samples = [Sample.model_validate(sample) for sample in reply["samples"]]
        except (KeyError, TypeError, ValidationError) as error:
            raise CommandFailed(f"the agent's samples have an unexpected form: {error!r}") from error
        lines = "".join(json.dumps(sample, separators=(",", ":")) + "\n" for sample in reply["samples"])
        self.run_dir.append_raw(self.rig.name, "telemetry.jsonl", lines.encode())
        for sample in samples:
            self.progress.sample(self.rig.name, sample, {})
        self._ended(left="idle; nothing was put to work")

    def _carry_out(self, session: RigSession, facts: Facts) -> None:
        self._go_on()
        run_id, spec = self.run_dir.run_id, self.rig.spec
        plan = build_plan(run_id, spec, self.profile, facts, self.claim, baseline=self.baseline)
        self._early = EarlyStop(
            self.rig.name, spec, self.profile, facts, self.baseline, self.run_dir.read_info().profile
        )
        self._at("start")
        self._started = True
        # After a cut it is unknown whether the plan has begun: asked again, the agent starts no run twice.
        session.ask("start", during="start", stdin=json.dumps(plan).encode(), timeout_s=START_TIMEOUT_S)
        spool = Spool(self.run_dir, self.rig.name)
        while not self._poll(session, spool, facts):
            if self.cancel.wait(POLL_S):
                raise Cancelled("stopped by the person at the controller")
        # The unit has ended: this only asks what it left behind, such as a process that no signal reaches.
        left = session.ask("stop", "--run", self.run_dir.run_id, during="the plan's end", timeout_s=STOP_TIMEOUT_S)
        session.ask("ack", "--run", self.run_dir.run_id, during="the plan's end")
        self._started = False
        self._ended(left=_still_running(left) or (self.outcome.left or "idle") + self._put_back())

    def _probes(self, session: RigSession) -> None:
        """Ask nvidia-smi through the agent, which bounds it: after a load a dead card may answer nobody any more."""
        self._at("probes")
        reply = session.ask("probes", during="probes", timeout_s=PROBES_TIMEOUT_S)
        self.run_dir.write_json_atomic(f"{self.rig.name}/{PROBES}", reply)

    def _put_back(self) -> str:
        """What the rig itself says of its settings, for people; `measure.left_as_found` judges it."""
        path = self.run_dir.path / self.rig.name / RESTORED
        try:
            told = json.loads(path.read_text(encoding="utf-8"))
        except (FileNotFoundError, ValueError):
            return ""
        words = (("not put back", told.get("failed")), ("put back", told.get("restored")))
        return "".join(f"; {what}: {', '.join(map(str, which))}" for what, which in words if which)

    def _poll(self, session: RigSession, spool: Spool, facts: Facts) -> bool:
        """Fetch what is new; True when the unit has ended and everything came home."""
        reply = session.ask("poll", "--run", self.run_dir.run_id, *spool.arguments(), during=self._step)
        fetched = spool.take(reply)
        self._ended(boot_id_after=fetched.boot_id)
        self._kernel_seen += fetched.kernel
        for event in fetched.events:
            self._event(event)
        self._show(fetched)
        self._end_early(session, fetched)
        if fetched.boot_id != facts.boot_id:
            self._ended(left="rebooted in the middle of the run; idle since")
        elif fetched.damaged:
            raise CommandFailed(fetched.damaged, f"is the disk of {self.rig.name} failing? look at its kernel log")
        return fetched.complete and not fetched.active

    def _end_early(self, session: RigSession, fetched: Fetched) -> None:
        """Let the rig end its burn where the verdict is certain already; what is left of the plan goes on."""
        reason = self._early.take(fetched, self._step) if self._early is not None and fetched.active else None
        if reason is not None:
            asked = ("--run", self.run_dir.run_id, "--step", self._step, "--reason", reason)
            session.ask("end-step", *asked, during=self._step)
            self.progress.note(self.rig.name, f"{self._step} ends early: {reason}")

    def _event(self, event: RigEvent) -> None:
        self._since = event.t_mono_s if self._since is None else self._since
        if event.event == "step_started" and event.step:
            self._burn = BurnTail()
            self._at(event.step)
        if event.event == "guard_stopped":
            self._ended(left=f"idle; the guard stopped the load ({event.detail.get('reason', 'no reason given')})")
        self.run_dir.journal(
            "rig_event", rig=self.rig.name, rig_event=event.event, step=event.step, detail=event.detail
        )

    def _show(self, fetched: Fetched) -> None:
        self._burn.add(fetched.burn_text)
        if fetched.samples:
            self.progress.sample(self.rig.name, fetched.samples[-1], last_gflops(self._burn.text))

    def _kernel(self, session: RigSession) -> None:
        """Read the kernel log from just before the plan began; without a plan, of this whole boot."""
        self._at("kernel log")
        since = 0.0 if self._since is None else max(self._since - KERNEL_MARGIN_S, 0.0)
        asked = ("--since-mono", f"{since:.3f}", "--boot-id", self._boot_id)
        before_s = time.time()
        reply = session.ask("kernel", *asked, during="kernel log", timeout_s=60)
        after_s = time.time()
        try:
            told = [KernelMessage.model_validate(message) for message in reply["kernel"]]
            read = bool(reply["kernel_read"])
            clocks = {"before_s": before_s, "rig_s": float(reply["t_wall_s"]), "after_s": after_s}
        except (KeyError, TypeError, ValueError) as error:  # pydantic's ValidationError is a ValueError
            raise CommandFailed(f"the agent's kernel log has an unexpected form: {error!r}") from error
        # The log holds this boot only; what the guard had read before a reboot is the rest of it.
        whole = sorted(dict.fromkeys([*self._kernel_seen, *told]), key=lambda message: message.t_wall_s)
        lines = "".join(message.model_dump_json() + "\n" for message in whole)
        self.run_dir.write_text_atomic(f"{self.rig.name}/kernel.jsonl", lines)
        self.run_dir.write_json_atomic(f"{self.rig.name}/{CLOCK}", clocks)
        self._ended(kernel_read=read)

    def _leave(self, session: RigSession | None) -> None:
        """Stop what runs on the rig, where it can still be told; else its own guard does, and the outcome says so."""
        if session is None or not self._started:
            return
        try:
            reply = session.call(
                "stop", "--run", self.run_dir.run_id, "--reason", "asked by the controller", timeout_s=STOP_TIMEOUT_S
            )
        except Exception as error:  # noqa: BLE001 - whatever it is, the rig's own guard stops the burn, and people are told
            seconds = self.profile.controller_lost_s
            told = error.message if isinstance(error, RigctlError) else repr(error)
            self._ended(left=f"unknown ({told}); its guard stops a burn after {seconds:.0f} s of silence")
        else:
            self._ended(left=_left_after_stop(reply))

    def _ended(self, **known: Any) -> None:
        self.outcome = self.outcome.model_copy(update=known)

    def _at(self, step: str) -> None:
        if step == self._step and step != "connect":
            return
        self._step = step
        expected = step_seconds(self.rig.spec, self.profile, first=self.baseline is None)
        self.progress.step(self.rig.name, step, expected.get(step))
        self.run_dir.journal("step_started", rig=self.rig.name, step=step)

    def _say(self, session: RigSession | None, text: str) -> None:
        self.progress.note(self.rig.name, text)
        if text:
            self.run_dir.journal(
                "cut", rig=self.rig.name, step=self._step, error=text, cuts=len(session.cuts) if session else 0
            )


def _left_after_stop(reply: dict[str, Any]) -> str:
    stopped = "idle; the run was stopped" if reply.get("was_active") else "nothing of this run was running any more"
    return _still_running(reply) or stopped


def _still_running(reply: dict[str, Any]) -> str:
    running = reply.get("left_running") or []
    return f"still running: {', '.join(map(str, running))}" if running else ""
