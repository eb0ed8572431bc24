"""What is no figure passes no limit: every check on every kind of bad reading."""

from __future__ import annotations

import json
from functools import cache
from itertools import pairwise

import pytest

from rigctl.checks.catalogue import CATALOGUE
from rigctl.model.reading import DriverFacts, KernelMessage, PairFacts, Sample, TimeSyncFacts, no_number
from rigctl.model.spec import CoolingSpec, SettingsSpec
from rigctl.model.verdict import Verdict

from . import bad_input
from . import healthy as h
from .healthy_compute import diagnosis
from .test_fail import tools, trained, under_load
from .test_healthy import all_verdicts

TRAINING = "throughput.training"
JUDGED = [info.id for info in CATALOGUE.values() if not info.afterwards]
NO_FIGURE = {
    "measure.reached": "the connection's own word",
    "measure.second_opinion": "words of DCGM",
    "measure.telemetry": "numbers and times of samples",
    "measure.left_as_found": "words of the rig",
    "kernel.same_boot": "ids",
    "kernel.xid": "lines of the kernel log",
    "kernel.time_sync": "the rig's word",
    "software.driver_version": "versions",
    "software.torch": "a version",
    "software.cuda_toolkit": "a version",
    "software.gpu_burn_build": "names",
    "identity.cards": "ids and places",
    "identity.machine": "names and serial numbers; sizes may be more",
    "identity.modules": "names",
    "topology.gpu_count": "how many cards there are",
    "topology.gpu_model": "names",
    "topology.p2p_access": "the driver's word",
    "thermals.guard": "events",
}
"""What these are judged on instead of figures: their own bad readings are in `OWN`."""
PASSES_ALL_THE_SAME = {
    ("topology.nvlink_errors", "absurd"): "a counter's rise is judged: as high before as after is no error",
    ("topology.aer_port", "absurd"): "a counter's rise",
    ("topology.aer_card", "absurd"): "a counter's rise",
    ("topology.pcie_replays", "absurd"): "a counter's rise",
    ("kernel.clock", "absurd"): "two clocks that are wrong alike agree",
    ("power.brake", "absurd"): "a mask of bits, as below",
    ("thermals.throttle", "absurd"): "a mask of bits has no size, and newer drivers know more of them",
}


@cache
def verdicts(kind):
    """What the checks say of a rig whose every figure is bad."""
    readings, topo, nvlink = bad_input.readings(kind)
    return all_verdicts(readings=readings, topo=h.reply(topo), nvlink=h.reply(nvlink), baseline=h.baseline())


@pytest.mark.parametrize("kind", bad_input.KINDS)
@pytest.mark.parametrize("check", [one for one in JUDGED if one not in NO_FIGURE])
def test_a_bad_figure_is_no_pass(check, kind):
    found = [v for v in verdicts(kind) if v.check == check]
    assert found
    if (check, kind) not in PASSES_ALL_THE_SAME:
        assert [v for v in found if v.verdict is Verdict.PASS] == []
    assert all(v.fix for v in found if v.verdict in (Verdict.FAIL, Verdict.ERROR))


def test_without_the_bad_figures_each_check_passes():
    found = all_verdicts(readings=bad_input.outspoken(), baseline=h.baseline())
    assert {v.key: v.verdict for v in found if v.verdict is not Verdict.PASS} == {}


@pytest.mark.parametrize(("check", "kind"), PASSES_ALL_THE_SAME)
def test_an_exception_that_nothing_needs_any_more_is_removed(check, kind):
    assert Verdict.PASS in {v.verdict for v in verdicts(kind) if v.check == check}


def with_place(**changes):
    return h.facts(places=(h.place(0), h.place(1, **changes)))


def named(name):
    return {"facts": h.facts(gpus=(h.gpu(0), h.gpu(1, name=name, missing={"name": name})))}


def samples(change):
    """The healthy samples with `change(number, sample) → updates` made to each."""
    return {"samples": tuple(s.model_copy(update=change(n, s)) for n, s in enumerate(h.samples()))}


