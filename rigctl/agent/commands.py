"""The agent's commands: each returns one JSON object, or raises AgentError with the remedy."""

from __future__ import annotations

import json
import shutil
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import kernel as kernel_log
from . import unit
from .clock import boot_id, stamp
from .errors import AgentError, TooSlow
from .lock import rig_held
from .places import Places, unit_name, write_atomically
from .plan import Plan, parse_plan
from .spool import read_from, readings_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .settings import Before

CPU_WINDOW_S = 0.5
"""Processor power and load are differences: `probe` looks twice, so far apart, seconds."""
GUARD_LOG = "guard.log"
RESTORE_S = 20
"""Putting back waits so long for the driver, seconds; less than what systemd grants a unit that stops."""


def facts(gpu_burn_dir: str, torch_venv: str) -> dict[str, Any]:
    """Identity of the rig."""
    from .facts import read_facts  # noqa: PLC0415 - `poll` runs every second and has no use for pynvml

    return read_facts(gpu_burn_dir, torch_venv)


def probe(gpu_burn_dir: str, torch_venv: str, rest_s: float = 0.0, sample_hz: float = 1.0) -> dict[str, Any]:
    """A look at the rig that changes nothing: facts, samples, what the driver told the kernel log in this boot.

    `samples` are those of `rest_s` seconds at `sample_hz`, at least one; `sample` is the last of them. There is none
    where the driver did not even answer for the facts.
    """
    from .probes import PROBE_S, bounded  # noqa: PLC0415 - as in facts

    identity = facts(gpu_burn_dir, torch_venv)
    messages, reason = _kernel_since(0.0)
    told = [message for message in messages if kernel_log.DRIVER_LINES.search(message["message"])]
    kernel = {"kernel": told, "kernel_read": reason is None, "kernel_error": reason}
    if any(asked["exit_status"] is None for asked in identity["probes"]):
        return {
            "facts": identity,
            "sample": None,
            "samples": [],
            **kernel,
        }  # the driver does not answer, and would not now
    uuids = tuple(card["uuid"] for card in identity["gpus"])
    found, asked = bounded("sample", lambda: {"samples": _samples(uuids, rest_s, 1 / sample_hz)}, PROBE_S + rest_s)
    if found is None:
        raise AgentError(
            f"no sample within {asked.limit_s:g} s: {asked.stuck or 'the driver does not answer'}", "reboot the rig"
        )
    return {"facts": identity, "sample": found["samples"][-1], **found, **kernel}


def _samples(uuids: tuple[str, ...], rest_s: float, every_s: float) -> list[dict[str, Any]]:
    from .sensors import Sensors  # noqa: PLC0415 - as in facts

    sensors = Sensors(uuids, None)
    sensors.read(0, "idle")
    time.sleep(CPU_WINDOW_S)
    begun = time.monotonic()
    found = [sensors.read(0, "idle")]
    for seq in range(1, round(rest_s / every_s)):
        time.sleep(max(0.0, begun + seq * every_s - time.monotonic()))
        found.append(sensors.read(seq, "idle"))
    return found


def probes() -> dict[str, Any]:
    """Ask `nvidia-smi` about the links: how long each question takes, and whether it ends at all."""
    from .probes import ask_all  # noqa: PLC0415 - as in facts

    return ask_all()


def users(places: Places) -> dict[str, Any]:
    """Who uses this rig: runs that are under way, and everybody else, in words. Changes nothing."""
    from .busy import users as everybody  # noqa: PLC0415 - as in facts
    from .claim import run_words  # noqa: PLC0415

    runs = [run_words(run_id, places) for run_id in unit.running_runs()]
    return {"runs": runs, "users": [] if runs else [user.words for user in everybody()]}


def start(plan_text: bytes, places: Places) -> dict[str, Any]:
    """Write the spool and start the guard's unit; refuses when another run, or another program, holds the cards.

    Asked again for the very same plan, it says that this run was started already: the first answer may have been lost.
    """
    plan, text = parse_plan(plan_text), plan_text.decode()
    with rig_held(plan.run_id, places):
        already = _started_already(plan.run_id, text, places)
        if already:
            hear(plan.run_id, places)
        else:
            places.forget(plan.run_id)
            _start_guard(plan, text, _claimed(plan, places), places)
    return {
        "unit": unit_name(plan.run_id),
        "run_id": plan.run_id,
        "already_started": already,
        "runtime_max_s": plan.longest_s,
        "boot_id": boot_id(),
        **stamp(),
        "spools": sorted(path.name for path in places.spool_root.iterdir() if path.is_dir()),
    }


def _started_already(run_id: str, plan_text: str, places: Places) -> bool:
    """Whether this very run was started before; AgentError when another plan has its id.

    What a start that was broken off has left behind, before its unit ran, is removed.
    """
    spool, plan = places.spool(run_id), places.plan(run_id)
    if not spool.exists():
        return False
    if plan.exists() and plan.read_text(encoding="utf-8") != plan_text:
        raise AgentError(
            f"run {run_id} has been on this rig already", "use a new run id, or fetch and `ack` the old one"
        )
    # systemd opens the log before it runs the guard.
    if (spool / GUARD_LOG).exists() or unit.state(run_id)["active"] == "active":
        return True
    shutil.rmtree(spool)
    return False


def _claimed(plan: Plan, places: Places) -> Before:
    """The rig as it was found, once nobody else uses it; what was stopped for a run that does not come starts again."""
    from .claim import claim  # noqa: PLC0415 - as in facts

    try:
        return claim(plan, places)
    except AgentError:
        restore(plan.run_id, places)
        raise


