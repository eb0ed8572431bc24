"""What is no figure passes no limit: every check on every kind of bad reading."""

from __future__ import annotations

import json
from functools import cache
from itertools import pairwise

import pytest

from rigctl.checks.catalogue import CATALOGUE
from rigctl.model.reading import Sample, no_number
from rigctl.model.spec import CoolingSpec, SettingsSpec
from rigctl.model.verdict import Verdict

from . import bad_input
from . import healthy as h
from .bad_words import OWN, SPECS, samples
from .test_fail import under_load
from .test_healthy import all_verdicts

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
    "topology.fabric_manager": "words of systemd, and versions",
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
    assert {v.check for v in found if v.verdict is not Verdict.PASS} == set(SPECS)


@pytest.mark.parametrize(("check", "kind"), PASSES_ALL_THE_SAME)
def test_an_exception_that_nothing_needs_any_more_is_removed(check, kind):
    assert Verdict.PASS in {v.verdict for v in verdicts(kind) if v.check == check}


@pytest.mark.parametrize("check", NO_FIGURE)
def test_what_is_judged_on_something_else_passes_on_none_of_its_bad_readings(check):
    assert OWN[check]
    for changes in OWN[check]:
        said = all_verdicts(SPECS.get(check), h.readings(**changes), baseline=h.baseline())
        found = [v for v in said if v.check == check]
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