def backwards(number, sample):
    """The rig's monotonic clock jumps back by ten seconds in the middle of the GPU burn, and goes on from there."""
    return {"t_mono_s": sample.t_mono_s - (10 if number >= 40 else 0)}


NVML_DEAD = DriverFacts(loaded="515.105.01", library="515.105.01", nvml_error="Unknown Error")
OWN = {
    "measure.reached": [{"unreached": "no route to host"}],
    "measure.telemetry": [
        {"samples": ()},
        {"samples": h.samples()[:1]},
        samples(backwards),
        samples(lambda _n, _s: {"t_mono_s": 1000.0}),
        samples(lambda n, _s: {"seq": 0 if n < 9 else n}),
        {"samples": tuple(reversed(h.samples()))},
    ],
    "measure.left_as_found": [
        {"logs": h.with_logs(restored__json=text)}
        for text in ("N/A", "", "[]", "null", '{"restored": null, "failed": []}', '{"restored": []}')
    ],
    "measure.second_opinion": [
        {"logs": h.without_logs("dcgm.json")},
        *({"logs": h.with_logs(dcgm__json=text)} for text in ("", "N/A", "{}", "[]", '{"installed": "N/A"}')),
        *({"logs": h.with_logs(dcgm__json=diagnosis(word, word))} for word in ("N/A", "[Unknown Error]", "ERR!", "-7")),
        {"logs": h.with_logs(dcgm__json=json.dumps({"installed": True, "output": "Error: ERR!"}))},
    ],
    "kernel.same_boot": [
        {"boot_id_after": None},
        {"samples": (), "boot_id_after": None},
        samples(lambda n, s: {"boot_id": s.boot_id if n < 40 else "N/A"}),
    ],
    "kernel.xid": [
        {"kernel_read": False},
        {"kernel": (KernelMessage(t_wall_s=h.T0, message="NVRM: Xid: N/A"),)},
        {"kernel": (KernelMessage(t_wall_s=h.T0, message="NVRM: Xid (PCI:ERR!): [Unknown Error]"),)},
    ],
    "kernel.time_sync": [{"facts": h.facts(time_sync=None)}, {"facts": h.facts(time_sync=TimeSyncFacts())}],
    "software.driver_version": [
        {"facts": h.facts(driver=DriverFacts(loaded=loaded, library=library))}
        for loaded, library in ((None, "515.105.01"), ("515.105.01", None), ("N/A", "N/A"), ("ERR!", "515.105.01"))
    ],
    "software.torch": [{"facts": h.facts(tools=tools(torch=one))} for one in (None, "", "N/A", "[Unknown Error]")],
    "software.cuda_toolkit": [{"facts": h.facts(tools=tools(nvcc=one))} for one in (None, "", "N/A", "-1")],
    "software.gpu_burn_build": [
        {"facts": h.facts(tools=tools(gpu_burn_build=one))}
        for one in ({}, {"commit": "3ead140"}, {"commit": "3ead140", "compute_capabilities": "N/A"})
    ],
    "identity.cards": [
        {"facts": h.facts(places=())},
        {"facts": with_place(listed=False)},
        {"facts": with_place(root_port=None, below=None, root_path=None)},
        {"facts": h.facts(gpus=(h.gpu(0), h.gpu(1, uuid=h.UUIDS[0])))},
        {"facts": h.facts(gpus=(h.gpu(0), h.gpu(1, uuid="N/A")))},
    ],
    "identity.machine": [
        {"facts": h.facts(memory_modules=None, memory_mib=0)},
        {"facts": h.facts(disks=None)},
        {"facts": h.facts(network=None)},
        {"facts": h.facts(cpu_model="")},
    ],
    "identity.modules": [{"facts": h.facts(modules=None)}],
    "topology.gpu_count": [
        {"facts": h.facts(gpus=(), driver=NVML_DEAD)},
        {"facts": h.facts(gpus=())},
        {"facts": h.facts(gpus=(h.gpu(0),))},
        {"facts": h.facts(gpus=(h.gpu(0), h.gpu(1), h.gpu(1, index=2, slot=3, uuid="GPU-3")))},
    ],
    "topology.gpu_model": [named(name) for name in ("", "N/A", "[Unknown Error]", "ERR!")],
    "topology.p2p_access": [
        {"facts": h.facts(pairs=pairs)}
        for pairs in (
            (),
            (PairFacts(slots=(1, 2)),),
            *((PairFacts(slots=(1, 2), read=word, write="OK"),) for word in ("N/A", "U", "[Unknown Error]", "ERR!")),
        )
    ],
    "thermals.guard": [
        {"events": ()},
        {"events": h.events()[:-1]},
        {"events": h.guard_stop("gpu_burn", 25.0)},
        {"events": h.guard_stop("gpu_burn", 25.0, reason="N/A", found="ERR!", limit=None)},
    ],
}


