"""What should have been measured and was not is an error with a remedy, never a pass; what is not shown is blind."""

from __future__ import annotations

import json

import pytest

from rigctl.checks import compute
from rigctl.model.reading import DriverFacts, EccReading, KernelMessage, RigEvent
from rigctl.model.spec import WallMeterSpec
from rigctl.model.verdict import Verdict

from . import healthy as h
from .test_fail import tools, trained, under_load
from .test_healthy import NOT_BUILT_IN, all_verdicts


def of(check, readings=None, spec=None, **more):
    return [v for v in all_verdicts(spec, readings, **more) if v.check == check]


def no_burn(needs="gpu_burn"):
    """The healthy rig without gpu-burn: its steps say what they lack."""
    events = [e for e in h.events() if e.step not in ("gpu_burn", "all_burn") or not e.event.startswith("load")]
    lacks = [
        RigEvent(seq=900 + i, t_mono_s=0, t_wall_s=h.T0, event="error", step=step, detail={"needs": needs, "hint": "x"})
        for i, step in enumerate(("gpu_burn", "all_burn"))
    ]
    idle = {"util_pct": 0, "temp_c": 30.0}
    return h.readings(
        facts=h.facts(tools=tools(gpu_burn=None, gpu_burn_build={})),
        events=(*events, *lacks),
        samples=h.with_gpu_samples(lambda *_: idle),
        logs=h.without_logs("gpu_burn.log", "all_burn.log"),
    )


TRAINED_TOGETHER = (
    "throughput.train_each",
    "throughput.train_all",
    "throughput.scaling",
    "throughput.p2p_gain",
    "throughput.loss",
)
ERRORS = {
    "measure.reached": {"unreached": "no route", "unreached_fix": "is it on?"},
    "measure.telemetry": {"samples": h.samples()[:40] + h.samples()[41:]},
    "measure.left_as_found": {"logs": h.without_logs("restored.json")},
    "kernel.same_boot": {"boot_id_after": None},
    "kernel.xid": {"kernel_read": False},
    "kernel.clock": {"logs": h.without_logs("clock.json")},
    "kernel.time_sync": {"facts": h.facts(time_sync=None)},
    "memory.host": {"logs": h.without_logs("host_memory.json")},
    "memory.ecc": {"facts": h.facts(gpus=(h.gpu(0), h.gpu(1, ecc=EccReading(on=True, corrected=3, uncorrected=0))))},
    "memory.remapped_rows": {
        "logs": h.with_logs(counters__jsonl=h.counters({"missing": {"remapped_rows": "GPU is lost"}}))
    },
    "software.driver_version": {"facts": h.facts(driver=DriverFacts(loaded="515.105.01"))},
    "software.torch": {"facts": h.facts(tools=tools(torch=None))},
    "software.gpu_burn_build": {"facts": h.facts(tools=tools(gpu_burn=None))},
    "topology.gpu_memory": {"facts": h.facts(gpus=(h.gpu(0), h.gpu(1, memory_mib=None)))},
    "topology.pcie_gen": under_load(pcie_gen=None),
    "topology.pcie_width": under_load(util_pct=0),
    "thermals.fans": {"samples": h.with_samples(("gpu_burn",), fans_rpm={"d5next Pump speed": 99_999})},
    "thermals.resistance": under_load(power_w=None),
    "thermals.rest_temp": {"samples": h.with_gpu_samples(lambda *_: {"temp_c": None}, ("idle",))},
    "thermals.card_spread": under_load(temp_c=0.0),
    "thermals.steady_state": under_load(temp_c=511.0),
    "thermals.memory_temp": under_load(memory_temp_c=0.0),
    "thermals.fan_speed": under_load(fan_pct=4095),
    "thermals.settled_gpu_temp": under_load(temp_c=None),
    "thermals.guard": {"events": h.events()[:-1]},
    "thermals.cpu_temp": {"samples": h.with_samples(("cpu_burn", "all_burn"), cpu_temp_c=None)},
    "power.limit": {"facts": h.facts(gpus=(h.gpu(0), h.gpu(1, power_limit_w=None)))},
    "power.idle": {"samples": h.with_gpu_samples(lambda *_: {"power_w": None}, ("idle",))},
    "power.share_of_limit": under_load(power_w=None),
    "power.brake": {"samples": h.samples()[:2]},
    "power.step_load": {"logs": h.without_logs("step_load.json")},
    "power.idle_to_load": {"logs": h.without_logs("idle_to_load.json")},
    "power.residual": {"samples": h.with_samples(("gpu_burn",), wall_power_w=None, wall_error="timed out")},
    "power.wall": {"samples": h.with_samples(("all_burn",), wall_power_w=None, wall_error="timed out")},
    "throughput.gpu_burn": {"logs": h.without_logs("gpu_burn.log")},
    "throughput.burn_gflops": {"logs": h.with_logs(gpu_burn__log=h.burn_log([]))},
    "throughput.cpu_burn": {"logs": h.with_logs(cpu_burn__yaml="metrics:\n")},
    "throughput.cpu_clock": {"samples": h.with_samples(tuple(h.STEPS), cpu_mhz=None)},
    "disk.space": {"facts": h.facts(filesystems=())},
    "disk.health": {"facts": h.facts(disks=(h.nvme(smart_log=None, smart_error="nvme is not installed"),))},
    "disk.size": {"facts": h.facts(disks=(h.nvme(size_gb=0),))},
    "disk.speed": {"logs": h.without_logs("disk.json")},
    "network.link": {"facts": h.facts(network=(h.network_card(speed_mbit_per_s=None),))},
    "throughput.training": {"logs": h.without_logs("train.json")},
    **{check: {"logs": h.without_logs("compute.json")} for check in compute.FIGURES},
    "memory.gpu_pattern": {"logs": h.without_logs("gpu_memory.json")},
    **{check: {"logs": h.without_logs("train_all.json")} for check in TRAINED_TOGETHER},
    "throughput.across": {"logs": h.without_logs("train_across.json")},
    "throughput.tokens_per_joule": {"logs": h.without_logs("train.json")},
    "measure.second_opinion": {"logs": h.without_logs("dcgm.json")},
}


