"""For each check at least one reading on which it fails: a check that cannot fail is none."""

from __future__ import annotations

import json

import pytest

from rigctl.checks import throughput
from rigctl.checks.catalogue import CATALOGUE
from rigctl.model.reading import (
    DriverFacts,
    EccReading,
    FabricManagerFacts,
    FilesystemFacts,
    KernelMessage,
    LinkFacts,
    ModuleFacts,
    PairFacts,
    TimeSyncFacts,
)
from rigctl.model.switched import step_load_stages, wake_stages
from rigctl.model.verdict import Verdict

from . import healthy as h
from . import healthy_compute as c
from .test_healthy import all_verdicts


def tools(**changes):
    return h.facts().tools.model_copy(update=changes)


def under_load(**changes):
    """Samples in which card 2 shows `changes` under load."""
    return {"samples": h.with_gpu_samples(lambda gpu, _: changes if gpu.slot == 2 and gpu.util_pct == 100 else None)}


def counted(**after):
    """Counters of card 2 after the load."""
    return {"logs": h.with_logs(counters__jsonl=h.counters(after))}


def three_links(i):
    links = (*h.gpu(i).links[:3], LinkFacts(link=3, active=False))
    return h.gpu(i, links=links)


def trained(**changes):
    return {"logs": h.with_logs(train__json=json.dumps(json.loads(h.logs()["train.json"]) | changes))}


def kernel(*messages, at=20.0):
    return {"kernel": tuple(KernelMessage(t_wall_s=h.T0 + at, message=message) for message in messages)}


def told(file, text):
    """What one program of the agent told, instead of what it tells on the healthy rig."""
    return {"logs": h.logs() | {file: text}}


def computed_fails():
    """For each check of what the cards compute, a reading on which it fails: card 2 is slow, or wrong."""
    slow = {
        f"throughput.{name}": told("compute.json", c.compute(c.card(0), c.card(1, **{name: 0.7 * rate})))
        for name, rate in c.RATES.items()
    }
    alone = [c.alone(0), c.alone(1, tokens_per_s=6500.0)]
    all_slow = {
        "alone": [c.alone(i, tokens_per_s=6_800.0) for i in range(2)],
        "together": c.together(11_900.0),
        "without_p2p": c.together(10_000.0),
    }
    other = [c.alone(0), c.alone(1, repeated_losses=[10.94, 10.61, 10.4])]
    return slow | {
        "memory.gpu_pattern": told("gpu_memory.json", c.gpu_memory(c.tested(0), c.tested(1, wrong_words=3))),
        "throughput.train_each": told("train_all.json", c.train_all(alone=alone)),
        "throughput.train_all": told("train_all.json", c.train_all(**all_slow)),
        "throughput.scaling": told(
            "train_all.json", c.train_all(together=c.together(12_500.0), without_p2p=c.together(11_500.0))
        ),
        "throughput.across": told("train_across.json", c.across(together=c.together(20_000.0))),
        "throughput.p2p_gain": told("train_all.json", c.train_all(without_p2p=c.together(15_100.0))),
        "throughput.loss": told("train_all.json", c.train_all(alone=other)),
        "throughput.tokens_per_joule": under_load_of("train", power_w=640.0),
        "measure.second_opinion": told("dcgm.json", c.diagnosis("Pass", "Fail")),
    }


def under_load_of(step, **changes):
    """Samples in which all cards show `changes` while they work in one step."""
    return {"samples": h.with_gpu_samples(lambda gpu, _: changes if gpu.util_pct == 100 else {}, (step,))}


FALLEN = "NVRM: Xid (PCI:0000:02:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."
SLOW_ROWS = [h.row(p, rates=(26_900, 23_000)) for p in (20.0, 50.0, 70.0, 90.0, 100.0)]
DRIFT_ROWS = [h.row(p, rates=(26_900, rate)) for p, rate in ((20.0, 27_500), (40.0, 27_400), (90.0, 26_000))]
ERROR_ROWS = [h.row(30.0, errors=("0 ", "12  (WARNING!)")), h.row(60.0), h.row(100.0)]

