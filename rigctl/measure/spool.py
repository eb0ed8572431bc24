"""The rig's spool brought home: each file from the offset that was reached, so that a cut loses nothing."""

from __future__ import annotations

import base64
import binascii
import json
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rigctl.errors import CommandFailed
from rigctl.model.reading import KernelMessage, RigEvent, Sample, no_number

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic import BaseModel

    from rigctl.store import RunDir

TELEMETRY = "telemetry.jsonl"
EVENTS = "events.jsonl"
KERNEL = "kernel.jsonl"
LINES = frozenset({TELEMETRY, EVENTS, KERNEL})
"""Spool files that are read line by line."""
PRIVATE = frozenset({"plan.json"})
"""Spool files that the controller knows."""


@dataclass
class Fetched:
    """What one poll brought."""

    active: bool
    """Whether the guard's unit still runs."""
    unit_result: str
    boot_id: str
    complete: bool
    """Whether every file was fetched to its present end."""
    samples: list[Sample] = field(default_factory=list)
    events: list[RigEvent] = field(default_factory=list)
    known_events: int = 0
    """So many of the events, the first ones, were at home already: another controller had fetched them."""
    kernel: list[KernelMessage] = field(default_factory=list)
    """What the kernel said meanwhile: after a crash this may be all that is left of its last words."""
    burn_text: str = ""
    """New output of gpu-burn."""
    damaged: str = ""
    """Which line of the spool cannot be read; empty when all can."""

    def take(self, line: BaseModel) -> None:
        """Add one line of whichever file."""
        if isinstance(line, Sample):
            self.samples.append(line)
        elif isinstance(line, RigEvent):
            self.events.append(line)
        elif isinstance(line, KernelMessage):
            self.kernel.append(line)


class Spool:
    """The files of one rig, as far as they have come home.

    They are read from their beginning; what an earlier controller had brought home is known again, and not written
    twice.
    """

    def __init__(self, run_dir: RunDir, rig: str, part: int = 1, known: Mapping[str, int] | None = None) -> None:
        """`known`: lines (bytes, of files that are not read line by line) of this part that are at home already."""
        self._run_dir = run_dir
        self._rig = rig
        self._part = part
        self._known = dict(known or {})
        self._offsets: dict[str, int] = {}
        self._tails: dict[str, bytes] = {}

    def arguments(self) -> list[str]:
        """Return the `--offset FILE=N` arguments of the next poll."""
        return [word for name, offset in self._offsets.items() for word in ("--offset", f"{name}={offset}")]

    def take(self, reply: dict[str, Any]) -> Fetched:
        """Write what a poll brought to the run directory (fsynced) and return what is new in it.

        Raises CommandFailed where the reply is not a poll's. A damaged line of the spool is told in `damaged`, and what
        stands before it is kept: a rig that lost power may leave zeros behind its last whole line.
        """
        try:
            unit, files = reply["unit"], reply["files"]
            fetched = Fetched(
                unit["active"] in ("active", "activating"), unit["result"], reply["boot_id"], complete=True
            )
            for name, chunk in sorted(files.items()):
                if name not in PRIVATE:
                    data = base64.b64decode(chunk["data"], validate=True)
                    self._take_file(name, chunk["offset"], data, fetched)
                    fetched.complete &= self._offsets[name] >= chunk["size"]
        except (KeyError, TypeError, binascii.Error) as error:
            raise CommandFailed(f"the agent's poll has an unexpected form: {error!r}") from error
        return fetched

    def _take_file(self, name: str, offset: int, data: bytes, fetched: Fetched) -> None:
        expected = self._offsets.setdefault(name, 0)
        if offset != expected:
            raise CommandFailed(f"the agent sent {name} from byte {offset}, asked was {expected}")
        if name == TELEMETRY:
            self._take_lines(name, Sample, data, fetched)
        elif name == EVENTS:
            self._take_lines(name, RigEvent, data, fetched)
        elif name == KERNEL:
            self._take_lines(name, KernelMessage, data, fetched)
        elif new := data[self._known.get(name, 0) :]:
            self._run_dir.append_raw(self._rig, name, new)
        if name not in LINES:
            self._known[name] = max(0, self._known.get(name, 0) - len(data))
        self._offsets[name] = expected + len(data)
        if name.endswith("_burn.log"):
            fetched.burn_text += data.decode(errors="replace")

    def _take_lines(self, name: str, model: type[BaseModel], data: bytes, fetched: Fetched) -> None:
        arrived: dict[str, float] = {"controller_wall_s": round(time.time(), 3)} if model is Sample else {}
        if self._part > 1 and model is not KernelMessage:
            arrived["part"] = self._part
        kept = []
        for line in self._lines(name, data):
            try:
                found = json.loads(line, parse_constant=no_number) | arrived
                fetched.take(model.model_validate(found))
            except (TypeError, ValueError):  # pydantic's ValidationError and JSON's error are ValueErrors
                fetched.damaged = f"{name} on the rig holds a damaged line: {line[:80]!r}"
                break
            if self._known.get(name, 0) > 0:
                self._known[name] -= 1
                fetched.known_events += model is RigEvent
                continue
            kept.append(json.dumps(found, separators=(",", ":"), ensure_ascii=False) + "\n")
        if kept:
            self._run_dir.append_raw(self._rig, name, "".join(kept).encode("utf-8", "replace"))

    def _lines(self, name: str, data: bytes) -> list[bytes]:
        """Whole lines only; a line that is still being written waits for the next poll."""
        whole, newline, tail = (self._tails.get(name, b"") + data).rpartition(b"\n")
        self._tails[name] = tail
        return [line for line in whole.split(b"\n") if line.strip()] if newline else []