@pytest.mark.parametrize("check", ERRORS)
def test_it_is_an_error(check):
    found = of(check, h.readings(**ERRORS[check]))
    errors = [v for v in found if v.verdict is Verdict.ERROR]
    assert errors, found
    assert not [v for v in found if v.verdict is Verdict.FAIL]
    assert all(v.fix and v.reason for v in errors)


def ended(load, **detail):
    """The healthy events with the loads of one kind ended in another way."""
    return tuple(
        e.model_copy(update={"detail": e.detail | detail})
        if e.event == "load_exited" and e.detail["load"] == load
        else e
        for e in h.events()
    )


@pytest.mark.parametrize(("status", "overran"), [(1, False), (3, False), (-9, False), (-15, True)])
def test_stress_ng_that_did_not_say_wrong_sums_says_nothing_against_the_cpu(status, overran):
    (found,) = of("throughput.cpu_burn", h.readings(events=ended("cpu", exit_status=status, overran=overran)))
    assert found.verdict is Verdict.ERROR
    assert ("was killed" if overran else f"status {status}") in found.reason


def test_training_that_was_killed_or_broke_is_told_as_such():
    logs = h.without_logs("train.json")
    (killed,) = of("throughput.training", h.readings(logs=logs, events=ended("train", exit_status=-9, overran=True)))
    assert "did not end in its time" in killed.reason
    (broke,) = of("throughput.training", h.readings(logs=logs, events=ended("train", exit_status=-11)))
    assert "status -11" in broke.reason


def test_a_rig_whose_guard_died_in_the_cpu_burn_blames_no_card():
    events = tuple(e for e in h.events() if e.t_wall_s < h.T0 + 5)
    (found,) = of("throughput.cpu_burn", h.readings(events=events))
    assert (found.verdict, "card" in found.reason) == (Verdict.ERROR, False)


def test_a_name_that_nvml_does_not_tell_is_no_wrong_model():
    nameless = h.gpu(1, name="", missing={"name": "Unknown Error"})
    found = {v.subject: v for v in of("topology.gpu_model", h.readings(facts=h.facts(gpus=(h.gpu(0), nameless))))}
    assert (found[h.SLOT2].verdict, "Unknown Error" in found[h.SLOT2].reason) == (Verdict.ERROR, True)


def test_links_whose_other_end_nvml_does_not_tell_are_not_down():
    links = tuple(link.model_copy(update={"remote_pci_bus_id": None}) for link in h.gpu(1).links)
    (found,) = of("topology.nvlink", h.readings(facts=h.facts(gpus=(h.gpu(0), h.gpu(1, links=links)))))
    assert found.verdict is Verdict.ERROR


def test_a_link_whose_speed_nobody_tells_is_no_pass():
    links = tuple(link.model_copy(update={"speed_gb_per_s": None}) for link in h.gpu(1).links[:1])
    mute = h.gpu(1, links=links + h.gpu(1).links[1:], missing={"link0.speed_gb_per_s": "Not Supported"})
    readings = h.readings(facts=h.facts(gpus=(h.gpu(0), mute)))
    short = h.reply("".join(line for line in h.NVLINK.splitlines(keepends=True) if "Link 0" not in line))
    found = {v.subject: v for v in of("topology.nvlink_speed", readings, nvlink=short)}
    assert found[h.SLOT2].verdict is Verdict.ERROR
    assert "Not Supported" in found[h.SLOT2].reason
    told = {v.subject: v for v in of("topology.nvlink_speed", readings)}
    assert told[h.SLOT2].verdict is Verdict.PASS, "nvidia-smi tells all four"