NOT_PUT_BACK = '{"restored": [], "failed": ["slot2: power limit 450 W: the card stays at 100 W"]}'
FAILS = {
    "kernel.same_boot": {"boot_id_after": "another"},
    "software.driver_version": {
        "facts": h.facts(driver=DriverFacts(loaded="515.105.01", library="535.247.01"), gpus=())
    },
    "topology.gpu_count": {"facts": h.facts(gpus=(h.gpu(0),))},
    "topology.gpu_model": {"facts": h.facts(gpus=(h.gpu(0), h.gpu(1, name="NVIDIA GeForce RTX 3090")))},
    "topology.gpu_memory": {"facts": h.facts(gpus=(h.gpu(0), h.gpu(1, memory_mib=12288)))},
    "topology.nvlink": {"facts": h.facts(gpus=(three_links(0), three_links(1)))},
    "topology.nvlink_speed": {
        "facts": h.facts(
            gpus=(
                h.gpu(0),
                h.gpu(
                    1,
                    links=(
                        *h.gpu(1).links[:3],
                        LinkFacts(link=3, active=True, remote_pci_bus_id=h.BUS[0], speed_gb_per_s=7.03),
                    ),
                ),
            )
        )
    },
    "measure.probes": {"logs": h.with_logs(probes__json=h.probes(seconds=14.2))},
    "topology.nvlink_errors": counted(links=[{"link": 0, "replay": 2, "recovery": 0, "crc_flit": 2104, "crc_data": 0}]),
    "topology.p2p_access": {"facts": h.facts(pairs=(PairFacts(slots=(1, 2), read="CNS", write="CNS"),))},
    "topology.p2p_bytes": {"logs": h.with_logs(p2p__json=h.p2p(wrong_bytes=4096))},
    "topology.numa": {"facts": h.facts(numa_nodes=(0, 1), places=(h.place(0, numa_node=0), h.place(1, numa_node=1)))},
    "topology.aer_port": counted(aer={"card": h.device(), "ports": [h.device("0000:00:02.1", BadTLP=900)]}),
    "topology.aer_card": counted(aer={"card": h.device(RxErr=900), "ports": [h.device("0000:00:02.1")]}),
    "topology.pcie_replays": counted(pcie_replays=310),
    "topology.pcie_gen": under_load(pcie_gen=3),
    "topology.pcie_width": under_load(pcie_width=4),
    "kernel.clock": {"logs": h.with_logs(clock__json=json.dumps(h.CLOCK | {"rig_s": h.CLOCK["rig_s"] + 30}))},
    "kernel.time_sync": {"facts": h.facts(time_sync=TimeSyncFacts(service=False, synchronised=False))},
    "topology.fabric_manager": {"facts": h.facts(fabric_manager=FabricManagerFacts(installed=False))},
    "memory.host": {
        "logs": h.with_logs(host_memory__json=h.host_memory(exit_status=2, said=["vm: detected 3 bit errors"]))
    },
    "memory.ecc": counted(ecc={"on": True, "corrected": 3, "uncorrected": 1})
    | {"facts": h.facts(gpus=(h.gpu(0), h.gpu(1, ecc=EccReading(on=True, corrected=3, uncorrected=0))))},
    "memory.remapped_rows": counted(remapped_rows={"corrected": 0, "uncorrected": 1, "pending": True, "failed": False}),
    "kernel.xid": kernel(FALLEN),
    "thermals.fans": {"samples": h.with_samples(("gpu_burn",), fans_rpm={"d5next Pump speed": 0})},
    "thermals.resistance": under_load(temp_c=62.0, power_w=250.0),
    "thermals.rest_temp": {"samples": h.with_gpu_samples(lambda *_: {"temp_c": 41.0}, ("idle",))},
    "thermals.card_spread": under_load(temp_c=64.0),
    "thermals.steady_state": {
        "samples": h.with_gpu_samples(lambda gpu, s: {"temp_c": 20 + s.t_mono_s - 1000} if gpu.slot == 2 else {})
    },
    "thermals.memory_temp": under_load(memory_temp_c=112.0)
    | {"facts": h.facts(gpus=(h.gpu(0), h.gpu(1, memory_max_temp_c=110.0)))},
    "thermals.hotspot_temp": under_load(margin_c=2.0),
    "thermals.fan_speed": under_load(fan_pct=95),
    "thermals.settled_gpu_temp": under_load(temp_c=74.0),
    "thermals.guard": {"events": h.guard_stop("gpu_burn", 25.0, reason="temperature", slot=2, found=85.0, limit=85.0)},
    "measure.left_as_found": {"logs": h.with_logs(restored__json=NOT_PUT_BACK)},
    "thermals.throttle": under_load(throttle=0x4 | 0x40),
    "thermals.cpu_temp": {"samples": h.with_samples(("cpu_burn",), cpu_temp_c=95.0)},
    "power.limit": {"facts": h.facts(gpus=(h.gpu(0), h.gpu(1, power_limit_w=350.0)))},
    "power.share_of_limit": under_load(power_w=300.0),
    "power.idle": {
        "samples": h.with_gpu_samples(lambda gpu, _: {"power_w": 104.0} if gpu.slot == 2 else {}, ("idle",))
    },
    "power.wall": {"samples": h.with_samples(("all_burn",), wall_power_w=1420.0)},
    "power.brake": under_load(throttle=0x80),
    "power.step_load": {
        "logs": h.with_logs(step_load__json=h.switched(step_load_stages(h.PROFILE), wrong=16)),
    },
    "power.idle_to_load": {"logs": h.with_logs(idle_to_load__json=h.switched(wake_stages(h.PROFILE), done=40))},
    "power.residual": {"samples": h.with_samples(("gpu_burn",), wall_power_w=1340.0)},
    "software.gpu_burn_build": {
        "facts": h.facts(tools=tools(gpu_burn_build={"commit": "3ead140", "compute_capabilities": "['7.5']"}))
    },
    "throughput.gpu_burn": {"logs": h.with_logs(gpu_burn__log=h.burn_log(ERROR_ROWS))},
    "throughput.burn_gflops": {"logs": h.with_logs(gpu_burn__log=h.burn_log(SLOW_ROWS))},
    "throughput.cpu_burn": {
        "events": tuple(
            e.model_copy(update={"detail": e.detail | {"exit_status": 2}})
            if e.event == "load_exited" and e.detail["load"] == "cpu"
            else e
            for e in h.events()
        )
    },
    "throughput.cpu_clock": {"samples": h.with_samples(("cpu_burn",), cpu_mhz=1800.0)},
    "disk.space": {"facts": h.facts(filesystems=(FilesystemFacts(place="/", size_gb=1967.5, free_gb=1.2),))},
    "disk.health": {"facts": h.facts(disks=(h.nvme(smart_log=h.smart_log(media_errors=44)),))},
    "disk.size": {"facts": h.facts(disks=(h.nvme(size_gb=500.1),))},
    "disk.speed": {"logs": h.with_logs(disk__json=h.fio(read_mb_per_s=140.0))},
    "network.link": {"facts": h.facts(network=(h.network_card(speed_mbit_per_s=100),))},
    "throughput.p2p_one_way": {"logs": h.with_logs(p2p__json=h.p2p(one_way_gb_per_s=[52.8, 39.4]))},
    "throughput.p2p_both_ways": {"logs": h.with_logs(p2p__json=h.p2p(both_ways_gb_per_s=74.9))},
    "software.torch": {"facts": h.facts(tools=tools(torch="2.8.0+cu128"))},
    **computed_fails(),
    "throughput.training": trained(tokens_per_s=4100.0),
    "software.cuda_toolkit": {"facts": h.facts(tools=tools(nvcc="12.2"))},
}
MOVED = (h.place(0, uuid=h.UUIDS[1]), h.place(1, uuid=h.UUIDS[0]))
FOREIGN = ModuleFacts(name="v4l2loopback", taint="OE")
FAILS_AGAINST_THE_ACCEPTED_RUN = {
    "identity.cards": {"facts": h.facts(places=MOVED)},
    "identity.card_firmware": {"facts": h.facts(gpus=(h.gpu(0), h.gpu(1, vbios="94.02.A0.00.63")))},
    "identity.settings": {"facts": h.facts(cpu_threads=12)},
    "identity.machine": {"facts": h.facts(disks=())},
    "identity.modules": {"facts": h.facts(modules=(*h.facts().modules, FOREIGN))},
}
FAILS |= FAILS_AGAINST_THE_ACCEPTED_RUN
PROFILES = {"thermals.steady_state": h.PROFILE.model_copy(update={"gpu_burn_seconds": 600})}
"""Where a check fails in a longer burn only."""
STOPS = {
    "spec": ({"sensor": "core", "limit_from": "spec"}, "limits.guard_max_gpu_temp_c"),
    "history": ({"sensor": "core", "limit_from": "history"}, "settled in an accepted run"),
    "card": ({"sensor": "memory", "limit_from": "card"}, "highest temperature of its memory"),
    "memory": ({"sensor": "memory", "limit_from": "spec"}, "limits.guard_max_gpu_memory_temp_c"),
}
SPECS = {"topology.fabric_manager": h.spec(parts={"links": (), "nvswitch_links": 18})}
"""Where a check fails on rigs of another kind only."""
CANNOT_FAIL = {
    "measure.reached": "a rig that is not reached is an error",
    "measure.telemetry": "missing samples are an error",
}


