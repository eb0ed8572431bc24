"""`rigctl power`: status, on, off, cycle; in good order first, and never under somebody's feet."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from rigctl.errors import ChangeIncomplete, RigError, UsageError
from rigctl.power.switch import OFF, ON, SwitchFailed, switches, wake
from rigctl.power.system import wait_until_back, wait_until_gone

if TYPE_CHECKING:
    from collections.abc import Callable

    from rigctl.model.power import Power
    from rigctl.power.switch import Switch
    from rigctl.power.system import System

SHUTDOWN_S = 120
"""A system is given so long to shut down, seconds."""
SETTLE_S = 20
"""Between the last sign of a system and the cut of its mains: disks are written after SSH has gone, seconds."""
DARK_S = 10
"""The supply stays without current so long, seconds: its capacitors must be empty."""
BACK_S = 300
_LOOK_S = 1.0


@dataclass(frozen=True)
class Asked:
    """What was asked for."""

    hard: bool = False
    """Switch off at once, without asking the system first."""
    evict_users: bool = False
    ignore_lock: bool = False
    wait_s: float = BACK_S
    """After switching on, the rig is waited for so long, seconds; 0: not at all."""


@dataclass
class Switched:
    """What became of a rig."""

    rig: str
    action: str
    via: str
    state: str
    """on · off · unknown: as the way to its supply says it at the end."""
    shut_down: str | None = None
    """in good order · at once: how it was switched off; None where it was not."""
    boot_id_before: str | None = None
    boot_id_after: str | None = None
    seconds: float = 0.0

    def as_json(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)


class PowerControl:
    """One rig's supply."""

    def __init__(self, rig: str, power: Power, system: System, say: Callable[[str], None]) -> None:
        self._rig = rig
        self._power = power
        self._system = system
        self._say = say
        self._switches = switches(power)

    def status(self) -> Switched:
        """Whether it is on. Raises SwitchFailed when no way can tell."""
        if not self._switches:
            answers = self._system.answers()
            return Switched(self._rig, "status", "SSH (wake-on-LAN cannot tell)", ON if answers else "unknown")
        switch, state = self._first(lambda one: one.state())
        return Switched(self._rig, "status", switch.name, state, boot_id_before=self._system.boot_id())

    def on(self, asked: Asked) -> Switched:
        """Switch on and wait until it answers. Raises ChangeIncomplete."""
        began = time.monotonic()
        done = Switched(self._rig, "on", "", "unknown", boot_id_before=self._system.boot_id())
        self._switch_on(done)
        self._wait_back(done, asked)
        done.seconds = round(time.monotonic() - began, 1)
        return done

    def off(self, asked: Asked) -> Switched:
        """Switch off: in good order where the system answers. Raises ChangeIncomplete."""
        began = time.monotonic()
        done = Switched(self._rig, "off", "", "unknown", boot_id_before=self._system.boot_id())
        self._refuse_in_use(asked)
        self._switch_off(done, asked)
        done.seconds = round(time.monotonic() - began, 1)
        return done

    def cycle(self, asked: Asked) -> Switched:
        """Off, ten seconds without current, on. Raises ChangeIncomplete."""
        if not self._switches:
            raise UsageError(f"{self._rig}: wake-on-LAN alone cannot switch off", "add ipmi or plug to its rig_power")
        began = time.monotonic()
        done = Switched(self._rig, "cycle", "", "unknown", boot_id_before=self._system.boot_id())
        self._refuse_in_use(asked)
        self._switch_off(done, asked)
        time.sleep(DARK_S)
        self._switch_on(done)
        self._wait_back(done, asked)
        if done.boot_id_after is not None and done.boot_id_after == done.boot_id_before:
            raise ChangeIncomplete(
                f"{self._rig} is still in the same boot: it never lost its current",
                f"does {done.via} belong to {self._rig}?",
            )
        done.seconds = round(time.monotonic() - began, 1)
        return done

    def _refuse_in_use(self, asked: Asked) -> None:
        use = self._system.use()
        if use is None:
            self._say(f"{self._rig} does not answer, so nobody can be asked whether it is in use")
            return
        if use.runs and not asked.ignore_lock:
            raise ChangeIncomplete(f"{self._rig}: {'; '.join(use.runs)}", "wait for its end, or --ignore-lock")
        if use.users and not asked.evict_users:
            users = "; ".join(use.users)
            raise ChangeIncomplete(f"{self._rig} is in use: {users}", "wait until it is free, or --evict-users")

    def _switch_off(self, done: Switched, asked: Asked) -> None:
        orderly = not asked.hard and self._shut_down()
        if not self._switches:
            if not orderly:
                raise ChangeIncomplete(
                    f"{self._rig} does not shut down by itself, and wake-on-LAN cannot switch off",
                    "add ipmi or plug to its rig_power",
                )
            done.via, done.state, done.shut_down = "its own shutdown", OFF, "in good order"
            return
        done.shut_down = "in good order" if orderly else "at once"
        if orderly:
            self._let_it_finish()
        switch, _ = self._first(lambda one: one.set_off())
        done.via, done.state = switch.name, self._reached(switch, OFF)

    def _shut_down(self) -> bool:
        """Whether the system went down by itself when asked."""
        if not self._system.answers():
            return False
        self._say(f"{self._rig} is asked to shut down")
        try:
            self._system.shut_down()
        except RigError as error:
            self._say(f"{self._rig} cannot be asked: {error.message}")
            return False
        if wait_until_gone(self._system, SHUTDOWN_S):
            return True
        self._say(f"{self._rig} still answers after {SHUTDOWN_S} s; it is switched off all the same")
        return False

    def _let_it_finish(self) -> None:
        """Wait for the controller's word that the system is off; where only mains can tell, for some seconds."""
        knows = [switch for switch in self._switches if not switch.cuts_mains]
        if not knows:
            time.sleep(SETTLE_S)
            return
        deadline = time.monotonic() + SHUTDOWN_S
        while time.monotonic() < deadline and knows[0].state() != OFF:
            time.sleep(_LOOK_S)

    def _switch_on(self, done: Switched) -> None:
        if self._switches:
            self._say(f"{self._rig} is switched on")
            # A plug that was left off holds back everything behind it.
            for plug in (one for one in self._switches if one.cuts_mains and len(self._switches) > 1):
                if plug.state() == OFF:
                    plug.set_on()
            switch, _ = self._first(lambda one: one.set_on())
            done.via, done.state = switch.name, self._reached(switch, ON)
        if self._power.wake is not None:
            # A board that does not start with its mains starts with this.
            wake(self._power.wake)
            done.via = done.via or f"wake-on-LAN to {self._power.wake.mac}"

    def _wait_back(self, done: Switched, asked: Asked) -> None:
        if asked.wait_s <= 0:
            return
        self._say(f"waiting for {self._rig}, {asked.wait_s:.0f} s at most")
        done.boot_id_after = wait_until_back(self._system, asked.wait_s)
        if done.boot_id_after is None:
            raise ChangeIncomplete(
                f"{self._rig} is switched on ({done.via}) and does not answer after {asked.wait_s:.0f} s",
                "does its board start when mains come back? (BIOS: restore on AC power loss); look at its console",
            )
        done.state = ON

    def _reached(self, switch: Switch, wanted: str) -> str:
        """The state once it is the wanted one. Raises ChangeIncomplete."""
        deadline = time.monotonic() + SHUTDOWN_S
        while (state := switch.state()) != wanted:
            if time.monotonic() >= deadline:
                raise ChangeIncomplete(f"{self._rig} stays {state} ({switch.name})", "look at it")
            time.sleep(_LOOK_S)
        return wanted

    def _first(self, ask: Callable[[Switch], Any]) -> tuple[Switch, Any]:
        """The first way that works, and its answer. Raises SwitchFailed where none does."""
        *others, last = self._switches
        for switch in others:
            try:
                return switch, ask(switch)
            except SwitchFailed as error:
                self._say(f"{error.message}; the next way is taken")
        return last, ask(last)
