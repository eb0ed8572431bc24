"""The same work on every rig, a bounded number at once; outcomes as they finish, one rig's error being its own."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from rigctl.errors import RigError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from rigctl.model.rig import Rig

T = TypeVar("T")

MAX_WORKERS = 32


@dataclass(frozen=True)
class Finished(Generic[T]):
    """What became of the work on one rig: a value, or the rig's error."""

    rig: Rig
    outcome: T | RigError

    @property
    def error(self) -> RigError | None:
        """The rig's error; None where the work was done."""
        return self.outcome if isinstance(self.outcome, RigError) else None

    @property
    def value(self) -> T:
        """What the work returned. Raises the rig's error where it was not done."""
        if isinstance(self.outcome, RigError):
            raise self.outcome
        return self.outcome


def for_each(rigs: Iterable[Rig], work: Callable[[Rig], T], *, max_workers: int = MAX_WORKERS) -> Iterator[Finished[T]]:
    """Do `work` on every rig and yield outcomes as they finish.

    A RigError belongs to its rig, and the others go on. Any other exception is a fault of ours: it is raised as it is,
    after every other rig has finished. Who stops reading early keeps rigs from being started; those that run are
    waited for.
    """
    faults: list[BaseException] = []
    pool = ThreadPoolExecutor(max_workers=max(1, max_workers), thread_name_prefix="rig")
    try:
        futures = {pool.submit(work, rig): rig for rig in rigs}
        for future in as_completed(futures):
            fault = future.exception()
            if fault is None or isinstance(fault, RigError):
                yield Finished(futures[future], future.result() if fault is None else fault)
            else:
                faults.append(fault)
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
    if faults:
        raise faults[0]