def test_every_check_has_a_rig_on_which_it_fails():
    judged_afterwards = {info.id for info in CATALOGUE.values() if info.afterwards}  # tests/spec/test_waivers.py
    assert set(FAILS) | set(CANNOT_FAIL) | judged_afterwards == set(CATALOGUE)


@pytest.mark.parametrize("check", FAILS)
def test_it_fails(check):
    readings, profile = h.readings(**FAILS[check]), PROFILES.get(check, h.PROFILE)
    baseline = h.baseline() if check in FAILS_AGAINST_THE_ACCEPTED_RUN else None
    verdicts = all_verdicts(SPECS.get(check), readings, profile, baseline=baseline)
    failed = [v for v in verdicts if v.check == check and v.verdict is Verdict.FAIL]
    assert failed, [v for v in verdicts if v.check == check]
    for verdict in failed:
        assert verdict.fix
        assert verdict.reason
        assert verdict.found is not None
        assert verdict.expected is not None
        assert verdict.caused_by is None


def guard_verdict(**detail):
    stopped = h.readings(events=h.guard_stop("gpu_burn", 25.0, **detail))
    (found,) = [v for v in all_verdicts(readings=stopped) if v.check == "thermals.guard"]
    return found


@pytest.mark.parametrize("limit_from", STOPS)
def test_the_guards_verdict_says_which_sensor_and_whose_limit(limit_from):
    more, words = STOPS[limit_from]
    found = guard_verdict(reason="temperature", slot=2, found=85.0, limit=85.0, **more)
    assert (found.verdict, found.subject) == (Verdict.FAIL, h.SLOT2)
    assert words in found.source
    assert ("memory" in found.reason) is (more["sensor"] == "memory")


