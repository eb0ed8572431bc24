"""Boards with NVSwitches: each card has all its links to the switches, and nvidia-smi says so of every pair."""

from __future__ import annotations

import pytest

from rigctl.checks.links import pairs, speed
from rigctl.model.reading import CommandReply, LinkFacts
from rigctl.model.verdict import Verdict
from tests.checks import healthy as h

SWITCH = "00000000:C4:00.0"
SPEC = h.spec(parts={"links": (), "nvswitch_links": 12, "min_nvlink_gb_per_s": 25.0})
TOPO = h.TOPO.replace("NV4", "NV12")


def links(active: int = 12, remote: str | None = SWITCH, gb_per_s: float = 25.0) -> tuple[LinkFacts, ...]:
    return tuple(
        LinkFacts(
            link=link,
            active=link < active,
            remote_pci_bus_id=remote if link < active else None,
            speed_gb_per_s=gb_per_s if link < active else None,
        )
        for link in range(12)
    )


def readings(second: tuple[LinkFacts, ...] | None = None, under_load: int = 12, **changes):
    cards = (h.gpu(0, links=links()), h.gpu(1, links=links() if second is None else second, **changes))
    fewer = tuple(link < under_load for link in range(12))
    busy = h.with_gpu_samples(lambda gpu, _: {"links_active": fewer if gpu.slot == 2 else (True,) * 12})
    return h.readings(facts=h.facts(gpus=cards), samples=busy)


def says(text: str = TOPO) -> CommandReply:
    return CommandReply(command="nvidia-smi topo -m", exit_status=0, stdout=text, stderr="")


def verdicts(*args, topology: CommandReply | None = None, **kwargs) -> dict[str, Verdict]:
    found = pairs(SPEC, readings(*args, **kwargs), topology or says())
    return {v.subject: v.verdict for v in found}


def test_all_links_to_the_switches_pass():
    found = pairs(SPEC, readings(), says())
    assert [(v.subject, v.verdict) for v in found] == [(h.SLOT1, Verdict.PASS), (h.SLOT2, Verdict.PASS)]
    assert found[0].found == "NV12"
    assert {v.verdict for v in speed(SPEC, readings())} == {Verdict.PASS}


@pytest.mark.parametrize(
    ("second", "words"),
    [
        (links(11), "11 active NVLinks to the switches, 12 were declared"),
        (links(0), "0 active NVLinks"),
        (links(remote=h.BUS[0]), "12 of its links end at another card"),
    ],
)
def test_one_card_is_named(second, words):
    first, bad = pairs(SPEC, readings(second), says())
    assert first.verdict is Verdict.PASS
    assert bad.verdict is Verdict.FAIL
    assert words in bad.reason
    assert "under load" not in bad.reason
    assert bad.fix != "correct the spec: this board has more links"


def test_more_links_than_declared_fail():
    few = SPEC.model_copy(update={"parts": SPEC.parts.model_copy(update={"nvswitch_links": 10})})
    found = pairs(few, readings(), None)
    assert {v.verdict for v in found} == {Verdict.FAIL}
    assert {v.fix for v in found} == {"correct the spec: this board has more links"}


def test_without_nvidia_smi_nvml_alone_is_enough_and_an_answer_that_failed_is_an_error():
    assert {v.verdict for v in pairs(SPEC, readings(), None)} == {Verdict.PASS}
    silent = CommandReply(command="nvidia-smi topo -m", exit_status=-1, stdout="", stderr="connection lost")
    assert {v.verdict for v in pairs(SPEC, readings(), silent)} == {Verdict.ERROR}


def test_links_that_go_down_under_load_fail():
    _, bad = pairs(SPEC, readings(under_load=9), says())
    assert bad.verdict is Verdict.FAIL
    assert bad.reason.startswith("9 active NVLinks to the switches under load")


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        (TOPO.replace("NV12", "NV11"), Verdict.FAIL),
        (TOPO.replace("NV12", "SYS"), Verdict.FAIL),
        ("no table at all\n", Verdict.ERROR),
        ("\tGPU0\tCPU Affinity\nGPU0\t X \t0-23\n", Verdict.ERROR),
    ],
)
def test_nvidia_smi_must_agree(text, verdict):
    assert set(verdicts(topology=says(text)).values()) == {verdict}


def test_a_card_that_does_not_tell_its_links_is_an_error():
    assert verdicts(second=(), missing={"links": "Not Supported"})[h.SLOT2] is Verdict.ERROR


def test_no_card_at_all_is_an_error():
    gone = h.readings(facts=h.facts(gpus=()))
    assert [v.verdict for v in pairs(SPEC, gone, says())] == [Verdict.ERROR]
