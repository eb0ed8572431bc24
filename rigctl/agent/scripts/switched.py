"""Switch cards and processor on and off together: `switched --arguments JSON --out FILE`, by the system's Python.

A stage is a number of turns, in each of which everything works for `on_s` and then rests for `off_s` seconds; all
workers follow one timetable on CLOCK_MONOTONIC, so that they switch together. With `rest_s`, nobody holds a card for so
long before the stage. With `alone`, no stage begins while somebody is logged in. What the disks still wait for is
written out (sync) before each stage, and each stage is told on stdout first and brought to the disk: a rig that goes
off leaves behind where it was.

    {"stages": [{"name", "on_s", "off_s", "times", "rest_s", "workers": [{"what", "done", "late_ms", "first_ms",
     "wrong"}]}]}     or     {"error", "hint", "what"}

`what` is `slot1` or `cpu`; `done` counts pieces of work: products of two matrices, or hashes; `late_ms` is how late a
worker ever began, `first_ms` how long its slowest first piece took, `wrong` counts bytes (or hashes) that differ from
the first piece's.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import multiprocessing
import os
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from .blas import Card, LoadError, cublas_files

if TYPE_CHECKING:
    from collections.abc import Callable
    from multiprocessing.connection import Connection

PIECE_BYTES = 256 * 1024
"""What the processor hashes at once: under a millisecond."""
SOON_S = 0.25
"""Between telling the workers and their first turn, seconds: enough for the word to reach all of them."""
OPEN_S = 60.0
"""Opening a card takes at most so long, seconds: CUDA's start takes seconds on rigs of eight."""
LATE_S = 60.0
"""A worker that has not answered so long after its last turn hangs, seconds."""
WHO_S = 10
CPU = "cpu"


class Work(Protocol):
    """What a worker does."""

    def once(self) -> None:
        """One piece of work; LoadError when it cannot be done."""

    def wrong(self) -> int:
        """How much of what was done differs from the first piece."""

    def close(self) -> None:
        """Give back what it holds."""


class Processor:
    """One core at work: hashes of the same bytes, over and over."""

    def __init__(self) -> None:
        self._bytes = os.urandom(PIECE_BYTES)
        self._first = hashlib.sha512(self._bytes).digest()
        self._wrong = 0

    def once(self) -> None:
        """One hash."""
        self._wrong += hashlib.sha512(self._bytes).digest() != self._first

    def wrong(self) -> int:
        """How many hashes differed."""
        return self._wrong

    def close(self) -> None:
        """Nothing is held."""


@dataclass(frozen=True)
class Stage:
    """Turns of one length."""

    name: str
    on_s: float
    off_s: float
    times: int
    rest_s: float = 0.0

    @property
    def seconds(self) -> float:
        """How long its turns take, seconds."""
        return self.times * (self.on_s + self.off_s)


def turns(work: Work, stage: Stage, begin_s: float) -> dict[str, float]:
    """Follow the timetable from `begin_s` (CLOCK_MONOTONIC) on; what `workers` tells of one. Raises LoadError."""
    done, late_s, first_s = 0, 0.0, 0.0
    for turn in range(stage.times):
        due_s = begin_s + turn * (stage.on_s + stage.off_s)
        time.sleep(max(0.0, due_s - time.monotonic()))
        began_s = time.monotonic()
        late_s = max(late_s, began_s - due_s)
        work.once()
        done += 1
        first_s = max(first_s, time.monotonic() - began_s)
        while time.monotonic() < due_s + stage.on_s:
            work.once()
            done += 1
    return {"done": done, "late_ms": round(1e3 * late_s, 1), "first_ms": round(1e3 * first_s, 1), "wrong": work.wrong()}


def serve(open_work: Callable[[], Work], pipe: Connection) -> None:
    """A worker's life: open, say so, follow each stage, give back."""
    try:
        work = open_work()
        pipe.send({})
        while (order := pipe.recv()) is not None:
            pipe.send(turns(work, *order))
        work.close()
        pipe.send({})
    except LoadError as error:
        pipe.send({"error": str(error), "hint": error.hint})


class Crew:
    """The workers, one process each: a context of a card belongs to one process."""

    def __init__(self, members: dict[str, list[Callable[[], Work]]]) -> None:
        """`members`: what each worker is called, and how each of that name opens its work."""
        self._members = members
        self._hired: list[tuple[str, Connection, Any]] = []
        self._fork = multiprocessing.get_context("fork")

    def gather(self) -> None:
        """Open everything that is not open yet, all at once. Raises LoadError."""
        if self._hired:
            return
        for what, openers in self._members.items():
            for opener in openers:
                ours, theirs = self._fork.Pipe()
                process = self._fork.Process(target=serve, args=(opener, theirs), daemon=True)
                process.start()
                theirs.close()
                self._hired.append((what, ours, process))
        self._answers(OPEN_S)

    def turn(self, stage: Stage) -> list[dict[str, Any]]:
        """Let all of them follow a stage together; what they tell, by what they are. Raises LoadError."""
        begin_s = time.monotonic() + SOON_S
        for _, pipe, _ in self._hired:
            pipe.send((stage, begin_s))
        told = self._answers(SOON_S + stage.seconds + LATE_S)
        return [
            {
                "what": what,
                "done": min(one["done"] for one in of_it),
                "late_ms": max(one["late_ms"] for one in of_it),
                "first_ms": max(one["first_ms"] for one in of_it),
                "wrong": sum(one["wrong"] for one in of_it),
            }
            for what in self._members
            if (of_it := [one for name, one in told if name == what])
        ]

    def dismiss(self) -> None:
        """Let all of them give back what they hold. Raises LoadError."""
        for _, pipe, _ in self._hired:
            pipe.send(None)
        self._answers(OPEN_S)
        for _, pipe, process in self._hired:
            process.join()
            pipe.close()
        self._hired = []

    def end(self) -> None:
        """End all of them at once, without waiting: one that sits in the driver may never end."""
        for _, _, process in self._hired:
            process.kill()

    def _answers(self, within_s: float) -> list[tuple[str, dict[str, Any]]]:
        deadline_s = time.monotonic() + within_s
        told = []
        for what, pipe, _ in self._hired:
            told.append((what, _answer(what, pipe, max(0.0, deadline_s - time.monotonic()))))
        return told


