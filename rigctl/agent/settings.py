"""What a run may change on a rig, as it was found: kept in a file before anything is changed, and put back at the end.

The unit's ExecStopPost puts it back, so that it happens whatever became of the guard. Nothing of it outlives a reboot
by itself: a driver that starts anew knows its own defaults, and services start as they are enabled.
"""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pynvml

from .errors import NvmlUnavailable
from .nvml import NVML_ERRORS, Nvml, words_of
from .places import write_atomically

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from .nvml import Card

RESTORED = "restored.json"
"""What was put back, beside the readings of the run."""
SERVICE_S = 10
"""systemd is given so long to queue the start of a service, seconds."""
_AUTOMATIC = 0
"""NVML's fan policy: the card itself cares for its fan."""


def _applications_clocks(handle: Any) -> list[int]:
    which = (pynvml.NVML_CLOCK_MEM, pynvml.NVML_CLOCK_GRAPHICS)
    return [int(pynvml.nvmlDeviceGetApplicationsClock(handle, clock)) for clock in which]


def _fan_policies(handle: Any) -> list[int]:
    fans = range(int(pynvml.nvmlDeviceGetNumFans(handle)))
    return [int(pynvml.nvmlDeviceGetFanControlPolicy_v2(handle, fan)) for fan in fans]


def _set_fan_policies(handle: Any, policies: list[int]) -> None:
    for fan, policy in enumerate(policies):
        if policy == _AUTOMATIC:
            pynvml.nvmlDeviceSetDefaultFanSpeed_v2(handle, fan)
        else:
            pynvml.nvmlDeviceSetFanControlPolicy(handle, fan, policy)


@dataclass(frozen=True)
class Setting:
    """One thing that can be set on a card, in the order in which it is put back."""

    name: str
    read: Callable[[Any], Any]
    write: Callable[[Any, Any], Any]
    words: Callable[[Any], str] = str


SETTINGS = (
    Setting("persistence mode", pynvml.nvmlDeviceGetPersistenceMode, pynvml.nvmlDeviceSetPersistenceMode),
    Setting(
        "power limit",
        pynvml.nvmlDeviceGetPowerManagementLimit,
        pynvml.nvmlDeviceSetPowerManagementLimit,
        lambda milliwatts: f"{milliwatts / 1000:g} W",
    ),
    Setting(
        "application clocks",
        _applications_clocks,
        lambda handle, clocks: pynvml.nvmlDeviceSetApplicationsClocks(handle, *clocks),
        lambda clocks: f"{clocks[0]} and {clocks[1]} MHz",
    ),
    Setting("fan control", _fan_policies, _set_fan_policies, lambda policies: f"policies {policies}"),
)
POWER_LIMIT = SETTINGS[1]


@dataclass
class Before:
    """The rig as it was found."""

    cards: dict[str, dict[str, Any]] = field(default_factory=dict)
    """By UUID, then by the setting's name; what a card does not expose is not in it."""
    services: list[str] = field(default_factory=list)
    """Services that were stopped for this run."""

    def keep(self, path: Path) -> None:
        """Write it down, before anything is changed. Raises OSError."""
        write_atomically(path, json.dumps({"cards": self.cards, "services": self.services}))

    @classmethod
    def kept(cls, path: Path) -> Before | None:
        """Read it back; None where nothing was written (down)."""
        try:
            raw = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        return cls(dict(raw["cards"]), list(raw["services"]))


def read_settings(cards: tuple[Card, ...]) -> dict[str, dict[str, Any]]:
    """How every card is set now; a setting that cannot be read cannot have been changed by us, and is left out."""
    found: dict[str, dict[str, Any]] = {}
    for card in cards:
        values = {setting.name: _value(setting, card) for setting in SETTINGS}
        found[card.uuid] = {name: value for name, value in values.items() if value is not None}
    return found


def _value(setting: Setting, card: Card) -> Any:
    try:
        return setting.read(card.handle)
    except NVML_ERRORS:
        return None


@dataclass
class PutBack:
    """What was put back, and what could not be, in words."""

    restored: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)


def put_back(before: Before) -> PutBack:
    """Put back what differs from `before`: services first, which need no driver; then the cards' settings."""
    done = PutBack()
    for service in before.services:
        _start_service(service, done)
    if not before.cards:
        return done
    try:
        opened = Nvml()
    except NvmlUnavailable as error:
        done.failed.append(f"settings of the cards: {error.message}")
        return done
    present = {card.uuid: card for card in opened.cards}
    for uuid, wanted in before.cards.items():
        if uuid in present:
            _put_back_card(present[uuid], wanted, done)
        else:
            done.failed.append(f"card …{uuid[-4:]}: it is not there any more")
    opened.close()
    return done


def _put_back_card(card: Card, wanted: dict[str, Any], done: PutBack) -> None:
    for setting in SETTINGS:
        value = wanted.get(setting.name)
        if value is None:
            continue
        subject = f"slot{card.slot}: {setting.name}"
        try:
            found = setting.read(card.handle)
            if found == value:
                continue
            setting.write(card.handle, value)
            now = setting.read(card.handle)
        except NVML_ERRORS as error:
            done.failed.append(f"{subject} {setting.words(value)}: {words_of(error)}")
            continue
        if now == value:
            done.restored.append(f"{subject} {setting.words(value)} (was {setting.words(found)})")
        else:
            done.failed.append(f"{subject} {setting.words(value)}: the card stays at {setting.words(now)}")


def _start_service(service: str, done: PutBack) -> None:
    # Not waited for: a service may take longer to start than the unit that stops now is given.
    asked = ["systemctl", "start", "--no-block", service]
    try:
        said = subprocess.run(asked, capture_output=True, text=True, timeout=SERVICE_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        done.failed.append(f"service {service}: {error}")
        return
    if said.returncode == 0:
        done.restored.append(f"service {service} started again")
    else:
        done.failed.append(f"service {service}: {said.stderr.strip() or f'status {said.returncode}'}")
