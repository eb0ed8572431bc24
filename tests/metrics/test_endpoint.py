"""What is kept between scrapes, and for how long."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from rigctl.errors import UsageError
from rigctl.metrics import Endpoint, endpoint
from rigctl.metrics.endpoint import KEPT
from tests.metrics.fleet import NOW
from tests.report.build_run import build_run

if TYPE_CHECKING:
    from pathlib import Path


class Clock:
    def __init__(self) -> None:
        self.now = NOW

    def __call__(self):
        return self.now


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Counts how often the index is really asked."""
    asked: list[object] = []
    real = endpoint.look

    def counted(*words, **known):
        asked.append(words)
        return real(*words, **known)

    monkeypatch.setattr(endpoint, "look", counted)
    return asked


def test_the_index_is_asked_again_for_new_runs_and_after_a_while(tmp_path: Path, looks: list[object]) -> None:
    clock = Clock()
    made = Endpoint(tmp_path, clock=clock)
    build_run(tmp_path)
    first = made.answer("*/*")
    assert made.answer("*/*") == first
    assert len(looks) == 1
    build_run(tmp_path, unreached=True)
    assert made.answer("*/*") != first
    assert len(looks) == 2
    clock.now += KEPT
    made.answer("*/*")
    assert len(looks) == 3
    clock.now -= timedelta(hours=1)  # the clock was set back
    made.answer("*/*")
    assert len(looks) == 4


def test_scrapes_at_once_get_the_same_answer(tmp_path: Path, looks: list[object]) -> None:
    build_run(tmp_path)
    made = Endpoint(tmp_path, clock=Clock())
    answers: list[tuple[str, bytes]] = []
    threads = [threading.Thread(target=lambda: answers.append(made.answer("*/*"))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == 8
    assert len(set(answers)) == len(looks) == 1


def test_a_damaged_file_beside_the_runs_is_named(tmp_path: Path) -> None:
    build_run(tmp_path)
    (tmp_path / "last-night.json").write_text("{", encoding="utf-8")
    with pytest.raises(UsageError, match=r"last-night\.json is damaged"):
        Endpoint(tmp_path, clock=Clock()).answer("*/*")