class WorkerError(LoadError):
    """What a worker says of its own work; `what` is the worker."""

    def __init__(self, what: str, message: str, hint: str) -> None:
        super().__init__(f"{what}: {message}", hint)
        self.what = what


def _answer(what: str, pipe: Connection, within_s: float) -> dict[str, Any]:
    hint = "see kernel.xid: a card that is gone lets nobody come back"
    try:
        if not pipe.poll(within_s):
            raise WorkerError(what, "did not come back from its work", hint)
        told: dict[str, Any] = pipe.recv()
    except (EOFError, ConnectionError) as error:
        raise WorkerError(what, "its worker ended in the middle", hint) from error
    if "error" in told:
        raise WorkerError(what, told["error"], told["hint"])
    return told


def nobody_logged_in() -> None:
    """Raise LoadError where somebody has a terminal or a desktop here, or where nobody can tell."""
    try:
        done = subprocess.run(["who"], capture_output=True, timeout=WHO_S, check=True, env=os.environ | {"LC_ALL": "C"})
    except (OSError, subprocess.SubprocessError) as error:
        raise LoadError(f"who is logged in cannot be told: {error}", "is `who` (coreutils) on the rig?") from error
    people = [" ".join(line.split()) for line in done.stdout.decode(errors="replace").splitlines() if line.strip()]
    if people:
        raise LoadError(f"somebody is logged in: {'; '.join(people)}", "accept the rig again when nobody is logged in")


def run(arguments: dict[str, Any]) -> dict[str, Any]:
    """Carry the stages out. Raises LoadError."""
    stages = [Stage(**one) for one in arguments["stages"]]
    crew = Crew(_members(arguments))
    try:
        told = [carry_out(stage, crew, alone=bool(arguments["alone"])) for stage in stages]
        crew.dismiss()
    finally:
        crew.end()
    return {"stages": told}


def carry_out(stage: Stage, crew: Crew, *, alone: bool) -> dict[str, Any]:
    """Rest before the stage, then its turns. Raises LoadError."""
    if stage.rest_s > 0:
        crew.dismiss()
        say(f"{stage.name}: rests for {stage.rest_s:g} s")
        time.sleep(stage.rest_s)
    if alone:
        nobody_logged_in()
    say(f"{stage.name}: {stage.times} x {stage.on_s:g} s on, {stage.off_s:g} s off")
    os.sync()
    crew.gather()
    workers = crew.turn(stage)
    say(json.dumps(workers))
    return {**asdict(stage), "workers": workers}


def _members(arguments: dict[str, Any]) -> dict[str, list[Callable[[], Work]]]:
    libraries = cublas_files(arguments["torch_venv"])
    size = int(arguments["size"])

    def of_card(uuid: str) -> Callable[[], Work]:
        return lambda: Card(uuid, size, libraries)

    cards = {f"slot{one['slot']}": [of_card(one["uuid"])] for one in arguments["cards"]}
    return {**cards, CPU: [Processor] * len(os.sched_getaffinity(0))}


def say(words: str) -> None:
    """Tell the step's log, and bring it to the disk: what follows may be the last thing that this rig does."""
    print(words, flush=True)  # noqa: T201 - the step's log
    try:
        os.fsync(sys.stdout.fileno())
    except OSError:
        return  # a pipe or a terminal keeps nothing


def write(path: Path, answer: dict[str, Any]) -> None:
    """Write the answer whole, or not at all."""
    part = path.with_suffix(".part")
    part.write_text(json.dumps(answer), encoding="utf-8")
    part.replace(path)


def main() -> int:
    """Run once; exit status 0, or 1 with the error in FILE."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--arguments", required=True, type=json.loads)
    parser.add_argument("--out", required=True, type=Path)
    asked = parser.parse_args()
    try:
        write(asked.out, run(asked.arguments))
    except LoadError as error:
        what = error.what if isinstance(error, WorkerError) else None
        write(asked.out, {"error": str(error), "hint": error.hint, "what": what})
        return 1
    return 0


if __name__ == "__main__":
    status = main()
    sys.stdout.flush()
    # Not by sys.exit, which waits for workers: one that sits in the driver may never end.
    os._exit(status)