def test_links_are_said_to_be_up_under_load_only_where_there_was_a_load():
    (found,) = of("topology.nvlink")
    assert "under load" in found.reason
    (found,) = of("topology.nvlink", h.readings(samples=()))
    assert "under load" not in found.reason


@pytest.mark.parametrize("lost", [h.samples()[1:], h.samples()[:-3]])
def test_samples_that_are_missing_at_either_end_are_missed(lost):
    events = tuple(
        e.model_copy(update={"detail": {"samples": len(h.samples())}}) if e.event == "plan_finished" else e
        for e in h.events()
    )
    (found,) = of("measure.telemetry", h.readings(samples=lost, events=events))
    assert found.verdict is Verdict.ERROR
    (whole,) = of("measure.telemetry", h.readings(events=events))
    assert whole.verdict is Verdict.PASS


def test_a_cpu_temperature_in_a_few_samples_only_is_no_pass():
    seen = iter(range(10_000))
    some = tuple(s.model_copy(update={"cpu_temp_c": 60.0 if next(seen) % 5 == 0 else None}) for s in h.samples())
    (found,) = of("thermals.cpu_temp", h.readings(samples=some))
    assert found.verdict is Verdict.ERROR


def test_a_missing_burner_names_the_role_once_and_all_else_follows():
    verdicts = all_verdicts(readings=no_burn())
    causes = [v for v in verdicts if v.verdict in (Verdict.FAIL, Verdict.ERROR) and v.caused_by is None]
    assert [(v.key, v.fix) for v in causes] == [
        ("software.gpu_burn_build[rig]", "rigctl provision rig1 --tags gpu_burn")
    ]
    (oracle,) = [v for v in verdicts if v.check == "throughput.gpu_burn"]
    assert (oracle.verdict, oracle.fix) == (Verdict.ERROR, "rigctl provision rig1 --tags gpu_burn")
    assert oracle.caused_by == "software.gpu_burn_build[rig]"


def test_a_missing_torch_names_the_role():
    events = (
        *(e for e in h.events() if e.step != "train"),
        RigEvent(seq=90, t_mono_s=0, t_wall_s=h.T0, event="error", step="train", detail={"needs": "torch"}),
    )
    readings = h.readings(facts=h.facts(tools=tools(torch=None)), events=events, logs=h.without_logs("train.json"))
    (training,) = of("throughput.training", readings)
    assert training.verdict is Verdict.ERROR
    assert training.fix == "rigctl provision rig1 --tags pytorch"
    assert training.caused_by == "software.torch[rig]"


def test_a_meter_that_need_not_be_there_is_blind_and_without_an_address_it_says_where_to_set_it():
    offline = h.readings(samples=h.with_samples(("all_burn",), wall_power_w=None, wall_error="timed out"))
    (blind,) = of("power.wall", offline, h.spec(wall_meter=WallMeterSpec(form="tasmota", url="x", required=False)))
    assert blind.verdict is Verdict.BLIND
    (error,) = of("power.wall", offline, h.spec(wall_meter=WallMeterSpec(form="tasmota")))
    assert error.fix == "set rig_spec_host.wall_meter.url in host_vars/rig1/"
    (skipped,) = of("power.wall", offline, h.spec(wall_meter=None))
    assert skipped.verdict is Verdict.SKIP


def test_a_driver_that_does_not_tell_throttle_reasons_is_blind_and_a_gap_is_not():
    found = of("thermals.throttle", h.readings(**under_load(throttle=None)))
    assert {v.subject: v.verdict for v in found} == {h.SLOT1: Verdict.PASS, h.SLOT2: Verdict.BLIND}


def test_hot_spots_are_an_error_where_no_card_is_seen():
    (error,) = of("thermals.hotspot_temp", h.readings(facts=h.facts(gpus=())))
    assert error.verdict is Verdict.ERROR


