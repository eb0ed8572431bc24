"""Counters, probes, NUMA and copies between cards on odd readings: bounds, absence, nonsense, and what is blind."""

from __future__ import annotations

import json

import pytest

from rigctl.checks import counters, numa, p2p, probes
from rigctl.model.spec import LinkSpec
from rigctl.model.verdict import Verdict

from . import healthy as h

COUNTED = (counters.nvlink_errors, counters.pcie_replays, counters.aer_card, counters.aer_port)


def of(check, *, spec=None, subject=h.SLOT2, **readings):
    found = {v.subject: v for v in check(spec or h.spec(), h.readings(**readings))}
    return found.get(subject) or found["rig"]


def counted(after=None, **line):
    return {"logs": h.with_logs(counters__jsonl=h.counters(after, **line))}


def links(**changes):
    """Links of card 2 after the load, of which the third one has counted more."""
    made = [{"link": link, "replay": 2, "recovery": 0, "crc_flit": 3, "crc_data": 0} for link in range(4)]
    made[2] |= changes
    return {"links": made}


@pytest.mark.parametrize("name", ["replay", "crc_flit", "crc_data"])
def test_link_errors_are_counted_from_before_the_load_and_bounded(name):
    start = {"replay": 2, "crc_flit": 3, "crc_data": 0}[name]
    at = of(counters.nvlink_errors, **counted(links(**{name: start + 100})))
    assert (at.verdict, at.found) == (Verdict.PASS, 100)
    over = of(counters.nvlink_errors, **counted(links(**{name: start + 101})))
    assert (over.verdict, over.found, over.expected) == (Verdict.FAIL, 101, 100)
    assert f"{name} of link 2" in over.reason


def test_a_link_that_was_trained_anew_fails_at_once():
    found = of(counters.nvlink_errors, **counted(links(recovery=1)))
    assert (found.verdict, found.found, found.expected) == (Verdict.FAIL, 1, 0)


def test_counters_that_fall_are_an_error():
    assert of(counters.nvlink_errors, **counted(links(replay=0))).verdict is Verdict.ERROR
    assert of(counters.pcie_replays, **counted({"pcie_replays": 3})).verdict is Verdict.ERROR
    ports = [h.device("0000:00:02.1")]
    lower = h.counters({"aer": {"card": h.device(), "ports": ports}}).replace('"RxErr": 0', '"RxErr": 5', 8)
    first, second = lower.splitlines()
    mixed = first + "\n" + second.replace('"RxErr": 5', '"RxErr": 0') + "\n"
    for check in (counters.aer_card, counters.aer_port):
        assert of(check, logs=h.with_logs(counters__jsonl=mixed)).verdict is Verdict.ERROR


def test_links_that_count_nothing_are_blind_and_links_that_are_down_an_error():
    nothing = dict.fromkeys(("replay", "recovery", "crc_flit", "crc_data"))
    quiet = [{"link": link, **nothing} for link in range(4)]
    assert of(counters.nvlink_errors, **counted({"links": quiet, "missing": {"x": "Not Supported"}})).verdict is (
        Verdict.BLIND
    )
    assert of(counters.nvlink_errors, **counted({"links": []})).verdict is Verdict.ERROR


def test_a_link_beside_one_that_counts_nothing_is_judged():
    nothing = dict.fromkeys(("replay", "recovery", "crc_flit", "crc_data"))
    made = [{"link": 0, **nothing}, *links(crc_flit=2000)["links"][1:]]
    assert of(counters.nvlink_errors, **counted({"links": made})).verdict is Verdict.FAIL


def test_replays_are_bounded():
    assert of(counters.pcie_replays, **counted({"pcie_replays": 84})).verdict is Verdict.PASS
    over = of(counters.pcie_replays, **counted({"pcie_replays": 85}))
    assert (over.verdict, over.found) == (Verdict.FAIL, 81)
    assert "DCGM" in over.source
    hidden = of(counters.pcie_replays, **counted({"pcie_replays": None, "missing": {"pcie_replays": "Not Supported"}}))
    assert (hidden.verdict, "Not Supported" in hidden.reason) == (Verdict.BLIND, True)
    broken = {"pcie_replays": None, "missing": {"pcie_replays": "Unknown Error"}, "faults": ["pcie_replays: Unknown"]}
    assert of(counters.pcie_replays, **counted(broken)).verdict is Verdict.ERROR


