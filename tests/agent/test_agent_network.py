"""Network cards: speed and duplex from /sys, what both ends can do from the kernel's ethtool interface, the way out."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import pytest

from rigctl.agent import network
from rigctl.agent.network import carriers, fastest, link

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

ROUTES = (
    "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT\n"
    "{name}\t00000000\t010200C0\t0003\t0\t0\t100\t00000000\t0\t0\t0\n"
    "other\t000200C0\t00000000\t0001\t0\t0\t100\t00FFFFFF\t0\t0\t0\n"
)
GIGABIT = 1 << 1 | 1 << 3 | 1 << 5
UNTOLD = {"supported_mbit_per_s": None, "partner_mbit_per_s": None}


def card(sys: Path, name: str = "eno1", **files: str) -> Path:
    folder = sys / "class/net" / name
    folder.mkdir(parents=True)
    for file, text in files.items():
        (folder / file).write_text(text)
    return folder


def untold(_name: str) -> dict[str, int | None]:
    return dict(UNTOLD)


def test_a_link_that_is_up(tmp_path: Path) -> None:
    found = link(card(tmp_path, carrier="1\n", speed="1000\n", duplex="full\n"), untold)
    assert found == {"link": True, "speed_mbit_per_s": 1000, "duplex": "full", "wireless": False, **UNTOLD}


@pytest.mark.parametrize("speed", ["-1\n", "", "0\n", "unknown\n", "4294967295\n"])
def test_a_speed_that_is_none(tmp_path: Path, speed: str) -> None:
    found = link(card(tmp_path, carrier="0\n", speed=speed, duplex="unknown\n"), untold)
    assert (found["link"], found["speed_mbit_per_s"], found["duplex"]) == (False, None, None)


def test_a_card_that_is_off_tells_nothing(tmp_path: Path) -> None:
    folder = card(tmp_path)
    (folder / "wireless").mkdir()
    found = link(folder, untold)
    assert (found["link"], found["speed_mbit_per_s"], found["wireless"]) == (None, None, True)


def kernel(supported: int, partner: int, words: int = 4) -> Callable[[bytes], bytes]:
    """The kernel's half of ETHTOOL_GLINKSETTINGS: first how long the masks are, then the masks."""

    def ask(request: bytes) -> bytes:
        head = bytearray(request[: network._HEAD.size])
        if len(request) == len(head):
            head[15:16] = struct.pack("=b", -words)
            return bytes(head)
        masks = b"".join(mask.to_bytes(4 * words, "little") for mask in (supported, supported, partner))
        assert len(request) == len(head) + len(masks)
        assert request[15] == words
        return bytes(head) + masks

    return ask


def test_what_both_ends_can_do() -> None:
    own = GIGABIT | 1 << 47
    masks = network._masks(kernel(own, GIGABIT))
    assert masks == (own, own, GIGABIT)
    assert (fastest(own), fastest(GIGABIT)) == (2500, 1000)


@pytest.mark.parametrize(("mask", "speed"), [(0, None), (1 << 6 | 1 << 7, None), (1 << 89, 400_000), (1 << 12, 10_000)])
def test_the_fastest_of_a_mask(mask: int, speed: int | None) -> None:
    assert fastest(mask) == speed


def test_no_bit_stands_for_two_speeds() -> None:
    bits = [bit for own in network.MODES.values() for bit in own]
    assert len(bits) == len(set(bits))
    assert not {6, 7, 8, 9, 10, 11, 13, 14, 16, 49, 50, 51, 74} & set(bits), "these say no speed"


@pytest.mark.parametrize("words", [0, -3])
def test_an_answer_without_masks_is_none(words: int) -> None:
    assert network._masks(kernel(GIGABIT, GIGABIT, words)) is None


def test_an_answer_that_is_cut_is_none() -> None:
    whole = kernel(GIGABIT, GIGABIT)
    assert network._masks(lambda request: whole(request)[:70]) is None


def test_the_real_kernel_is_asked_and_an_interface_that_is_not_there_tells_nothing() -> None:
    assert set(network.settings("lo")) == set(UNTOLD)
    assert network.settings("no-such-card") == UNTOLD
    assert network.settings("a-name-that-is-too-long") == UNTOLD


def test_the_card_of_the_default_route(tmp_path: Path) -> None:
    (tmp_path / "net").mkdir()
    (tmp_path / "net/route").write_text(ROUTES.format(name="eno1"))
    card(tmp_path)
    assert carriers(tmp_path, tmp_path) == {"eno1"}


def test_the_cards_below_a_bridge_over_a_vlan_over_a_bond(tmp_path: Path) -> None:
    (tmp_path / "net").mkdir()
    (tmp_path / "net/route").write_text(ROUTES.format(name="br0"))
    for upper, lowers in {"br0": ("bond0.7",), "bond0.7": ("bond0",), "bond0": ("eno1", "eno2")}.items():
        folder = card(tmp_path, upper)
        for lower in lowers:
            (folder / f"lower_{lower}").mkdir()
    for name in ("eno1", "eno2"):
        card(tmp_path, name)
    assert carriers(tmp_path, tmp_path) == {"eno1", "eno2"}


def test_without_a_default_route_there_is_no_such_card(tmp_path: Path) -> None:
    assert carriers(tmp_path, tmp_path) == set()
