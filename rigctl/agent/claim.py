"""May this run have the rig? Refused with the names of those who have it, or taken from them where that was asked for.

Two words for two risks: `ignore_lock` takes the rig from another run of rigctl, `evict_users` from people.
"""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

from . import announce, busy, nvml, unit
from .errors import AgentError, Busy, NvmlUnavailable
from .evict import WARNING_S, evict, services_of
from .places import unit_name, write_atomically
from .plan import parse_plan
from .settings import Before, read_settings

if TYPE_CHECKING:
    from .places import Places
    from .plan import Plan

FREE_S = 10.0
"""After everybody was made to leave, the rig must be free within this time, seconds."""


def claim(plan: Plan, places: Places) -> Before:
    """Make sure that nobody else uses this rig, and note how it is set. Raises Busy naming who does, or AgentError."""
    _leave_to_upgrade(plan, places)
    for run_id in unit.running_runs():
        _take_over(run_id, plan, places)
    left = unit.processes()
    if left:
        raise AgentError(f"processes of an earlier run are left: {', '.join(left)}", "end them, or reboot the rig")
    before = Before(_settings())
    if any(step.loads for step in plan.steps):
        before.services = _make_room(plan, before, places)
    return before


def _leave_to_upgrade(plan: Plan, places: Places) -> None:
    """Refuse a rig that an upgrade has out of use, unless the run is that upgrade's own. Raises Busy."""
    try:
        text = places.upgrade_lock.read_text(encoding="utf-8")
    except FileNotFoundError:
        return
    try:
        held = json.loads(text)
        run_id, by, since = str(held["run"]), str(held["by"]), busy.clock_words(float(held["since_s"]))
    except (ValueError, KeyError, TypeError):
        run_id, by, since = "", f"somebody ({places.upgrade_lock} cannot be read)", "an unknown time"
    if plan.ignore_lock or (run_id and run_id == plan.upgrade):
        return
    raise Busy(
        f"the upgrade {run_id} of {by} holds this rig since {since}".replace("upgrade  of", "upgrade of"),
        f"wait for its end, or take it back: rigctl upgrade --abort {run_id or 'RUN'}; or --ignore-lock",
    )


def _settings() -> dict[str, dict[str, object]]:
    try:
        opened = nvml.Nvml()
    except NvmlUnavailable:
        return {}
    try:
        return read_settings(opened.cards)
    finally:
        opened.close()


def run_words(run_id: str, places: Places) -> str:
    """A run that is under way, as people need it: whose it is, since when, in which step."""
    try:
        text = places.plan(run_id).read_bytes()
        began = busy.clock_words(places.plan(run_id).stat().st_mtime)
        asked_by = parse_plan(text).asked_by
    except (OSError, AgentError):
        return f"run {run_id} is under way on this rig"
    by = f" of {asked_by}" if asked_by else ""
    status = unit.state(run_id)["status"]
    return f"run {run_id}{by} is under way on this rig since {began}" + (f" ({status})" if status else "")


def _take_over(run_id: str, plan: Plan, places: Places) -> None:
    words = run_words(run_id, places)
    if not plan.ignore_lock:
        raise Busy(
            words,
            f"wait for its end; stop it on the rig: systemctl stop {unit_name(run_id)}; or --ignore-lock to take over",
        )
    by = f" of {plan.asked_by}" if plan.asked_by else ""
    write_atomically(places.stop_reason(run_id), f"run {plan.run_id}{by} took the rig over (--ignore-lock)\n")
    unit.stop(run_id)


def _make_room(plan: Plan, before: Before, places: Places) -> list[str]:
    """Refuse a rig that is in use, or have it left; the services that were stopped for that."""
    using = busy.users()
    if not using:
        return []
    if not plan.evict_users:
        words = "; ".join(user.words for user in using)
        raise Busy(f"the rig is in use: {words}", "wait until it is free, or --evict-users; nothing was started")
    services = services_of(using)
    # On record before anything is stopped: whatever happens now, they are started again.
    Before(before.cards, services).keep(places.before(plan.run_id))
    evict(using, lambda: announce.tell(announce.leave(plan, WARNING_S)))
    # The driver lists a process for a moment after its end.
    deadline = time.monotonic() + FREE_S
    while still := busy.users():
        if time.monotonic() >= deadline:
            words = "; ".join(user.words for user in still)
            raise Busy(f"the rig is in use again: {words}", "ask them; nothing was started")
    return services
