"""Messages through Apprise to a server of the tests' own, and the heartbeat."""

from __future__ import annotations

import json
import threading
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import pytest

from rigctl.errors import UsageError
from rigctl.model.nightly import Secret
from rigctl.nightly import sending
from rigctl.nightly.informing import inform
from rigctl.nightly.sending import NotTold, beat, require_secrets, reveal, send
from rigctl.nightly.telling import Found, after_night, reminders
from rigctl.nightly.told import Message, Service
from tests.nightly.park import record, spec
from tests.nightly.test_telling import NOW, WARM

if TYPE_CHECKING:
    from collections.abc import Iterator

# Apprise asks Python's own module for the kind of an image where there is one (until 3.12).
pytestmark = pytest.mark.filterwarnings("ignore:'imghdr' is deprecated:DeprecationWarning")
MESSAGE = Message(kind="change", title="rigctl: 1 of 2 FAILED", body="FAIL rig2: warm")


class Server(ThreadingHTTPServer):
    """Keeps what it is sent; answers with `status`, and with 500 on paths that are `down`."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.got: list[tuple[str, str, bytes]] = []
        self.status = 200
        self.down: set[str] = set()

    @property
    def port(self) -> int:
        return int(self.server_address[1])

    @property
    def titles(self) -> list[str]:
        return [json.loads(body)["title"] for _, _, body in self.got]


class Handler(BaseHTTPRequestHandler):
    server: Server

    def answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.server.got.append((self.command, self.path, body))
        self.send_response(500 if self.path in self.server.down else self.server.status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_GET = do_POST = answer  # noqa: N815 - http.server's names

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    with Server() as made:
        thread = threading.Thread(target=made.serve_forever, daemon=True)
        thread.start()
        monkeypatch.setenv("TEST_NOTIFY", f"json://127.0.0.1:{made.port}/hook")
        monkeypatch.setenv("TEST_BEAT", f"http://127.0.0.1:{made.port}/ping/x/")
        yield made
        made.shutdown()
        thread.join()


NOTIFY, BEAT = Secret(env="TEST_NOTIFY"), Secret(env="TEST_BEAT")


def test_a_message_arrives(server: Server) -> None:
    send(MESSAGE, NOTIFY)
    ((method, path, body),) = server.got
    assert (method, path) == ("POST", "/hook")
    told = json.loads(body)
    assert (told["title"], told["message"], told["type"]) == (MESSAGE.title, MESSAGE.body, "failure")


def test_a_week_is_told_exactly(server: Server) -> None:
    """Well, bad for three nights, reminded twice a day, well again: one change, its reminders, one all-clear."""
    wishes = spec(quiet_hours={"begin": "21:00", "end": "07:00"})
    known: dict[str, Service] = {}
    for day, wrong in enumerate(("", WARM, WARM, WARM, "", "")):
        at = NOW.replace(day=1 + day)
        found = Found(record(("rig1", ""), ("rig2", wrong)))
        known = inform((NOTIFY,), known, partial(after_night, found=found, spec=wishes, now=at), anew=True).services
        for hour in range(7, 30):
            then = at.replace(hour=hour % 24, day=1 + day + hour // 24)
            known = inform((NOTIFY,), known, partial(reminders, spec=wishes, now=then), anew=False).services
    change, again, clear = (
        "rigctl: 1 of 2 FAILED · 1 ok (23:00–03:00 UTC)",
        "rigctl: 1 rig still bad: rig2",
        "rigctl: rig2 well again",
    )
    assert server.titles[0] == change
    assert server.titles[-1] == clear
    assert server.titles.count(change) == server.titles.count(clear) == 1
    assert set(server.titles[1:-1]) == {again}
    assert server.titles.count(again) == 5, "18:00 of the first day, then 7:00 and 19:00 of two days"


def test_what_is_not_taken_is_said_without_the_address(server: Server) -> None:
    server.status = 500
    with pytest.raises(NotTold) as refused:
        send(MESSAGE, NOTIFY)
    assert "variable TEST_NOTIFY did not take the message" in refused.value.message
    assert str(server.port) not in refused.value.message + refused.value.hint


def test_an_address_that_means_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEST_NOTIFY", "nonsense")
    with pytest.raises(UsageError, match="variable TEST_NOTIFY is no address that Apprise knows"):
        send(MESSAGE, NOTIFY)
    monkeypatch.setenv("TEST_BEAT", "file:///etc/passwd")
    with pytest.raises(UsageError, match="is no http address"):
        beat(BEAT)


@pytest.mark.parametrize(("how", "path"), [("", "/ping/x"), ("start", "/ping/x/start"), ("fail", "/ping/x/fail")])
def test_the_heartbeat(server: Server, how: str, path: str) -> None:
    beat(BEAT, how, "2 runs")
    assert server.got == [("POST", path, b"2 runs")]
    server.got.clear()
    beat(BEAT, how)
    assert server.got == [("GET", path, b"")]


def test_a_heartbeat_that_nobody_hears_is_tried_again_and_then_said(server: Server) -> None:
    server.status = 503
    with pytest.raises(NotTold, match="the heartbeat in variable TEST_BEAT was not heard"):
        beat(BEAT)
    assert len(server.got) == sending.HEARTBEAT_TIMES


def test_secrets_are_found_before_the_night(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TEST_NOTIFY", raising=False)
    with pytest.raises(UsageError, match="the environment has no TEST_NOTIFY"):
        require_secrets(spec(notify=[{"env": "TEST_NOTIFY"}]))
    with pytest.raises(UsageError, match="the environment has no TEST_BEAT"):
        require_secrets(spec(heartbeat={"env": "TEST_BEAT"}))
    require_secrets(spec())


def test_the_keyring(monkeypatch: pytest.MonkeyPatch) -> None:
    import keyring  # noqa: PLC0415
    from keyring.errors import NoKeyringError  # noqa: PLC0415

    kept = {("rigctl", "notify"): "json://127.0.0.1"}
    monkeypatch.setattr(keyring, "get_password", lambda service, user: kept.get((service, user)))
    assert reveal(Secret(keyring="rigctl/notify")) == "json://127.0.0.1"
    with pytest.raises(UsageError, match="the keyring has no rigctl/other"):
        reveal(Secret(keyring="rigctl/other"))

    def none(*_: str) -> str:
        raise NoKeyringError("no backend")

    monkeypatch.setattr(keyring, "get_password", none)
    with pytest.raises(UsageError, match="the keyring cannot be read: no backend"):
        reveal(Secret(keyring="rigctl/notify"))