@pytest.mark.parametrize("check", NO_FIGURE)
def test_what_is_judged_on_something_else_passes_on_none_of_its_bad_readings(check):
    assert OWN[check]
    for changes in OWN[check]:
        found = [v for v in all_verdicts(readings=h.readings(**changes), baseline=h.baseline()) if v.check == check]
        bad = [v for v in found if v.verdict not in (Verdict.PASS, Verdict.SKIP)]
        assert bad, (changes, found)
        assert all(v.fix for v in bad if v.verdict in (Verdict.FAIL, Verdict.ERROR))


STUCK = {
    "temp_c": (
        samples(lambda _n, s: {"gpus": tuple(one.model_copy(update={"temp_c": 55.0}) for one in s.gpus)}),
        {"thermals.settled_gpu_temp", "thermals.resistance", "thermals.steady_state", "thermals.card_spread"},
    ),
    "power_w at rest": (
        samples(lambda _n, s: {"gpus": tuple(one.model_copy(update={"power_w": 21.0}) for one in s.gpus)}),
        {"power.share_of_limit", "thermals.resistance"},
    ),
    "power_w under load": (
        samples(lambda _n, s: {"gpus": tuple(one.model_copy(update={"power_w": 444.0}) for one in s.gpus)}),
        {"power.idle"},
    ),
    "cpu_temp_c": (samples(lambda _n, _s: {"cpu_temp_c": 61.0}), {"thermals.cpu_temp"}),
    "wall_power_w": (samples(lambda _n, _s: {"wall_power_w": 1238.0}), {"power.wall", "power.residual"}),
    "fans_rpm": (samples(lambda _n, _s: {"fans_rpm": {"d5next Pump speed": 2800}}), {"thermals.fans"}),
    "pcie_gen asleep": (
        samples(lambda _n, s: {"gpus": tuple(one.model_copy(update={"pcie_gen": 1}) for one in s.gpus)}),
        {"topology.pcie_gen"},
    ),
    "util_pct": (
        samples(lambda _n, s: {"gpus": tuple(one.model_copy(update={"util_pct": 0}) for one in s.gpus)}),
        {"thermals.settled_gpu_temp", "topology.pcie_gen", "topology.pcie_width", "power.share_of_limit"},
    ),
}


@pytest.mark.parametrize("sensor", STUCK)
def test_a_sensor_that_is_stuck_passes_nothing_that_it_decides(sensor):
    changes, checks = STUCK[sensor]
    found = [v for v in all_verdicts(readings=h.readings(**changes)) if v.check in checks]
    assert {v.check for v in found} == checks
    assert [v.key for v in found if v.verdict is Verdict.PASS] == []


def test_samples_out_of_order_in_time_are_no_curve_and_no_telemetry():
    def shuffled(number, sample):
        return {"t_mono_s": sample.t_mono_s + (3.0 if number % 4 == 0 else 0.0)}

    found = all_verdicts(readings=h.readings(**samples(shuffled)))
    ordered = {
        "measure.telemetry",
        "thermals.settled_gpu_temp",
        "thermals.resistance",
        "thermals.steady_state",
        "thermals.card_spread",
    }
    assert {v.check: v.verdict for v in found if v.check in ordered} == dict.fromkeys(ordered, Verdict.ERROR)