def test_a_rise_that_would_have_crossed_the_limit_fails_before_it_does():
    found = guard_verdict(reason="temperature", slot=2, found=71.0, limit=80.0, expected_c=81.0, sensor="core")
    assert (found.verdict, found.found, found.expected) == (Verdict.FAIL, 71, 80)
    assert "71 °C and rose so fast that 81 °C were 2 s away" in found.reason


def test_hot_spot_and_processor_fail_in_their_own_words():
    spot = guard_verdict(
        reason="temperature",
        slot=1,
        found=-4.0,
        limit=-5,
        unit="°C from slowdown",
        sensor="hot spot",
        limit_from="card",
    )
    assert (spot.verdict, spot.unit, spot.subject) == (Verdict.FAIL, "°C from slowdown", h.SLOT1)
    assert "within 4 °C of slowing the card down" in spot.reason
    hot = guard_verdict(reason="temperature", found=96.0, limit=95.0, sensor="processor", limit_from="sensor")
    assert (hot.verdict, hot.subject) == (Verdict.FAIL, "rig")
    assert "the processor reached 96 °C" in hot.reason
    assert "critical" in hot.source


@pytest.mark.parametrize(
    ("detail", "words"),
    [
        ({"reason": "power_brake", "slot": 2, "found": "the power-brake signal"}, "signalled power brake"),
        ({"reason": "fan_still", "sensor": "nct6798 pump", "found": 61.0, "limit": 60}, "nct6798 pump stood still"),
    ],
)
def test_power_brake_and_a_fan_that_stands_still_fail(detail, words):
    found = guard_verdict(**detail)
    assert found.verdict is Verdict.FAIL
    assert words in found.reason
    assert found.fix
    # Power brake has a check of its own, which is told first.
    assert found.caused_by == (f"power.brake[{h.SLOT2}]" if detail["reason"] == "power_brake" else None)


