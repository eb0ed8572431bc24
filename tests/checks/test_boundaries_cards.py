"""Comparisons of cards, links and software at their edge."""

from __future__ import annotations

import json

import pytest

from rigctl.checks import counters, identity, links, machine, matrix, numa, p2p, software, spans, topology
from rigctl.model.reading import LinkFacts, ModuleFacts
from rigctl.model.spec import SettingsSpec
from rigctl.model.verdict import Verdict

from . import healthy as h
from .edges import shown
from .test_thermals import of

PASS, FAIL, ERROR, WARN = Verdict.PASS, Verdict.FAIL, Verdict.ERROR, Verdict.WARN
GPU_BURN_ONLY = h.PROFILE.model_copy(update={"all_burn_seconds": 0})
PAIR = "slot1-slot2"


@pytest.mark.parametrize(("count", "verdict"), [(5, PASS), (4, ERROR)])
def test_three_samples_after_the_ramp_tell_lanes(count, verdict):
    # The last two fall into the second in which the load ends.
    assert of(topology.pcie_gen(h.spec(), shown(count, pcie_gen=None), GPU_BURN_ONLY)).verdict is verdict


def test_the_share_of_samples_on_fewer_lanes_is_said():
    seen = [s.seq for s in h.samples() if s.step == "gpu_burn" and 11.5 <= s.t_mono_s - 1000 <= 37]
    few = set(seen[: len(seen) // 4])
    samples = h.with_gpu_samples(lambda gpu, s: {"pcie_width": 4} if gpu.slot == 2 and s.seq in few else {})
    found = of(topology.pcie_width(h.spec(), h.readings(samples=samples), GPU_BURN_ONLY))
    assert f"in {len(few) / len(seen):.0%} of {len(seen)}" in found.reason


@pytest.mark.parametrize(("lanes", "verdict"), [(7, FAIL), (8, PASS), (9, WARN)])
def test_as_many_lanes_as_declared(lanes, verdict):
    samples = h.with_gpu_samples(lambda *_: {"pcie_width": lanes})
    assert of(topology.pcie_width(h.spec(), h.readings(samples=samples), h.PROFILE)).verdict is verdict


@pytest.mark.parametrize(("mib", "verdict"), [(24_564, PASS), (24_563, FAIL), (0, ERROR), (1, FAIL), (-1, ERROR)])
def test_as_much_memory_as_declared(mib, verdict):
    readings = h.readings(facts=h.facts(gpus=(h.gpu(0), h.gpu(1, memory_mib=mib))))
    assert of(topology.gpu_memory(h.spec(), readings)).verdict is verdict


def test_more_memory_than_any_card_has_is_none():
    for mib, verdict in ((topology.MOST_MIB, PASS), (topology.MOST_MIB + 1, ERROR)):
        readings = h.readings(facts=h.facts(gpus=(h.gpu(0), h.gpu(1, memory_mib=mib))))
        assert of(topology.gpu_memory(h.spec(), readings)).verdict is verdict


@pytest.mark.parametrize(("asked", "fix"), [(1, "correct the spec"), (3, "power the rig off")])
def test_more_and_fewer_cards_have_remedies_of_their_own(asked, fix):
    (found,) = topology.gpu_count(h.spec(parts={"gpu_count": asked}), h.readings())
    assert (found.verdict, found.fix.startswith(fix)) == (FAIL, True)


@pytest.mark.parametrize(("speed", "verdict"), [(14.0, PASS), (13.999, FAIL)])
def test_links_as_fast_as_declared(speed, verdict):
    own = tuple(LinkFacts(link=n, active=True, remote_pci_bus_id=h.BUS[0], speed_gb_per_s=speed) for n in range(4))
    readings = h.readings(facts=h.facts(gpus=(h.gpu(0), h.gpu(1, links=own))))
    assert of(links.speed(h.spec(), readings, h.reply(h.NVLINK))).verdict is verdict


def test_a_sample_that_knows_fewer_links_tells_of_those():
    samples = h.with_gpu_samples(lambda *_: {"links_active": (True, True, True)})
    (found,) = links.pairs(h.spec(), h.readings(samples=samples), h.reply(h.TOPO))
    assert (found.verdict, found.found) == (FAIL, "NV3")


@pytest.mark.parametrize(("declared", "fix"), [(5, "reseat"), (3, "correct the spec")])
def test_more_and_fewer_links_have_remedies_of_their_own(declared, fix):
    link = h.spec().parts.links[0].model_copy(update={"links": declared})
    (found,) = links.pairs(h.spec(parts={"links": (link,)}), h.readings(), h.reply(h.TOPO))
    assert (found.verdict, fix in found.fix) == (FAIL, True)


@pytest.mark.parametrize(("status", "words"), [(-1, "said so"), (0, ""), (1, "")])
def test_what_was_not_asked_is_told_apart_from_what_failed(status, words):
    reply = h.reply("", exit_status=status, stderr="said so")
    found = matrix.read_matrix(h.readings(), reply)
    assert (found.topology, found.trouble == "said so") == (None, bool(words))
    assert (links._speeds_in_text(reply)[1] == "said so") is bool(words)


@pytest.mark.parametrize(("slots", "expected"), [((0, 0), 0), ((0,), None)])
def test_a_card_beyond_what_is_declared_has_no_node(slots, expected):
    spec = h.spec(parts={"gpu_numa_nodes": slots})
    assert of(numa.numa(spec, h.readings())).expected == expected


@pytest.mark.parametrize(("wrong", "verdict"), [(10, FAIL), (11, ERROR)])
def test_all_bytes_may_be_wrong_and_no_more(wrong, verdict):
    text = h.p2p(compared_bytes=10, wrong_bytes=wrong)
    (found,) = p2p.same_bytes(h.spec(), h.readings(logs=h.with_logs(p2p__json=text)))
    assert found.verdict is verdict


@pytest.mark.parametrize(("count", "verdict"), [(1, Verdict.SKIP), (2, PASS)])
def test_two_cards_make_a_pair(count, verdict):
    assert p2p.one_way(h.spec(parts={"gpu_count": count}), h.readings())[0].verdict is verdict


@pytest.mark.parametrize(("seconds", "known"), [(0.0, False), (0.1, True)])
def test_counters_of_one_moment_span_nothing(seconds, known):
    first, second = (json.loads(line) for line in h.counters().splitlines())
    second["t_mono_s"] = first["t_mono_s"] + seconds
    readings = h.readings(logs=h.with_logs(counters__jsonl=f"{json.dumps(first)}\n{json.dumps(second)}"))
    if known:
        assert len(spans.after_load(readings)) == 2
    else:
        with pytest.raises(spans.NoCounters, match="once before and once after"):
            spans.after_load(readings)


@pytest.mark.parametrize(("branch", "fits"), [("450", True), ("449", False), ("550-server", True)])
def test_pytorch_runs_on_the_least_branch_of_its_cuda(branch, fits):
    spec = h.spec(software={"driver_branch": branch})
    assert (software._torch_misfit(spec, "2.0.1+cu117") is None) is fits


@pytest.mark.parametrize(("mib", "lost"), [(49_000, False), (48_999, True)])
def test_a_kernel_may_keep_two_per_cent_of_the_memory(mib, lost):
    now, then = (h.facts(memory_mib=size, memory_modules=None) for size in (mib, 50_000))
    assert bool(machine._less_memory(now, then)) is lost


def test_as_much_memory_by_its_modules_is_none_lost():
    assert machine._less_memory(h.facts(), h.facts()) == []
    fewer = h.facts(memory_modules=h.facts().memory_modules[:1])
    assert machine._less_memory(fewer, h.facts()) == ["memory 65536 → 32768 MiB, gone from DIMM_B2"]
    assert machine._less_memory(h.facts(), fewer) == []


def test_cards_behind_switches_reach_each_other_though_no_pair_is_declared():
    switched = h.spec(parts={"links": (), "nvswitch_links": 12})
    (found,) = p2p.access(switched, h.readings())
    assert (found.verdict, found.subject) == (PASS, PAIR)
    assert p2p.access(h.spec(parts={"links": ()}), h.readings())[0].verdict is Verdict.SKIP


def test_links_behind_switches_are_counted_though_no_pair_is_declared():
    switched = h.spec(parts={"links": (), "nvswitch_links": 12})
    assert {v.verdict for v in counters.nvlink_errors(switched, h.readings())} == {PASS}
    assert counters.nvlink_errors(h.spec(parts={"links": ()}), h.readings())[0].verdict is Verdict.SKIP


@pytest.mark.parametrize(("counts", "found"), [({"RxErr": 2, "BadTLP": 3, "BadDLLP": 4}, 9), ({"RxErr": 2}, 2)])
def test_every_kind_of_corrected_error_counts(counts, found):
    after = {"aer": {"card": h.device(**counts), "ports": [h.device("0000:00:02.1")]}}
    readings = h.readings(logs=h.with_logs(counters__jsonl=h.counters(after)))
    assert of(counters.aer_card(h.spec(), readings)).found == found


def test_what_rose_does_not_make_up_for_what_fell():
    before = {"correctable": {"RxErr": 5, "BadTLP": 5}}
    assert counters._sum_of_rises(before, {"correctable": {"RxErr": 9, "BadTLP": 3}}, ("correctable",)) == -2
    assert counters._sum_of_rises(before, {"correctable": {"RxErr": 9, "BadTLP": 5}}, ("correctable",)) == 4
    assert counters._sum_of_rises(before, {}, ("correctable",)) == 0


def test_only_a_bus_number_that_shifted_is_told():
    shifted = h.readings(facts=h.facts(places=(h.place(0), h.place(1, pci_address="0000:03:00.0"))))
    one, two = identity.known_cards(h.spec(), shifted, h.baseline())
    assert ("shifted" in one.reason, "shifted from 0000:02:00.0" in two.reason) == (False, True)


def test_who_sat_there():
    accepted = h.baseline()
    was = {place.uuid: place for place in accepted.facts.places}
    one, two = accepted.facts.gpus
    there = h.place(1, uuid="new")
    assert identity._who_sat_there(there, accepted, was, set()) == two
    assert identity._who_sat_there(h.place(0, uuid="new"), accepted, was, set()) == one
    assert identity._who_sat_there(there, accepted, was, {two.uuid}) == one  # the only one that is gone
    for now, known in ((None, was), (there, {})):
        assert identity._who_sat_there(now, accepted, known, set()) is None
        assert identity._who_sat_there(now, accepted, known, {one.uuid}) == two
    assert identity._who_sat_there(there, accepted, was, set(h.UUIDS)) is None


@pytest.mark.parametrize(("allowed", "verdict"), [(None, PASS), (("zfs",), FAIL), (("zfs", "v4l2loopback"), PASS)])
def test_where_the_spec_allows_modules_an_accepted_run_allows_none(allowed, verdict):
    modules = (*h.facts().modules, ModuleFacts(name="v4l2loopback", taint="OE"))
    spec = h.spec(settings=SettingsSpec(allowed_modules=allowed))
    (found,) = identity.modules(spec, h.readings(facts=h.facts(modules=modules)), h.baseline(modules=modules))
    assert found.verdict is verdict
    assert ("accepted run" in found.source) is (allowed is None)


def test_what_joins_a_pair_is_said_as_nvidia_smi_says_it():
    (link,) = h.spec().parts.links
    (found,) = links.pairs(h.spec(), h.readings(), h.reply(h.TOPO))
    assert (found.expected, found.found) == ("NV4", "NV4")
    assert links._word(link.model_copy(update={"kind": "pcie", "links": 0})) == "no NVLink"
    assert links._word(None) == "no NVLink"


@pytest.mark.parametrize(
    ("status", "words"), [(None, "not every active link tells it"), (h.reply("x", exit_status=-1, stderr="cut"), "cut")]
)
def test_why_the_speed_of_links_is_not_known(status, words):
    silent = tuple(LinkFacts(link=n, active=True, remote_pci_bus_id=h.BUS[0]) for n in range(4))
    readings = h.readings(facts=h.facts(gpus=(h.gpu(0), h.gpu(1, links=silent))))
    found = of(links.speed(h.spec(), readings, status))
    assert (found.verdict, found.reason.endswith(words)) == (ERROR, True)


@pytest.mark.parametrize(
    ("asked", "words"), [({"aspm": True}, "a BIOS setting"), ({"aspm": True, "iommu": True}, "BIOS defaults")]
)
def test_two_settings_at_once_are_a_bios_that_was_reset(asked, words):
    (found,) = machine.settings(h.spec(settings=SettingsSpec(**asked)), h.readings(), None)
    assert (found.verdict, found.reason.startswith(words)) == (FAIL, True)
