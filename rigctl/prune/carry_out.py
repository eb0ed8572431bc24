"""Prune runs: what is new is written first, then what was done, and only then the old files go.

Killed at any moment nothing is lost: where whole telemetry is still there it counts, and the next pruning finishes.
"""

from __future__ import annotations

import fcntl
import gzip
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import rigctl
from rigctl.errors import RigctlError, UsageError
from rigctl.model.pruned import Pruned, PrunedFile
from rigctl.model.reading import Sample
from rigctl.prune.choose import PAGE, LeftAlone, choose, size_of
from rigctl.store import dumps
from rigctl.store.files import fsync_dir, replace_durably, writing
from rigctl.store.index import Index, own_url
from rigctl.store.lines import read_lines
from rigctl.store.pruned import FILE, THINNED, WHOLE, telemetry_file
from rigctl.store.thinning import thinned

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from rigctl.model.pruned import Retention
    from rigctl.prune.choose import Choice, Due

LOCK = "prune.lock"
_ALL = (*WHOLE, THINNED)


@dataclass(frozen=True)
class Done:
    """What became of one file, or would."""

    folder: str
    """Of the run."""
    days: int
    """The run's age."""
    what: str
    """The folder in the run whose telemetry it is, or `report.html`."""
    action: str
    """thinned · dropped · removed"""
    bytes_before: int
    bytes_after: int


@dataclass(frozen=True)
class Outcome:
    """What a pruning did, or would do."""

    done: tuple[Done, ...]
    kept: tuple[LeftAlone, ...]
    """Runs that are old enough, and needed whole."""
    left_out: tuple[LeftAlone, ...]
    """Runs that could not be read, or not be written."""

    @property
    def bytes_before(self) -> int:
        """What the files took, bytes."""
        return sum(one.bytes_before for one in self.done)

    @property
    def freed(self) -> int:
        """What they take less now, bytes."""
        return sum(one.bytes_before - one.bytes_after for one in self.done)


@dataclass(frozen=True)
class _Part:
    """One file's change, ready to be made."""

    done: Done
    file: PrunedFile
    content: bytes | None
    """The thinned telemetry, packed."""
    old: tuple[str, ...]
    """Files that go, by their names in the folder."""


def prune(  # noqa: PLR0913 - they are the command's words
    runs: Path,
    retention: Retention,
    certificates: Path,
    now: datetime,
    *,
    dry_run: bool = False,
    tell: Callable[[int, int], None] = lambda _done, _due: None,
) -> Outcome:
    """Thin and drop what is old enough.

    Args:
        runs: The folder of runs.
        retention: The ages.
        certificates: A folder of certificates: the runs on which they rest are kept whole.
        now: The time from which ages count.
        dry_run: Only say what would be done; nothing is written but the index, which is made again at will.
        tell: Told how many runs are done, of how many.

    Raises:
        UsageError: the folder is not there, another pruning is at work, what people decided about baselines is
            damaged.
        RigctlError: the index cannot be used.
    """
    if not runs.is_dir():
        raise UsageError(f"there is no folder of runs {runs}", "name it with --runs, or start with `rigctl accept`")
    with Index.open(runs, own_url(runs)) as index:
        if dry_run:
            unreadable = index.update().unreadable
            return _prune(choose(index, retention, now, certificates, unreadable), now, tell, dry_run=True)
        with _alone(runs):
            unreadable = index.update().unreadable
            outcome = _prune(choose(index, retention, now, certificates, unreadable), now, tell, dry_run=False)
            index.update()
            return outcome


def _prune(choice: Choice, now: datetime, tell: Callable[[int, int], None], *, dry_run: bool) -> Outcome:
    done: list[Done] = []
    broken = list(choice.unreadable)
    # What is dropped makes room for what is written.
    for number, due in enumerate(sorted(choice.due, key=lambda one: bool(one.thin))):
        tell(number, len(choice.due))
        try:
            parts = list(_parts(due, now))
            if not dry_run:
                _carry_out(due, parts)
        except RigctlError as error:
            broken.append(LeftAlone(due.path.name, error.message, error.hint))
            continue
        done += [part.done for part in parts if part.old]
    return Outcome(tuple(sorted(done, key=lambda one: (one.folder, one.what))), choice.kept, tuple(broken))