def test_somebody_elses_work_is_no_fault_of_the_rig_and_is_named():
    found = guard_verdict(reason="others_work", found="77 train.py (alice) on slot1")
    assert found.verdict is Verdict.ERROR
    assert "77 train.py (alice) on slot1" in found.reason


@pytest.mark.parametrize("check", FAILS)
def test_a_fault_of_one_card_is_not_the_other_cards(check):
    verdicts = all_verdicts(readings=h.readings(**FAILS[check]))
    assert not [v for v in verdicts if v.subject == h.SLOT1 and v.verdict is Verdict.FAIL], check


def test_a_rate_that_falls_during_the_burn_fails_with_the_drift_as_limit():
    readings = h.readings(logs=h.with_logs(gpu_burn__log=h.burn_log(DRIFT_ROWS)))
    long = h.PROFILE.model_copy(update={"gpu_burn_seconds": 600})
    (failed,) = [v for v in throughput.burn_gflops(h.spec(), readings, long) if v.verdict is Verdict.FAIL]
    short = throughput.burn_gflops(h.spec(), readings, h.PROFILE)
    assert {v.verdict for v in short} == {Verdict.PASS}, "half a minute tells no drift"
    assert (failed.check, failed.subject, failed.expected, failed.unit) == (
        "throughput.burn_gflops", h.SLOT2, 0.03, "share",
    )  # fmt: skip


def test_a_card_that_stops_working_in_the_burn_has_a_rate_of_zero():
    rows = [h.row(p, rates=(26_900, 0 if p > 70 else 26_700)) for p in (20.0, 50.0, 68.0, 80.0, 90.0, 100.0)]
    verdicts = all_verdicts(readings=h.readings(logs=h.with_logs(gpu_burn__log=h.burn_log(rows))))
    (found,) = [v for v in verdicts if v.key == f"throughput.burn_gflops[{h.SLOT2}]"]
    assert (found.verdict, found.found) == (Verdict.FAIL, 0)


@pytest.mark.parametrize("step", ["gpu_burn", "all_burn"])
def test_the_wall_is_two_sided_and_judged_per_load(step):
    limits = {"wall_power_gpu_burn_w": 1120.0}
    for card_w, watts, word in ((360.0, 960.0, "FAIL"), (440.0, 1500.0, "FAIL"), (440.0, 1180.0, "PASS")):
        cards = h.with_gpu_samples(lambda _gpu, s, w=card_w: {"power_w": w} if s.step == step else {})
        readings = h.readings(
            samples=[s.model_copy(update={"wall_power_w": watts}) if s.step == step else s for s in cards]
        )
        (found,) = [v for v in all_verdicts(h.spec(limits=limits), readings) if v.key == f"power.wall[{step}]"]
        assert found.verdict is Verdict[word]