def test_the_order_of_samples_is_told_at_its_boundary():
    times = [s.t_mono_s for s in h.samples()]
    assert all(later > earlier for earlier, later in pairwise(times))
    same = samples(lambda n, s: {"t_mono_s": s.t_mono_s - (0.5 if n == 40 else 0)})
    (error,) = [v for v in all_verdicts(readings=h.readings(**same)) if v.check == "measure.telemetry"]
    assert error.verdict is Verdict.ERROR
    assert "number 40 was not taken after number 39" in error.reason
    late = samples(lambda n, s: {"t_mono_s": s.t_mono_s - (0.499 if n == 40 else 0)})
    (passed,) = [v for v in all_verdicts(readings=h.readings(**late)) if v.check == "measure.telemetry"]
    assert passed.verdict is Verdict.PASS
    rebooted = samples(lambda n, s: {"t_mono_s": s.t_mono_s - 1000, "boot_id": "another"} if n >= 40 else {})
    found = [v for v in all_verdicts(readings=h.readings(**rebooted)) if v.check == "measure.telemetry"]
    assert "was not taken after" not in found[0].reason, "each boot has a clock of its own"


def test_no_figure_is_judged_by_the_clock_on_the_wall():
    def jumped(number, sample):
        return {"t_wall_s": sample.t_wall_s + (10_800 if number >= 40 else 0)}

    def about(found):
        return {v.key: v.verdict for v in found if v.check != "kernel.clock"}

    assert about(all_verdicts(readings=h.readings(**samples(jumped)))) == about(all_verdicts())


CARDS = {
    "none": (),
    "one of two": (h.gpu(0),),
    "three": (h.gpu(0), h.gpu(1), h.gpu(1, index=2, slot=3, uuid="GPU-33333333-0000-4000-8000-00000000c13d")),
    "one of them twice": (h.gpu(0), h.gpu(0, index=1, slot=2)),
}


@pytest.mark.parametrize("gpus", CARDS.values(), ids=CARDS)
def test_another_number_of_cards_than_declared_is_never_a_healthy_rig(gpus):
    found = all_verdicts(readings=h.readings(facts=h.facts(gpus=gpus)), baseline=h.baseline())
    bad = {v.check for v in found if v.verdict in (Verdict.FAIL, Verdict.ERROR)}
    assert bad & {"topology.gpu_count", "identity.cards"}
    assert {v.check for v in found} == set(JUDGED), "each check still says something"


def test_what_a_missing_card_leaves_unmeasured_is_an_error_of_each_check():
    found = all_verdicts(readings=h.readings(facts=h.facts(gpus=(h.gpu(0),))))
    absent = {v.check for v in found if v.subject == "absent card"}
    assert {"topology.gpu_memory", "thermals.settled_gpu_temp", "power.share_of_limit"} <= absent
    assert {v.verdict for v in found if v.subject == "absent card"} == {Verdict.ERROR}


MUTE = [h.gpu(0, vbios=None), h.gpu(1, vbios=None)]
ASKED_IN_VAIN = {
    "memory temperature": ("thermals.memory_temp", {"limits": {"max_settled_gpu_memory_temp_c": 95}}, {}),
    "fans": ("thermals.fan_speed", {}, under_load(fan_pct=None)),
    "a tachometer": ("thermals.fans", {"cooling": CoolingSpec(min_rpm={"d5next Flow": 100})}, {}),
    "VBIOS": ("identity.card_firmware", {"settings": SettingsSpec(gpu_vbios=("1",))}, {"facts": h.facts(gpus=MUTE)}),
    "memory speed": (
        "identity.settings",
        {"settings": SettingsSpec(min_memory_mt_per_s=3600)},
        {"facts": h.facts(memory_modules=None)},
    ),
    "BAR1": (
        "identity.settings",
        {"settings": SettingsSpec(min_bar1_mib=24576)},
        {"facts": h.facts(places=(h.place(0, bar1_mib=None), h.place(1, bar1_mib=None)))},
    ),
    "CPU temperature": ("thermals.cpu_temp", {}, samples(lambda _n, _s: {"cpu_temp_c": None})),
    "a room's sensor": (
        "thermals.rest_temp",
        {},
        {"samples": h.with_gpu_samples(lambda *_: {"temp_c": None}, ("idle",))},
    ),
    "link speed": (
        "topology.nvlink_speed",
        {"parts": {"min_nvlink_gb_per_s": 25.0}},
        {"facts": h.facts(gpus=(h.gpu(0, links=()), h.gpu(1, links=())))},
    ),
    "lanes": ("topology.pcie_width", {}, under_load(pcie_width=None)),
    "NUMA": ("topology.numa", {}, {"facts": h.facts(numa_nodes=(0, 1))}),
    "wall power": ("power.wall", {}, samples(lambda _n, _s: {"wall_power_w": None, "wall_error": "no meter"})),
    "CPU power": ("power.residual", {}, samples(lambda _n, _s: {"cpu_power_w": None})),
}


