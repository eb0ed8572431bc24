"""Metrics for whoever scrapes while the site is served."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from prometheus_client.exposition import choose_encoder

from rigctl.metrics.collect import registry_of
from rigctl.metrics.seen import look
from rigctl.store.index import Index

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from prometheus_client import CollectorRegistry

KEPT = timedelta(minutes=5)
"""So long an answer is given again where no new run has come in: trends change once a night."""


def _utc() -> datetime:
    return datetime.now(UTC)


class Endpoint:
    """Answers scrapes from the index of a folder of runs; safe from several threads."""

    def __init__(self, runs: Path, index_url: str | None = None, clock: Callable[[], datetime] = _utc) -> None:
        """Take the folder of the runs, the index's URL where it is another than theirs, and a clock (UTC)."""
        self._runs, self._url, self._clock = runs, index_url, clock
        self._lock = threading.Lock()
        self._made: tuple[datetime, CollectorRegistry] | None = None

    def answer(self, accept: str) -> tuple[str, bytes]:
        """Return content type and body in the form that the header `Accept` asks for: text, or OpenMetrics.

        Raises:
            RigctlError: the index cannot be used, or something beside the runs is damaged.
        """
        encode, content_type = choose_encoder(accept)
        return content_type, encode(self._registry())

    def _registry(self) -> CollectorRegistry:
        with self._lock, Index.open(self._runs, self._url) as index:
            new, now = index.update(), self._clock()
            same = not (new.added or new.changed or new.removed)
            if self._made is None or not same or not timedelta() <= now - self._made[0] < KEPT:
                self._made = now, registry_of(look(index, now, unreadable=len(new.unreadable)))
            return self._made[1]