def test_parts_that_the_spec_does_not_name_are_skipped():
    spec = h.spec(parts={"links": ()}, limits={"max_cpu_temp_c": None}, training=None, compute=None)
    skipped = {v.check for v in all_verdicts(spec, baseline=h.baseline()) if v.verdict is Verdict.SKIP}
    links = {"topology.nvlink", "topology.nvlink_speed", "topology.nvlink_errors", "topology.p2p_access"}
    trained = {"throughput.training", "throughput.across", "throughput.tokens_per_joule", *TRAINED_TOGETHER}
    computed = {*compute.FIGURES, "memory.gpu_pattern"}
    assert skipped == {*links, *trained, *computed, *NOT_BUILT_IN, "thermals.cpu_temp"}


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("", "the links cannot be read"),
        ("GPU0 something new\n", "unknown form"),
        ("Failed to initialize NVML: Driver/library version mismatch\n", "different versions"),
    ],
)
def test_nvidia_smi_that_cannot_confirm_the_links_is_an_error(text, word):
    (link,) = of("topology.nvlink", topo=h.reply(text, exit_status=0 if text.startswith("GPU0") or not text else 18))
    assert link.verdict is Verdict.ERROR
    assert word in link.reason or not text


def test_nvidia_smi_that_disagrees_with_nvml_fails():
    (link,) = of("topology.nvlink", topo=h.reply(h.TOPO.replace("NV4", "NV3")))
    assert link.verdict is Verdict.FAIL
    assert "NVML counts 4" in link.reason


def test_a_link_that_goes_down_under_load_fails():
    readings = h.readings(**under_load(links_active=(True, True, False, True)))
    (link,) = of("topology.nvlink", readings)
    assert (link.verdict, link.found) == (Verdict.FAIL, "NV3")


def test_nvlink_where_none_was_declared_fails():
    spec = h.spec(parts={"links": (h.spec().parts.links[0].model_copy(update={"kind": "pcie", "links": 0}),)})
    (link,) = of("topology.nvlink", spec=spec)
    assert (link.verdict, link.expected, link.found) == (Verdict.FAIL, "no NVLink", "NV4")


def test_speeds_that_nvidia_smi_cannot_confirm_are_errors():
    found = of("topology.nvlink_speed", nvlink=h.reply("GPU 0: a card of a new form\n"))
    assert {v.verdict for v in found} == {Verdict.ERROR}


@pytest.mark.parametrize(
    ("changes", "verdict", "word"),
    [
        ({"error": "no CUDA", "hint": "check the driver"}, Verdict.ERROR, "no CUDA"),
        ({"device": "cpu"}, Verdict.ERROR, "device"),
        ({"model": "gpt_tiny"}, Verdict.ERROR, "model"),
        ({"tokens_per_s": None}, Verdict.ERROR, "no finite"),
        ({"loss_last": float("nan")}, Verdict.ERROR, "no finite"),
        ({"tokens_per_s": "7000"}, Verdict.ERROR, "no finite"),
    ],
)
def test_training_that_was_not_the_asked_one_is_an_error(changes, verdict, word):
    (found,) = of("throughput.training", h.readings(**trained(**changes)))
    assert found.verdict is verdict
    assert word in found.reason


@pytest.mark.parametrize("text", ["no json", "[]", "12", "null", '"x"'])
def test_training_that_wrote_garbage_is_an_error(text):
    (found,) = of("throughput.training", h.readings(logs=h.with_logs(train__json=text)))
    assert found.verdict is Verdict.ERROR


def test_a_provisional_floor_is_said():
    (found,) = of("throughput.training")
    assert "provisional" in found.reason


def test_sampling_that_is_too_slow_or_begins_late_is_an_error():
    every_third = [s.model_copy(update={"seq": i}) for i, s in enumerate(h.samples()[::3])]
    (slow,) = of("measure.telemetry", h.readings(samples=tuple(every_third)))
    assert (slow.verdict, slow.expected) == (Verdict.ERROR, 1.6)
    (late,) = of("measure.telemetry", h.readings(samples=h.samples()[5:]))
    assert late.verdict is Verdict.ERROR
    (cut,) = of("measure.telemetry", h.readings(cuts=("connection cut for 20 s during gpu_burn, then resumed",)))
    assert cut.verdict is Verdict.PASS
    assert "cut for 20 s" in cut.reason


@pytest.mark.parametrize("name", ["gpu_burn.log", "all_burn.log"])
def test_a_burn_that_wrote_something_new_is_an_error(name):
    logs = h.logs()
    logs[name] = logs[name].replace("done\n", "done\nEvery thing is fine, trust me\n")
    (whole, *_) = of("throughput.gpu_burn", h.readings(logs=logs))
    assert whole.verdict is Verdict.ERROR
    assert "Every thing is fine" in whole.reason


def test_json_of_the_healthy_training_is_what_the_tests_think():
    assert json.loads(h.logs()["train.json"])["tokens_per_s"] > 6702


def test_an_xid_of_an_unknown_form_is_an_error():
    readings = h.readings(kernel=(KernelMessage(t_wall_s=h.T0, message="NVRM: Xid in a new form: 79"),))
    (found,) = of("kernel.xid", readings)
    assert found.verdict is Verdict.ERROR
    assert "new form" in found.reason
