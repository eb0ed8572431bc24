"""nvidia-smi's texts: the matrix, the links, and the ways in which it fails."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rigctl.parse import ParseError, nvlink, smi, topo

from .corpus import CORPUS, TRIES, each, read

ANSI = (
    "\t\x1b[4mGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\x1b[0m\n"
    "GPU0\t X \tNV4\t0-23\t\tN/A\n"
    "GPU1\tNV4\t X \t0-23\t\tN/A\n"
)
SPACES = (
    "        GPU0    GPU1    GPU2    NIC0    CPU Affinity    NUMA Affinity   GPU NUMA ID\n"
    "GPU0     X      NV4     SYS     PHB     0-31    0               N/A\n"
    "GPU1    NV4      X      SYS     SYS     0-31    0               N/A\n"
    "GPU2    SYS     SYS      X      NODE    32-63   1               N/A\n"
    "NIC0    PHB     SYS     NODE     X\n"
    "\nLegend:\n\n  X    = Self\n  SYS  = Connection traversing PCIe\n\nNIC Legend:\n\n  NIC0: mlx5_0\n"
)


def test_tabs_and_escape_codes():
    matrix = topo.parse(ANSI)
    assert matrix.gpus == (0, 1)
    assert matrix.relation(1, 0) == "NV4"
    assert matrix.nvlinks(0, 1) == 4


def test_blanks_and_network_cards():
    matrix = topo.parse(SPACES)
    assert matrix.gpus == (0, 1, 2)
    assert matrix.nvlinks(0, 1) == 4
    assert matrix.nvlinks(0, 2) == 0
    assert matrix.relation(1, 2) == "SYS"


def test_one_card_has_no_pairs():
    assert topo.parse("\tGPU0\tCPU Affinity\nGPU0\t X \t\t\t\n").relations == {}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n\n",
        "No devices were found\n",
        ANSI.replace("NV4", "NV?"),
        ANSI.replace("GPU1\tNV4", "GPU1\tNV3"),
        ANSI.replace("GPU0\t X ", "GPU0\tNV4"),
        ANSI.rsplit("GPU1", 1)[0],
        ANSI + "GPU1\tNV4\t X \t0-23\t\tN/A\n",
        ANSI + "something new\n",
        ANSI.replace("\tGPU1\tCPU", "\tGPU0\tCPU"),
        ANSI.replace("NV4\t0-23", "X\t0-23").replace("GPU1\tNV4", "GPU1\tX"),
    ],
)
def test_what_is_no_matrix_is_an_error(text):
    with pytest.raises(ParseError):
        topo.parse(text)


@given(st.text(max_size=300))
@TRIES
def test_garbage_is_no_matrix(text):
    with pytest.raises(ParseError):
        topo.parse(text)


@given(st.integers(0, len(SPACES)), st.sampled_from(["NV9", "?", "\t", "\n", "X", "GPU1"]))
@TRIES
def test_a_spoilt_matrix_is_an_error_or_says_the_same(at, wrong):
    try:
        matrix = topo.parse(SPACES[:at] + wrong + SPACES[at:])
    except ParseError:
        return
    assert matrix.nvlinks(0, 1) == 4


LINKS = "GPU 0: NVIDIA GeForce RTX 3090 Ti (UUID: GPU-1)\n\t Link 0: 14.062 GB/s\n\t Link 1: <inactive>\n"


def test_links():
    (card,) = nvlink.parse_status(LINKS)
    assert [(link.link, link.gb_per_s, link.active) for link in card.links] == [(0, 14.062, True), (1, None, False)]
    assert [link.link for link in card.active] == [0]


@pytest.mark.parametrize(
    ("sentence", "said"),
    [
        ("NVML: Unable to retrieve Nvlink information as all links are inActive", "inactive"),
        ("NVML: Unable to retrieve NVLink information as all links are inactive", "inactive"),
        ("Device does not have or support Nvlink", "unsupported"),
        ("", None),
    ],
)
def test_cards_without_links(sentence, said):
    first, second = nvlink.parse_status(f"GPU 0: A (UUID: GPU-1)\n{sentence}\n" + LINKS.replace("GPU 0", "GPU 1"))
    assert (first.said, first.active) == (said, ())
    assert len(second.active) == 1


def test_links_between_two_chips_of_one_module_are_no_nvlinks():
    (card,) = nvlink.parse_status("GPU 0: NVIDIA GH200 (UUID: GPU-1)\n\t C2C Link 0: 44.712 GB/s\n")
    assert card.active == ()


def test_abilities():
    assert nvlink.parse_abilities("Link 0, P2P is supported: true\nLink 0, Link is supported: false\n") == {
        0: {"P2P is supported": True, "Link is supported": False}
    }
    with pytest.raises(ParseError):
        nvlink.parse_abilities("")


@given(st.text(min_size=1, max_size=200).filter(lambda t: t.strip()))
@TRIES
def test_garbage_is_no_link(text):
    with pytest.raises(ParseError):
        nvlink.parse_status(text)
    with pytest.raises(ParseError):
        nvlink.parse_abilities(text)


@pytest.mark.parametrize(
    ("text", "status", "word"),
    [
        ("Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 535.247\n", 18, "reboot"),
        ("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make…\n", 9, "nvidia_driver"),
        ("Unable to determine the device handle for GPU 0000:02:00.0: GPU is lost.  Reboot…\n", 15, "reboot"),
        ("Unable to determine the device handle for GPU0000:02:00.0: Unknown Error\n", 255, "reboot"),
        ("No devices were found\n", 6, "lspci"),
        ("", 124, "hang"),
        ("", 137, "hang"),
        ("sh: 1: nvidia-smi: not found\n", 127, "nvidia_driver"),
        ("something new\n", 3, "by hand"),
    ],
)
def test_failures(text, status, word):
    found = smi.failure(text, status)
    assert found is not None
    assert word in found.fix


def test_failures_are_seen_with_status_0_too_and_answers_are_none():
    assert smi.failure("Unable to determine the device handle for GPU0000:02:00.0: Unknown Error\n", 0) is not None
    assert smi.failure(ANSI, 0) is None
    assert smi.failure(LINKS + "NVML: Unable to retrieve NVLink information as all links are inActive\n", 0) is None


@each("topo-m", "rebuilt/topo-m")
def test_captured_matrices(path):
    matrix = topo.parse(read(path))
    expected = {"nv4": 4, "a100-x4": 4, "3090ti": 4}
    links = next((links for word, links in expected.items() if word in path.name), 0)
    if links:
        assert matrix.nvlinks(0, 1) == links
    elif "unbridged" in path.name:
        assert (matrix.nvlinks(0, 1), matrix.nvlinks(0, 2)) == (4, 0)
    else:
        assert not any(word.startswith("NV") for word in matrix.relations.values())


@each("nvlink")
def test_captured_links(path):
    if "capabilities" in path.name:
        assert len(nvlink.parse_abilities(read(path))) == 4
        return
    cards = nvlink.parse_status(read(path))
    active = {len(card.active) for card in cards}
    words = {
        "inActive": {0},
        "inactive": {0},
        "unsupported": {0},
        "c2c": {0},
        "18links": {18},
        "nv4": {4},
        "a100": {12},
    }
    assert active == next(count for word, count in words.items() if word in path.name)


@each("nvidia-smi-errors")
def test_captured_failures(path):
    assert smi.failure(read(path), 1) is not None
    assert smi.failure(read(path), 0) is not None


@pytest.mark.skipif(not CORPUS.is_dir(), reason="no corpus here")
def test_captured_matrices_are_no_failures():
    for path in (CORPUS / "topo-m").glob("*"):
        assert smi.failure(read(path), 0) is None
