"""The timers: what is written, what systemd thinks of it, and what is said where there is none."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from rigctl.errors import UsageError
from rigctl.nightly import systemd
from rigctl.nightly.systemd import NIGHT, REMIND, Place, SystemdRefused, install, remove, state, units
from tests.nightly.park import spec

if TYPE_CHECKING:
    from pathlib import Path

WORDS = ("all", "-i", "/srv/my rigs/100%/inventory", "--runs", "/srv/$runs")


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """What systemctl was asked; it answers as a timer that waits."""
    seen: list[tuple[str, ...]] = []

    def answer(words: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        seen.append(tuple(words))
        shown = "ActiveState=active\nLastTriggerUSec=\nNextElapseUSecRealtime=Tue 2026-12-01 22:00:00 CET\n"
        return subprocess.CompletedProcess(words, 0, shown if "show" in words else "", "")

    monkeypatch.setattr(systemd.subprocess, "run", answer)
    monkeypatch.setattr(systemd.shutil, "which", lambda _name: "/usr/bin/systemctl")
    return seen


def test_the_night_begins_with_the_window_and_ends_after_it(tmp_path: Path) -> None:
    files = units(spec(), WORDS, tmp_path, Place(system=False, folder=tmp_path))
    assert set(files) == {f"{name}.{kind}" for name in (NIGHT, REMIND) for kind in ("service", "timer")}
    assert "OnCalendar=*-*-* 22:00:00\nPersistent=true" in files[f"{NIGHT}.timer"]
    assert "OnCalendar=hourly" in files[f"{REMIND}.timer"]
    night = files[f"{NIGHT}.service"]
    assert f"TimeoutStartSec={9 * 3600}\n" in night
    assert "KillMode=mixed\nTimeoutStopSec=360\n" in night, "an acceptance is interrupted once, and may judge"
    assert "nightly run --catch-up all -i '/srv/my rigs/100%%/inventory' --runs '/srv/$$runs'\n" in night
    assert "EnvironmentFile=-%h/.config/rigctl/nightly.env" in night
    assert "WantedBy=default.target" in files[f"{NIGHT}.timer"]
    system = units(spec(), WORDS, tmp_path, Place(system=True, folder=tmp_path))
    assert "WantedBy=multi-user.target" in system[f"{NIGHT}.timer"]
    assert "EnvironmentFile=-/etc/rigctl/nightly.env" in system[f"{NIGHT}.service"]


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed here")
def test_systemd_understands_them(tmp_path: Path) -> None:
    for name, text in units(spec(), WORDS, tmp_path, Place(system=True, folder=tmp_path)).items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    names = [str(path) for path in sorted(tmp_path.iterdir())]
    done = subprocess.run(["systemd-analyze", "verify", *names], capture_output=True, text=True, check=False)
    own = [line for line in done.stderr.splitlines() if "rigctl-nightly" in line]
    assert own == []


def test_installed_shown_and_removed(tmp_path: Path, asked: list[tuple[str, ...]]) -> None:
    place = Place(system=False, folder=tmp_path / "user")
    assert state(place) == {}
    install(units(spec(), WORDS, tmp_path, place), place)
    assert asked == [
        ("systemctl", "--user", "daemon-reload"),
        ("systemctl", "--user", "enable", "--now", f"{NIGHT}.timer", f"{REMIND}.timer"),
    ]
    assert state(place) == {"active": "active", "last": "", "next": "Tue 2026-12-01 22:00:00 CET"}
    gone = remove(place)
    assert len(gone) == 4
    assert list(place.folder.iterdir()) == []
    assert asked[-1] == ("systemctl", "--user", "daemon-reload")
    assert remove(place) == []


def test_a_refusal_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(words: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess(words, 1, "", "Failed to connect to bus: No medium found\n")

    monkeypatch.setattr(systemd.subprocess, "run", refuse)
    monkeypatch.setattr(systemd.shutil, "which", lambda _name: "/usr/bin/systemctl")
    for system, hint in ((False, "enable-linger"), (True, "as root")):
        place = Place(system=system, folder=tmp_path)
        with pytest.raises(SystemdRefused, match="No medium found") as refused:
            install({}, place)
        assert hint in refused.value.hint


def test_where_there_is_no_systemd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(systemd.shutil, "which", lambda _name: None)
    place = Place(system=False, folder=tmp_path)
    with pytest.raises(UsageError, match="there is no systemd here"):
        install({}, place)
    assert state(place) == {}


def test_places() -> None:
    assert str(Place.of(system=True).folder) == "/etc/systemd/system"
    assert Place.of(system=False).folder.parts[-3:] == (".config", "systemd", "user")
