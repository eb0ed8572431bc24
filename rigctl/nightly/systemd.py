"""The timers on the controller: one begins the night, one looks every hour whether a reminder is due."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rigctl.errors import RigctlError, UsageError
from rigctl.nightly.night import STOP_S
from rigctl.store.files import replace_durably, writing

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rigctl.model.nightly import NightlySpec

NIGHT, REMIND = "rigctl-nightly", "rigctl-nightly-remind"
SPARE_S = 3600
"""What a night may take beyond its window: stopping burns, judging, reports; seconds."""
_TIMEOUT_S = 60
_SYSTEM = Path("/etc/systemd/system")
_USER = Path("~/.config/systemd/user")


class SystemdRefused(RigctlError):
    """systemctl did not do what it was asked."""


@dataclass(frozen=True)
class Place:
    """Where units are, and which manager they belong to."""

    system: bool
    folder: Path

    @classmethod
    def of(cls, *, system: bool) -> Place:
        """The system's own, or those of whoever runs rigctl."""
        return cls(system, _SYSTEM if system else _USER.expanduser())

    @property
    def environment_file(self) -> str:
        """A file of `NAME=value` lines for secrets: read by systemd, seen by nobody else."""
        return "/etc/rigctl/nightly.env" if self.system else "%h/.config/rigctl/nightly.env"


def units(spec: NightlySpec, words: tuple[str, ...], folder: Path, place: Place) -> dict[str, str]:
    """Return the unit files by name.

    Args:
        spec: When the night begins and how long it is.
        words: What `rigctl nightly run` is given.
        folder: Where it runs.
        place: Where they go.
    """
    program = [sys.executable, "-m", "rigctl", "nightly"]
    wanted = "multi-user.target" if place.system else "default.target"
    night = _service(
        "Accept the rigs of this night", [*program, "run", "--catch-up", *words], folder, place,
        limit_s=spec.window.seconds + SPARE_S,
    )  # fmt: skip
    remind = _service("Remind of rigs that stay bad", [*program, "remind", *words], folder, place, limit_s=600)
    begin = f"*-*-* {spec.window.begin:%H:%M}:00"
    return {
        f"{NIGHT}.service": night,
        # A controller that was off begins when it is on again: `run --catch-up` sees whether there is time.
        f"{NIGHT}.timer": _timer("Begin the night of the rigs", begin, wanted),
        f"{REMIND}.service": remind,
        f"{REMIND}.timer": _timer("Look whether a reminder is due", "hourly", wanted),
    }


def install(files: Mapping[str, str], place: Place) -> None:
    """Write the units and start the timers.

    Raises:
        UsageError: there is no systemd here, or the folder cannot be written.
        SystemdRefused: systemctl refused.
    """
    _require_systemd()
    with writing(place.folder):
        place.folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        replace_durably(place.folder / name, text.encode())
    systemctl(place, "daemon-reload")
    systemctl(place, "enable", "--now", f"{NIGHT}.timer", f"{REMIND}.timer")


def remove(place: Place) -> list[str]:
    """Stop the timers and remove the units; returns what was there. Raises as `install`."""
    _require_systemd()
    names = [f"{unit}.{kind}" for unit in (NIGHT, REMIND) for kind in ("timer", "service")]
    present = [name for name in names if (place.folder / name).exists()]
    if present:
        systemctl(place, "disable", "--now", *(name for name in present if name.endswith(".timer")))
        for name in present:
            (place.folder / name).unlink()
        systemctl(place, "daemon-reload")
    return present


def state(place: Place) -> dict[str, str]:
    """What systemd says of the night's timer: `next`, `last`, `active`; empty where it is not installed."""
    if shutil.which("systemctl") is None or not (place.folder / f"{NIGHT}.timer").exists():
        return {}
    shown = systemctl(place, "show", f"{NIGHT}.timer", "--property=ActiveState,LastTriggerUSec,NextElapseUSecRealtime")
    found = dict(line.partition("=")[::2] for line in shown.splitlines())
    return {
        "active": found.get("ActiveState", ""),
        "last": found.get("LastTriggerUSec", ""),
        "next": found.get("NextElapseUSecRealtime", ""),
    }


def systemctl(place: Place, *words: str) -> str:
    """Ask systemd. Raises SystemdRefused with its last line."""
    manager = [] if place.system else ["--user"]
    done = subprocess.run(
        ["systemctl", *manager, *words], capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
    )
    if done.returncode:
        last = (done.stderr.strip() or done.stdout.strip() or f"exit status {done.returncode}").splitlines()[-1]
        hint = (
            "run it as root, or without --system"
            if place.system
            else "`loginctl enable-linger` keeps it without a login"
        )
        raise SystemdRefused(f"systemctl {' '.join(words)}: {last}", hint)
    return done.stdout


def _require_systemd() -> None:
    if shutil.which("systemctl") is None:
        raise UsageError("there is no systemd here", "let cron run `rigctl nightly run` at the window's begin")


def _service(about: str, argv: list[str], folder: Path, place: Place, *, limit_s: float) -> str:
    # A percent sign means something to systemd, and so does a dollar sign.
    command = " ".join(shlex.quote(word).replace("%", "%%").replace("$", "$$") for word in argv)
    return f"""[Unit]
Description={about}
Wants=network-online.target
After=network-online.target

[Service]
Type=oneshot
WorkingDirectory={str(folder).replace("%", "%%")}
EnvironmentFile=-{place.environment_file}
ExecStart={command}
TimeoutStartSec={limit_s:.0f}
KillSignal=SIGINT
KillMode=mixed
TimeoutStopSec={STOP_S + 60}
"""


def _timer(about: str, when: str, wanted: str) -> str:
    return f"""[Unit]
Description={about}

[Timer]
OnCalendar={when}
Persistent=true

[Install]
WantedBy={wanted}
"""
