"""The spool: every byte, in order, on the disk; and what happens when the disk does not take it."""

from __future__ import annotations

import base64
import errno
import json
import os
import time
from typing import TYPE_CHECKING

from rigctl.agent import spool as spool_module
from rigctl.agent.spool import CHUNK_BYTES, EVENTS, RESERVE, TELEMETRY, Spool, read_from, readings_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pytest


def wait_for(condition: Callable[[], bool], limit_s: float = 5) -> None:
    deadline = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < deadline, "not within the time"
        time.sleep(0.01)


def test_lines_are_written_in_order_and_whole(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    spool.start()
    for number in range(500):
        spool.append(TELEMETRY, {"seq": number, "name": "°C"})
    assert spool.close(timeout_s=5)
    lines = (tmp_path / TELEMETRY).read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["seq"] for line in lines] == list(range(500))
    assert not (tmp_path / RESERVE).exists()


def test_events_are_synced_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[float] = []
    real = os.fsync
    monkeypatch.setattr(os, "fsync", lambda descriptor: (synced.append(time.monotonic()), real(descriptor))[1])
    spool = Spool(tmp_path)
    spool.start()
    began = time.monotonic()
    spool.append(EVENTS, {"seq": 0})
    wait_for(lambda: bool(synced))
    assert synced[0] - began < 0.3
    assert spool.close(timeout_s=5)


def test_telemetry_is_synced_within_a_second(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[float] = []
    monkeypatch.setattr(os, "fsync", lambda _descriptor: synced.append(time.monotonic()))
    spool = Spool(tmp_path)
    spool.start()
    began = time.monotonic()
    spool.append(TELEMETRY, {"seq": 0})
    wait_for(lambda: bool(synced))
    assert synced[0] - began < 1
    assert spool.close(timeout_s=5)


def test_a_full_disk_is_told_and_nothing_is_lost_after_it_has_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = True
    real = os.write

    def write(descriptor: int, data: bytes) -> int:
        if full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        # A disk that takes a few bytes at a time must not break a line.
        return real(descriptor, data[:7])

    monkeypatch.setattr(spool_module.os, "write", write)
    spool = Spool(tmp_path)
    spool.start()
    assert (tmp_path / RESERVE).stat().st_size == spool_module.RESERVE_BYTES
    spool.append(EVENTS, {"seq": 0, "event": "guard_stopped"})
    wait_for(lambda: spool.error is not None)
    assert "No space left" in (spool.error or "")
    assert spool.waiting_since_s() is not None
    full = False
    spool.use_reserve()
    assert not (tmp_path / RESERVE).exists()
    assert spool.close(timeout_s=5)
    assert json.loads((tmp_path / EVENTS).read_text()) == {"seq": 0, "event": "guard_stopped"}


def test_closing_says_when_the_disk_never_took_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def write(_descriptor: int, _data: bytes) -> int:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    spool = Spool(tmp_path)
    spool.start()
    monkeypatch.setattr(spool_module.os, "write", write)
    spool.append(EVENTS, {"seq": 0})
    assert not spool.close(timeout_s=2)
    assert "error" in (spool.error or "").lower()


def test_closing_says_when_the_disk_did_not_keep_what_it_took(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fsync(_descriptor: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    spool = Spool(tmp_path)
    spool.start()
    monkeypatch.setattr(spool_module.os, "fsync", fsync)
    spool.append(TELEMETRY, {"seq": 0})
    assert not spool.close(timeout_s=2)


def test_a_hanging_disk_shows_as_a_line_that_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    release = spool_module.threading.Event()
    monkeypatch.setattr(os, "fsync", lambda _descriptor: release.wait(5))
    spool = Spool(tmp_path)
    spool.start()
    spool.append(EVENTS, {"seq": 0})
    time.sleep(0.1)
    spool.append(TELEMETRY, {"seq": 1})
    time.sleep(0.1)
    since = spool.waiting_since_s()
    assert since is not None
    assert since < time.monotonic()
    release.set()
    assert spool.close(timeout_s=5)


def test_reading_by_offset_is_byte_exact(tmp_path: Path) -> None:
    raw = os.urandom(CHUNK_BYTES + 1234)
    path = tmp_path / "gpu_burn.log"
    path.write_bytes(raw)
    fetched, offset = b"", 0
    while True:
        part = read_from(path, offset)
        data = base64.b64decode(part["data"])
        assert part["offset"] == offset
        assert part["size"] == len(raw)
        assert len(data) <= CHUNK_BYTES
        if not data:
            break
        fetched += data
        offset += len(data)
    assert fetched == raw


def test_reading_past_the_end_gives_nothing_and_the_size(tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    path.write_bytes(b"abc")
    assert read_from(path, 10) == {"offset": 10, "data": "", "size": 3}


def test_what_is_hidden_or_unfinished_is_no_reading(tmp_path: Path) -> None:
    for name in (".plan.json", ".reserve", "train.json.part", "train.json", "events.jsonl"):
        (tmp_path / name).write_text("{}")
    assert [path.name for path in readings_of(tmp_path)] == ["events.jsonl", "train.json"]