@pytest.mark.parametrize("what", ASKED_IN_VAIN)
def test_a_spec_that_asks_for_what_is_not_shown_gets_no_pass(what):
    check, asked, changes = ASKED_IN_VAIN[what]
    found = [v for v in all_verdicts(h.spec(**asked), h.readings(**changes)) if v.check == check]
    shown = {v.subject for v in found if v.verdict is Verdict.PASS}
    assert found
    assert "rig" not in shown
    assert h.SLOT2 not in shown


@pytest.mark.parametrize("word", ["NaN", "Infinity", "-Infinity"])
def test_what_json_does_not_know_was_not_measured(word):
    line = h.samples()[40].model_dump_json().replace('"cpu_temp_c":45.0', f'"cpu_temp_c":{word}')
    assert word in line
    assert Sample.model_validate(json.loads(line, parse_constant=no_number)).cpu_temp_c is None
    with pytest.raises(ValueError, match="finite"):
        Sample.model_validate_json(line)


def limits_of_power(watts):
    gpus = (h.gpu(0), h.gpu(1, power_limit_w=watts, power_default_w=watts, power_max_w=watts))
    spec = h.spec(software={"power_limit_w": None})
    limited = samples(
        lambda _n, s: {"gpus": (s.gpus[0], *(one.model_copy(update={"limit_w": watts}) for one in s.gpus[1:]))}
    )
    found = all_verdicts(spec, h.readings(facts=h.facts(gpus=gpus), **limited))
    return next(v for v in found if v.key == f"power.limit[{h.SLOT2}]")


@pytest.mark.parametrize(
    ("margin_c", "verdict"), [(-150.0, "ERROR"), (-149.9, "FAIL"), (149.9, "PASS"), (150.0, "ERROR")]
)
def test_what_is_no_distance_from_slowing_down_is_an_error(margin_c, verdict):
    found = all_verdicts(readings=h.readings(**under_load(margin_c=margin_c)))
    assert next(v for v in found if v.key == f"thermals.hotspot_temp[{h.SLOT2}]").verdict is Verdict[verdict]


@pytest.mark.parametrize(
    ("watts", "verdict"), [(0.0, "ERROR"), (-7.0, "ERROR"), (0.1, "PASS"), (2000.0, "PASS"), (2000.1, "ERROR")]
)
def test_what_is_no_power_limit_is_an_error(watts, verdict):
    assert limits_of_power(watts).verdict is Verdict[verdict]


@pytest.mark.parametrize(
    ("changes", "check", "verdict"),
    [
        ({"pcie_gen": 0}, "topology.pcie_gen", "ERROR"),
        ({"pcie_gen": 1}, "topology.pcie_gen", "FAIL"),
        ({"pcie_gen": 8}, "topology.pcie_gen", "WARN"),
        ({"pcie_gen": 9}, "topology.pcie_gen", "ERROR"),
        ({"pcie_width": 0}, "topology.pcie_width", "ERROR"),
        ({"pcie_width": 1}, "topology.pcie_width", "FAIL"),
        ({"pcie_width": 32}, "topology.pcie_width", "WARN"),
        ({"pcie_width": 33}, "topology.pcie_width", "ERROR"),
    ],
)
def test_what_is_no_number_of_lanes_is_an_error(changes, check, verdict):
    found = all_verdicts(readings=h.readings(**under_load(**changes)))
    assert next(v for v in found if v.key == f"{check}[{h.SLOT2}]").verdict is Verdict[verdict]