def _start_guard(plan: Plan, plan_text: str, before: Before, places: Places) -> None:
    spool = places.spool(plan.run_id)
    spool.mkdir(parents=True, mode=0o700)
    write_atomically(places.plan(plan.run_id), plan_text)
    before.keep(places.before(plan.run_id))
    hear(plan.run_id, places)
    unit.forget(plan.run_id)
    agent = (sys.executable, "-I", str(Path(sys.argv[0]).resolve()))
    guard, afterwards = (*agent, "guard", "--run", plan.run_id), (*agent, "restore", "--run", plan.run_id)
    try:
        unit.start(plan.run_id, guard, plan.longest_s, spool / GUARD_LOG, afterwards)
    except TooSlow:
        raise  # the guard may start yet, and writes into the spool then
    except AgentError:
        # Where systemd did not even begin, it puts nothing back either.
        restore(plan.run_id, places)
        # Nothing ran: leave no spool that would stand in the way of another attempt.
        shutil.rmtree(spool, ignore_errors=True)
        raise


def restore(run_id: str, places: Places) -> dict[str, Any]:
    """Put back what the run found and changed; what was put back is one of its readings. Asked twice, it finds nothing.

    systemd runs this when the unit has ended; a driver that hangs holds it for a while only.
    """
    from .settings import RESTORED, Before, PutBack, put_back  # noqa: PLC0415 - as in facts

    before = Before.kept(places.before(run_id))
    if before is None:
        return {"restored": [], "failed": []}
    done: list[PutBack] = []
    working = threading.Thread(target=lambda: done.append(put_back(before)), name="restore", daemon=True)
    working.start()
    working.join(RESTORE_S)
    found = done[0] if done else PutBack(failed=[f"the driver did not answer within {RESTORE_S} s"])
    told = {"restored": found.restored, "failed": found.failed}
    spool = places.spool(run_id)
    if spool.is_dir():
        write_atomically(spool / RESTORED, json.dumps(told) + "\n")
    if not found.failed:
        places.before(run_id).unlink(missing_ok=True)
    return told


def hear(run_id: str, places: Places) -> None:
    """Note that the controller has just said something."""
    write_atomically(places.heartbeat(run_id), f"{time.monotonic():.4f}\n")


def poll(run_id: str, offsets: Mapping[str, int], places: Places) -> dict[str, Any]:
    """What is new in the spool, from the offsets on, and how the unit does; a word from the controller."""
    spool = _existing_spool(run_id, places)
    hear(run_id, places)
    # Asked before the files are read: what an ended unit has written is then all there.
    state = unit.state(run_id)
    files = {path.name: read_from(path, offsets.get(path.name, 0)) for path in readings_of(spool)}
    return {"boot_id": boot_id(), **stamp(), "unit": state, "files": files}


def spooled(run_id: str, places: Places) -> dict[str, Any]:
    """Whether a run was begun on this rig and not acknowledged yet, and how its unit does; no word to the guard."""
    return {"spooled": places.spool(run_id).is_dir(), "unit": unit.state(run_id), "boot_id": boot_id(), **stamp()}


def _existing_spool(run_id: str, places: Places) -> Path:
    spool = places.spool(run_id)
    if not spool.is_dir():
        raise AgentError(
            f"no readings of run {run_id} on this rig", "it was never started here, or acknowledged already"
        )
    return spool


def stop(run_id: str, reason: str, places: Places) -> dict[str, Any]:
    """Stop a run and wait until it has ended; asked again, it finds nothing to do."""
    # A start whose answer was cut may still be at it: waited for, so that nothing begins after the stop.
    with rig_held(run_id, places):
        was_active = unit.state(run_id)["active"] == "active"
    if was_active:
        write_atomically(places.stop_reason(run_id), reason + "\n")
        unit.stop(run_id)
    return {"was_active": was_active, "unit": unit.state(run_id), "left_running": unit.processes(run_id)}


def end_step(run_id: str, step: str, reason: str, places: Places) -> dict[str, Any]:
    """End one load step of a run before its time, the others go on; told by the step's events. Asked twice is fine."""
    hear(run_id, places)
    active = unit.state(run_id)["active"] == "active"
    if active:
        write_atomically(places.end_step(run_id), json.dumps({"step": step, "reason": reason}) + "\n")
    return {"active": active}


def ack(run_id: str, places: Places) -> dict[str, Any]:
    """Remove a run's spool after the controller has fetched everything; refuses while it runs."""
    if unit.state(run_id)["active"] == "active":
        raise AgentError(f"run {run_id} is still under way", "stop it first, or wait for its end")
    spool = places.spool(run_id)
    removed = spool.is_dir()
    if removed:
        shutil.rmtree(spool)
    places.forget(run_id)
    unit.forget(run_id)
    return {"removed": removed}


def kernel(since_mono_s: float, of_boot: str) -> dict[str, Any]:
    """Kernel messages of this boot since a moment of boot `of_boot`; all of them when that was another boot.

    The time is the last thing that is read: the controller compares its own clock with it.
    """
    messages, reason = _kernel_since(since_mono_s if of_boot == boot_id() else 0.0)
    told = {"kernel": messages, "kernel_read": reason is None, "kernel_error": reason, "boot_id": boot_id()}
    return {**told, **stamp()}


def _kernel_since(since_mono_s: float) -> tuple[list[dict[str, Any]], str | None]:
    messages, reason = kernel_log.read_kernel(since_mono_s)
    if reason is None and not messages:
        reason = kernel_log.log_is_kept()
    return messages, reason
