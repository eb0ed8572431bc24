"""The same work on every rig, a bounded number at once; outcomes as they finish, one rig's error being its own."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from rigctl.errors import RigError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from concurrent.futures import Future

    from rigctl.model.rig import Rig

T = TypeVar("T")

MAX_WORKERS = 32


@dataclass(frozen=True)
class Finished(Generic[T]):
    """What became of the work on one rig: a value, or the rig's error."""

    rig: Rig
    value: T | None = None
    error: RigError | None = None


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
                yield _finished(futures[future], future, fault)
            else:
                faults.append(fault)
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
    if faults:
        raise faults[0]


def _finished(rig: Rig, future: Future[T], error: RigError | None) -> Finished[T]:
    return Finished(rig, error=error) if error is not None else Finished(rig, value=future.result())
