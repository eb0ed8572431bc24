"""Put one card to work under the guard, so that a person in front of the rig can find it: by warmth, fans and light."""

from __future__ import annotations

import json
import logging
import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from rigctl.errors import CommandFailed, RigctlError, RigError
from rigctl.measure.carry import POLL_S, START_TIMEOUT_S, STOP_TIMEOUT_S
from rigctl.measure.plan import STALE_SAMPLE_S
from rigctl.measure.session import Cancelled, RigSession
from rigctl.measure.spool import Spool
from rigctl.model.reading import Facts, RigEvent, Sample
from rigctl.store import RunDir

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable

    from rigctl.measure.claim import Claim
    from rigctl.model.reading import GpuFacts
    from rigctl.model.rig import Rig

SAMPLE_HZ = 2.0
CONTROLLER_LOST_S = 20
"""Somebody stands in front of the rig and watches: a controller that is gone means that nobody does any more."""
RAMP_S = 2
STEP = "identify"
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Found:
    """The card that was put to work, and what it showed."""

    rig: str
    slot: int
    uuid: str
    name: str
    pci_bus_id: str
    seconds: float
    """How long it was asked to work."""
    max_power_w: float | None
    max_temp_c: float | None
    others_max_power_w: float | None
    """What the busiest of the other cards drew meanwhile; None where it is alone."""
    stopped: str | None = None
    """Why the guard stopped it; None when it did not."""


def which_card(facts: Facts, name: str) -> GpuFacts:
    """The card that is meant: a slot number, or the end of a UUID.

    Raises:
        RigError: it means none, or several; only the rig could tell.
    """
    wanted = name.strip().lower().removeprefix("slot").strip("…")
    by_slot = [gpu for gpu in facts.gpus if wanted.isdecimal() and gpu.slot == int(wanted)]
    by_uuid = [gpu for gpu in facts.gpus if len(wanted) >= 4 and gpu.uuid.lower().endswith(wanted)]  # noqa: PLR2004 - as reports show them
    found = by_slot if by_slot or not by_uuid else by_uuid
    if len(found) != 1:
        cards = ", ".join(gpu.subject for gpu in facts.gpus) or "none that can be read"
        raise RigError(f"{name!r} means {len(found)} cards", f"this rig has {cards}: name a slot, or a UUID's end")
    return found[0]


def plan_of(rig: Rig, facts: Facts, card: GpuFacts, seconds: float, claim: Claim) -> dict[str, Any]:
    """The plan as the agent's `start` reads it: one burn on one card, guarded as any other."""
    limits = rig.spec.limits
    now = datetime.now(UTC)
    return {
        "run_id": f"identify-{now:%Y-%m-%dT%H%M%S}",
        "sample_hz": SAMPLE_HZ,
        "controller_lost_s": CONTROLLER_LOST_S,
        "max_gpu_temp_c": limits.guard_max_gpu_temp_c,
        "max_gpu_memory_temp_c": limits.guard_max_gpu_memory_temp_c,
        "max_cpu_temp_c": limits.guard_max_cpu_temp_c,
        "stale_sample_s": STALE_SAMPLE_S,
        "expected_gpus": [gpu.uuid for gpu in facts.gpus],
        "wall_meter": None,
        "gpu_burn_dir": rig.spec.software.gpu_burn_dir,
        "torch_venv": rig.spec.software.torch_venv,
        "ramp_s": RAMP_S,
        "asked_by": claim.asked_by,
        "evict_users": claim.evict_users,
        "ignore_lock": claim.ignore_lock,
        "steps": [{"name": STEP, "seconds": seconds, "loads": ["gpu"], "only_slot": card.slot}],
    }


