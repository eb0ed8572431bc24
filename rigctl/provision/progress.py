"""Ansible's events, as ansible-runner hands them out, become progress and failures per rig."""

from __future__ import annotations

import re
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from rigctl.provision.outcome import RigProvision, State
from rigctl.provision.remedies import recognise

if TYPE_CHECKING:
    from collections.abc import Iterable

_LAST_LINES = 10
_FAILED: Final = {"runner_on_failed", "runner_item_on_failed"}


@dataclass
class RigNow:
    """Where one rig is."""

    name: str
    stage: str = ""
    """What it is at: the role, or the play for a task outside of roles; `cuda, handler` for a role's handler."""
    task: str = ""
    changed: int = 0
    state: str = "waiting"
    """waiting, running, failed, unreachable or done."""
    message: str = ""
    failed_role: str = ""
    failed_task: str = ""
    counts: dict[str, int] = field(default_factory=dict)


class ProvisionProgress:
    """The fleet as it is now; `take` is called in ansible-runner's thread, the rest in others."""

    def __init__(self, rigs: Iterable[str], total: int = 0) -> None:
        self._lock = threading.Lock()
        self._rigs = {name: RigNow(name) for name in rigs}
        self._started = time.monotonic()
        self.total = total
        """Number of tasks that will be announced; 0 while unknown. Handlers are counted nowhere: few of them run."""
        self.announced = 0
        self._handlers: set[str] = set()
        """Handlers that were announced, by Ansible's id."""

    @property
    def elapsed_s(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self._started

    def snapshot(self) -> list[RigNow]:
        """Copies of all rigs, in the inventory's order."""
        with self._lock:
            return [RigNow(**vars(rig)) for rig in self._rigs.values()]

    def take(self, event: dict[str, Any]) -> None:
        """Take one event."""
        kind, data = event.get("event", ""), event.get("event_data", {})
        with self._lock:
            if kind == "playbook_on_task_start":
                self._take_task(data)
            elif kind == "playbook_on_stats":
                self._take_stats(data)
            elif data.get("host") in self._rigs:
                self._take_rig_event(kind, data, self._rigs[data["host"]])

    def _take_task(self, data: dict[str, Any]) -> None:
        # ansible-runner announces a handler as a task that is conditional.
        if data.get("is_conditional"):
            self._handlers.add(data.get("task_uuid", ""))
        else:
            self.announced += 1

    def _stage(self, data: dict[str, Any]) -> str:
        stage = data.get("role") or data.get("play") or ""
        return f"{stage}, handler" if data.get("task_uuid") in self._handlers else stage

    def _take_rig_event(self, kind: str, data: dict[str, Any], rig: RigNow) -> None:
        if kind == "runner_on_start":
            rig.stage, rig.task, rig.state = self._stage(data), data.get("task", ""), "running"
        elif kind == "runner_on_ok":
            rig.changed += bool(data.get("res", {}).get("changed"))
        elif kind in _FAILED and not data.get("ignore_errors"):
            rig.failed_role, rig.failed_task = data.get("role", ""), data.get("task", "")
            rig.message = failure_message(data.get("res", {}))
            # not failed yet: a rescue may follow, the stats at the end decide
        elif kind == "runner_on_unreachable":
            rig.state, rig.message = "unreachable", failure_message(data.get("res", {}))
            rig.failed_role, rig.failed_task = data.get("role", ""), data.get("task", "")

    def _take_stats(self, data: dict[str, Any]) -> None:
        for name, rig in self._rigs.items():
            rig.counts = {key: int(data.get(key, {}).get(name, 0)) for key in _STATS}
            if rig.counts["dark"]:
                rig.state = "unreachable"
            elif rig.counts["failures"]:
                rig.state = "failed"
            elif data.get("processed", {}).get(name):
                rig.state = "done"

    def rig_outcomes(self) -> tuple[RigProvision, ...]:
        """How each rig ended, once Ansible has ended."""
        return tuple(_outcome(rig) for rig in self.snapshot())


_STATS = ("ok", "changed", "failures", "dark", "skipped")


def _outcome(rig: RigNow) -> RigProvision:
    ended: dict[str, State] = {"unreachable": "unreachable", "failed": "failed", "done": "ok"}
    state = ended.get(rig.state, "not_run")
    counts = {key: rig.counts.get(key, 0) for key in ("ok", "changed", "skipped")}
    if state == "ok":
        return RigProvision(name=rig.name, state="changed" if counts["changed"] else "ok", **counts)
    message = rig.message or "Ansible ended before it came to this rig"
    known = recognise(message)
    return RigProvision(
        name=rig.name,
        state=state,
        failed=rig.counts.get("failures", 0),
        role=rig.failed_role,
        task=rig.failed_task,
        message=f"{known.said} | {message}" if known else message,
        hint=known.remedy if known else _hint(rig.name, state),
        **counts,
    )


def _hint(name: str, state: State) -> str:
    if state == "unreachable":
        return f"rigctl doctor {name} says why it cannot be reached, and what to do"
    if state == "failed":
        return "do what the message says and provision again: what is done stays done"
    return "the end of ansible.log in the run directory says why"


def failure_message(res: dict[str, Any]) -> str:
    """What a failed task said: its message, and for a command the last lines of its output."""
    message = str(res.get("msg", "")).strip()
    output = str(res.get("stderr") or res.get("module_stderr") or res.get("stdout") or res.get("module_stdout") or "")
    last = [line.strip() for line in output.strip().splitlines() if line.strip()][-_LAST_LINES:]
    if last and res.get("evaluated_to") is None:
        message = " | ".join([message, *last]) if message else " | ".join(last)
    failed_items = [failure_message(item) for item in res.get("results", []) if item.get("failed")]
    message = "; ".join(failed_items) or message
    return re.sub(r"^Task failed: ((Action|Module) failed: )?", "", message) or "the task failed without a word"