def aer(card=None, *ports):
    return counted({"aer": {"card": card or h.device(), "ports": list(ports) or [h.device("0000:00:02.1")]}})


def test_corrected_errors_are_a_rate_and_others_never_allowed():
    most = round(h.END / 60 * 32)
    assert of(counters.aer_card, **aer(h.device(RxErr=most))).verdict is Verdict.PASS
    over = of(counters.aer_card, **aer(h.device(RxErr=most - 6, BadTLP=7)))
    assert (over.verdict, over.found, over.expected) == (Verdict.FAIL, most + 1, most)
    worse = of(counters.aer_port, **aer(None, h.device("0000:00:02.1", DLP=1)))
    assert (worse.verdict, worse.found, worse.expected) == (Verdict.FAIL, 1, 0)
    assert "0000:00:02.1" in worse.reason


def test_aer_that_nobody_reports_is_blind_on_that_side_only():
    blind = {"address": "0000:00:02.1", "blind": "AER of root port 0000:00:02.1 is the firmware's own"}
    found = of(counters.aer_port, **aer(None, blind))
    assert (found.verdict, "firmware" in found.reason) == (Verdict.BLIND, True)
    assert of(counters.aer_card, **aer(None, blind)).verdict is Verdict.PASS
    assert of(counters.aer_card, **aer({"blind": "no AER"})).verdict is Verdict.BLIND
    assert of(counters.aer_card, **aer({"error": "EIO"})).verdict is Verdict.ERROR


def test_no_port_is_an_error_unless_the_machine_has_none():
    line = h.counters().replace('"ports": [', '"ports": [], "others": [')
    assert of(counters.aer_port, logs=h.with_logs(counters__jsonl=line)).verdict is Verdict.ERROR
    virtual = line.replace('"card": {', '"card": {"blind": "it has no root port", ')
    assert of(counters.aer_port, logs=h.with_logs(counters__jsonl=virtual)).verdict is Verdict.BLIND


BEFORE, AFTER = h.counters().splitlines()


@pytest.mark.parametrize("check", COUNTED)
@pytest.mark.parametrize(
    "text",
    [
        "",
        BEFORE,
        AFTER,
        f"{BEFORE}\n{BEFORE}\n{AFTER}",
        f"{BEFORE}\n{AFTER}".replace(str(1000 + h.END), "900"),
        f"{BEFORE}\n{AFTER}".replace('"pcie_replays": 4', '"pcie_replays": -4'),
        f"{BEFORE}\n{AFTER}".replace('"replay": 2', '"replay": "ERR!"'),
        f"{BEFORE}\n[Unknown Error]",
        h.counters(error="GPU is lost", cards=[]),
    ],
)
def test_no_pass_without_counters_from_before_and_after(check, text):
    found = check(h.spec(), h.readings(logs=h.with_logs(counters__jsonl=text)))
    assert {v.verdict for v in found} == {Verdict.ERROR}
    assert all(v.fix for v in found)


@pytest.mark.parametrize("check", COUNTED)
def test_a_card_that_is_not_counted_after_the_load_is_an_error(check):
    only = json.loads(AFTER)
    only["cards"] = only["cards"][:1]
    found = of(check, logs=h.with_logs(counters__jsonl=f"{BEFORE}\n{json.dumps(only)}"))
    assert found.verdict is Verdict.ERROR


def probe(**changes):
    return {"logs": h.with_logs(probes__json=h.probes(**changes))}


TOPO = "nvidia-smi topo -m"