def _parts(due: Due, now: datetime) -> Iterator[_Part]:
    """The changes of one run. Raises UsageError where telemetry that is to be thinned is damaged."""
    at = now.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    for name in due.thin:
        yield _thin(due, name, at)
    for name in due.drop:
        yield _drop(due, name, at)
    if due.page:
        size = (due.path / PAGE).stat().st_size
        file = PrunedFile(state="dropped", at=at, bytes_before=size, bytes_after=0)
        yield _Part(Done(due.path.name, due.days, PAGE, "removed", size, 0), file, None, (PAGE,))


def _thin(due: Due, name: str, at: str) -> _Part:
    folder = due.path / name
    samples = read_lines(telemetry_file(folder), Sample)
    kept = thinned(samples)
    size = size_of(folder)
    whole = PrunedFile(
        state="whole", at=at, bytes_before=size, bytes_after=size, samples_before=len(samples), samples_after=len(kept)
    )
    content = gzip.compress(b"".join(_line(one) for one in kept), 9, mtime=0)
    done = Done(due.path.name, due.days, name, "thinned", size_of(folder, _ALL), len(content))
    if len(kept) == len(samples) or len(content) >= size:
        return _Part(done, whole, None, ())
    return _Part(done, whole.model_copy(update={"state": "thinned", "bytes_after": len(content)}), content, WHOLE)


def _line(sample: Sample) -> bytes:
    return dumps(sample.model_dump(mode="json", exclude_defaults=True), indent=None).encode() + b"\n"


def _drop(due: Due, name: str, at: str) -> _Part:
    folder = due.path / name
    size = size_of(folder, _ALL)
    known = due.pruned.telemetry.get(name) if due.pruned is not None else None
    before = known if known is not None else _unknown(size_of(folder) or size, at)
    file = before.model_copy(update={"state": "dropped", "at": at, "bytes_after": 0, "samples_after": 0})
    return _Part(Done(due.path.name, due.days, name, "dropped", size, 0), file, None, _ALL)


def _unknown(size: int, at: str) -> PrunedFile:
    """Telemetry that was never pruned before."""
    return PrunedFile(state="whole", at=at, bytes_before=size, bytes_after=size)


def _carry_out(due: Due, parts: list[_Part]) -> None:
    """Make the changes of one run. Raises RigctlError where the disk is full or the place cannot be written."""
    for part in parts:
        folder = _folder(due, part)
        _clear(folder)
        if part.content is not None:
            replace_durably(folder / THINNED, part.content)
    known = due.pruned or Pruned(rigctl_version=rigctl.__version__)
    page = next((part.file for part in parts if part.done.what == PAGE), known.page)
    telemetry = {part.done.what: part.file for part in parts if part.done.what != PAGE}
    said = Pruned(rigctl_version=rigctl.__version__, telemetry={**known.telemetry, **telemetry}, page=page)
    replace_durably(due.path / FILE, dumps(said).encode() + b"\n")
    for part in parts:
        folder = _folder(due, part)
        with writing(folder):
            for name in part.old:
                (folder / name).unlink(missing_ok=True)
            fsync_dir(folder)


def _folder(due: Due, part: _Part) -> Path:
    return due.path if part.done.what == PAGE else due.path / part.done.what


def _clear(folder: Path) -> None:
    """Remove drafts that a killed pruning has left."""
    for draft in folder.glob(f".{THINNED}.*.tmp"):
        with writing(draft):
            draft.unlink()


@contextmanager
def _alone(runs: Path) -> Iterator[None]:
    """Be the only pruning of these runs; the kernel lets go with the process. Raises UsageError where another is."""
    with writing(runs / LOCK):
        file = (runs / LOCK).open("a", encoding="utf-8")
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UsageError(f"{runs} is being pruned by another process", "wait for its end") from None
        yield