class Identify:
    """One rig's card at work, for as long as somebody looks for it."""

    def __init__(
        self, rig: Rig, cancel: threading.Event, say: Callable[[str], None], session: RigSession | None = None
    ) -> None:
        self._rig = rig
        self._cancel = cancel
        self._say = say
        self._session = session or RigSession(rig, cancel, say)
        self._samples: list[Sample] = []
        self._events: list[RigEvent] = []

    def run(self, gpu: str, seconds: float, claim: Claim) -> Found:
        """Put the card to work until its time is over, or somebody asks to stop.

        Raises:
            RigError: the words mean no card, or the rig cannot be reached, is in use, or lacks gpu-burn.
        """
        session = self._session
        try:
            session.open()
            facts = self._facts(session)
            card = which_card(facts, gpu)
            plan = plan_of(self._rig, facts, card, seconds, claim)
            session.ask("start", during="start", stdin=json.dumps(plan).encode(), timeout_s=START_TIMEOUT_S)
            try:
                self._follow(session, plan["run_id"], card)
            finally:
                self._end(session, plan["run_id"])
            return self._found(card, seconds)
        finally:
            session.close()

    def _facts(self, session: RigSession) -> Facts:
        software = self._rig.spec.software
        reply = session.call(
            "facts", "--gpu-burn-dir", software.gpu_burn_dir, "--torch-venv", software.torch_venv, timeout_s=60
        )
        try:
            return Facts.model_validate(reply)
        except ValidationError as error:
            raise CommandFailed(f"the agent's facts have an unexpected form: {error.errors()[0]}") from error

    def _follow(self, session: RigSession, run_id: str, card: GpuFacts) -> None:
        with tempfile.TemporaryDirectory(prefix="rigctl-identify-") as folder:
            spool = Spool(RunDir.create(Path(folder), kind="check"), self._rig.name)
            self._poll(session, run_id, card, spool)
        failed = next((event for event in self._events if event.event == "error"), None)
        if failed is not None:
            raise RigError(
                f"{self._rig.name}: {failed.detail.get('error', 'the load did not start')}",
                str(failed.detail.get("hint", "")),
            )

    def _poll(self, session: RigSession, run_id: str, card: GpuFacts, spool: Spool) -> None:
        self._say(f"{card.subject} on {self._rig.name} ({card.name}, {card.pci_bus_id}) is put to work")
        active = True
        while active:
            if self._cancel.wait(POLL_S):
                return
            try:
                fetched = spool.take(session.ask("poll", "--run", run_id, *spool.arguments(), during=STEP))
            except Cancelled:
                return
            active = fetched.active
            self._samples += fetched.samples
            self._events += fetched.events
            if fetched.samples:
                self._show(fetched.samples[-1], card)

    def _show(self, sample: Sample, card: GpuFacts) -> None:
        now = next((gpu for gpu in sample.gpus if gpu.uuid == card.uuid), None)
        if now is not None and now.temp_c is not None and now.power_w is not None:
            self._say(f"slot{card.slot}: {now.power_w:.0f} W, {now.temp_c:.0f} °C; Ctrl-C when you have found it")

    def _end(self, session: RigSession, run_id: str) -> None:
        """Stop it where it still runs, and leave nothing on the rig; its own guard stops it where nobody can."""
        try:
            session.call("stop", "--run", run_id, "--reason", "the card was found", timeout_s=STOP_TIMEOUT_S)
            session.call("ack", "--run", run_id)
        except RigctlError as error:
            log.debug("identify could not be ended from here", exc_info=True)
            self._say(f"{error.message}; the rig's guard stops the load after {CONTROLLER_LOST_S} s of silence")

    def _found(self, card: GpuFacts, seconds: float) -> Found:
        seen = [gpu for sample in self._samples for gpu in sample.gpus]
        own = [gpu for gpu in seen if gpu.uuid == card.uuid]
        others = [gpu for gpu in seen if gpu.uuid != card.uuid]
        stop = next((event for event in self._events if event.event == "guard_stopped"), None)
        reason = str(stop.detail.get("reason")) if stop is not None else None
        return Found(
            rig=self._rig.name,
            slot=card.slot,
            uuid=card.uuid,
            name=card.name,
            pci_bus_id=card.pci_bus_id,
            seconds=seconds,
            max_power_w=max((gpu.power_w for gpu in own if gpu.power_w is not None), default=None),
            max_temp_c=max((gpu.temp_c for gpu in own if gpu.temp_c is not None), default=None),
            others_max_power_w=max((gpu.power_w for gpu in others if gpu.power_w is not None), default=None),
            stopped=None if reason == "asked" else reason,
        )
