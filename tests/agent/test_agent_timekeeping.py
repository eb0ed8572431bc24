"""Who keeps the clock, as `timedatectl` says it."""

from __future__ import annotations

import pytest

from rigctl.agent import timekeeping
from rigctl.model.reading import TimeSyncFacts


@pytest.fixture
def timedatectl(tmp_path, monkeypatch):
    def put(script: str) -> None:
        program = tmp_path / "timedatectl"
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)

    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    return put


@pytest.mark.parametrize(
    ("said", "service", "synchronised"),
    [
        ("NTP=yes\nNTPSynchronized=yes", True, True),
        ("NTP=no\nNTPSynchronized=no", False, False),
        ("NTPSynchronized=yes\nNTP=no", False, True),
    ],
)
def test_both_words_are_read(timedatectl, said, service, synchronised):
    timedatectl(f"printf '{said}\\n'")
    found = TimeSyncFacts.model_validate(timekeeping.time_sync())
    assert (found.service, found.synchronised, found.reason) == (service, synchronised, None)


@pytest.mark.parametrize(
    "script", ["echo NTP=yes", "echo NTP=maybe; echo NTPSynchronized=yes", "echo refused >&2; exit 1"]
)
def test_what_is_not_said_is_not_known_and_has_its_reason(timedatectl, script):
    timedatectl(script)
    found = timekeeping.time_sync()
    assert None in (found["service"], found["synchronised"])
    assert found["reason"].startswith("timedatectl: ")


def test_a_rig_without_it(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "timedatectl" in timekeeping.time_sync()["reason"]
