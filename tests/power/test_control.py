"""Off, on and cycle of a rig: in good order first, never under somebody's feet, and the truth about what came of it."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from rigctl.errors import ChangeIncomplete, UsageError
from rigctl.model.power import Power, Wake
from rigctl.power import control as control_module
from rigctl.power import system as system_module
from rigctl.power.control import Asked, PowerControl
from rigctl.power.switch import SwitchFailed
from rigctl.power.system import Use

WAKE = Power(wake=Wake(mac="52:54:00:12:34:56"))


@dataclass
class Rig:
    """A rig that shuts down, loses its current and starts again."""

    up: bool = True
    current: bool = True
    boots: int = 1
    used: Use | None = field(default_factory=lambda: Use((), ()))
    shuts_down: bool = True
    starts_with_mains: bool = True
    done: list[str] = field(default_factory=list)

    def use(self) -> Use | None:
        return self.used if self.up else None

    def boot_id(self) -> str | None:
        return f"boot-{self.boots}" if self.up else None

    def shut_down(self) -> None:
        self.done.append("shutdown")
        if self.shuts_down:
            self.up = False

    def answers(self) -> bool:
        return self.up

    def start(self) -> None:
        self.boots += 1
        self.up = True


@dataclass
class Way:
    """A way to the supply of a rig."""

    rig: Rig
    name: str = "IPMI at 192.0.2.51"
    cuts_mains: bool = False
    broken: bool = False
    another_rigs: bool = False

    def _ask(self) -> None:
        if self.broken:
            raise SwitchFailed(f"{self.name}: no answer", "is it there?")

    def state(self) -> str:
        self._ask()
        on = self.rig.current if self.cuts_mains else self.rig.up or self.rig.current
        return "on" if on else "off"

    def set_on(self) -> None:
        self._ask()
        self.rig.done.append(f"{self.name} on")
        self.rig.current = True
        if self.rig.starts_with_mains and not self.another_rigs:
            self.rig.start()

    def set_off(self) -> None:
        self._ask()
        self.rig.done.append(f"{self.name} off")
        self.rig.current = False
        if not self.another_rigs:
            self.rig.up = False


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SHUTDOWN_S", "SETTLE_S", "DARK_S", "_LOOK_S"):
        monkeypatch.setattr(control_module, name, 0.02)
    monkeypatch.setattr(system_module, "LOOK_S", 0.01)


def controlled(rig: Rig, *ways: Way, said: list[str] | None = None) -> PowerControl:
    made = PowerControl("rig1", WAKE, rig, (said if said is not None else []).append)
    made._power = Power.model_construct(ipmi=None, plug=None, wake=None)
    made._switches = list(ways)
    return made


SOON = Asked(wait_s=0.2)


def test_a_cycle_shuts_down_cuts_and_starts_a_new_boot() -> None:
    rig = Rig()
    done = controlled(rig, Way(rig)).cycle(SOON)
    assert rig.done == ["shutdown", "IPMI at 192.0.2.51 off", "IPMI at 192.0.2.51 on"]
    assert (done.state, done.shut_down, done.boot_id_before, done.boot_id_after) == (
        "on", "in good order", "boot-1", "boot-2",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("used", "word", "evicts", "ignores"),
    [
        (Use((), ("alice computes on slot1: train.py",)), "--evict-users", True, False),
        (Use(("run r1 of bob@lab is under way",), ()), "--ignore-lock", False, True),
    ],
)
def test_a_rig_in_use_keeps_its_current_unless_the_right_word_is_said(
    used: Use, word: str, evicts: bool, ignores: bool
) -> None:
    rig = Rig(used=used)
    wrong = Asked(evict_users=not evicts, ignore_lock=not ignores, wait_s=0.2)
    with pytest.raises(ChangeIncomplete, match=r"alice computes|bob@lab") as refused:
        controlled(rig, Way(rig)).cycle(wrong)
    assert word in refused.value.hint
    assert rig.done == []
    controlled(rig, Way(rig)).cycle(Asked(evict_users=evicts, ignore_lock=ignores, wait_s=0.2))
    assert rig.boots == 2


def test_a_rig_that_does_not_answer_is_switched_and_that_is_said() -> None:
    rig, said = Rig(up=False), []
    done = controlled(rig, Way(rig), said=said).cycle(SOON)
    assert done.shut_down == "at once"
    assert rig.done == ["IPMI at 192.0.2.51 off", "IPMI at 192.0.2.51 on"]
    assert "nobody can be asked" in said[0]


def test_a_system_that_does_not_go_is_switched_off_all_the_same() -> None:
    rig, said = Rig(shuts_down=False), []
    done = controlled(rig, Way(rig), said=said).off(SOON)
    assert (done.shut_down, done.state) == ("at once", "off")
    assert any("still answers" in words for words in said)


def test_hard_asks_nobody() -> None:
    rig = Rig()
    assert controlled(rig, Way(rig)).off(Asked(hard=True)).shut_down == "at once"
    assert rig.done == ["IPMI at 192.0.2.51 off"]


def test_the_next_way_is_taken_where_the_first_does_not_answer() -> None:
    rig, said = Rig(), []
    plug = Way(rig, "plug at http://192.0.2.101", cuts_mains=True)
    done = controlled(rig, Way(rig, broken=True), plug, said=said).status()
    assert (done.via, done.state) == (plug.name, "on")
    assert said == ["IPMI at 192.0.2.51: no answer; the next way is taken"]
    with pytest.raises(SwitchFailed, match="no answer"):
        controlled(rig, Way(rig, broken=True)).status()


def test_a_plug_that_was_left_off_is_switched_on_before_the_controller_is_asked() -> None:
    rig = Rig(up=False, current=False)
    plug = Way(rig, "plug", cuts_mains=True, another_rigs=True)
    done = controlled(rig, Way(rig), plug).on(SOON)
    assert rig.done == ["plug on", "IPMI at 192.0.2.51 on"]
    assert done.boot_id_after == "boot-2"


def test_a_rig_that_does_not_come_back_is_an_incomplete_change() -> None:
    rig = Rig(starts_with_mains=False)
    with pytest.raises(ChangeIncomplete, match="does not answer after") as failed:
        controlled(rig, Way(rig)).cycle(SOON)
    assert "AC power loss" in failed.value.hint
    assert failed.value.exit_code == 4


def test_the_plug_of_another_rig_is_found_out_by_the_boot() -> None:
    rig = Rig(shuts_down=False)
    with pytest.raises(ChangeIncomplete, match="still in the same boot"):
        controlled(rig, Way(rig, "plug", cuts_mains=True, another_rigs=True)).cycle(SOON)


def test_wake_on_lan_alone_switches_on_and_cannot_cycle(monkeypatch: pytest.MonkeyPatch) -> None:
    rig = Rig(up=False)
    monkeypatch.setattr(control_module, "wake", lambda _spec: rig.start())
    alone = PowerControl("rig1", WAKE, rig, lambda _text: None)
    assert alone.status().state == "unknown"
    assert alone.on(SOON).boot_id_after == "boot-2"
    with pytest.raises(UsageError, match="cannot switch off"):
        alone.cycle(SOON)
    assert alone.off(SOON).state == "off"
    rig.start()
    rig.shuts_down = False
    with pytest.raises(ChangeIncomplete, match="does not shut down by itself"):
        alone.off(SOON)
