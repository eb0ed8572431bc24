"""What one service did not take only that one gets again, and it knows in the end what the others know."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from rigctl.errors import UsageError
from rigctl.model.nightly import Secret
from rigctl.nightly import store
from rigctl.nightly.informing import NOBODY, Informed, inform
from rigctl.nightly.telling import Found, after_night, reminders
from rigctl.nightly.told import Kept, Message, Service, Told, Waiting
from tests.nightly.park import record, spec
from tests.nightly.test_sending import pytestmark, server
from tests.nightly.test_telling import NOW, WARM

if TYPE_CHECKING:
    from pathlib import Path

    from tests.nightly.test_sending import Server

__all__ = ["pytestmark", "server"]
CHAT, MAIL = Secret(env="TEST_CHAT"), Secret(env="TEST_MAIL")
FAILED, WELL = "rigctl: 1 of 1 FAILED · 0 ok (23:00–03:00 UTC)", "rigctl: rig1 well again"


class Two:
    """Two services, and what each knows."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.known: dict[str, Service] = {}

    def night(self, *rigs: tuple[str, str]) -> Informed:
        wishes = spec()
        return self._inform(lambda told: after_night(told, Found(record(*rigs)), wishes, NOW), anew=True)

    def later(self) -> Informed:
        wishes = spec()
        return self._inform(lambda told: reminders(told, wishes, NOW), anew=False)

    def _inform(self, decide: Any, *, anew: bool) -> Informed:
        self.server.got.clear()
        done = inform((CHAT, MAIL), self.known, decide, anew=anew)
        self.known = done.services
        return done

    @property
    def got(self) -> list[tuple[str, str]]:
        paths = [path for _, path, _ in self.server.got]
        return list(zip(paths, self.server.titles, strict=True))


@pytest.fixture
def two(server: Server, monkeypatch: pytest.MonkeyPatch) -> Two:
    for name in ("CHAT", "MAIL"):
        monkeypatch.setenv(f"TEST_{name}", f"json://127.0.0.1:{server.port}/{name.lower()}")
    return Two(server)


def test_only_the_one_that_refused_is_told_again(two: Two) -> None:
    two.server.down = {"/mail"}
    done = two.night(("rig1", WARM))
    assert two.got == [("/chat", FAILED), ("/mail", FAILED)]
    assert [error.message for error in done.refused] == ["the service in variable TEST_MAIL did not take the message"]
    assert len(done.messages) == 1
    assert two.later().refused
    assert two.got == [("/mail", FAILED)], "tried again within the hour, and refused again"
    two.server.down = set()
    two.later()
    assert two.got == [("/mail", FAILED)]
    two.later()
    assert two.got == []
    two.night(("rig1", WARM))
    assert two.got == []
    two.night(("rig1", ""))
    assert two.got == [("/chat", WELL), ("/mail", WELL)]


def test_the_first_that_refuses_keeps_nothing_from_the_second(two: Two) -> None:
    two.server.down = {"/chat"}
    two.night(("rig1", WARM))
    assert ("/mail", FAILED) in two.got
    two.night(("rig1", WARM))
    assert two.got == [("/chat", FAILED)], "the next night says it to the one that does not know"


def test_what_was_over_before_a_service_heard_of_it_is_not_told_to_it(two: Two) -> None:
    two.server.down = {"/mail"}
    two.night(("rig1", WARM))
    two.server.down = set()
    two.night(("rig1", ""))
    assert two.got == [("/chat", WELL)]


def test_of_two_messages_only_the_one_that_was_refused_comes_again(two: Two, monkeypatch: pytest.MonkeyPatch) -> None:
    two.night(("rig1", ""), ("rig2", WARM))
    sent: list[str] = []

    def send(message: Message, where: Secret) -> None:
        if message.kind == "clear" and where == MAIL and "clear" not in sent:
            sent.append("clear")
            raise UsageError("no", "no")
        sent.append(f"{where.env} {message.kind}")

    monkeypatch.setattr("rigctl.nightly.informing.send", send)
    two.night(("rig1", WARM), ("rig2", ""))
    assert sent == ["TEST_CHAT change", "TEST_CHAT clear", "TEST_MAIL change", "clear"]
    sent[:] = ["clear"]
    two.night(("rig1", WARM), ("rig2", ""))
    assert sent == ["clear", "TEST_MAIL clear"]


def test_a_missing_address_is_one_service_s_trouble(two: Two, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TEST_CHAT")
    done = two.night(("rig1", WARM))
    assert two.got == [("/mail", FAILED)]
    assert "the environment has no TEST_CHAT" in done.refused[0].message


def test_a_new_service_is_told_what_is_bad_and_an_old_one_is_forgotten(two: Two) -> None:
    two.night(("rig1", WARM))
    only = {"variable TEST_CHAT": two.known["variable TEST_CHAT"]}
    wishes = spec()
    done = inform((MAIL,), only, lambda told: after_night(told, Found(record(("rig1", WARM))), wishes, NOW), anew=True)
    assert list(done.services) == ["variable TEST_MAIL"]
    assert [one.title for one in done.messages] == [FAILED]


def test_without_a_service_everything_counts_as_told() -> None:
    wishes = spec()
    done = inform((), {}, lambda told: after_night(told, Found(record(("rig1", WARM))), wishes, NOW), anew=True)
    assert [one.title for one in done.messages] == [FAILED]
    again = inform((), done.services, lambda t: after_night(t, Found(record(("rig1", WARM))), wishes, NOW), anew=True)
    assert (list(again.services), again.messages, again.refused) == ([NOBODY], [], [])


def test_no_address_is_kept(two: Two, tmp_path: Path) -> None:
    two.server.down = {"/mail"}
    two.night(("rig1", WARM))
    kept = Kept(services=two.known)
    store.write(tmp_path, kept)
    assert str(two.server.port) not in (tmp_path / store.FILE).read_text(encoding="utf-8")
    assert store.read(tmp_path) == kept


def test_a_file_that_does_not_say_who_was_told_tells_everything_once_more(tmp_path: Path) -> None:
    (tmp_path / store.FILE).write_text(
        '{"schema_version": 1, "rigs": {"rig1": {"bad": "x"}}, "digest_at": ""}', "utf-8"
    )
    assert store.read(tmp_path) == Kept()
    (tmp_path / store.FILE).write_text('{"schema_version": 3}', encoding="utf-8")
    with pytest.raises(UsageError, match=r"nightly.json"):
        store.read(tmp_path)


def test_what_waits_survives_the_file(tmp_path: Path) -> None:
    message = Message(kind="clear", title=WELL, body="", rigs=("rig1",))
    kept = Kept(services={"variable X": Service(waiting=Waiting(messages=(message,), then=Told(digest_at="x")))})
    store.write(tmp_path, kept)
    assert store.read(tmp_path) == kept
