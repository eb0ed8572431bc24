"""The session with one rig's agent: what is asked again, what is not, and what ends it."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from rigctl.accept import _connected
from rigctl.errors import CommandFailed, ConnectionLost, HostKeyChanged, LoginRefused, RigUnreachable
from rigctl.fleet.delivery import AgentSilent
from rigctl.measure import session as session_module
from rigctl.measure.rig import RigMeasurement
from rigctl.measure.session import RigSession
from rigctl.model.run import RunRig
from rigctl.store import RunDir
from tests.measure.test_plan import profile
from tests.measure.test_rig import RIG


class Road:
    """A connection and an agent in one, which fail as they are told, once for each error."""

    def __init__(self, *, calls: tuple[Exception, ...] = (), connects: tuple[Exception, ...] = ()) -> None:
        self._calls, self._connects = list(calls), list(connects)
        self.connected_times = 0

    def call(self, *_args: str, **_more: Any) -> dict[str, Any]:
        if self._calls:
            raise self._calls.pop(0)
        return {"answer": True}

    def connect(self) -> None:
        if self._connects:
            raise self._connects.pop(0)
        self.connected_times += 1

    def close(self) -> None:
        """Nothing is open."""


@pytest.fixture
def ask(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(session_module, "MAX_WAIT_S", 0.01)

    def on(road: Road) -> tuple[RigSession, dict[str, Any]]:
        session = RigSession(RIG, threading.Event(), lambda _text: None)
        session.connection = session.agent = road
        return session, session.ask("poll", during="gpu_burn")

    return on


@pytest.mark.parametrize(
    ("calls", "connects"),
    [
        ((ConnectionLost("cut"),), ()),
        ((AgentSilent("no answer within 30 s"),), ()),
        ((ConnectionLost("cut"),), (RigUnreachable("no route"), RigUnreachable("no route"))),
        ((ConnectionLost("cut"),), (LoginRefused("System is booting up"),)),
    ],
    ids=["cut", "too slow once", "away for a while", "boots"],
)
def test_what_passes_is_waited_for_and_noted(ask, calls, connects):
    session, answer = ask(Road(calls=calls, connects=connects))
    assert answer == {"answer": True}
    assert len(session.cuts) == 1
    assert "during gpu_burn, then resumed" in session.cuts[0]


@pytest.mark.parametrize(
    ("calls", "connects", "error"),
    [
        ((CommandFailed("refused"),), (), CommandFailed),
        ((ConnectionLost("cut"),), (HostKeyChanged("another key"),), HostKeyChanged),
    ],
)
def test_what_time_does_not_mend_is_told_at_once(ask, calls, connects, error):
    with pytest.raises(error):
        ask(Road(calls=calls, connects=connects))


@pytest.mark.parametrize("connects", [(), (RigUnreachable("no route"),)])
def test_a_connection_that_broke_while_others_were_measured_is_made_again(tmp_path, connects):
    run_dir = RunDir.create(tmp_path, "accept", rigs=[RunRig(name="rig1", spec=RIG.spec, profile=profile())])
    measured = RigMeasurement(RIG, profile(), run_dir, None, threading.Event())
    measured.session = RigSession(RIG, threading.Event(), lambda _text: None)
    road = measured.session.connection = Road(connects=connects)
    assert _connected(measured, run_dir) is not bool(connects)
    assert road.connected_times == (0 if connects else 1)
    assert [entry.event for entry in run_dir.journal_entries()] == (["rig_error"] if connects else [])