def test_probes_are_bounded_and_a_hanging_one_is_named():
    assert of(probes.answers, subject=TOPO, **probe(seconds=10.0)).verdict is Verdict.PASS
    slow = of(probes.answers, subject=TOPO, **probe(seconds=10.1))
    assert (slow.verdict, slow.found, slow.expected) == (Verdict.FAIL, 10.1, 10)
    hangs = of(probes.answers, subject=TOPO, **probe(seconds=20.0, exit_status=None))
    assert (hangs.verdict, hangs.reason.startswith("hangs")) == (Verdict.FAIL, True)
    stuck = of(probes.answers, subject=TOPO, **probe(seconds=22.0, exit_status=None, stuck="process 7 is in state D"))
    assert (stuck.verdict, stuck.reason.startswith("stuck"), "state D" in stuck.reason) == (Verdict.FAIL, True, True)
    failed = of(probes.answers, subject=TOPO, **probe(exit_status=15, said="GPU is lost"))
    assert (failed.verdict, "GPU is lost" in failed.reason) == (Verdict.ERROR, True)


def test_without_a_declared_limit_only_hanging_fails():
    spec = h.spec(limits={"max_probe_seconds": None})
    assert of(probes.answers, spec=spec, subject=TOPO, **probe(seconds=19.0)).verdict is Verdict.PASS
    hangs = of(probes.answers, spec=spec, subject=TOPO, **probe(seconds=20.0, exit_status=None))
    assert (hangs.verdict, hangs.expected) == (Verdict.FAIL, 20)


@pytest.mark.parametrize("text", [None, "", "[]", '{"probes": [{"name": "x", "seconds": -1, "limit_s": 20}]}'])
def test_no_pass_without_probes_after_the_load(text):
    logs = h.without_logs("probes.json") if text is None else h.with_logs(probes__json=text)
    assert of(probes.answers, subject="nvidia-smi", logs=logs).verdict is Verdict.ERROR


def test_nobody_asks_a_driver_that_hangs():
    readings = h.readings(**probe(seconds=22.0, exit_status=None, stuck="process 7 is in state D"))
    reply = probes.not_asked(readings, "nvidia-smi nvlink -s")
    assert reply is not None
    assert (reply.exit_status, "state D" in reply.stderr) == (-1, True)
    assert probes.not_asked(h.readings(), "nvidia-smi nvlink -s") is None


def at(*nodes, online=(0, 1)):
    places = tuple(h.place(i, numa_node=node) for i, node in enumerate(nodes))
    return {"facts": h.facts(places=places, numa_nodes=online)}


def test_numa_of_several_nodes():
    declared = h.spec(parts={"gpu_numa_nodes": (0, 1)})
    assert of(numa.numa, spec=declared, **at(0, 1)).verdict is Verdict.PASS
    assert of(numa.numa, spec=declared, **at(0, 0)).verdict is Verdict.FAIL
    assert of(numa.numa, spec=declared, **at(0, None)).verdict is Verdict.FAIL
    # Node interleaving in the BIOS leaves one node.
    assert of(numa.numa, spec=declared, **at(None, None, online=(0,))).verdict is Verdict.FAIL
    assert of(numa.numa, spec=declared, **at(0, 3)).verdict is Verdict.ERROR
    assert of(numa.numa, spec=declared, **at(0, 1, online=())).verdict is Verdict.ERROR
    unlearned = h.spec(parts={"gpu_numa_nodes": None})
    assert of(numa.numa, spec=unlearned, **at(0, 1)).verdict is Verdict.WARN
    assert of(numa.numa, spec=unlearned, **at(0, None)).verdict is Verdict.WARN
    assert of(numa.numa, spec=unlearned, **at(None, None, online=(0,))).verdict is Verdict.PASS


def test_a_card_that_the_kernel_does_not_list_has_no_node():
    facts = h.facts(places=(h.place(0), h.place(1, listed=False)))
    assert of(numa.numa, facts=facts).verdict is Verdict.ERROR
    assert of(numa.numa, facts=h.facts(places=())).verdict is Verdict.ERROR


PAIR = "slot1-slot2"


def joined(kind, links=0):
    return h.spec(parts={"links": (LinkSpec(slots=(1, 2), kind=kind, links=links),)})


def reach(read, write="OK", missing=""):
    pair = h.facts().pairs[0].model_copy(update={"read": read, "write": write, "missing": missing})
    return {"facts": h.facts(pairs=(pair,))}


