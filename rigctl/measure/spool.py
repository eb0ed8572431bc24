"""The rig's spool brought home: each file from the offset that was reached, so that a cut loses nothing."""

from __future__ import annotations

import base64
import binascii
import json
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from rigctl.errors import CommandFailed
from rigctl.model.reading import RigEvent, Sample

if TYPE_CHECKING:
    from rigctl.store import RunDir

TELEMETRY = "telemetry.jsonl"
EVENTS = "events.jsonl"
PRIVATE = frozenset({"plan.json", "kernel.jsonl"})
"""Spool files that the controller knows (the plan) or reads itself after the plan (the kernel log)."""


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
    burn_text: str = ""
    """New output of gpu-burn."""


class Spool:
    """The files of one rig, as far as they have come home."""

    def __init__(self, run_dir: RunDir, rig: str) -> None:
        self._run_dir = run_dir
        self._rig = rig
        self._offsets: dict[str, int] = {}
        self._tails: dict[str, bytes] = {}

    def arguments(self) -> list[str]:
        """Return the `--offset FILE=N` arguments of the next poll."""
        return [word for name, offset in self._offsets.items() for word in ("--offset", f"{name}={offset}")]

    def take(self, reply: dict[str, Any]) -> Fetched:
        """Write what a poll brought to the run directory (fsynced) and return what is new in it.

        Raises CommandFailed where the reply is not a poll's.
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
        self._offsets[name] = expected + len(data)
        if name == TELEMETRY:
            self._take_telemetry(data, fetched)
        elif data:
            self._run_dir.append_raw(self._rig, name, data)
        if name == EVENTS:
            fetched.events.extend(RigEvent.model_validate(line) for line in self._lines(name, data))
        if name.endswith("_burn.log"):
            fetched.burn_text += data.decode(errors="replace")

    def _take_telemetry(self, data: bytes, fetched: Fetched) -> None:
        arrived = time.time()
        stamped = []
        for line in self._lines(TELEMETRY, data):
            line["controller_wall_s"] = round(arrived, 3)
            stamped.append(json.dumps(line, separators=(",", ":")))
            try:
                fetched.samples.append(Sample.model_validate(line))
            except ValidationError as error:
                raise CommandFailed(f"a sample has an unexpected form: {error.errors()[0]}") from error
        if stamped:
            self._run_dir.append_raw(self._rig, TELEMETRY, ("\n".join(stamped) + "\n").encode())

    def _lines(self, name: str, data: bytes) -> list[dict[str, Any]]:
        """Whole lines only; a line that is still being written waits for the next poll."""
        whole, newline, tail = (self._tails.get(name, b"") + data).rpartition(b"\n")
        self._tails[name] = tail
        if not newline:
            return []
        return [json.loads(line) for line in whole.split(b"\n") if line.strip()]
