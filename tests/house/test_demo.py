"""The demo's order of things, and that its rigs go down however it ends."""

from __future__ import annotations

import contextlib
from types import SimpleNamespace

import pytest

from rigctl import demo
from rigctl.cli.demo import named_fault, spoken
from rigctl.errors import ChangeIncomplete, UsageError


class Heard:
    def __init__(self):
        self.lines = []

    @contextlib.contextmanager
    def stage(self, title):
        self.lines.append(title)
        yield

    def say(self, text):
        self.lines.append(text)

    def watch(self, progress):
        return contextlib.nullcontext()

    def watch_provision(self, progress):
        return contextlib.nullcontext()


@pytest.fixture
def world(monkeypatch, tmp_path):
    """A demo whose parts only write down that they were called."""
    done = []
    state = SimpleNamespace(inventory=tmp_path / "inventory")
    rigs = (SimpleNamespace(name="rig1"), SimpleNamespace(name="rig2"))
    monkeypatch.setattr(demo, "up", lambda _options, say: done.append("up") or state)
    monkeypatch.setattr(demo, "down", lambda *_a, **_k: done.append("down"))
    monkeypatch.setattr(demo.faults, "apply", lambda _state, rig, name, _parameters: done.append(f"{name} on {rig}"))
    monkeypatch.setattr(demo, "load_fleet", lambda _inventory: rigs)
    monkeypatch.setattr(
        demo, "provision", lambda _options, _watch: done.append("provision") or SimpleNamespace(rigs=[])
    )
    monkeypatch.setattr(demo, "start_run", lambda _options: "run")
    monkeypatch.setattr(demo, "accept", lambda *_a: done.append("accept") or "outcome")
    options = demo.DemoOptions(count=2, state=tmp_path / "state", runs=tmp_path / "runs")
    return SimpleNamespace(done=done, options=options, monkeypatch=monkeypatch)


def test_order(world):
    assert demo.run_demo(world.options, Heard()) == "outcome"
    assert world.done == ["up", "provision", "accept", "down"]


def test_a_fault_comes_between_provisioning_and_acceptance(world):
    options = demo.DemoOptions(2, world.options.state, world.options.runs, fault="pump_dead")
    demo.run_demo(options, Heard())
    assert world.done == ["up", "provision", "pump_dead on rig2", "accept", "down"]


def test_an_unknown_fault_is_found_before_anything_is_brought_up(world):
    with pytest.raises(UsageError, match="no fault is called gremlins") as caught:
        demo.run_demo(demo.DemoOptions(2, world.options.state, world.options.runs, fault="gremlins"), Heard())
    assert "pump_dead" in caught.value.hint
    assert world.done == []


@pytest.mark.parametrize("error", [KeyboardInterrupt, ChangeIncomplete("rig1: no driver", "read the log")])
def test_rigs_go_down_when_it_breaks_off(world, error):
    def broken(_options, _watch):
        raise error

    world.monkeypatch.setattr(demo, "provision", broken)
    with pytest.raises((KeyboardInterrupt, ChangeIncomplete)):
        demo.run_demo(world.options, Heard())
    assert world.done == ["up", "down"]


def test_kept_rigs_stay_and_it_says_how_to_take_them_down(world):
    heard = Heard()
    demo.run_demo(demo.DemoOptions(2, world.options.state, world.options.runs, keep=True), heard)
    assert "down" not in world.done
    assert f"rigctl sim down --state {world.options.state}" in heard.lines[-1]


def test_a_fault_with_parameters():
    assert named_fault("ssh_down,when=load,seconds=20") == ("ssh_down", {"when": "load", "seconds": "20"})
    assert named_fault(None) == (None, {})
    with pytest.raises(UsageError, match="'load' is not KEY=VALUE"):
        named_fault("ssh_down,load")


@pytest.mark.parametrize(("seconds", "words"), [(6.6, "7 s"), (60, "1 min 0 s"), (119.7, "2 min 0 s")])
def test_durations_as_people_say_them(seconds, words):
    assert spoken(seconds) == words