@pytest.mark.parametrize("word", ["CNS", "GNS", "TNS", "DR", "NS"])
def test_joined_pairs_must_reach_each_other_and_others_need_not(word):
    for spec in (joined("nvlink", 4), joined("pcie")):
        found = of(p2p.access, spec=spec, subject=PAIR, **reach(word))
        assert (found.verdict, found.found) == (Verdict.FAIL, word)
    assert of(p2p.access, spec=joined("none"), subject=PAIR, **reach(word)).verdict is Verdict.SKIP


def test_one_direction_alone_is_not_enough_and_not_knowing_is_an_error():
    assert of(p2p.access, subject=PAIR, **reach("OK", "NS")).verdict is Verdict.FAIL
    assert of(p2p.access, subject=PAIR, **reach("U", "U")).verdict is Verdict.ERROR
    assert of(p2p.access, subject=PAIR, **reach(None, None, "Not Supported")).verdict is Verdict.ERROR
    assert of(p2p.access, subject=PAIR, facts=h.facts(pairs=())).verdict is Verdict.ERROR


def copied(**changes):
    return {"logs": h.with_logs(p2p__json=h.p2p(**changes))}


def test_rates_are_floors_for_joined_pairs_and_the_slower_direction_counts():
    assert of(p2p.one_way, subject=PAIR, **copied(one_way_gb_per_s=[50.0, 50.0])).verdict is Verdict.PASS
    for rates in ([49.9, 52.0], [52.0, 49.9]):
        found = of(p2p.one_way, subject=PAIR, **copied(one_way_gb_per_s=rates))
        assert (found.verdict, found.found) == (Verdict.FAIL, 49.9)
    assert of(p2p.both_ways, subject=PAIR, **copied(both_ways_gb_per_s=94.0)).verdict is Verdict.PASS
    assert of(p2p.both_ways, subject=PAIR, **copied(both_ways_gb_per_s=93.9)).verdict is Verdict.FAIL
    slow = copied(one_way_gb_per_s=[6.2, 6.2], access=False)
    assert of(p2p.one_way, spec=joined("none"), subject=PAIR, **slow).verdict is Verdict.PASS
    assert "host's memory" in of(p2p.one_way, subject=PAIR, **slow).reason
    unlearned = h.spec(limits={"min_p2p_one_way_gb_per_s": None})
    assert of(p2p.one_way, spec=unlearned, subject=PAIR, **copied()).verdict is Verdict.WARN


def test_one_wrong_byte_is_one_too_many_on_any_pair():
    for spec in (joined("none"), h.spec()):
        found = of(p2p.same_bytes, spec=spec, subject=PAIR, **copied(wrong_bytes=1))
        assert (found.verdict, found.found, found.expected) == (Verdict.FAIL, 1, 0)


@pytest.mark.parametrize("check", [p2p.same_bytes, p2p.one_way, p2p.both_ways])
@pytest.mark.parametrize(
    "text",
    [
        None,
        "",
        "{}",
        "Traceback",
        '{"error": "torch cannot be imported", "hint": "provision"}',
        h.p2p(compared_bytes=0),
        h.p2p(wrong_bytes=-1),
        h.p2p(both_ways_gb_per_s=0),
        h.p2p(one_way_gb_per_s=[52.0]),
        h.p2p(slots=[1, 3]),
    ],
)
def test_no_pass_without_copies(check, text):
    logs = h.without_logs("p2p.json") if text is None else h.with_logs(p2p__json=text)
    found = check(h.spec(), h.readings(logs=logs))
    assert {v.verdict for v in found} == {Verdict.ERROR}
    assert all(v.fix for v in found)


@pytest.mark.parametrize("rates", [[52.0, 1e6], [1e6, 1e6], [-1, 52], [0, 52]])
def test_absurd_rates_are_no_measurement(rates):
    assert of(p2p.one_way, subject=PAIR, **copied(one_way_gb_per_s=rates)).verdict is Verdict.ERROR


def test_more_wrong_bytes_than_were_compared_are_no_measurement():
    wrong = copied(compared_bytes=10, wrong_bytes=11)
    assert of(p2p.same_bytes, subject=PAIR, **wrong).verdict is Verdict.ERROR