@pytest.mark.parametrize(
    ("rate", "verdict"), [(0, "ERROR"), (-1, "ERROR"), (1, "FAIL"), (1e8 - 1, "PASS"), (1e8, "ERROR")]
)
def test_what_is_no_rate_of_training_is_an_error(rate, verdict):
    (found,) = [v for v in all_verdicts(readings=h.readings(**trained(tokens_per_s=rate))) if v.check == TRAINING]
    assert found.verdict is Verdict[verdict]


@pytest.mark.parametrize(
    ("mib", "verdict"), [(0, "ERROR"), (-1, "ERROR"), (1 << 20, "PASS"), ((1 << 20) + 1, "ERROR"), (24564, "PASS")]
)
def test_what_is_no_size_of_a_memory_is_an_error(mib, verdict):
    found = all_verdicts(readings=h.readings(facts=h.facts(gpus=(h.gpu(0), h.gpu(1, memory_mib=mib)))))
    assert next(v for v in found if v.key == f"topology.gpu_memory[{h.SLOT2}]").verdict is Verdict[verdict]


@pytest.mark.parametrize(("celsius", "verdict"), [(0.0, "ERROR"), (0.1, "PASS"), (149.9, "FAIL"), (150.0, "ERROR")])
def test_what_is_no_temperature_of_a_cpu_is_an_error(celsius, verdict):
    seen = h.with_samples(("cpu_burn", "all_burn"), cpu_temp_c=celsius)
    (found,) = [v for v in all_verdicts(readings=h.readings(samples=seen)) if v.check == "thermals.cpu_temp"]
    assert found.verdict is Verdict[verdict]


@pytest.mark.parametrize(("at_rest", "verdict"), [(2, "PASS"), (3, "ERROR")])
def test_a_cpu_sensor_is_stuck_where_rest_and_load_are_told_often_enough(at_rest, verdict):
    def told(number, sample):
        return {"cpu_temp_c": 61.0 if sample.step != "idle" or number < at_rest else None}

    (found,) = [v for v in all_verdicts(readings=h.readings(**samples(told))) if v.check == "thermals.cpu_temp"]
    assert found.verdict is Verdict[verdict]


def test_a_power_range_that_is_not_told_any_more_is_an_error():
    gone = h.gpu(1, power_max_w=None, missing={"power_max_w": "Unknown Error"})
    found = all_verdicts(readings=h.readings(facts=h.facts(gpus=(h.gpu(0), gone))), baseline=h.baseline())
    told = {v.subject: v for v in found if v.check == "identity.card_firmware"}
    assert told[h.SLOT2].verdict is Verdict.ERROR
    assert "Unknown Error" in told[h.SLOT2].reason
    never = h.baseline(gpus=(h.gpu(0), h.gpu(1, power_max_w=None)))
    found = all_verdicts(readings=h.readings(facts=h.facts(gpus=(h.gpu(0), gone))), baseline=never)
    assert next(v for v in found if v.key == f"identity.card_firmware[{h.SLOT2}]").verdict is Verdict.PASS


@pytest.mark.parametrize(("size_gb", "verdict"), [(0.0, "ERROR"), (-1.0, "ERROR"), (1e6, "PASS"), (1e6 + 1, "ERROR")])
def test_what_is_no_size_of_a_disk_is_an_error(size_gb, verdict):
    disk = h.facts().disks[0].model_copy(update={"size_gb": size_gb})
    (found,) = [v for v in all_verdicts(readings=h.readings(facts=h.facts(disks=(disk,)))) if v.check == "disk.size"]
    assert found.verdict is Verdict[verdict]
