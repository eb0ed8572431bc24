"""Which figures are believed: each boundary between a figure, however bad, and what cannot be one."""

from __future__ import annotations

import pytest

from rigctl.model.verdict import Verdict

from . import healthy as h
from .bad_words import samples
from .test_fail import trained, under_load
from .test_healthy import all_verdicts

TRAINING = "throughput.training"


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
