"""What each card is set to: read from nvidia-smi's rows, set again on the way back, and compared after it."""

from __future__ import annotations

import pytest

from rigctl.model.upgrade import Capture, Card
from rigctl.upgrade.compare import all_differences
from rigctl.upgrade.on_rig import cards

ROWS = """\
GPU-a, 480.00, Enabled
GPU-b, [N/A], Disabled
No devices were found
"""


def captured(**what: object) -> Capture:
    card = Card(uuid="GPU-a", place="root0", model="RTX", **what)
    return Capture(boot_id="b", kernel="5.15", loaded="515", packages=(), files={}, cards=(card,))


def test_what_a_card_does_not_tell_is_not_known():
    assert cards.read_settings(ROWS) == {
        "GPU-a": {"power_limit_w": 480.0, "persistence": True},
        "GPU-b": {"power_limit_w": None, "persistence": False},
    }


def test_only_what_differs_is_set_and_a_card_that_is_gone_is_left_out(monkeypatch):
    said = []

    def run(*argv, **_):
        said.append(argv[1:])
        return 0, ROWS, ""

    monkeypatch.setattr(cards, "run", run)
    cards.set_cards(
        [
            {"uuid": "GPU-a", "power_limit_w": 350.0, "persistence": True},
            {"uuid": "GPU-b", "power_limit_w": None, "persistence": True},
            {"uuid": "GPU-c", "power_limit_w": 350.0, "persistence": True},
        ]
    )
    assert said[1:] == [("-i", "GPU-a", "-pl", "350"), ("-i", "GPU-b", "-pm", "1")]


def test_a_driver_that_does_not_answer_tells_nothing(monkeypatch):
    monkeypatch.setattr(cards, "run", lambda *_argv, **_: (124, "", "did not end"))
    assert cards.settings() == {}


@pytest.mark.parametrize(
    ("after", "said"),
    [
        ({"power_limit_w": 480, "persistence": True}, ()),
        (
            {"power_limit_w": 450, "persistence": True},
            ("GPU-a at root0: its power limit was 480 W, is 450 W",),
        ),
        (
            {"power_limit_w": 480, "persistence": False},
            ("GPU-a at root0: its persistence mode was on, is off",),
        ),
        (
            {},
            (
                "GPU-a at root0: its power limit was 480 W, is not told",
                "GPU-a at root0: its persistence mode was on, is not told",
            ),
        ),
    ],
)
def test_another_limit_or_mode_than_before_is_a_difference(after, said):
    assert all_differences(captured(power_limit_w=480, persistence=True), captured(**after)) == said


def test_a_capture_of_an_earlier_version_is_read_and_compares_what_it_has():
    old = captured().model_dump(mode="json")
    del old["cards"][0]["power_limit_w"], old["cards"][0]["persistence"]
    assert all_differences(Capture.model_validate(old), captured(power_limit_w=450, persistence=False)) == ()
