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
from rigctl.checks.probes import PROBES
from rigctl.errors import CommandFailed, NoRoom, RigBusy, RigctlError, RigError
from rigctl.measure import parts
from rigctl.measure.carry import STOP_TIMEOUT_S, Carrying, Detached, still_running
from rigctl.measure.claim import Claim
from rigctl.measure.plan import has_load, step_seconds
from rigctl.measure.session import Cancelled, RigSession
from rigctl.measure.spool import TELEMETRY
from rigctl.model.reading import Facts, KernelMessage, Readings, Sample
from rigctl.model.verdict import Verdict
from rigctl.store import RigOutcome
from rigctl.store.lines import read_model

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable

    from rigctl.measure.progress import Progress
    from rigctl.model.baseline import Baseline
    from rigctl.model.rig import Rig
    from rigctl.model.spec import ProfileSpec
    from rigctl.store import RunDir

log = logging.getLogger(__name__)

OWN_FAULT = "this is a fault of rigctl itself"
OWN_FAULT_FIX = "run the command again with --debug and report the traceback; the run's journal holds it too"
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
KERNEL_MARGIN_S = 2
"""The kernel log is read from this long before the plan began, seconds."""


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
    again: bool = False
    """Whether another controller had begun this rig in this run, and what it left is to be finished."""
    gone: str = ""
    """How long it has been gone, in words."""
    detach: bool = False
    """Whether the plan is to go on alone once it has begun."""
    wait: bool = True
    """Whether a plan that goes on alone is waited for."""
    detached: bool = False
    """Whether it does so still: then the outcome is not written yet."""
    _carrying: Carrying | None = None
    _step: str = "connect"
    _boot_id: str = ""

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
        except NoRoom:
            # No outcome: it is worth finishing once there is room again.
            self._leave(session, parts.NO_ROOM)
            raise
        except RigctlError as error:
            if self._goes_on_alone(error):
                return self._left_alone(error)
            self._broke_off(session, error.message, error.hint)
        except Exception as error:  # the thread's boundary: this rig's error, with the traceback
            log.debug("measuring %s broke", name, exc_info=True)
            told = f"measuring broke at {self._step}: unexpected {type(error).__name__}: {error}; {OWN_FAULT}"
            self._broke_off(session, told, OWN_FAULT_FIX, traceback=traceback.format_exc())
        except BaseException:
            # Somebody ends this process: no rig burns on for it.
            self._leave(session)
            raise
        self._ended(cuts=tuple(self._cuts(session)))
        self.run_dir.write_rig_outcome(name, self.outcome)
        self.progress.done(name, self._in_a_word())
        return self

    def revisit(self) -> RigMeasurement:
        """Connect to a rig that an earlier controller measured in this run, so that it can be asked for verdicts."""
        known = self.run_dir.outcome(self.rig.name)
        self.outcome = known or self.outcome
        if self.outcome.unreached is None and self.outcome.busy is None:
            session = self.connect(self.rig, self.cancel, lambda text: self._say(session, text))
            try:
                session.open()
                self.session = session
            except RigctlError as error:
                self.run_dir.journal(
                    "rig_error", rig=self.rig.name, step="verify", error=error.message, hint=error.hint
                )
        self.progress.done(self.rig.name, self._in_a_word())
        return self

    def _goes_on_alone(self, error: RigctlError) -> bool:
        """Whether a plan is under way that needs no controller, and the rig has not refused it."""
        if isinstance(error, Detached):
            return True
        if isinstance(error, CommandFailed | RigBusy) or not isinstance(error, RigError):
            return False
        known = parts.kept(self.run_dir, self.rig.name)
        return bool(known) and known[-1].detached and not known[-1].home

    def _left_alone(self, why: RigctlError) -> RigMeasurement:
        self.detached = True
        self.run_dir.journal("left_alone", rig=self.rig.name, why=why.message)
        self.progress.done(self.rig.name, f"goes on alone ({why.message})")
        return self

    def _cuts(self, session: RigSession | None) -> list[str]:
        cuts = list(session.cuts) if session is not None else []
        if self.gone:
            step = self._carrying.done_again if self._carrying is not None else ""
            cuts.append(f"{self.gone}{f'; {step} was done again from its beginning' if step else ''}")
        return cuts

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
        known = parts.kept(self.run_dir, self.rig.name) if self.again else []
        if known and self._finish(session, known):
            return
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

    def _finish(self, session: RigSession, known: list[parts.Part]) -> bool:
        """Finish what another controller has begun; False where the rig never heard of it: then it is measured anew."""
        facts = read_model(self.run_dir.path / self.rig.name / "facts.json", Facts)
        self._boot_id = facts.boot_id
        self._ended(boot_id_after=facts.boot_id)
        self._carrying = self._carry(facts)
        if not self._carrying.go_on(session, known):
            return False
        self._probes(session)
        self._kernel(session)
        return True

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
        self.run_dir.write_text_atomic(f"{self.rig.name}/{TELEMETRY}", lines)
        for sample in samples:
            self.progress.sample(self.rig.name, sample, {})
        self._ended(left="idle; nothing was put to work")

    def _carry_out(self, session: RigSession, facts: Facts) -> None:
        self._go_on()
        self._carrying = self._carry(facts)
        self._carrying.begin(session, self.claim)

    def _carry(self, facts: Facts) -> Carrying:
        return Carrying(
            self.rig, self.profile, self.run_dir, self.progress, self.cancel, facts, self.baseline,
            self._at, self._ended, detach=self.detach, wait=self.wait,
        )  # fmt: skip

    def _probes(self, session: RigSession) -> None:
        """Ask nvidia-smi through the agent, which bounds it: after a load a dead card may answer nobody any more."""
        self._at("probes")
        reply = session.ask("probes", during="probes", timeout_s=PROBES_TIMEOUT_S)
        self.run_dir.write_json_atomic(f"{self.rig.name}/{PROBES}", reply)

    def _kernel(self, session: RigSession) -> None:
        """Read the kernel log from just before the plan began; without a plan, of this whole boot."""
        self._at("kernel log")
        began_s = self._carrying.since if self._carrying is not None else None
        since = 0.0 if began_s is None else max(began_s - KERNEL_MARGIN_S, 0.0)
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
        seen = self._carrying.kernel_seen if self._carrying is not None else []
        # The log holds this boot only; what the guard had read before a reboot is the rest of it.
        whole = sorted(dict.fromkeys([*seen, *told]), key=lambda message: message.t_wall_s)
        lines = "".join(message.model_dump_json() + "\n" for message in whole)
        self.run_dir.write_text_atomic(f"{self.rig.name}/kernel.jsonl", lines)
        self.run_dir.write_json_atomic(f"{self.rig.name}/{CLOCK}", clocks)
        self._ended(kernel_read=read)

    def _leave(self, session: RigSession | None, reason: str = "asked by the controller") -> None:
        """Stop what runs on the rig, where it can still be told; else its own guard does, and the outcome says so."""
        part = self._carrying.under_way if self._carrying is not None else None
        if session is None or part is None or part.detached:
            return
        try:
            reply = session.call("stop", "--run", part.on_rig, "--reason", reason, timeout_s=STOP_TIMEOUT_S)
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
    return still_running(reply) or stopped
